/* The functions with tokens over hks_heap(): each token has a label of the one context. Where there is no
 * heap, the functions without tokens do what is to be done. */
#include "token.h"

#include "heap.h"
#include "token_slots.h"

#include "common/pages.h"

#include <hakmem/token.h>

#include <errno.h>
#include <stdlib.h>

static hak_tokens tokens;

/* ---- What a thread remembers ---------------------------------------------------------------------- */

static const hks_token_slot nothing[HKS_TOKEN_SLOTS];
_Thread_local const hks_token_slot *hks_token_slots __attribute__((tls_model("initial-exec"))) = nothing;
static _Thread_local unsigned misses __attribute__((tls_model("initial-exec")));

enum { FIRST_MISSES = 64, FURTHER_MISSES = 8 };

void hks_token_forget(void)
{
    if (hks_token_slots != nothing) hkc_pages_give((void *)(uintptr_t)hks_token_slots, sizeof nothing);
    hks_token_slots = nothing;
    misses = 0;
}

static bool make_slots(void)
{
    const int saved = errno;
    hks_token_slot *slots = hkc_pages(sizeof nothing);
    errno = saved;
    if (slots) hks_token_slots = slots;
    return slots;
}

static hks_token_slot *writable(const hks_token_slot *s)
{
    return (hks_token_slot *)(uintptr_t)s;
}

static const hks_token_slot *second_of(const hks_token_slot *s)
{
    return (const hks_token_slot *)((uintptr_t)s ^ sizeof *s);
}

static bool same(const hks_token_slot *a, const hks_token_slot *b)
{
    return a->token == b->token && a->n == b->n;
}

/* The latest of two goes first. Where more than two allocations have the same slots, they would push each other
 * out for ever: so a slot that is taken is taken over after some misses only. */
static void remember(const hks_token_slot *now)
{
    const hks_token_slot *s = hks_token_slot_of(now->n, now->token), *second = second_of(s);
    if (same(s, now) || same(second, now)) {
        writable(same(s, now) ? s : second)->bin = now->bin;
        return;
    }
    const unsigned missed = misses++;
    if (hks_token_slots == nothing) {
        if (missed % FIRST_MISSES != FIRST_MISSES - 1 || !make_slots()) return;
        s = second = hks_token_slot_of(now->n, now->token);
    }
    if (s->token) {
        if (missed % FURTHER_MISSES != 0) return;
        *writable(second) = *s;
    }
    *writable(s) = *now;
}

/* ---- The functions -------------------------------------------------------------------------------- */

static __attribute__((cold, noinline)) void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static inline void *checked(void *p)
{
    return HKS_LIKELY(p) ? p : no_memory();
}

static inline hak_label label_of(hak_ctx *heap, size_t token)
{
    const int known = hak_token_known(&tokens, token);
    return HKS_LIKELY(known >= 0) ? (hak_label)known : hak_token_label(&tokens, heap, token);
}

static __attribute__((noinline)) void *malloc_slow(size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (!heap) return malloc(n);
    return checked(hak_alloc_cs(heap, n, label_of(heap, token), 0));
}

void *hks_token_missed(size_t n, size_t token)
{
    const hks_token_slot *second = second_of(hks_token_slot_of(n, token));
    if (second->token == token && second->n == n && hak_inline_at_hand(second->bin))
        return hak_inline_pop(second->bin, (hak_label)second->label);
    hak_ctx *heap = hks_thread_heap;
    if (HKS_UNLIKELY(!heap)) return malloc_slow(n, token);
    const hak_label label = label_of(heap, token);
    if (n <= HAK_INLINE_MOST && label != 0)
        remember(&(hks_token_slot){token, n, hak_inline_bin_of(heap, n), label});
    return checked(hak_alloc_inline(heap, n, label));
}

static inline void *hkc_malloc(size_t n, size_t token)
{
    return hks_token_malloc(n, token);
}

static inline void *hkc_calloc(size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return calloc(1, n);
    return checked(hak_calloc_cs(heap, 1, n, label_of(heap, token), 0));
}

/* Where the compiler knows no type, the block keeps its label. */
static inline void *hkc_resize(void *p, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap) || token == 0) return realloc(p, n);
    return checked(hak_realloc_cs(heap, p, n, label_of(heap, token), 0));
}

static inline void *hkc_aligned(size_t align, size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return aligned_alloc(align, n);
    return hak_aligned_alloc_cs(heap, align, n, label_of(heap, token), 0);
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
