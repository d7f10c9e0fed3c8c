/* hakmem, learners: an object that tries out numbers of a policy and keeps those that pay.
 *
 *       hak_learner *learner = hak_learner_new(NULL, NULL);
 *       hak_learner_add(learner, ctx);
 *       ... the host works, counts with hak_learner_progress, and calls hak_ctx_tick(ctx, 0) ...
 *       hak_policy *learned = hak_learner_policy(learner);      // for the next start: hak_policy_print
 *
 * A learner has no thread and no clock: it looks at its contexts when the host calls hak_ctx_tick. The
 * learner cuts time into windows of at least hak_learner_options.window_ns. Each window has a cost:
 *
 *     the host's time for one unit of its progress, relative to the first windows; if the host counts no
 *     progress, 1 + the share of the window's time that page faults (fault_ns each; a page of a huge one
 *     huge_ns) and system calls (call_ns each) take
 *     + price * MiB that are held: retained pages, and what is committed and not live
 *
 * Time is that of hak_learner_options.cpu_ns, if the host gives it: the CPU time of the process, which does
 * not depend on what else the machine does, nor on how long the program waits. Otherwise time is that of the
 * ticks.
 *
 * WHAT IT DECIDES
 *   mode             HAK_MODE_LEAN, BALANCED or FAST. The learner tries the next mode on either side. A step up
 *                    can save the time of pages and calls, a step down the memory held; the learner does not
 *                    try a step that can save too little. UCB1 (Auer, Cesa-Bianchi, Fischer, 2002) chooses
 *                    between the steps. The first window after a change is ignored, since it still has the
 *                    pages of the window before. A step stays if it saves 8 % of the cost above 1 in each of
 *                    three windows; otherwise it is undone at once. Where costs vary more than that by
 *                    themselves, the mean of eight windows decides, or of sixteen if eight seem better; the
 *                    mean must also be better by the standard error of the difference. Filling and flushing
 *                    magazines (70 ns each) varies too much between windows for a trial to judge, so a higher
 *                    mode is assumed to save a tenth of it. No step is reversed within cool_ns. Numbers that
 *                    the policy or the options of the context give go before the mode. A context in
 *                    HAK_MODE_MINIMAL keeps that mode. A learner that begins with HAK_MODE_FAST and
 *                    keeps_speed has the speed at once, and only tries whether less memory does as well: no
 *                    window costs more pages than one of HAK_MODE_BALANCED would.
 *   retained_bytes   Powers of two, by the same rules, after the mode and from the number that the mode gives.
 *   expected_bytes   If a heap grew by a quarter in each of three windows, the learner expects the same growth
 *                    for four more. If that takes the heap past huge_from, the learner tells its context at
 *                    once. It takes the forecast back if the heap does not reach half of it.
 *                    hak_learner_policy reports the size that the heap did reach.
 *   slab_sizes       Sizes of up to 512 bytes that came and went in three of four contexts, once at least
 *                    eight contexts ended while they were learned from. hak_learner_policy names these sizes
 *                    for contexts to come. A context that lived long adds nothing: keeping a slab of 16 KiB so
 *                    long costs more, at this price, than the 2.5 us that the slab saves.
 *
 * A trial that was undone is remembered, with what was seen: hak_learner_policy writes it (hak_undone), and a
 * learner whose first context has such a policy does not repeat the trial before its first canary. It does
 * where the price is another, or where a fault costs less than half or more than twice as much as then.
 *
 * PHASES  LEARNING lasts until no step is better. In FROZEN the learner tries nothing, except that after every
 *         40 windows a CANARY tries once more a step that could save something, of the mode and of
 *         retained_bytes in turn. Three things end the freeze: a step of a CANARY that is kept; two windows in
 *         which the shares of sizes differ from those before the freeze (the differences of all shares sum
 *         to 0.3 more than is usual; 2 is the most); and two windows whose cost differs from the mean by
 *         more than 2 % of the time and four standard deviations.
 *
 * STABILITY  Experimental: what a learner decides, and by which rules, may change.
 *
 * Threads: a learner may have contexts of several threads. It looks at each context, and changes it, only in
 * that context's own hak_ctx_tick. The contexts of one learner should do the same kind of work, in one space
 * or in spaces of their own. Since 0.1.
 *
 * COST  Each tick takes about 0.1 us more; hak_learner_look takes that alone. A look at a context takes about
 *       3 us. A window has eight looks; the first window has one each time its age has grown by an eighth.
 *       The end of a window takes a step for each slab. */
