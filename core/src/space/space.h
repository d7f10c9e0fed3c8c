/* space/: address space, the supply of units, and the return of pages to the OS. This folder includes base/
 * and calls the OS table. Of contexts it knows only the ids that own units, and nothing of what the units
 * hold.
 *
 * A space reserves extents; an extent is cut into chunks of 2 MiB and units of 16 KiB, and carries arrays
 * with an entry per unit: map (who owns it and as what), slab records, bitmaps, label bytes. Thread-safe: one
 * lock, taken when a context takes or gives units, never on the fast paths.
 *
 * Invariants: a free unit's map entry is 0; a unit is dirty from its first use until it is decommitted;
 * bits of the free mask beyond the extent's last unit are never set. */
#ifndef HK_SPACE_H
#define HK_SPACE_H

#include "base/base.h"
#include "base/os.h"
#include "base/os_lock.h"
#include "base/settings.h"

/* Bits of the shortest bitmap; masks that tell which of them a chunk has in use. */
enum { HK_BITMAP_LEAST = 128, HK_BITMAP_MASKS = HK_CHUNK_UNITS * HK_UNIT_BITS / HK_BITMAP_LEAST / 64 };
enum { HK_EXTENTS = 32, HK_ID_BITS = 24, HK_PAGED_AREAS = 6 };
/* Mappings that what is given back may cost: an eighth of those that Linux grants a process. */
enum { HK_HOLES_MOST = 8192 };

/* A unit's number in its space; 0 = none. Extents number their units consecutively. */
typedef uint32_t hk_unit_id;

/* Record of a slab, a run or another group of units, at its first unit. 32 bytes: 0.2 % of a unit. */
typedef struct hk_slab {
    union {
        struct {
            hk_unit_id next, prev; /* in the list of partial slabs of its bin */
        };
        uintptr_t
            starts; /* of any packed unit: the table of starts, biased: the byte of p is at starts + p / 64 */
    };
    hk_unit_id all_next, all_prev; /* in the list of everything that its context owns */
    /* Where its bitmap is, in words from the extent's first. */
    uint32_t bits;
    uint16_t used;    /* blocks not in the bitmap: live ones and those in magazines */
    uint16_t trigger; /* value of `used` at which a free has work to do; see slab.h */
    uint16_t fresh;   /* blocks from here on were never handed out; their bits have no meaning */
    uint8_t cursor;   /* bitmap word that the next refill looks at */
    uint8_t kind;
    uint16_t released; /* what trim gave back, a bit for each hk_slab_grain() bytes */
    uint8_t units;
    uint8_t head; /* in any unit of a slab: units to go back to the first */
} hk_slab;

typedef struct hk_chunk {
    uint64_t free[2], dirty[2]; /* dirty: resident; a subset of free counts as retained */
    /* By label area, but that of runs: a bit for each row of units whose label bytes share a page in use. */
    uint32_t label_pages[HK_PAGED_AREAS];
    uint8_t longest;     /* at most so many free units in a row */
    uint8_t retained;    /* ... that are retained */
    bool huge;           /* advised to be huge pages: units that nobody used may be resident */
    bool closed;         /* its pages went back as a whole; see open.h */
    atomic_bool labels;  /* label bytes committed, and in use perhaps */
    uint8_t label_areas; /* how many of its label areas are committed: the others were refused */
    /* A bit for each HK_BITMAP_LEAST of its room for bitmaps that a slab has: see bitmap.h. */
    uint64_t bitmaps[HK_BITMAP_MASKS];
} hk_chunk;

typedef struct hk_extent {
    uintptr_t base; /* of unit 0 */
    uint32_t units; /* that it has, or can grow to */
    uint32_t reach; /* units whose map entries can be read: others have no owner */
    hk_unit_id first;
    uint32_t *map;        /* grows up from the extent's head ... */
    hk_slab *slabs;       /* ... and this one down from it, so that both begin in one page */
    uint64_t *bits;       /* bitmaps of slabs, by chunk, grows up ... */
    hk_chunk *chunks;     /* ... and down, from chunk 1 on */
    hk_chunk chunk0;      /* here, so that a small space does without that page */
    uint8_t *labels[7];   /* biased: labels[area][address >> shift] */
    uint32_t label_first; /* of a caller's buffer: label bytes are in the units from here on. Else `units` */
    char *reserved;
    size_t reserved_size;
    uint32_t chunks_used; /* chunks opened so far */
    uint32_t chunks_most;
    /* Chunks whose records, and label bytes of each area, are open: of spaces whose chunks are opened. */
    uint32_t records_open;
    _Atomic uint32_t labels_open[7];
    bool owned; /* to be released; not the caller's buffer */
    bool grows; /* only what is open is mapped; see open.h */
} hk_extent;

