/* profile/: stacks, and samples of live blocks. This folder includes heap/, whose blocks it reads; no
 * allocation path of heap/ calls it. The allocation paths of api/ count bytes down to the next sample and
 * hand the sample over to it; whoever frees in a watched unit asks it whether the block is a sample. A shared
 * context has one profile, and each of its heaps counts alone, because several Poisson processes of one rate
 * are together one such process. See docs/internals/profile.md. */
#ifndef HK_PROFILE_H
#define HK_PROFILE_H

#include "hakmem/profile.h"

#include "base/os_lock.h"
#include "base/quota.h"
#include "heap/ctx.h"

/* What all stacks have. */
typedef struct hk_stack {
    struct hk_stack *next;   /* in its bucket */
    struct hk_value *values; /* at the beginnings of windows, the last one first */
    uint32_t hash;
    hak_label label;
    uint16_t depth;
} hk_stack;

/* Sums are of estimates; `*_var` of their variances. */
typedef struct hk_sums {
    double alloc_blocks, alloc_bytes, live_blocks, live_bytes, peak_blocks, peak_bytes;
    double alloc_var, live_var, peak_var, freed_var;
    double grown_blocks, grown_bytes;
    uint64_t samples, live_samples, peak_seen;
    size_t largest;
} hk_sums;

/* All blocks of one stack, site and label. */
typedef struct hk_sampled {
    hk_stack stack;
    struct hk_sampled *younger; /* in the order of ids */
    hak_site site;
    uint32_t id;
    hk_sums sums;
    double age_sum, old_blocks, pinned; /* of live blocks, while the profile is visited */
    union {                             /* blocks that died, by log2 of their life */
        float weight[HAK_PROFILE_LIFETIMES];
        uint32_t count[HAK_PROFILE_LIFETIMES]; /* exact */
    } died;
    uintptr_t frames[];
} hk_sampled;

/* Counted by the host. A program has many of these, so that they have no more than the host needs: one lies behind the
 * other in the order of ids, and their sums are computed when somebody looks. */
typedef struct hk_tallied {
    hk_stack stack;
    hak_profile_counts counts;
    uintptr_t frames[];
} hk_tallied;

/* The depth of what lies behind the last stack in its pages: `next` is the first one of the following pages. */
enum { HK_STACK_GOES_ON = UINT16_MAX };

/* A block that lives. */
typedef struct hk_sample {
    struct hk_sample *next; /* in its bucket, or of those to use again */
    hk_sampled *stack;
    uintptr_t p;
    size_t size;     /* now */
    size_t eligible; /* bytes that had a chance to be drawn */
    uint64_t birth_ns;
} hk_sample;

/* What a stack was at, when a window began. The first four lie as in hk_sums, so that one look compares them. */
typedef struct hk_mark_value {
    double alloc_blocks, alloc_bytes, live_blocks, live_bytes, alloc_var, freed_var;
} hk_mark_value;

/* What a stack is at that the host counts. */
HK_INLINE hk_mark_value hk_tallied_now(const hk_stack *s)
{
    const hak_profile_counts *c = &((const hk_tallied *)s)->counts;
    return (hk_mark_value){.alloc_blocks = (double)c->alloc_blocks,
                           .alloc_bytes = (double)c->alloc_bytes,
                           .live_blocks = (double)(c->alloc_blocks - c->freed_blocks),
                           .live_bytes = (double)(c->alloc_bytes - c->freed_bytes)};
}

/* What a stack was at from mark `serial` on, until its next value. A stack that does not change has one value
 * for all marks. */
typedef struct hk_value {
    struct hk_value *before;
    uint64_t serial;
    hk_mark_value at;
} hk_value;

typedef struct hk_mark {
    struct hk_mark *before;
    uint64_t serial; /* grows, and stays when windows are joined */
    uint64_t at_ns;
    uint64_t born_ns; /* a block of before was born by then, all others later */
    size_t live_bytes, committed_bytes, resident_bytes;
    uint32_t number;
    char name[48];
} hk_mark;

/* Pages of the profile: units of the context, or apart from it. */
typedef struct hk_profile_pages {
    char *at; /* NULL = none */
    size_t bytes;
    hk_slab *slab; /* NULL: apart */
} hk_profile_pages;

/* At the beginning of its pages. */
typedef struct hk_profile_group {
    struct hk_profile_group *next;
    hk_profile_pages pages;
} hk_profile_group;

/* Where the next ones go. */
typedef struct hk_profile_area {
    char *at, *end;
} hk_profile_area;

typedef struct hk_buckets {
    void **at;
    size_t count;           /* a power of two */
    hk_profile_pages pages; /* none: in the first group */
} hk_buckets;

