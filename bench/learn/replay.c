/* replay [OPTIONS] TRACE[:WINDOWS]...: plays traces on one context, each in whole passes, two at least, and
 * prints what each window cost, as lines of JSON. Time is simulated: a window takes --window-ns, and is to
 * hak_tuning.purge_ns what a second is by default.
 *
 *   --policy FILE     the context's policy; with --elo, one of those that play. Repeated
 *   --later FILE      the policy that it gets after the first window, as from a learner
 *   --learn account   a learner that goes by its own account of faults and calls
 *   --learn progress  ... that counts progress, with a clock of the modelled CPU time
 *   --elo             ratings of the policies choose; with --learn, a learner goes on from the one that won
 *   --event-ns M=N    CPU time of an event in mode M without faults and calls, for that clock
 *   --fault-ns N      of one page fault, for both
 *   --every N         events to a window, of recorded traces
 *   --counted PASS    under callgrind, which counts this pass, from 1
 *   --fresh           each pass on a context of its own, as of a state that lives for a request
 *   --save FILE       what the learner has learned at the end, as a policy
 *   --log             decisions, too */
#include "elo.h"
#include "trace.h"

#include <hakmem/learn.h>

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <valgrind/callgrind.h>

enum { SEGMENTS = 8, COOL_WINDOWS = 180, HUGE_PAGE = 2 << 20 };
/* Of one fault of a page: a populated page, a huge page, giving a page back. Then a call, in ns. */
static const double populated_share = 0.85, huge_share = 135, purged_share = 0.17, call_ns = 1000,
                    held_price = 0.00005;

typedef struct options {
    hak_policy *policies[ELO_MOST];
    unsigned policy_count;
    bool elo, log, fresh;
    unsigned counted; /* pass; 0 = none */
    const char *learn, *save;
    hak_policy *later;
    double event_ns[HAK_MODE_RESEARCH + 1];
    uint64_t window_ns, purge_ns, fault_ns; /* purge_ns: of the first policy */
    size_t every;
} options;

typedef struct window_cost {
    uint64_t events, faults, populated, huge, purged, calls, held, committed;
    double ns; /* but for instructions */
} window_cost;

static hak_ctx *ctx;
static hak_label label;
static void **blocks;
static size_t *sizes;
static uint64_t populated, huge_purged;
static bool huge_asked;
static hak_os native;

static void fail(const char *what)
{
    fprintf(stderr, "replay: %s\n", what);
    exit(1);
}

static uint64_t faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)used.ru_minflt;
}

static void populate(void *user, void *p, size_t n)
{
    uint64_t before = faults();
    native.populate(user, p, n);
    populated += faults() - before;
}

static void huge(void *user, void *p, size_t n)
{
    huge_asked = true;
    native.huge(user, p, n);
}

static void decommit(void *user, void *p, size_t n)
{
    uintptr_t from = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE, to = ((uintptr_t)p + n) / HUGE_PAGE;
    if (huge_asked && to > from) huge_purged += to - from;
    native.decommit(user, p, n);
}

/* Huge pages that were touched so far: those that are there, and those that were given back. */
static uint64_t huge_pages(void)
{
    size_t kib = 0;
    char line[200];
    FILE *file = huge_asked ? fopen("/proc/self/smaps_rollup", "r") : NULL;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %zu", &kib) == 1) break;
    if (file) fclose(file);
    return kib / 2048 + huge_purged;
}

/* ---- Playing -------------------------------------------------------------------------------------- */

/* The pages of bytes that are new. */
static void touch(char *p, size_t from, size_t n)
{
    for (size_t at = from & ~(size_t)4095; from < n && at < n; at += 4096)
        *(volatile char *)(p + (at > from ? at : from)) = 1;
}

/* Its instructions are counted by name. Returns where the next window begins. */
__attribute__((noinline)) static const trace_event *play_window(const trace_event *e)
{
    for (; e->op != TRACE_WINDOW; e++) {
        void **p = &blocks[e->slot];
        size_t size = e->size;
        switch (e->op) {
        case TRACE_ALLOC:
            *p = hak_alloc_cs(ctx, size, label, e->site);
            if (!*p) fail("no memory");
            touch(*p, 0, size);
            break;
        case TRACE_REALLOC:
            *p = hak_realloc(ctx, *p, size);
            if (!*p) fail("no memory");
            touch(*p, sizes[e->slot], size);
            break;
        default:
            hak_free(ctx, *p);
            break;
        }
        sizes[e->slot] = size;
    }
    return e + 1;
}

