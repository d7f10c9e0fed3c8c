/* Finds the stacks that grow, and tells whether growth is a leak. The live bytes of a stack at up to 33
 * moments give its trend. The birth times of the blocks that live now tell how much was left behind before
 * each of these moments; temporary blocks of the same stack, however many, do not count there. */
#include "profile/profile.h"

#include "base/real.h"
#include "profile/trend.h"

#include <stdio.h>

enum { POINTS_MOST = HK_TREND_MOST, POINTS_LEAST = 6, LEAK_LEAST = 512, TOLD_SECONDS = 10 };

/* A stack at each moment, the last one now. */
typedef struct history {
    size_t n;
    unsigned step;                                 /* windows from one moment to the next */
    bool bounded;                                  /* `left` is a bound, not known */
    double live[POINTS_MOST], var[POINTS_MOST];    /* bytes, and the variance of their estimate */
    double made[POINTS_MOST], blocks[POINTS_MOST]; /* blocks allocated until then, and that lived then */
    double left[POINTS_MOST], left_var[POINTS_MOST], left_blocks[POINTS_MOST]; /* of live: what lives now */
    double window[POINTS_MOST], hour[POINTS_MOST];
    uint64_t at_ns[POINTS_MOST], born_ns[POINTS_MOST];
} history;

/* ---- What is known -------------------------------------------------------------------------------- */

static void take_point(history *h, size_t i, const hk_mark_value *v, uint64_t at_ns, uint64_t born_ns)
{
    h->live[i] = v->live_bytes;
    h->var[i] = v->alloc_var > v->freed_var ? v->alloc_var - v->freed_var : 0;
    h->made[i] = v->alloc_blocks;
    h->blocks[i] = v->live_blocks;
    h->at_ns[i] = at_ns;
    h->born_ns[i] = born_ns;
}

/* Whether the window that began with m, the last one, is too short to count for itself. */
static bool is_short(const hk_mark *m, uint64_t first_ns, uint64_t now)
{
    if (m->number < 2 || now < m->at_ns || m->at_ns <= first_ns) return false;
    return now - m->at_ns < (m->at_ns - first_ns) / (m->number - 1) / 2;
}

static bool take_points(const hk_profile *k, const hk_stack *s, uint64_t now, history *h)
{
    const hk_mark *m = k->marks, *first = m;
    while (first && first->before)
        first = first->before;
    if (m && is_short(m, first->at_ns, now)) m = m->before;
    uint32_t windows = m ? m->number : 0;
    if (windows + 1 < POINTS_LEAST) return false;
    h->step = (windows + POINTS_MOST - 2) / (POINTS_MOST - 1);
    h->n = windows / h->step + 1;
    hk_mark_value v = hk_profile_value(k, s, UINT32_MAX);
    size_t i = h->n - 1;
    take_point(h, i, &v, now, UINT64_MAX);
    for (uint32_t wanted = windows + 1 - h->step; i; m = m->before) {
        if (m->number != wanted) continue;
        v = hk_profile_value_at(m, s);
        take_point(h, --i, &v, m->at_ns, m->born_ns);
        wanted -= h->step;
    }
    for (i = 0; i < h->n; i++) {
        h->window[i] = (double)i * h->step;
        h->hour[i] = (double)(h->at_ns[i] - h->at_ns[0]) / 3.6e12;
    }
    return true;
}

/* A counted profile does not know which blocks live: at most those that lived then, and no more than lived at
 * any time since. */
static void bound_left(history *h)
{
    h->bounded = true;
    double bytes = h->live[h->n - 1], blocks = h->blocks[h->n - 1];
    for (size_t i = h->n; i--;) {
        if (h->live[i] < bytes) bytes = h->live[i];
        if (h->blocks[i] < blocks) blocks = h->blocks[i];
        h->left[i] = bytes;
        h->left_blocks[i] = blocks;
    }
}

static void take_left(const hk_profile *k, const hk_stack *s, history *h)
{
    if (k->counted) {
        bound_left(h);
        return;
    }
    for (size_t bucket = 0; bucket < k->samples.count; bucket++)
        for (const hk_sample *b = k->samples.at[bucket]; b; b = b->next) {
            if (&b->stack->stack != s) continue;
            size_t i = h->n - 1;
            while (i && h->born_ns[i - 1] >= b->birth_ns)
                i--;
            double w = hk_profile_weight(k, b->eligible), n = (double)b->size;
            h->left[i] += w * n;
            h->left_var[i] += n * n * w * (w - 1);
            h->left_blocks[i] += w;
        }
    for (size_t i = 1; i < h->n; i++) {
        h->left[i] += h->left[i - 1];
        h->left_var[i] += h->left_var[i - 1];
        h->left_blocks[i] += h->left_blocks[i - 1];
    }
}

