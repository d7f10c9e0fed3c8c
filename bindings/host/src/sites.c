/* Labels by call site: which function a return address belongs to, by the tables of frames and of symbols. */
#include <hakmem/sites.h>

#include "callsite/cfi.h"
#include "callsite/image.h"
#include "callsite/site_cache.h"
#include "callsite/symbols.h"
#include "callsite/texts.h"

#ifdef HKC_CFI_WALK

#include <stdlib.h>

enum { DEPTH = 24, PASSES = 0xffff };

_Static_assert(HAK_SITES_CLIMB == HKC_SITE_CLIMB && (int)HAK_SITES_PROBES == (int)HKC_SITE_PROBES &&
                   sizeof(uint64_t) == sizeof(hkc_site_word),
               "the header reads what the cache has");

/* A function that says a label. */
typedef struct function {
    uintptr_t start;
    const char
        *name; /* of the label that is defined when the function first asks; NULL = label is the label */
    hak_label label; /* 0 = not defined yet; PASSES = there is none left for it */
} function;

typedef struct sites {
    hak_sites head;
    hak_ctx *ctx; /* NULL = labels of the rules alone */
    function *functions;
    size_t count, room;
    const char *labels[HAK_LABELS_MAX];
    size_t label_count;
    hkc_texts *texts;
} sites;

/* ---- Reading ------------------------------------------------------------------------------------- */

/* A rule while names are read. */
typedef struct rule {
    uint32_t head, mask; /* the first four bytes of its prefix, and which of them there are */
    hak_label label;     /* PASSES = its functions take memory for their callers */
} rule;

typedef struct reading {
    sites *s;
    const hak_site_rule *given;
    size_t rule_count;
    rule *rules;
    bool failed;
} reading;

/* The first four bytes of a text, zeros from its end on. */
static uint32_t head_of(const char *text)
{
    uint32_t head = 0;
    for (unsigned i = 0; i < 4 && text[i]; i++)
        head |= (uint32_t)(unsigned char)text[i] << 8 * i;
    return head;
}

static bool begins(const char *name, const char *prefix)
{
    while (*prefix && *name == *prefix)
        name++, prefix++;
    return !*prefix;
}

/* NULL = there is none for it. */
static const rule *rule_for(const reading *r, const char *name)
{
    const uint32_t head = head_of(name);
    for (size_t i = 0; i < r->rule_count; i++)
        if (((head ^ r->rules[i].head) & r->rules[i].mask) == 0 && begins(name, r->given[i].prefix))
            return &r->rules[i];
    return NULL;
}

static bool has_room(sites *s)
{
    if (s->count < s->room) return true;
    const size_t room = s->room ? 2 * s->room : 256;
    function *larger = hkc_pages(room * sizeof *larger);
    if (!larger) return false;
    if (s->functions) {
        memcpy(larger, s->functions, s->count * sizeof *larger);
        hkc_pages_give(s->functions, s->room * sizeof *larger);
    }
    s->functions = larger;
    s->room = room;
    return true;
}

/* What the compiler made of a function has the name of the function: "pad" for "pad.constprop.0". */
static const char *keep_plain(sites *s, const char *name)
{
    char plain[HKC_TEXTS_MOST];
    const size_t n = strcspn(name, ".");
    if (n == 0 || n >= sizeof plain || !name[n]) return hkc_texts_keep(&s->texts, name);
    memcpy(plain, name, n);
    plain[n] = '\0';
    return hkc_texts_keep(&s->texts, plain);
}

static void add(void *user, uintptr_t start, const char *name, const char *file)
{
    (void)file;
    reading *r = user;
    sites *s = r->s;
    const rule *by = rule_for(r, name);
    if (r->failed || (by ? by->label == PASSES : !s->ctx)) return;
    function f = {.start = start, .label = by ? by->label : 0};
    if (!by) f.name = keep_plain(s, name);
    if ((!by && !f.name) || !has_room(s)) r->failed = true;
    else s->functions[s->count++] = f;
}

/* The number of a label of the rules; 0 = no memory, or there is none left. */
static hak_label label_of(sites *s, const char *name)
{
    if (s->ctx) return hak_label_define(s->ctx, name);
    for (size_t i = 0; i < s->label_count; i++)
        if (strcmp(s->labels[i], name) == 0) return (hak_label)(i + 1);
    if (s->label_count == HAK_LABELS_MAX) return 0;
    const char *kept = hkc_texts_keep(&s->texts, name);
    if (kept) s->labels[s->label_count++] = kept;
    return kept ? (hak_label)s->label_count : 0;
}

/* Those at one address: that of a rule first, then the plainest name. */
static int by_start(const void *a, const void *b)
{
    const function *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (!x->name || !y->name) return (x->name != NULL) - (y->name != NULL);
    const size_t m = strlen(x->name), n = strlen(y->name);
    return (m > n) - (m < n);
}

static void sort(sites *s)
{
    size_t kept = 0;
    if (s->count > 0) qsort(s->functions, s->count, sizeof *s->functions, by_start);
    for (size_t i = 0; i < s->count; i++)
        if (kept == 0 || s->functions[kept - 1].start != s->functions[i].start)
            s->functions[kept++] = s->functions[i];
    s->count = kept;
}

static bool read_rules(reading *r)
{
    for (size_t i = 0; i < r->rule_count; i++) {
        const hak_site_rule *given = &r->given[i];
        if (!given->prefix) return false;
        rule *own = &r->rules[i];
        own->head = head_of(given->prefix);
        for (uint32_t byte = 0xff; byte & own->head; byte <<= 8)
            own->mask |= byte;
        own->label = given->label ? label_of(r->s, given->label) : PASSES;
        if (own->label == 0) return false;
    }
    return true;
}

