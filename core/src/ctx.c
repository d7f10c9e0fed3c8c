#include "ctx.h"

#include "big.h"
#include "bitmap.h"
#include "heap.h"
#include "label.h"
#include "packed.h"
#include "run.h"
#include "slab.h"
#include "stock.h"

_Static_assert(sizeof(hak_ctx) <= 1024, "20 blocks and their context fit two pages");

static bool are_none(const hk_bin *bins)
{
    return bins == hk_no_bins_fine.bins || bins == hk_no_bins_wide.bins;
}

void hk_bins_widen(hak_ctx *ctx)
{
    ctx->bins = (hk_bin *)(uintptr_t)hk_no_bins_wide.bins;
}

/* ---- Errors, limits ------------------------------------------------------------------------------ */

void hk_error(const hak_ctx *ctx, hak_error error, const void *p, const char *what)
{
    if (ctx->on_error) ctx->on_error(ctx->error_user, error, p, what);
    if (ctx->debug & HAK_DEBUG_ABORT) hk_os_abort();
}

const char *hak_error_name(hak_error error)
{
    /* Not a table of pointers: that would be writable data in position-independent code. */
    switch (error) {
    case HAK_OK:
        return "HAK_OK";
    case HAK_E_FOREIGN:
        return "HAK_E_FOREIGN";
    case HAK_E_DOUBLE_FREE:
        return "HAK_E_DOUBLE_FREE";
    case HAK_E_POINTER:
        return "HAK_E_POINTER";
    case HAK_E_SIZE:
        return "HAK_E_SIZE";
    case HAK_E_ALIGNMENT:
        return "HAK_E_ALIGNMENT";
    case HAK_E_OVERFLOW:
        return "HAK_E_OVERFLOW";
    case HAK_E_LABEL:
        return "HAK_E_LABEL";
    case HAK_E_USE_AFTER_FREE:
        return "HAK_E_USE_AFTER_FREE";
    case HAK_E_CORRUPT:
        return "HAK_E_CORRUPT";
    }
    return "unknown error";
}

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

const char *hak_version(void)
{
    return TEXT(HAK_VERSION_MAJOR) "." TEXT(HAK_VERSION_MINOR) "." TEXT(HAK_VERSION_PATCH);
}

void *hk_fail(hak_ctx *ctx)
{
    atomic_fetch_add_explicit(&ctx->failures, 1, memory_order_relaxed);
    return NULL;
}

HK_INLINE bool charge(hak_ctx *ctx, size_t n)
{
    size_t now = hk_get(&ctx->committed), hard = hk_get(&ctx->hard), soft = hk_get(&ctx->soft);
    if (hard && (now >= hard || n > hard - now)) return false;
    size_t before = 0;
    if (ctx->quota && !hk_quota_charge(ctx->quota, n, &before)) return false;
    hk_set(&ctx->committed, now + n);
    if (HK_UNLIKELY(ctx->role == HK_HEAP)) {
        soft = hk_get(&ctx->heap->root->soft);
        /* Whichever thread comes first tells it: this one may not come again. */
        if (soft && before < soft && before + n >= soft) atomic_store(&ctx->heap->root->team->pressure, true);
    } else if (soft && now < soft && now + n >= soft) {
        ctx->pressure = true;
    }
    return true;
}

bool hk_charge(hak_ctx *ctx, size_t n)
{
    if (HK_LIKELY(charge(ctx, n))) return true;
    return hk_big_purge(ctx) > 0 && charge(ctx, n);
}

void hk_uncharge(hak_ctx *ctx, size_t n)
{
    hk_sub(&ctx->committed, n);
    hk_quota_uncharge(ctx->quota, n);
}

void hk_refund(hak_ctx *ctx, size_t n)
{
    hk_sub(&ctx->committed, n);
    hk_quota_refund(ctx->quota, n);
}