struct hk_profile {
    hk_profile_group group; /* the first */
    hk_lock lock;           /* of everything below; unused in a local context */
    hak_ctx *ctx;           /* local, or shared */
    hk_lock *memory;        /* to be held while units of a shared context are taken; NULL = local */
    const hk_counter *live; /* live bytes of the context */
    const hak_quota *heaps; /* what the heaps of a shared context have committed; NULL = local */
    atomic_bool running;
    _Atomic uint32_t runs; /* how often it was started */
    bool exact, counted, frames_alone, one_by_one, apart;
    hak_label bounded_label;
    uint8_t depth;
    uint8_t ticks; /* events since the clock was looked at */
    size_t mean, table_bytes, bytes;
    size_t apart_bytes; /* of `bytes` */
    hak_frames_fn *frames;
    void *user;
    size_t (*resident)(void);
    void (*gone)(void *user);
    hak_sample_made_fn *sample_made;
    hak_sample_gone_fn *sample_gone;
    uint64_t random, started_ns, now_ns;
    hk_profile_area room;     /* for stacks, and all else but what `aside` is for */
    hk_profile_area aside;    /* counted: for marks and values, so that stacks lie side by side */
    hk_profile_group *groups; /* all but the first */
    hk_sample *spare;
    hk_buckets stacks, samples;
    size_t stack_count, sample_count;
    hk_stack *oldest;
    hk_sampled *youngest;         /* counted: NULL */
    hk_mark *marks, *spare_marks; /* the last one first */
    hk_value *spare_values;
    size_t spare_value_count, value_bytes; /* bytes: of all values, those to use again too */
    uint64_t serial;                       /* of the last mark */
    uint64_t first_window_ns, window_ns;   /* as asked for, and now; 0 = the clock begins none */
    uint64_t window_due_ns;
    uint64_t drawn;
    size_t dropped_stacks, dropped_samples;
    double dropped_bytes;
    double live_bytes;       /* exact: of all stacks */
    double peak;             /* highest that live bytes were */
    uint64_t peak_seq;       /* ... how often they were higher than ever */
    hak_profile_tally tally; /* counted: the same by the host */
};

HK_INLINE hk_profile *hk_profile_of(const hak_ctx *ctx)
{
    return atomic_load_explicit(&ctx->whole->sampling.profile, memory_order_acquire);
}

/* The clock of the space. */
HK_INLINE uint64_t hk_profile_clock(const hk_profile *k)
{
    return k->ctx->space->os.clock(k->ctx->space->os.user);
}

HK_INLINE void hk_profile_lock(hk_profile *k)
{
    if (k->memory) hk_lock_take(&k->lock);
}

HK_INLINE void hk_profile_unlock(hk_profile *k)
{
    if (k->memory) hk_lock_drop(&k->lock);
}

/* ---- Draws (draw.c) ------------------------------------------------------------------------------- */

/* Bytes to the next sample. */
int64_t hk_profile_draw(hk_profile *k);
/* A number above 0, at most 1. */
double hk_profile_uniform(hk_profile *k);
/* How many blocks of n eligible bytes a sample stands for. */
double hk_profile_weight(const hk_profile *k, size_t n);

/* ---- Memory (table.c) ----------------------------------------------------------------------------- */

/* o is whole and right; the memory's lock is held if there is one. NULL = no memory. */
hk_profile *hk_profile_new(hak_ctx *ctx, const hak_profile_options *o, hk_lock *memory,
                           const hk_counter *live, const hak_quota *heaps);
/* Forgets everything, and counts by these options from then on. The caller holds the locks of the memory and
 * of the profile. */
void hk_profile_clear(hk_profile *k, const hak_profile_options *o);
/* Of a local context: gives all memory back. */
void hk_profile_end(hk_profile *k);
/* Makes room for one more stack of so many frames, and a sample, if it can. No lock may be held before; the
 * profile's lock is held afterwards, so that no other thread takes the room. */
void hk_profile_prepare(hk_profile *k, unsigned depth);
/* Gives back what lies apart from the context, which is about to go. */
void hk_profile_forget(hk_profile *k);
/* Room of n bytes; NULL = none. No lock may be held before; the profile's lock is held afterwards, in either
 * case. */
void *hk_profile_room(hk_profile *k, size_t n);
/* Brings `spare_values` to n. No lock may be held before; the profile's lock is held afterwards, in either
 * case. false = no room. */
bool hk_profile_values(hk_profile *k, size_t n);
/* The stack of these frames, made where it is new; NULL = no room. */
hk_stack *hk_profile_stack_of(hk_profile *k, const uintptr_t *frames, unsigned depth, hak_site site,
                              hak_label label);
