#include "heap/guard.h"

#include "base/random.h"
#include "heap/account.h"
#include "heap/judge.h"
#include "heap/label.h"
#include "space/calls.h"
#include "space/purge.h"

static hk_guard *pool_of(const hak_space *s)
{
    return atomic_load_explicit(&s->guard, memory_order_acquire);
}

static char *place_of(const hk_guard *g, const hk_guard_slot *slot)
{
    return g->base + HK_PAGE + (size_t)(slot - g->slots) * (HK_GUARD_MOST + HK_PAGE);
}

/* ---- The pool ------------------------------------------------------------------------------------- */

/* With the lock held. */
static hk_guard *pool_new(hak_space *s)
{
    size_t bytes = HK_PAGE + s->guard_slots * (HK_GUARD_MOST + HK_PAGE);
    size_t table =
        hk_align_up(sizeof(hk_guard) + s->guard_slots * sizeof(hk_guard_slot) + HK_BESIDE, HK_PAGE);
    char *base = hk_call_reserve(s, bytes, HK_PAGE);
    hk_guard *g = base ? hk_call_reserve(s, table, HK_PAGE) : NULL;
    if (g && (hk_call_protect(s, base, bytes, false) != 0 || hk_call_open(s, g, table) != 0)) {
        hk_call_release(s, g, table);
        g = NULL;
    }
    if (!g) {
        if (base) hk_call_release(s, base, bytes);
        return NULL;
    }
    hk_add(&s->reserved_bytes, bytes + table);
    g->base = base;
    g->bytes = bytes;
    g->count = s->guard_slots;
    g->table_bytes = table;
    return g;
}

bool hk_guard_make(hak_space *s)
{
    if (!s->os.protect || s->buffer_only) return false;
    hk_lock_take(&s->lock);
    hk_guard *g = pool_of(s);
    if (!g) {
        g = pool_new(s);
        atomic_store_explicit(&s->guard, g, memory_order_release);
    }
    hk_lock_drop(&s->lock);
    return g;
}

void hk_guard_release(hk_guard *g, const hak_os *os)
{
    if (!g) return;
    os->release(os->user, g->base, g->bytes);
    os->release(os->user, g, g->table_bytes);
}

static hk_guard_slot *slot_take(hak_space *s, hk_guard *g)
{
    hk_guard_slot *slot = NULL;
    hk_lock_take(&s->lock);
    if (g->used < g->count) {
        slot = &g->slots[g->used++];
    } else if (g->first) {
        slot = &g->slots[g->first - 1];
        g->first = slot->next;
        if (!g->first) g->last = 0;
    }
    hk_lock_drop(&s->lock);
    return slot;
}

static void slot_drop(hak_space *s, hk_guard *g, hk_guard_slot *slot)
{
    uint32_t number = (uint32_t)(slot - g->slots) + 1;
    hk_lock_take(&s->lock);
    HK_ASSERT(number <= g->used && !atomic_load_explicit(&slot->live, memory_order_relaxed));
    HK_ASSERT(!g->first == !g->last && number != g->last);
    slot->next = 0;
    if (g->last) g->slots[g->last - 1].next = number;
    else g->first = number;
    g->last = number;
    hk_lock_drop(&s->lock);
}

/* ---- Look-ups ------------------------------------------------------------------------------------- */

hk_guard_slot *hk_guard_in(const hak_space *s, const void *p)
{
    hk_guard_slot *slot = hk_guard_slot_at(s, p);
    bool in = slot && atomic_load_explicit(&slot->live, memory_order_acquire) &&
              (uintptr_t)p - (uintptr_t)slot->p < slot->size;
    return in ? slot : NULL;
}

hk_guard_slot *hk_guard_find(const hak_ctx *ctx, const void *p)
{
    hk_guard_slot *slot = hk_guard_in(ctx->space, p);
    return slot && slot->p == p && atomic_load_explicit(&slot->ctx, memory_order_relaxed) == ctx ? slot
                                                                                                 : NULL;
}

