/* Teaches label_site the allocation sites of the runtime: runs operations whose blocks are known by kind
 * in a scratch state and watches where they allocate. */
#ifndef HK_LUA_CALIBRATE_H
#define HK_LUA_CALIBRATE_H

#include "label_kind.h"

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

/* Once per process; later calls return at once. false = no memory. */
bool hk_calibrate(void);

typedef enum hk_fate { HK_FATE_ANY, HK_FATE_KEPT, HK_FATE_FREED } hk_fate;

/* Blocks of an operation that are of this kind. Those with a type tag are left out before. */
typedef struct hk_calibrate_rule {
    hk_kind kind;
    size_t min, max; /* bytes, both included */
    hk_fate fate;    /* at the end of the operation; that of the block which it grew into */
    bool power_of_2;
} hk_calibrate_rule;

typedef struct hk_calibrate_op {
    const char *script; /* a chunk that returns the function to watch; NULL = `run` */
    lua_CFunction run;
    bool broad;                 /* see hk_observation */
    bool traces;                /* once more on compiled traces, on LuaJIT */
    bool compiling;             /* with the compiler on, on LuaJIT; nothing elsewhere */
    hk_calibrate_rule rules[3]; /* the first that matches; a block without one teaches nothing */
} hk_calibrate_op;

extern const hk_calibrate_op hk_calibrate_ops[];
extern const size_t hk_calibrate_op_count;

#endif
