/* What an instruction calls that a trace has inlined. The trace has the functions among its constants, and the
 * tables in which they were looked up; the bytecode says under which name, or from which upvalue or local. */
#include "profile/snap_way.h"

#include <string.h>

#if defined(HKC_CFI_WALK) && LUA_VERSION_NUM == 501

enum { BACK_MOST = 64, NODES_MOST = 4096 };
/* Values: the type above bit 47. */
enum { TYPE_AT = 47, FUNCTION = 0x1fff7, TEXT = 0x1fffb };
/* GCfuncL: 0 at 10 for one in Lua, its globals at 16, its code at 32, upvalues from 40 on. GCupval: a pointer to the
 * value at 32. GCtab: hash nodes at 40, their number less 1 at 52; a node is value, key, next. */
enum {
    IN_LUA_AT = 10,
    GLOBALS_AT = 16,
    CODE_AT = 32,
    UPVALUES_AT = 40,
    VALUE_AT = 32,
    NODES_AT = 40,
    MASK_AT = 52
};
enum { NODE_WORDS = 3 };
/* Constants of the compiler: below 0x8000, from the number at 40 of the trace on. */
enum {
    CONSTANTS_AT = 40,
    END = 0x8000,
    KIND_AT = 4,
    OP_AT = 5,
    KIND = 31,
    KIND_PROTO = 7,
    KIND_FUNCTION = 8,
    KIND_TABLE = 11
};

static uintptr_t object_of(uintptr_t value, unsigned type)
{
    return value >> TYPE_AT == type ? value & (((uintptr_t)1 << TYPE_AT) - 1) : 0;
}

static hkl_snap_callee callee_of(const char *name, uintptr_t closure)
{
    hkl_snap_callee callee = {.name = name};
    callee.in_c = closure != 0 && ((const uint8_t *)closure)[IN_LUA_AT] != 0;
    if (closure == 0 || callee.in_c) return callee;
    callee.closure = closure;
    callee.first = (const uint32_t *)hkl_thread_word((const void *)closure, CODE_AT);
    return callee;
}

/* Of a value. What is no function, such as a type of the FFI, is called in C. */
static hkl_snap_callee callee_in(uintptr_t value)
{
    const uintptr_t closure = object_of(value, FUNCTION);
    return closure != 0 ? callee_of(NULL, closure) : (hkl_snap_callee){.in_c = true};
}

uintptr_t hkl_snap_base_function(const void *global)
{
    const uintptr_t *base = (const uintptr_t *)hkl_thread_word(global, hkl_trace_layout_now.jit_base_at);
    const uintptr_t closure = base ? object_of(base[-2], FUNCTION) : 0;
    return callee_of(NULL, closure).closure;
}

/* The next constant that is an object, from number *n on; its kind, 0 = there are no more. */
static unsigned next_object(const void *trace, uint32_t *n, uintptr_t *object)
{
    const uintptr_t *all = (const uintptr_t *)hkl_thread_word(trace, HKL_SNAP_IR);
    const unsigned first = hkl_trace_layout_now.object_constant;
    while (first != 0 && *n + 1 < END) {
        const uint8_t *at = (const uint8_t *)&all[*n];
        const unsigned op = at[OP_AT];
        const bool two_words = op >= first && op <= first + 5 && op != first + 3;
        *n += two_words ? 2 : 1;
        if (op != first) continue;
        *object = all[*n - 1];
        return at[KIND_AT] & KIND;
    }
    return 0;
}

hkl_snap_callee hkl_snap_only(const hkl_snap_way *w,
                              bool (*fn)(const hkl_snap_way *way, const uint32_t *first))
{
    hkl_snap_callee found = {.name = NULL};
    uintptr_t object;
    unsigned kind;
    for (uint32_t n = hkl_snap_word32(w->trace, CONSTANTS_AT);
         (kind = next_object(w->trace, &n, &object)) != 0;) {
        hkl_snap_callee one = {.name = NULL};
        if (kind == KIND_FUNCTION) one = callee_of(NULL, object);
        if (kind == KIND_PROTO) one.first = (const uint32_t *)(object + HKL_PROTO_BYTES);
        if (!one.first || one.first == found.first || !fn(w, one.first)) continue;
        if (found.first) return (hkl_snap_callee){.name = NULL};
        found = one;
    }
    return found;
}

