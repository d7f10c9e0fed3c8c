#define _GNU_SOURCE
#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { WASI_OK = 0, WASI_BAD_DESCRIPTOR = 8, WASI_FAULT = 21, WASI_NOT_THERE = 52 };

/* n bytes of the guest's memory; NULL where there are none. */
static uint8_t *span(wasmtime_caller_t *caller, int32_t at, uint32_t n)
{
    wasmtime_extern_t item;
    if (!wasmtime_caller_export_get(caller, "memory", 6, &item) || item.kind != WASMTIME_EXTERN_MEMORY)
        return NULL;
    wasmtime_context_t *context = wasmtime_caller_context(caller);
    size_t size = wasmtime_memory_data_size(context, &item.of.memory);
    if ((uint32_t)at > size || n > size - (uint32_t)at) return NULL;
    return wasmtime_memory_data(context, &item.of.memory) + (uint32_t)at;
}

static void give(wasmtime_val_t *result, int32_t value)
{
    *result = (wasmtime_val_t){.kind = WASMTIME_I32, .of.i32 = value};
}

#define IMPORT(name)                                                                                         \
    static wasm_trap_t *name(void *env, wasmtime_caller_t *caller, const wasmtime_val_t *arguments,          \
                             size_t count, wasmtime_val_t *results, size_t result_count)