/* Single units of one chunk, set aside for a context: not free, and not anybody's until it takes them. */
typedef struct hk_aside {
    uint64_t units[2]; /* of the chunk that begins with `first` */
    hk_unit_id first;
    bool clean;   /* never used, or decommitted */
    uint8_t most; /* units that are set aside at once, at most; the context's */
} hk_aside;

/* The space as a chunk was opened. */
typedef struct hk_opened {
    uint64_t ns; /* 0 = unknown */
    uint64_t clean_runs;
} hk_opened;

typedef struct hk_big hk_big;
typedef struct hk_guard hk_guard;

struct hak_space {
    hk_extent extent;         /* the first; first member for the sake of hk_slab_at */
    hk_extent *more;          /* HK_EXTENTS - 1 further ones */
    _Atomic uint32_t extents; /* grows under the lock; those that it counts are complete */
    hk_lock lock;
    hk_fork_hold fork; /* of the lock */
    hak_os os;
    size_t reserve;
    uintptr_t below;
    size_t retained_bytes, retained_percent;
    hk_counter huge_from, purge_ns; /* HAK_NONE of the first: never */
    hk_opened opened[2];            /* the last chunks, the last one first */
    uint64_t clean_runs;            /* units of runs taken so far that were not resident */
    bool buffer_only, retained_yields;
    bool opens; /* its chunks are opened as a whole, and what is open stays usable after decommit */
    bool own;   /* its table is the system's: see hk_os_own */
    bool grows; /* its extents are such that grow */
    bool more_open;
    bool refused; /* while units are taken: there were some, but not their pages */
    hk_unit_id next_id;
    hk_counter reserved_bytes, used_units, retained_units, os_calls;
    hk_counter purged_bytes;              /* given back to the OS so far */
    hk_counter clean_units, clean_mapped; /* taken so far that were not resident; bytes outside of extents */
    hk_counter clean_huge;                /* those of clean_units in chunks that are to be huge pages */
    hk_counter mapped_bytes;              /* outside of extents */
    hk_counter high;                      /* most that hk_space_resident() was */
    size_t used_high;                     /* highest use without retained units, where these yield */
    size_t limit_purged,
        limit_missed;        /* units purged for the limit of retained ones; of these, wanted again */
    uint32_t holes;          /* at most so many rows of closed chunks */
    uint32_t retained_low;   /* least retained_units in this period of ticks and the quiet ones before */
    size_t clean_before;     /* clean_units at the last purge by a tick */
    uint32_t due;            /* units that ticks have still to purge */
    uint8_t patience, quiet; /* periods that units must be unused for; that they were so far */
    bool purged;             /* by a tick, and nothing was wanted again since */
    uint64_t tick_ns;
    uint32_t label_users;         /* contexts with labels; 0: units of label bytes are for blocks */
    hak_ctx *charged;             /* list of the contexts that have a quota */
    const hak_policy *policy;     /* under the lock; NULL = none */
    struct hk_hints *hints;       /* list of those of its contexts; under the lock */
    hak_tuning base;              /* the space's settings without a policy */
    uint32_t given;               /* a bit for each that the host gave */
    hk_big *bigs;                 /* tree by address of blocks with mappings of their own */
    hk_counter big_low, big_high; /* all of them, past ones too, lie between */
    _Atomic(hk_guard *) guard;    /* see heap/guard.h; NULL = no context has HAK_DEBUG_GUARD yet */
    size_t guard_slots;
    struct hk_apart *apart; /* list of the pages that apart.h has given; under the lock */
};

/* Returns how many of n bytes from `start` on lie from one address to another. */
HK_INLINE size_t hk_bytes_within(uintptr_t start, size_t n, uintptr_t from, uintptr_t to)
{
    uintptr_t first = hk_max(start, from), end = hk_min(start + n, to);
    return first < end ? end - first : 0;
}

/* Bytes of a slab to a bit of `released`. */
HK_INLINE size_t hk_slab_grain(const hk_slab *s)
{
    return s->units <= 4 ? HK_PAGE : 2 * HK_PAGE;
}

HK_INLINE size_t hk_slab_released(const hk_slab *s)
{
    return HK_LIKELY(!s->released) ? 0 : hk_bits(s->released) * hk_slab_grain(s);
}

HK_INLINE hk_extent *hk_extent_number(const hak_space *s, uint32_t i)
{
    return i == 0 ? (hk_extent *)(uintptr_t)&s->extent : &s->more[i - 1];
}

HK_INLINE uint32_t hk_extent_reach(const hk_extent *e)
{
    return __atomic_load_n(&e->reach, __ATOMIC_ACQUIRE);
}