/* What the table has under the key; 0 = no function. */
static uintptr_t look_up(uintptr_t table, uintptr_t key)
{
    const uint32_t mask = hkl_snap_word32((const void *)table, MASK_AT);
    const uintptr_t *node = (const uintptr_t *)hkl_thread_word((const void *)table, NODES_AT);
    for (uint32_t i = 0; i <= mask && i < NODES_MOST; i++, node += NODE_WORDS)
        if (object_of(node[1], TEXT) == key) return object_of(node[0], FUNCTION);
    return 0;
}

/* In whichever table of the trace's constants there is one. */
static uintptr_t look_up_all(const void *trace, uintptr_t key)
{
    uintptr_t table, found = 0;
    unsigned kind;
    for (uint32_t n = hkl_snap_word32(trace, CONSTANTS_AT); (kind = next_object(trace, &n, &table)) != 0;) {
        const uintptr_t function = kind == KIND_TABLE ? look_up(table, key) : 0;
        if (function == 0 || function == found) continue;
        if (found != 0) return 0;
        found = function;
    }
    return found;
}

/* A string among the constants of the function. */
static uintptr_t text_of(const uint32_t *first, unsigned n)
{
    const uintptr_t *constants =
        (const uintptr_t *)hkl_thread_word((const char *)first - HKL_PROTO_BYTES, HKL_PROTO_CONSTANTS);
    return constants[-1 - (ptrdiff_t)n];
}

/* The instruction that has put there what is called; NULL = not known. */
static const uint32_t *source_of(const uint32_t *call, const uint32_t *first)
{
    const unsigned slot = *call >> 8 & 0xff;
    for (int i = 1; i < BACK_MOST && call - i > first; i++)
        if ((call[-i] >> 8 & 0xff) == slot) return call - i;
    return NULL;
}

static uintptr_t key_of(const uint32_t *source, const uint32_t *first)
{
    const unsigned op = source ? hkl_snap_operation(*source) : 0, of = source ? *source >> 16 : 0;
    return op == OP_TGETS || op == OP_GGET ? text_of(first, op == OP_GGET ? of : of & 0xff) : 0;
}

const char *hkl_snap_name(const uint32_t *call)
{
    const uint32_t *first = hkl_snap_first(call);
    const uintptr_t key = key_of(source_of(call, first), first);
    return key != 0 ? (const char *)key + HKL_TEXT_AT : NULL;
}

static hkl_snap_callee called_by_name(const hkl_snap_way *w, const uint32_t *source, uintptr_t key)
{
    const bool global = hkl_snap_operation(*source) == OP_GGET && w->closures[0] != 0;
    const uintptr_t found =
        global ? look_up(hkl_thread_word((const void *)w->closures[0], GLOBALS_AT), key) : 0;
    return callee_of((const char *)key + HKL_TEXT_AT, found != 0 ? found : look_up_all(w->trace, key));
}

hkl_snap_callee hkl_snap_called(const hkl_snap_way *w)
{
    const uint32_t *first = hkl_snap_first(w->places[0]), *source = source_of(w->places[0], first);
    const uintptr_t closure = w->closures[0], key = key_of(source, first);
    const unsigned op = source ? hkl_snap_operation(*source) : 0, of = source ? *source >> 16 : 0;
    if (key != 0) return called_by_name(w, source, key);
    if (op == OP_UGET && closure != 0) {
        const uintptr_t upvalue =
            hkl_thread_word((const void *)closure, UPVALUES_AT + of * sizeof(uintptr_t));
        return callee_in(*(const uintptr_t *)hkl_thread_word((const void *)upvalue, VALUE_AT));
    }
    if (op == OP_MOV && w->depth == 1 && closure != 0 && closure == hkl_snap_base_function(w->global)) {
        const uintptr_t *base =
            (const uintptr_t *)hkl_thread_word(w->global, hkl_trace_layout_now.jit_base_at);
        return callee_in(base[of]);
    }
    return (hkl_snap_callee){.name = NULL};
}

#endif