/* ---- What it looks like --------------------------------------------------------------------------- */

/* The part of a history from a moment on. */
typedef struct part {
    const double *y, *left, *x;
    size_t n;
    hk_trend all, early, late, before; /* of both halves, and of what is in front of the part */
    double grown, even;                /* bytes; those of a growth by the slope all the time */
} part;

static part part_of(const history *h, size_t from)
{
    part p = {.y = h->live + from, .left = h->left + from, .x = h->window + from, .n = h->n - from};
    size_t middle = p.n / 2;
    p.all = hk_trend_of(p.x, p.y, p.n);
    p.early = hk_trend_of(p.x, p.y, middle + 1);
    p.late = hk_trend_of(p.x + middle, p.y + middle, p.n - middle);
    if (from) p.before = hk_trend_of(h->window, h->live, from + 1);
    p.grown = p.y[p.n - 1] - p.y[0];
    p.even = p.all.slope * (p.x[p.n - 1] - p.x[0]);
    return p;
}

/* The stack was as large before moment `at`: what grows now had shrunk, or comes and goes. */
static bool was_higher(const history *h, size_t at, double grown)
{
    for (size_t i = 0; i < at; i++)
        if (h->live[i] > h->live[at] + grown / 4) return true;
    return false;
}

/* The heights that were reached one after the other, by a share of the usual growth at least. */
typedef struct heights {
    size_t count, rest; /* moments since the last one */
    size_t longest;     /* from one to the next, of the later half of them */
    bool doubles;       /* each by much of what there was, and none was left again: a vector that grows */
} heights;

static heights heights_of(const part *p)
{
    size_t at[POINTS_MOST];
    heights h = {.longest = 1, .doubles = true};
    double least = p->grown / (double)(p->n - 1) / 4, high = p->y[0];
    for (size_t i = 1; i < p->n; i++) {
        h.doubles = h.doubles && p->y[i] >= high / 2; /* garbage falls, a vector keeps what it has */
        if (p->y[i] < high + least) continue;
        h.doubles = h.doubles && p->y[i] >= 1.4 * high;
        high = p->y[i];
        at[h.count++] = i;
    }
    h.doubles = h.doubles && h.count >= 4;
    for (size_t i = h.count / 2; i < h.count; i++)
        if (i && at[i] - at[i - 1] > h.longest) h.longest = at[i] - at[i - 1];
    h.rest = p->n - 1 - (h.count ? at[h.count - 1] : 0);
    return h;
}

/* A cache that is full reaches no new heights, after gaps that had become shorter. A vector rests twice as
 * long each time. */
static bool has_stopped(const heights *h)
{
    if (h->doubles) return 10 * h->rest > 22 * h->longest;
    return h->rest > 1 && 2 * h->rest > 3 * h->longest;
}

/* Growth that was faster before this part may slow down only a little within it. */
static bool falls_off(const part *p)
{
    if (p->before.slope > p->all.slope && p->late.slope < 0.85 * p->early.slope) return true;
    return p->late.slope < 0.6 * p->early.slope && p->late.high < p->early.slope;
}

static bool goes_on(const part *p)
{
    size_t last = p->n - 1, tail = last - p->n / 3;
    return p->y[last] - p->y[tail] >= p->all.slope * (p->x[last] - p->x[tail]) / 2;
}

/* Never much below where it had been. */
static bool is_steady(const part *p)
{
    double high = p->y[0];
    for (size_t i = 1; i < p->n; i++) {
        if (p->y[i] > high) high = p->y[i];
        if (high - p->y[i] > p->even / 4) return false;
    }
    return p->grown >= 0.3 * p->y[p->n - 1];
}

/* Most of what lived at the middle lives now, and more came since than went. */
static bool stays_up(const part *p)
{
    size_t middle = p->n / 2;
    double then = p->y[middle], left = p->left[middle];
    return left >= 0.8 * then && p->y[p->n - 1] - then >= then - left;
}

/* If it fell, as garbage does when a collector runs: the least of what lived since then grew in both halves of
 * the time until the last fall. That of a cache which is full did not. */
