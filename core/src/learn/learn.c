#include "learn/learn.h"

#include "base/real.h"
#include "base/settings.h"

#include <stdarg.h>
#include <stdio.h>

enum { CANARY_EACH = 40, STRANGE = 2, GREW = 3, AHEAD = 4, FIRST_WINDOWS = 4, REMEMBERED = 16 };
static const double exchange_ns = 70, strange_from = 0.3, MiB = 1 << 20;
/* A window that costs so much more or less is of other work. */
static const double dear_from = 0.02, dear_spreads = 4;

/* Of exchanges, that a mode above saves at least. How many there are differs with the work from window to
 * window, so that a trial of some windows cannot tell. */
static const double exchanges_saved = 0.1;

/* The scale of modes, by the memory that they spend for speed. */
static const hak_mode modes[] = {HAK_MODE_LEAN, HAK_MODE_BALANCED, HAK_MODE_FAST};
enum { MODES = sizeof modes / sizeof *modes, MODE_LEAN = 0, MODE_BALANCED = 1, MODE_FAST = 2 };

/* Characters, because pointers would be relocated. */
static const char numbers[HK_KNOBS][16] = {"mode", "retained_bytes"};

/* The scale of retained bytes: none, 1 MiB, 2 MiB... */
static size_t bytes_of(unsigned arm)
{
    return arm ? (size_t)1 << (19 + arm) : 0;
}

static unsigned arm_of(size_t bytes)
{
    unsigned arm = 0;
    while (arm + 1 < HK_BANDIT_ARMS && bytes_of(arm + 1) <= bytes)
        arm++;
    return arm;
}

static uint64_t cool_windows(const hk_learn *l)
{
    return l->o.cool_ns / l->o.window_ns;
}

/* ---- Trials in vain ------------------------------------------------------------------------------- */

static size_t value_of(unsigned knob, unsigned arm)
{
    return knob == HK_KNOB_MODE ? (size_t)modes[arm] : bytes_of(arm);
}

/* The same as a policy says it. */
static size_t said_of(unsigned knob, unsigned arm)
{
    return knob == HK_KNOB_RETAINED && arm == 0 ? HAK_NONE : value_of(knob, arm);
}

static unsigned price_of(const hk_learn *l)
{
    return (unsigned)hk_max(1, (size_t)(l->o.price * 1e6 + 0.5));
}

/* What was seen elsewhere holds here: the price is the same, and faults cost about as much. */
static bool holds(const hk_learn *l, const hak_undone *u)
{
    return u->price == price_of(l) && u->fault_ns / 2 <= l->o.fault_ns && l->o.fault_ns / 2 <= u->fault_ns;
}

/* Sides of the knob's base that lost in a run before are lost from the beginning. */
static void recall(hk_learn *l, unsigned knob)
{
    hk_bandit *b = &l->knobs[knob];
    for (size_t i = 0; i < l->undone_count; i++) {
        const hak_undone *u = &l->undone[i];
        if (strcmp(u->number, numbers[knob]) != 0 || u->from != said_of(knob, b->base)) continue;
        for (unsigned side = 0; side < 2; side++) {
            bool there = side ? b->base + 1 < b->arms : b->base > b->least;
            if (there && u->to == said_of(knob, side ? b->base + 1 : b->base - 1)) hk_bandit_lost(b, side);
        }
    }
}

/* Keeps what a trial showed; the oldest one goes where there is no room. */
static void remember(hk_learn *l, const hak_undone *now)
{
    size_t at = 0;
    for (; at < l->undone_count; at++) {
        const hak_undone *u = &l->undone[at];
        if (strcmp(u->number, now->number) == 0 && u->to == now->to && u->from == now->from) break;
    }
    if (at == l->undone_count && at == HAK_UNDONE_MOST) {
        memmove(l->undone, l->undone + 1, (HAK_UNDONE_MOST - 1) * sizeof *l->undone);
        at--;
    } else if (at == l->undone_count) {
        l->undone_count++;
    }
    l->undone[at] = *now;
}

