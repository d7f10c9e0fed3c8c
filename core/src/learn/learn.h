/* learn/: what learners know and decide. It knows no contexts and nothing of the folders below but base/: windows go
 * in, numbers come out, and api/learner.c, which drives it, sees to the rest. No allocation path calls it. See
 * docs/guide/learning.md. */
#ifndef HK_LEARN_H
#define HK_LEARN_H

#include "hakmem/learn.h"

#include "learn/bandit.h"

enum { HK_SIZES = 24 /* by log2 */ };

/* Of all contexts together. Counts are of the window alone. */
typedef struct hk_window {
    uint64_t at_ns, ns; /* its end, its length */
    size_t live, committed, retained;
    size_t huge_from;
    uint64_t fresh, os_calls, progress;
    float sizes[HK_SIZES]; /* share of the live bytes in blocks of such sizes: 1 in all, or all 0 */
} hk_window;

/* What is kept to be read. */
typedef struct hk_learn_log {
    hak_decision decisions[HAK_LEARNER_DECISIONS]; /* a ring */
    hak_window windows[HAK_LEARNER_WINDOWS];
    uint64_t decided;
    unsigned windows_kept, every; /* each so many is kept, a power of two; 0 = 1 */
} hk_learn_log;

typedef struct hk_learn {
    hak_learner_options o;
    hk_bandit bandit;
    hak_phase phase;
    uint64_t windows, frozen_at, canary_at;
    uint64_t at_ns;
    double ns_a_unit;  /* of the host's progress, in the first windows */
    unsigned measured; /* so many of them */
    unsigned arm;      /* what the last window ran with */
    float sizes[HK_SIZES]; /* when it froze */
    unsigned strange, grew;
    size_t committed;              /* a window ago */
    size_t expected, was_expected; /* bytes, HAK_NONE = unknown; before the forecast */
    hk_learn_log log;
    uint64_t due;                  /* the window that shows whether the forecast came true; 0 = none */
} hk_learn;

/* o is whole and right; retained_bytes and expected_bytes as they are now. */
void hk_learn_init(hk_learn *l, const hak_learner_options *o, size_t retained, size_t expected);
void hk_learn_window(hk_learn *l, const hk_window *w);
/* What the next window is to run with. */
size_t hk_learn_retained(const hk_learn *l);
/* The i-th that is kept, the oldest first; NULL = none. */
const hak_decision *hk_learn_decision(const hk_learn *l, size_t i);
const hak_window *hk_learn_window_at(const hk_learn *l, size_t i);
/* Without the trial. */
size_t hk_learn_kept(const hk_learn *l);
/* Value of an arm, and the arm of a value. */
size_t hk_learn_bytes(unsigned arm);

#endif
