#include "packed.h"

#include "heap.h"
#include "label.h"

/* COLD_UNITS: further ones, for what is still cold when the first bytes are used up. */
enum { GRANULE_SHIFT = 3, FREED = 3, BITS = 256, OPEN_MAX = 1024, SIZE_MOST = 8256, COLD_UNITS = 2 };

/* Where the tables of a packed unit begin: behind the context in its first unit. */
static size_t head_of(const hak_ctx *ctx, const char *unit)
{
    return (const char *)ctx == unit ? ctx->head : 0;
}

static char *unit_of(const void *p)
{
    return (char *)((uintptr_t)p & ~(uintptr_t)(HK_UNIT - 1));
}

static uint64_t *starts_of(const hak_ctx *ctx, char *unit)
{
    return (uint64_t *)(void *)(unit + head_of(ctx, unit));
}

static uint8_t *labels_of(const hak_ctx *ctx, char *unit)
{
    return (uint8_t *)unit + head_of(ctx, unit) + BITS;
}

HK_INLINE void mark_start(uint64_t *starts, size_t offset)
{
    size_t g = offset >> GRANULE_SHIFT;
    starts[g / 64] |= UINT64_C(1) << (g % 64);
}

HK_RACY static bool is_start(const uint64_t *starts, size_t offset)
{
    size_t g = offset >> GRANULE_SHIFT;
    return offset % 8 == 0 && (starts[g / 64] >> (g % 64) & 1);
}

/* Offset of the first start behind the one at `offset`, the region apart. */
HK_RACY static size_t next_marked(const uint64_t *starts, size_t offset)
{
    size_t g = (offset >> GRANULE_SHIFT) + 1;
    if (g >= HK_UNIT >> GRANULE_SHIFT) return HK_UNIT;
    uint64_t w = starts[g / 64] >> (g % 64);
    if (w) return (g + (unsigned)__builtin_ctzll(w)) << GRANULE_SHIFT;
    for (size_t i = g / 64 + 1; i < BITS / 8; i++)
        if (starts[i]) return (i * 64 + (unsigned)__builtin_ctzll(starts[i])) << GRANULE_SHIFT;
    return HK_UNIT;
}

/* The same, where the region may begin behind the block: its start is not marked. Also for a live block of
 * another thread's heap: whoever reads the region's start first sees the marks of what was cut before. */
static size_t next_start(const hak_ctx *ctx, char *unit, size_t offset)
{
    size_t region = (size_t)(__atomic_load_n(&ctx->packed_at, __ATOMIC_ACQUIRE) - unit);
    size_t next = next_marked(starts_of(ctx, unit), offset);
    return offset < region && region < next ? region : next;
}

static char *packed_unit(const hak_ctx *ctx, unsigned i)
{
    return (char *)(uintptr_t)ctx + ((ptrdiff_t)ctx->packed[i] * (ptrdiff_t)HK_UNIT);
}

/* Free lists link through the first two bytes of a block: number of the unit and granule in it. */
static char *decode(const hak_ctx *ctx, uint16_t code)
{
    return packed_unit(ctx, code >> 11) + ((size_t)(code & 2047) << GRANULE_SHIFT);
}

static uint16_t encode(const hak_ctx *ctx, const char *p)
{
    unsigned i = ctx->packed_count - 1u;
    while (packed_unit(ctx, i) != unit_of(p))
        i--;
    return (uint16_t)(i << 11 | ((uintptr_t)p & (HK_UNIT - 1)) >> GRANULE_SHIFT);
}

static bool warm_up(hak_ctx *ctx, unsigned class, size_t by)
{
    size_t heat = ctx->packed_heat[class] + by;
    ctx->packed_heat[class] = (uint8_t)hk_min(heat, 255);
    return heat >= HK_PACKED_HOT;
}

static size_t size_at(const hak_ctx *ctx, const char *p)
{
    size_t offset = (uintptr_t)p & (HK_UNIT - 1);
    return next_start(ctx, unit_of(p), offset) - offset;
}

/* A free block goes to the list of the largest class that fits into it. */
static void push(hak_ctx *ctx, char *p, size_t size)
{
    unsigned class = hk_class_of(size);
    if (hk_classes[class].size > size) class --;
    if (class >= HK_PACKED_CLASSES) class = HK_PACKED_CLASSES - 1;
    memcpy(p, &ctx->packed_free[class], sizeof(uint16_t));
    ctx->packed_free[class] = encode(ctx, p);
    ctx->packed_some[class / 64] |= UINT64_C(1) << (class % 64);
}

