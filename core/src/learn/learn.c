#include "learn/learn.h"

#include <stdarg.h>
#include <stdio.h>

enum { CANARY_EACH = 40, STRANGE = 2, GREW = 3, AHEAD = 4, FIRST_WINDOWS = 4 };
static const double fault_ns = 250, call_ns = 1000, strange_from = 0.3, MiB = 1 << 20;

/* None, 1 MiB, 2 MiB... */
size_t hk_learn_bytes(unsigned arm)
{
    return arm ? (size_t)1 << (19 + arm) : 0;
}

static unsigned arm_of(size_t bytes)
{
    unsigned arm = 0;
    while (arm + 1 < HK_BANDIT_ARMS && hk_learn_bytes(arm + 1) <= bytes)
        arm++;
    return arm;
}

size_t hk_learn_retained(const hk_learn *l)
{
    return hk_learn_bytes(l->o.dry ? l->bandit.base : l->bandit.now);
}

size_t hk_learn_kept(const hk_learn *l)
{
    return hk_learn_bytes(l->bandit.base);
}

void hk_learn_init(hk_learn *l, const hak_learner_options *o, size_t retained, size_t expected)
{
    unsigned arms = arm_of(o->retained_most) + 1, base = arm_of(retained == HAK_NONE ? 0 : retained);
    memset(l, 0, sizeof *l);
    l->o = *o;
    l->phase = HAK_PHASE_LEARNING;
    l->expected = expected;
    hk_bandit_init(&l->bandit, arms, base < arms ? base : arms - 1, o->cool_ns / o->window_ns);
    l->arm = HK_BANDIT_ARMS; /* the first window, in which all is fresh, counts as one after another number */
}

/* ---- The log -------------------------------------------------------------------------------------- */

static void tell(hk_learn *l, hak_decision d, const char *format, ...) __attribute__((format(printf, 3, 4)));
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
    log->windows[log->windows_kept++] = (hak_window){
        .size = sizeof(hak_window), .window = l->windows, .at_ns = w->at_ns, .live_bytes = w->live,
        .committed_bytes = w->committed, .retained_bytes = w->retained, .cost = cost};
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

/* ---- What a window cost --------------------------------------------------------------------------- */

static double cost_of(hk_learn *l, const hk_window *w)
{
    double ns = (double)w->ns, held = l->o.price * mib(w->retained);
    if (!w->progress) return 1 + ((double)w->fresh / 4096 * fault_ns + (double)w->os_calls * call_ns) / ns + held;
    double unit = ns / (double)w->progress;
    if (l->measured < FIRST_WINDOWS) l->ns_a_unit += (unit - l->ns_a_unit) / ++l->measured;
    return unit / l->ns_a_unit + held;
}

/* ---- Another kind of work ------------------------------------------------------------------------- */

static bool sized_otherwise(hk_learn *l, const hk_window *w)
{
    double distance = 0, all = 0;
    for (unsigned i = 0; i < HK_SIZES; i++) {
        double by = (double)w->sizes[i] - (double)l->sizes[i];
        distance += by < 0 ? -by : by;
        all += (double)w->sizes[i];
    }
    l->strange = all > 0 && distance >= strange_from ? l->strange + 1 : 0;
    return l->strange >= STRANGE;
}

static void thaw(hk_learn *l, bool forget, const char *why)
{
    l->phase = HAK_PHASE_LEARNING;
    l->strange = 0;
    if (forget) {
        hk_bandit_forget(&l->bandit);
        l->measured = 0;
    }
    tell(l, (hak_decision){.kind = HAK_DECISION_THAW}, "learns again: %s", why);
}

static void freeze(hk_learn *l, const hk_window *w, double cost)
{
    l->phase = HAK_PHASE_FROZEN;
    l->frozen_at = l->canary_at = l->windows;
    memcpy(l->sizes, w->sizes, sizeof l->sizes);
    tell(l, (hak_decision){.kind = HAK_DECISION_FREEZE, .observed = cost},
         "frozen with %.0f MiB retained: no step is better by 8 %%; memory costs %.2f %% of the time",
         mib(hk_learn_kept(l)), percent(cost));
}

/* ---- Retained bytes ------------------------------------------------------------------------------- */