static window_cost cost_since(const options *o, const window_cost *before)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(ctx, &s);
    window_cost now = {.faults = faults(),
                       .populated = populated,
                       .huge = huge_pages(),
                       .purged = s.purged_bytes / 4096,
                       .calls = s.os_calls,
                       .held = s.committed_bytes + s.retained_bytes - s.live_bytes,
                       .committed = s.committed_bytes};
    if (!before) return now;
    now.faults -= before->faults;
    now.populated -= before->populated;
    now.huge = now.huge > before->huge ? now.huge - before->huge : 0;
    now.purged -= before->purged;
    now.calls -= before->calls;
    double pages = (double)now.faults - (double)now.populated * (1 - populated_share) +
                   (double)now.huge * huge_share + (double)now.purged * purged_share;
    now.ns = pages * (double)o->fault_ns + (double)now.calls * call_ns;
    return now;
}

static hak_mode mode_now(void)
{
    hak_policy *policy = hak_ctx_policy(ctx);
    int mode = policy ? hak_policy_mode(policy) : HAK_POLICY_MODE_NONE;
    hak_policy_unref(policy);
    return mode == HAK_POLICY_MODE_NONE ? HAK_MODE_BALANCED : (hak_mode)mode;
}

static void print(const options *o, uint64_t number, const window_cost *c, const elo *ratings)
{
    hak_tuning t = HAK_TUNING_INIT;
    hak_ctx_tuning(ctx, &t);
    printf("{\"window\": %llu, \"events\": %llu, \"faults\": %llu, \"populated\": %llu, \"huge\": %llu, "
           "\"purged\": %llu, "
           "\"calls\": %llu, \"held\": %llu, "
           "\"committed\": %llu, \"ns\": %.0f",
           (unsigned long long)number, (unsigned long long)c->events, (unsigned long long)c->faults,
           (unsigned long long)c->populated, (unsigned long long)c->huge, (unsigned long long)c->purged,
           (unsigned long long)c->calls, (unsigned long long)c->held, (unsigned long long)c->committed,
           c->ns);
    if (o->learn && !(o->elo && !ratings->frozen))
        printf(", \"mode\": \"%s\", \"retained_bytes\": %zu, \"expected_bytes\": %zu",
               hak_mode_name(mode_now()), t.retained_bytes == HAK_NONE ? 0 : t.retained_bytes,
               t.expected_bytes == HAK_NONE ? 0 : t.expected_bytes);
    else if (o->elo) printf(", \"policy\": %u", ratings->now);
    puts("}");
}

static void note(void *user, const hak_decision *d)
{
    static const char *const phases[] = {"learning", "frozen", "canary"};
    (void)user;
    printf("{\"decision\": %d, \"window\": %llu, \"phase\": \"%s\", \"text\": \"%s\"}\n", d->kind,
           (unsigned long long)d->window, phases[d->phase], d->text);
}

static void set_policy(hak_space *space, hak_policy *policy)
{
    if (hak_ctx_policy_set(ctx, policy) != 0) fail("no memory");
    hak_space_policy_set(space, policy);
}

/* A learner leaves the policy's own purge_ns as it is, a window here. That of mode fast is ten times as
 * long. */
static void scale_purge(const options *o, hak_space *space)
{
    hak_policy *policy = hak_ctx_policy(ctx);
    hak_tuning t = HAK_TUNING_INIT;
    hak_policy_tuning(policy, &t);
    uint64_t wanted = o->purge_ns * (mode_now() == HAK_MODE_FAST ? 10 : 1);
    if (t.purge_ns != wanted) {
        t.purge_ns = wanted;
        hak_policy_options po = HAK_POLICY_OPTIONS_INIT;
        po.mode = hak_policy_mode(policy);
        po.tuning = &t;
        hak_policy *scaled = hak_policy_new(NULL, &po);
        if (!scaled) fail("no memory");
        set_policy(space, scaled);
        hak_policy_unref(scaled);
    }
    hak_policy_unref(policy);
}

