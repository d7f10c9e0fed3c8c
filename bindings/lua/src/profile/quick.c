#include "profile/quick.h"

#include "profile/key.h"
#include "profile/pc.h"

#include <string.h>

#ifdef HKC_CFI_WALK

/* The return address of no path: nothing has it on its stack. */
#define NO_PC (HKL_FRAME_BIT | 1)

static void clear_paths(hkl_quick *q)
{
    memset(q->entries, 0, sizeof q->entries);
    q->paths[0] = (hkl_quick_path){NO_PC, NULL, NULL, 0, 0};
    q->path_count = 0;
}

void hkl_quick_begin(hkl_quick *q, const hkl_state *st, hkl_walk *walk, hkl_frames *frames,
                     const hkl_traces *traces)
{
    memset(q, 0, sizeof *q);
    q->st = st;
    q->walk = walk;
    q->frames = frames;
    q->traces = traces;
    clear_paths(q);
}

/* ---- Slots ------------------------------------------------------------------------------------------ */

/* A key may be in two slots, i and i ^ 1. */
static inline unsigned slot_of(uintptr_t pc)
{
    return (unsigned)((pc >> 2 ^ pc >> 12) % HKL_QUICK_SLOTS);
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
            hkl_quick_begin(q, q->st, q->walk, q->frames, q->traces);
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
    return &q->entries[(pc ^ pc >> 7) % HKL_QUICK_ENTRIES];
}

/* Nothing is met above it. */
static hkl_quick_path unmet(hkl_quick *q, uintptr_t pc)
{
    return (hkl_quick_path){pc, &q->paths[0], NULL, sizeof pc, 0};
}

static hkl_quick_path *path_above(hkl_quick *q, hkl_quick_path *path, uintptr_t pc)
{
    hkl_quick_path **link = &path->above;
    for (; *link && *link != &q->paths[0]; link = &(*link)->sibling)
        if ((*link)->pc == pc) return *link;
    if (q->path_count + 1 == HKL_QUICK_PATHS) return NULL;
    hkl_quick_path *more = &q->paths[++q->path_count];
    *more = unmet(q, pc);
    return *link = more;
}

/* Goes up to the interpreter as hkl_pc_correct does, and keeps the way. */
static void learn_path(hkl_quick *q, hkl_quick_path *path, const hkc_cfi_registers *at)
{
    int32_t place[HKC_CFI_SAVED];
    uintptr_t pc = at->pc;
    uint32_t up = 0; /* bytes from sp */
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        place[r] = ~r;
    for (int i = 0; i < HKL_PC_CLIMB_MOST; i++) {
        const struct hkl_walk_step *step = hkl_thread_step(q->walk, pc);
        if (step->instruction != HKL_PC_ELSEWHERE) {
            path->up = 0;
            path->place = step->instruction == HKL_PC_STORED ? HKL_QUICK_STORED : place[step->instruction];
            return;
        }
        if (!step->ok || step->saves.cfa_from_fp || step->saves.cfa_offset <= sizeof pc) return;
        up += step->saves.cfa_offset;
        for (int r = 0; r < HKC_CFI_SAVED; r++)
            if (step->saves.below[r] != 0) place[r] = (int32_t)(up - step->saves.below[r]);
        path->up = up - (uint32_t)sizeof pc;
        pc = *(const uintptr_t *)(at->sp + path->up);
        path = path_above(q, path, pc);
        if (!path) {
            clear_paths(q);
            return;
        }
    }
}

static int walk(hkl_quick *q, lua_State *L, const hkc_cfi_registers *at, const hkl_quick_key *key)
{
    uintptr_t frames[HKL_QUICK_DEPTH];
    const hkl_asker asker = {L, at, q->walk};
    const size_t n = hkl_frames_walk(q->frames, q->traces, &asker, 1, frames, HKL_QUICK_DEPTH);
    bool settled = n > 0;
    for (size_t i = 0; i < n && key->function != 0; i++)
        settled = settled && hkl_frames_settled(q->frames, frames[i]);
    return settled ? put(q, key, frames, n) : -1;
}

static __attribute__((noinline)) int find_slowly(hkl_quick *q, const hkc_cfi_registers *at)
{
    hkl_quick_key key;
    hkl_quick_entry *entry = entry_of(q, at->pc);
    lua_State *L = hkl_thread_at(q->walk, q->st, at);
    if (!L) return -1;
    if (entry->path.pc != at->pc) {
        entry->path = unmet(q, at->pc);
        entry->thread = hkl_thread_step(q->walk, at->pc)->thread;
    }
    if (!hkl_key_of(q, &entry->path, L, at, &key)) return -1;
    if (key.pc == 0) { /* this way was not met */
        learn_path(q, &entry->path, at);
        hkl_key_of(q, &entry->path, L, at, &key);
        if (key.pc == 0) return -1;
    }
    const int slot = slot_with(q, &key);
    return slot >= 0 ? slot : walk(q, L, at, &key);
}

int hkl_quick_find(hkl_quick *q, const hkc_cfi_registers *at)
{
    hkl_quick_key key;
    const hkl_quick_entry *entry = entry_of(q, at->pc);
    if (__builtin_expect(entry->path.pc != at->pc || entry->thread < 0, 0)) return find_slowly(q, at);
    const lua_State *L = (const lua_State *)at->saved[entry->thread];
    if (L != q->st->main && !hkl_thread_is(q->st, L)) return find_slowly(q, at);
    if (!hkl_key_of(q, &entry->path, L, at, &key)) return -1;
    const int slot = slot_with(q, &key);
    return __builtin_expect(slot >= 0, 1) ? slot : find_slowly(q, at);
}

#endif
