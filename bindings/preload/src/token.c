/* The functions with tokens over hks_heap(): each token has a label of the one context. Where there is no
 * heap, the functions without tokens do what is to be done. */
#include "token.h"

#include "heap.h"
#include "refused.h"
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
    const hak_label label = hks_token_label(heap, token);
    return hks_checked(hak_calloc_cs(heap, 1, n, label, 0), NULL, 0, n, true, label);
}

/* Where the compiler knows no type, the block keeps its label. */
static inline void *hkc_resize(void *p, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap) || token == 0) return realloc(p, n);
    const hak_label label = hks_token_label(heap, token);
    return hks_checked(hak_realloc_cs(heap, p, n, label, 0), p, 0, n, false, label);
}

static inline void *hkc_aligned(size_t align, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return aligned_alloc(align, n);
    const hak_label label = hks_token_label(heap, token);
    return hks_checked(hak_aligned_alloc_cs(heap, align, n, label, 0), NULL, align, n, false, label);
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
