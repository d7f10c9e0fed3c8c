/* Which of a scale of values is the best: a step up or down from the one in use is tried, a window at a time. */
#ifndef HK_BANDIT_H
#define HK_BANDIT_H

#include "base/base.h"

enum { HK_BANDIT_ARMS = 16, HK_BANDIT_TRIES = 3 /* in a row, that decide */ };

typedef struct hk_arm {
    double mean, variance; /* of its last windows */
    uint32_t n;            /* at most as many as are remembered */
} hk_arm;

typedef struct hk_bandit {
    hk_arm arm[HK_BANDIT_ARMS];
    unsigned arms, base; /* base: the one in use */
    unsigned now;        /* the one of this window */
    uint64_t windows;
    struct {
        unsigned wins, losses; /* in a row */
    } side[2];                 /* below and above the base */
    uint64_t stepped_at;       /* window of the last step; 0 = none */
    int stepped;               /* -1, 1 */
    uint64_t cool;             /* windows in which no step back is tried */
} hk_bandit;

typedef enum hk_verdict { HK_VERDICT_NONE, HK_VERDICT_BETTER, HK_VERDICT_KEPT, HK_VERDICT_UNDONE } hk_verdict;

void hk_bandit_init(hk_bandit *b, unsigned arms, unsigned base, uint64_t cool);
/* The window with b->now cost so much: at least 1. BETTER: the trial
 * goes on; KEPT: b->base is b->now's arm from now on. */
hk_verdict hk_bandit_learn(hk_bandit *b, double cost);
/* The arm of the next window, which becomes b->now: a trial that won goes on, one that lost is followed by the base,
 * and that by the side that UCB1 wants to try. explore: a trial may be made. */
unsigned hk_bandit_choose(hk_bandit *b, bool explore);
/* No side is better: each that may be tried lost often enough. */
bool hk_bandit_settled(const hk_bandit *b);
/* The work is another: what is known of costs is forgotten. */
void hk_bandit_forget(hk_bandit *b);

#endif