static imported *of(wasmtime_caller_t *caller)
{
    guest *g = wasmtime_context_get_data(wasmtime_caller_context(caller));
    return &g->imported;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The monotonic clock begins with each script: that of the machine would tell when the image was made. */
IMPORT(clock_time_get)
{
    (void)env, (void)count, (void)result_count;
    const imported *i = of(caller);
    bool real = arguments[0].of.i32 == 0;
    uint64_t ns = real ? clock_ns(CLOCK_REALTIME) : clock_ns(CLOCK_MONOTONIC) - i->start_ns;
    if (i->time_ns) ns = real ? i->time_ns : 0;
    uint8_t *to = span(caller, arguments[2].of.i32, sizeof ns);
    if (to) memcpy(to, &ns, sizeof ns);
    give(results, to ? WASI_OK : WASI_FAULT);
    return NULL;
}

IMPORT(random_get)
{
    (void)env, (void)count, (void)result_count;
    size_t n = (uint32_t)arguments[1].of.i32;
    uint8_t *to = span(caller, arguments[0].of.i32, (uint32_t)n);
    while (to && n > 0) {
        size_t part = n < 256 ? n : 256;
        if (getentropy(to, part) != 0) break;
        to += part;
        n -= part;
    }
    give(results, n == 0 ? WASI_OK : WASI_FAULT);
    return NULL;
}

/* Calls a function that the guest exports; the result, 0 if there is none. A script whose time is up while it
 * runs ends at its next tick. */
static int32_t call(wasmtime_caller_t *caller, const char *name, const int32_t *arguments, size_t count,
                    size_t results)
{
    wasmtime_extern_t item;
    if (!wasmtime_caller_export_get(caller, name, strlen(name), &item)) return 0;
    wasmtime_val_t in[2], out = {.kind = WASMTIME_I32, .of.i32 = 0};
    for (size_t i = 0; i < count; i++)
        give(&in[i], arguments[i]);
    wasm_trap_t *trap = NULL;
    wasmtime_error_t *error =
        wasmtime_func_call(wasmtime_caller_context(caller), &item.of.func, in, count, &out, results, &trap);
    int32_t result = error || trap ? 0 : out.of.i32;
    if (error) wasmtime_error_delete(error);
    if (trap) wasm_trap_delete(trap);
    return result;
}

static void free_value(wasmtime_caller_t *caller, int32_t handle)
{
    call(caller, "qjs_free_value", &handle, 1, 0);
}

/* The only function of the host that scripts can call takes a line of the console. Parameters: the function's
 * name and its length, `this`, and how many values there are and where. */
IMPORT(host_call)
{
    (void)env, (void)count, (void)result_count;
    imported *i = of(caller);
    int32_t handle = 0;
    const uint8_t *values =
        arguments[3].of.i32 > 0 && i->length_at ? span(caller, arguments[4].of.i32, sizeof handle) : NULL;
    if (values) {
        memcpy(&handle, values, sizeof handle);
        const int32_t in[2] = {handle, (int32_t)i->length_at};
        int32_t text = call(caller, "qjs_get_string_len", in, 2, 1);
        uint32_t length = 0;
        const uint8_t *at = text ? span(caller, (int32_t)i->length_at, sizeof length) : NULL;
        if (at) memcpy(&length, at, sizeof length);
        const uint8_t *line = at ? span(caller, text, length) : NULL;
        if (line) console_add(&i->console, (const char *)line, length);
        if (text) call(caller, "qjs_free_cstring", &text, 1, 0);
    }
    give(results, call(caller, "qjs_get_undefined", NULL, 0, 1));
    return NULL;
}

/* A promise was rejected with nobody to handle it; or one that was is handled after all. */
IMPORT(promise_rejection)
{
    (void)env, (void)count, (void)results, (void)result_count;
    imported *i = of(caller);
    rejection r = {arguments[0].of.i32, arguments[1].of.i32, 0};
    const uint8_t *value = span(caller, r.promise, sizeof r.value);
    if (value) memcpy(&r.value, value, sizeof r.value);
    if (arguments[2].of.i32 == 0) {
        if (i->rejection_count == i->rejection_room) {
            size_t room = i->rejection_room ? 2 * i->rejection_room : 16;
            rejection *more = realloc(i->rejections, room * sizeof *more);
            if (!more) return wasmtime_trap_new("no memory", 9);
            i->rejections = more;
            i->rejection_room = room;
        }
        i->rejections[i->rejection_count++] = r;
        return NULL;
    }
    for (size_t n = i->rejection_count; n-- > 0;) {
        rejection known = i->rejections[n];
        if (known.value != r.value) continue;
        i->rejections[n] = i->rejections[--i->rejection_count];
        free_value(caller, known.promise);
        free_value(caller, known.reason);
        break;
    }
    free_value(caller, r.promise);
    free_value(caller, r.reason);
    return NULL;
}

void imported_begin(imported *i)
{
    i->start_ns = clock_ns(CLOCK_MONOTONIC);
    i->rejection_count = 0;
    console_clear(&i->console);
}

void imported_end(imported *i)
{
    free(i->rejections);
    console_free(&i->console);
}

/* No files, no modules: 0 or the error in env. */
IMPORT(absent)
{
    (void)caller, (void)arguments, (void)count;
    if (result_count > 0) give(results, (int32_t)(intptr_t)env);
    return NULL;
}

wasmtime_error_t *imports_define(wasmtime_linker_t *linker)
{
    /* Types: i and l are parameters of 32 and 64 bits; a result of 32 bits unless there is a '-'. */
    static const struct {
        const char *module, *name, *type;
        wasmtime_func_callback_t function;
        int32_t error;
    } imports[] = {
        {"wasi_snapshot_preview1", "clock_time_get", "ili", clock_time_get, 0},
        {"wasi_snapshot_preview1", "random_get", "ii", random_get, 0},
        {"wasi_snapshot_preview1", "fd_close", "i", absent, WASI_NOT_THERE},
        {"wasi_snapshot_preview1", "fd_fdstat_get", "ii", absent, WASI_BAD_DESCRIPTOR},
        {"wasi_snapshot_preview1", "fd_seek", "ilii", absent, WASI_NOT_THERE},
        {"wasi_snapshot_preview1", "fd_write", "iiii", absent, WASI_BAD_DESCRIPTOR},
        {"env", "host_get_timezone_offset", "ii", absent, 0},
        {"env", "host_interrupt", "", absent, 0},
        {"env", "host_promise_rejection", "iii-", promise_rejection, 0},
        {"env", "host_module_normalize", "ii", absent, 0},
        {"env", "host_module_load", "ii", absent, 0},
        {"env", "host_call", "iiiii", host_call, 0},
    };
    for (size_t i = 0; i < sizeof imports / sizeof imports[0]; i++) {
        wasm_valtype_t *parameters[8], *result[1];
        size_t n = 0, results = 1;
        for (const char *t = imports[i].type; *t; t++) {
            if (*t == '-') results = 0;
            else parameters[n++] = wasm_valtype_new(*t == 'l' ? WASM_I64 : WASM_I32);
        }
        if (results) result[0] = wasm_valtype_new(WASM_I32);
        wasm_valtype_vec_t from, to;
        wasm_valtype_vec_new(&from, n, parameters);
        wasm_valtype_vec_new(&to, results, result);
        wasm_functype_t *type = wasm_functype_new(&from, &to);
        wasmtime_error_t *error = wasmtime_linker_define_func(
            linker, imports[i].module, strlen(imports[i].module), imports[i].name, strlen(imports[i].name),
            type, imports[i].function, (void *)(intptr_t)imports[i].error, NULL);
        wasm_functype_delete(type);
        if (error) return error;
    }
    return NULL;
}
