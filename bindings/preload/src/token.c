/* The functions with tokens over hks_heap(): each token has a label of the one context. Where there is no
 * heap, the functions without tokens do what is to be done. */
#include "token.h"

#include "heap.h"

#include <hakmem/inline.h>
#include <hakmem/token.h>

#include <errno.h>
#include <stdlib.h>

static hak_tokens tokens;

static __attribute__((cold, noinline)) void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static inline void *checked(void *p)
{
    return HKS_LIKELY(p) ? p : no_memory();
}

static __attribute__((noinline)) void *malloc_slow(size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (!heap) return malloc(n);
    return checked(hak_alloc_cs(heap, n, hak_token_label(&tokens, heap, token), 0));
}

static inline void *hkc_malloc(size_t n, size_t token)
{
    hak_ctx *heap = hks_thread_heap;
    const int label = hak_token_known(&tokens, token);
    if (HKS_UNLIKELY(!heap) || HKS_UNLIKELY(label < 0)) return malloc_slow(n, token);
    return checked(hak_alloc_inline(heap, n, (hak_label)label));
}

static inline void *hkc_calloc(size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return calloc(1, n);
    return checked(hak_calloc_cs(heap, 1, n, hak_token_label(&tokens, heap, token), 0));
}

/* Where the compiler knows no type, the block keeps its label. */
static inline void *hkc_resize(void *p, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap) || token == 0) return realloc(p, n);
    return checked(hak_realloc_cs(heap, p, n, hak_token_label(&tokens, heap, token), 0));
}

static inline void *hkc_aligned(size_t align, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return aligned_alloc(align, n);
    return hak_aligned_alloc_cs(heap, align, n, hak_token_label(&tokens, heap, token), 0);
}

static inline void hkc_free(void *p)
{
    free(p);
}

#define HKC_FUNCTION(name) __alloc_token_##name
#define HKC_TOKEN , size_t token
#define HKC_PASS , token
#include "common/malloc/blocks.h"
#include "common/malloc/new.h"
