#include "label_site.h"

#include <string.h>

#ifdef HKC_CFI_WALK

hkc_site_word hkl_site_cache[HKL_SITE_SLOTS + HKC_SITE_PROBES];

/* LuaJIT has 69 and 49, PUC Lua 5.4 28 and 20: small tables, for they are touched all over. */
enum { MAX_SITES = 256, MAX_FUNCTIONS = 256 };

typedef struct site {
    hkl_site_frame at;
    uint32_t kinds;  /* bit set of those seen */
    uint32_t narrow; /* those seen in operations that are not broad */
} site;

typedef struct function {
    uintptr_t start;
    bool helper;
    uint8_t sites[HKL_KIND_COUNT]; /* how many sites of each kind */
} function;

/* Hash tables with linear probing, never more than 3/4 full. Written by calibration only, which is over
 * before anything else looks. */
static site sites[MAX_SITES];
static function functions[MAX_FUNCTIONS];
static size_t site_count, function_count;
static bool traces;

static site *site_slot(uintptr_t pc)
{
    size_t i = (size_t)(pc ^ (pc >> 10)) % MAX_SITES;
    while (sites[i].at.pc != 0 && sites[i].at.pc != pc)
        i = (i + 1) % MAX_SITES;
    return &sites[i];
}

static const site *find_site(uintptr_t pc)
{
    const site *s = site_slot(pc);
    return s->at.pc != 0 ? s : NULL;
}

static site *add_site(hkl_site_frame at)
{
    site *s = site_slot(at.pc);
    if (s->at.pc == 0) {
        if (site_count >= MAX_SITES / 4 * 3) return NULL;
        site_count++;
        s->at = at;
    } else if (s->at.bytes != at.bytes) {
        s->at.bytes = 0; /* a frame of changing size: no way up */
    }
    return s;
}

static function *function_slot(uintptr_t start)
{
    size_t i = (size_t)(start >> 4) % MAX_FUNCTIONS;
    while (functions[i].start != 0 && functions[i].start != start)
        i = (i + 1) % MAX_FUNCTIONS;
    return &functions[i];
}

static function *add_function(uintptr_t start)
{
    function *f = function_slot(start);
    if (f->start == 0) {
        if (function_count >= MAX_FUNCTIONS / 4 * 3) return NULL;
        function_count++;
        f->start = start;
    }
    return f;
}

static bool is_single(uint32_t kinds)
{
    return (kinds & (kinds - 1)) == 0;
}

/* The lowest frame that is not known as a helper's; its depth when there is none. */
static unsigned first_single(const hkl_observation *o)
{
    unsigned i = 0;
    while (i < o->depth) {
        const site *s = find_site(o->frames[i].pc);
        if (!s || is_single(s->kinds)) break;
        i++;
    }
    return i;
}

/* True when it changed what is known. */
static bool book(const hkl_observation *o)
{
    unsigned at = first_single(o);
    site *s = at < o->depth ? add_site(o->frames[at]) : NULL;
    if (!s || (o->broad && s->narrow != 0)) return false;
    uint32_t kind = UINT32_C(1) << o->kind;
    if ((s->kinds & kind) != 0) return false;
    s->kinds |= kind;
    if (!o->broad) s->narrow |= kind;
    return true;
}

/* Books each observation at its lowest frame that has only one kind. A second kind shows that the frame
 * is a helper's, and what was booked there goes one frame up; hence the repetition. */
static void book_all(const hkl_observation *obs, size_t count, bool broad)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < count; i++) {
            if (broad || !obs[i].broad) changed |= book(&obs[i]);
        }
    }
}

static unsigned climb(size_t bytes)
{
    unsigned info = hkc_site_climb(bytes);
    return info != 0 ? info : HKL_KIND_OTHER;
}

static unsigned kind_of_sites(const function *f)
{
    unsigned best = HKL_KIND_OTHER;
    for (unsigned k = 0; k < HKL_KIND_COUNT; k++) {
        if (f->sites[k] > f->sites[best]) best = k;
    }
    return best;
}

/* A helper's call that calibration did not see. */
static unsigned climb_unseen(uintptr_t pc, hkc_cfi_place caller)
{
#ifndef __x86_64__ /* the way up is in the frame itself */
    (void)pc, (void)caller;
    return climb(sizeof(uintptr_t));
#else
    size_t bytes = 0;
    hkc_cfi_frame frame = hkc_cfi_frame_at(caller);
    hkc_cfi_rule rule;
    for (int i = 0; i < HKL_SITE_FRAMES && bytes == 0 && hkc_cfi_rule_at(frame.pc, &rule); i++) {
        hkc_cfi_frame up = hkc_cfi_up(frame, &rule);
        if (frame.pc == pc) bytes = up.sp - frame.sp;
        frame = up;
    }
    return climb(bytes);
#endif
}

