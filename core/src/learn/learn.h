/* learn/: what learners know and decide. This folder knows no contexts and includes only base/: windows go
 * in, numbers come out, and api/learner.c, its only caller, does the rest. No allocation path calls it. See
 * docs/guide/learning.md. */
#ifndef HK_LEARN_H
#define HK_LEARN_H

#include "hakmem/learn.h"

#include "learn/bandit.h"

enum { HK_SIZES = 24 /* by log2 */ };

/* Of all contexts together. Counts are of the window alone. */
typedef struct hk_window {
    uint64_t at_ns, ns; /* its end, its length */
    size_t live, committed, retained, resident;
    size_t held;                                    /* retained, or committed and not live */
    size_t huge_from, retained_limit;               /* the numbers in force */
    uint64_t fresh, fresh_huge, os_calls, progress; /* fresh_huge: those of `fresh` in huge pages */
    uint64_t exchanges;                             /* magazines filled or emptied */
    float sizes[HK_SIZES]; /* share of the live bytes in blocks of such sizes: 1 in all, or all 0 */
} hk_window;

/* What is kept to be read. */
typedef struct hk_learn_log {
    hak_decision decisions[HAK_LEARNER_DECISIONS]; /* a ring */
    hak_window windows[HAK_LEARNER_WINDOWS];
    uint64_t decided;
    unsigned windows_kept, every; /* each so many is kept, a power of two; 0 = 1 */
} hk_learn_log;

/* What is tried. A context of another mode than those of the scale has a scale of one. */
enum { HK_KNOB_MODE, HK_KNOB_RETAINED, HK_KNOBS };

typedef struct hk_learn {
    hak_learner_options o;
    hk_bandit knobs[HK_KNOBS];
    unsigned turn;                       /* the one whose steps are tried now */
    unsigned mode_first, retained_first; /* arms: of the context, and of the mode that is kept */
    hak_phase phase;
    uint64_t windows, canary_at;
    uint64_t at_ns;
    double ns_a_unit;             /* of the host's progress, in the first windows */
    unsigned measured;            /* so many of them */
    unsigned ran[HK_KNOBS];       /* arms of the last window */
    double held, retained, pages; /* parts of the cost above 1, without trials: means */
    double exchanges;             /* share of the time that they take, likewise; it is no part of the cost */
    float sizes[HK_SIZES];        /* while it learned: the mean */
    double wander;                /* of a window's sizes from it: the mean distance */
    unsigned sized;               /* windows in both, as many as are remembered */
    unsigned strange, dear, grew; /* windows in a row */
    hak_undone undone[HAK_UNDONE_MOST]; /* trials, of this run and of those before */
    size_t undone_count;
    size_t committed;              /* a window ago */
    size_t expected, was_expected; /* bytes, HAK_NONE = unknown; before the forecast */
    hk_learn_log log;
    uint64_t due; /* the window that shows whether the forecast came true; 0 = none */
} hk_learn;

/* o is whole and right; the mode, retained_bytes and expected_bytes as they are now. undone: what runs before
 * this one tried in vain; what was seen under another price or on another machine is left out. */
void hk_learn_init(hk_learn *l, const hak_learner_options *o, hak_mode mode, size_t retained, size_t expected,
                   const hak_undone *undone, size_t undone_count);
/* The trials in vain whose `from` is in force without a trial; at most HAK_UNDONE_MOST. */
size_t hk_learn_undone(const hk_learn *l, hak_undone *out);
void hk_learn_window(hk_learn *l, const hk_window *w);

/* What contexts are to run with. */
typedef struct hk_choice {
    int mode;                  /* HAK_POLICY_MODE_NONE = its own */
    size_t retained, expected; /* retained: 0 = that of the mode */
} hk_choice;

/* In the next window; and without the trial. */
hk_choice hk_learn_now(const hk_learn *l);
hk_choice hk_learn_kept(const hk_learn *l);
/* The i-th that is kept, the oldest first; NULL = none. */
const hak_decision *hk_learn_decision(const hk_learn *l, size_t i);
const hak_window *hk_learn_window_at(const hk_learn *l, size_t i);
/* The mode, the retained bytes and the mean cost, without trials. */
hak_mode hk_learn_mode(const hk_learn *l);
size_t hk_learn_retained(const hk_learn *l);
double hk_learn_cost(const hk_learn *l);

#endif