static bool rises_below(const part *p)
{
    double least[POINTS_MOST], high = p->y[0];
    for (size_t i = p->n; i--;)
        least[i] = i + 1 < p->n && least[i + 1] < p->y[i] ? least[i + 1] : p->y[i];
    size_t fall = 0;
    for (size_t i = 1; i < p->n; i++) {
        if (high - p->y[i] > p->even / 4 && p->y[i] < p->y[i - 1] && p->y[i] == least[i]) fall = i;
        if (p->y[i] > high) high = p->y[i];
    }
    size_t half = fall / 2;
    return half < 2 || (least[half] - least[0] >= p->all.slope * (p->x[half] - p->x[0]) / 4 &&
                        least[fall] - least[half] >= p->all.slope * (p->x[fall] - p->x[half]) / 4);
}

/* Each window left something behind: of the windows that are long over, the later ones left as much as the
 * earlier ones, and about as much as the growth. If blocks are only replaced, windows leave more than the
 * growth. If some few windows left it all, these may be the tenants that are there at present. */
static bool leaves_behind(const part *p)
{
    size_t old = p->n - 1 - p->n / 4, half = old / 2, windows = 0;
    for (size_t i = 1; i <= old; i++)
        windows += p->left[i] > p->left[i - 1];
    if (3 * windows < old) return false;
    double early = p->left[half] - p->left[0], late = p->left[old] - p->left[half],
           grown = p->all.slope * (p->x[old] - p->x[0]);
    return early >= late / 2 && late >= early / 2 && early + late >= grown / 2 && early + late <= 2 * grown;
}

static bool is_even(const part *p)
{
    return p->even >= p->grown / 2;
}

static bool fills(const part *p, const heights *high)
{
    return has_stopped(high) || (!high->doubles && (falls_off(p) || !goes_on(p)));
}

static hak_profile_trend judge_part(const history *h, size_t from, const part *p)
{
    heights high = heights_of(p);
    if (fills(p, &high)) return HAK_PROFILE_FILLS;
    if (p->grown < (double)LEAK_LEAST || was_higher(h, from, p->grown)) return HAK_PROFILE_GROWS;
    /* The blocks that live at both ends are the same samples, which have the same error. */
    double error = hk_root(h->var[from] + h->var[h->n - 1] - 2 * h->left_var[from]);
    /* A growth that has just begun must prove itself by the blocks that stay. */
    bool is_long = 3 * p->n >= h->n;
    if (high.doubles && is_long && p->grown > 3 * error) return HAK_PROFILE_LEAKS;
    if (!is_even(p)) return HAK_PROFILE_GROWS;
    /* Blocks that stay are proof of themselves, so that fewer samples will do. */
    bool known = !h->bounded, fell = was_higher(h, from + p->n / 2, p->grown);
    if (known && !fell && stays_up(p) && p->grown > 2 * error) return HAK_PROFILE_LEAKS;
    if (!is_long || p->grown <= 3 * error || p->late.slope < 0.75 * p->early.slope) return HAK_PROFILE_GROWS;
    if (is_steady(p)) return HAK_PROFILE_LEAKS;
    bool behind = known && p->early.slope >= p->late.slope / 4 && leaves_behind(p) && rises_below(p);
    return behind ? HAK_PROFILE_LEAKS : HAK_PROFILE_GROWS;
}

static hak_site site_of(const hk_profile *k, const hk_stack *s)
{
    return k->counted ? 0 : ((const hk_sampled *)s)->site;
}

/* Two stacks that differ by nothing but the label. */
static bool is_same_place(const hk_profile *k, const hk_stack *s, const hk_stack *t)
{
    return (s->depth || site_of(k, s)) && t->depth == s->depth && site_of(k, t) == site_of(k, s) &&
           memcmp(hk_stack_frames(k, t), hk_stack_frames(k, s), s->depth * sizeof(uintptr_t)) == 0;
}

/* The entries of a vector are often made where it grows. It rests too long to show by itself that they are all
 * there. */
static bool is_full_vector(const hk_profile *k, const hk_stack *s, const history *of, size_t from)
{
    part vector = part_of(of, from);
    if (!heights_of(&vector).doubles) return false;
    HK_EACH_STACK(k, t)
    {
        history h = {0};
        if (t == s || !is_same_place(k, s, t) || !take_points(k, t, of->at_ns[of->n - 1], &h)) continue;
        part p = part_of(&h, from);
        heights high = heights_of(&p);
        if (p.grown >= vector.grown && !high.doubles && fills(&p, &high)) return true;
    }
    return false;
}

/* The runtime will stop this growth, although its blocks stay until then. */
static bool is_bounded(const hk_profile *k, const hk_stack *s)
{
    return k->bounded_label != 0 && s->label == k->bounded_label;
}