static char *pop(hak_ctx *ctx, unsigned class)
{
    char *p = decode(ctx, ctx->packed_free[class]);
    memcpy(&ctx->packed_free[class], p, sizeof(uint16_t));
    if (!ctx->packed_free[class]) ctx->packed_some[class / 64] &= ~(UINT64_C(1) << (class % 64));
    return p;
}

static void mark_free(hak_ctx *ctx, char *p)
{
    mark_start(starts_of(ctx, unit_of(p)), (uintptr_t)p & (HK_UNIT - 1));
    *hk_packed_label(ctx, p) = HK_PACKED_FREE;
}

static void region_set(hak_ctx *ctx, char *from, char *to)
{
    __atomic_store_n(&ctx->packed_at, from, __ATOMIC_RELEASE);
    ctx->packed_end = to;
    ctx->packed_starts = starts_of(ctx, unit_of(from));
    ctx->packed_labels = labels_of(ctx, unit_of(from));
}

static void add_free(hak_ctx *ctx, char *p, size_t size)
{
    mark_free(ctx, p);
    push(ctx, p, size);
}

/* The region [packed_at, packed_end) is where blocks are cut from; nothing is marked in it. What is left of
 * it becomes a free block, or two where one would be too large for the lists. */
static void region_close(hak_ctx *ctx)
{
    size_t rest = (size_t)(ctx->packed_end - ctx->packed_at);
    if (rest > SIZE_MOST) {
        add_free(ctx, ctx->packed_at + rest / 32 * 16, rest - rest / 32 * 16);
        rest = rest / 32 * 16;
    }
    if (rest >= 16) add_free(ctx, ctx->packed_at, rest);
    __atomic_store_n(&ctx->packed_at, NULL, __ATOMIC_RELEASE);
    ctx->packed_end = NULL;
}

static void unit_open(hak_ctx *ctx, char *unit)
{
    memset(starts_of(ctx, unit), 0, BITS);
    ctx->packed[ctx->packed_count++] = (int32_t)((unit - (const char *)ctx) >> HK_UNIT_SHIFT);
    if (ctx->role == HK_LOCAL) ctx->packed_quick = ctx->packed_count <= ctx->packed_nursery;
    region_set(ctx, unit + head_of(ctx, unit) + HK_PACKED_TABLES, unit + HK_UNIT);
}

void hk_packed_init(hak_ctx *ctx)
{
    unit_open(ctx, (char *)ctx);
}

/* The largest class of which a free block is listed; HK_PACKED_CLASSES = none. */
static unsigned largest_free(const hak_ctx *ctx)
{
    const uint64_t *some = ctx->packed_some;
    if (some[1]) return 127u - (unsigned)__builtin_clzll(some[1]);
    return some[0] ? 63u - (unsigned)__builtin_clzll(some[0]) : HK_PACKED_CLASSES;
}

/* The largest free block becomes the region, if it has `want` bytes. */
static bool region_again(hak_ctx *ctx, size_t want)
{
    unsigned class = largest_free(ctx);
    if (class >= HK_PACKED_CLASSES || hk_classes[class].size < want) return false;
    char *p = pop(ctx, class);
    size_t room = size_at(ctx, p);
    region_close(ctx);
    region_set(ctx, p, p + room);
    return true;
}

/* A region for a block of `size` bytes: the largest free block, else a new unit. */
static HK_NOINLINE bool region_next(hak_ctx *ctx, unsigned asks, size_t size)
{
    enum { LEAST = 256, UNIT = HK_PACKED_HOT / 4 };
    if (region_again(ctx, hk_max(size + 8, LEAST))) return true;
    unsigned most = size <= OPEN_MAX ? ctx->packed_nursery + COLD_UNITS : ctx->packed_nursery;
    if (ctx->packed_count >= hk_min(most, HK_PACKED_UNITS)) return false;
    /* The class that asks for one unit after the other fills them by itself. */
    if (warm_up(ctx, asks, UNIT)) return false;
    bool zero;
    hk_slab *s = hk_units_take(ctx, 1, HK_KIND_PACKED, &zero);
    if (!s) return false;
    region_close(ctx);
    unit_open(ctx, hk_slab_address(ctx->space, s));
    return true;
}

static HK_NOINLINE void *reuse(hak_ctx *ctx, unsigned class, hak_label label)
{
    if (class == 0) class = 1; /* a label byte covers 16 bytes */
    if (class >= HK_PACKED_CLASSES || !ctx->packed_free[class]) return NULL;
    char *p = decode(ctx, ctx->packed_free[class]);
    if (hk_classes[class].size % 16 == 0 && (uintptr_t)p % 16) return NULL;
    pop(ctx, class);
    *hk_packed_label(ctx, p) = hk_label_clamp(label);
    hk_count_in(ctx, size_at(ctx, p), 1);
    return p;
}

