/* The functions with tokens over hks_heap(): each token has a label of the one context. Where there is no
 * heap, the functions without tokens do what is to be done. */
#include "token.h"

#include "heap.h"
#include "token_quick.h"

#include <hakmem/token.h>

#include <errno.h>
#include <stdlib.h>

static inline void *hkc_malloc(size_t n, size_t token)
{
    return hks_token_malloc(n, token);
}

static inline void *hkc_calloc(size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return calloc(1, n);
    return hks_token_checked(hak_calloc_cs(heap, 1, n, hks_token_label(heap, token), 0));
}

/* Where the compiler knows no type, the block keeps its label. */
static inline void *hkc_resize(void *p, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap) || token == 0) return realloc(p, n);
    return hks_token_checked(hak_realloc_cs(heap, p, n, hks_token_label(heap, token), 0));
}

static inline void *hkc_aligned(size_t align, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return aligned_alloc(align, n);
    return hak_aligned_alloc_cs(heap, align, n, hks_token_label(heap, token), 0);
}

static inline void hkc_free(void *p)
{
    free(p);
}

#define HKC_FUNCTION(name) __alloc_token_##name
#define HKC_NEW hkc_malloc
#define HKC_TOKEN , size_t token
#define HKC_PASS , token
#include "common/malloc/blocks.h"
#include "common/malloc/new.h"
