/* hakmem, profiles: which call site or stack holds the memory of a context.
 *
 *       hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
 *       hak_profile_start(ctx, &options);
 *       ... hak_alloc_cs(ctx, n, label, HAK_CALLSITE()) ...
 *       hak_profile_visit(ctx, print_stack, NULL);
 *
 * SAMPLED    Each allocated byte has the same chance to be drawn, one in `mean` on average; a block with a
 *            drawn byte is a sample. A sample of n bytes stands for n / (1 - exp(-n / mean)) bytes, so every
 *            sum is an unbiased estimate, and comes with its standard error.
 * EXACT      Every block is a sample: all numbers are exact and all errors are 0. Each live block takes 50 to
 *            60 bytes of the table, and each allocation and free takes a look-up.
 *
 * COUNTED    The host counts: it asks for the record of a stack (hak_profile_counts_of), and adds what it
 *            allocates and frees to the record (hak_profile_count_*). For that the host has to know the
 *            record and the size of each block. All numbers are exact; ages and lifetimes are not known. The
 *            context itself does nothing, and its allocations are as fast as without a profile. Local
 *            contexts only.
 *
 * A block counts with its usable bytes, as everywhere in hakmem: hak_usable_size, and with HAK_DEBUG_CANARY
 * the bytes of the pattern too. COUNTED: with the bytes that the host says. In an exact profile that has run
 * from the beginning, the live bytes of all stacks therefore add up to the live bytes of the context. A
 * realloc that copies the block is an allocation and a free; a realloc that resizes the block in place, or
 * moves its pages, leaves it with the stack that allocated it. A block from before an exact profile began is
 * not in the profile until a realloc copies the block or moves its pages.
 *
 * STABILITY  Stable.
 *
 * CONVENTIONS are those of hakmem.h. Any thread may call these functions on a shared context, but no other
 * thread may be inside hak_profile_visit while hak_profile_start or _reset runs. A thread that is allocating
 * joins or leaves the profile with its next allocation for which its magazine is empty; that allocation
 * counts.
 *
 * COST       Off: none. Sampled: each allocation takes a few more instructions; a free takes more only in a
 *            unit of 16 KiB with a live sampled block, up to 110 on average where each unit has one. Counted:
 *            some 15 instructions for each call below. The tables lie in committed memory of the context and
 *            count as metadata, or apart from the context (hak_profile_options.apart).
 *
 * A profile ends with its context. Since 0.1. */
#ifndef HAKMEM_PROFILE_H
#define HAKMEM_PROFILE_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hak_profile_mode {
    HAK_PROFILE_SAMPLED,
    HAK_PROFILE_EXACT,
    HAK_PROFILE_COUNTED
} hak_profile_mode;

/* Writes the frames of the current allocation, the innermost first, at most `room` of them, and returns their
 * number. hakmem does not interpret frames: they may be addresses of code or the host's numbers of lines.
 * Runs inside the allocation, on its thread, with no lock held. It must not call into ctx, and it cannot
 * fail. ctx: the context that hak_profile_start was given. site: the site of the allocation. */
typedef size_t hak_frames_fn(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room);

/* Is told that the block of n bytes at p became a sample, which stands for `bytes` bytes. user: as for
 * frames. Runs inside the call that allocates, on its thread, with no lock held, and must not call into ctx.
 * As no lock is held, a thread may be about to run the function when the profile is stopped, reset or started
 * with another one: the function and `user` stay valid until no thread is inside of an allocation, realloc or
 * free of the context. */
typedef void hak_sample_made_fn(void *user, const void *p, size_t n, double bytes);
/* Is told that the block at p, a sample, is about to be freed, has moved elsewhere, changes hands
 * (hak_profile_reuse), or is no sample any more because it shrank. Called after hak_profile_stop too, for
 * samples from before. Not called for what hak_profile_reset, hak_profile_start and hak_ctx_destroy forget,
 * nor for a block that is resized in place and stays a sample. A realloc that moves the pages of a block
 * tells of the old and the new place after the move; in a shared context another thread may have been told of
 * a sample at the old place by then. Runs as hak_sample_made_fn does, and stays valid as long, inside of
 * frees too. */
typedef void hak_sample_gone_fn(void *user, const void *p);

enum { HAK_PROFILE_DEPTH_MOST = 128 };

