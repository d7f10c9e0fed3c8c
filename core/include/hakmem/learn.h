/* hakmem, learners: numbers of a policy chosen by what came of them.
 *
 *       hak_learner *learner = hak_learner_new(NULL, NULL);
 *       hak_learner_add(learner, ctx);
 *       ... the host works, counts with hak_learner_progress, and calls hak_ctx_tick(ctx, 0) ...
 *       hak_policy *learned = hak_learner_policy(learner);      // for the next start: hak_policy_print
 *
 * A learner has no thread and no clock: it looks at its contexts in hak_ctx_tick. What passes between two looks is a
 * window, at least hak_learner_options.window_ns long. What a window cost is
 *
 *     the host's time for a unit of its progress, against that of the first windows; of hosts that count none,
 *     1 + the share of the time that page faults (250 ns each) and calls of the OS (1 us) take
 *     + price * MiB that are kept for later
 *
 * WHAT IT DECIDES
 *   retained_bytes   A step on a scale of powers of two is tried for two windows, the first of which is not looked at,
 *                    since it has the pages of the one before (the choice among steps is UCB1: Auer, Cesa-Bianchi, Fischer, 2002). A step that was
 *                    better by 8 % of the cost above 1 goes on, and is kept if it was so three times in a row;
 *                    else it is undone. None goes back within cool_ns.
 *   expected_bytes   A heap that grew by a quarter in each of three windows is expected to grow on as fast for four
 *                    more. If it will pass huge_from, this is said to its context at once, and taken back if it comes
 *                    to less than half. hak_learner_policy says what the heap came to.
 *
 * PHASES  LEARNING until no step is better; FROZEN then: nothing is tried but a CANARY after each 40 windows, in which the
 *         most promising step is tried again. Three better windows in a row thaw it, and so do two windows in which
 *         sizes are distributed otherwise than when it froze (an L1 distance of 0.3 at least, of 2).
 *
 * Threads: a learner may have contexts of several threads. Each is looked at and told by its own hak_ctx_tick. Those of
 * one learner should do the same work, in one space or each in its own. Since 0.1.
 *
 * COST  Each tick about 0.1 us more, and about 3 us eight times a window, in the first one each time its age has grown by an
 *       eighth; at the end of a window a step for each slab. */
#ifndef HAKMEM_LEARN_H
#define HAKMEM_LEARN_H

#include <hakmem/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hak_learner hak_learner;

typedef enum hak_phase { HAK_PHASE_LEARNING, HAK_PHASE_FROZEN, HAK_PHASE_CANARY } hak_phase;

typedef enum hak_decision_kind {
    HAK_DECISION_WINDOW,   /* none: a window is over. observed: its cost */
    HAK_DECISION_TRY,      /* the next window runs with `to`. expected: the cost without */
    HAK_DECISION_KEEP,     /* `to` is kept. expected: the cost before; observed: that with it */
    HAK_DECISION_UNDO,     /* back to `to`, since `from` was not better; the same */
    HAK_DECISION_FREEZE,   /* nothing is better. observed: the cost */
    HAK_DECISION_THAW,     /* it learns again; why says why */
    HAK_DECISION_FORECAST, /* expected_bytes is `to` from now on. expected: bytes; observed: those that there are */
    HAK_DECISION_MET,      /* what was forecast came. expected and observed: bytes */
    HAK_DECISION_MISSED    /* it did not: expected_bytes is `to` again */
} hak_decision_kind;

typedef struct hak_decision {
    size_t size;
    uint64_t window; /* its number, from 1 */
    uint64_t at_ns;  /* by the clock of the ticks */
    hak_decision_kind kind;
    hak_phase phase;
    const char *number; /* of hak_tuning; NULL = none */
    size_t from, to;    /* its values */
    double expected, observed;
    char text[200]; /* all this in a sentence */
} hak_decision;
/* A window that is over. */
typedef struct hak_window {
    size_t size;
    uint64_t window; /* its number */
    uint64_t at_ns;  /* its end */
    size_t live_bytes, committed_bytes; /* of the largest context */
    size_t retained_bytes;              /* of all spaces */
    double cost;
} hak_window;
/* Called within hak_ctx_tick, on its thread, under the lock of the learner: must not call into it, nor into contexts. */
typedef void hak_decision_fn(void *user, const hak_decision *decision);