static void make(const options *o, hak_space *space)
{
    hak_options co = HAK_OPTIONS_INIT;
    co.policy = o->policies[0];
    co.workload = HAK_WORKLOAD_MALLOC;
    ctx = space ? hak_ctx_new(space, &co) : NULL;
    if (!ctx) fail("no context");
    label = hak_label_define(ctx, "trace");
}

/* Its instructions are counted by name. */
__attribute__((noinline)) static void make_again(const options *o, hak_space *space)
{
    hak_ctx_destroy(ctx);
    make(o, space);
}

static hak_learner *learner_of(const options *o)
{
    hak_learner_options lo = HAK_LEARNER_OPTIONS_INIT;
    lo.window_ns = o->window_ns;
    lo.cool_ns = COOL_WINDOWS * o->window_ns;
    lo.price = held_price;
    lo.log = o->log ? note : NULL;
    hak_learner *learner = hak_learner_new(NULL, &lo);
    if (!learner || hak_learner_add(learner, ctx) != 0) fail("no learner");
    return learner;
}

static void save(const char *name, hak_learner *learner)
{
    char text[4096];
    hak_policy *policy = hak_learner_policy(learner);
    FILE *file = fopen(name, "w");
    if (!policy || !file || hak_policy_print(policy, text, sizeof text) >= sizeof text) fail(name);
    fputs(text, file);
    fclose(file);
    hak_policy_unref(policy);
}

static void play(const options *o, trace *traces, const unsigned *windows, unsigned segments,
                 hak_space *space)
{
    hak_learner *learner = o->learn && !o->elo ? learner_of(o) : NULL;
    bool progress = o->learn && strcmp(o->learn, "progress") == 0;
    elo ratings;
    elo_init(&ratings, o->policy_count, 0);
    uint64_t now = 1, number = 0;
    hak_ctx_tick(ctx, now);
    if (o->counted == 1) CALLGRIND_START_INSTRUMENTATION;
    for (unsigned s = 0; s < segments; s++) {
        const trace *t = &traces[s];
        const trace_event *next = t->events;
        unsigned passes = 0;
        for (unsigned w = 0; w < windows[s] || passes < 2 || passes < o->counted || next != t->events; w++) {
            window_cost before = cost_since(o, NULL);
            const trace_event *from = next;
            next = play_window(next);
            uint64_t events = (uint64_t)(next - from) - 1;
            if (next == t->events + t->count) {
                next = t->events;
                if (++passes == o->counted) CALLGRIND_STOP_INSTRUMENTATION;
                if (passes + 1 == o->counted) CALLGRIND_START_INSTRUMENTATION;
            }
            window_cost c = cost_since(o, &before);
            c.events = events;
            print(o, ++number, &c, &ratings);
            if (o->later && number == 1) set_policy(space, o->later);
            if (progress) hak_learner_progress(learner, events);
            now += progress ? (uint64_t)(o->event_ns[mode_now()] * (double)events + c.ns) : o->window_ns;
            hak_ctx_tick(ctx, now);
            if (o->fresh && next == t->events) {
                make_again(o, space);
                if (learner && hak_learner_add(learner, ctx)) fail("no memory");
            } else if (learner) {
                scale_purge(o, space);
            }
            if (!o->elo || learner) continue;
            double cost = 1 + c.ns / (double)o->window_ns + held_price * (double)c.held / (1 << 20);
            unsigned was = ratings.now;
            if (elo_next(&ratings, cost) != was) set_policy(space, o->policies[ratings.now]);
            if (ratings.frozen && o->learn) learner = learner_of(o);
        }
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"peak_kib\": %ld, \"pass\": %zu}\n", used.ru_maxrss, traces[segments - 1].windows);
    if (o->save) save(o->save, learner);
    hak_ctx_destroy(ctx);
    hak_learner_delete(learner);
}

/* ---- Options -------------------------------------------------------------------------------------- */

