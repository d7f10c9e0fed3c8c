#include "heap/packed.h"

#include "heap/label.h"
#include "heap/magazine.h"

/* JOIN_SHIFT: free blocks are joined when a part of what is packed was freed since the last time, so that a
 * free pays for its share of it. FREED: heat of a free. */
enum { GRANULE_SHIFT = 3, FREED = 3, JOIN_SHIFT = 4 };

/* ---- Groups --------------------------------------------------------------------------------------- */

/* Units in a row, with tables of all of them in front, in the first group behind the context. */
typedef struct hk_group {
    char *start;
    size_t size, head; /* bytes; those in front of the tables */
} hk_group;

static hk_group group_of(const hak_ctx *ctx, const void *p)
{
    char *own = (char *)(uintptr_t)ctx;
    if ((size_t)((const char *)p - own) < HK_UNIT) return (hk_group){own, HK_UNIT, ctx->head};
    const hk_extent *e = HK_LIKELY(hk_in_window(ctx, p)) ? ctx->extent : hk_extent_of(ctx->space, p);
    const hk_slab *s = hk_extent_slab(e, ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
    s += s->head;
    return (hk_group){hk_slab_start(e, s), (size_t)s->units << HK_UNIT_SHIFT, 0};
}

/* Where blocks are. */
HK_INLINE size_t first_of(hk_group g)
{
    return g.head + sizeof(hk_packed_head) + g.size / 128 * 3;
}

static hk_packed_head *head_of(hk_group g)
{
    return (hk_packed_head *)(void *)(g.start + g.head);
}

/* A bit for each 8 bytes: a block starts here. */
HK_INLINE uint64_t *starts_of(hk_group g)
{
    return (uint64_t *)(void *)(g.start + g.head + sizeof(hk_packed_head));
}

/* A bit for each 16 bytes: the block that starts here is free. */
HK_INLINE uint64_t *frees_of(hk_group g)
{
    return starts_of(g) + g.size / 512;
}

/* All groups, the one taken last first; the context's own is the last of them. */
#define EACH_GROUP(ctx, g) for (hk_group g = group_last(ctx); g.start; g = group_before(ctx, g))

static hk_group group_at(const hak_ctx *ctx, int32_t number)
{
    return group_of(ctx, (char *)(uintptr_t)ctx + ((ptrdiff_t)number * (ptrdiff_t)HK_UNIT));
}

static hk_group group_last(const hak_ctx *ctx)
{
    return ctx->packed.units ? group_at(ctx, ctx->packed.last) : (hk_group){NULL, 0, 0};
}

static hk_group group_before(const hak_ctx *ctx, hk_group g)
{
    return g.start == (const char *)ctx ? (hk_group){NULL, 0, 0} : group_at(ctx, head_of(g)->before);
}

/* ---- Bits ----------------------------------------------------------------------------------------- */

HK_INLINE void set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

HK_INLINE void clear(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* Other threads may ask of a block that they hold. */
HK_RACY static bool is_set(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static bool is_free(hk_group g, size_t offset)
{
    return is_set(frees_of(g), offset >> 4);
}

static bool is_start(hk_group g, size_t offset)
{
    return offset % 8 == 0 && is_set(starts_of(g), offset >> 3);
}

HK_INLINE void mark_free(hk_group g, size_t offset)
{
    set(starts_of(g), offset >> 3);
    set(frees_of(g), offset >> 4);
}

/* Offset of the first start behind the one at `offset`, the region apart. */
HK_RACY static size_t next_marked(hk_group g, size_t offset)
{
    const uint64_t *starts = starts_of(g);
    size_t at = (offset >> 3) + 1, words = g.size / 512, i = at / 64;
    if (i >= words) return g.size;
    uint64_t w = starts[i] >> (at % 64);
    if (w) return (at + (unsigned)__builtin_ctzll(w)) << 3;
    /* Large blocks have many words without a start. */
    for (i++; i + 4 <= words && !(starts[i] | starts[i + 1] | starts[i + 2] | starts[i + 3]); i += 4) {
    }
    for (; i < words; i++)
        if (starts[i]) return (i * 64 + (unsigned)__builtin_ctzll(starts[i])) << 3;
    return g.size;
}

/* The same, where the region may begin behind the block: its start is not marked. Also for a live block of
 * another thread's heap: whoever reads the region's start first sees the marks of what was cut before. */
static size_t next_start(const hak_ctx *ctx, hk_group g, size_t offset)
{
    size_t region = (size_t)(__atomic_load_n(&ctx->packed.at, __ATOMIC_ACQUIRE) - g.start);
    size_t next = next_marked(g, offset);
    return offset < region && region < next ? region : next;
}

static size_t size_at(const hak_ctx *ctx, hk_group g, const char *p)
{
    size_t offset = (size_t)(p - g.start);
    return next_start(ctx, g, offset) - offset;
}

/* ---- Free blocks ---------------------------------------------------------------------------------- */

/* Lists link through the first bytes of a block. Granules from the context: 16 GiB to either side. */
static char *decode(const hak_ctx *ctx, uint32_t code)
{
    return (char *)(uintptr_t)ctx + ((ptrdiff_t)(int32_t)code * (1 << GRANULE_SHIFT));
}

static uint32_t encode(const hak_ctx *ctx, const char *p)
{
    return (uint32_t)((p - (const char *)ctx) >> GRANULE_SHIFT);
}

static bool in_reach(const hak_ctx *ctx, const char *unit)
{
    ptrdiff_t distance = (unit - (const char *)ctx) >> GRANULE_SHIFT;
    return distance >= INT32_MIN && distance <= INT32_MAX - (ptrdiff_t)(HK_UNIT >> GRANULE_SHIFT);
}

/* To the list of the largest class that fits into it. */
static void push(hak_ctx *ctx, char *p, size_t size)
{
    hk_packed *k = &ctx->packed;
    unsigned class = hk_class_of(size);
    if (hk_classes[class].size > size) class --;
    memcpy(p, &k->free[class], sizeof k->free[0]);
    k->free[class] = encode(ctx, p);
    k->some[class / 64] |= UINT64_C(1) << (class % 64);
}

static char *pop(hak_ctx *ctx, unsigned class)
{
    hk_packed *k = &ctx->packed;
    char *p = decode(ctx, k->free[class]);
    memcpy(&k->free[class], p, sizeof k->free[0]);
    if (!k->free[class]) k->some[class / 64] &= ~(UINT64_C(1) << (class % 64));
    return p;
}

/* The smallest class, from this one on, of which a free block is listed; HK_SMALL_CLASSES = none. */
static unsigned listed_from(const hak_ctx *ctx, unsigned class)
{
    const uint64_t *some = ctx->packed.some;
    uint64_t w = class < 64 ? some[0] >> class << class : 0;
    if (w) return (unsigned)__builtin_ctzll(w);
    w = class <= 64 ? some[1] : some[1] >> (class - 64) << (class - 64);
    return w ? 64u + (unsigned)__builtin_ctzll(w) : HK_SMALL_CLASSES;
}

/* What is free from here on, as blocks that fit lists. Fewer than 16 bytes are too small for one. */
static void add_free(hak_ctx *ctx, hk_group g, char *p, size_t size)
{
    for (size_t n; size >= 16; p += n, size -= n) {
        n = hk_min(size, HK_SMALL_MAX);
        if (size - n == 8) n -= 16;
        mark_free(g, (size_t)(p - g.start));
        push(ctx, p, n);
    }
}

static void region_set(hak_ctx *ctx, hk_group g, char *from, char *to)
{
    hk_packed *k = &ctx->packed;
    k->group = g.start;
    k->starts = starts_of(g);
    k->frees = frees_of(g);
    k->end = to;
    __atomic_store_n(&k->at, from, __ATOMIC_RELEASE);
}

/* What is left of the region becomes free blocks. */
static void region_close(hak_ctx *ctx)
{
    hk_packed *k = &ctx->packed;
    if (k->at < k->end) add_free(ctx, group_of(ctx, k->at), k->at, (size_t)(k->end - k->at));
    __atomic_store_n(&k->at, NULL, __ATOMIC_RELEASE);
    k->end = NULL;
}

/* The smallest free block of at least so many bytes becomes the region. */
static bool region_again(hak_ctx *ctx, size_t least)
{
    unsigned class = least > HK_SMALL_MAX ? HK_SMALL_CLASSES : listed_from(ctx, hk_class_of(least));
    if (class >= HK_SMALL_CLASSES) return false;
    char *p = pop(ctx, class);
    hk_group g = group_of(ctx, p);
    size_t offset = (size_t)(p - g.start), room = size_at(ctx, g, p);
    region_close(ctx);
    clear(starts_of(g), offset >> 3);
    clear(frees_of(g), offset >> 4);
    region_set(ctx, g, p, p + room);
    return true;
}

/* Free blocks side by side become one, and all of them are listed. No region is open. */
static void join_group(hak_ctx *ctx, hk_group g)
{
    for (size_t at = first_of(g), to; at < g.size; at = to) {
        to = next_marked(g, at);
        if (!is_free(g, at)) continue;
        while (to < g.size && is_free(g, to)) {
            clear(starts_of(g), to >> 3);
            clear(frees_of(g), to >> 4);
            to = next_marked(g, to);
        }
        add_free(ctx, g, g.start + at, to - at);
    }
}

static void lists_clear(hak_ctx *ctx)
{
    region_close(ctx);
    memset(ctx->packed.free, 0, sizeof ctx->packed.free);
    memset(ctx->packed.some, 0, sizeof ctx->packed.some);
    ctx->packed.freed = 0;
}

/* Where that may pay. */
static bool join(hak_ctx *ctx)
{
    hk_packed *k = &ctx->packed;
    if (k->freed < ((size_t)k->units << HK_UNIT_SHIFT) >> JOIN_SHIFT) return false;
    lists_clear(ctx);
    EACH_GROUP(ctx, g)
    {
        join_group(ctx, g);
    }
    return true;
}

static void group_open(hak_ctx *ctx, hk_group g)
{
    hk_packed *k = &ctx->packed;
    size_t first = first_of(g);
    memset(g.start + g.head, 0, first - g.head);
    head_of(g)->before = k->last;
    k->last = (int32_t)((g.start - (const char *)ctx) / (ptrdiff_t)HK_UNIT);
    k->units = (uint16_t)(k->units + (g.size >> HK_UNIT_SHIFT));
    region_set(ctx, g, g.start + first, g.start + g.size);
}

void hk_packed_init(hak_ctx *ctx)
{
    ctx->packed.quick = ctx->role == HK_LOCAL;
    group_open(ctx, group_of(ctx, ctx));
}

static bool group_new(hak_ctx *ctx, size_t units)
{
    bool zero;
    if (ctx->packed.units + units > ctx->packed.most) return false;
    hk_slab *s = hk_units_take(ctx, units, HK_KIND_PACKED, &zero);
    if (!s) return false;
    char *start = hk_slab_address(ctx->space, s);
    if (!in_reach(ctx, start)) {
        hk_units_give(ctx, s);
        return false;
    }
    region_close(ctx);
    group_open(ctx, group_of(ctx, start));
    return true;
}

/* The fewest units of a group in which a block of that size fits, aligned. */
static size_t units_for(size_t size)
{
    enum { ROOM = HK_UNIT - HK_PACKED_TABLES };
    return (size + 8 + sizeof(hk_packed_head) + ROOM - 1) / ROOM;
}

/* A region for a block of `size` bytes, which may have to be aligned. Groups are larger where there are many:
 * less is lost at their ends. */
static HK_NOINLINE bool region_next(hak_ctx *ctx, size_t size)
{
    enum { PART_SHIFT = 2, MOST = 4 };
    size_t least = size % 16 ? size : size + 8, fewest = units_for(size);
    if (region_again(ctx, least) || (join(ctx) && region_again(ctx, least))) return true;
    size_t units = ctx->role == HK_LOCAL ? hk_min(ctx->packed.units >> PART_SHIFT, MOST) : 0;
    for (units = hk_max(units, fewest); units >= fewest; units--) /* fewer near a limit */
        if (group_new(ctx, units)) return true;
    return false;
}

/* ---- Allocation ----------------------------------------------------------------------------------- */

HK_INLINE void count_in(hak_ctx *ctx, unsigned class, size_t size)
{
    ctx->packed.live[class] = (uint16_t)(ctx->packed.live[class] + size / 16);
    hk_count_in(ctx, size, 1);
}

static void warm_up(hak_ctx *ctx, unsigned class, unsigned by)
{
    uint8_t *heat = &ctx->packed.heat[class];
    if (*heat < HK_PACKED_LEFT) *heat = (uint8_t)hk_min(*heat + by, HK_PACKED_LEFT - 1);
    if (*heat >= HK_PACKED_HOT) ctx->churn = true;
}

HK_INLINE uint8_t *label_byte(const hak_ctx *ctx, const void *p)
{
    const hk_extent *e = HK_LIKELY(hk_in_window(ctx, p)) ? ctx->extent : hk_extent_of(ctx->space, p);
    return hk_label_byte(e, HK_KIND_PACKED, p);
}

HK_INLINE void set_label(const hak_ctx *ctx, const void *p, hak_label label)
{
    if (ctx->labelled) *label_byte(ctx, p) = hk_label_clamp(label);
}

/* A free block of the class's list. */
static HK_NOINLINE void *reuse(hak_ctx *ctx, unsigned class, hak_label label)
{
    char *p = decode(ctx, ctx->packed.free[class]);
    if (hk_classes[class].size % 16 == 0 && (uintptr_t)p % 16) return NULL;
    pop(ctx, class);
    hk_group g = group_of(ctx, p);
    clear(frees_of(g), (size_t)(p - g.start) >> 4);
    set_label(ctx, p, label);
    size_t size = size_at(ctx, g, p);
    count_in(ctx, hk_class_of(size), size);
    return p;
}

/* Bytes to leave out for a block of that size to be aligned: where it is a multiple of 16, to 16. */
HK_INLINE size_t skip_of(const char *at, size_t size)
{
    return (uintptr_t)at & ~size & 8;
}

/* From the region, which has room for it. Where the block is aligned up, 8 bytes before it stay free. */
HK_INLINE void *cut(hak_ctx *ctx, unsigned class, size_t size, size_t skip, hak_label label)
{
    hk_packed *k = &ctx->packed;
    char *p = k->at;
    size_t offset = (size_t)(p - k->group);
    if (skip) {
        set(k->starts, offset >> 3);
        set(k->frees, offset >> 4);
        p += 8;
        offset += 8;
    }
    set(k->starts, offset >> 3);
    set_label(ctx, p, label);
    __atomic_store_n(&k->at, p + size, __ATOMIC_RELEASE);
    count_in(ctx, class, size);
    return p;
}

/* The end of the region: a rest of 8 bytes would share its free bit with the block behind it, so the block
 * takes it. NULL = the region is too small. */
static void *cut_last(hak_ctx *ctx, size_t size, hak_label label)
{
    size_t room = (size_t)(ctx->packed.end - ctx->packed.at), skip = skip_of(ctx->packed.at, size);
    if (size + skip > room) return NULL;
    if (room - skip - size < 16) size = room - skip;
    return cut(ctx, hk_class_of(size), size, skip, label);
}

/* Blocks are 16 bytes at least: class 0 has none. */
HK_INLINE unsigned packed_class(unsigned class)
{
    return class ? class : 1;
}

void *hk_packed_cut(hak_ctx *ctx, unsigned class, hak_label label)
{
    class = packed_class(class);
    size_t size = hk_classes[class].size;
    return cut(ctx, class, size, skip_of(ctx->packed.at, size), label);
}

/* A thread that outgrew its packed units should not keep them: when a quarter of their blocks is left, and at
 * the last one, what is empty goes back. */
static void *counted(hak_ctx *ctx, void *p)
{
    if (HK_LIKELY(ctx->role != HK_HEAP) || !p) return p;
    hk_packed *k = &ctx->packed;
    if (++k->blocks > k->blocks_most) k->blocks_most = k->blocks;
    return p;
}

static void uncount(hak_ctx *ctx)
{
    hk_packed *k = &ctx->packed;
    if (--k->blocks > k->blocks_most / 4 || k->units == 1) return;
    k->blocks_most = k->blocks;
    hk_packed_trim(ctx);
}

static void *alloc(hak_ctx *ctx, unsigned class, hak_label label)
{
    size_t size = hk_classes[class].size;
    if (ctx->packed.free[class]) {
        void *again = reuse(ctx, class, label);
        if (again) return again;
    }
    do {
        void *p = cut_last(ctx, size, label);
        if (p) return p;
    } while (region_next(ctx, size));
    return NULL;
}

/* Heaps of threads have small groups. */
static bool fits(const hak_ctx *ctx, unsigned class)
{
    return class < HK_PACKED_CLASSES || ctx->role == HK_LOCAL;
}

void *hk_packed_alloc(hak_ctx *ctx, unsigned class, hak_label label)
{
    class = packed_class(class);
    const hk_packed *k = &ctx->packed;
    if (k->units == 0 || !fits(ctx, class) || k->live[class] >= hk_packed_full(class)) return NULL;
    unsigned hot = ctx->role == HK_LOCAL ? HK_PACKED_LEFT : HK_PACKED_HOT;
    return k->heat[class] < hot ? counted(ctx, alloc(ctx, class, label)) : NULL;
}

void *hk_packed_last(hak_ctx *ctx, unsigned class, hak_label label)
{
    class = packed_class(class);
    bool able = ctx->packed.units && fits(ctx, class) && ctx->packed.live[class] < UINT16_MAX / 2;
    return able ? counted(ctx, alloc(ctx, class, label)) : NULL;
}

/* ---- Blocks --------------------------------------------------------------------------------------- */

static bool starts_in(hk_group g, const void *p)
{
    size_t offset = (size_t)((const char *)p - g.start);
    return offset >= first_of(g) && is_start(g, offset);
}

bool hk_packed_start(const hak_ctx *ctx, const void *p)
{
    return starts_in(group_of(ctx, p), p);
}

static size_t size_in(const hak_ctx *ctx, hk_group g, const void *p)
{
    if (!starts_in(g, p) || is_free(g, (size_t)((const char *)p - g.start))) return 0;
    return size_at(ctx, g, p);
}

size_t hk_packed_size(const hak_ctx *ctx, const void *p)
{
    return size_in(ctx, group_of(ctx, p), p);
}

static void put(hak_ctx *ctx, hk_group g, char *p, size_t size)
{
    unsigned class = hk_class_of(size);
    set(frees_of(g), (size_t)(p - g.start) >> 4);
    push(ctx, p, size);
    ctx->packed.freed += (uint32_t)size;
    ctx->packed.live[class] = (uint16_t)(ctx->packed.live[class] - size / 16);
    hk_count_out(ctx, size, 1);
    if (HK_UNLIKELY(ctx->role == HK_HEAP)) uncount(ctx);
}

void hk_packed_put(hak_ctx *ctx, void *p)
{
    hk_group g = group_of(ctx, p);
    size_t size = size_in(ctx, g, p);
    if (size) put(ctx, g, p, size);
    else hk_misuse(ctx, p);
}

/* Frees of slabs are faster, but each class of its own pages wastes some. Where there is a limit, only a
 * sixteenth of it is for such classes. */
static bool may_leave(hak_ctx *ctx)
{
    size_t hard = hk_quota_least(ctx->quota, hk_get(&ctx->hard));
    return !hard || ctx->packed.left < hard / (16 * HK_UNIT);
}

/* Blocks that come and go pass through a magazine, where the heap is large enough for one, and its limit. A
 * class whose blocks do so all the time leaves for slabs. */
static bool keep(hak_ctx *ctx, unsigned class, char *p, size_t size)
{
    enum { UNITS = 3, LIMIT_UNITS = 16, FREES = 256 };
    if (size != hk_classes[class].size || (size % 16 == 0 && (uintptr_t)p % 16)) return false;
    hk_bin *bin = hk_bin_of(ctx, class);
    if (HK_UNLIKELY(!hk_packed_keeps(ctx, class))) {
        if (bin->slots || ctx->packed.heat[class] < HK_PACKED_HOT || ctx->packed.units < UNITS) return false;
        size_t hard = hk_quota_least(ctx->quota, hk_get(&ctx->hard));
        if ((hard && hard < LIMIT_UNITS * HK_UNIT) || !hk_magazine_open_packed(ctx, class)) return false;
        bin = hk_bin_of(ctx, class);
    }
    if (HK_UNLIKELY(++bin->closed == FREES)) {
        bin->closed = 0;
        if (may_leave(ctx) && hk_class_open(ctx, class)) {
            ctx->packed.left++;
            return false;
        }
    }
    if (HK_UNLIKELY(bin->top == bin->hi)) hk_magazine_make_room(ctx, bin);
    *bin->top++ = p;
    return true;
}

void hk_packed_free(hak_ctx *ctx, void *p)
{
    hk_group g = group_of(ctx, p);
    size_t size = size_in(ctx, g, p);
    if (HK_UNLIKELY(size == 0)) {
        hk_misuse(ctx, p);
        return;
    }
    unsigned class = hk_class_of(size);
    if (HK_LIKELY(!ctx->role && !(ctx->checked & HK_CHECKED) && hk_in_window(ctx, p)) && keep(ctx, class, p, size)) return;
    warm_up(ctx, class, FREED);
    put(ctx, g, p, size);
}

/* ---- All of them ---------------------------------------------------------------------------------- */

static bool any_live(hk_group g)
{
    for (size_t at = first_of(g); at < g.size; at = next_marked(g, at))
        if (!is_free(g, at)) return true;
    return false;
}

static void group_give(hak_ctx *ctx, hk_group g)
{
    const hk_extent *e = hk_extent_of(ctx->space, g.start);
    ctx->packed.units = (uint16_t)(ctx->packed.units - (g.size >> HK_UNIT_SHIFT));
    hk_units_give(ctx, hk_extent_slab(e, ((uintptr_t)g.start - e->base) >> HK_UNIT_SHIFT));
}

void hk_packed_trim(hak_ctx *ctx)
{
    hk_packed *k = &ctx->packed;
    lists_clear(ctx);
    int32_t *link = &k->last;
    for (hk_group g = group_last(ctx), before; g.start; g = before) {
        before = group_before(ctx, g);
        if (before.start && !any_live(g)) {
            group_give(ctx, g);
            continue;
        }
        *link = (int32_t)((g.start - (const char *)ctx) / (ptrdiff_t)HK_UNIT);
        link = &head_of(g)->before;
        join_group(ctx, g);
    }
}

static bool visit_group(const hak_ctx *ctx, hk_group g, hak_visit_fn *fn, void *user)
{
    const hk_packed *k = &ctx->packed;
    size_t at = first_of(g);
    while (at < g.size) {
        char *p = g.start + at;
        if (p == k->at && k->at < k->end) {
            at = (size_t)(k->end - g.start);
            continue;
        }
        size_t next = next_start(ctx, g, at);
        if (!is_free(g, at)) {
            /* The thread that holds a block may give it another label meanwhile. */
            unsigned label = ctx->labelled ? __atomic_load_n(label_byte(ctx, p), __ATOMIC_RELAXED) : 0;
            hak_block block = {p, next - at, hk_label_known(ctx, label), 0};
            if (!fn(user, &block)) return false;
        }
        at = next;
    }
    return true;
}

bool hk_packed_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user)
{
    EACH_GROUP(ctx, g)
    {
        if (!visit_group(ctx, g, fn, user)) return false;
    }
    return true;
}
