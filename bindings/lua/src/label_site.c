#include "label_site.h"

#include <pthread.h>

_Atomic uint64_t hk_site_cache[HK_SITE_SLOTS + HK_SITE_PROBES];

enum { MAX_SITES = 1024, MAX_FUNCTIONS = 512 };

typedef struct site {
    uintptr_t pc;
    uint32_t kinds;  /* bit set of those seen */
    uint32_t narrow; /* those seen in operations that are not broad */
} site;

typedef struct function {
    uintptr_t start;
    bool helper;
    uint8_t sites[HK_KIND_COUNT]; /* how many sites of each kind */
} function;

/* Both are hash tables with linear probing, never more than 3/4 full. Written by calibration only. */
static site sites[MAX_SITES];
static function functions[MAX_FUNCTIONS];
static size_t site_count, function_count;
static bool traces;
/* Guards the images that cfi keeps open. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static site *site_at(uintptr_t pc, bool add) {
    size_t i = (size_t)(pc ^ (pc >> 10)) % MAX_SITES;
    while (sites[i].pc != 0 && sites[i].pc != pc)
        i = (i + 1) % MAX_SITES;
    if (sites[i].pc == pc)
        return &sites[i];
    if (!add || site_count >= MAX_SITES / 4 * 3)
        return NULL;
    site_count++;
    sites[i].pc = pc;
    return &sites[i];
}

static function *function_at(uintptr_t start, bool add) {
    size_t i = (size_t)(start >> 4) % MAX_FUNCTIONS;
    while (functions[i].start != 0 && functions[i].start != start)
        i = (i + 1) % MAX_FUNCTIONS;
    if (functions[i].start == start)
        return &functions[i];
    if (!add || function_count >= MAX_FUNCTIONS / 4 * 3)
        return NULL;
    function_count++;
    functions[i].start = start;
    return &functions[i];
}

static bool is_single(uint32_t kinds) {
    return (kinds & (kinds - 1)) == 0;
}

/* The lowest frame that is not known as a helper's; its depth when there is none. */
static unsigned first_single(const hk_observation *o) {
    unsigned i = 0;
    while (i < o->depth) {
        const site *s = site_at(o->pc[i], false);
        if (s == NULL || is_single(s->kinds))
            break;
        i++;
    }
    return i;
}

/* Books each observation at its lowest frame that has only one kind. A second kind makes the frame one
 * of a helper, which moves what was booked there one frame up; hence the repetition. */
static void book(const hk_observation *obs, size_t count, bool broad) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < count; i++) {
            const hk_observation *o = &obs[i];
            if (o->broad && !broad)
                continue;
            unsigned at = first_single(o);
            site *s = at < o->depth ? site_at(o->pc[at], true) : NULL;
            if (s == NULL)
                continue;
            if (o->broad && s->narrow != 0)
                continue;
            uint32_t kind = UINT32_C(1) << o->kind;
            changed |= (s->kinds & kind) == 0;
            s->kinds |= kind;
            if (!o->broad)
                s->narrow |= kind;
        }
    }
}

void hk_site_has_traces(void) {
    traces = true;
}

static unsigned main_kind(const function *f) {
    unsigned best = HK_KIND_OTHER;
    for (unsigned k = 0; k < HK_KIND_COUNT; k++) {
        if (f->sites[k] > f->sites[best])
            best = k;
    }
    return best;
}

static unsigned climb(uintptr_t pc) {
    hk_cfi_rule rule;
    if (!hk_cfi_rule_at(pc, &rule))
        return HK_KIND_OTHER;
    return HK_SITE_CLIMB | (rule.cfa_from_fp ? HK_SITE_CFA_FP : 0) |
           (unsigned)rule.fp_slot << HK_SITE_FP_SHIFT | rule.cfa_offset / 8u;
}

static unsigned information(uintptr_t pc) {
    const site *s = site_at(pc, false);
    if (s != NULL)
        return is_single(s->kinds) ? (unsigned)__builtin_ctz(s->kinds) : climb(pc);
    if (!hk_cfi_in_image(pc))
        return traces ? HK_KIND_CDATA : HK_KIND_OTHER;
    uintptr_t start = hk_cfi_function(pc);
    const function *f = start != 0 ? function_at(start, false) : NULL;
    if (f == NULL)
        return HK_KIND_OTHER;
    return f->helper ? climb(pc) : main_kind(f);
}

/* The first free slot of the probe sequence; its first slot when all are taken. */
static void cache(uintptr_t pc, unsigned info) {
    uint64_t word = (uint64_t)pc << 16 | info;
    _Atomic uint64_t *home = &hk_site_cache[hk_site_slot(pc)];
    for (unsigned i = 0; i < HK_SITE_PROBES; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&home[i], &expected, word))
            return;
    }
    atomic_store(home, word);
}

void hk_site_learn(const hk_observation *obs, size_t count) {
    book(obs, count, false);
    book(obs, count, true);
    for (size_t i = 0; i < MAX_SITES; i++) {
        uintptr_t start = sites[i].pc != 0 ? hk_cfi_function(sites[i].pc) : 0;
        function *f = start != 0 ? function_at(start, true) : NULL;
        if (f == NULL)
            continue;
        if (is_single(sites[i].kinds))
            f->sites[__builtin_ctz(sites[i].kinds)]++;
        else
            f->helper = true;
    }
    for (size_t i = 0; i < MAX_SITES; i++) {
        if (sites[i].pc != 0)
            cache(sites[i].pc, information(sites[i].pc));
    }
    hk_cfi_close();
}

unsigned hk_site_resolve(uintptr_t pc) {
    _Atomic uint64_t *home = &hk_site_cache[hk_site_slot(pc)];
    for (unsigned i = 1; i < HK_SITE_PROBES; i++) {
        uint64_t word = atomic_load_explicit(&home[i], memory_order_relaxed);
        if (word >> 16 == pc)
            return (unsigned)(word & 0xffff);
    }
    pthread_mutex_lock(&lock);
    unsigned info = information(pc);
    hk_cfi_close();
    pthread_mutex_unlock(&lock);
    cache(pc, info);
    return info;
}
