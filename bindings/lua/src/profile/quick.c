#include "profile/quick.h"

#include "profile/pc.h"

#ifdef HKL_QUICK

/* As hkl_pc_correct finds it, with the place of one register followed instead of all. 0 = not found. */
static uintptr_t instruction_of(hkl_quick *q, const hkl_asker *asker)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        const int r = q->usual;
        const uintptr_t *value = &asker->at->saved[r];
        uintptr_t sp = asker->at->sp, pc = asker->at->pc;
        for (int i = 0; i < HKL_PC_CLIMB_MOST; i++) {
            const struct hkl_walk_step *step = hkl_thread_step(asker->walk, pc);
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

bool hkl_quick_key_of(hkl_quick *q, const hkl_asker *asker, hkl_quick_key *key)
{
    const void *call = hkl_quick_call(asker->L);
    uint64_t calls = hkl_quick_status(call);
    int in_c = 0;
    for (; hkl_quick_in_c(call); in_c++) {
        call = hkl_quick_caller(call);
        if (!call || in_c == HKL_QUICK_DEPTH - 1) return false;
        calls = calls << 16 | hkl_quick_status(call);
    }
    const void *closure = (const void *)hkl_thread_word((const void *)hkl_thread_word(call, 0), 0);
    key->proto = hkl_thread_word(closure, 24);
    key->pc = in_c == 0 ? instruction_of(q, asker) : hkl_thread_word(call, 32);
    key->calls = calls;
    return key->pc != 0;
}

static size_t index_of(const hkl_quick_key *key)
{
    return (size_t)((key->pc >> 2) ^ (key->pc >> 12) ^ (key->calls >> 17)) % HKL_QUICK_STACKS;
}

size_t hkl_quick_get(const hkl_quick *q, const hkl_quick_key *key, uintptr_t *out, size_t room)
{
    const size_t i = index_of(key), n = q->stacks[i].count;
    const hkl_quick_key *met = &q->stacks[i].key;
    if (met->pc != key->pc || met->proto != key->proto || met->calls != key->calls || n > room ||
        q->codes[q->stacks[i].code].generation != q->stacks[i].generation)
        return 0;
    for (size_t k = 0; k < n; k++)
        out[k] = q->stacks[i].frames[k];
    return n;
}

void hkl_quick_put(hkl_quick *q, const hkl_quick_key *key, const uintptr_t *frames, size_t count)
{
    uintptr_t end;
    const uintptr_t code = hkl_pc_code((const void *)key->proto, &end);
    /* elsewhere the walk goes by what is stored */
    if (count == 0 || count > HKL_QUICK_DEPTH || key->pc <= code || key->pc > end) return;
    const unsigned c = hkl_quick_code(code);
    if (q->codes[c].at != code) {
        q->codes[c].at = code;
        q->codes[c].generation++;
    }
    const size_t i = index_of(key);
    q->stacks[i].key = *key;
    q->stacks[i].generation = q->codes[c].generation;
    q->stacks[i].code = (uint8_t)c;
    q->stacks[i].count = (uint8_t)count;
    memcpy(q->stacks[i].frames, frames, count * sizeof *frames);
}

#endif