hk_guard_slot *hk_guard_next(const hak_ctx *ctx, const hk_guard_slot *after)
{
    hk_guard *g = pool_of(ctx->space);
    if (!g) return NULL;
    for (size_t i = after ? (size_t)(after - g->slots) + 1 : 0; i < g->count; i++) {
        hk_guard_slot *slot = &g->slots[i];
        if (atomic_load_explicit(&slot->live, memory_order_acquire) &&
            atomic_load_explicit(&slot->ctx, memory_order_relaxed) == ctx)
            return slot;
    }
    return NULL;
}

/* ---- Draws ---------------------------------------------------------------------------------------- */

/* Uniform from 1 to 2 guard_every - 1, so that no pattern of the program stays out of it. */
uint32_t hk_guard_draw(hak_ctx *ctx)
{
    uint64_t x = hk_random_next(&hk_drawing_of(ctx)->random);
    return 1 + (uint32_t)((x >> 32) * (2 * (uint64_t)hk_drawing_of(ctx)->every - 1) >> 32);
}

void hk_guard_begin(hak_ctx *ctx)
{
    const hak_os *os = &ctx->space->os;
    hk_drawing_of(ctx)->random = (uint64_t)ctx->owned.id << 40 ^ os->clock(os->user);
    hk_drawing_of(ctx)->left = hk_guard_draw(ctx);
}

/* ---- Who calls ------------------------------------------------------------------------------------ */

void hk_guard_event_now(const hak_ctx *ctx, hak_site site, hak_guard_event *event)
{
    hak_ctx *whole = hk_whole(ctx);
    const hak_os *os = &ctx->space->os;
    event->thread = os->thread_id ? os->thread_id(os->user) : 0;
    event->site = site;
    event->depth = 0;
    if (!(whole->checked & HK_GUARDED) || !hk_drawing_of(whole)->frames) return;
    size_t depth =
        hk_drawing_of(whole)->frames(hk_drawing_of(whole)->user, whole, site, event->frames, HAK_GUARD_DEPTH);
    event->depth = (unsigned)hk_min(depth, HAK_GUARD_DEPTH);
}

void hk_guard_freed_by(const hak_ctx *ctx, const void *p, hak_site site)
{
    hk_guard_slot *slot = hk_guard_in(ctx->space, p);
    /* With a site it was noted by hak_free_cs. */
    if (!slot || slot->p != p || (!site && slot->released.site)) return;
    /* Another context's is not touched. */
    const hak_ctx *owner = atomic_load_explicit(&slot->ctx, memory_order_relaxed);
    if (!owner || (owner != ctx && hk_whole(owner) != hk_whole(ctx))) return;
    hk_guard_event_now(ctx, site, &slot->released);
}

/* ---- Blocks --------------------------------------------------------------------------------------- */

/* The name stays when the context is gone. Sums of labels may look at the number, from other threads. */
void hk_guard_relabel(const hak_ctx *ctx, hk_guard_slot *slot, hak_label label)
{
    __atomic_store_n(&slot->label, hk_label_clamp(label), __ATOMIC_RELAXED);
    const char *name = hk_label_name(ctx, hk_label_known(ctx, slot->label));
    size_t n = hk_label_name_length(name);
    if (n) memcpy(slot->label_name, name, n);
    slot->label_name[n] = 0;
}

static size_t before_of(const hk_guard_slot *slot)
{
    return hk_min((uintptr_t)slot->p & (HK_PAGE - 1), HK_GUARD_BESIDE);
}

/* Pages that belong to the slot alone. false = they could not be had. */
static bool pages_on(hak_space *s, char *from, size_t n)
{
    hk_lock_take(&s->lock);
    bool on = hk_call_commit(s, from, n) == 0;
    if (on && hk_call_protect(s, from, n, true) != 0) {
        hk_purge(s, from, n, 0);
        on = false;
    }
    hk_lock_drop(&s->lock);
    return on;
}