static bool read_all(sites *s, const hak_sites_options *o, uintptr_t inside)
{
    hkc_image image;
    const size_t size = (o->rule_count + 1) * sizeof(rule);
    reading r = {.s = s, .given = o->rules, .rule_count = o->rule_count, .rules = hkc_pages(size)};
    bool ok = r.rules && hkc_image_at(inside, &image) && read_rules(&r);
    if (ok) {
        hkc_symbols_read(&image, "/usr/lib/debug", add, &r);
        sort(s);
        ok = !r.failed && s->count > 0;
    }
    hkc_pages_give(r.rules, size);
    return ok;
}

hak_sites *hak_sites_new(const hak_sites_options *options)
{
    hak_sites_options o;
    const hak_sites_options defaults = HAK_SITES_OPTIONS_INIT;
    const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!hak_sized_copy(&o, sizeof o, options ? options : &defaults)) return NULL;
    if ((o.rule_count > 0 && !o.rules) || o.rule_count > UINT32_MAX) return NULL;
    sites *s = hkc_pages(sizeof *s);
    if (!s) return NULL;
    s->ctx = o.ctx;
    if (read_all(s, &o, o.image ? (uintptr_t)o.image : caller)) return &s->head;
    hak_sites_delete(&s->head);
    return NULL;
}

void hak_sites_delete(hak_sites *head)
{
    sites *s = (sites *)head;
    if (!s) return;
    hkc_pages_give(s->functions, s->room * sizeof *s->functions);
    hkc_texts_close(&s->texts);
    hkc_pages_give(s, sizeof *s);
}

const char *const *hak_sites_labels(const hak_sites *head, size_t *count)
{
    const sites *s = (const sites *)head;
    *count = s ? s->label_count : 0;
    return *count ? s->labels : NULL;
}

/* ---- Looking up ---------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = ((const function *)a)->start, y = ((const function *)b)->start;
    return (x > y) - (x < y);
}

/* PASSES = none is left for it; 0 = no memory for its name now. */
static hak_label defined(const sites *s, function *f)
{
    hak_label label = __atomic_load_n(&f->label, __ATOMIC_RELAXED);
    if (label || !f->name) return label;
    label = hak_label_define(s->ctx, f->name);
    if (label == 0 && hak_label_name(s->ctx, HAK_LABELS_MAX)) label = PASSES;
    __atomic_store_n(&f->label, label, __ATOMIC_RELAXED);
    return label;
}

/* The information for the cache: a label; how far it is up; 0 = the way up is not known. *again: to be looked
 * up once more. */
static unsigned resolve(const sites *s, uintptr_t pc, bool *again)
{
    const function key = {.start = hkc_cfi_function(pc)};
    function *found = bsearch(&key, s->functions, s->count, sizeof key, by_address);
    hkc_cfi_rule up;
    const hak_label label = found ? defined(s, found) : PASSES;
    *again = label == 0;
    if (label != PASSES) return label;
#ifdef __x86_64__
    return hkc_cfi_rule_at(pc, &up) && !up.cfa_from_fp ? hkc_site_climb(up.cfa_offset) : 0;
#else
    return hkc_cfi_rule_at(pc, &up) ? hkc_site_climb(sizeof(uintptr_t)) : 0; /* the frame itself says */
#endif
}

/* The frame of sp is there: of the host's function, which has not returned. */
#ifdef __x86_64__
static uintptr_t return_at(uintptr_t sp)
{
    return hkc_cfi_return_at(sp);
}

static uintptr_t place_up(uintptr_t sp, size_t bytes)
{
    return hkc_cfi_place_up(sp, bytes);
}
#else
static uintptr_t return_at(uintptr_t sp)
{
    return hkc_cfi_plain(((const uintptr_t *)sp)[1]);
}

static uintptr_t place_up(uintptr_t sp, size_t bytes)
{
    (void)bytes;
    return ((const uintptr_t *)sp)[0];
}
#endif

hak_label hak_sites_learn(hak_sites *head, uintptr_t sp)
{
    sites *s = (sites *)head;
    hkc_site_word *cache = (hkc_site_word *)s->head.cache;
    for (int depth = 0; depth < DEPTH; depth++) {
        const uintptr_t pc = return_at(sp);
        const uint64_t word = hkc_site_fetch(cache, HAK_SITES_SLOTS, pc);
        bool again = false;
        const unsigned info = word ? word & HKC_SITE_INFO : resolve(s, pc, &again);
        if (!word && !again) hkc_site_put(cache, HAK_SITES_SLOTS, pc, info);
        if (!(info & HKC_SITE_CLIMB)) return (hak_label)info;
        sp = place_up(sp, (info - HKC_SITE_CLIMB) * sizeof(uintptr_t));
    }
    return 0;
}

#else

hak_sites *hak_sites_new(const hak_sites_options *options)
{
    (void)options;
    return NULL;
}

void hak_sites_delete(hak_sites *sites)
{
    (void)sites;
}

const char *const *hak_sites_labels(const hak_sites *sites, size_t *count)
{
    (void)sites;
    *count = 0;
    return NULL;
}

hak_label hak_sites_learn(hak_sites *sites, uintptr_t sp)
{
    (void)sites, (void)sp;
    return 0;
}

#endif
