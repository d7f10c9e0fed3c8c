#define _GNU_SOURCE
#include "guest.h"

#include "imports.h"

#include <hakmem/wasm_wasmtime.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICK_MS = 5, HOST_TICKS = 20, TEXT_MOST = 64 << 10 };

typedef enum { F_MALLOC, F_EVAL, F_IS_EXCEPTION, F_GET_EXCEPTION, F_GET_STRING, FUNCTIONS } function;
static const char *const names[FUNCTIONS] = {"malloc", "qjs_eval", "qjs_is_exception", "qjs_get_exception",
                                             "qjs_get_string"};

struct engine {
    hak_wasm_host *host;
    wasm_engine_t *engine;
    hak_wasmtime_module *module;
    hak_wasmtime_image *image;
    unsigned ticks; /* that a script has */
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
    bool interrupted; /* the last trap was the end of its time */
};

static char *error_text(wasmtime_error_t *error)
{
    wasm_name_t message;
    wasmtime_error_message(error, &message);
    char *text = strndup(message.data, message.size);
    wasm_byte_vec_delete(&message);
    wasmtime_error_delete(error);
    return text;
}

/* The last line: before it comes a backtrace of functions without names. */
static char *trap_text(wasm_trap_t *trap)
{
    wasm_message_t message;
    wasm_trap_message(trap, &message);
    size_t size = strnlen(message.data, message.size);
    while (size > 0 && message.data[size - 1] == '\n')
        size--;
    const char *line = memrchr(message.data, '\n', size);
    line = line ? line + 1 + strspn(line + 1, " ") : message.data;
    char *text = strndup(line, (size_t)(message.data + size - line));
    wasm_byte_vec_delete(&message);
    wasm_trap_delete(trap);
    return text;
}

static bool failed(const char *what, wasmtime_error_t *error)
{
    if (!error) return false;
    char *text = error_text(error);
    fprintf(stderr, "wasm-server: %s: %s\n", what, text);
    free(text);
    return true;
}

