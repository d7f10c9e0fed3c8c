/* Finds the best of a scale of values: tries a step up or down from the value in use, a window at a time. */
#ifndef HK_BANDIT_H
#define HK_BANDIT_H

#include "base/base.h"

/* Windows in a row that decide; and so many where costs vary, of which the mean decides, or that of twice as
 * many. */
enum { HK_BANDIT_ARMS = 16, HK_BANDIT_TRIES = 3, HK_BANDIT_LONG = 8 };

typedef struct hk_arm {
    double mean, variance; /* of its last windows */
    uint32_t n;            /* at most as many as are remembered */
} hk_arm;

typedef struct hk_bandit {
    hk_arm arm[HK_BANDIT_ARMS];
    unsigned arms, base; /* base: the one in use */
    unsigned now;        /* the one of this window */
    uint64_t windows;
    unsigned tried;               /* windows of this trial */
    double trial, trial_variance; /* their mean */
    bool mixed;                   /* some of them were better, some were not */
    double credit;                /* what the upper of two arms saves beside what its windows cost */
    bool goes_on;
    struct {
        unsigned losses; /* in a row */
        double most;     /* that it could save of what the base costs */
    } side[2];           /* below and above the base */
    uint64_t stepped_at; /* window of the last step; 0 = none */
    int stepped;         /* -1, 1 */
    uint64_t cool;       /* windows in which no step back is tried */
} hk_bandit;

typedef enum hk_verdict { HK_VERDICT_NONE, HK_VERDICT_BETTER, HK_VERDICT_KEPT, HK_VERDICT_UNDONE } hk_verdict;

void hk_bandit_init(hk_bandit *b, unsigned arms, unsigned base, uint64_t cool);
/* The window with b->now cost so much: at least 1. BETTER: the trial
 * goes on; KEPT: b->base is b->now's arm from now on. */
hk_verdict hk_bandit_learn(hk_bandit *b, double cost);
/* The arm of the next window, which becomes b->now: a trial goes on until it is decided, one that lost is
 * followed by the base, and that by the side that UCB1 wants to try. explore: a trial may be made. */
unsigned hk_bandit_choose(hk_bandit *b, bool explore);
/* A trial is under way, or was until this window. */
bool hk_bandit_tries(const hk_bandit *b);
/* The base has been seen often enough to compare with it. */
bool hk_bandit_knows(const hk_bandit *b);
/* No side is better: each that may be tried lost often enough, or could save too little. */
bool hk_bandit_settled(const hk_bandit *b);
/* Some side could be better, even if it lost before. */
bool hk_bandit_hopes(const hk_bandit *b);
/* The base costs something else from now on: what is known of it is forgotten. */
void hk_bandit_rebase(hk_bandit *b);
/* The work is another: what is known of costs is forgotten. */
void hk_bandit_forget(hk_bandit *b);

#endif