/* Bytes to leave out for a block of that size to be aligned: where it is a multiple of 16, to 16. */
HK_INLINE size_t skip_of(const char *at, size_t size)
{
    return (uintptr_t)at & ~size & 8;
}

/* From the region, which has room for it. Where the block is aligned up, 8 bytes before it stay free. */
HK_INLINE void *cut(hak_ctx *ctx, size_t size, size_t skip, hak_label label)
{
    char *p = ctx->packed_at;
    size_t offset = (uintptr_t)p & (HK_UNIT - 1);
    if (skip) {
        mark_start(ctx->packed_starts, offset);
        ctx->packed_labels[offset >> 4] = HK_PACKED_FREE;
        p += 8;
        offset += 8;
    }
    mark_start(ctx->packed_starts, offset);
    ctx->packed_labels[offset >> 4] = hk_label_clamp(label);
    __atomic_store_n(&ctx->packed_at, p + size, __ATOMIC_RELEASE);
    hk_count_in(ctx, size, 1);
    return p;
}

/* The end of the region: a rest of 8 bytes would share its label byte with the block behind it, so the block
 * takes it. NULL = the region is too small. */
static void *cut_last(hak_ctx *ctx, size_t size, hak_label label)
{
    size_t room = (size_t)(ctx->packed_end - ctx->packed_at), skip = skip_of(ctx->packed_at, size);
    if (size + skip > room) return NULL;
    if (room - skip - size < 16) size = room - skip;
    return cut(ctx, size, skip, label);
}

/* Blocks are 16 bytes at least: class 0 has none. */
void *hk_packed_cut(hak_ctx *ctx, unsigned class, hak_label label)
{
    size_t size = hk_max(hk_classes[class].size, 16);
    return cut(ctx, size, skip_of(ctx->packed_at, size), label);
}

/* A thread that outgrew its packed units should not keep them: when a quarter of their blocks is left, and at
 * the last one, what is empty goes back. */
static void *counted(hak_ctx *ctx, void *p)
{
    if (HK_LIKELY(ctx->role != HK_HEAP) || !p) return p;
    hk_heap *h = ctx->heap;
    if (++h->packed_live > h->packed_most) h->packed_most = h->packed_live;
    return p;
}

static void uncount(hak_ctx *ctx)
{
    hk_heap *h = ctx->heap;
    if (--h->packed_live > h->packed_most / 4 || ctx->packed_count == 1) return;
    h->packed_most = h->packed_live;
    hk_packed_trim(ctx);
}

static void *alloc(hak_ctx *ctx, unsigned class, hak_label label)
{
    if (class == 0) class = 1;
    if (ctx->packed_count == 0 || class >= HK_PACKED_CLASSES || ctx->packed_heat[class] >= HK_PACKED_HOT)
        return NULL;
    size_t size = hk_classes[class].size;
    if (ctx->packed_free[class]) {
        void *again = reuse(ctx, class, label);
        if (again) return again;
    }
    if (ctx->packed_count > ctx->packed_nursery && warm_up(ctx, class, (size + 63) / 64)) return NULL;
    for (;;) {
        void *p = cut_last(ctx, size, label);
        if (p) return p;
        if (!region_next(ctx, class, size)) return NULL;
    }
}

void *hk_packed_alloc(hak_ctx *ctx, unsigned class, hak_label label)
{
    return counted(ctx, alloc(ctx, class, label));
}

static void *alloc_last(hak_ctx *ctx, unsigned class, hak_label label)
{
    void *p = reuse(ctx, class, label);
    if (p || ctx->packed_count == 0 || class >= HK_PACKED_CLASSES) return p;
    size_t size = hk_max(hk_classes[class].size, 16);
    p = cut_last(ctx, size, label);
    return p || !region_again(ctx, size) ? p : cut_last(ctx, size, label);
}

void *hk_packed_last(hak_ctx *ctx, unsigned class, hak_label label)
{
    return counted(ctx, alloc_last(ctx, class, label));
}

bool hk_packed_start(const hak_ctx *ctx, const void *p)
{
    char *unit = unit_of(p);
    size_t offset = (uintptr_t)p & (HK_UNIT - 1);
    return offset >= head_of(ctx, unit) + HK_PACKED_TABLES && is_start(starts_of(ctx, unit), offset);
}

HK_RACY size_t hk_packed_size(const hak_ctx *ctx, const void *p)
{
    char *unit = unit_of(p);
    size_t offset = (uintptr_t)p & (HK_UNIT - 1);
    if (!hk_packed_start(ctx, p) || *hk_packed_label(ctx, p) == HK_PACKED_FREE) return 0;
    return next_start(ctx, unit, offset) - offset;
}

