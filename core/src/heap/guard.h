/* Drawn blocks of HAK_DEBUG_GUARD: each lies alone before a page that nobody may touch, in a pool of the
 * space. A table far away from the blocks says what is known of each, and keeps it when the block is freed;
 * hak_guard_explain reads the table without a lock, perhaps in a signal handler. A slot belongs to a context
 * while its block lives. The lock of the space protects the list of free slots. */
#ifndef HK_GUARD_H
#define HK_GUARD_H

#include "hakmem/guard.h"

#include "heap/ctx.h"

/* HK_GUARD_BESIDE: bytes before a block that hold the pattern. */
enum { HK_GUARD_BESIDE = 64, HK_GUARD_FILL = 0xCA };
#define HK_GUARD_MOST HK_SMALL_MAX

typedef struct hk_guard_slot {
    _Atomic(hak_ctx *) ctx; /* whose block is here; of a free slot, whose was last; NULL = it is gone */
    atomic_bool live;
    uint8_t label;
    uint32_t next; /* free slot that is taken after this one, + 1; 0 = none */
    char *p;       /* NULL = there was no block yet */
    size_t size;   /* as asked for */
    size_t asked;  /* with HAK_DEBUG_CHECK: see asked.h */
    char label_name[HAK_GUARD_LABEL];
    hak_guard_event allocated, released;
} hk_guard_slot;

struct hk_guard {
    char beside[HK_BESIDE];
    char *base; /* a page that nobody touches, then for each slot HK_GUARD_MOST bytes and such a page */
    size_t bytes, count, table_bytes;
    size_t used;          /* slots from here on had no block yet */
    uint32_t first, last; /* slots that are free again, the one longest so first; + 1 */
    hk_guard_slot slots[];
};

/* The space gets a pool if it has none. false = no memory, or its OS table cannot protect. */
bool hk_guard_make(hak_space *space);
/* At the end of the space, with a copy of its table. */
void hk_guard_release(hk_guard *g, const hak_os *os);

/* The slot whose place p is in. NULL = none. [any thread] */
HK_INLINE hk_guard_slot *hk_guard_slot_at(const hak_space *s, const void *p)
{
    hk_guard *g = atomic_load_explicit(&s->guard, memory_order_acquire);
    if (HK_LIKELY(!g)) return NULL;
    size_t at = (uintptr_t)p - (uintptr_t)g->base;
    return at < g->bytes && at >= HK_PAGE ? &g->slots[(at - HK_PAGE) / (HK_GUARD_MOST + HK_PAGE)] : NULL;
}
/* The slot of the live block that p is in. [any thread] */
hk_guard_slot *hk_guard_in(const hak_space *s, const void *p);
/* The slot of the block of ctx that starts at p. NULL = none. */
hk_guard_slot *hk_guard_find(const hak_ctx *ctx, const void *p);

/* A block; the heap's lock is held if it has one. NULL = no slot is free, or there is no memory: nothing
 * changed. */
void *hk_guard_alloc(hak_ctx *ctx, size_t align, size_t n, hak_label label, const hak_guard_event *event);
/* Another label. */
void hk_guard_relabel(const hak_ctx *ctx, hk_guard_slot *slot, hak_label label);
void hk_guard_free(hak_ctx *ctx, hk_guard_slot *slot);
/* Who is about to free p, if it is a drawn block; before any lock is taken. site 0 = not known, or told
 * already. */
void hk_guard_freed_by(const hak_ctx *ctx, const void *p, hak_site site);
/* Who calls, for the record. */
void hk_guard_event_now(const hak_ctx *ctx, hak_site site, hak_guard_event *event);
/* All blocks of a context that ends. */
void hk_guard_end(hak_ctx *ctx);

/* A context draws blocks from now on. */
void hk_guard_begin(hak_ctx *ctx);
/* How many allocations to the next drawn one. */
uint32_t hk_guard_draw(hak_ctx *ctx);

/* Every live drawn block of the context. */
#define HK_EACH_GUARDED(ctx, slot)                                                                           \
    for (hk_guard_slot *slot = hk_guard_next(ctx, NULL); slot; slot = hk_guard_next(ctx, slot))
hk_guard_slot *hk_guard_next(const hak_ctx *ctx, const hk_guard_slot *after);

#endif