typedef struct hak_profile_options {
    size_t size;           /* sizeof(hak_profile_options), by HAK_PROFILE_OPTIONS_INIT */
    hak_profile_mode mode; /* default HAK_PROFILE_SAMPLED */
    size_t mean;           /* sampled: mean bytes between samples. 0 = 512 KiB; 1 KiB to 1 TiB */
    unsigned depth;        /* frames kept of a stack, at most. 0 = 32; at most HAK_PROFILE_DEPTH_MOST */
    size_t table_bytes;    /* most bytes for stacks, samples and marks. 0 = 1 MiB; 64 KiB to 1 TiB. The table
                              begins with 32 KiB and grows when it is full */
    hak_frames_fn *frames; /* NULL = stacks are call sites. COUNTED: not called */
    void *user;            /* for `frames` */
    uint64_t seed;         /* of the draws: the same seed draws the same bytes */
    bool frames_alone;     /* stacks with the same frames are one stack, even if their call sites differ */
    bool one_by_one;       /* the profile counts allocations of a local context one by one, not in batches:
                              for hosts that call hak_alloc_counted (hakmem/inline.h) */
    size_t (*resident)(void); /* returns the resident bytes of the process, 0 = not known. hak_profile_mark
                              calls it on its own thread, since hakmem reads no files. A window that begins
                              by window_ns calls it inside of an allocation, with no lock held, so it must
                              not call into the context. NULL = not known */
    void (*gone)(void *user); /* COUNTED: hak_profile_reset or _start is about to delete all records, so the
                                 host must forget which block belongs to which record. Must not call into the
                                 context. Not called when the context is destroyed. NULL = nothing */
    uint64_t
        window_ns; /* each so many nanoseconds, by the clock of the space, the next sample begins a window,
                           or hak_ctx_tick or hak_profile_turn (COUNTED: only these). There are at most 32
                           such windows: when they are full, each two neighbours are joined, and the next
                           ones are twice as long, so that all have one length. They take up to half of the
                           table; if that is not enough, there are fewer. The first hak_profile_mark deletes
                           them. 0 = none; 1 ms to 2 years */
    hak_sample_made_fn *sample_made; /* for tracers that keep books of their own. NULL = nothing is told */
    hak_sample_gone_fn *sample_gone; /* COUNTED: neither is called. Since 0.1 */
    bool apart; /* the table takes pages of the space that no context is charged for: no limit counts them,
                   and of hak_stats only reserved_bytes has them. If the space is in a buffer of the host,
                   the table lies in the context all the same. A shared context keeps the first 32 KiB where
                   its first profile had them */
    hak_label bounded_label; /* the label of blocks that the runtime itself keeps within a bound, such as
                                compiled code, and of no other blocks: hak_profile_grown says of their
                                growth that it fills, and never that it leaks. 0 = none. Since 0.1 */
} hak_profile_options;
#define HAK_PROFILE_OPTIONS_INIT                                                                             \
    {                                                                                                        \
        sizeof(hak_profile_options), HAK_PROFILE_SAMPLED, 0, 0, 0, NULL, NULL, 0, false, false, NULL, NULL,  \
            0, NULL, NULL, false, 0                                                                          \
    }

/* Returns what is wrong with the options, in one line; NULL = nothing. Cost: constant. [any thread] */
HAK_API const char *hak_profile_options_error(const hak_profile_options *options);
/* Begins a profile and drops the results of an earlier one; options NULL = defaults. Blocks that are live
 * already are not part of the new profile. Returns 0; -1 if the options are broken, a profile is running, or
 * the context is shared and the mode COUNTED; -2 if memory is out or the limit is reached. On an error
 * nothing changes. Cost: a step for each size class, and one for each sample of an earlier profile. */
HAK_API int hak_profile_start(hak_ctx *ctx, const hak_profile_options *options);
/* Takes no more samples. The results stay, and frees of sampled blocks are still counted. Returns 0, or -1 if
 * no profile is running. Cost: a step for each size class. */
HAK_API int hak_profile_stop(hak_ctx *ctx);
/* Drops all results and marks; a running profile starts again from nothing. If no profile is running, a local
 * context gets back all memory of the profile, a shared context all but the first 32 KiB. Returns 0, or -1 if
 * there is no profile. Cost: some steps for each live sample, and clearing the table. */
HAK_API int hak_profile_reset(hak_ctx *ctx);

/* The kind of a stack's blocks. SMALL_FREQUENT: 1 KiB or less on average, and at least one in a thousand of
 * all blocks. LARGE_INFREQUENT: more than 32 KiB on average. MEDIUM: all others. UNKNOWN: fewer than two
 * samples. */
