#include "profile/quick.h"

#include "profile/key.h"
#include "profile/pc.h"

#include <string.h>

#ifdef HKC_CFI_WALK

#define MIX 0x9e3779b1u

enum { PATIENCE = 512 };

_Static_assert((int)HKL_QUICK_CLIMB == (int)HKL_PC_CLIMB_MOST && HKL_QUICK_AT_LEAST < HKL_QUICK_CLIMB,
               "a way is no longer");
_Static_assert(sizeof(hkl_quick_entry) == 64, "an index that is a shift");

/* All begin anew. */
static void clear_ways(hkl_quick *q)
{
    q->ways[0] = (hkl_quick_way){.patience = PATIENCE, .pc = {HKL_FRAME_BIT}}; /* no return address is that */
    q->way_count = 0;
    for (int i = 0; i < HKL_QUICK_ENTRIES; i++)
        q->entries[i].ways = &q->ways[0];
}

void hkl_quick_begin(hkl_quick *q, const hkl_state *st, hkl_walk *walk, hkl_frames *frames)
{
    memset(q, 0, sizeof *q);
    q->st = st;
    q->main = st->main;
    q->walk = walk;
    q->frames = frames;
    clear_ways(q);
}

/* ---- Slots ------------------------------------------------------------------------------------------ */

/* A key may be in two slots, i and i ^ 1. */
static inline unsigned slot_of(uintptr_t pc)
{
    return (uint32_t)pc * MIX >> (32 - HKL_QUICK_SLOT_BITS);
}

static inline bool is_same(const hkl_quick_key *a, const hkl_quick_key *b)
{
    return a->pc == b->pc && a->function == b->function && a->calls == b->calls;
}

/* Below 0 = it has none. */
static inline int slot_with(const hkl_quick *q, const hkl_quick_key *key)
{
    const unsigned i = slot_of(key->pc);
    if (__builtin_expect(is_same(&q->slots[i].key, key), 1)) return (int)i;
    return is_same(&q->slots[i ^ 1].key, key) ? (int)(i ^ 1) : -1;
}

static void clear_slot(hkl_quick *q, unsigned i)
{
    uint16_t *link = &q->codes[q->slots[i].code].slots;
    while (*link != i + 1)
        link = &q->slots[*link - 1].next;
    *link = q->slots[i].next;
    q->slots[i] = (hkl_quick_slot){.code = 0};
}

void hkl_quick_forget(hkl_quick *q, uintptr_t block)
{
    unsigned code = q->heads[hkl_quick_head(block)];
    while (code != 0 && q->codes[code].block != block)
        code = q->codes[code].next;
    while (code != 0 && q->codes[code].slots != 0)
        clear_slot(q, q->codes[code].slots - 1u);
}

/* 0 = there is no room. */
static unsigned code_at(hkl_quick *q, uintptr_t block)
{
    uint16_t *head = &q->heads[hkl_quick_head(block)];
    for (unsigned i = *head; i != 0; i = q->codes[i].next)
        if (q->codes[i].block == block) return i;
    if (q->code_count + 1 == HKL_QUICK_CODES) return 0;
    q->codes[++q->code_count] = (struct hkl_quick_code){block, *head, 0};
    return *head = q->code_count;
}

static int put(hkl_quick *q, const hkl_quick_key *key, const uintptr_t *frames, size_t count)
{
    unsigned code = 0;
    if (key->function != 0) {
        const uintptr_t block = hkl_key_code(key);
        if (block == 0) return -1; /* where the walk finds another instruction */
        code = code_at(q, block);
        if (code == 0) { /* codes that were freed are among them: all begin anew */
            hkl_quick_begin(q, q->st, q->walk, q->frames);
            code = code_at(q, block);
        }
    }
    unsigned i = slot_of(key->pc);
    if (q->slots[i].key.pc != 0) i ^= 1;
    if (q->slots[i].key.pc != 0) clear_slot(q, i);
    q->slots[i] = (hkl_quick_slot){*key, 0, (uint16_t)code, q->codes[code].slots, (uint16_t)count};
    q->codes[code].slots = (uint16_t)(i + 1);
    memcpy(q->stacks[i], frames, count * sizeof *frames);
    return (int)i;
}

