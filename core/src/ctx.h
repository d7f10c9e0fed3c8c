/* The context: its struct, its accounts of committed memory, and the units that it owns. */
#ifndef HK_CTX_H
#define HK_CTX_H

#include "base.h"
#include "classes.h"
#include "quota.h"
#include "space.h"

/* One size class of a context; a cache line. While hi == slots the magazine is closed to frees. A bin of
 * zeros is a class without slab and magazine: every operation takes the slow path. */
typedef struct hk_bin {
    void **top, **lo, **hi; /* [lo, top) are the blocks at hand, there is room up to hi */
    uint8_t *labels;        /* labels[address >> shift]; NULL = the context has no labels */
    void **slots;           /* NULL = the class has no slabs yet */
    hk_slab *slab;          /* that refills come from */
    hk_unit_id first, last; /* partial slabs, the oldest first */
    uint16_t closed;        /* slow frees until the magazine opens again */
    uint8_t backoff;        /* log2 of how long it will be closed next time */
    uint8_t swings;         /* from empty to full since it grew; HK_EMPTIED: it was empty since it was full */
    uint8_t cap, shift, kind, heat;
} hk_bin;
_Static_assert(sizeof(hk_bin) == 64, "a bin is a cache line");

enum { HK_EMPTIED = 128 };

/* Bytes in front of a context's bins with its table of classes: hk_class_table, or that of wide ones. */
enum { HK_BINS_TABLE = 192 };

/* What a context's bins are until its first class gets a slab: every class closed. */
typedef struct hk_no_bins {
    uint8_t table[HK_BINS_TABLE];
    hk_bin bins[HK_BINS];
} hk_no_bins;
_Static_assert(sizeof(hk_no_bins) == HK_BINS_TABLE + sizeof(hk_bin) * HK_BINS, "the table is in front");
HK_HIDDEN extern const hk_no_bins hk_no_bins_fine, hk_no_bins_wide;

enum { HK_PACKED_UNITS = 32, HK_PACKED_CLASSES = 109 /* to 8256 bytes */, HK_BIG_MISSED = 4 };

enum { HK_LOCAL, HK_ROOT, HK_HEAP };
typedef struct hk_team hk_team;
typedef struct hk_heap hk_heap;

struct hak_ctx {
    /* Cold. The context begins a page, as many blocks do: stores to those would hold up loads of this line,
     * for processors tell the two apart by the offset in the page first. */
    hak_quota *quota;
    hak_pressure_fn *on_pressure;
    void *pressure_user;
    hak_error_fn *on_error;
    void *error_user;
    const char *name;
    hk_counter failures;
    const char *const *given_names; /* of labels 1 to given_count, the caller's */

    /* What the fast paths read. */
    uintptr_t base; /* of the extent whose blocks go through magazines */
    size_t units;
    uint32_t *map;
    uint32_t key;                       /* id of the context's first unit << 8; a map entry is key | kind */
    bool checked;                       /* debug or retired: frees take the slow path */
    uint8_t role;                       /* HK_LOCAL, or a part of a shared context: see heap.h */
    hk_bin *bins;                       /* all zero, read-only, until the first class gets a slab */
    _Atomic uintptr_t thread;           /* of a heap: register of its thread; 0 = nobody's, or no heap */
    hk_counter live_bytes, live_blocks; /* blocks in magazines included */

    union {
        hk_team *team; /* of a root; NULL for a local context */
        hk_heap *heap; /* of a heap */
    };
    hak_space *space;
    hk_extent *extent;
    hk_unit_id id;
    hk_unit_id all; /* list of everything owned but unit `id` */
    hk_reserve reserve;
    bool own_space, retired, pressure;
    atomic_bool labelled;
    atomic_bool slack; /* a shrink stayed in its block: a told size may be smaller than the class */
    bool churn;        /* a class got hot by frees, not by growth */
    bool gave;         /* units went back */
    bool larger_kept;  /* a class above 1 KiB has a magazine */
    uint8_t packed_count, packed_nursery; /* packed units; those taken without regard to heat */
    bool packed_quick;                    /* hk_packed_ready() may say yes: those without regard to heat */
    uint8_t magazine, phase, debug;
    bool counted; /* no frees are taken for a sweep */
    uint8_t big_missed_at;
    uint32_t magazine_most; /* bytes of the largest block kept in one */
    size_t grown;           /* bytes by which magazines grew */
    uint64_t flush_ns;      /* when magazines of larger blocks were last emptied by a tick */
    hk_counter committed, metadata, peak, released;
    hk_counter soft, hard;

    char *meta, *meta_end;    /* where the context's own data are bumped from */
    const char **label_names; /* of labels defined later than the given ones */
    uint16_t given_count, label_room;
    _Atomic uint32_t label_count;
    hak_ctx *charged_next, *charged_prev; /* in the space's list of contexts with a quota */

    hk_big *bigs, *cached, *spare; /* live, freed and kept, records to use again */
    hk_counter big_bytes, big_blocks, cached_bytes;
    size_t big_room;                  /* charged room of live ones */
    size_t big_cache, big_wish;       /* limit of the cache; what misses say it should be */
    size_t big_missed[HK_BIG_MISSED]; /* sizes given up lately */
    size_t big_grown;                 /* bytes that the heap grew by and the cache did not yield yet */

    char *packed_at, *packed_end; /* where the next packed blocks are cut from */
    uint64_t *packed_starts;      /* tables of the unit in which that is */
    uint8_t *packed_labels;
    uint16_t head; /* bytes of the context and what belongs to it, at the beginning of its first unit */
    int32_t packed[HK_PACKED_UNITS];         /* packed units, counted from the context's */
    uint64_t packed_some[2];                 /* classes whose list is not empty */
    uint16_t packed_free[HK_PACKED_CLASSES]; /* heads of lists of free packed blocks, by class; 0 = none */
    uint8_t packed_heat[HK_PACKED_CLASSES];
};