typedef enum hak_profile_class {
    HAK_PROFILE_UNKNOWN,
    HAK_PROFILE_SMALL_FREQUENT,
    HAK_PROFILE_MEDIUM,
    HAK_PROFILE_LARGE_INFREQUENT
} hak_profile_class;

enum { HAK_PROFILE_LIFETIMES = 48 };

/* All blocks of one stack, site and label. Numbers of blocks and bytes are estimates in a sampled profile,
 * exact in an exact one. Valid until the callback returns; `frames` until the profile is reset, started again
 * or destroyed. */
typedef struct hak_profile_stack {
    size_t size;
    uint32_t id;             /* the same in every visit; from 1, without gaps */
    hak_label label;         /* of the allocation */
    hak_site site;           /* 0 with frames_alone */
    const uintptr_t *frames; /* the innermost first */
    unsigned depth;          /* 0 = the host gave no frames */
    uint64_t samples, live_samples;
    double alloc_blocks, alloc_bytes; /* since the start */
    double live_blocks, live_bytes;
    double peak_blocks, peak_bytes; /* what was live when the context had most live bytes */
    double alloc_bytes_error, live_bytes_error, peak_bytes_error; /* standard errors */
    double mean_bytes;                                            /* of a block */
    size_t largest_bytes;                                         /* among the samples */
    double age_ns;                                                /* of live blocks, on average */
    double lifetime[HAK_PROFILE_LIFETIMES]; /* freed blocks by log2 of their lifetime in ns. An exact profile
                                               reads the clock only at every 64th event */
    double grown_blocks, grown_bytes;       /* reallocs to a larger size, and the bytes added */
    hak_profile_class kind;
    bool long_lived;     /* of the blocks that were freed or are at least a second old, most lived for a
                            second or more */
    double pinned_bytes; /* free memory that cannot go back because these blocks lie beside it: the sum of
                            hak_block_pins over the live blocks. COUNTED: 0 */
} hak_profile_stack;
/* Return false to stop. Must not call into the context. */
typedef bool hak_profile_fn(void *user, const hak_profile_stack *stack);
/* Calls fn for every stack, in the order of first samples. Returns 0 if all were visited, 1 if fn stopped, -1
 * if there is no profile. Cost: up to a thousand instructions for each stack, and for each live sample that
 * of hak_block_pins. */
HAK_API int hak_profile_visit(const hak_ctx *ctx, hak_profile_fn *fn, void *user);

/* Notes that the block at p changes hands without being freed, as objects do that a runtime takes from a free
 * list of its own. If the block is a live sample, it counts as freed for the stack that had it, and as
 * allocated by the stack that runs now. label, site: as for the functions that allocate. ctx: the calling
 * thread's heap, or the context. Calls hak_profile_options.frames. Returns 1 if the block was a sample, 0 if
 * not, or if the table has no room for the new stack; -1 if no profile is running, or a COUNTED one. Cost: a
 * look-up, and for a sample that of a new one. Since 0.1. */
HAK_API int hak_profile_reuse(hak_ctx *ctx, const void *p, hak_label label, hak_site site);

typedef struct hak_profile_info {
    size_t size; /* sizeof(hak_profile_info), set by the caller */
    hak_profile_mode mode;
    bool running;
    size_t mean;
    uint64_t samples;
    size_t stacks;
    size_t dropped_stacks;  /* samples of new stacks for which there was no room; not in `samples` */
    size_t dropped_samples; /* samples of known stacks for which there was no room; not in `samples` */
    size_t table_bytes;     /* bytes of stacks, samples and marks now */
    uint64_t started_ns;    /* by the clock of the space */
    unsigned marks;         /* number of windows, without the one that began with the profile */
    uint64_t window_ns;     /* how long a window by hak_profile_options.window_ns is now */
    double dropped_bytes;   /* allocated bytes for which the dropped samples stood. COUNTED: 0 */
    size_t apart_bytes;     /* part of table_bytes that lies apart from the context: of hak_stats only
                           reserved_bytes has them. Since 0.1 */
} hak_profile_info;
/* Fills in *info. Returns 0, or -1 if info->size is not set or there is no profile. Cost: constant; COUNTED:
 * a step for each stack. */
HAK_API int hak_profile_stats(const hak_ctx *ctx, hak_profile_info *info);