/* A record for the block at p, where hk_profile_find has found none; NULL = no room. */
hk_sample *hk_profile_sample_new(hk_profile *k, uintptr_t p, hk_sample **link);
/* Returns the link to the record of the block at p; *link NULL = the block is no sample. */
hk_sample **hk_profile_find(const hk_profile *k, uintptr_t p);
/* Takes out what hangs there. Frees in its unit are fast again if no other sample is in it. */
void hk_profile_sample_drop(hk_profile *k, hk_sample **link);
/* A block with a mapping of its own may be about to move away from p: nobody finds its record there until
 * hk_profile_sample_arrive(), because another thread may get a mapping at p meanwhile. Returns the record, which may
 * be gone by then; NULL = the block is no sample. Neither lock may be held. */
hk_sample *hk_profile_sample_leave(hk_profile *k, const void *p);
/* The block that was at p is at q, which may be p. */
void hk_profile_sample_arrive(hk_profile *k, hk_sample *s, const void *p, const void *q);
/* The same as hk_stack_younger() of a profile of which it is known whether it is counted. */
HK_INLINE hk_stack *hk_stack_after(const hk_profile *k, bool counted, const hk_stack *s)
{
    if (!counted) return (hk_stack *)((const hk_sampled *)s)->younger;
    const char *at = (const char *)((const hk_tallied *)s)->frames + s->depth * sizeof(uintptr_t);
    const hk_stack *next = (const hk_stack *)(const void *)at;
    if (at != k->room.at && next->depth == HK_STACK_GOES_ON) next = next->next;
    return (const char *)next != k->room.at ? (hk_stack *)(uintptr_t)next : NULL;
}
/* Returns the stack that was made after s; NULL = none was. */
HK_INLINE hk_stack *hk_stack_younger(const hk_profile *k, const hk_stack *s)
{
    return hk_stack_after(k, k->counted, s);
}
#define HK_EACH_STACK(k, s) for (hk_stack *s = (k)->oldest; s; s = hk_stack_younger(k, s))
HK_INLINE const uintptr_t *hk_stack_frames(const hk_profile *k, const hk_stack *s)
{
    return k->counted ? ((const hk_tallied *)s)->frames : ((const hk_sampled *)s)->frames;
}
HK_INLINE uint32_t hk_stack_id(const hk_profile *k, const hk_stack *s)
{
    return k->counted ? ((const hk_tallied *)s)->counts.id : ((const hk_sampled *)s)->id;
}
/* Returns the sums of a stack as they are by now. */
hk_sums hk_stack_sums(const hk_profile *k, const hk_stack *s);

/* ---- Counted by the host (counted.c) -------------------------------------------------------------- */

/* The record of these frames; NULL = no room. */
hak_profile_counts *hk_profile_counts_of(hk_profile *k, const uintptr_t *frames, unsigned depth,
                                         hak_label label);
/* Brings the sums over all stacks to what the host has counted, if it does. */
void hk_profile_fold(hk_profile *k);

/* ---- Samples (sample.c) --------------------------------------------------------------------------- */

/* Records p, a new block of the heap, as a sample; `eligible` bytes had a chance. size: of the block, 0 =
 * look. No lock may be held. */
void hk_profile_add(hak_ctx *heap, void *p, size_t size, size_t eligible, hak_label label, hak_site site);
/* Notes that a block of the context is about to be freed, by any thread. */
HK_NOINLINE void hk_profile_free(hk_profile *k, const void *p);
HK_INLINE void hk_profile_freed(const hak_ctx *ctx, const void *p)
{
    hk_profile *k = hk_profile_of(ctx);
    if (HK_UNLIKELY(k != NULL)) hk_profile_free(k, p);
}
/* Notes that the block at p changes hands, see hak_profile_reuse. false = it is no sample, or there is no room
 * for its stack. No lock may be held. */
bool hk_profile_reused(hak_ctx *heap, const void *p, hak_label label, hak_site site);
/* Notes that the block at p, of `old` bytes, is now at q and has n bytes. The heap's thread calls this. */
void hk_profile_resized(hak_ctx *heap, const void *p, void *q, size_t old, size_t n, hak_label label,
                        hak_site site);
/* Notes that the block at p is about to move to a larger one. */
void hk_profile_grown(hk_profile *k, const void *p, size_t n);

/* ---- Windows (windows.c, growth.c) ---------------------------------------------------------------- */

enum { HK_WINDOWS_TIMED = 32 };
/* Begins a window if the clock says so. No lock is held. */
HK_NOINLINE void hk_profile_turn(hk_profile *k);

/* Begins a window with the bytes of `now`; its number, or 0 = no room. */
uint32_t hk_profile_mark(hk_profile *k, const char *name, const hak_profile_window *now);
/* A stack at the mark. */
hk_mark_value hk_profile_value_at(const hk_mark *m, const hk_stack *s);
/* A stack at the beginning of window `number`: 0 is the start, above the last one is now. */
hk_mark_value hk_profile_value(const hk_profile *k, const hk_stack *s, uint32_t number);
/* How the stack grew over the windows. false = not, or they are too few. */
bool hk_profile_growth(hk_profile *k, const hk_stack *s, hak_profile_growth *out);

#endif