void hk_pressure(hak_ctx *ctx)
{
    hak_ctx *root = hk_root(ctx);
    hk_team *t = root->team;
    ctx->pressure = false;
    if (t && !atomic_exchange(&t->pressure, false)) return;
    if (t) hk_lock_take(&t->lock);
    hak_pressure_fn *fn = root->on_pressure;
    void *user = root->pressure_user;
    if (t) hk_lock_drop(&t->lock);
    if (fn) fn(root, user, t ? atomic_load(&t->account.used) : hk_get(&ctx->committed), hk_get(&root->soft));
}

int hak_limit(hak_ctx *ctx, size_t soft, size_t hard, hak_pressure_fn *fn, void *user)
{
    ctx = hk_root(ctx);
    if (hard && soft > hard) return -1;
    if (ctx->team) hk_lock_take(&ctx->team->lock);
    hk_set(&ctx->soft, soft);
    hk_set(&ctx->hard, hard);
    if (ctx->team) atomic_store(&ctx->team->account.hard, hard);
    ctx->on_pressure = fn;
    ctx->pressure_user = user;
    ctx->pressure = false;
    if (ctx->team) atomic_store(&ctx->team->pressure, false);
    if (ctx->team) hk_lock_drop(&ctx->team->lock);
    return 0;
}

/* ---- Units --------------------------------------------------------------------------------------- */

uint32_t hk_kind_at(const hak_ctx *ctx, const void *p, hk_extent **e)
{
    *e = ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT < ctx->units ? ctx->extent : hk_extent_of(ctx->space, p);
    if (!*e) return UINT32_MAX;
    return hk_extent_entry(*e, p) ^ ctx->key;
}

size_t hk_label_bytes(unsigned kind, size_t units)
{
    if (kind >= HK_BINS) return 0;
    unsigned shift = kind < HK_SMALL_CLASSES ? hk_classes[kind].shift : HK_UNIT_SHIFT;
    return (units << HK_UNIT_SHIFT) >> shift;
}

/* What units of this kind cost beside their bytes. */
HK_INLINE size_t overhead(const hak_ctx *ctx, unsigned kind, size_t units)
{
    return units * HK_UNIT_META + hk_bitmap_bytes(kind) + (ctx->labelled ? hk_label_bytes(kind, units) : 0);
}

/* Metadata of the context's own are whole units. */
HK_INLINE size_t own_metadata(unsigned kind, size_t units)
{
    return kind == HK_KIND_META ? units << HK_UNIT_SHIFT : kind == HK_KIND_PACKED ? HK_PACKED_TABLES : 0;
}

HK_INLINE bool units_charge(hak_ctx *ctx, unsigned kind, size_t units)
{
    size_t beside = overhead(ctx, kind, units), n = (units << HK_UNIT_SHIFT) + beside;
    if (HK_UNLIKELY(!charge(ctx, n)) && !hk_charge(ctx, n)) return false;
    hk_add(&ctx->metadata, beside + own_metadata(kind, units));
    return true;
}

/* Takes out their metadata; returns what was charged for them. */
HK_INLINE size_t units_uncount(hak_ctx *ctx, unsigned kind, size_t units)
{
    size_t beside = overhead(ctx, kind, units);
    hk_sub(&ctx->metadata, beside + own_metadata(kind, units));
    return (units << HK_UNIT_SHIFT) + beside;
}

HK_INLINE void set_heads(hk_slab *s, size_t from, size_t units)
{
    for (size_t i = from; i < units; i++)
        (s - i)->head = (uint8_t)i;
}

/* A part of its units, a larger one where other heaps want the lock too. */
static size_t part_of_units(const hak_ctx *ctx)
{
    unsigned part_shift = ctx->role == HK_HEAP ? 2 : 5;
    return hk_get(&ctx->committed) >> (HK_UNIT_SHIFT + part_shift);
}

