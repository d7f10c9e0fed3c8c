/* What engine.c and guest.c share. */
#ifndef WASM_SERVER_ENGINE_H
#define WASM_SERVER_ENGINE_H

#include "guest.h"
#include "imports.h"

#include <hakmem/wasm_wasmtime.h>

#include <stdatomic.h>

/* QuickJS's, by the names in guest.c. */
typedef enum function {
    F_INITIALIZE,
    F_START,
    F_TELL_REJECTIONS,
    F_MALLOC,
    F_FREE,
    F_EVALUATE,
    F_IS_EXCEPTION,
    F_EXCEPTION,
    F_IS_PROMISE,
    F_PROMISE_STATE,
    F_PROMISE_RESULT,
    F_PROPERTY,
    F_HAS_JOBS,
    F_RUN_JOB,
    F_STRING,
    F_NEW_STRING,
    F_NEW_FUNCTION,
    F_GLOBAL,
    F_SET_PROPERTY,
    F_STACK_SIZE,
    FUNCTIONS
} function;

/* Where QuickJS's random numbers come from, as it has them in its memory. */
typedef struct seeds {
    uint64_t random; /* state of Math.random(), not 0 */
    uint32_t hash;   /* of Map and Set; there are none yet when this changes */
} seeds;
enum { SEEDS_BYTES = 12 };

struct engine {
    hak_wasm_host *host;
    wasm_engine_t *engine;
    hak_wasmtime_module *module;
    hak_wasmtime_image *image;
    uint32_t seeds_at, length_at; /* in the memory of a guest */
    double limit;                 /* CPU seconds of a script */
    pthread_t ticker;
    _Atomic bool ending;
    bool ticking;
};

struct guest {
    engine *engine;
    hak_wasmtime_instance *instance;
    wasmtime_context_t *context;
    wasmtime_memory_t memory;
    wasmtime_func_t functions[FUNCTIONS];
    imported imported;
    turn *turn;     /* of the script that runs; NULL = none, and no limit */
    char *failure;  /* malloc; once there is one, calls do nothing */
    outcome result; /* with a failure: RUN_TIME, RUN_TRAP or RUN_REFUSED */
};

/* malloc; the error is deleted. */
char *error_text(wasmtime_error_t *error);

/* An instance that was not started; else NULL and *text, malloc. */
guest *guest_instantiate(engine *e, hak_wasm_tenant *tenant, char **text);
/* The result, 0 if there is none or a failure. */
int32_t guest_call(guest *g, function f, const int32_t arguments[4]);
/* n bytes in the guest's memory that it will not use for anything else; 0 = none, with a failure. *to: where
 * they are until the next call. */
int32_t guest_reserve(guest *g, size_t n, char **to);
/* Sets a global variable. value: a handle. */
void guest_set_global(guest *g, const char *name, int32_t value);
/* The value of a string, as a handle; 0 with a failure. */
int32_t guest_string(guest *g, const char *bytes, size_t n);
#define CALL(g, f, ...) guest_call(g, f, (const int32_t[4]){__VA_ARGS__})

#endif
