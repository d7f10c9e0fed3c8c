#include "walk.h"

#ifdef HKC_CFI_WALK

#include "readable.h"

#include <string.h>

/* A rule in a word: two bits, then two numbers of 31 bits. */
enum { KNOWN = 1, LEADS_UP = 2, FROM_FP = 4, OFFSET_AT = 3, BELOW_AT = 34, PAGE_SHIFT = 12 };
#define OFFSET_MASK (((uint64_t)1 << 31) - 1)
#define BELOW_MASK (((uint64_t)1 << 30) - 1)

/* Where the return address is, from the cfa down: beside the caller's frame pointer, on aarch64. */
static uintptr_t ra_below(uintptr_t fp_below)
{
#ifdef __x86_64__
    (void)fp_below;
    return sizeof(uintptr_t);
#else
    return fp_below - sizeof(uintptr_t);
#endif
}

static uint64_t look_up(uintptr_t pc)
{
    hkc_cfi_rule rule;
    if (hkc_cfi_rule_at(pc, &rule) && rule.cfa_offset <= OFFSET_MASK && rule.fp_below <= BELOW_MASK &&
        ra_below(rule.fp_below) == rule.ra_below)
        return KNOWN | LEADS_UP | (rule.cfa_from_fp ? FROM_FP : 0) | (uint64_t)rule.cfa_offset << OFFSET_AT |
               (uint64_t)rule.fp_below << BELOW_AT;
    return hkc_cfi_function(pc) != 0 ? KNOWN : 0;
}

/* The key holds the rule, too, so that halves of two writers do not pass for a whole. */
static uint64_t rule_of(hkc_walk *walk, uintptr_t pc)
{
    const size_t home = (size_t)((pc * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (HKC_WALK_SLOTS - 1);
    struct hkc_walk_slot *slot = NULL;
    for (size_t i = 0; i < HKC_WALK_PROBES; i++) {
        struct hkc_walk_slot *s = &walk->slots[(home + i) & (HKC_WALK_SLOTS - 1)];
        const uint64_t rule = __atomic_load_n(&s->rule, __ATOMIC_RELAXED);
        const uint64_t key = __atomic_load_n(&s->key, __ATOMIC_RELAXED);
        if ((key ^ rule) == pc && key != 0) return rule;
        if (!slot && key == 0) slot = s;
    }
    const uint64_t rule = look_up(pc);
    if (!slot) slot = &walk->slots[home];
    __atomic_store_n(&slot->rule, rule, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->key, rule ^ pc, __ATOMIC_RELAXED);
    return rule;
}

/* The pages of the stack that are known to be there. */
typedef struct pages {
    uintptr_t low, high;
} pages;

static bool is_there(pages *known, uintptr_t address)
{
    const uintptr_t page = address >> PAGE_SHIFT;
    if (address % sizeof(uintptr_t) != 0) return false;
    if (page >= known->low && page <= known->high) return true;
    if (!hkc_readable((const void *)address, sizeof(uintptr_t))) return false;
    if (page != known->high + 1) known->low = page;
    known->high = page;
    return true;
}

static bool climb(hkc_cfi_frame *frame, uint64_t rule, pages *known)
{
    const uintptr_t below = (uintptr_t)(rule >> BELOW_AT & BELOW_MASK);
    const uintptr_t cfa =
        (rule & FROM_FP ? frame->fp : frame->sp) + (uintptr_t)(rule >> OFFSET_AT & OFFSET_MASK);
    if (cfa <= frame->sp || cfa - ra_below(below) < frame->sp || !is_there(known, cfa - ra_below(below)))
        return false;
    if (below != 0 && (cfa - below < frame->sp || !is_there(known, cfa - below))) return false;
    if (below != 0) frame->fp = *(const uintptr_t *)(cfa - below);
    frame->pc = hkc_cfi_plain(*(const uintptr_t *)(cfa - ra_below(below)));
    frame->sp = cfa;
    return true;
}

void hkc_walk_each(hkc_walk *walk, const hkc_cfi_registers *from, hkc_walk_fn *fn, void *user)
{
    hkc_cfi_frame frame = {from->pc, from->sp, from->saved[HKC_CFI_FP]};
    pages known = {1, 0};
    for (bool more = true; more;) {
        const uintptr_t pc = frame.pc;
        const uint64_t rule = rule_of(walk, pc);
        if (rule == 0) return;
        more = rule & LEADS_UP && climb(&frame, rule, &known);
        if (!fn(user, pc, more ? frame.sp : 0)) return;
    }
}

typedef struct list {
    uintptr_t low, high, *frames;
    size_t count, room;
} list;

static bool note(void *user, uintptr_t pc, uintptr_t end)
{
    list *l = user;
    (void)end;
    if (pc - l->low >= l->high - l->low) l->frames[l->count++] = pc;
    return l->count < l->room;
}

size_t hkc_walk_stack(hkc_walk *walk, const hkc_cfi_registers *from, uintptr_t low, uintptr_t high,
                      uintptr_t *frames, size_t room)
{
    list l = {low, high, frames, 0, room};
    if (room > 0) hkc_walk_each(walk, from, note, &l);
    return l.count;
}

size_t hkc_walk_from(hkc_walk *walk, uintptr_t site, uintptr_t *frames, size_t room)
{
    enum { OWN_FRAMES = 16, DEPTH_MOST = 128 };
    hkc_cfi_registers here;
    uintptr_t all[OWN_FRAMES + DEPTH_MOST];
    hkc_cfi_here(&here);
    if (room > DEPTH_MOST) room = DEPTH_MOST;
    const size_t n = hkc_walk_stack(walk, &here, 0, 0, all, OWN_FRAMES + room);
    size_t first = 0;
    while (first < n && all[first] != site)
        first++;
    if (first == n) first = 0;
    const size_t kept = n - first < room ? n - first : room;
    memcpy(frames, all + first, kept * sizeof *frames);
    return kept;
}

#endif
