/* heap/: the parts of a context: magazines, slabs, packed units, runs, big blocks, label bytes, its account,
 * and the order in which they are asked to give memory back. This folder includes space/, and works for one
 * thread at a time; of the other heaps of a shared context it knows only what hk_member says. It finds what
 * is wrong with a block, and api/ reports it: see hk_wrong.
 *
 * This header has the context's struct. The modules have an order, and each may call only those before it:
 * see MODULES in tests/install/layers.py. */
#ifndef HK_CTX_H
#define HK_CTX_H

#include "hakmem/profile.h"

#include "base/base.h"
#include "base/classes.h"
#include "base/quota.h"
#include "base/settings.h"
#include "heap/bin.h"
#include "space/space.h"

enum { HK_PACKED_CLASSES = 109 /* to 8256 bytes */, HK_BIG_MISSED = 16 };

/* Whether blocks may be cut in line: those of a context without labels, or with. */
enum { HK_CUT_NOT, HK_CUT_PLAIN, HK_CUT_LABELLED };

/* See packed.h. */
typedef struct hk_packed {
    char *at,
        *end;    /* the region, where the next blocks are cut from: its start is marked, nothing else in it */
    char *group; /* that in which the region is */
    uintptr_t starts; /* its table of starts, biased as in hk_slab */
    uint64_t *frees;
    int32_t last;                    /* the group taken last, counted in units from the context's */
    uint16_t units, most;            /* at most so many are taken */
    uint8_t open;                    /* classes that have slabs */
    uint8_t left;                    /* ... because their blocks come and go */
    uint8_t quick;                   /* HK_CUT_NOT... */
    uint8_t trimmed;                 /* what went back when free blocks were last joined: HK_TRIMMED_... */
    uint32_t freed;                  /* bytes since free blocks were joined */
    uint32_t blocks, blocks_most;    /* of a heap: live, and most of them since units last went back */
    uint64_t some[2];                /* classes whose list is not empty */
    uint64_t kept[2];                /* classes with a magazine of packed blocks */
    uint32_t free[HK_SMALL_CLASSES]; /* lists of free blocks, by class, as offsets from the context */
    uint16_t live[HK_SMALL_CLASSES]; /* granules of 16 bytes */
    uint16_t gone;                   /* pages of its units that went back and are not charged */
    uint8_t heat[HK_SMALL_CLASSES];
    uint8_t listed; /* at most HK_PACKED_PAID: blocks freed to the lists; of a heap allocated after that */
} hk_packed;

/* Nothing, units without blocks, pages without blocks too. */
enum { HK_TRIMMED_NOT, HK_TRIMMED_UNITS, HK_TRIMMED_PAGES };
enum {
    HK_PACKED_PAID = 64, /* frees after which magazines are worth their memory, two pages */
    HK_PACKED_HOT = 192, /* heat of a class whose blocks come and go */
    HK_PACKED_LEFT = 255 /* ... of one that has slabs */
};

enum { HK_LOCAL, HK_SHARED, HK_HEAP };
/* Why calls of a context leave the fast path. CHECKED: debug or retired, frees take the slow path. PROFILED:
 * magazines are shut, because a profile counts allocations. OBSERVED: there may be samples among the blocks.
 * GUARDED: debug, too: allocations are counted for drawn blocks, see guard.h. TRACED: with CHECKED: frees
 * with a site are kept by it, see api/trace.h. PLACED: with CHECKED: blocks are drawn, see placement.h. */
enum { HK_CHECKED = 1, HK_PROFILED = 2, HK_OBSERVED = 4, HK_GUARDED = 8, HK_TRACED = 16, HK_PLACED = 32 };
/* Of hk_sampling.batches: see batch.h. */
enum { HK_BATCHES_NONE, HK_BATCHES_MADE, HK_BATCHES_USED };
/* In `debug`, beside HAK_DEBUG_*: one of the last two. */
enum { HK_DEBUG_PROFILE = 128 };
typedef struct hk_profile hk_profile;
typedef struct hk_heaps hk_heaps;
typedef struct hk_heap hk_heap;

/* What heap/ knows of a heap of a shared context, and what it asks of the other heaps there: the beginning of
 * its hk_heap. shared/ fills it in. */
