/* The parts of the interpreter that blocks are booked under. */
#ifndef HK_LUA_LABEL_KIND_H
#define HK_LUA_LABEL_KIND_H

#include <lua.h>

#include <stddef.h>

#define HK_KINDS(X)                                                                                          \
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

#define HK_KIND_ENUM(name, text) HK_KIND_##name,
typedef enum hk_kind { HK_KINDS(HK_KIND_ENUM) HK_KIND_COUNT } hk_kind;
#undef HK_KIND_ENUM

/* osize of 5.3 and 5.4 for a new block: the type of the object, 0 for what is not an object. Always 0 on
 * LuaJIT and 5.1. */
enum { HK_TAGS = 16 };

static inline hk_kind hk_kind_of_tag(size_t tag)
{
#if LUA_VERSION_NUM >= 503
    switch (tag) {
    case LUA_TSTRING:
        return HK_KIND_STRING;
    case LUA_TTABLE:
        return HK_KIND_TABLE;
    case LUA_TFUNCTION:
        return HK_KIND_CLOSURE;
    case LUA_TUSERDATA:
        return HK_KIND_USERDATA;
    case LUA_TTHREAD:
        return HK_KIND_THREAD;
#if LUA_VERSION_NUM == 503
    case LUA_NUMTAGS:
        return HK_KIND_PROTO;
#else
    case LUA_NUMTYPES:
        return HK_KIND_UPVALUE;
    case LUA_NUMTYPES + 1:
        return HK_KIND_PROTO;
#endif
    default:
        break;
    }
#else
    (void)tag;
#endif
    return HK_KIND_OTHER;
}

#endif