/* ---- Counted by the host -------------------------------------------------------------------------- */

/* What the host has counted for one stack and label. */
typedef struct hak_profile_counts {
    uint64_t alloc_blocks, alloc_bytes, freed_blocks, freed_bytes;
    uint64_t peak_blocks, peak_bytes; /* kept by the functions below */
    uint64_t largest_bytes, grown_blocks, grown_bytes;
    uint32_t peak_seen; /* the end of the tally's, kept by the functions below */
    uint32_t id;        /* as hak_profile_stack.id; set by hakmem */
} hak_profile_counts;

/* The sums over all stacks: live bytes now and at the peak. */
typedef struct hak_profile_tally {
    uint64_t live_bytes, peak_bytes, peak_seen;
    uint64_t missed; /* blocks that the host could not count, for hak_profile_info.dropped_samples */
} hak_profile_tally;

/* Returns the record of these frames and this label, and makes the record if there is none. frames NULL = no
 * frames; frames beyond hak_profile_options.depth are cut. The record stays until the profile is reset or
 * started again, which hak_profile_options.gone tells, or until the context is destroyed. Returns NULL if
 * there is no room (dropped_stacks counts it) or no counted profile is running. Cost: a look-up; a host keeps
 * the pointer for the next allocation at the same place. */
HAK_API hak_profile_counts *hak_profile_counts_of(hak_ctx *ctx, const uintptr_t *frames, unsigned depth,
                                                  hak_label label);
/* Returns the tally for the functions below; valid as long as the records. NULL = there is no counted
 * profile. The tally stays after hak_profile_stop, so that the host can count frees. Cost: constant. */
HAK_API hak_profile_tally *hak_profile_tally_of(hak_ctx *ctx);

/* Keeps what a record had at the peak. A new peak copies no record; a record saves its numbers when it
 * changes for the first time after the peak. */
static inline void hak_profile_count_peak_(const hak_profile_tally *all, hak_profile_counts *counts)
{
    if (counts->peak_seen == (uint32_t)all->peak_seen) return;
    counts->peak_seen = (uint32_t)all->peak_seen;
    counts->peak_blocks = counts->alloc_blocks - counts->freed_blocks;
    counts->peak_bytes = counts->alloc_bytes - counts->freed_bytes;
}
static inline void hak_profile_count_more_(hak_profile_tally *all, hak_profile_counts *counts, size_t more,
                                           size_t size)
{
    counts->alloc_bytes += more;
    if (size > counts->largest_bytes) counts->largest_bytes = size;
    all->live_bytes += more;
    if (all->live_bytes <= all->peak_bytes) return;
    all->peak_bytes = all->live_bytes;
    all->peak_seen++;
}

/* Counts a new block of `size` bytes, as the host measures them. */
static inline void hak_profile_count_alloc(hak_profile_tally *all, hak_profile_counts *counts, size_t size)
{
    hak_profile_count_peak_(all, counts);
    counts->alloc_blocks++;
    hak_profile_count_more_(all, counts, size, size);
}
/* Counts that a block of the record was freed. */
static inline void hak_profile_count_free(hak_profile_tally *all, hak_profile_counts *counts, size_t size)
{
    hak_profile_count_peak_(all, counts);
    counts->freed_blocks++;
    counts->freed_bytes += size;
    all->live_bytes -= size;
}
/* Counts that a block of the record was resized and stays with the record. */
static inline void hak_profile_count_resize(hak_profile_tally *all, hak_profile_counts *counts,
                                            size_t old_size, size_t size)
{
    hak_profile_count_peak_(all, counts);
    if (size > old_size) {
        counts->grown_blocks++;
        counts->grown_bytes += size - old_size;
        hak_profile_count_more_(all, counts, size - old_size, size);
    } else {
        counts->freed_bytes += old_size - size;
        all->live_bytes -= old_size - size;
    }
}

/* ---- Windows ------------------------------------------------------------------------------------- */

/* Begins a window: keeps the counts of each stack that changed since the last one. name: the first 47 bytes
 * are copied; NULL = "". Returns the number of the window, from 1; -1 if there is no profile, -2 if the table
 * has no room. Cost: a step for each stack, and 64 bytes of the table for each stack that changed. */
HAK_API int hak_profile_mark(hak_ctx *ctx, const char *name);