/* ---- Who asks --------------------------------------------------------------------------------------- */

static inline hkl_quick_entry *entry_of(hkl_quick *q, uintptr_t pc)
{
    return &q->entries[(uint32_t)pc * MIX >> (32 - HKL_QUICK_ENTRY_BITS)];
}

static int length_of(const hkl_quick_way *way)
{
    int n = 0;
    while (n < HKL_QUICK_CLIMB && way->at[n] != 0)
        n++;
    return n;
}

/* Behind those that were met before; by_length: before those that are shorter, which may be how it begins. */
static void keep_way(hkl_quick *q, hkl_quick_entry *entry, const hkl_quick_way *way, bool by_length)
{
    if (q->way_count + 1 == HKL_QUICK_WAYS) clear_ways(q);
    hkl_quick_way **link = &entry->ways;
    while (*link != &q->ways[0] && !(by_length && length_of(*link) < length_of(way)))
        link = &(*link)->next;
    hkl_quick_way *kept = &q->ways[++q->way_count];
    *kept = *way;
    kept->next = *link;
    *link = kept;
}

/* What is true in any case fills the places that all ways have. */
static void fill_way(hkl_quick_way *way, int count, int least, uintptr_t pc)
{
    if (count > least) way->kind |= HKL_QUICK_LONGER;
    for (; count < least; count++) {
        way->at[count] = -(int32_t)sizeof pc;
        way->pc[count] = pc;
    }
}

#if LUA_VERSION_NUM == 501

/* Goes up to the machine code of the trace, and keeps the way. */
static void learn_way_to(hkl_quick *q, hkl_quick_entry *entry, const hkc_cfi_registers *at, const void *trace)
{
    hkl_quick_way way = {.next = &q->ways[0], .patience = PATIENCE};
    uintptr_t pc = at->pc;
    int32_t up = 0;
    for (int count = 0; count < HKL_PC_CLIMB_MOST; count++) {
        const struct hkl_walk_step *step = hkl_thread_step(q->walk, pc);
        if (!step->ok || step->saves.cfa_from_fp) return;
        up += (int32_t)step->saves.cfa_offset;
        way.place = up - (int32_t)sizeof pc;
        pc = hkl_key_word_at((const void *)at->sp, way.place);
        if (hkl_snap_has(trace, pc)) {
            fill_way(&way, count, HKL_KEY_TRACE_AT_LEAST, at->pc);
            keep_way(q, entry, &way, true);
            return;
        }
        way.at[count] = way.place;
        way.pc[count] = pc;
    }
}

/* Finds the key's place in machine code for sure; false = there is no way that could be kept. */
static bool find_place(hkl_quick *q, hkl_quick_entry *entry, const hkc_cfi_registers *at, hkl_quick_key *key)
{
    const void *trace = (const void *)key->function;
    if (hkl_snap_has(trace, key->pc)) return true;
    learn_way_to(q, entry, at, trace);
    key->pc = hkl_key_place(entry->ways, at);
    return hkl_snap_has(trace, key->pc);
}

#else

static bool find_place(hkl_quick *q, hkl_quick_entry *entry, const hkc_cfi_registers *at, hkl_quick_key *key)
{
    (void)q;
    (void)entry;
    (void)at;
    (void)key;
    return false;
}

#endif

