/* hakmem, profiles: what the memory of a context is for, by call site or by stack.
 *
 *       hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
 *       hak_profile_start(ctx, &options);
 *       ... hak_alloc_cs(ctx, n, label, HAK_CALLSITE()) ...
 *       hak_profile_visit(ctx, print_stack, NULL);
 *
 * SAMPLED    Each allocated byte has the same chance to be drawn, one in `mean` on average; a block of which a
 *            byte is drawn is a sample. A sample of n bytes stands for n / (1 - exp(-n / mean)) bytes, so that
 *            every sum is an estimate without bias, and comes with its standard error.
 * EXACT      Every block is a sample; all numbers are exact and all errors 0. Each live block costs 50 to 60
 *            bytes of the table, each allocation and free a look-up.
 *
 * Blocks are counted by their usable bytes (hak_usable_size), as everywhere in hakmem: in an exact profile that
 * runs from the beginning, the live bytes of all stacks are the live bytes of the context. A realloc that moves
 * is an allocation and a free; one in place goes on under the stack that made the block.
 *
 * CONVENTIONS are those of hakmem.h. A shared context's functions may be called by any thread, but no other one
 * may be inside hak_profile_visit while hak_profile_start or _reset runs. A thread that is at work takes part,
 * or no more, from its next allocation on that finds nothing at hand.
 *
 * COST       Off: none. Sampled: each allocation takes a few instructions more, frees none but in a unit of
 *            16 KiB in which a sampled block lives. What is kept lies in memory of the context, which is
 *            committed, and counted as metadata.
 *
 * A profile ends with its context. Since 0.1. */
#ifndef HAKMEM_PROFILE_H
#define HAKMEM_PROFILE_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hak_profile_mode { HAK_PROFILE_SAMPLED, HAK_PROFILE_EXACT } hak_profile_mode;

/* The frames of the allocation that is being made, the innermost first, at most `room` of them; returns how
 * many. Numbers of any meaning: addresses of code, or what the host knows lines by. Runs inside the allocation,
 * on its thread, with no lock held: it must not call into ctx, and cannot fail. ctx: the one that
 * hak_profile_start was given. site: of the allocation. */
typedef size_t hak_frames_fn(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room);

enum { HAK_PROFILE_DEPTH_MOST = 128 };

typedef struct hak_profile_options {
    size_t size;           /* sizeof(hak_profile_options), by HAK_PROFILE_OPTIONS_INIT */
    hak_profile_mode mode; /* default HAK_PROFILE_SAMPLED */
    size_t mean;           /* sampled: bytes to a sample on average. 0 = 512 KiB; 1 KiB to 1 TiB */
    unsigned depth;        /* most frames of a stack. 0 = 32; at most HAK_PROFILE_DEPTH_MOST */
    size_t table_bytes;    /* most that stacks, samples and marks take. 0 = 1 MiB; 64 KiB to 1 TiB. It begins
                              with 32 KiB and grows by need */
    hak_frames_fn *frames; /* NULL = the call site alone tells stacks apart */
    void *user;            /* for `frames` */
    uint64_t seed;         /* of the draws: the same seed draws the same bytes */
    bool frames_alone;     /* where the host gives frames, stacks of the same ones are one, of whatever sites */
    bool one_by_one;       /* allocations of a local context are counted one by one, not by the batch: for hosts
                              that call hak_alloc_counted (hakmem/inline.h) */
} hak_profile_options;
#define HAK_PROFILE_OPTIONS_INIT                                                                             \
    {                                                                                                        \
        sizeof(hak_profile_options), HAK_PROFILE_SAMPLED, 0, 0, 0, NULL, NULL, 0, false, false               \
    }

/* What is wrong with the options, in one line; NULL = nothing. Cost: constant. [any thread] */
HAK_API const char *hak_profile_options_error(const hak_profile_options *options);
/* Begins a profile; options NULL = defaults. What an earlier one left is forgotten. Blocks that are live
 * already are not in it. 0 = ok; -1 = the options are broken, or a profile runs already; -2 = no memory, or over
 * the limit. Nothing changed if it is not 0. Cost: a step for each size class; one for each sample that an
 * earlier profile left. */
HAK_API int hak_profile_start(hak_ctx *ctx, const hak_profile_options *options);
/* No more samples from now on. What there is stays, and frees are still counted. 0 = ok; -1 = none runs.
 * Cost: a step for each size class. */
HAK_API int hak_profile_stop(hak_ctx *ctx);
/* Forgets everything, marks too; a profile that runs goes on with nothing. A local context gets all memory
 * back if none runs, a shared one all but the first 32 KiB. 0 = ok; -1 = there is none. Cost: some steps for
 * each live sample, and clearing the table. */
HAK_API int hak_profile_reset(hak_ctx *ctx);

/* What a stack's blocks are like. SMALL_FREQUENT: up to 1 KiB on average, and one in a thousand of all blocks
 * at least. LARGE_INFREQUENT: above 32 KiB on average. MEDIUM: what is left. UNKNOWN: less than two samples. */
typedef enum hak_profile_class {
    HAK_PROFILE_UNKNOWN,
    HAK_PROFILE_SMALL_FREQUENT,
    HAK_PROFILE_MEDIUM,
    HAK_PROFILE_LARGE_INFREQUENT
} hak_profile_class;