/* Whether units need a commit whenever they are used anew. */
HK_INLINE bool hk_commits(const hak_space *s)
{
    return s->os.commit && !s->opens;
}

hk_extent *hk_extent_of_id(const hak_space *s, hk_unit_id id);
/* NULL = the address is in no extent. */
hk_extent *hk_extent_of(const hak_space *s, const void *p);

/* The map entry of the unit at p, which is in the extent. */
HK_INLINE uint32_t hk_extent_entry(const hk_extent *e, const void *p)
{
    return hk_read(&e->map[((uintptr_t)p - e->base) >> HK_UNIT_SHIFT]);
}

/* Bytes from the record of an extent's first unit to its map. */
enum { HK_RECORD_TO_MAP = 1024 + sizeof(hk_slab) };

HK_INLINE hk_slab *hk_extent_slab(const hk_extent *e, size_t unit)
{
    return e->slabs - unit;
}

/* Returns the same by the extent's map, which the fast paths have in a register. */
HK_INLINE hk_slab *hk_slab_by_map(const uint32_t *map, size_t unit)
{
    return (hk_slab *)((uintptr_t)map - HK_RECORD_TO_MAP - unit * sizeof(hk_slab));
}

HK_INLINE hk_chunk *hk_extent_chunk(const hk_extent *e, size_t chunk)
{
    return chunk ? e->chunks - (chunk - 1) : (hk_chunk *)(uintptr_t)&e->chunk0;
}

/* Room for the bitmaps of units from this one on, which begins a chunk. */
HK_INLINE uint64_t *hk_extent_bits(const hk_extent *e, size_t unit)
{
    return e->bits + unit * (HK_UNIT_BITS / 64);
}

HK_INLINE hk_slab *hk_slab_at(const hak_space *s, hk_unit_id id)
{
    const hk_extent *e = &s->extent;
    if (HK_UNLIKELY(id - e->first >= e->units)) e = hk_extent_of_id(s, id);
    return hk_extent_slab(e, id - e->first);
}

HK_INLINE char *hk_extent_address(const hk_extent *e, hk_unit_id id)
{
    return (char *)(e->base + ((uintptr_t)(id - e->first) << HK_UNIT_SHIFT));
}

/* The first unit of a slab; e->units or more: it is in another extent. */
HK_INLINE size_t hk_extent_unit(const hk_extent *e, const hk_slab *slab)
{
    return ((uintptr_t)e->slabs - (uintptr_t)slab) / sizeof *slab;
}

hk_extent *hk_extent_of_slab_above(const hak_space *s, const hk_slab *slab);
HK_INLINE hk_extent *hk_extent_of_slab(const hak_space *s, const hk_slab *slab)
{
    hk_extent *e = hk_extent_number(s, 0);
    return HK_LIKELY(hk_extent_unit(e, slab) < e->units) ? e : hk_extent_of_slab_above(s, slab);
}

HK_INLINE hk_unit_id hk_slab_id(const hak_space *s, const hk_slab *slab)
{
    const hk_extent *e = hk_extent_of_slab(s, slab);
    return e->first + (hk_unit_id)hk_extent_unit(e, slab);
}

HK_INLINE char *hk_slab_start(const hk_extent *e, const hk_slab *slab)
{
    return (char *)(e->base + (hk_extent_unit(e, slab) << HK_UNIT_SHIFT));
}

HK_INLINE char *hk_slab_address(const hak_space *s, const hk_slab *slab)
{
    return hk_slab_start(hk_extent_of_slab(s, slab), slab);
}

HK_INLINE char *hk_unit_address(const hak_space *s, hk_unit_id id)
{
    return hk_extent_address(hk_extent_of_id(s, id), id);
}

HK_INLINE uint64_t *hk_slab_bits(const hk_extent *e, const hk_slab *slab)
{
    return e->bits + slab->bits;
}

/* Bytes that are resident, or will be once their owners use them. */
HK_INLINE size_t hk_space_resident(const hak_space *s)
{
    return ((hk_get(&s->used_units) + hk_get(&s->retained_units)) << HK_UNIT_SHIFT) +
           hk_get(&s->mapped_bytes);
}

/* Keeps the most that was ever resident: called, with the lock held, when more may be resident than before. */
HK_INLINE void hk_note_resident(hak_space *s)
{
    hk_set(&s->high, hk_max(hk_space_resident(s), hk_get(&s->high)));
}

/* Whether n more bytes would be a new peak. Memory that is kept for later should not raise it: who takes
 * units gives up its caches first, and the space purges retained units for fresh ones. */
HK_INLINE bool hk_space_peaks(const hak_space *s, size_t n)
{
    return hk_space_resident(s) + n > hk_get(&s->high);
}