/* What a unit costs beside its own bytes and its bitmap: slab record, map entry. */
enum { HK_UNIT_META = sizeof(hk_slab) + sizeof(uint32_t) };

HK_INLINE hk_bin *hk_bin_of(hak_ctx *ctx, unsigned kind)
{
    return &ctx->bins[kind];
}

/* Class of a size up to 1024. */
HK_INLINE unsigned hk_class_in(const hak_ctx *ctx, size_t n)
{
    return ((const uint8_t *)ctx->bins - HK_BINS_TABLE)[(n + 7) >> 3];
}

HK_INLINE bool hk_in_window(const hak_ctx *ctx, const void *p)
{
    return ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT < ctx->units;
}

/* The kind of the unit at p if ctx owns it, else above 255. Never dereferences p. */
HK_INLINE uint32_t hk_kind_in_window(const hak_ctx *ctx, const void *p)
{
    size_t unit = ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT;
    return HK_LIKELY(unit < ctx->units) ? __atomic_load_n(&ctx->map[unit], __ATOMIC_RELAXED) ^ ctx->key
                                        : UINT32_MAX;
}
/* The same in any extent; *e is the extent. */
uint32_t hk_kind_at(const hak_ctx *ctx, const void *p, hk_extent **e);

/* Reports misuse. */
HK_COLD void hk_error(const hak_ctx *ctx, hak_error error, const void *p, const char *what);
/* Reports what is wrong with p, which is not a live block of ctx. */
HK_COLD void hk_misuse(const hak_ctx *ctx, const void *p);
/* Counts a failed allocation; returns NULL. */
HK_COLD void *hk_fail(hak_ctx *ctx);

/* Accounts of live blocks, those in magazines included. */
HK_INLINE void hk_count_in(hak_ctx *ctx, size_t bytes, size_t blocks)
{
    hk_add(&ctx->live_bytes, bytes);
    hk_add(&ctx->live_blocks, blocks);
}

/* The peak is noted where it ends. */
HK_INLINE void hk_count_out(hak_ctx *ctx, size_t bytes, size_t blocks)
{
    size_t live = hk_get(&ctx->live_bytes);
    if (live > hk_get(&ctx->peak)) hk_set(&ctx->peak, live);
    hk_set(&ctx->live_bytes, live - bytes);
    hk_sub(&ctx->live_blocks, blocks);
}

/* Accounts of committed bytes: limit, quota, pressure. charge gives up caches before it refuses. */
bool hk_charge(hak_ctx *ctx, size_t n);
void hk_uncharge(hak_ctx *ctx, size_t n);
/* The pages were not to be had. */
void hk_refund(hak_ctx *ctx, size_t n);
/* Caches and empty slabs, so that a failed allocation may be tried again; those of the other heaps of a
 * shared context too, where nobody is at work. false = there was nothing. */
bool hk_give_up(hak_ctx *ctx);
/* Calls the pressure callback if a crossing is pending. First thing on every slow path that allocates. */
HK_COLD void hk_pressure(hak_ctx *ctx);

/* Units for the context, charged, recorded (id, kind, units) and in its list. NULL = failed. */
hk_slab *hk_units_take_as(hak_ctx *ctx, size_t units, unsigned kind, hk_want want, bool *zero);
HK_INLINE hk_slab *hk_units_take(hak_ctx *ctx, size_t units, unsigned kind, bool *zero)
{
    return hk_units_take_as(ctx, units, kind, HK_WANT_WARM, zero);
}
void hk_units_give(hak_ctx *ctx, hk_slab *slab);
/* Units of slabs and runs go over to another heap of the same shared context, both locks held. */
void hk_units_move(hak_ctx *from, hak_ctx *to, hk_slab *slab);
/* Gives back units at the end of a run. */
void hk_units_shorten(hak_ctx *ctx, hk_slab *slab, size_t units);
bool hk_units_lengthen(hak_ctx *ctx, hk_slab *slab, size_t units);
/* Label bytes that a slab or run of this kind and length needs when the context is labelled. */
size_t hk_label_bytes(unsigned kind, size_t units);

/* hak_ctx_new() with room for `more` bytes of zeros at hk_behind(). */
hak_ctx *hk_ctx_new(hak_space *space, const hak_options *o, size_t more);
/* What follows the context in its unit. */
HK_INLINE void *hk_behind(hak_ctx *ctx)
{
    return (char *)ctx + hk_align_up(sizeof *ctx, 64);
}

/* The context's own data: never freed one by one. NULL = failed. */
void *hk_meta_alloc(hak_ctx *ctx, size_t n);
/* Before there are any: the context has wide classes. */
void hk_bins_widen(hak_ctx *ctx);
/* The bins, made on first need. false = no memory. */
bool hk_bins_make(hak_ctx *ctx);

/* Block bytes and blocks in magazines. */
HK_RACY void hk_magazines_sum(const hak_ctx *ctx, size_t *bytes, size_t *blocks);

/* Destroys a retired context that has no block left. */
void hk_retire_check(hak_ctx *ctx);

#define HK_EACH_OWNED(ctx, slab)                                                                             \
    for (hk_slab *slab = (ctx)->all ? hk_slab_at((ctx)->space, (ctx)->all) : NULL; slab;                     \
         slab = slab->all_next ? hk_slab_at((ctx)->space, slab->all_next) : NULL)

#endif