/* A context that grows takes single units by the handful, but where their label bytes say which. 0 = none. */
static hk_unit_id take_reserved(hak_ctx *ctx, uint32_t entry, bool *zero)
{
    enum { MOST = 16 };
    hk_reserve *r = &ctx->reserve;
    if (HK_UNLIKELY(hk_reserve_empty(r))) {
        size_t want = hk_min(part_of_units(ctx), MOST);
        if (want < 2 || ctx->labelled || ctx->space->lean) return 0;
        hk_space_reserve(ctx->space, ctx->extent, (unsigned)want, r);
        if (hk_reserve_empty(r)) return 0;
    }
    unsigned w = r->units[0] ? 0 : 1, bit = (unsigned)__builtin_ctzll(r->units[w]);
    r->units[w] &= r->units[w] - 1;
    hk_unit_id id = r->first + w * 64 + bit;
    hk_space_use(ctx->space, ctx->extent, id, entry & HK_KIND_MASK);
    hk_write(&ctx->extent->map[id - ctx->extent->first], entry);
    *zero = r->cold;
    return id;
}

/* For a slab whose label bytes should share pages with others. A small heap has few pages in any case. */
static hk_unit_id take_paged(hak_ctx *ctx, unsigned kind, hk_want want, bool *zero)
{
    if (!ctx->labelled || kind >= HK_SMALL_CLASSES || part_of_units(ctx) < 2) return 0;
    unsigned area = hk_classes[kind].area;
    if (area >= HK_PAGED_AREAS) return 0;
    return hk_space_take_paged(ctx->space, ctx->extent, area, ctx->key | kind, want,
                               hk_space_wants_huge(ctx->space, hk_get(&ctx->committed)), zero);
}

/* The bitmap of a slab that goes back. Free ones have no bit set: fresh blocks need no look at it. */
static void wipe(hak_ctx *ctx, const hk_slab *s)
{
    if (s->kind >= HK_SMALL_CLASSES || s->used == s->fresh) return;
    hk_extent *e = hk_extent_of_slab(ctx->space, s);
    memset(hk_slab_bits(e, s), 0, (s->fresh + 63u) / 64 * sizeof(uint64_t));
}

static void all_remove(hak_ctx *ctx, hk_slab *s)
{
    if (HK_UNLIKELY(ctx->role == HK_HEAP && ctx->heap->walk == hk_slab_id(ctx->space, s)))
        ctx->heap->walk = s->all_next;
    if (s->all_prev) hk_slab_at(ctx->space, s->all_prev)->all_next = s->all_next;
    else ctx->all = s->all_next;
    if (s->all_next) hk_slab_at(ctx->space, s->all_next)->all_prev = s->all_prev;
}

static void all_add(hak_ctx *ctx, hk_slab *s, hk_unit_id id)
{
    s->all_prev = 0;
    s->all_next = ctx->all;
    if (ctx->all) hk_slab_at(ctx->space, ctx->all)->all_prev = id;
    ctx->all = id;
}