uint8_t *hk_packed_label(const hak_ctx *ctx, const void *p)
{
    return labels_of(ctx, unit_of(p)) + (((uintptr_t)p & (HK_UNIT - 1)) >> 4);
}

void hk_packed_free(hak_ctx *ctx, void *p)
{
    size_t size = hk_packed_size(ctx, p);
    if (size == 0) {
        hk_misuse(ctx, p);
        return;
    }
    *hk_packed_label(ctx, p) = HK_PACKED_FREE;
    push(ctx, p, size);
    unsigned class = hk_class_of(size);
    if (class < HK_PACKED_CLASSES && warm_up(ctx, class, FREED)) ctx->churn = true;
    hk_count_out(ctx, size, 1);
    if (HK_UNLIKELY(ctx->role == HK_HEAP)) uncount(ctx);
}

static hk_slab *slab_of(const hak_ctx *ctx, const char *unit)
{
    const hk_extent *e = hk_extent_of(ctx->space, unit);
    return hk_extent_slab(e, ((uintptr_t)unit - e->base) >> HK_UNIT_SHIFT);
}

/* A block that keeps its place may get another label meanwhile, from the thread that holds it. */
static uint8_t label_at(const uint8_t *labels, size_t at)
{
    return __atomic_load_n(&labels[at >> 4], __ATOMIC_RELAXED);
}

static bool any_live(const hak_ctx *ctx, char *unit)
{
    for (size_t at = head_of(ctx, unit) + HK_PACKED_TABLES; at < HK_UNIT; at = next_start(ctx, unit, at))
        if (label_at(labels_of(ctx, unit), at) != HK_PACKED_FREE) return true;
    return false;
}

/* Free blocks side by side become one, and all of them are listed. No region is open. */
static void gather(hak_ctx *ctx, char *unit)
{
    uint64_t *starts = starts_of(ctx, unit);
    const uint8_t *labels = labels_of(ctx, unit);
    for (size_t at = head_of(ctx, unit) + HK_PACKED_TABLES, to; at < HK_UNIT; at = to) {
        to = next_start(ctx, unit, at);
        if (label_at(labels, at) != HK_PACKED_FREE) continue;
        while (to < HK_UNIT && label_at(labels, to) == HK_PACKED_FREE) {
            size_t next = next_start(ctx, unit, to), g = to >> GRANULE_SHIFT;
            starts[g / 64] &= ~(UINT64_C(1) << (g % 64));
            to = next;
        }
        /* A rest of 8 bytes is too small for a list. */
        for (size_t n; to - at >= 16; at += n) {
            n = hk_min(to - at, SIZE_MOST);
            if (to - at - n == 8) n -= 16;
            add_free(ctx, unit + at, n);
        }
    }
}

void hk_packed_trim(hak_ctx *ctx)
{
    unsigned kept = 0;
    region_close(ctx);
    memset(ctx->packed_free, 0, sizeof ctx->packed_free);
    memset(ctx->packed_some, 0, sizeof ctx->packed_some);
    for (unsigned i = 0; i < ctx->packed_count; i++) {
        char *unit = packed_unit(ctx, i);
        if (unit == (char *)ctx || any_live(ctx, unit)) ctx->packed[kept++] = ctx->packed[i];
        else hk_units_give(ctx, slab_of(ctx, unit));
    }
    ctx->packed_count = (uint8_t)kept;
    if (ctx->role == HK_LOCAL) ctx->packed_quick = kept <= ctx->packed_nursery && !ctx->retired;
    for (unsigned i = 0; i < kept; i++)
        gather(ctx, packed_unit(ctx, i));
}

bool hk_packed_visit(const hak_ctx *ctx, unsigned i, hak_visit_fn *fn, void *user)
{
    char *unit = packed_unit(ctx, i);
    const uint8_t *labels = labels_of(ctx, unit);
    size_t at = head_of(ctx, unit) + HK_PACKED_TABLES;
    while (at < HK_UNIT) {
        if (unit + at == ctx->packed_at && ctx->packed_at < ctx->packed_end) {
            at = (size_t)(ctx->packed_end - unit);
            continue;
        }
        size_t next = next_start(ctx, unit, at);
        uint8_t label = label_at(labels, at);
        if (label != HK_PACKED_FREE) {
            hak_block block = {unit + at, next - at, hk_label_known(ctx, label), 0};
            if (!fn(user, &block)) return false;
        }
        at = next;
    }
    return true;
}