size_t hk_learn_undone(const hk_learn *l, hak_undone *out)
{
    size_t n = 0;
    for (size_t i = 0; i < l->undone_count; i++) {
        const hak_undone *u = &l->undone[i];
        unsigned knob = strcmp(u->number, numbers[HK_KNOB_MODE]) == 0 ? HK_KNOB_MODE : HK_KNOB_RETAINED;
        if (u->from == said_of(knob, l->knobs[knob].base)) out[n++] = *u;
    }
    return n;
}

/* ---- Beginning ------------------------------------------------------------------------------------ */

/* The scale of retained bytes begins with the number that the mode gives. */
static void begin_retained(hk_learn *l, size_t limit)
{
    unsigned arms = arm_of(l->o.retained_most) + 1, base = arm_of(limit == HAK_NONE ? 0 : limit);
    hk_bandit *b = &l->knobs[HK_KNOB_RETAINED];
    hk_bandit_init(b, arms, base < arms ? base : arms - 1, cool_windows(l));
    size_t balanced = hk_settings_default(HAK_MODE_BALANCED, HAK_WORKLOAD_TRACED)->retained_bytes;
    if (l->o.keeps_speed) b->least = (unsigned)hk_min(arm_of(balanced), b->base);
    l->retained_first = b->base;
    recall(l, HK_KNOB_RETAINED);
}

void hk_learn_init(hk_learn *l, const hak_learner_options *o, hak_mode mode, size_t retained, size_t expected,
                   const hak_undone *undone, size_t undone_count)
{
    memset(l, 0, sizeof *l);
    l->o = *o;
    l->phase = HAK_PHASE_LEARNING;
    l->expected = expected;
    bool fixed = mode == HAK_MODE_MINIMAL; /* it is for comparisons */
    l->mode_first = fixed || mode == HAK_MODE_LEAN ? MODE_LEAN
                    : mode == HAK_MODE_FAST        ? MODE_FAST
                                                   : MODE_BALANCED;
    hk_bandit *b = &l->knobs[HK_KNOB_MODE];
    hk_bandit_init(b, fixed ? 1 : MODES, l->mode_first, cool_windows(l));
    if (o->keeps_speed && !fixed) b->least = (unsigned)hk_min(MODE_BALANCED, b->base);
    for (size_t i = 0; i < undone_count; i++)
        if (holds(l, &undone[i])) remember(l, &undone[i]);
    recall(l, HK_KNOB_MODE);
    begin_retained(l, retained);
    /* The first window, in which all is fresh, counts as one after a change. */
    l->ran[HK_KNOB_MODE] = HK_BANDIT_ARMS;
}

static hk_choice choice_of(const hk_learn *l, unsigned mode, unsigned retained)
{
    hk_choice c = {.mode = mode == l->mode_first ? HAK_POLICY_MODE_NONE : (int)modes[mode],
                   .expected = l->expected};
    /* Another mode is being tried: with its own number. */
    bool own = retained == l->retained_first || mode != l->knobs[HK_KNOB_MODE].base;
    if (!own) c.retained = retained ? bytes_of(retained) : HAK_NONE;
    return c;
}

hk_choice hk_learn_kept(const hk_learn *l)
{
    return choice_of(l, l->knobs[HK_KNOB_MODE].base, l->knobs[HK_KNOB_RETAINED].base);
}

hk_choice hk_learn_now(const hk_learn *l)
{
    if (l->o.dry) return hk_learn_kept(l);
    return choice_of(l, l->knobs[HK_KNOB_MODE].now, l->knobs[HK_KNOB_RETAINED].now);
}

hak_mode hk_learn_mode(const hk_learn *l)
{
    return l->knobs[HK_KNOB_MODE].arms == 1 ? HAK_MODE_MINIMAL : modes[l->knobs[HK_KNOB_MODE].base];
}

size_t hk_learn_retained(const hk_learn *l)
{
    return bytes_of(l->knobs[HK_KNOB_RETAINED].base);
}

double hk_learn_cost(const hk_learn *l)
{
    const hk_bandit *b = &l->knobs[l->turn];
    return b->arm[b->base].mean;
}

