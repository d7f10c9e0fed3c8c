#include "profile/quick.h"

#include "profile/pc.h"

#include <string.h>

#ifdef HKC_CFI_WALK

#if LUA_VERSION_NUM == 504

bool hkl_quick_known(void)
{
    return hkl_pc_calls_known();
}

/* As hkl_pc_correct finds it, with the place of one register followed instead of all. 0 = not found. */
static uintptr_t instruction_of(hkl_quick *q, const hkc_cfi_registers *at)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        const int r = q->usual;
        const uintptr_t *value = &at->saved[r];
        uintptr_t sp = at->sp, pc = at->pc;
        for (int i = 0; i < HKL_PC_CLIMB_MOST; i++) {
            const struct hkl_walk_step *step = hkl_thread_step(q->walk, pc);
            if (step->instruction == r) return *value;
            if (step->instruction >= 0) {
                q->usual = step->instruction;
                break;
            }
            if (!step->ok || step->saves.cfa_from_fp) return 0;
            sp += step->saves.cfa_offset;
            if (step->saves.below[r] != 0) value = (const uintptr_t *)(sp - step->saves.below[r]);
            pc = ((const uintptr_t *)sp)[-1];
        }
    }
    return 0;
}

static bool key_of(hkl_quick *q, const lua_State *L, const hkc_cfi_registers *at, hkl_quick_key *key)
{
    const void *call = hkl_quick_call(L);
    uint64_t calls = hkl_quick_status(call);
    int in_c = 0;
    for (; hkl_quick_in_c(call); in_c++) {
        call = hkl_quick_caller(call);
        if (!call || in_c == HKL_QUICK_DEPTH - 1) return false;
        calls = calls << 16 | hkl_quick_status(call);
    }
    const void *closure = (const void *)hkl_thread_word((const void *)hkl_thread_word(call, 0), 0);
    key->function = hkl_thread_word(closure, 24);
    key->pc = in_c == 0 ? instruction_of(q, at) : hkl_thread_word(call, 32);
    key->calls = in_c == 0 ? 0 : calls;
    return key->pc != 0;
}

/* The block with the code of the key's function; 0 = its instruction is none of it. */
static uintptr_t code_of(const hkl_quick_key *key)
{
    uintptr_t end;
    const uintptr_t code = hkl_pc_code((const void *)key->function, &end);
    return key->pc > code && key->pc <= end ? code : 0;
}

#else

bool hkl_quick_known(void)
{
    return false;
}

static bool key_of(hkl_quick *q, const lua_State *L, const hkc_cfi_registers *at, hkl_quick_key *key)
{
    (void)q;
    (void)L;
    (void)at;
    (void)key;
    return false;
}

static uintptr_t code_of(const hkl_quick_key *key)
{
    (void)key;
    return 0;
}

#endif

void hkl_quick_begin(hkl_quick *q, const hkl_state *st, hkl_walk *walk, hkl_frames *frames,
                     const hkl_traces *traces)
{
    memset(q, 0, sizeof *q);
    q->st = st;
    q->walk = walk;
    q->frames = frames;
    q->traces = traces;
}

/* ---- Slots ------------------------------------------------------------------------------------------ */

/* A key may be in two slots, i and i ^ 1. */
static inline unsigned first_slot(uintptr_t pc)
{
    const unsigned i = (unsigned)((pc >> 2 ^ pc >> 12) % HKL_QUICK_SLOTS);
    return i < 2 ? i + 2 : i; /* 0 is none */
}

static inline bool is_same(const hkl_quick_key *a, const hkl_quick_key *b)
{
    return a->pc == b->pc && a->function == b->function && a->calls == b->calls;
}

static void leave(hkl_quick *q, unsigned slot)
{
    hkl_quick_slot *s = &q->slots[slot];
    uint16_t *link = &q->codes[s->code].slots;
    while (*link != slot)
        link = &q->slots[*link].next;
    *link = s->next;
    *s = (hkl_quick_slot){.next = 0};
}

void hkl_quick_forget(hkl_quick *q, uintptr_t block)
{
    unsigned i = q->heads[hkl_quick_head(block)];
    while (i != 0 && q->codes[i].block != block)
        i = q->codes[i].next;
    while (i != 0 && q->codes[i].slots != 0)
        leave(q, q->codes[i].slots);
}

static unsigned code_at(hkl_quick *q, uintptr_t block)
{
    uint16_t *head = &q->heads[hkl_quick_head(block)];
    for (unsigned i = *head; i != 0; i = q->codes[i].next)
        if (q->codes[i].block == block) return i;
    if (q->code_count + 1 == HKL_QUICK_CODES) hkl_quick_begin(q, q->st, q->walk, q->frames, q->traces);
    q->codes[++q->code_count] = (struct hkl_quick_code){block, *head, 0};
    *head = q->code_count;
    return q->code_count;
}

static int put(hkl_quick *q, const hkl_quick_key *key, const uintptr_t *frames, size_t count)
{
    const uintptr_t block = code_of(key);
    if (block == 0) return -1; /* elsewhere the walk goes by what is stored */
    const unsigned code = code_at(q, block);
    unsigned i = first_slot(key->pc);
    if (q->slots[i].key.pc != 0) i ^= 1;
    if (q->slots[i].key.pc != 0) leave(q, i);
    q->slots[i] = (hkl_quick_slot){*key, 0, (uint16_t)code, q->codes[code].slots, (uint16_t)count};
    q->codes[code].slots = (uint16_t)i;
    memcpy(q->stacks[i], frames, count * sizeof *frames);
    return (int)i;
}

static int walk(hkl_quick *q, lua_State *L, const hkc_cfi_registers *at, const hkl_quick_key *key)
{
    uintptr_t frames[HKL_QUICK_DEPTH];
    const hkl_asker asker = {L, at, q->walk};
    const size_t n = hkl_frames_walk(q->frames, q->traces, &asker, 1, frames, HKL_QUICK_DEPTH);
    bool settled = n > 0;
    for (size_t i = 0; i < n; i++)
        settled = settled && hkl_frames_settled(q->frames, frames[i]);
    return settled ? put(q, key, frames, n) : -1;
}

int hkl_quick_find(hkl_quick *q, const hkc_cfi_registers *at)
{
    hkl_quick_key key;
    lua_State *L = hkl_thread_at(q->walk, q->st, at);
    if (!L || !key_of(q, L, at, &key)) return -1;
    const unsigned i = first_slot(key.pc);
    if (is_same(&q->slots[i].key, &key)) return (int)i;
    if (is_same(&q->slots[i ^ 1].key, &key)) return (int)(i ^ 1);
    return walk(q, L, at, &key);
}

#endif
