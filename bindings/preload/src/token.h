/* What a program calls that was compiled with -fsanitize=alloc-token: the functions that give blocks, with
 * the token of the block's type behind their arguments. */
#ifndef HKS_PRELOAD_TOKEN_H
#define HKS_PRELOAD_TOKEN_H

#include <stddef.h>

void *__alloc_token_malloc(size_t n, size_t token);
void *__alloc_token_calloc(size_t count, size_t n, size_t token);
void *__alloc_token_realloc(void *p, size_t n, size_t token);
void *__alloc_token_reallocarray(void *p, size_t count, size_t n, size_t token);
int __alloc_token_posix_memalign(void **out, size_t align, size_t n, size_t token);
void *__alloc_token_aligned_alloc(size_t align, size_t n, size_t token);
void *__alloc_token_memalign(size_t align, size_t n, size_t token);
void *__alloc_token_valloc(size_t n, size_t token);
void *__alloc_token_pvalloc(size_t n, size_t token);
void *__alloc_token__Znwm(size_t n, size_t token);
void *__alloc_token__Znam(size_t n, size_t token);
void *__alloc_token__ZnwmRKSt9nothrow_t(size_t n, const void *nothrow, size_t token);
void *__alloc_token__ZnamRKSt9nothrow_t(size_t n, const void *nothrow, size_t token);
void *__alloc_token__ZnwmSt11align_val_t(size_t n, size_t align, size_t token);
void *__alloc_token__ZnamSt11align_val_t(size_t n, size_t align, size_t token);
void *__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(size_t n, size_t align, const void *nothrow,
                                                       size_t token);
void *__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size_t n, size_t align, const void *nothrow,
                                                       size_t token);

#endif