static void pages_off(hak_space *s, char *from, size_t n)
{
    hk_lock_take(&s->lock);
    hk_purge(s, from, n, 0);
    /* If it fails the pages can be touched; they read as zero. */
    hk_call_protect(s, from, n, false);
    hk_lock_drop(&s->lock);
}

void *hk_guard_alloc(hak_ctx *ctx, size_t align, size_t n, hak_label label, const hak_guard_event *event)
{
    hk_guard *g = pool_of(ctx->space);
    size_t size = hk_max(n, 1), pages = hk_align_up(size, HK_PAGE);
    hk_guard_slot *slot = slot_take(ctx->space, g);
    if (!slot) return NULL;
    char *end = place_of(g, slot) + HK_GUARD_MOST;
    /* No cache gives up memory for a drawn block, which may as well lie elsewhere. */
    bool charged = hk_charge(ctx, pages);
    if (!charged || !pages_on(ctx->space, end - pages, pages)) {
        if (charged) hk_refund(ctx, pages);
        slot_drop(ctx->space, g, slot);
        return NULL;
    }
    slot->p = (char *)((uintptr_t)(end - size) & ~(uintptr_t)(align - 1));
    slot->size = size;
    slot->asked = HAK_NONE;
    hk_guard_relabel(ctx, slot, label);
    slot->allocated = *event;
    slot->released = (hak_guard_event){0};
    memset(slot->p - before_of(slot), HK_GUARD_FILL, before_of(slot));
    memset(slot->p + size, HK_GUARD_FILL, (size_t)(end - slot->p) - size);
    atomic_store_explicit(&slot->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&slot->live, true, memory_order_release);
    hk_count_in(ctx, size, 1);
    return slot->p;
}

static bool filled(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] != HK_GUARD_FILL) return false;
    return true;
}

/* Reports what was written beside a live block. */
static void look_beside(const hak_ctx *ctx, const hk_guard_slot *slot)
{
    const char *end = place_of(pool_of(ctx->space), slot) + HK_GUARD_MOST, *after = slot->p + slot->size;
    if (!filled(after, (size_t)(end - after))) hk_found_wrong(ctx, HK_WRONG_BEHIND, slot->p);
    if (!filled(slot->p - before_of(slot), before_of(slot))) hk_found_wrong(ctx, HK_WRONG_BEFORE, slot->p);
}

/* Takes the pages of a slot back; what its table knows of the block stays. Returns the bytes. */
static size_t slot_end(hak_ctx *ctx, hk_guard_slot *slot)
{
    size_t pages =
        hk_align_up((size_t)(place_of(pool_of(ctx->space), slot) + HK_GUARD_MOST - slot->p), HK_PAGE);
    atomic_store_explicit(&slot->live, false, memory_order_release);
    pages_off(ctx->space, place_of(pool_of(ctx->space), slot) + HK_GUARD_MOST - pages, pages);
    return pages;
}

void hk_guard_free(hak_ctx *ctx, hk_guard_slot *slot)
{
    look_beside(ctx, slot);
    hk_count_out(ctx, slot->size, 1);
    hk_uncharge(ctx, slot_end(ctx, slot));
    slot_drop(ctx->space, pool_of(ctx->space), slot);
}

void hk_guard_end(hak_ctx *ctx)
{
    hk_guard *g = pool_of(ctx->space);
    for (size_t i = 0; g && i < g->count; i++) {
        hk_guard_slot *slot = &g->slots[i];
        if (atomic_load_explicit(&slot->ctx, memory_order_relaxed) != ctx) continue;
        if (atomic_load_explicit(&slot->live, memory_order_relaxed)) {
            hk_uncharge(ctx, slot_end(ctx, slot));
            slot_drop(ctx->space, g, slot);
        }
        atomic_store_explicit(&slot->ctx, NULL, memory_order_relaxed);
    }
}
