#include "learn/bandit.h"

#include "base/real.h"

enum { REMEMBERED = 16, BASE_FIRST = 3 };
static const double margin = 0.08; /* of the cost above that of doing nothing, 1 */
static const double noise = 0.001; /* of the time: less is not worth a step */

void hk_bandit_init(hk_bandit *b, unsigned arms, unsigned base, uint64_t cool)
{
    *b = (hk_bandit){.arms = arms, .base = base, .now = base, .cool = cool};
}

static void note(hk_arm *a, double cost)
{
    if (a->n < REMEMBERED) a->n++;
    double by = cost - a->mean;
    a->mean += by / a->n;
    a->variance += (by * (cost - a->mean) - a->variance) / a->n;
}

static void sides_anew(hk_bandit *b)
{
    memset(b->side, 0, sizeof b->side);
}

/* A difference that means something. */
static double step_of(const hk_arm *base)
{
    double least = margin * (base->mean - 1), spread = hk_root(base->variance);
    if (least < noise) least = noise;
    return least > spread ? least : spread;
}

static bool better(const hk_arm *base, double cost)
{
    return cost < base->mean - step_of(base);
}

hk_verdict hk_bandit_learn(hk_bandit *b, double cost)
{
    const hk_arm *base = &b->arm[b->base];
    b->windows++;
    note(&b->arm[b->now], cost);
    if (b->now == b->base) return HK_VERDICT_NONE;
    unsigned side = b->now > b->base;
    if (!better(base, cost)) {
        b->side[side].wins = 0;
        b->side[side].losses++;
        return HK_VERDICT_UNDONE;
    }
    b->side[side].losses = 0;
    if (++b->side[side].wins < HK_BANDIT_TRIES) return HK_VERDICT_BETTER;
    b->base = b->now;
    b->stepped = side ? 1 : -1;
    b->stepped_at = b->windows;
    sides_anew(b);
    return HK_VERDICT_KEPT;
}

static bool may_try(const hk_bandit *b, unsigned side)
{
    if (side ? b->base + 1 >= b->arms : b->base == 0) return false;
    bool back = b->stepped == (side ? -1 : 1);
    return !(back && b->windows - b->stepped_at < b->cool);
}

/* The side lost often enough, or once by much. */
static bool done(const hk_bandit *b, unsigned side)
{
    const hk_arm *base = &b->arm[b->base], *a = &b->arm[side ? b->base + 1 : b->base - 1];
    unsigned losses = b->side[side].losses;
    return losses >= HK_BANDIT_TRIES || (losses && a->mean > base->mean + step_of(base));
}

/* How little the side may cost, at best. What was never tried goes first. */
static double promise(const hk_bandit *b, unsigned side, double total)
{
    const hk_arm *a = &b->arm[side ? b->base + 1 : b->base - 1];
    if (a->n == 0) return -1;
    double spread = hk_root(b->arm[b->base].variance) + noise;
    return a->mean - spread * hk_root(2 * hk_log(total) / a->n);
}

unsigned hk_bandit_choose(hk_bandit *b, bool explore)
{
    const hk_arm *base = &b->arm[b->base];
    bool trial = b->now != b->base, won = b->side[b->now > b->base].wins;
    if (trial && won && explore) return b->now;
    b->now = b->base;
    if (!explore || trial || base->n < BASE_FIRST) return b->now;
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

bool hk_bandit_settled(const hk_bandit *b)
{
    if (b->arm[b->base].n < BASE_FIRST) return false;
    for (unsigned side = 0; side < 2; side++)
        if (may_try(b, side) && (!done(b, side) || b->side[side].wins)) return false;
    return true;
}

void hk_bandit_forget(hk_bandit *b)
{
    memset(b->arm, 0, sizeof b->arm);
    sides_anew(b);
    b->now = b->base;
}
