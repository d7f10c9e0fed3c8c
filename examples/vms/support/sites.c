/* Which function a return address belongs to, by the program's own tables of frames and of symbols. */
#include "sites.h"

#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#ifdef HKC_CFI_WALK

enum { DEPTH = 24 };

typedef struct sites_function {
    uintptr_t start;
    hak_label label;
} function;

typedef struct reading {
    sites *s;
    size_t room;
} reading;

static bool begins(const char *name, const char *prefix)
{
    while (*prefix && *name == *prefix)
        name++, prefix++;
    return !*prefix;
}

static void add(void *user, uintptr_t start, const char *name, const char *file)
{
    (void)file;
    reading *r = user;
    sites *s = r->s;
    const sites_rule *rule = s->rules;
    while (rule->prefix && !begins(name, rule->prefix))
        rule++;
    if (!rule->prefix) return;
    if (s->count == r->room) {
        size_t room = 2 * r->room + 256;
        function *more = realloc(s->functions, room * sizeof *more);
        if (!more) return;
        s->functions = more;
        r->room = room;
    }
    s->functions[s->count++] = (function){start, rule->label};
}

static int by_start(const void *a, const void *b)
{
    uintptr_t x = ((const function *)a)->start, y = ((const function *)b)->start;
    return (x > y) - (x < y);
}

bool sites_open(sites *s, const sites_rule *rules)
{
    hkc_image image;
    if (s->count != 0) return true;
    s->rules = rules;
    if (!hkc_image_at((uintptr_t)rules, &image)) return false;
    hkc_symbols_read(&image, "/usr/lib/debug", add, &(reading){.s = s});
    if (s->count != 0) qsort(s->functions, s->count, sizeof *s->functions, by_start);
    return s->count != 0;
}

/* The information for the cache: a label; how far it is up; 0 = the way up is not known. */
static unsigned resolve(const sites *s, uintptr_t pc)
{
    const function key = {.start = hkc_cfi_function(pc)};
    const function *found =
        s->count ? bsearch(&key, s->functions, s->count, sizeof key, by_start) : NULL;
    hkc_cfi_rule up;
    if (found) return found->label;
    return hkc_cfi_rule_at(pc, &up) && !up.cfa_from_fp ? hkc_site_climb(up.cfa_offset) : 0;
}

hak_label sites_learn(sites *s, uintptr_t sp)
{
    for (int depth = 0; depth < DEPTH; depth++) {
        const uintptr_t pc = ((const uintptr_t *)sp)[-1];
        const uint64_t word = hkc_site_fetch(s->cache, SITES_SLOTS, pc);
        const unsigned info = word ? word & HKC_SITE_INFO : resolve(s, pc);
        if (!word) hkc_site_put(s->cache, SITES_SLOTS, pc, info);
        if (!(info & HKC_SITE_CLIMB)) return (hak_label)info;
        sp += (info - HKC_SITE_CLIMB) * sizeof(uintptr_t);
    }
    return 0;
}

#else

bool sites_open(sites *s, const sites_rule *rules)
{
    s->rules = rules;
    return false;
}

#endif
