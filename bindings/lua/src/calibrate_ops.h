/* Operations in a scratch state whose blocks are known by kind. */
#ifndef HKL_CALIBRATE_OPS_H
#define HKL_CALIBRATE_OPS_H

#include "label_kind.h"

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

typedef enum hkl_fate { HKL_FATE_ANY, HKL_FATE_KEPT, HKL_FATE_FREED } hkl_fate;

/* Blocks of an operation that are of this kind. Those with a type tag are left out before. */
typedef struct hkl_calibrate_rule {
    hkl_kind kind;
    size_t min, max; /* bytes, both included */
    hkl_fate fate;   /* at the end of the operation; that of the block which it grew into */
    bool power_of_2;
} hkl_calibrate_rule;

typedef struct hkl_calibrate_op {
    const char *script; /* a chunk that returns the function to watch; NULL = `run` */
    lua_CFunction run;
    bool broad;                  /* see hkl_observation */
    bool traces;                 /* once more on compiled traces, on LuaJIT */
    bool compiling;              /* with the compiler on, on LuaJIT; nothing elsewhere */
    hkl_calibrate_rule rules[3]; /* the first that matches; a block without one teaches nothing */
} hkl_calibrate_op;

/* In a scratch state. */
void hkl_open_libraries(lua_State *L);

extern const hkl_calibrate_op hkl_calibrate_ops[];
extern const size_t hkl_calibrate_op_count;

#endif