/* Scripts are stopped by wasmtime's epochs, which somebody has to count; the host gives idle pages back. */
static void *tick(void *p)
{
    engine *e = p;
    const struct timespec pause = {0, TICK_MS * 1000000};
    for (unsigned n = 0; !atomic_load(&e->ending); n++) {
        nanosleep(&pause, NULL);
        wasmtime_engine_increment_epoch(e->engine);
        if (n % HOST_TICKS == 0) hak_wasm_host_tick(e->host, 0);
    }
    return NULL;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        *size = (size_t)ftell(f);
        rewind(f);
        bytes = malloc(*size);
        if (bytes && fread(bytes, 1, *size, f) != *size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (f) fclose(f);
    if (!bytes) fprintf(stderr, "wasm-server: cannot read %s\n", path);
    return bytes;
}

/* One call; *trap is set, or the first result returned. */
static int32_t call(guest *g, const wasmtime_func_t *f, const int32_t *arguments, size_t n, bool has_result,
                    char **trap)
{
    wasmtime_val_t in[4] = {{0}}, out = {.kind = WASMTIME_I32, .of.i32 = 0};
    for (size_t i = 0; i < n; i++)
        in[i] = (wasmtime_val_t){.kind = WASMTIME_I32, .of.i32 = arguments[i]};
    wasm_trap_t *t;
    wasmtime_error_t *error = hak_wasmtime_call(g->instance, f, in, n, &out, has_result, &t);
    if (t) {
        wasmtime_trap_code_t code;
        g->interrupted = wasmtime_trap_code(t, &code) && code == WASMTIME_TRAP_CODE_INTERRUPT;
        *trap = trap_text(t);
    } else if (error) {
        *trap = error_text(error);
    }
    return out.of.i32;
}

static bool find(guest *g, const char *name, wasmtime_extern_t *item)
{
    return wasmtime_instance_export_get(g->context, hak_wasmtime_instance_get(g->instance), name,
                                        strlen(name), item);
}

/* For what comes before a script. */
static void give_time(wasmtime_context_t *context, void *data)
{
    (void)data;
    wasmtime_context_set_epoch_deadline(context, 1000 / TICK_MS);
}

/* Without the state of the image. */
static guest *instantiate(engine *e, hak_wasm_tenant *tenant, char **text)
{
    guest *g = calloc(1, sizeof *g);
    if (!g) {
        *text = strdup("out of memory");
        return NULL;
    }
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    g->engine = e;
    g->instance = hak_wasmtime_instance_new(tenant, e->module, NULL, give_time, &error, &trap);
    if (!g->instance) {
        *text = error ? error_text(error) : trap_text(trap);
        free(g);
        return NULL;
    }
    g->context = hak_wasmtime_instance_context(g->instance);
    wasmtime_extern_t item = {0};
    bool complete = find(g, "memory", &item);
    g->memory = item.of.memory;
    for (int i = 0; i < FUNCTIONS && complete; i++) {
        complete = find(g, names[i], &item);
        g->functions[i] = item.of.func;
    }
    if (!complete) {
        *text = strdup("this is not the QuickJS of quickjs-wasi");
        guest_delete(g);
        return NULL;
    }
    return g;
}

/* QuickJS after its start, as every script will find it. */
static bool make_image(engine *e)
{
    char *text = NULL;
    const char *why = NULL;
    guest *g = instantiate(e, hak_wasm_host_tenant(e->host), &text);
    wasmtime_extern_t initialize, start;
    if (g && find(g, "_initialize", &initialize) && find(g, "qjs_init", &start)) {
        call(g, &initialize.of.func, NULL, 0, false, &text);
        if (!text && call(g, &start.of.func, NULL, 0, true, &text) != 0) why = "QuickJS does not start";
        if (!text && !why) e->image = hak_wasmtime_image_take(g->instance, &why);
    }
    if (g) guest_delete(g);
    if (!e->image) fprintf(stderr, "wasm-server: %s\n", text ? text : why ? why : "no QuickJS");
    free(text);
    return e->image != NULL;
}

engine *engine_new(hak_wasm_host *host, const char *path, unsigned limit_ms)
{
    engine *e = calloc(1, sizeof *e);
    size_t size;
    uint8_t *bytes = e ? read_file(path, &size) : NULL;
    if (!bytes) {
        free(e);
        return NULL;
    }
    e->host = host;
    e->ticks = limit_ms / TICK_MS + 1;
    wasmtime_error_t *error;
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_epoch_interruption_set(config, true);
    e->engine = hak_wasmtime_engine_new(host, config, &error);
    wasmtime_linker_t *linker = e->engine ? wasmtime_linker_new(e->engine) : NULL;
    bool ok = !failed("wasmtime", error) && !failed("the functions for QuickJS", imports_define(linker));
    if (ok) {
        e->module =
            hak_wasmtime_module_new(hak_wasm_host_tenant(host), e->engine, linker, bytes, size, &error);
        ok = !failed(path, error) && make_image(e);
    }
    if (ok) ok = e->ticking = pthread_create(&e->ticker, NULL, tick, e) == 0;
    if (linker) wasmtime_linker_delete(linker);
    free(bytes);
    if (ok) return e;
    engine_delete(e);
    return NULL;
}

void engine_delete(engine *e)
{
    atomic_store(&e->ending, true);
    if (e->ticking) pthread_join(e->ticker, NULL);
    hak_wasmtime_image_drop(e->image);
    hak_wasmtime_module_delete(e->module);
    if (e->engine) wasm_engine_delete(e->engine);
    free(e);
}

guest *guest_new(engine *e, hak_wasm_tenant *tenant, char **text)
{
    guest *g = instantiate(e, tenant, text);
    if (g && !guest_reset(g)) {
        *text = strdup("hakmem: no linear memory: over a limit, or no memory");
        guest_delete(g);
        g = NULL;
    }
    return g;
}

void guest_delete(guest *g)
{
    hak_wasmtime_instance_close(g->instance);
    free(g);
}

bool guest_reset(guest *g)
{
    return hak_wasmtime_reset(g->instance, g->engine->image) == 0;
}

/* What the guest has there; the guest may write anything anywhere. */
static char *read_text(guest *g, int32_t at, size_t *length)
{
    size_t size = wasmtime_memory_data_size(g->context, &g->memory);
    const char *from = (const char *)wasmtime_memory_data(g->context, &g->memory) + (uint32_t)at;
    if (at == 0 || (uint32_t)at >= size) {
        *length = 0;
        return strdup("");
    }
    size_t most = size - (uint32_t)at;
    *length = strnlen(from, most < TEXT_MOST ? most : TEXT_MOST);
    return strndup(from, *length);
}

static int32_t evaluate(guest *g, const char *script, size_t size, char **trap)
{
    static const char name[] = "script";
    int32_t all = (int32_t)(size + 1 + sizeof name);
    int32_t at = call(g, &g->functions[F_MALLOC], &all, 1, true, trap);
    size_t memory = wasmtime_memory_data_size(g->context, &g->memory);
    if (*trap) return 0;
    if (at == 0 || (uint32_t)at > memory || (size_t)all > memory - (uint32_t)at) {
        *trap = strdup("no memory for the script");
        return 0;
    }
    char *to = (char *)wasmtime_memory_data(g->context, &g->memory) + (uint32_t)at;
    memcpy(to, script, size);
    to[size] = '\0';
    memcpy(to + size + 1, name, sizeof name);
    int32_t arguments[] = {at, (int32_t)size, at + (int32_t)size + 1, 0};
    return call(g, &g->functions[F_EVAL], arguments, 4, true, trap);
}

outcome guest_run(guest *g, const char *script, size_t size, char **text, size_t *length)
{
    outcome result = RUN_OK;
    char *trap = NULL;
    g->interrupted = false;
    wasmtime_context_set_epoch_deadline(g->context, g->engine->ticks);
    int32_t value = evaluate(g, script, size, &trap);
    if (!trap && call(g, &g->functions[F_IS_EXCEPTION], &value, 1, true, &trap)) {
        result = RUN_ERROR;
        if (!trap) value = call(g, &g->functions[F_GET_EXCEPTION], NULL, 0, true, &trap);
    }
    int32_t string = trap ? 0 : call(g, &g->functions[F_GET_STRING], &value, 1, true, &trap);
    if (!trap) {
        *text = read_text(g, string, length);
        return result;
    }
    *text = trap;
    *length = strlen(trap);
    return g->interrupted ? RUN_TIME : RUN_TRAP;
}
