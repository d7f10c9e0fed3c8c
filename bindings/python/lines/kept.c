#include "lines/kept.h"

#include "base/cpython.h"

hkp_kept hkp_kept_kinds[1 << HKP_KEPT_BITS];
uint64_t hkp_kept_factor;
bool hkp_kept_followed;

enum { OB_TYPE = 8, TYPE_FLAGS = 168, GC_HEAD = 16, ATTEMPTS = 1000 };
#define HAS_GC ((uint64_t)1 << 14)

/* As Objects/ of each version has it; from, to: the versions that keep them. The names are not pointers, so that
 * they stay with the constants of this file. */
static const struct {
    char type[20];
    int from, to;
} names[] = {{"PyTuple_Type", 0, 0xffff},          {"PyList_Type", 0, 0xffff},
             {"PyDict_Type", 0, 0xffff},           {"PyFloat_Type", 0, 0xffff},
             {"PySlice_Type", 0, 0xffff},          {"PyContext_Type", 0, 0xffff},
             {"PyFrame_Type", 0, 0x030a},          {"PyLong_Type", 0x030e, 0xffff},
             {"PyComplex_Type", 0x030e, 0xffff},   {"PyRange_Type", 0x030e, 0xffff},
             {"PyRangeIter_Type", 0x030e, 0xffff}, {"PyListIter_Type", 0x030e, 0xffff},
             {"PyTupleIter_Type", 0x030e, 0xffff}, {"PyMethod_Type", 0x030e, 0xffff},
             {"PyCFunction_Type", 0x030e, 0xffff}, {"PyCMethod_Type", 0x030e, 0xffff}};
enum { NAMES = sizeof names / sizeof names[0] };

static size_t slot_of(const void *type, uint64_t factor)
{
    return (size_t)((uintptr_t)type * factor >> (64 - HKP_KEPT_BITS));
}

/* false = two of them would share a slot. */
static bool apart(const hkp_kept *found, size_t count, uint64_t factor)
{
    uint64_t taken[(1 << HKP_KEPT_BITS) / 64] = {0};
    for (size_t i = 0; i < count; i++) {
        const size_t slot = slot_of(found[i].type, factor);
        if (taken[slot / 64] >> slot % 64 & 1) return false;
        taken[slot / 64] |= UINT64_C(1) << slot % 64;
    }
    return true;
}

bool hkp_kept_find(void)
{
    const hkp_python *python = hkp_python_find();
    hkp_kept found[NAMES];
    size_t count = 0;
    if (hkp_kept_factor != 0) return true;
    for (size_t i = 0; i < NAMES && python; i++) {
        if (python->version < names[i].from || python->version > names[i].to) continue;
        const void *type = hkp_symbol(names[i].type);
        if (!type) continue;
        const bool gc = hkp_load64(type, TYPE_FLAGS) & HAS_GC;
        found[count++] = (hkp_kept){type, gc ? GC_HEAD : 0};
    }
    uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < ATTEMPTS && !apart(found, count, factor); i++)
        factor = factor * UINT64_C(0xd1342543de82ef95) | 1;
    if (count == 0 || !apart(found, count, factor)) return false;
    for (size_t i = 0; i < count; i++)
        hkp_kept_kinds[slot_of(found[i].type, factor)] = found[i];
    hkp_kept_factor = factor;
    return true;
}

bool hkp_kept_is(const void *block, size_t size)
{
    for (size_t before = 0; before <= GC_HEAD && hkp_kept_factor != 0 && !hkp_kept_followed;
         before += GC_HEAD) {
        if (size < before + OB_TYPE + sizeof(void *)) break;
        const void *type = hkp_load(block, before + OB_TYPE);
        const hkp_kept *kind = type ? hkp_kept_of(type) : NULL;
        if (kind && kind->before == before) return true;
    }
    return false;
}