hk_slab *hk_units_take_as(hak_ctx *ctx, size_t units, unsigned kind, hk_want want, bool *zero)
{
    if (!units_charge(ctx, kind, units)) return NULL;
    hak_space *space = ctx->space;
    if (HK_UNLIKELY(ctx->role == HK_HEAP) && kind != HK_KIND_META && want == HK_WANT_WARM &&
        (units > 1 || hk_reserve_empty(&ctx->reserve)) && hk_get(&space->idle_units) < units)
        hk_stock_recall(ctx);
    if (ctx->larger_kept && (units > 1 || hk_reserve_empty(&ctx->reserve)) &&
        hk_get(&space->idle_units) < units)
        hk_magazines_yield(ctx, units << HK_UNIT_SHIFT);
    hk_unit_id id = units == 1 && want == HK_WANT_WARM ? take_reserved(ctx, ctx->key | kind, zero) : 0;
    if (!id && units == 1) id = take_paged(ctx, kind, want, zero);
    /* What is set aside and resident may be part of a row that is wanted. */
    if (units > 1 && !ctx->reserve.cold) hk_space_unreserve(space, &ctx->reserve);
    if (!id)
        id = hk_space_take(space, ctx->extent, units, ctx->key | kind, want,
                           hk_space_wants_huge(space, hk_get(&ctx->committed)), zero);
    hk_slab *s = id ? hk_slab_at(space, id) : NULL;
    if (s) *s = (hk_slab){.bits = s->bits, .kind = (uint8_t)kind, .units = (uint8_t)units};
    if (s && ctx->labelled && kind < HK_BINS && hk_space_labels(space, id) != 0) {
        hk_space_give_slab(space, s, 0);
        s = NULL;
    }
    if (!s) {
        hk_refund(ctx, units_uncount(ctx, kind, units));
        return NULL;
    }
    if (*zero && ctx->cached) hk_big_yield(ctx, units << HK_UNIT_SHIFT);
    set_heads(s, 1, units);
    all_add(ctx, s, id);
    /* Somebody works with the heap of a thread that was taken for dead. */
    if (HK_UNLIKELY(ctx->role == HK_HEAP && !ctx->heap->thread_id)) hk_heap_renew(ctx);
    return s;
}

void hk_units_move(hak_ctx *from, hak_ctx *to, hk_slab *s)
{
    hk_extent *e = hk_extent_of_slab(from->space, s);
    size_t beside = overhead(from, s->kind, s->units), released = hk_slab_released(s);
    size_t committed = ((size_t)s->units << HK_UNIT_SHIFT) + beside;
    all_remove(from, s);
    all_add(to, s, hk_slab_id(to->space, s));
    for (unsigned i = 0; i < s->units; i++)
        hk_write(&e->map[hk_extent_unit(e, s) + i], to->key | s->kind);
    hk_sub(&from->committed, committed);
    hk_add(&to->committed, committed);
    hk_sub(&from->metadata, beside);
    hk_add(&to->metadata, beside);
    hk_sub(&from->released, released);
    hk_add(&to->released, released);
}

void hk_units_give(hak_ctx *ctx, hk_slab *s)
{
    all_remove(ctx, s);
    hk_bin *bin = s->kind < HK_SMALL_CLASSES ? hk_bin_of(ctx, s->kind) : NULL;
    if (bin && bin->heat > 1) bin->heat--;
    size_t holes = hk_slab_released(s);
    wipe(ctx, s);
    hk_sub(&ctx->released, holes);
    s->released = 0;
    hk_uncharge(ctx, units_uncount(ctx, s->kind, s->units));
    ctx->gave = true;
    hk_space_give_slab(ctx->space, s, holes);
}

void hk_units_shorten(hak_ctx *ctx, hk_slab *s, size_t units)
{
    size_t less = s->units - units;
    s->units = (uint8_t)units;
    hk_uncharge(ctx, units_uncount(ctx, s->kind, less));
    hk_space_give(ctx->space, hk_slab_id(ctx->space, s) + (uint32_t)units, less);
}

bool hk_units_lengthen(hak_ctx *ctx, hk_slab *s, size_t units)
{
    size_t more = units - s->units;
    if (!units_charge(ctx, s->kind, more)) return false;
    if (!hk_space_extend(ctx->space, hk_slab_id(ctx->space, s), s->units, more, ctx->key | s->kind)) {
        hk_refund(ctx, units_uncount(ctx, s->kind, more));
        return false;
    }
    set_heads(s, s->units, units);
    s->units = (uint8_t)units;
    return true;
}

/* Bins of blocks up to 256 bytes share a page with the first few magazines: a small heap touches that one.
 * What is behind the bins shares no page with those of blocks above 2 KiB. */