#ifndef HAKMEM_LEARN_H
#define HAKMEM_LEARN_H

#include <hakmem/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hak_learner hak_learner;

typedef enum hak_phase { HAK_PHASE_LEARNING, HAK_PHASE_FROZEN, HAK_PHASE_CANARY } hak_phase;

typedef enum hak_decision_kind {
    HAK_DECISION_WINDOW,   /* no decision: a window is over. observed: its cost */
    HAK_DECISION_TRY,      /* the next windows run with `to`. expected: the cost without it */
    HAK_DECISION_KEEP,     /* `to` is kept. expected: the cost before; observed: the cost with it */
    HAK_DECISION_UNDO,     /* back to `to`, since `from` was not better. expected, observed: as for KEEP */
    HAK_DECISION_FREEZE,   /* no step is better. observed: the cost */
    HAK_DECISION_THAW,     /* the learner learns again; text says why */
    HAK_DECISION_FORECAST, /* expected_bytes is `to` from now on. expected: bytes; observed: bytes now */
    HAK_DECISION_MET,      /* the forecast came true. expected, observed: bytes */
    HAK_DECISION_MISSED    /* the forecast did not come true: expected_bytes is `to` again. expected,
                              observed: bytes */
} hak_decision_kind;

typedef struct hak_decision {
    size_t size;
    uint64_t window; /* its number, from 1 */
    uint64_t at_ns;  /* by the clock of the ticks */
    hak_decision_kind kind;
    hak_phase phase;
    const char *number; /* the field of hak_tuning, or "mode"; NULL = none */
    size_t from, to;    /* its values; of "mode" a hak_mode */
    double expected, observed;
    char text[200]; /* the same in one sentence */
} hak_decision;

/* A window that is over. */
typedef struct hak_window {
    size_t size;
    uint64_t window;                    /* its number */
    uint64_t at_ns;                     /* its end */
    size_t live_bytes, committed_bytes; /* of the largest context */
    size_t retained_bytes;              /* of all spaces */
    double cost;
    size_t resident_bytes; /* of the process, by hak_learner_options.resident; 0 = not known */
} hak_window;

/* Called within hak_ctx_tick, on its thread, while the learner is locked. It must not call the learner or a
 * context. */
typedef void hak_decision_fn(void *user, const hak_decision *decision);

typedef struct hak_learner_options {
    size_t size;          /* sizeof(hak_learner_options), by HAK_LEARNER_OPTIONS_INIT */
    uint64_t window_ns;   /* shortest window; choose it longer than the waves of the work. With cpu_ns a
                             window lasts until a hundredth of it was CPU time, too. 0 = 1 s */
    uint64_t cool_ns;     /* a step is not reversed for so long. 0 = 180 s */
    size_t retained_most; /* upper bound of retained_bytes, also where a mode gives them. 0 = 256 MiB; at
                             least 1 MiB */
    double price;         /* of a MiB held, a share of the time. 0 = that of the first context's policy, else
                             0.00005: 200 MiB are worth 1 % of the time. At 0.001 few heaps are worth more
                             than HAK_MODE_LEAN */
    bool dry;             /* decide and report, but change nothing: "would try" */
    bool windows;         /* report each window, too */
    hak_decision_fn *log; /* NULL = none */
    void *user;
    size_t (*resident)(void); /* resident bytes of the process, 0 = not known, at the end of each window:
                                 called as `log` is. NULL = not known */
    uint64_t (*cpu_ns)(void); /* the CPU time of the process so far, at each look; called as `log` is. NULL =
                                 time is that of the ticks */
    unsigned fault_ns;        /* a page fault on this machine: 1 to 1000000. 0 = 250 */
    unsigned huge_ns;         /* a page of 4 KiB that comes as a part of a huge one. 0 = 0.26 of fault_ns */
    unsigned call_ns;         /* a call of the operating system: 1 to 1000000. 0 = 1000 */
    bool keeps_speed;         /* no step goes below HAK_MODE_BALANCED and its retained_bytes */
} hak_learner_options;
#define HAK_LEARNER_OPTIONS_INIT                                                                             \
    {                                                                                                        \
        sizeof(hak_learner_options), 0, 0, 0, 0, false, false, NULL, NULL, NULL, NULL, 0, 0, 0, false        \
    }