/* Goes up to the interpreter as hkl_pc_correct does, and keeps the way. */
static void learn_way(hkl_quick *q, hkl_quick_entry *entry, const hkc_cfi_registers *at)
{
    hkl_quick_way way = {.next = &q->ways[0], .patience = PATIENCE};
    int32_t place[HKC_CFI_SAVED], up = 0; /* bytes from sp */
    uintptr_t pc = at->pc;
    int count = 0;
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        place[r] = -1;
    const struct hkl_walk_step *step = hkl_thread_step(q->walk, pc);
    for (; step->instruction == HKL_PC_ELSEWHERE; step = hkl_thread_step(q->walk, pc)) {
        if (count + 1 == HKL_PC_CLIMB_MOST || !step->ok || step->saves.cfa_from_fp) return;
        up += (int32_t)step->saves.cfa_offset;
        for (int r = 0; r < HKC_CFI_SAVED; r++)
            if (step->saves.below[r] != 0) place[r] = up - (int32_t)step->saves.below[r];
        way.at[count] = up - (int32_t)sizeof pc;
        pc = way.pc[count] = hkl_key_word_at((const void *)at->sp, way.at[count]);
        count++;
    }
    fill_way(&way, count, HKL_QUICK_AT_LEAST, at->pc);
    if (step->instruction == HKL_PC_STORED) {
        way.kind |= HKL_QUICK_STORED;
    } else if (hkl_pc_in_frame(step->instruction)) {
        way.place = up + (step->instruction - HKL_PC_IN_FRAME) * (int32_t)sizeof pc;
    } else if (place[step->instruction] >= 0) {
        way.place = place[step->instruction];
    } else {
        way.kind |= HKL_QUICK_IN_REGISTER;
        way.place = step->instruction * (int32_t)sizeof pc;
    }
    keep_way(q, entry, &way, false);
}

/* The one that was found so often behind others comes first. */
static void reorder(hkl_quick_entry *entry)
{
    for (hkl_quick_way **link = &entry->ways; (*link)->next; link = &(*link)->next) {
        hkl_quick_way *way = *link;
        if (way->patience <= PATIENCE) continue;
        way->patience = PATIENCE;
        *link = way->next;
        way->next = entry->ways;
        entry->ways = way;
        return;
    }
}

static int walk(hkl_quick *q, lua_State *L, const hkc_cfi_registers *at, const hkl_quick_key *key)
{
    uintptr_t frames[HKL_QUICK_DEPTH];
    const hkl_asker asker = {L, at, q->walk};
    const size_t n = hkl_frames_walk(q->frames, &asker, 1, frames, HKL_QUICK_DEPTH);
    bool settled = n > 0;
    for (size_t i = 0; i < n && key->calls != HKL_KEY_PLACE; i++)
        settled = settled && hkl_frames_settled(q->frames, frames[i]);
    return settled ? put(q, key, frames, n) : -1;
}

static __attribute__((noinline)) int find_slowly(hkl_quick *q, const hkc_cfi_registers *at)
{
    hkl_quick_key key;
    hkl_quick_entry *entry = entry_of(q, at->pc);
    lua_State *L = hkl_thread_at(q->walk, q->st, at);
    if (!L) return -1;
    if (entry->pc != at->pc) {
        const int thread = hkl_thread_step(q->walk, at->pc)->thread;
        if (thread < 0) return -1;
        *entry = (hkl_quick_entry){.pc = at->pc, .ways = &q->ways[0], .thread = (uint64_t)thread};
    }
    reorder(entry);
    if (!hkl_key_of(entry->ways, L, at, &key)) return -1;
    if (key.calls == HKL_KEY_PLACE) {
        if (!find_place(q, entry, at, &key)) return -1;
    } else if (key.pc == 0) { /* this way was not met */
        learn_way(q, entry, at);
        hkl_key_of(entry->ways, L, at, &key);
        if (key.pc == 0) return -1;
    }
    const int slot = slot_with(q, &key);
    return slot >= 0 ? slot : walk(q, L, at, &key);
}

int hkl_quick_find(hkl_quick *q, const hkc_cfi_registers *at)
{
    hkl_quick_key key;
    const hkl_quick_entry *entry = entry_of(q, at->pc);
    if (__builtin_expect(entry->pc != at->pc, 0)) return find_slowly(q, at);
    const lua_State *L = (const lua_State *)at->saved[entry->thread];
    if (L != q->main && !hkl_thread_is(q->st, L)) return find_slowly(q, at);
    if (!hkl_key_of(entry->ways, L, at, &key)) return -1;
    const int slot = slot_with(q, &key);
    return __builtin_expect(slot >= 0, 1) ? slot : find_slowly(q, at);
}

#endif