enum { HAK_PROFILE_LIFETIMES = 48 };

/* All blocks of one stack, site and label. Blocks and bytes are estimates, or exact. Valid until the callback
 * returns, `frames` until the profile is reset, started anew or gone. */
typedef struct hak_profile_stack {
    size_t size;
    uint32_t id;     /* the same over visits; from 1, without gaps */
    hak_label label; /* that the allocation was given */
    hak_site site;   /* 0 where frames alone tell stacks apart */
    const uintptr_t *frames; /* the innermost first */
    unsigned depth;          /* 0 = the host gives no frames */
    uint64_t samples, live_samples;
    double alloc_blocks, alloc_bytes; /* since the start */
    double live_blocks, live_bytes;
    double peak_blocks, peak_bytes; /* what was live when the context was at its highest */
    double alloc_bytes_error, live_bytes_error, peak_bytes_error; /* standard errors */
    double mean_bytes;                                            /* of a block */
    size_t largest_bytes;                                         /* among the samples */
    double age_ns;                                                /* of live blocks, on average */
    double lifetime[HAK_PROFILE_LIFETIMES]; /* blocks that died, by log2 of their life in ns. Exact profiles
                                               look at the clock at every 64th event only */
    double grown_blocks, grown_bytes;       /* reallocs to a larger size, and by how much */
    hak_profile_class kind;
    bool long_lived; /* most of what died or is older than a second lived for a second */
} hak_profile_stack;
/* Return false to stop. Must not call into the context. */
typedef bool hak_profile_fn(void *user, const hak_profile_stack *stack);
/* Every stack, in the order of its first sample. 0 = all seen, 1 = stopped by fn, -1 = there is no profile.
 * Cost: up to a thousand instructions for each stack, and a step for each live sample. */
HAK_API int hak_profile_visit(const hak_ctx *ctx, hak_profile_fn *fn, void *user);

typedef struct hak_profile_info {
    size_t size; /* sizeof(hak_profile_info), set by the caller */
    hak_profile_mode mode;
    bool running;
    size_t mean;
    uint64_t samples;
    size_t stacks;
    size_t dropped_stacks;  /* samples whose stack was new and found no room; not in `samples` */
    size_t dropped_samples; /* ... whose stack was known */
    size_t table_bytes;     /* what stacks, samples and marks take now */
    uint64_t started_ns;    /* by the clock of the space */
    unsigned marks; /* windows begun by hak_profile_mark */
} hak_profile_info;
/* Fills in *info. 0 = ok; -1 = size is not set, or there is no profile. Cost: constant. */
HAK_API int hak_profile_stats(const hak_ctx *ctx, hak_profile_info *info);

/* ---- Windows ------------------------------------------------------------------------------------- */

/* Begins a window: what each stack is at is kept. name: copied, its first 47 bytes; NULL = "". Returns the number
 * of the window, from 1; -1 = there is no profile, -2 = no room in the table. Cost: a step, and 48 bytes of the
 * table, for each stack. */
HAK_API int hak_profile_mark(hak_ctx *ctx, const char *name);

typedef struct hak_profile_window {
    size_t size;
    const char *name; /* valid until the profile is reset, started anew or gone */
    uint64_t at_ns;   /* when it began */
    size_t live_bytes, committed_bytes; /* of the context, then */
} hak_profile_window;
/* The windows, from number 1 on. Fills in up to `count`, returns how many there are; -1 = no profile. Cost: a
 * step for each window. */
HAK_API int hak_profile_marks(const hak_ctx *ctx, hak_profile_window *out, size_t count);
/* What changed from the beginning of window `from` to that of `to`; 0 is the start of the profile, the last
 * number
 * + 1 is now. Stacks of which something was allocated or freed meanwhile: alloc_* and live_* are differences,
 * of which live ones may be negative, and live_bytes_error is a bound; what is said of peaks, ages, lifetimes
 * and growth is 0. Else as hak_profile_visit; -1 also if there are no such windows, or to <= from. Cost: that
 * of hak_profile_visit. */
HAK_API int hak_profile_diff(const hak_ctx *ctx, unsigned from, unsigned to, hak_profile_fn *fn, void *user);

/* How the live bytes of a stack grew over the last windows, 32 at most. */
typedef struct hak_profile_growth {
    size_t size;
    uint32_t stack;                   /* its id */
    double bytes_a_window, low, high; /* slope (Theil and Sen), with its 95 % interval */
    double freed_share; /* of the blocks that were allocated before the middle of these windows */
    unsigned windows;   /* that were looked at */
    bool leak; /* it grew to the end, by more than three standard errors, and of those old blocks at most a
                  tenth is freed */
    char evidence[160]; /* that in one sentence */
} hak_profile_growth;
typedef bool hak_profile_growth_fn(void *user, const hak_profile_growth *growth);
/* Every stack whose slope is above 0 with its whole interval. At least 5 windows must have begun, of about the same
 * work each. 0 = all seen, 1 = stopped by fn, -1 = there is no profile. Cost: 500 steps for each stack, and one for
 * each live sample and stack. */
HAK_API int hak_profile_grown(const hak_ctx *ctx, hak_profile_growth_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