typedef struct hak_learner_options {
    size_t size;          /* sizeof(hak_learner_options), by HAK_LEARNER_OPTIONS_INIT */
    uint64_t window_ns;   /* least length of a window; it should hold whole waves of the work. 0 = 1 s */
    uint64_t cool_ns;     /* after a step, none back for so long. 0 = 180 s */
    size_t retained_most; /* most that retained_bytes may be. 0 = 256 MiB; 1 MiB on */
    double price;         /* cost of a MiB that is kept for later; 0 = 0.00005: 200 MiB for a hundredth of the time */
    bool dry;             /* decide and tell, but change nothing: "would" */
    bool windows;         /* tell of each window, too */
    hak_decision_fn *log; /* NULL = nobody is told */
    void *user;
} hak_learner_options;
#define HAK_LEARNER_OPTIONS_INIT                                                                             \
    {                                                                                                        \
        sizeof(hak_learner_options), 0, 0, 0, 0, false, false, NULL, NULL                                    \
    }

enum {
    HAK_LEARNER_CONTEXTS = 64,
    HAK_LEARNER_DECISIONS = 128, /* the last ones, which are kept to be read; windows are no decisions here */
    HAK_LEARNER_WINDOWS = 512    /* that are kept: when there are more, each second one of those that there are goes */
};

/* What is wrong with the options, in one line; NULL = nothing. Cost: constant. [any thread] */
HAK_API const char *hak_learner_options_error(const hak_learner_options *options);
/* os: where its pages come from; copied; NULL = the operating system. NULL = the options or the table are
 * broken, or no memory. Cost: constant, and one call for the pages; with os->commit two. [any thread] */
HAK_API hak_learner *hak_learner_new(const hak_os *os, const hak_learner_options *options);
/* Its contexts keep the policy that they have. None of them may be inside a call. NULL is fine. Cost: a step
 * for each context, and one call for the pages. */
HAK_API void hak_learner_delete(hak_learner *learner);
/* The context is learned from and told, on top of the policy that it has now, until it is destroyed. By its
 * thread. 0 = ok; -1 = it has a learner, this one has HAK_LEARNER_CONTEXTS, or no memory. Cost: constant. */
HAK_API int hak_learner_add(hak_learner *learner, hak_ctx *ctx);
/* The learner of the context; NULL = none. By its thread. Fast. */
HAK_API hak_learner *hak_ctx_learner(const hak_ctx *ctx);
/* The host has done n units of its work, such as requests. [any thread] Cost: one atomic addition. */
HAK_API void hak_learner_progress(hak_learner *learner, uint64_t n);
/* What it has learned so far, on top of the policy of the first context: a policy with a reference for the
 * caller. NULL = no memory. Cost: that of hak_policy_new. [any thread] */
HAK_API hak_policy *hak_learner_policy(hak_learner *learner);

typedef struct hak_learner_info {
    size_t size; /* sizeof(hak_learner_info), set by the caller */
    hak_phase phase;
    uint64_t windows;
    unsigned contexts;
    size_t retained_bytes; /* kept by now; trials aside */
    size_t expected_bytes; /* forecast; HAK_NONE = none */
    size_t peak_bytes;     /* most that a context of it has committed */
    double cost;           /* on average without trials */
} hak_learner_info;
/* The i-th decision that is kept, and the i-th window, from the oldest one on; out->size is set by the caller. 0 = ok; -1 =
 * there are no more, or the size is none. Cost: constant. [any thread] */
HAK_API int hak_learner_decision(hak_learner *learner, size_t i, hak_decision *out);
HAK_API int hak_learner_window(hak_learner *learner, size_t i, hak_window *out);
/* Fills in *info. 0 = ok; -1 = size is not set. Cost: constant. [any thread] */
HAK_API int hak_learner_stats(hak_learner *learner, hak_learner_info *info);

#ifdef __cplusplus
}
#endif
#endif
