#include "heap/asked.h"

#include "heap/big.h"
#include "heap/guard.h"
#include "heap/metadata.h"

typedef _Atomic(void *) slot;

enum { BITS = 6, LEVELS = 5, ENTRIES = HK_UNIT / 8 };
/* An entry is 0, or n + 1; HELD for HK_HELD; or WIDE for runs, of which the leaf's second word is n. */
enum { WIDE = UINT16_MAX, HELD = WIDE - 1, NARROW_MOST = WIDE - 3 };
_Static_assert((int)HK_SMALL_MAX <= (int)NARROW_MOST, "blocks that share a unit have entries of their own");

typedef struct leaf {
    union {
        uint16_t entry[ENTRIES];
        uint32_t word[ENTRIES / 2];
    };
} leaf;

/* The node or leaf at the slot. `make`: an absent one is made, of n bytes of zeros. */
static void *at_slot(hak_ctx *whole, slot *at, size_t n, bool make)
{
    void *p = atomic_load_explicit(at, memory_order_acquire);
    if (p || !make) return p;
    p = hk_meta_alloc(whole, n);
    if (p) atomic_store_explicit(at, memset(p, 0, n), memory_order_release);
    return p;
}

static leaf *leaf_of(hak_ctx *whole, hk_unit_id id, bool make)
{
    if (!whole->watch) return NULL;
    slot *at = &whole->watch->asked;
    for (int shift = (LEVELS - 1) * BITS; shift >= 0; shift -= BITS) {
        slot *node = at_slot(whole, at, sizeof(slot) << BITS, make);
        if (!node) return NULL;
        at = &node[id >> shift & ((1u << BITS) - 1)];
    }
    return at_slot(whole, at, sizeof(leaf), make);
}

static hk_unit_id unit_at(const hk_extent *e, const void *p)
{
    return e->first + (hk_unit_id)(((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
}

static size_t entry_at(const void *p)
{
    return ((uintptr_t)p & (HK_UNIT - 1)) / 8;
}

bool hk_asked_set(hak_ctx *ctx, const void *p, size_t n, bool make)
{
    const hk_extent *e = hk_extent_of(ctx->space, p);
    if (!e) {
        hk_guard_slot *drawn = hk_guard_in(ctx->space, p);
        if (drawn) drawn->asked = n;
        else hk_big_at(ctx->space, p)->asked = n;
        return true;
    }
    leaf *l = leaf_of(hk_whole(ctx), unit_at(e, p), make);
    if (!l) return false;
    l->entry[entry_at(p)] = (uint16_t)(n <= NARROW_MOST ? n + 1 : n == HK_HELD ? HELD : WIDE);
    if (n > NARROW_MOST && n != HK_HELD) l->word[1] = (uint32_t)n;
    return true;
}

size_t hk_asked(const hak_ctx *ctx, const void *p)
{
    const hk_extent *e = hk_extent_of(ctx->space, p);
    if (!e) {
        const hk_guard_slot *drawn = hk_guard_in(ctx->space, p);
        if (drawn) return drawn->asked;
        const hk_big *b = hk_big_at(ctx->space, p);
        return b ? b->asked : HAK_NONE;
    }
    const leaf *l = leaf_of(hk_whole(ctx), unit_at(e, p), false);
    uint16_t entry = l && (uintptr_t)p % 8 == 0 ? l->entry[entry_at(p)] : 0;
    return entry == 0 ? HAK_NONE : entry == HELD ? HK_HELD : entry == WIDE ? l->word[1] : entry - 1u;
}
