#include "heap/units.h"

#include "heap/big_cache.h"
#include "space/bitmap.h"

uint32_t hk_kind_at(const hak_ctx *ctx, const void *p, hk_extent **e)
{
    size_t window = __atomic_load_n(&ctx->units, __ATOMIC_RELAXED); /* of another thread, perhaps */
    *e = ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT < window ? ctx->extent : hk_extent_of(ctx->space, p);
    if (!*e) return UINT32_MAX;
    uint32_t kind = hk_extent_entry(*e, p) ^ ctx->key;
    return HK_LIKELY(kind != HK_KIND_WATCHED) ? kind : hk_kind_watched(ctx->owned.id, *e, p);
}

HK_RACY uint32_t hk_kind_watched(hk_unit_id owner, const hk_extent *e, const void *p)
{
    size_t unit = ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT;
    /* The context's first unit, with what is packed behind it, has no record. */
    if (e->first + unit == owner) return HK_KIND_PACKED;
    const hk_slab *s = hk_extent_slab(e, unit);
    return (s + s->head)->kind;
}

void hk_unit_watch(const hak_ctx *ctx, const void *p, bool watch)
{
    const hk_extent *e = hk_extent_of(ctx->space, p);
    if (!e) return;
    uint32_t *entry = &e->map[((uintptr_t)p - e->base) >> HK_UNIT_SHIFT], was = hk_read(entry), is;
    /* The unit may move to another heap meanwhile. */
    do {
        if (((was & HK_KIND_MASK) == HK_KIND_WATCHED) == watch || !was) return;
        if (!ctx->role && was >> 8 != ctx->owned.id) return;
        is = (was & ~(uint32_t)HK_KIND_MASK) | (watch ? HK_KIND_WATCHED : hk_kind_watched(was >> 8, e, p));
    } while (!__atomic_compare_exchange_n(entry, &was, is, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

size_t hk_label_bytes(unsigned kind, size_t units)
{
    return hk_has_labels(kind) ? (units << HK_UNIT_SHIFT) >> hk_area_shift[hk_area_of(kind)] : 0;
}

bool hk_reclaim_charge(hak_ctx *ctx, size_t n)
{
    if (HK_LIKELY(hk_charge(ctx, n))) return true;
    return hk_big_purge(ctx) > 0 && hk_charge(ctx, n);
}

/* What units of this kind cost beside their bytes. */
HK_INLINE size_t overhead(const hak_ctx *ctx, unsigned kind, size_t units)
{
    return units * HK_UNIT_META + hk_bitmap_bytes(kind) + (ctx->labels.on ? hk_label_bytes(kind, units) : 0);
}

/* The context's own data takes whole units. */
HK_INLINE size_t own_metadata(unsigned kind, size_t units)
{
    return kind == HK_KIND_META     ? units << HK_UNIT_SHIFT
           : kind == HK_KIND_PACKED ? 2 * HK_BESIDE + HK_PACKED_HEAD + units * HK_PACKED_TABLES
                                    : 0;
}

bool hk_units_charge(hak_ctx *ctx, unsigned kind, size_t units)
{
    size_t beside = overhead(ctx, kind, units), n = (units << HK_UNIT_SHIFT) + beside;
    if (!hk_reclaim_charge(ctx, n)) return false;
    hk_add(&ctx->account.metadata, beside + own_metadata(kind, units));
    return true;
}

/* Takes out their metadata; returns what was charged for them. */
HK_INLINE size_t units_uncount(hak_ctx *ctx, unsigned kind, size_t units)
{
    size_t beside = overhead(ctx, kind, units);
    HK_ASSERT(hk_get(&ctx->account.metadata) >= beside + own_metadata(kind, units));
    hk_sub(&ctx->account.metadata, beside + own_metadata(kind, units));
    return (units << HK_UNIT_SHIFT) + beside;
}

#ifdef HAKMEM_ASSERT
size_t hk_units_charged(hak_ctx *ctx)
{
    size_t sum = HK_UNIT + HK_UNIT_META;
    if (ctx->packed.units && ctx->labels.on) sum += hk_label_bytes(HK_KIND_PACKED, 1);
    HK_EACH_OWNED(ctx, s)
    {
        const char *head = hk_slab_address(ctx->space, s) + HK_BESIDE;
        sum += ((size_t)s->units << HK_UNIT_SHIFT) + overhead(ctx, s->kind, s->units);
        if (s->kind == HK_KIND_PACKED) sum -= hk_packed_lacks((const hk_packed_head *)(const void *)head);
    }
    return sum;
}
#endif

HK_INLINE void set_heads(hk_slab *s, size_t from, size_t units)
{
    for (size_t i = from; i < units; i++)
        (s - i)->head = (uint8_t)i;
}

/* How many units it sets aside: a share of its own, larger in a heap, because other heaps want the lock
 * too. */
static size_t part_of_units(const hak_ctx *ctx)
{
    unsigned part_shift = ctx->role == HK_HEAP ? 2 : 5;
    return hk_get(&ctx->account.committed) >> (HK_UNIT_SHIFT + part_shift);
}

/* Takes a single unit of those set aside. Contexts whose label bytes decide which units they take set none
 * aside. 0 = none. */
static hk_unit_id take_aside(hak_ctx *ctx, uint32_t entry, bool *zero)
{
    hk_aside *r = &ctx->owned.aside;
    if (HK_UNLIKELY(hk_aside_empty(r))) {
        size_t want = hk_min(part_of_units(ctx), r->most);
        if (want < 2 || ctx->labels.on) return 0;
        hk_space_set_aside(ctx->space, ctx->extent, (unsigned)want, r);
        if (hk_aside_empty(r)) return 0;
    }
    unsigned w = r->units[0] ? 0 : 1, bit = (unsigned)__builtin_ctzll(r->units[w]);
    r->units[w] &= r->units[w] - 1;
    hk_unit_id id = r->first + w * 64 + bit;
    hk_space_use(ctx->space, ctx->extent, id, entry & HK_KIND_MASK);
    HK_ASSERT(hk_read(&ctx->extent->map[id - ctx->extent->first]) == 0);
    hk_write(&ctx->extent->map[id - ctx->extent->first], entry);
    *zero = r->clean;
    return id;
}

/* Takes a unit where its label bytes share a page with others. Not for small heaps, which have few pages in
 * any case. */
static hk_unit_id take_in_page(hak_ctx *ctx, unsigned kind, hk_want want, bool *zero)
{
    if (!ctx->labels.on || kind >= HK_SMALL_CLASSES || part_of_units(ctx) < 2) return 0;
    unsigned area = hk_classes[kind].area;
    if (area >= HK_PAGED_AREAS) return 0;
    return hk_space_take_paged(ctx->space, ctx->extent, area, ctx->key | kind, want, hk_expected(ctx), zero);
}

/* The bitmap of a slab that goes back. Free ones have no bit set: fresh blocks need no look at it. */
void hk_slab_wipe(hak_ctx *ctx, const hk_slab *s)
{
    if (s->kind >= HK_SMALL_CLASSES || s->used == s->fresh) return;
    hk_extent *e = hk_extent_of_slab(ctx->space, s);
    memset(hk_slab_bits(e, s), 0, (s->fresh + 63u) / 64 * sizeof(uint64_t));
}

static void all_remove(hak_ctx *ctx, hk_slab *s)
{
    HK_ASSERT(hk_slab_id(ctx->space, s) ==
              (s->all_prev ? hk_slab_at(ctx->space, s->all_prev)->all_next : ctx->owned.all));
    HK_ASSERT(!s->all_next || hk_slab_at(ctx->space, s->all_next)->all_prev == hk_slab_id(ctx->space, s));
    if (HK_UNLIKELY(ctx->role == HK_HEAP && ctx->member->walk == hk_slab_id(ctx->space, s)))
        ctx->member->walk = s->all_next;
    if (s->all_prev) hk_slab_at(ctx->space, s->all_prev)->all_next = s->all_next;
    else ctx->owned.all = s->all_next;
    if (s->all_next) hk_slab_at(ctx->space, s->all_next)->all_prev = s->all_prev;
}

static void all_add(hak_ctx *ctx, hk_slab *s, hk_unit_id id)
{
    HK_ASSERT(id && id != ctx->owned.id && id != ctx->owned.all);
    s->all_prev = 0;
    s->all_next = ctx->owned.all;
    if (ctx->owned.all) hk_slab_at(ctx->space, ctx->owned.all)->all_prev = id;
    ctx->owned.all = id;
}

/* The record of units that were taken, which have room for their label bytes. NULL = they have none, and went
 * back. */
HK_INLINE hk_slab *record(hak_ctx *ctx, hk_unit_id id, size_t units, unsigned kind)
{
    hk_slab *s = hk_slab_at(ctx->space, id);
    *s = (hk_slab){.bits = s->bits, .kind = (uint8_t)kind, .units = (uint8_t)units};
    if (!ctx->labels.on || !hk_has_labels(kind) || hk_space_labels(ctx->space, id, kind, units) == 0)
        return s;
    hk_space_give_slab(ctx->space, s, 0);
    return NULL;
}

/* `lacks` bytes of them are not charged. */
HK_INLINE hk_slab *take_charged(hak_ctx *ctx, size_t units, unsigned kind, hk_want want, size_t lacks,
                                bool *zero)
{
    hak_space *space = ctx->space;
    hk_unit_id id = units == 1 && want == HK_WANT_DIRTY ? take_aside(ctx, ctx->key | kind, zero) : 0;
    if (!id && units == 1) id = take_in_page(ctx, kind, want, zero);
    /* Units that are set aside and resident may be part of a row that is wanted. */
    if (units > 1 && !ctx->owned.aside.clean) hk_space_take_back(space, &ctx->owned.aside);
    if (!id) id = hk_space_take(space, ctx->extent, units, ctx->key | kind, want, hk_expected(ctx), zero);
    hk_widen(ctx);
    hk_slab *s = id ? record(ctx, id, units, kind) : NULL;
    if (HK_UNLIKELY(id && !s && !hk_extent_of_id(space, id)->owned)) {
        id = hk_space_take_owned(space, ctx->extent, units, ctx->key | kind, hk_expected(ctx), zero);
        s = id ? record(ctx, id, units, kind) : NULL;
    }
    if (!s) {
        hk_refund(ctx, units_uncount(ctx, kind, units) - lacks);
        return NULL;
    }
    set_heads(s, 1, units);
    all_add(ctx, s, id);
    return s;
}

hk_slab *hk_units_take_charged(hak_ctx *ctx, size_t units, unsigned kind, hk_want want, bool *zero)
{
    hk_slab *s = take_charged(ctx, units, kind, want, 0, zero);
    if (s && *zero && (ctx->big.cached || ctx->big.room))
        hk_big_yield(ctx, units << HK_UNIT_SHIFT, hk_space_peaks(ctx->space, 1));
    return s;
}

hk_slab *hk_units_take_own(hak_ctx *ctx, size_t units, bool *zero)
{
    if (!hk_units_charge(ctx, HK_KIND_META, units)) return NULL;
    return hk_units_take_charged(ctx, units, HK_KIND_META, HK_WANT_DIRTY, zero);
}

/* What is not charged should not be resident. */
static void lose_end(hak_ctx *ctx, hk_slab *s, size_t lacks)
{
    size_t from = ((size_t)s->units << HK_UNIT_SHIFT) - lacks;
    unsigned parts = s->units * (unsigned)(HK_UNIT / HK_PAGE), kept = (unsigned)(from / HK_PAGE);
    s->released = (uint16_t)((1u << parts) - (1u << kept));
    hk_space_decommit(ctx->space, hk_slab_address(ctx->space, s) + from, lacks);
}

static hk_slab *take_lacking(hak_ctx *ctx, size_t units, size_t lacks, unsigned kind, bool *zero)
{
    size_t beside = overhead(ctx, kind, units);
    if (!hk_charge(ctx, (units << HK_UNIT_SHIFT) - lacks + beside)) return NULL;
    hk_add(&ctx->account.metadata, beside + own_metadata(kind, units));
    return take_charged(ctx, units, kind, HK_WANT_DIRTY, lacks, zero);
}

hk_slab *hk_units_take_part(hak_ctx *ctx, size_t units, size_t lacks, unsigned kind)
{
    bool zero;
    hk_slab *s = take_lacking(ctx, units, lacks, kind, &zero);
    if (s && !zero && hk_extent_of_slab(ctx->space, s)->owned) lose_end(ctx, s, lacks);
    return s;
}

/* A bit for each page. */
static uint16_t pages(size_t from, size_t n)
{
    return (uint16_t)((1u << (from + n) / HK_PAGE) - (1u << from / HK_PAGE));
}

void hk_units_leave_pages(hak_ctx *ctx, hk_slab *s, size_t from, size_t n)
{
    HK_ASSERT(s->units <= 4 && from + n <= (size_t)s->units << HK_UNIT_SHIFT &&
              !(s->released & pages(from, n)));
    hk_space_decommit(ctx->space, hk_slab_address(ctx->space, s) + from, n);
    s->released = (uint16_t)(s->released | pages(from, n));
}

bool hk_units_regain_pages(hak_ctx *ctx, hk_slab *s, size_t from, size_t n)
{
    if (!hk_charge(ctx, n)) return false;
    bool owned = hk_extent_of_slab(ctx->space, s)->owned;
    if (owned && hk_space_commit(ctx->space, hk_slab_address(ctx->space, s) + from, n) != 0) {
        hk_refund(ctx, n);
        return false;
    }
    s->released = (uint16_t)(s->released & ~pages(from, n));
    return true;
}

/* The owner may cease to watch the unit meanwhile. */
static void change_owner(uint32_t *entry, uint32_t key)
{
    uint32_t was = hk_read(entry);
    while (!__atomic_compare_exchange_n(entry, &was, key | (was & HK_KIND_MASK), true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
    }
}

void hk_units_move(hak_ctx *from, hak_ctx *to, hk_slab *s)
{
    hk_extent *e = hk_extent_of_slab(from->space, s);
    size_t beside = overhead(from, s->kind, s->units), released = hk_slab_released(s);
    size_t committed = ((size_t)s->units << HK_UNIT_SHIFT) + beside;
    HK_ASSERT(from != to && from->whole == to->whole && s->kind < HK_BINS);
    HK_ASSERT(hk_get(&from->account.committed) >= committed && hk_get(&from->account.released) >= released);
    hk_widen(to);
    all_remove(from, s);
    all_add(to, s, hk_slab_id(to->space, s));
    for (unsigned i = 0; i < s->units; i++)
        change_owner(&e->map[hk_extent_unit(e, s) + i], to->key);
    hk_sub(&from->account.committed, committed);
    hk_add(&to->account.committed, committed);
    hk_sub(&from->account.metadata, beside);
    hk_add(&to->account.metadata, beside);
    hk_sub(&from->account.released, released);
    hk_add(&to->account.released, released);
}

HK_INLINE void give_units(hak_ctx *ctx, hk_slab *s, size_t lacks)
{
    all_remove(ctx, s);
    hk_bin *bin = s->kind < HK_SMALL_CLASSES ? hk_bin_of(ctx, s->kind) : NULL;
    if (bin && bin->heat > 1) bin->heat--;
    size_t holes = hk_slab_released(s);
    HK_ASSERT(s->used == 0 && s->head == 0 && s->units > 0);
    HK_ASSERT(hk_read(&hk_extent_of_slab(ctx->space, s)
                           ->map[hk_slab_id(ctx->space, s) - hk_extent_of_slab(ctx->space, s)->first]) >>
                  8 ==
              ctx->owned.id);
    HK_ASSERT(hk_get(&ctx->account.released) >= holes);
    hk_slab_wipe(ctx, s);
    hk_sub(&ctx->account.released, holes);
    s->released = 0;
    hk_uncharge(ctx, units_uncount(ctx, s->kind, s->units) - lacks);
    ctx->account.shrank = true;
    hk_space_give_slab(ctx->space, s, holes);
}

void hk_units_give(hak_ctx *ctx, hk_slab *s)
{
    give_units(ctx, s, 0);
}

void hk_units_give_part(hak_ctx *ctx, hk_slab *s, size_t lacks)
{
    hk_add(&ctx->account.released, hk_slab_released(s)); /* it was not among what is charged */
    give_units(ctx, s, lacks);
}

hk_slab *hk_units_take_ahead(hak_ctx *ctx, size_t units, size_t lacks, unsigned kind)
{
    bool zero;
    return take_lacking(ctx, units, lacks, kind, &zero);
}

void hk_units_hand_over(hak_ctx *ctx, hk_slab *s)
{
    s->units--;
    hk_uncharge(ctx, units_uncount(ctx, s->kind, 1) - HK_UNIT);
    hk_space_give(ctx->space, hk_slab_id(ctx->space, s) + s->units, 1);
}

void hk_units_shorten(hak_ctx *ctx, hk_slab *s, size_t units)
{
    size_t less = s->units - units;
    HK_ASSERT(s->kind >= HK_SMALL_CLASSES && units > 0 && units < s->units);
    s->units = (uint8_t)units;
    hk_uncharge(ctx, units_uncount(ctx, s->kind, less));
    hk_space_give(ctx->space, hk_slab_id(ctx->space, s) + (uint32_t)units, less);
}

bool hk_units_lengthen(hak_ctx *ctx, hk_slab *s, size_t units)
{
    size_t more = units - s->units;
    HK_ASSERT(s->kind >= HK_SMALL_CLASSES && units > s->units && units <= HK_CHUNK_UNITS);
    if (!hk_units_charge(ctx, s->kind, more)) return false;
    if (!hk_space_extend(ctx->space, hk_slab_id(ctx->space, s), s->units, more, ctx->key | s->kind)) {
        hk_refund(ctx, units_uncount(ctx, s->kind, more));
        return false;
    }
    set_heads(s, s->units, units);
    s->units = (uint8_t)units;
    return true;
}