/* ---- The log -------------------------------------------------------------------------------------- */

static void tell(hk_learn *l, hak_decision d, const char *format, ...) HK_FORMAT(3, 4);
static void tell(hk_learn *l, hak_decision d, const char *format, ...)
{
    d.size = sizeof d;
    d.window = l->windows;
    d.at_ns = l->at_ns;
    d.phase = l->phase;
    va_list args;
    va_start(args, format);
    vsnprintf(d.text, sizeof d.text, format, args);
    va_end(args);
    if (d.kind != HAK_DECISION_WINDOW) l->log.decisions[l->log.decided++ % HAK_LEARNER_DECISIONS] = d;
    if (l->o.log) l->o.log(l->o.user, &d);
}

/* Windows of all the time, at a distance that doubles. */
static void keep_window(hk_learn *l, const hk_window *w, double cost)
{
    hk_learn_log *log = &l->log;
    if (log->every == 0) log->every = 1;
    if (l->windows % log->every != 0) return;
    if (log->windows_kept == HAK_LEARNER_WINDOWS) {
        log->every *= 2;
        log->windows_kept = 0;
        for (unsigned i = 0; i < HAK_LEARNER_WINDOWS; i++)
            if (log->windows[i].window % log->every == 0) log->windows[log->windows_kept++] = log->windows[i];
        if (l->windows % log->every != 0) return;
    }
    log->windows[log->windows_kept++] = (hak_window){.size = sizeof(hak_window),
                                                     .window = l->windows,
                                                     .at_ns = w->at_ns,
                                                     .live_bytes = w->live,
                                                     .committed_bytes = w->committed,
                                                     .retained_bytes = w->retained,
                                                     .cost = cost,
                                                     .resident_bytes = w->resident};
}

const hak_decision *hk_learn_decision(const hk_learn *l, size_t i)
{
    uint64_t n = l->log.decided, kept = n < HAK_LEARNER_DECISIONS ? n : HAK_LEARNER_DECISIONS;
    return i < kept ? &l->log.decisions[(n - kept + i) % HAK_LEARNER_DECISIONS] : NULL;
}

const hak_window *hk_learn_window_at(const hk_learn *l, size_t i)
{
    return i < l->log.windows_kept ? &l->log.windows[i] : NULL;
}

static double mib(size_t bytes)
{
    return (double)bytes / MiB;
}

static double percent(double cost)
{
    return (cost - 1) * 100;
}

static void mean(double *m, double x, unsigned n)
{
    *m += (x - *m) / n;
}

/* ---- What a window cost --------------------------------------------------------------------------- */

static double cost_of(hk_learn *l, const hk_window *w)
{
    double ns = (double)w->ns, held = l->o.price * mib(w->held);
    if (w->progress) {
        double unit = ns / (double)w->progress;
        if (l->measured < FIRST_WINDOWS) l->ns_a_unit += (unit - l->ns_a_unit) / ++l->measured;
        return unit / l->ns_a_unit + held;
    }
    double pages =
        ((double)w->fresh - (double)w->fresh_huge) * l->o.fault_ns + (double)w->fresh_huge * l->o.huge_ns;
    return 1 + (pages / 4096 + (double)w->os_calls * l->o.call_ns) / ns + held;
}

/* What a step may save at most: a smaller one what is held, a larger one what pages and calls take, and of
 * modes some of what exchanges do. Where the host counts its progress that is not known. */
static void bound(hk_learn *l, const hk_window *w, double cost)
{
    const hk_bandit *b = &l->knobs[l->turn];
    unsigned n = b->arm[b->base].n < REMEMBERED ? b->arm[b->base].n : REMEMBERED;
    double held = l->o.price * mib(w->held);
    mean(&l->held, held, n);
    mean(&l->exchanges, w->progress ? 0 : (double)w->exchanges * exchange_ns / (double)w->ns, n);
    mean(&l->retained, l->o.price * mib(w->retained), n);
    mean(&l->pages, w->progress ? cost : cost - 1 - held, n);
    for (unsigned k = 0; k < HK_KNOBS; k++) {
        l->knobs[k].side[0].most = k == HK_KNOB_RETAINED ? l->retained : l->held;
        l->knobs[k].credit = k == HK_KNOB_MODE ? exchanges_saved * l->exchanges : 0;
        l->knobs[k].side[1].most = l->pages + l->knobs[k].credit;
    }
}

