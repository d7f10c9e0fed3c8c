#include "elo.h"

#include <math.h>
#include <string.h>

static const double k_factor = 32, draw_margin = 0.02, hot = 120, cold = 15, cooling = 0.95;
enum { GAMES = 30 };

void elo_init(elo *e, unsigned count, unsigned first)
{
    memset(e, 0, sizeof *e);
    e->count = count;
    e->now = e->before = first;
    e->random = 88172645463325252u;
}

static double drawn(elo *e)
{
    e->random ^= e->random << 13;
    e->random ^= e->random >> 7;
    e->random ^= e->random << 17;
    return (double)(e->random >> 11) / (double)(UINT64_C(1) << 53);
}

static void game(elo *e, double cost)
{
    double result = 0.5;
    if (cost < e->last_cost * (1 - draw_margin)) result = 1;
    if (cost > e->last_cost * (1 + draw_margin)) result = 0;
    double expected = 1 / (1 + pow(10, (e->rating[e->before] - e->rating[e->now]) / 400));
    e->rating[e->now] += k_factor * (result - expected);
    e->rating[e->before] -= k_factor * (result - expected);
}

static unsigned best(const elo *e)
{
    unsigned at = 0;
    for (unsigned i = 1; i < e->count; i++)
        if (e->rating[i] > e->rating[at]) at = i;
    return at;
}

unsigned elo_next(elo *e, double cost)
{
    e->windows++;
    if (e->frozen) return e->now;
    if (e->settling) {
        e->settling = false;
        return e->now;
    }
    if (e->before != e->now) game(e, cost);
    e->before = e->now;
    e->last_cost = cost;
    double heat = hot * pow(cooling, (double)e->windows), weight[ELO_MOST], sum = 0;
    if (heat < cold) heat = cold;
    for (unsigned i = 0; i < e->count; i++)
        sum += weight[i] = exp((e->rating[i] - e->rating[best(e)]) / heat);
    double at = drawn(e) * sum;
    unsigned chosen = 0;
    while (chosen + 1 < e->count && (at -= weight[chosen]) > 0)
        chosen++;
    if (e->windows >= GAMES) {
        e->frozen = true;
        chosen = best(e);
    }
    e->settling = chosen != e->now;
    e->now = chosen;
    return chosen;
}
