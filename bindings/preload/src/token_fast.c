/* The same for -fsanitize-alloc-token-fast-abi, which has the token in the name of the function. A program
 * with more tokens than there are here is not linked; it needs -falloc-token-max=16 then. */
#include "token.h"

#include "token_quick.h"

#define NAME(id, name) __alloc_token_##id##_##name
#define BLOCK(id, name, parameters, ...)                                                                     \
    void *NAME(id, name) parameters;                                                                         \
    void *NAME(id, name) parameters                                                                          \
    {                                                                                                        \
        return __alloc_token_##name(__VA_ARGS__, id);                                                        \
    }

/* Most calls: they need not pass the token on. */
#define QUICK_MALLOC(id)                                                                                     \
    void *NAME(id, malloc)(size_t n);                                                                        \
    void *NAME(id, malloc)(size_t n)                                                                         \
    {                                                                                                        \
        return hks_token_malloc(n, id);                                                                      \
    }
#define QUICK_NEW(id, name)                                                                                  \
    void *NAME(id, name)(size_t n);                                                                          \
    void *NAME(id, name)(size_t n)                                                                           \
    {                                                                                                        \
        void *p = hks_token_malloc(n, id);                                                                   \
        return HKS_LIKELY(p) ? p : __alloc_token_##name(n, id);                                              \
    }

#define ID(id)                                                                                               \
    QUICK_MALLOC(id)                                                                                         \
    BLOCK(id, calloc, (size_t count, size_t n), count, n)                                                    \
    BLOCK(id, realloc, (void *p, size_t n), p, n)                                                            \
    BLOCK(id, reallocarray, (void *p, size_t count, size_t n), p, count, n)                                  \
    BLOCK(id, aligned_alloc, (size_t align, size_t n), align, n)                                             \
    BLOCK(id, memalign, (size_t align, size_t n), align, n)                                                  \
    BLOCK(id, valloc, (size_t n), n)                                                                         \
    BLOCK(id, pvalloc, (size_t n), n)                                                                        \
    QUICK_NEW(id, _Znwm)                                                                                     \
    QUICK_NEW(id, _Znam)                                                                                     \
    BLOCK(id, _ZnwmRKSt9nothrow_t, (size_t n, const void *nothrow), n, nothrow)                              \
    BLOCK(id, _ZnamRKSt9nothrow_t, (size_t n, const void *nothrow), n, nothrow)                              \
    BLOCK(id, _ZnwmSt11align_val_t, (size_t n, size_t align), n, align)                                      \
    BLOCK(id, _ZnamSt11align_val_t, (size_t n, size_t align), n, align)                                      \
    BLOCK(id, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t align, const void *nothrow), n, align,   \
          nothrow)                                                                                           \
    BLOCK(id, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t align, const void *nothrow), n, align,   \
          nothrow)                                                                                           \
    int NAME(id, posix_memalign)(void **out, size_t align, size_t n);                                        \
    int NAME(id, posix_memalign)(void **out, size_t align, size_t n)                                         \
    {                                                                                                        \
        return __alloc_token_posix_memalign(out, align, n, id);                                              \
    }

ID(0)
ID(1)
ID(2)
ID(3)
ID(4)
ID(5)
ID(6)
ID(7)
ID(8)
ID(9)
ID(10)
ID(11)
ID(12)
ID(13)
ID(14)
ID(15)