enum {
    BINS_AT = HK_PAGE / 2,
    TABLE_AT = BINS_AT - HK_BINS_TABLE,
    NOT_FIRST = 64, /* bytes: see hak_ctx */
    BEHIND_BINS = (BINS_AT + sizeof(hk_bin) * HK_BINS + HK_PAGE - 1) & ~(HK_PAGE - 1)
};
_Static_assert((size_t)BEHIND_BINS < HK_UNIT, "bins fit into a unit");

static bool meta_room(const hak_ctx *ctx, size_t n)
{
    return (size_t)(ctx->meta_end - ctx->meta) >= n;
}

void *hk_meta_alloc(hak_ctx *ctx, size_t n)
{
    n = hk_align_up(n, 16);
    if (!meta_room(ctx, n) && !hk_bins_make(ctx)) return NULL;
    if (!meta_room(ctx, n) && ctx->meta_end == (char *)ctx->bins - HK_BINS_TABLE) {
        char *unit = (char *)ctx->bins - BINS_AT;
        ctx->meta = unit + BEHIND_BINS + NOT_FIRST;
        ctx->meta_end = unit + HK_UNIT;
    }
    if (!meta_room(ctx, n)) {
        bool zero;
        hk_slab *s = hk_units_take(ctx, 1, HK_KIND_META, &zero);
        if (!s) return NULL;
        char *unit = hk_slab_address(ctx->space, s);
        ctx->meta = unit + NOT_FIRST;
        ctx->meta_end = unit + HK_UNIT;
    }
    void *p = ctx->meta;
    ctx->meta += n;
    return p;
}

bool hk_bins_make(hak_ctx *ctx)
{
    if (!are_none(ctx->bins)) return true;
    bool zero;
    hk_slab *s = hk_units_take(ctx, 1, HK_KIND_META, &zero);
    if (!s) return false;
    char *unit = hk_slab_address(ctx->space, s);
    memcpy(unit + TABLE_AT, (const char *)ctx->bins - HK_BINS_TABLE, HK_BINS_TABLE);
    ctx->bins = (hk_bin *)(void *)(unit + BINS_AT);
    if (!zero) memset(ctx->bins, 0, sizeof(hk_bin) * HK_BINS);
    if (!meta_room(ctx, TABLE_AT - NOT_FIRST)) {
        ctx->meta = unit + NOT_FIRST;
        ctx->meta_end = unit + TABLE_AT;
    }
    return true;
}

void hk_magazines_sum(const hak_ctx *ctx, size_t *bytes, size_t *blocks)
{
    *bytes = *blocks = 0;
    const hk_bin *bins = ctx->bins;
    if (are_none(bins)) return;
    for (unsigned kind = 0; kind < HK_BINS; kind++) {
        const hk_bin *bin = &bins[kind];
        size_t n = (size_t)(bin->top - bin->lo);
        /* Another thread's magazine, seen between two stores. */
        if (HK_UNLIKELY(n > UINT8_MAX)) n = 0;
        *bytes += n * hk_kind_size(kind);
        *blocks += n;
    }
}

/* Contexts with a quota are listed in their space, so that its end can settle their accounts. */
static void charged_add(hak_ctx *ctx)
{
    hak_space *s = ctx->space;
    if (!ctx->quota) return;
    hk_lock_take(&s->lock);
    ctx->charged_next = s->charged;
    if (s->charged) s->charged->charged_prev = ctx;
    s->charged = ctx;
    hk_lock_drop(&s->lock);
}

static void charged_remove(hak_ctx *ctx)
{
    hak_space *s = ctx->space;
    if (!ctx->quota) return;
    hk_lock_take(&s->lock);
    if (ctx->charged_prev) ctx->charged_prev->charged_next = ctx->charged_next;
    else s->charged = ctx->charged_next;
    if (ctx->charged_next) ctx->charged_next->charged_prev = ctx->charged_prev;
    hk_lock_drop(&s->lock);
    hk_quota_uncharge(ctx->quota, hk_get(&ctx->committed));
}

