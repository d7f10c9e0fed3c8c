#define _GNU_SOURCE
#include "customers.h"

#include "latency.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { IDLE_MOST = 2 };
static const char *const outcome_names[RUN_OUTCOMES] = {"ok", "error", "time", "trap", "refused", "quota"};

const char *outcome_name(outcome o)
{
    return outcome_names[o];
}

typedef struct customer {
    char name[33];
    hak_wasm_tenant *tenant;
    guest *idle[IDLE_MOST]; /* reset */
    unsigned idle_count;
    unsigned scripts; /* that run or wait */
    uint64_t latest;  /* number of the latest script */
    uint64_t runs[RUN_OUTCOMES];
    uint64_t resets, instances;
    share share;
} customer;

struct customers {
    hak_wasm_host *host;
    engine *engine;
    turns *turns;
    limits limits;
    pthread_mutex_t lock; /* of all that is below; not held while a script runs */
    customer **list;      /* sorted by name */
    unsigned count;
    uint64_t scripts; /* so far */
    bool profile;     /* customers are profiled */
    uint64_t retired;
    uint64_t retired_runs[RUN_OUTCOMES];
    double retired_seconds;
    latency latency; /* of all runs */
};

customers *customers_new(hak_wasm_host *host, engine *e, const limits *l)
{
    customers *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->host = host;
    all->engine = e;
    all->limits = *l;
    all->list = calloc(l->customers, sizeof *all->list);
    all->turns = turns_new(l->processors, l->quota);
    if (!all->list || !all->turns) {
        free(all->list);
        free(all->turns);
        free(all);
        return NULL;
    }
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

static void delete_customer(customer *c)
{
    while (c->idle_count > 0)
        guest_delete(c->idle[--c->idle_count]);
    hak_wasm_tenant_close(c->tenant, HAK_WASM_RETIRE);
    free(c);
}

void customers_delete(customers *all)
{
    for (unsigned i = 0; i < all->count; i++)
        delete_customer(all->list[i]);
    turns_delete(all->turns);
    pthread_mutex_destroy(&all->lock);
    free(all->list);
    free(all);
}

void customers_end(customers *all)
{
    turns_end(all->turns);
}

bool customers_name_is_good(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length >= 1 && length < sizeof((customer *)0)->name && name[length] == '\0';
}

/* Makes room for another: who has been without a script for the longest time goes, the totals stay. Under
 * lock. */
static bool retire(customers *all)
{
    unsigned at = all->count;
    for (unsigned i = 0; i < all->count; i++) {
        const customer *c = all->list[i];
        if (c->scripts == 0 && (at == all->count || c->latest < all->list[at]->latest)) at = i;
    }
    if (at == all->count) return false;
    customer *c = all->list[at];
    memmove(all->list + at, all->list + at + 1, (--all->count - at) * sizeof *all->list);
    all->retired++;
    for (int o = 0; o < RUN_OUTCOMES; o++)
        all->retired_runs[o] += c->runs[o];
    all->retired_seconds += share_seconds(all->turns, &c->share);
    delete_customer(c);
    return true;
}

static customer *make(customers *all, const char *name)
{
    customer *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    memcpy(c->name, name, strlen(name));
    hak_wasm_tenant_options options = HAK_WASM_TENANT_OPTIONS_INIT;
    options.name = c->name;
    options.limits.linear_bytes = all->limits.linear_bytes;
    options.limits.instances = all->limits.instances;
    options.limits.heap_bytes = all->limits.heap_bytes;
    options.limits.heap_soft = true;
    c->tenant = hak_wasm_tenant_new(all->host, &options);
    hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
    profile.window_ns = 60000000000; /* a minute: what grows is named after five */
    if (c->tenant && all->profile)
        hak_wasm_profile_start(c->tenant, &profile); /* or without, if memory is short */
    if (c->tenant) return c;
    free(c);
    return NULL;
}

/* NULL and *why. Under lock. */
static customer *find(customers *all, const char *name, const char **why)
{
    unsigned at = 0;
    while (at < all->count && strcmp(all->list[at]->name, name) < 0)
        at++;
    if (at < all->count && strcmp(all->list[at]->name, name) == 0) return all->list[at];
    if (all->count == all->limits.customers) {
        *why = "too many customers, and all have scripts that run";
        return retire(all) ? find(all, name, why) : NULL;
    }
    *why = "no memory for a customer";
    customer *c = make(all, name);
    if (!c) return NULL;
    memmove(all->list + at + 1, all->list + at, (all->count - at) * sizeof *all->list);
    all->list[at] = c;
    all->count++;
    return c;
}

static void say(answer *a, const char *text)
{
    a->text = strdup(text);
    a->length = a->text ? strlen(a->text) : 0;
}

/* In a turn of the customer's. *kept = the guest is as new. */
static outcome run(customers *all, customer *c, guest *g, const job *j, answer *a, bool *kept)
{
    turn t;
    turn_state state = turn_begin(all->turns, &c->share, &t);
    if (state != TURN_GOES) {
        say(a, state == TURN_ENDS ? "the server ends" : "the customer has used up its CPU time for now");
        a->wait = share_wait(all->turns, &c->share);
        *kept = true; /* nothing ran */
        return state == TURN_ENDS ? RUN_REFUSED : RUN_QUOTA;
    }
    outcome result = guest_run(g, &t, j, a);
    /* At once, so that nothing of a script waits in a guest. One that grew cannot go back. */
    *kept = guest_reset(g);
    turn_end(&t);
    a->seconds = t.seconds;
    return result;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

outcome customers_run(customers *all, const char *name, const job *j, answer *a)
{
    const char *why = NULL;
    const double began = now_s();
    pthread_mutex_lock(&all->lock);
    customer *c = find(all, name, &why);
    guest *g = c && c->idle_count > 0 ? c->idle[--c->idle_count] : NULL;
    if (c) {
        c->scripts++;
        c->latest = ++all->scripts;
    }
    pthread_mutex_unlock(&all->lock);
    if (!c) {
        say(a, why);
        return RUN_REFUSED;
    }

    outcome result = RUN_REFUSED;
    bool made = false, kept = false;
    if (!g) made = (g = guest_new(all->engine, c->tenant, &a->text));
    if (g) result = run(all, c, g, j, a, &kept);
    else a->length = a->text ? strlen(a->text) : 0;

    pthread_mutex_lock(&all->lock);
    latency_add(&all->latency, now_s() - began);
    c->runs[result]++;
    c->instances += made;
    c->resets += kept && result != RUN_QUOTA;
    bool keep = kept && c->idle_count < IDLE_MOST;
    if (keep) c->idle[c->idle_count++] = g;
    pthread_mutex_unlock(&all->lock);
    if (g && !keep) guest_delete(g);

    pthread_mutex_lock(&all->lock);
    c->scripts--; /* from now on it may be retired */
    pthread_mutex_unlock(&all->lock);
    return result;
}

void customers_profile(customers *all)
{
    all->profile = true;
}

/* One at a time: who is seen is not retired meanwhile, all others may be. */
void customers_look(void *user, hak_wasm_look *look)
{
    customers *all = user;
    char name[sizeof((customer *)0)->name] = "";
    pthread_mutex_lock(&all->lock);
    for (unsigned at = 0; at < all->count;) {
        customer *c = all->list[at];
        if (strcmp(c->name, name) <= 0) {
            at++;
            continue;
        }
        memcpy(name, c->name, sizeof name);
        c->scripts++;
        pthread_mutex_unlock(&all->lock);
        hak_wasm_look_at(look, c->tenant);
        pthread_mutex_lock(&all->lock);
        c->scripts--;
        at = 0; /* the list may be another one */
    }
    pthread_mutex_unlock(&all->lock);
}

static void family(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP wasm_%s %s\n# TYPE wasm_%s %s\n", name, help, name, type);
}

static size_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t all, resident = 0;
    if (f && fscanf(f, "%zu %zu", &all, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void report_host(customers *all, FILE *to)
{
    hak_wasm_host_info info = {.size = sizeof info};
    hak_wasm_host_stats(all->host, &info);
    family(to, "process_resident_bytes", "gauge", "Resident memory of the server.");
    fprintf(to, "wasm_process_resident_bytes %zu\n", resident_bytes());
    family(to, "memories", "gauge", "Linear memories: live, or free and warm.");
    fprintf(to, "wasm_memories{state=\"live\"} %zu\nwasm_memories{state=\"warm\"} %zu\n", info.live,
            info.warm);
    family(to, "warm_bytes", "gauge", "Resident bytes kept in free slots.");
    fprintf(to, "wasm_warm_bytes %zu\n", info.warm_bytes);
    family(to, "reserved_bytes", "gauge", "Address space of all slots.");
    fprintf(to, "wasm_reserved_bytes %zu\n", info.reserved_bytes);
    family(to, "image_bytes", "gauge", "Size of the image that guests are reset to.");
    fprintf(to, "wasm_image_bytes %zu\n", info.image_bytes);
}

/* Of one customer at one moment. */
typedef struct figures {
    char name[sizeof((customer *)0)->name];
    bool known; /* also when all counters were read */
    hak_wasm_tenant_info info;
    uint64_t runs[RUN_OUTCOMES];
    uint64_t resets, instances;
    double seconds;
} figures;

/* Of all of them. */
typedef struct sums {
    unsigned customers;
    uint64_t retired, retired_runs[RUN_OUTCOMES];
    double retired_seconds;
    latency latency;
} sums;

/* What takes its time: scripts of all customers go on meanwhile. Who is looked at is not retired, all others
 * may be. In the order of names; returns how many. */
static unsigned measure(customers *all, figures *out, unsigned most)
{
    unsigned n = 0;
    pthread_mutex_lock(&all->lock);
    for (unsigned at = 0; at < all->count && n < most;) {
        customer *c = all->list[at];
        if (n > 0 && strcmp(c->name, out[n - 1].name) <= 0) {
            at++;
            continue;
        }
        figures *f = &out[n++];
        memcpy(f->name, c->name, sizeof f->name);
        f->info.size = sizeof f->info;
        c->scripts++;
        pthread_mutex_unlock(&all->lock);
        hak_wasm_tenant_stats(c->tenant, &f->info);
        pthread_mutex_lock(&all->lock);
        c->scripts--;
        if (at >= all->count || all->list[at] != c) at = 0; /* the list is another one */
    }
    pthread_mutex_unlock(&all->lock);
    return n;
}

/* Counters of customers end with them: all are read at one moment, those that came after `measure` the next
 * time. */
static void count(customers *all, figures *list, unsigned n, sums *whole)
{
    pthread_mutex_lock(&all->lock);
    for (unsigned i = 0, at = 0; i < n; i++) {
        figures *f = &list[i];
        while (at < all->count && strcmp(all->list[at]->name, f->name) < 0)
            at++;
        f->known = at < all->count && strcmp(all->list[at]->name, f->name) == 0;
        if (!f->known) continue;
        const customer *c = all->list[at];
        memcpy(f->runs, c->runs, sizeof f->runs);
        f->resets = c->resets;
        f->instances = c->instances;
        f->seconds = share_seconds(all->turns, &c->share);
    }
    *whole =
        (sums){.customers = all->count, .retired = all->retired, .retired_seconds = all->retired_seconds};
    memcpy(whole->retired_runs, all->retired_runs, sizeof whole->retired_runs);
    whole->latency = all->latency;
    pthread_mutex_unlock(&all->lock);
}

/* What there is of all customers together, and what the counters of those that are gone came to. */
static void report_sums(const sums *whole, FILE *to)
{
    family(to, "run_seconds", "histogram", "Time that runs took, waiting included.");
    latency_write(&whole->latency, "wasm_run_seconds", to);
    family(to, "customers", "gauge", "Customers that are known.");
    fprintf(to, "wasm_customers %u\n", whole->customers);
    family(to, "customers_retired_total", "counter", "Customers that made room for others.");
    fprintf(to, "wasm_customers_retired_total %lu\n", (unsigned long)whole->retired);
    family(to, "retired_cpu_seconds_total", "counter", "CPU time of scripts of retired customers.");
    fprintf(to, "wasm_retired_cpu_seconds_total %.6f\n", whole->retired_seconds);
    family(to, "retired_runs_total", "counter", "Scripts of retired customers, by outcome.");
    for (int o = 0; o < RUN_OUTCOMES; o++) {
        fprintf(to, "wasm_retired_runs_total{outcome=\"%s\"} %lu\n", outcome_names[o],
                (unsigned long)whole->retired_runs[o]);
    }
}

static void report_each(const customers *all, const figures *list, unsigned n, FILE *to)
{
/* One value of every customer. */
#define EACH(metric, type, help, format, value)                                                              \
    family(to, metric, type, help);                                                                          \
    for (const figures *f = list; f < list + n; f++) {                                                       \
        if (f->known) fprintf(to, "wasm_" metric "{tenant=\"%s\"} " format "\n", f->name, value);            \
    }
    EACH("linear_bytes", "gauge", "Sizes of linear memories.", "%zu", f->info.linear_bytes)
    EACH("linear_peak_bytes", "gauge", "Most of that so far.", "%zu", f->info.linear_peak)
    EACH("linear_limit_bytes", "gauge", "Limit of that.", "%zu", all->limits.linear_bytes)
    EACH("linear_resident_bytes", "gauge", "Resident pages that are not the image's.", "%zu",
         f->info.linear_resident)
    EACH("linear_proportional_bytes", "gauge", "Those pages, and an equal part of each image's that it uses.",
         "%zu", f->info.linear_proportional)
    EACH("linear_refused_total", "counter", "Memories and growths over the limit.", "%lu",
         (unsigned long)f->info.linear_refused)
    EACH("heap_bytes", "gauge", "Live blocks of the runtime.", "%zu", f->info.heap_live)
    EACH("instances", "gauge", "Instances, running and waiting.", "%zu", f->info.instances)
    EACH("instances_refused_total", "counter", "Instances over a limit.", "%lu",
         (unsigned long)f->info.instances_refused)
    EACH("instantiations_total", "counter", "Instances made.", "%lu", (unsigned long)f->instances)
    EACH("resets_total", "counter", "Instances reset.", "%lu", (unsigned long)f->resets)
    EACH("cpu_seconds_total", "counter", "CPU time of scripts, resets included.", "%.6f", f->seconds)
#undef EACH
    family(to, "runs_total", "counter", "Scripts, by outcome.");
    for (const figures *f = list; f < list + n; f++) {
        for (int o = 0; f->known && o < RUN_OUTCOMES; o++) {
            fprintf(to, "wasm_runs_total{tenant=\"%s\",outcome=\"%s\"} %lu\n", f->name, outcome_names[o],
                    (unsigned long)f->runs[o]);
        }
    }
    family(to, "heap_label_bytes", "gauge", "Live blocks of the runtime, by label.");
    for (const figures *f = list; f < list + n; f++) {
        for (int l = 0; f->known && l < HAK_WASM_LABELS; l++) {
            if (l == HAK_WASM_LINEAR) continue;
            fprintf(to, "wasm_heap_label_bytes{tenant=\"%s\",label=\"%s\"} %zu\n", f->name,
                    hak_wasm_label_name((hak_wasm_label)l), f->info.label[l].live_bytes);
        }
    }
}

void customers_report(customers *all, FILE *to)
{
    report_host(all, to);
    figures *list = calloc(all->limits.customers, sizeof *list);
    unsigned n = list ? measure(all, list, all->limits.customers) : 0;
    sums whole;
    count(all, list, n, &whole);
    report_each(all, list, n, to);
    report_sums(&whole, to);
    free(list);
}
