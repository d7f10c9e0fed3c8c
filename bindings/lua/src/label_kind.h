/* The parts of the interpreter that blocks are booked under. */
#ifndef HKL_LABEL_KIND_H
#define HKL_LABEL_KIND_H

#include <lua.h>

#include <stddef.h>

#define HKL_KINDS(X)                                                                                         \
    X(OTHER, "other")                                                                                        \
    X(STRING, "string")                                                                                      \
    X(STRTAB, "strtab")                                                                                      \
    X(TABLE, "table")                                                                                        \
    X(ARRAY, "array")                                                                                        \
    X(HASH, "hash")                                                                                          \
    X(CLOSURE, "closure")                                                                                    \
    X(UPVALUE, "upvalue")                                                                                    \
    X(PROTO, "proto")                                                                                        \
    X(PARSER, "parser")                                                                                      \
    X(BUFFER, "buffer")                                                                                      \
    X(USERDATA, "userdata")                                                                                  \
    X(THREAD, "thread")                                                                                      \
    X(STACK, "stack")                                                                                        \
    X(CDATA, "cdata")                                                                                        \
    X(TRACE, "trace")                                                                                        \
    X(REGISTRY, "registry")

#define HKL_KIND_ENUM(name, text) HKL_KIND_##name,
typedef enum hkl_kind { HKL_KINDS(HKL_KIND_ENUM) HKL_KIND_COUNT } hkl_kind;
#undef HKL_KIND_ENUM

/* osize of 5.2 and later for a new block: the type of the object, 0 for what is not an object. Always 0 on
 * LuaJIT and 5.1. */
enum { HKL_TAGS = 16 };

static inline hkl_kind hkl_kind_of_tag(size_t tag)
{
#if LUA_VERSION_NUM >= 502
    switch (tag) {
    case LUA_TSTRING:
        return HKL_KIND_STRING;
    case LUA_TTABLE:
        return HKL_KIND_TABLE;
    case LUA_TFUNCTION:
        return HKL_KIND_CLOSURE;
    case LUA_TUSERDATA:
        return HKL_KIND_USERDATA;
    case LUA_TTHREAD:
        return HKL_KIND_THREAD;
#if LUA_VERSION_NUM <= 503
    case LUA_NUMTAGS:
        return HKL_KIND_PROTO;
#if LUA_VERSION_NUM == 502
    case LUA_NUMTAGS + 1:
        return HKL_KIND_UPVALUE;
#endif
#else
    case LUA_NUMTYPES:
        return HKL_KIND_UPVALUE;
    case LUA_NUMTYPES + 1:
        return HKL_KIND_PROTO;
#endif
    default:
        break;
    }
#else
    (void)tag;
#endif
    return HKL_KIND_OTHER;
}

#endif