/* ---- Life ---------------------------------------------------------------------------------------- */

const char *hak_options_error(const hak_options *o)
{
    if (!o) return NULL;
    if (o->size != sizeof *o) return "hak_options.size is not sizeof(hak_options)";
    if (o->debug & ~(unsigned)(HAK_DEBUG_CHECK | HAK_DEBUG_POISON | HAK_DEBUG_ABORT))
        return "debug: HAK_DEBUG_* only";
    if (o->magazine > 128) return "magazine: 0 (default), 1 (none), or 2 to 128";
    if (o->magazine_most > HK_RUN_MAX) return "magazine_most: up to 1 MiB";
    if (o->packed_bytes != HAK_NONE && o->packed_bytes > HK_PACKED_UNITS * HK_UNIT)
        return "packed_bytes: HAK_NONE, or up to 512 KiB";
    if (o->phase % 16 || o->phase > 48) return "phase: 0, 16, 32 or 48";
    if (o->label_count > HAK_LABELS_MAX) return "label_count: at most HAK_LABELS_MAX";
    if (o->label_count && !o->labels) return "label_count without labels";
    for (size_t i = 0; i < o->label_count; i++)
        if (!o->labels[i]) return "labels: a name is NULL";
    return NULL;
}

const char *hak_ctx_name(const hak_ctx *ctx)
{
    return ctx->name;
}

static void set_options(hak_ctx *ctx, const hak_options *o)
{
    ctx->name = o->name ? o->name : "";
    ctx->given_names = o->labels;
    ctx->given_count = (uint16_t)o->label_count;
    ctx->label_count = (uint32_t)o->label_count;
    ctx->labelled = o->label_count > 0;
    ctx->on_error = o->on_error;
    ctx->error_user = o->error_user;
    ctx->debug = (uint8_t)(o->debug & HAK_DEBUG_POISON ? o->debug | HAK_DEBUG_CHECK : o->debug);
    /* A check sees each call. */
    ctx->magazine = (uint8_t)(ctx->debug || o->magazine == 1 ? 0 : o->magazine ? o->magazine : 32);
    ctx->magazine_most = (uint32_t)(o->magazine_most ? o->magazine_most : HK_RUN_MAX);
    ctx->big_cache = o->big_cache == HAK_NONE ? 0 : o->big_cache ? o->big_cache : (size_t)16 << 20;
    size_t packed = o->packed_bytes == HAK_NONE ? 0 : o->packed_bytes ? o->packed_bytes : (size_t)96 << 10;
    ctx->phase = (uint8_t)o->phase;
    ctx->counted = o->counted;
    ctx->packed_nursery = ctx->phase ? 0 : (uint8_t)((packed + HK_UNIT - 1) >> HK_UNIT_SHIFT);
}