/* ---- Another kind of work ------------------------------------------------------------------------- */

static double distance_of(const float *a, const float *b)
{
    double distance = 0;
    for (unsigned i = 0; i < HK_SIZES; i++) {
        double by = (double)a[i] - (double)b[i];
        distance += by < 0 ? -by : by;
    }
    return distance;
}

static bool empty(const float *sizes)
{
    static const float none[HK_SIZES];
    return distance_of(sizes, none) == 0;
}

/* What sizes are like while it learns, and how far they wander from that in any case. */
static void know_sizes(hk_learn *l, const hk_window *w)
{
    if (empty(w->sizes)) return;
    if (l->sized < REMEMBERED) l->sized++;
    for (unsigned i = 0; i < HK_SIZES; i++)
        l->sizes[i] += (w->sizes[i] - l->sizes[i]) / (float)l->sized;
    mean(&l->wander, distance_of(w->sizes, l->sizes), l->sized);
}

static bool sized_otherwise(hk_learn *l, const hk_window *w)
{
    bool strange =
        !empty(w->sizes) && l->sized && distance_of(w->sizes, l->sizes) >= strange_from + 2 * l->wander;
    l->strange = strange ? l->strange + 1 : 0;
    return l->strange >= STRANGE;
}

/* Costs are not those of the base, as far as they are known. */
static bool costs_otherwise(hk_learn *l, double cost)
{
    const hk_bandit *b = &l->knobs[l->turn];
    const hk_arm *base = &b->arm[b->base];
    if (l->phase == HAK_PHASE_LEARNING && base->n < HK_BANDIT_LONG) {
        l->dear = 0; /* of a step that was kept since */
        return false;
    }
    double by = cost > base->mean ? cost - base->mean : base->mean - cost;
    l->dear = by > dear_from + dear_spreads * hk_root(base->variance) ? l->dear + 1 : 0;
    return l->dear >= STRANGE;
}

static void thaw(hk_learn *l, bool forget, const char *why)
{
    l->phase = HAK_PHASE_LEARNING;
    l->strange = l->dear = 0;
    for (unsigned k = 0; forget && k < HK_KNOBS; k++)
        hk_bandit_forget(&l->knobs[k]);
    if (forget) l->measured = l->turn = l->sized = 0;
    tell(l, (hak_decision){.kind = HAK_DECISION_THAW}, "learns again: %s", why);
}

static const char *mode_name(const hk_learn *l, unsigned arm)
{
    return hak_mode_name(l->knobs[HK_KNOB_MODE].arms == 1 ? HAK_MODE_MINIMAL : modes[arm]);
}

static void freeze(hk_learn *l, double cost)
{
    l->phase = HAK_PHASE_FROZEN;
    l->canary_at = l->windows;
    tell(l, (hak_decision){.kind = HAK_DECISION_FREEZE, .observed = cost},
         "frozen with mode %s and %.0f MiB retained: no step is better by 8 %%; memory costs %.2f %% of the "
         "time",
         mode_name(l, l->knobs[HK_KNOB_MODE].base), mib(bytes_of(l->knobs[HK_KNOB_RETAINED].base)),
         percent(cost));
}

/* ---- Steps ---------------------------------------------------------------------------------------- */

typedef struct name {
    char text[24];
} name;

static name name_of(const hk_learn *l, unsigned knob, unsigned arm)
{
    name n;
    if (knob == HK_KNOB_MODE) snprintf(n.text, sizeof n.text, "%s", mode_name(l, arm));
    else snprintf(n.text, sizeof n.text, "%.0f MiB", mib(bytes_of(arm)));
    return n;
}