typedef struct hk_member {
    /* A slab of the class with free blocks that another heap can spare. NULL = none. */
    hk_slab *(*steal)(hak_ctx *heap, unsigned sc);
    /* Before the heap grows by fresh pages: blocks that wait to be used again go back to their slabs. */
    void (*recall)(hak_ctx *heap);
    hk_unit_id walk; /* where a walk over the owned units goes on when it dropped the lock; 0 = none */
} hk_member;

/* What may be found wrong with a block while it is freed or resized. */
typedef enum hk_wrong {
    HK_WRONG_BLOCK,  /* no live block starts there */
    HK_WRONG_SIZE,   /* the size told is not what was last asked for */
    HK_WRONG_BEFORE, /* a drawn block: what lies before it was written to */
    HK_WRONG_BEHIND, /* ... or what lies behind it */
    HK_WRONG_CANARY, /* a live block: what lies behind the bytes asked for was written to */
    HK_WRONG_LINK    /* a free packed block was written to: its link leads here */
} hk_wrong;
/* Whom the layers below api/ hand their verdicts to. */
typedef void hk_judge(const hak_ctx *ctx, hk_wrong what, const void *p);

/* What the host gave, for its callbacks and reports. */
typedef struct hk_host {
    hak_pressure_fn *on_pressure;
    void *pressure_user;
    hak_error_fn *on_error;
    void *error_user;
    const char *name;
    void *user;
} hk_host;

/* Where the context's own data are bumped from. */
typedef struct hk_meta {
    char *at, *end;
} hk_meta;

/* The units that the context owns. */
typedef struct hk_owned {
    hk_unit_id id;  /* that of the context itself */
    hk_unit_id all; /* list of everything else */
    hk_aside aside;
} hk_owned;

/* Bytes that the context is charged, and its limits. */
typedef struct hk_account {
    hak_quota *quota;
    hk_counter committed, metadata, peak, released;
    hk_counter soft, hard;
    hk_counter failures;
    hak_ctx *next, *prev; /* in the space's list of contexts with a quota */
    bool pressure;        /* the soft limit was crossed, and the callback does not know yet */
    bool shrank;          /* units went back */
    uint32_t exchanges;   /* magazines filled from slabs or flushed to them, for learners; it wraps */
} hk_account;

typedef struct hk_label_names {
    const char *const *given; /* of labels 1 to given_count, the caller's */
    const char **defined;     /* of labels defined later than the given ones */
    uint16_t given_count, room;
    _Atomic uint16_t count;
    atomic_bool on; /* blocks have labels */
} hk_label_names;

/* What its magazines have in common. */
typedef struct hk_magazines {
    uint64_t flush_ns; /* when those of larger blocks were last emptied by a tick */
    uint32_t grown;    /* bytes by which they grew */
    uint32_t most;     /* bytes of the largest block kept in one */
    uint8_t cap;       /* blocks in one at first */
    bool larger_kept;  /* a class above 1 KiB has one */
    bool swept;        /* there were rows: see row.h */
    bool no_sweeps;    /* no frees are taken for a sweep */
} hk_magazines;

/* Blocks with mappings of their own. */
typedef struct hk_bigs {
    hk_big *live, *cached, *spare; /* live, freed and kept, records to use again */
    hk_counter bytes, blocks, cached_bytes;
    size_t room;                    /* charged room of live ones */
    size_t cache, wish;             /* limit of the cache; what misses say it should be */
    size_t grown;                   /* bytes by which the heap grew without the cache having shrunk */
    uint16_t missed[HK_BIG_MISSED]; /* sizes given up lately, in steps of 64 KiB */
    uint8_t missed_at;
    uint8_t patience; /* further periods that ticks wait before they give up what is cached */
    uint16_t aged;    /* size of what they gave up last, in such steps, until it is asked for; 0 = none */
} hk_bigs;

/* See profile/profile.h. */
typedef struct hk_sampling {
    _Atomic(hk_profile *) profile; /* of a heap: see its shared context */
    int64_t left;                  /* bytes to the next sample of this heap */
    uint32_t run;                  /* the start of the profile for which `left` was drawn */
    uint8_t batches;               /* HK_BATCHES_NONE... */
} hk_sampling;