enum {
    HAK_LEARNER_CONTEXTS = 64,
    HAK_LEARNER_DECISIONS = 128, /* the last ones are kept to be read, without HAK_DECISION_WINDOW */
    HAK_LEARNER_WINDOWS = 512    /* kept to be read; when there is no room, every second one goes */
};

/* Returns what is wrong with the options, in one line; NULL = nothing. Cost: constant. [any thread] */
HAK_API const char *hak_learner_options_error(const hak_learner_options *options);
/* Makes a learner. os: where its pages come from; copied; NULL = the operating system. Returns NULL if the
 * options or the table are broken, or there is no memory. Cost: constant, and one call for the pages; two
 * with os->commit. [any thread] */
HAK_API hak_learner *hak_learner_new(const hak_os *os, const hak_learner_options *options);
/* Deletes the learner. Its contexts keep their policies; none of them may be inside a call. NULL is fine.
 * Cost: a step for each context, and one call for the pages. */
HAK_API void hak_learner_delete(hak_learner *learner);
/* Lets the learner watch and change this context until the context is destroyed. What is learned comes on top
 * of the policies that the context and its space have now; the learner's next change replaces a policy that
 * the host sets later. The context's thread calls this. Returns 0, or -1 if the context has a learner
 * already, the learner has HAK_LEARNER_CONTEXTS contexts, or there is no memory. Cost: constant. */
HAK_API int hak_learner_add(hak_learner *learner, hak_ctx *ctx);
/* Lets the learner look at the context, as hak_ctx_tick does, and does nothing else: nothing goes back to the
 * operating system. For hosts that do not tick without a learner, so that learning changes no more than what
 * the learner decides. Called by the context's thread, or with a shared context by any; nothing happens where
 * the context has no learner. now_ns: as for hak_ctx_tick. Cost: that of a tick's part for the learner. */
HAK_API void hak_learner_look(hak_ctx *ctx, uint64_t now_ns);
/* Returns the learner of the context; NULL = none. The context's thread calls this. Cost: a load. */
HAK_API hak_learner *hak_ctx_learner(const hak_ctx *ctx);
/* Counts n more units of the host's work, such as requests. Cost: one atomic addition. [any thread] */
HAK_API void hak_learner_progress(hak_learner *learner, uint64_t n);
/* Returns what the learner has learned so far, on top of the policy of the first context. The caller owns a
 * reference. NULL = no memory. Cost: that of hak_policy_new. [any thread] */
HAK_API hak_policy *hak_learner_policy(hak_learner *learner);

typedef struct hak_learner_info {
    size_t size; /* sizeof(hak_learner_info), set by the caller */
    hak_phase phase;
    uint64_t windows;
    unsigned contexts;
    size_t retained_bytes; /* without a trial that runs */
    size_t expected_bytes; /* forecast; HAK_NONE = none */
    size_t peak_bytes;     /* most that was live in one of its contexts, or committed at a look */
    double cost;           /* mean, without trials */
    hak_mode mode;         /* without a trial that runs */
} hak_learner_info;
/* Fill in the i-th decision, or window, that is kept, the oldest first, from 0. The caller sets out->size.
 * Return 0, or -1 if there is no i-th or out->size is not valid. Cost: constant. [any thread] */
HAK_API int hak_learner_decision(hak_learner *learner, size_t i, hak_decision *out);
HAK_API int hak_learner_window(hak_learner *learner, size_t i, hak_window *out);
/* Fills in *info. Returns 0, or -1 if info->size is not set. Cost: constant. [any thread] */
HAK_API int hak_learner_stats(hak_learner *learner, hak_learner_info *info);

#ifdef __cplusplus
}
#endif
#endif