hak_ctx *hk_ctx_new(hak_space *space, const hak_options *o, size_t more)
{
    static const hak_options defaults = HAK_OPTIONS_INIT;
    if (hak_options_error(o)) return NULL;
    if (!o) o = &defaults;
    hak_space *own = NULL;
    if (!space) {
        /* A space of one context: less address space, so that thousands of them fit. */
        hak_space_options small = HAK_SPACE_OPTIONS_INIT;
        small.reserve = (size_t)4 << 30;
        space = own = hak_space_new(&small);
        if (!space) return NULL;
    }
    bool zero;
    hk_unit_id id = 0;
    size_t ignored;
    if (hk_quota_charge(o->quota, HK_UNIT + HK_UNIT_META, &ignored)) {
        id = hk_space_take(space, NULL, 1, HK_KIND_META, HK_WANT_WARM, false, &zero);
        if (!id || id >> HK_ID_BITS) {
            if (id) hk_space_give(space, id, 1);
            hk_quota_uncharge(o->quota, HK_UNIT + HK_UNIT_META);
            id = 0;
        }
    }
    if (!id) {
        hak_space_delete(own);
        return NULL;
    }
    hk_extent *e = hk_extent_of_id(space, id);
    hak_ctx *ctx = (hak_ctx *)(void *)hk_extent_address(e, id);
    size_t head = hk_align_up(sizeof *ctx, 64) + hk_align_up(more, 64);
    if (!zero) memset(ctx, 0, head);
    ctx->head = (uint16_t)head;
    ctx->space = space;
    ctx->own_space = own != NULL;
    ctx->extent = e;
    ctx->base = e->base;
    ctx->units = e->units;
    ctx->map = e->map;
    ctx->id = id;
    ctx->key = id << 8;
    ctx->bins = (hk_bin *)(uintptr_t)hk_no_bins_fine.bins;
    ctx->quota = o->quota;
    set_options(ctx, o);
    hk_set(&ctx->committed, HK_UNIT + HK_UNIT_META);
    ctx->checked = ctx->debug & HAK_DEBUG_CHECK;
    bool packed = ctx->packed_nursery && !(ctx->debug & HAK_DEBUG_CHECK) && !o->shared;
    hk_set(&ctx->metadata, HK_UNIT_META + (packed ? head + HK_PACKED_TABLES : HK_UNIT));
    hk_write(&e->map[id - e->first], ctx->key | (packed ? HK_KIND_PACKED : HK_KIND_META));
    if (packed) {
        hk_packed_init(ctx);
    } else {
        ctx->meta = (char *)ctx + ctx->head;
        ctx->meta_end = (char *)ctx + HK_UNIT;
    }
    if (o->shared) hk_team_make(ctx, o);
    charged_add(ctx);
    return ctx;
}

hak_ctx *hak_ctx_new(hak_space *space, const hak_options *o)
{
    return hk_ctx_new(space, o, o && o->shared ? sizeof(hk_team) : 0);
}

void hak_ctx_destroy(hak_ctx *ctx)
{
    if (!ctx) return;
    hak_space *space = ctx->space;
    if (ctx->role == HK_ROOT) hk_team_destroy(ctx);
    hk_big_destroy(ctx);
    charged_remove(ctx);
    if (ctx->own_space) {
        hak_space_delete(space);
        return;
    }
    HK_EACH_OWNED(ctx, s)
    {
        wipe(ctx, s);
    }
    hk_space_unreserve(space, &ctx->reserve);
    hk_unit_id all = ctx->all;
    hk_space_give(space, ctx->id, 1);
    hk_space_give_all(space, all);
}

void hak_space_delete(hak_space *space)
{
    if (!space) return;
    while (space->charged)
        charged_remove(space->charged);
    hk_big_unmap_all(space);
    hak_os os = space->os;
    hk_extent first = space->extent;
    for (uint32_t i = space->extents - 1; i > 0; i--) {
        hk_extent *e = hk_extent_number(space, i);
        os.release(os.user, e->reserved, e->reserved_size);
    }
    if (first.owned) os.release(os.user, first.reserved, first.reserved_size);
}

void hk_retire_check(hak_ctx *ctx)
{
    if (hk_get(&ctx->live_blocks) == 0) hak_ctx_destroy(ctx);
}

void hak_ctx_retire(hak_ctx *ctx)
{
    if (!ctx) return;
    if (ctx->role == HK_ROOT) {
        hk_team_retire(ctx);
        if (hk_team_empty(ctx)) hak_ctx_destroy(ctx);
        return;
    }
    hak_ctx_flush(ctx);
    ctx->retired = ctx->checked = true;
    ctx->packed_quick = false;
    /* Closed magazines send every call to the slow paths, which know. */
    if (!are_none(ctx->bins)) {
        for (unsigned kind = 0; kind < HK_BINS; kind++) {
            hk_bin *bin = &ctx->bins[kind];
            bin->cap = 0;
            bin->hi = bin->slots;
        }
    }
    hk_retire_check(ctx);
}