/* Begins a window of hak_profile_options.window_ns if one is due, as hak_ctx_tick does beside its other work.
 * COUNTED: a host calls this now and then, so that its windows begin by the clock; not in the middle of a
 * function of the context. Returns 0; -1 if there is no profile. Cost: reads the clock; when a window begins,
 * that of hak_profile_mark. Since 0.1. */
HAK_API int hak_profile_turn(hak_ctx *ctx);

typedef struct hak_profile_window {
    size_t size;                        /* arrays are filled: it changes with HAK_LAYOUT only */
    const char *name;                   /* valid until the profile is reset, started again or destroyed */
    uint64_t at_ns;                     /* when it began */
    size_t live_bytes, committed_bytes; /* of the context, then */
    size_t resident_bytes; /* of the process, then, by hak_profile_options.resident; 0 = not known */
} hak_profile_window;
/* Describes the windows, from number 1. Fills in up to `count` of them and returns how many there are; -1 if
 * there is no profile. Cost: a step for each window. */
HAK_API int hak_profile_marks(const hak_ctx *ctx, hak_profile_window *out, size_t count);
/* Tells what changed between the beginning of window `from` and that of window `to`. 0 is the start of the
 * profile; the number after the last window is now. Calls fn for each stack that allocated or freed in
 * between: alloc_* and live_* are differences (live_* may be negative), live_bytes_error is an upper bound,
 * and peaks, ages, lifetimes and growth are 0. Returns what hak_profile_visit returns, and -1 also if there
 * are no such windows or to <= from. Cost: that of hak_profile_visit. */
HAK_API int hak_profile_diff(const hak_ctx *ctx, unsigned from, unsigned to, hak_profile_fn *fn, void *user);

/* Gets a live sample: its stack, the number of the window in which its block was allocated (0 = before the
 * first mark), and the bytes that the sample stands for. Return false to stop. Runs with the profile locked:
 * must neither call into the context nor allocate from it. */
typedef bool hak_profile_kept_fn(void *user, uint32_t stack, unsigned window, double bytes);
/* Calls fn for every live sample, in any order. Returns 0 if all were visited, 1 if fn stopped, -1 if there
 * is no profile. COUNTED: there are none. Cost: a step for each live sample and window. */
HAK_API int hak_profile_kept(const hak_ctx *ctx, hak_profile_kept_fn *fn, void *user);

/* What the growth of a stack looks like. */
typedef enum hak_profile_trend {
    HAK_PROFILE_GROWS, /* neither of the others: nothing says that it goes on */
    HAK_PROFILE_LEAKS, /* the same as `leak` */
    HAK_PROFILE_FILLS  /* the growth slows down or has stopped, like that of a cache that fills; or the
                          runtime bounds it (hak_profile_options.bounded_label) */
} hak_profile_trend;

/* How the live bytes of a stack grew. All windows up to now are examined; if there are more than 32, every
 * second, third and so on. Where the growth began later, only the later part of these is. A last window of
 * less than half the usual length counts with the one before. */
typedef struct hak_profile_growth {
    size_t size;
    uint32_t stack;                   /* its id */
    double bytes_a_window, low, high; /* slope (Theil and Sen), with its 95 % interval */
    double freed_share; /* of the old blocks: those allocated before the middle of these windows. COUNTED: a
                           lower bound, since it is not known which blocks are freed */
    unsigned windows;   /* how many the growth went over */
    bool leak;          /* the stack grew evenly until the end, by more than the error of its samples, to a
                           size that it never had before; and the blocks from the middle are still live, or
                           each window left something behind, or the growth was never interrupted */
    char evidence[192]; /* the reason for `leak` in one sentence */
    hak_profile_trend trend;
    double kept_share; /* of the bytes live at the middle of these windows, the share in blocks that live now.
                          COUNTED: an upper bound */
    double bytes_an_hour, low_an_hour, high_an_hour; /* the slope by the clock; 0 = it stood still */
    uint64_t since_ns;                               /* when the first of these windows began */
} hak_profile_growth;
typedef bool hak_profile_growth_fn(void *user, const hak_profile_growth *growth);
/* Calls fn for every stack whose whole interval of the slope is above 0. It needs at least 5 windows, each
 * with about the same work. Returns 0 if all were visited, 1 if fn stopped, -1 if there is no profile. Cost:
 * 2,000 steps for each stack, one for each mark and stack, and one for each live sample and stack that
 * grew. */
HAK_API int hak_profile_grown(const hak_ctx *ctx, hak_profile_growth_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
