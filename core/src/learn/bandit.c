#include "learn/bandit.h"

#include "base/real.h"

enum { ARM_REMEMBERS = 16 };
static const double margin = 0.08; /* of the cost above that of doing nothing, 1 */
static const double noise = 0.001; /* of the time: less is not worth a step */
#define INFINITE 1e30

void hk_bandit_init(hk_bandit *b, unsigned arms, unsigned base, uint64_t cool)
{
    *b = (hk_bandit){.arms = arms, .base = base, .now = base, .cool = cool};
    for (unsigned side = 0; side < 2; side++)
        b->side[side].most = INFINITE;
}

static void into(double *mean, double *variance, double cost, unsigned n)
{
    double by = cost - *mean;
    *mean += by / n;
    *variance += (by * (cost - *mean) - *variance) / n;
}

static void note(hk_arm *a, double cost)
{
    if (a->n < ARM_REMEMBERS) a->n++;
    into(&a->mean, &a->variance, cost, a->n);
}

static void sides_anew(hk_bandit *b)
{
    b->side[0].losses = b->side[1].losses = 0;
}

/* The least difference that is worth a step. */
static double least_of(const hk_arm *base)
{
    double least = margin * (base->mean - 1);
    return least > noise ? least : noise;
}

/* Costs vary by more than that from window to window, as where the work has phases: single windows say
 * nothing. */
static bool varies(const hk_arm *base)
{
    return hk_root(base->variance) > least_of(base);
}

/* What a window with the arm is taken to save against one with the base, beside its cost. */
static double credit_of(const hk_bandit *b, unsigned arm)
{
    return arm > b->base ? b->credit : -b->credit;
}

static hk_verdict judge_arm(hk_bandit *b, double cost)
{
    const hk_arm *base = &b->arm[b->base];
    double credit = credit_of(b, b->now), trial = b->trial - credit;
    cost -= credit;
    double least = least_of(base), spread = hk_root(base->variance);
    if (!varies(base) && !b->mixed) {
        bool better = cost < base->mean - least;
        if (better) return b->tried < HK_BANDIT_TRIES ? HK_VERDICT_BETTER : HK_VERDICT_KEPT;
        if (trial >= base->mean - least) return HK_VERDICT_UNDONE;
        b->mixed = true; /* the windows before were better: it varies, too */
    }
    if (b->tried >= HK_BANDIT_TRIES && trial > base->mean + 2 * spread) return HK_VERDICT_UNDONE;
    if (b->tried % HK_BANDIT_LONG) return HK_VERDICT_BETTER;
    double error = hk_root(base->variance / base->n + b->trial_variance / b->tried); /* of the difference */
    if (trial < base->mean - (least > error ? least : error)) return HK_VERDICT_KEPT;
    /* What seems better costs nothing while it goes on. */
    return trial < base->mean - least && b->tried == HK_BANDIT_LONG ? HK_VERDICT_BETTER : HK_VERDICT_UNDONE;
}

hk_verdict hk_bandit_learn(hk_bandit *b, double cost)
{
    b->windows++;
    note(&b->arm[b->now], cost);
    if (b->now == b->base) return HK_VERDICT_NONE;
    unsigned side = b->now > b->base;
    into(&b->trial, &b->trial_variance, cost, ++b->tried);
    hk_verdict verdict = judge_arm(b, cost);
    b->goes_on = verdict == HK_VERDICT_BETTER;
    if (verdict == HK_VERDICT_UNDONE) b->side[side].losses++;
    if (verdict != HK_VERDICT_KEPT) return verdict;
    b->base = b->now;
    b->stepped = side ? 1 : -1;
    b->stepped_at = b->windows;
    sides_anew(b);
    return verdict;
}

static bool may_try(const hk_bandit *b, unsigned side)
{
    if (side ? b->base + 1 >= b->arms : b->base <= b->least) return false;
    if (b->side[side].most < least_of(&b->arm[b->base])) return false;
    bool back = b->stepped == (side ? -1 : 1);
    return !(back && b->windows - b->stepped_at < b->cool);
}

/* The side lost often enough, or once by much or in a long trial. */
static bool done(const hk_bandit *b, unsigned side)
{
    unsigned arm = side ? b->base + 1 : b->base - 1;
    const hk_arm *base = &b->arm[b->base], *a = &b->arm[arm];
    unsigned losses = b->side[side].losses;
    return losses >= HK_BANDIT_TRIES ||
           (losses && (varies(base) || a->mean - credit_of(b, arm) > base->mean + least_of(base)));
}

/* How little the side may cost, at best. What was never tried goes first, what may save most before the
 * other. */
static double promise(const hk_bandit *b, unsigned side, double total)
{
    const hk_arm *a = &b->arm[side ? b->base + 1 : b->base - 1];
    if (a->n == 0) return -b->side[side].most;
    double spread = hk_root(b->arm[b->base].variance) + noise;
    return a->mean - spread * hk_root(2 * hk_log(total) / a->n);
}

unsigned hk_bandit_choose(hk_bandit *b, bool explore)
{
    const hk_arm *base = &b->arm[b->base];
    bool trial = hk_bandit_tries(b);
    if (trial && b->goes_on && explore) return b->now;
    b->now = b->base;
    b->tried = 0;
    b->trial = b->trial_variance = 0;
    b->mixed = false;
    if (!explore || trial || !hk_bandit_knows(b)) return b->now;
    bool settled = hk_bandit_settled(b);
    double total = base->n + 1, best = 0;
    int chosen = -1;
    for (unsigned side = 0; side < 2; side++) {
        if (!may_try(b, side) || (!settled && done(b, side))) continue;
        double p = promise(b, side, total + b->side[0].losses + b->side[1].losses);
        if (chosen < 0 || p < best) {
            chosen = (int)side;
            best = p;
        }
    }
    if (chosen >= 0) b->now = chosen ? b->base + 1 : b->base - 1;
    return b->now;
}

bool hk_bandit_tries(const hk_bandit *b)
{
    return b->now != b->base;
}

bool hk_bandit_knows(const hk_bandit *b)
{
    const hk_arm *base = &b->arm[b->base];
    return base->n >= (varies(base) ? HK_BANDIT_LONG : HK_BANDIT_TRIES);
}

bool hk_bandit_hopes(const hk_bandit *b)
{
    return may_try(b, 0) || may_try(b, 1);
}

bool hk_bandit_settled(const hk_bandit *b)
{
    if (hk_bandit_tries(b) || !hk_bandit_knows(b)) return false;
    for (unsigned side = 0; side < 2; side++)
        if (may_try(b, side) && !done(b, side)) return false;
    return true;
}

void hk_bandit_lost(hk_bandit *b, unsigned side)
{
    b->side[side].losses = HK_BANDIT_TRIES;
}

void hk_bandit_forget(hk_bandit *b)
{
    memset(b->arm, 0, sizeof b->arm);
    sides_anew(b);
    b->now = b->base;
}

void hk_bandit_rebase(hk_bandit *b)
{
    b->arm[b->base] = (hk_arm){0};
}