static hak_policy *load(const char *name)
{
    char text[4096], why[200];
    FILE *file = fopen(name, "r");
    size_t n = file ? fread(text, 1, sizeof text, file) : 0;
    hak_policy_error error = {0};
    hak_policy *policy = hak_policy_parse(NULL, text, n, &error);
    if (file) fclose(file);
    snprintf(why, sizeof why, "%s:%u: %s", name, error.line, error.text);
    if (!policy) fail(why);
    return policy;
}

static void set_event_ns(options *o, char *text)
{
    char *value = strchr(text, '=');
    if (value) *value++ = 0;
    int mode = hak_mode_by_name(text);
    if (!value || mode < 0) fail("--event-ns MODE=N");
    o->event_ns[mode] = strtod(value, NULL);
}

static options parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"policy", required_argument, NULL, 'p'},
        {"learn", required_argument, NULL, 'l'},
        {"elo", no_argument, NULL, 'e'},
        {"window-ns", required_argument, NULL, 'w'},
        {"event-ns", required_argument, NULL, 'o'},
        {"every", required_argument, NULL, 'n'},
        {"log", no_argument, NULL, 'g'},
        {"fault-ns", required_argument, NULL, 'f'},
        {"counted", required_argument, NULL, 'c'},
        {"later", required_argument, NULL, 't'},
        {"save", required_argument, NULL, 's'},
        {"fresh", no_argument, NULL, 'r'},
        {0},
    };
    options o = {.window_ns = 20000000, .fault_ns = 2000, .every = 250000};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (c) {
        case 'p':
            if (o.policy_count == ELO_MOST) fail("too many policies");
            o.policies[o.policy_count++] = load(optarg);
            break;
        case 'l':
            o.learn = optarg;
            break;
        case 'e':
            o.elo = true;
            break;
        case 'w':
            o.window_ns = strtoull(optarg, NULL, 10);
            break;
        case 'o':
            set_event_ns(&o, optarg);
            break;
        case 'n':
            o.every = strtoull(optarg, NULL, 10);
            break;
        case 'c':
            o.counted = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 's':
            o.save = optarg;
            break;
        case 'r':
            o.fresh = true;
            break;
        case 't':
            o.later = load(optarg);
            break;
        case 'g':
            o.log = true;
            break;
        case 'f':
            o.fault_ns = strtoull(optarg, NULL, 10);
            break;
        default:
            exit(2);
        }
    hak_tuning t = HAK_TUNING_INIT;
    if (o.policy_count) hak_policy_tuning(o.policies[0], &t);
    o.purge_ns = t.purge_ns;
    if (o.learn && !o.purge_ns) fail("--learn: a policy with purge_ns");
    if (o.save && !o.learn) fail("--save: what was learned, so with --learn");
    if (optind == argc || argc - optind > SEGMENTS || !o.window_ns || !o.every ||
        (o.elo && o.policy_count < 2))
        fail("[OPTIONS] TRACE[:WINDOWS]...");
    return o;
}

int main(int argc, char **argv)
{
    options o = parse(argc, argv);
    trace traces[SEGMENTS];
    unsigned windows[SEGMENTS], segments = 0;
    size_t slots = 1;
    for (; optind < argc; optind++, segments++) {
        char *colon = strrchr(argv[optind], ':');
        windows[segments] = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 1;
        if (colon) *colon = 0;
        traces[segments] = trace_get(argv[optind], o.every);
        if (traces[segments].slots > slots) slots = traces[segments].slots;
    }
    blocks = calloc(slots, sizeof *blocks);
    sizes = calloc(slots, sizeof *sizes);
    if (!blocks || !sizes) fail("no memory");
    memset(blocks, 1, slots * sizeof *blocks); /* no faults of its own later */
    memset(sizes, 1, slots * sizeof *sizes);
    hak_os_default(&native);
    hak_os os = native;
    if (os.populate) os.populate = populate;
    if (os.huge) os.huge = huge;
    os.decommit = decommit;
    hak_space_options so = HAK_SPACE_OPTIONS_INIT;
    so.os = &os;
    so.policy = o.policies[0];
    hak_space *space = hak_space_new(&so);
    make(&o, space);
    play(&o, traces, windows, segments, space);
    hak_space_delete(space);
}