static void judge(hk_learn *l, const hk_window *w, double cost)
{
    hk_bandit *b = &l->bandit;
    unsigned tried = b->now, base = b->base;
    double before = b->arm[base].mean;
    hk_verdict verdict = hk_bandit_learn(b, cost);
    hak_decision d = {.number = "retained_bytes", .expected = before, .observed = cost};
    if (verdict == HK_VERDICT_KEPT) {
        d.kind = HAK_DECISION_KEEP;
        d.from = hk_learn_bytes(base);
        d.to = hk_learn_bytes(tried);
        tell(l, d, "%s retained_bytes at %.0f MiB instead of %.0f: %.2f %% of the time instead of %.2f, three times",
             l->o.dry ? "would keep" : "keeps", mib(d.to), mib(d.from), percent(cost), percent(before));
        if (l->phase != HAK_PHASE_LEARNING) thaw(l, false, "a canary was better three times in a row");
    } else if (verdict == HK_VERDICT_UNDONE) {
        d.kind = HAK_DECISION_UNDO;
        d.from = hk_learn_bytes(tried);
        d.to = hk_learn_bytes(base);
        tell(l, d, "%.0f MiB retained: %.2f %% of the time, %.2f without; back to %.0f", mib(d.from), percent(cost),
             percent(before), mib(d.to));
    }
    if (l->phase == HAK_PHASE_CANARY) l->phase = HAK_PHASE_FROZEN;
    if (l->phase == HAK_PHASE_LEARNING && hk_bandit_settled(b)) freeze(l, w, b->arm[b->base].mean);
}

static void choose(hk_learn *l)
{
    hk_bandit *b = &l->bandit;
    unsigned before_arm = b->now;
    bool frozen = l->phase == HAK_PHASE_FROZEN, won = b->now != b->base && b->side[b->now > b->base].wins;
    bool canary = frozen && (l->windows - l->canary_at >= CANARY_EACH || won);
    if (hk_bandit_choose(b, !frozen || canary) == b->base) return;
    if (canary) {
        l->phase = HAK_PHASE_CANARY;
        l->canary_at = l->windows;
    }
    if (b->now == before_arm) return; /* goes on */
    double before = b->arm[b->base].mean;
    hak_decision d = {.kind = HAK_DECISION_TRY, .number = "retained_bytes", .from = hk_learn_kept(l),
                      .to = hk_learn_bytes(b->now), .expected = before};
    tell(l, d, "%s retained_bytes at %.0f MiB for a window; with %.0f memory costs %.2f %% of the time",
         l->o.dry ? "would try" : "tries", mib(d.to), mib(d.from), percent(before));
}

/* ---- How large the heap will be ------------------------------------------------------------------- */

static void check_forecast(hk_learn *l, const hk_window *w)
{
    if (!l->due || l->windows < l->due) return;
    bool met = w->committed >= l->expected / 2;
    hak_decision d = {.kind = met ? HAK_DECISION_MET : HAK_DECISION_MISSED, .number = "expected_bytes",
                      .from = l->expected, .to = met ? l->expected : l->was_expected,
                      .expected = (double)l->expected, .observed = (double)w->committed};
    l->due = 0;
    if (!met) l->expected = l->was_expected;
    tell(l, d, "expected %.0f MiB, came to %.0f%s", mib(d.from), mib(w->committed), met ? "" : ": taken back");
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
    hak_decision d = {.kind = HAK_DECISION_FORECAST, .number = "expected_bytes", .from = l->expected, .to = comes,
                      .expected = (double)comes, .observed = (double)w->committed};
    l->was_expected = l->expected;
    l->expected = comes;
    l->due = l->windows + AHEAD;
    tell(l, d, "%s %.0f MiB in four windows: the heap has %.0f and grew by %.0f in the last; huge pages from now on",
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
             "window of %.2f s: %.0f MiB committed, %.0f retained, %.0f fresh, %llu calls; memory costs %.2f %%",
             (double)w->ns / 1e9, mib(w->committed), mib(w->retained), (double)w->fresh / MiB,
             (unsigned long long)w->os_calls, percent(cost));
    forecast(l, w);
    /* The first of a host that counts its progress only says what a unit takes; and the first with another number
     * still has the pages of the one before. */
    bool changed = l->arm != l->bandit.now;
    l->arm = l->bandit.now;
    if (measuring || changed) return;
    judge(l, w, cost);
    if (l->phase == HAK_PHASE_FROZEN && sized_otherwise(l, w)) thaw(l, true, "sizes are distributed otherwise");
    choose(l);
}