/* ---- What is said --------------------------------------------------------------------------------- */

/* Brings an amount, and one beside it, to the largest unit that the first one fills. */
static const char *to_unit(double *bytes, double *beside)
{
    static const char units[][6] = {"bytes", "KiB", "MiB", "GiB", "TiB"}; /* pointers would be relocated */
    unsigned unit = 0;
    for (; *bytes >= 1024 && unit < 4; unit++)
        *bytes /= 1024, *beside /= 1024;
    return units[unit];
}

/* An hour means something to people only if the windows took some time. */
static void tell_growth(const hk_profile *k, const hk_stack *s, hak_profile_growth *g, double grown,
                        double hours)
{
    double none = 0, low = g->low, high = g->high, low_hour = g->low_an_hour, high_hour = g->high_an_hour;
    const char *unit = to_unit(&grown, &none), *each = to_unit(&high, &low),
               *hour = to_unit(&high_hour, &low_hour);
    char by_clock[64] = "";
    if (hours * 3600 >= (double)TOLD_SECONDS)
        snprintf(by_clock, sizeof by_clock, ", %.1f to %.1f %s an hour", low_hour, high_hour, hour);
    char kept[64] = "";
    if (is_bounded(k, s)) snprintf(kept, sizeof kept, "; the runtime bounds it");
    else if (!k->counted || g->kept_share < 0.995) /* at most all says nothing */
        snprintf(kept, sizeof kept, "; %s%.0f %% of what lived at the middle lives now",
                 k->counted ? "at most " : "", g->kept_share * 100);
    snprintf(g->evidence, sizeof g->evidence, "grew by %s%.1f %s over %u windows, %.1f to %.1f %s each%s%s",
             k->exact || k->counted ? "" : "about ", grown, unit, g->windows, low, high, each, by_clock,
             kept);
}

/* The growth from a moment on; false = there is none. */
static bool examine(const history *h, size_t from, hak_profile_growth *out)
{
    part p = part_of(h, from);
    if (!(p.all.low > 0)) return false;
    hk_trend by_clock = hk_trend_of(h->hour + from, p.y, p.n);
    *out = (hak_profile_growth){.size = sizeof *out,
                                .bytes_a_window = p.all.slope,
                                .low = p.all.low,
                                .high = p.all.high,
                                .bytes_an_hour = by_clock.slope,
                                .low_an_hour = by_clock.low,
                                .high_an_hour = by_clock.high,
                                .windows = h->step * (unsigned)(p.n - 1),
                                .since_ns = h->at_ns[from],
                                .trend = judge_part(h, from, &p)};
    out->leak = out->trend == HAK_PROFILE_LEAKS;
    size_t middle = from + p.n / 2;
    double kept = h->live[middle] > 0 ? h->left[middle] / h->live[middle] : 0;
    double freed = h->made[middle] > 0 ? 1 - h->left_blocks[middle] / h->made[middle] : 0;
    out->kept_share = kept < 1 ? kept : 1;
    out->freed_share = freed > 0 ? freed : 0;
    return true;
}

bool hk_profile_growth(hk_profile *k, const hk_stack *s, hak_profile_growth *out)
{
    history h = {0};
    if (!k->marks || hk_stack_sums(k, s).live_samples == 0 || !take_points(k, s, hk_profile_clock(k), &h))
        return false;
    bool any = false, left = false;
    for (size_t i = 0; i < 3; i++) {
        size_t from = (h.n - 1) * i / 4;
        while (from + POINTS_LEAST < h.n && h.live[from + 1] == h.live[from])
            from++;
        if (h.n - from < POINTS_LEAST) break;
        hak_profile_growth g;
        if (h.live[h.n - 1] <= h.live[from] ||
            !(hk_trend_of(h.window + from, h.live + from, h.n - from).low > 0))
            continue;
        if (!left) take_left(k, s, &h);
        left = true;
        if (!examine(&h, from, &g)) continue;
        if (is_bounded(k, s) || (g.leak && is_full_vector(k, s, &h, from))) {
            g.leak = false;
            g.trend = HAK_PROFILE_FILLS;
        }
        if (any && !g.leak) continue;
        any = true;
        *out = g;
        out->stack = hk_stack_id(k, s);
        tell_growth(k, s, out, h.live[h.n - 1] - h.live[from], h.hour[h.n - 1] - h.hour[from]);
        if (g.leak) break;
    }
    return any;
}