/* Maps, commits, decommits: counted calls of the OS table, under the lock. commit: of what was decommitted;
 * 0 = ok. */
void *hk_space_map(hak_space *s, size_t n, size_t align);
void hk_space_unmap(hak_space *s, void *p, size_t n);
void *hk_space_remap(hak_space *s, void *p, size_t old_n, size_t n);
int hk_space_commit(hak_space *s, void *p, size_t n);
void hk_space_decommit(hak_space *s, void *p, size_t n);

/* Of a new space: takes a reference. */
void hk_space_settings_begin(hak_space *s, const hak_tuning *t, uint32_t given, const hak_policy *policy);
/* Shows those that spaces read; the others in *t are left alone. */
void hk_space_settings_get(hak_space *s, hak_tuning *t);
/* Whether new memory of a context with so much committed should be huge pages. */
HK_INLINE bool hk_space_wants_huge(const hak_space *s, size_t committed)
{
    return s->os.huge && committed >= hk_get(&s->huge_from);
}
/* Advises huge pages. */
void hk_space_huge(hak_space *s, void *p, size_t n);
/* HK_WANT_DIRTY: units that are resident rather than others; HK_WANT_CLEAN: rather ones that are not. */
typedef enum hk_want { HK_WANT_ANY, HK_WANT_DIRTY, HK_WANT_CLEAN } hk_want;

/* `units` (1 to 128) units in a row, committed; 0 = none. `near` is an extent to prefer, or
 * NULL. *zero tells whether they read as zero. Map entries are set to `entry`; the record of a slab says
 * where its bitmap is. committed: what the context has, by which a new chunk is advised to be huge pages. */
hk_unit_id hk_space_take(hak_space *s, hk_extent *near, size_t units, uint32_t entry, hk_want want,
                         size_t committed, bool *zero);
/* Does the same in an extent of the OS, for when there is no room for label bytes in the caller's buffer. */
hk_unit_id hk_space_take_owned(hak_space *s, hk_extent *near, size_t units, uint32_t entry, size_t committed,
                               bool *zero);
/* Takes a unit of the extent, committed, for a slab with label bytes in area `area` (below HK_PAGED_AREAS).
 * It prefers a unit whose page of label bytes is in use already, or a row of units that nobody used yet, so
 * that units of one area share pages. 0 = none. */
hk_unit_id hk_space_take_paged(hak_space *s, hk_extent *e, unsigned area, uint32_t entry, hk_want want,
                               size_t committed, bool *zero);
HK_INLINE bool hk_aside_empty(const hk_aside *r)
{
    return !(r->units[0] | r->units[1]);
}

/* Fills an empty one with up to `want` units, dirty ones first; leaves it empty where there are none. */
void hk_space_set_aside(hak_space *s, hk_extent *near, unsigned want, hk_aside *r);
/* Uses such a unit for this kind: its record says where its bitmap is. */
void hk_space_use(hak_space *s, hk_extent *e, hk_unit_id id, unsigned kind);
void hk_space_take_back(hak_space *s, hk_aside *r);
/* Tells that these units, which were not resident, are about to be written as a whole. Takes the lock only
 * for the count. */
void hk_space_populate(hak_space *s, hk_unit_id id, size_t units);
/* Lengthens a run in place. */
bool hk_space_extend(hak_space *s, hk_unit_id id, size_t units, size_t more, uint32_t entry);
/* Units without a bitmap. */
void hk_space_give(hak_space *s, hk_unit_id id, size_t units);
/* A slab, run or other group. holes: bytes of it that are decommitted. Bits of its bitmap are zero. */
void hk_space_give_slab(hak_space *s, const hk_slab *slab, size_t holes);
/* Everything in the list that begins with `all`, of a context that ends. */
void hk_space_give_all(hak_space *s, hk_unit_id all);
/* Count the contexts with labels: called before a context has labels, and when it ends or has none after all.
 * As long as there is such a context, units at the end of a caller's buffer are set aside for label bytes,
 * except units that blocks have. */
void hk_space_labels_begin(hak_space *s);
void hk_space_labels_end(hak_space *s);
/* Room for the label bytes of units of this kind, from this one on: committed, by chunk, or set aside. */
int hk_space_labels(hak_space *s, hk_unit_id id, unsigned kind, size_t units);
/* Purges all retained units, and the records of chunks at the end that are not used. */
void hk_space_purge(hak_space *s);
/* Purges retained units of n bytes, or what there is. */
void hk_space_shrink(hak_space *s, size_t n);
/* Purges units that were unused for a period of purge_ns, a bounded batch a call. */
void hk_space_tick(hak_space *s, uint64_t now_ns);

#endif