typedef struct hk_hints hk_hints;

/* What it goes by, beside settings that other parts keep. */
typedef struct hk_settings {
    struct hak_learner *learner; /* NULL = none */
    hk_hints *hints;             /* of a shared context under its lock; NULL = no policy, no named site */
    size_t expected;             /* bytes that it will commit; 0 = unknown */
    uint32_t given;              /* a bit for each setting that the host gave in hak_options.tuning */
    uint8_t workload, mode;      /* a hak_workload, a hak_mode: those of its options */
    bool hinted;                 /* there are labels or sites with hints */
} hk_settings;

/* With HAK_DEBUG_GUARD: see guard.h. */
typedef struct hk_drawing {
    uint32_t left, every; /* allocations to the next drawn block; on average */
    uint64_t random;
    hak_frames_fn *frames; /* of a heap that of the whole */
    void *user;
} hk_drawing;

/* What is kept by those that look on: see api/watch.h. */
typedef struct hk_watch {
    hk_drawing drawing; /* with HK_GUARDED; of each heap */
    uint64_t placement; /* with HK_PLACED: the state of the generator; of each heap */
    /* Of a heap: see its shared context. */
    _Atomic(void *) asked;            /* with HAK_DEBUG_CHECK: see asked.h */
    struct hk_quarantine *quarantine; /* see api/quarantine.c */
    struct hk_trace *trace;           /* see api/trace.c */
    uint64_t canary;                  /* what the patterns are made of */
} hk_watch;

struct hak_ctx {
    /* A block of another context may lie before it. And the context begins a page, as many blocks do: a
     * processor that compares a load with earlier stores looks at the offset in the page first, so that
     * stores to such blocks would hold up loads of this line. */
    char beside[HK_BESIDE];

    /* What the fast paths read, a cache line; see hakmem/inline.h, too. */
    uintptr_t base; /* of the extent whose blocks go through magazines */
    size_t units;
    uint32_t *map;
    uint32_t key;                       /* id of the context's first unit << 8; a map entry is key | kind */
    uint8_t checked;                    /* HK_CHECKED... */
    uint8_t role;                       /* HK_LOCAL, or a part of a shared context: HK_SHARED, HK_HEAP */
    hk_bin *bins;                       /* all zero, read-only, until the first class gets a slab */
    _Atomic uintptr_t thread;           /* of a heap: register of its thread; 0 = nobody's, or no heap */
    hk_counter live_bytes, live_blocks; /* blocks in magazines included */

    hk_host host;
    hk_meta meta;
    union {
        hk_heaps *heaps; /* of a shared context; NULL for a local context */
        hk_heap *heap;   /* of a heap */
        hk_member *member;
    };
    hak_ctx *whole; /* what the host has: of a heap its shared context, of others the context itself */
    hak_space *space;
    hk_extent *extent;
    hk_owned owned;
    hk_label_names labels;
    uint16_t head; /* bytes of the context and what belongs to it, at the beginning of its first unit */
    uint8_t debug; /* HAK_DEBUG_... below 256, and HK_DEBUG_PROFILE */
    uint8_t first_offset;  /* bytes by which the first block of a slab begins later */
    uint8_t populate_from; /* slabs of a class; HK_POPULATE_NEVER */
    bool own_space, retired, max_align;
    hk_magazines magazines;
    hk_account account;
    hk_bigs big;
    hk_packed packed;
    hk_sampling sampling;
    hk_settings settings;
    hk_watch *watch; /* NULL for nearly all: neither HAK_DEBUG_CHECK nor HAK_DEBUG_GUARD */
    hk_judge *judge; /* of a heap: that of its shared context */
};
_Static_assert(offsetof(struct hak_ctx, base) == 64, "the fast paths' fields are a cache line");
_Static_assert(offsetof(struct hak_ctx, host) == 128, "the fast paths' fields are a cache line");

/* Of a context with HK_GUARDED. */
HK_INLINE hk_drawing *hk_drawing_of(const hak_ctx *ctx)
{
    return &ctx->watch->drawing;
}

HK_INLINE hak_ctx *hk_whole(const hak_ctx *ctx)
{
    return ctx->whole;
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

#endif