static unsigned information(uintptr_t pc, hkc_cfi_place caller)
{
    const site *s = find_site(pc);
    if (s) return is_single(s->kinds) ? (unsigned)__builtin_ctz(s->kinds) : climb(s->at.bytes);
    if (traces && !hkc_cfi_in_image(pc)) return HKL_KIND_CDATA;
    uintptr_t start = hkc_cfi_function(pc);
    const function *f = function_slot(start);
    return start != 0 && f->helper ? climb_unseen(pc, caller) : kind_of_sites(f);
}

unsigned hkl_site_resolve(uintptr_t pc, hkc_cfi_place caller)
{
    uint64_t word = hkc_site_find(hkl_site_cache, HKL_SITE_SLOTS, pc);
    if (word != 0) return (unsigned)(word & HKC_SITE_INFO);
    unsigned info = information(pc, caller);
    hkc_site_put(hkl_site_cache, HKL_SITE_SLOTS, pc, info);
    return info;
}

void hkl_site_learn(const hkl_observation *obs, size_t count)
{
    book_all(obs, count, false);
    book_all(obs, count, true);
    for (size_t i = 0; i < MAX_SITES; i++) {
        const site *s = &sites[i];
        uintptr_t start = s->at.pc != 0 ? hkc_cfi_function(s->at.pc) : 0;
        function *f = start != 0 ? add_function(start) : NULL;
        if (f && is_single(s->kinds)) f->sites[__builtin_ctz(s->kinds)]++;
        else if (f) f->helper = true;
    }
}

void hkl_site_has_traces(void)
{
    traces = true;
}

/* ---- From process to process ------------------------------------------------------------------------ */

enum { HELPER = HKL_KIND_COUNT }; /* in the place of a function's kind */

static void site_words(hkl_lesson *lesson, site *s)
{
    s->at.pc = hkl_lesson_address(lesson, s->at.pc);
    s->at.bytes = hkl_lesson_word(lesson, (uint32_t)s->at.bytes);
    s->kinds = hkl_lesson_word(lesson, s->kinds);
    if (s->at.pc == 0 || s->kinds == 0 || s->kinds >> HKL_KIND_COUNT != 0) lesson->broken = true;
}

static void function_words(hkl_lesson *lesson, function *f)
{
    f->start = hkl_lesson_address(lesson, f->start);
    const unsigned kind = hkl_lesson_word(lesson, f->helper ? (uint32_t)HELPER : kind_of_sites(f));
    if (f->start == 0 || kind > HELPER) lesson->broken = true;
    else if (kind == HELPER) f->helper = true;
    else f->sites[kind] = 1;
}

/* In the order of addresses, whatever they are in this process. */
static void give(hkl_lesson *lesson)
{
    size_t count = 0;
    for (size_t i = 0; i < MAX_SITES; i++)
        count += hkl_lesson_has(lesson, sites[i].at.pc);
    hkl_lesson_count(lesson, count, MAX_SITES);
    for (uintptr_t last = 0; count > 0; count--) {
        site next = {.at = {UINTPTR_MAX, 0}};
        for (size_t i = 0; i < MAX_SITES; i++) {
            const uintptr_t pc = sites[i].at.pc;
            if (hkl_lesson_has(lesson, pc) && pc > last && pc < next.at.pc) next = sites[i];
        }
        last = next.at.pc;
        site_words(lesson, &next);
    }
    for (size_t i = 0; i < MAX_FUNCTIONS; i++)
        count += hkl_lesson_has(lesson, functions[i].start);
    hkl_lesson_count(lesson, count, MAX_FUNCTIONS);
    for (uintptr_t last = 0; count > 0; count--) {
        function next = {.start = UINTPTR_MAX};
        for (size_t i = 0; i < MAX_FUNCTIONS; i++) {
            const uintptr_t start = functions[i].start;
            if (hkl_lesson_has(lesson, start) && start > last && start < next.start) next = functions[i];
        }
        last = next.start;
        function_words(lesson, &next);
    }
}

static void take(hkl_lesson *lesson)
{
    site_count = hkl_lesson_count(lesson, 0, MAX_SITES / 4 * 3);
    for (size_t i = 0; i < site_count && !lesson->broken; i++) {
        site s = {.at = {0, 0}};
        site_words(lesson, &s);
        *site_slot(s.at.pc) = s;
    }
    function_count = hkl_lesson_count(lesson, 0, MAX_FUNCTIONS / 4 * 3);
    for (size_t i = 0; i < function_count && !lesson->broken; i++) {
        function f = {.start = 0};
        function_words(lesson, &f);
        *function_slot(f.start) = f;
    }
}

void hkl_site_lesson(hkl_lesson *lesson)
{
    if (lesson->gives) give(lesson);
    else take(lesson);
    traces = hkl_lesson_word(lesson, traces) != 0;
    if (lesson->gives || !lesson->broken) return;
    memset(sites, 0, sizeof sites);
    memset(functions, 0, sizeof functions);
    site_count = function_count = 0;
    traces = false;
}

#endif
