#define _GNU_SOURCE
#include "customers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { IDLE_MOST = 2 };
static const char *const outcome_names[RUN_OUTCOMES] = {"ok", "error", "time", "trap", "refused"};

typedef struct customer {
    char name[33];
    hak_wasm_tenant *tenant;
    guest *idle[IDLE_MOST]; /* reset */
    unsigned idle_count;
    uint64_t runs[RUN_OUTCOMES];
    uint64_t resets, instances;
    double seconds;
} customer;

struct customers {
    hak_wasm_host *host;
    engine *engine;
    limits limits;
    pthread_mutex_t lock; /* of all that is below; not held while a script runs */
    customer **list;      /* sorted by name */
    unsigned count;
};

customers *customers_new(hak_wasm_host *host, engine *e, const limits *l)
{
    customers *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->host = host;
    all->engine = e;
    all->limits = *l;
    all->list = calloc(l->customers, sizeof *all->list);
    if (!all->list) {
        free(all);
        return NULL;
    }
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

void customers_delete(customers *all)
{
    for (unsigned i = 0; i < all->count; i++) {
        customer *c = all->list[i];
        while (c->idle_count > 0)
            guest_delete(c->idle[--c->idle_count]);
        hak_wasm_tenant_close(c->tenant, HAK_WASM_RETIRE);
        free(c);
    }
    pthread_mutex_destroy(&all->lock);
    free(all->list);
    free(all);
}

bool customers_name_is_good(const char *name, size_t length)
{
    return length >= 1 && length <= 32 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") >= length;
}

/* Under lock. NULL = there are too many, or no memory. */
static customer *find(customers *all, const char *name)
{
    unsigned at = 0;
    while (at < all->count && strcmp(all->list[at]->name, name) < 0)
        at++;
    if (at < all->count && strcmp(all->list[at]->name, name) == 0) return all->list[at];
    if (all->count == all->limits.customers) return NULL;
    customer *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    strncpy(c->name, name, sizeof c->name - 1);
    hak_wasm_tenant_options options = HAK_WASM_TENANT_OPTIONS_INIT;
    options.name = c->name;
    options.limits.linear_bytes = all->limits.linear_bytes;
    options.limits.instances = all->limits.instances;
    options.limits.heap_bytes = all->limits.heap_bytes;
    options.limits.heap_soft = true;
    c->tenant = hak_wasm_tenant_new(all->host, &options);
    if (!c->tenant) {
        free(c);
        return NULL;
    }
    memmove(all->list + at + 1, all->list + at, (all->count - at) * sizeof *all->list);
    all->list[at] = c;
    all->count++;
    return c;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

outcome customers_run(customers *all, const char *name, const char *script, size_t size, char **text,
                      size_t *length)
{
    pthread_mutex_lock(&all->lock);
    customer *c = find(all, name);
    guest *g = c && c->idle_count > 0 ? c->idle[--c->idle_count] : NULL;
    pthread_mutex_unlock(&all->lock);

    double begin = now();
    bool made = false, kept = false;
    outcome result = RUN_REFUSED;
    *text = NULL;
    if (!c) *text = strdup("too many customers");
    if (c && !g) made = (g = guest_new(all->engine, c->tenant, text)) != NULL;
    if (g) {
        result = guest_run(g, script, size, text, length);
        /* At once, so that nothing of a script waits in a guest. One that grew cannot go back. */
        kept = guest_reset(g);
    } else {
        *length = *text ? strlen(*text) : 0;
    }
    if (!c) return result;

    pthread_mutex_lock(&all->lock);
    c->runs[result]++;
    c->instances += made;
    c->resets += kept;
    c->seconds += now() - begin;
    if (kept && c->idle_count < IDLE_MOST) {
        c->idle[c->idle_count++] = g;
        g = NULL;
    }
    pthread_mutex_unlock(&all->lock);
    if (g) guest_delete(g);
    return result;
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

void customers_report(customers *all, FILE *to)
{
    report_host(all, to);
    pthread_mutex_lock(&all->lock);
    hak_wasm_tenant_info *info = calloc(all->count + 1, sizeof *info);
    size_t *resident = calloc(all->count + 1, sizeof *resident);
    for (unsigned i = 0; info && resident && i < all->count; i++) {
        info[i].size = sizeof info[i];
        hak_wasm_tenant_stats(all->list[i]->tenant, &info[i]);
        resident[i] = hak_wasm_tenant_resident(all->list[i]->tenant);
    }

/* One value of every customer. */
#define EACH(metric, type, help, format, value)                                                              \
    family(to, metric, type, help);                                                                          \
    for (unsigned i = 0; info && resident && i < all->count; i++) {                                          \
        const customer *c = all->list[i];                                                                    \
        fprintf(to, "wasm_" metric "{tenant=\"%s\"} " format "\n", c->name, value);                          \
    }
    EACH("linear_bytes", "gauge", "Sizes of linear memories.", "%zu", info[i].linear_bytes)
    EACH("linear_peak_bytes", "gauge", "Most of that so far.", "%zu", info[i].linear_peak)
    EACH("linear_limit_bytes", "gauge", "Limit of that.", "%zu", all->limits.linear_bytes)
    EACH("linear_resident_bytes", "gauge", "Resident pages that are not the image's.", "%zu", resident[i])
    EACH("linear_refused_total", "counter", "Memories and growths over the limit.", "%lu",
         (unsigned long)info[i].linear_refused)
    EACH("heap_bytes", "gauge", "Live blocks of the runtime.", "%zu", info[i].heap_live)
    EACH("instances", "gauge", "Instances, running and waiting.", "%zu", info[i].instances)
    EACH("instances_refused_total", "counter", "Instances over a limit.", "%lu",
         (unsigned long)info[i].instances_refused)
    EACH("instantiations_total", "counter", "Instances made.", "%lu", (unsigned long)c->instances)
    EACH("resets_total", "counter", "Instances reset.", "%lu", (unsigned long)c->resets)
    EACH("cpu_seconds_total", "counter", "CPU time of scripts, resets included.", "%.6f", c->seconds)
#undef EACH
    family(to, "runs_total", "counter", "Scripts, by outcome.");
    for (unsigned i = 0; i < all->count; i++) {
        for (int o = 0; o < RUN_OUTCOMES; o++) {
            fprintf(to, "wasm_runs_total{tenant=\"%s\",outcome=\"%s\"} %lu\n", all->list[i]->name,
                    outcome_names[o], (unsigned long)all->list[i]->runs[o]);
        }
    }
    family(to, "heap_label_bytes", "gauge", "Live blocks of the runtime, by label.");
    for (unsigned i = 0; info && resident && i < all->count; i++) {
        for (int l = 0; l < HAK_WASM_LABELS; l++) {
            if (l == HAK_WASM_LINEAR) continue;
            fprintf(to, "wasm_heap_label_bytes{tenant=\"%s\",label=\"%s\"} %zu\n", all->list[i]->name,
                    hak_wasm_label_name((hak_wasm_label)l), info[i].label[l].live_bytes);
        }
    }
    pthread_mutex_unlock(&all->lock);
    free(info);
    free(resident);
}