/* What is known of the other knob was seen with the old value of this one. */
static void stepped(hk_learn *l, const hk_window *w)
{
    if (l->turn == HK_KNOB_MODE) {
        begin_retained(l, w->retained_limit);
        l->ran[HK_KNOB_RETAINED] = l->retained_first;
    } else {
        hk_bandit_rebase(&l->knobs[HK_KNOB_MODE]);
    }
    if (l->phase != HAK_PHASE_LEARNING) thaw(l, false, "a canary was better");
}

static unsigned millionths(double cost)
{
    double n = (cost - 1) * 1e6;
    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
}

/* arm: what is not in force after the trial, in which memory cost `cost`, and `without` with what is. */
static void note_undone(hk_learn *l, unsigned arm, unsigned kept, double cost, double without,
                        unsigned windows)
{
    const hak_undone undone = {numbers[l->turn], said_of(l->turn, arm), said_of(l->turn, kept),
                               millionths(cost), millionths(without),   windows,
                               price_of(l),      l->o.fault_ns};
    remember(l, &undone);
}

static void judge_trial(hk_learn *l, const hk_window *w, double cost)
{
    hk_bandit *b = &l->knobs[l->turn];
    unsigned tried = b->now, base = b->base;
    double before = b->arm[base].mean;
    hk_verdict verdict = hk_bandit_learn(b, cost);
    hak_decision d = {.number = numbers[l->turn], .expected = before, .observed = b->trial};
    name with = name_of(l, l->turn, tried), without = name_of(l, l->turn, base);
    if (verdict == HK_VERDICT_KEPT) {
        d.kind = HAK_DECISION_KEEP;
        d.from = value_of(l->turn, base);
        d.to = value_of(l->turn, tried);
        tell(l, d,
             "%s %s %s instead of %s: memory costs %.2f %% of the time instead of %.2f, in %u windows%s",
             l->o.dry ? "would keep" : "keeps", d.number, with.text, without.text, percent(d.observed),
             percent(before), b->tried,
             d.observed < before ? "" : "; it exchanges less between magazines and slabs");
        note_undone(l, base, tried, before, d.observed, b->tried); /* the step back was tried so, too */
        stepped(l, w);
    } else if (verdict == HK_VERDICT_UNDONE) {
        d.kind = HAK_DECISION_UNDO;
        d.from = value_of(l->turn, tried);
        d.to = value_of(l->turn, base);
        tell(l, d, "%s %s: memory costs %.2f %% of the time, %.2f without; back to %s", d.number, with.text,
             percent(d.observed), percent(before), without.text);
        note_undone(l, tried, base, d.observed, before, b->tried);
    }
    if (l->phase == HAK_PHASE_CANARY) l->phase = HAK_PHASE_FROZEN;
}

static void judge(hk_learn *l, const hk_window *w, double cost)
{
    if (hk_bandit_tries(&l->knobs[l->turn])) {
        judge_trial(l, w, cost);
        return;
    }
    bool sizes = l->phase == HAK_PHASE_FROZEN && sized_otherwise(l, w), costs = costs_otherwise(l, cost);
    if (sizes || costs) thaw(l, true, sizes ? "sizes are distributed otherwise" : "memory costs otherwise");
    if (sizes || costs || l->dear) return; /* it may be other work, which says nothing of this one */
    for (unsigned k = 0; k < HK_KNOBS; k++)
        hk_bandit_learn(&l->knobs[k], cost);
    bound(l, w, cost);
}

/* The knob whose turn it is: the first one that is not settled; in a canary the next one that could be
 * better. */
static bool take_turn(hk_learn *l, bool canary)
{
    for (unsigned k = 0; k < HK_KNOBS; k++) {
        unsigned knob = canary ? (l->turn + 1 + k) % HK_KNOBS : k;
        const hk_bandit *b = &l->knobs[knob];
        if (canary ? !hk_bandit_hopes(b) : hk_bandit_settled(b)) continue;
        l->turn = knob;
        return true;
    }
    return false;
}

static void choose(hk_learn *l)
{
    bool frozen = l->phase == HAK_PHASE_FROZEN, tries = hk_bandit_tries(&l->knobs[l->turn]);
    bool canary = frozen && (tries || l->windows - l->canary_at >= CANARY_EACH);
    if (!tries && (!frozen || canary) && !take_turn(l, canary)) {
        if (!frozen) freeze(l, hk_learn_cost(l));
        return;
    }
    hk_bandit *b = &l->knobs[l->turn];
    if (hk_bandit_choose(b, !frozen || canary) == b->base) return;
    if (canary) {
        l->phase = HAK_PHASE_CANARY;
        l->canary_at = l->windows;
    }
    if (tries) return; /* goes on */
    double before = b->arm[b->base].mean;
    hak_decision d = {.kind = HAK_DECISION_TRY,
                      .number = numbers[l->turn],
                      .from = value_of(l->turn, b->base),
                      .to = value_of(l->turn, b->now),
                      .expected = before};
    tell(l, d, "%s %s %s; with %s memory costs %.2f %% of the time", l->o.dry ? "would try" : "tries",
         d.number, name_of(l, l->turn, b->now).text, name_of(l, l->turn, b->base).text, percent(before));
}

/* ---- How large the heap will be ------------------------------------------------------------------- */

static void check_forecast(hk_learn *l, const hk_window *w)
{
    if (!l->due || l->windows < l->due) return;
    bool met = w->committed >= l->expected / 2;
    hak_decision d = {.kind = met ? HAK_DECISION_MET : HAK_DECISION_MISSED,
                      .number = "expected_bytes",
                      .from = l->expected,
                      .to = met ? l->expected : l->was_expected,
                      .expected = (double)l->expected,
                      .observed = (double)w->committed};
    l->due = 0;
    if (!met) l->expected = l->was_expected;
    tell(l, d, "expected %.0f MiB, came to %.0f%s", mib(d.from), mib(w->committed),
         met ? "" : ": taken back");
}

static void forecast(hk_learn *l, const hk_window *w)
{
    check_forecast(l, w);
    size_t by = w->committed > l->committed ? w->committed - l->committed : 0;
    l->grew = l->committed && by >= l->committed / 4 ? l->grew + 1 : 0;
    l->committed = w->committed;
    if (l->grew < GREW || l->due || w->committed >= w->huge_from) return;
    size_t comes = w->committed + AHEAD * by;
    if (comes < w->huge_from || (l->expected != HAK_NONE && l->expected >= comes)) return;
    hak_decision d = {.kind = HAK_DECISION_FORECAST,
                      .number = "expected_bytes",
                      .from = l->expected,
                      .to = comes,
                      .expected = (double)comes,
                      .observed = (double)w->committed};
    l->was_expected = l->expected;
    l->expected = comes;
    l->due = l->windows + AHEAD;
    tell(
        l, d,
        "%s %.0f MiB in four windows: the heap has %.0f and grew by %.0f in the last; huge pages from now on",
        l->o.dry ? "would expect" : "expects", mib(comes), mib(w->committed), mib(by));
}

void hk_learn_window(hk_learn *l, const hk_window *w)
{
    if (w->ns == 0) return;
    l->windows++;
    l->at_ns = w->at_ns;
    bool measuring = w->progress && l->measured < FIRST_WINDOWS;
    double cost = cost_of(l, w);
    keep_window(l, w, cost);
    if (l->o.windows)
        tell(l, (hak_decision){.kind = HAK_DECISION_WINDOW, .observed = cost},
             "window of %.2f s: %.0f MiB committed, %.0f retained, %.0f fresh, %llu calls; memory costs %.2f "
             "%%",
             (double)w->ns / 1e9, mib(w->committed), mib(w->retained), (double)w->fresh / MiB,
             (unsigned long long)w->os_calls, percent(cost));
    forecast(l, w);
    bool changed = false;
    for (unsigned k = 0; k < HK_KNOBS; k++) {
        changed |= l->ran[k] != l->knobs[k].now;
        l->ran[k] = l->knobs[k].now;
    }
    if (l->phase == HAK_PHASE_LEARNING) know_sizes(l, w);
    /* The first of a host that counts its progress only says what a unit takes; and the first after a change
     * still has the pages of the one before. */
    if (measuring || changed) return;
    judge(l, w, cost);
    choose(l);
}
