/* WAMR, fast interpreter, bounds checks in software: as it is (BENCH_OWN), or with all its memory from
 * hakmem. */
#include "bench.h"

#ifdef BENCH_OWN
#include <wasm_export.h>
#else
#include <hakmem/wasm_wamr.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool qjs;
    uint32_t stack;
    uint8_t *bytes; /* WAMR changes them */
    wasm_module_t module;
#ifndef BENCH_OWN
    bool tenants;
    hak_wasm_host *host;
    hak_wasm_tenant *tenant;
    hak_wasm_wamr_snapshot *snapshot;
#endif
} state;

typedef struct instance {
#ifdef BENCH_OWN
    wasm_module_inst_t own;
    wasm_exec_env_t env;
#else
    hak_wasm_wamr *guest;
    hak_wasm_tenant *tenant; /* NULL = the common one */
#endif
    uint32_t script, name; /* where QuickJS has them */
} instance;

static const char *version(void)
{
    static char text[64];
    uint32_t major, minor, patch;
    wasm_runtime_get_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "WAMR %u.%u.%u", major, minor, patch);
    return text;
}

#ifdef BENCH_OWN
static const char *const variants[] = {"default", NULL};

static wasm_module_inst_t module_instance(instance *i)
{
    return i->own;
}

static void call_function(instance *i, const char *name, uint32_t n, uint32_t *arguments)
{
    wasm_function_inst_t f = wasm_runtime_lookup_function(i->own, name);
    if (!f || !wasm_runtime_call_wasm(i->env, f, n, arguments)) {
        bench_fail("%s: %s", name, f ? wasm_runtime_get_exception(i->own) : "no such function");
    }
}

static void start_runtime(const char *variant, RuntimeInitArgs *arguments)
{
    (void)variant;
    arguments->mem_alloc_type = Alloc_With_System_Allocator;
}

static wasm_module_t load_module(uint32_t size, char *error, uint32_t error_size)
{
    return wasm_runtime_load(state.bytes, size, error, error_size);
}

static void *open_instance(unsigned number)
{
    (void)number;
    char error[128] = "no memory";
    instance *i = calloc(1, sizeof *i);
    if (i) i->own = wasm_runtime_instantiate(state.module, state.stack, 0, error, sizeof error);
    if (i && i->own) i->env = wasm_runtime_create_exec_env(i->own, state.stack);
    if (!i || !i->env) bench_fail("%s", error);
    return i;
}

static void close_instance(void *p)
{
    instance *i = p;
    wasm_runtime_destroy_exec_env(i->env);
    wasm_runtime_deinstantiate(i->own);
    free(i);
}

static bool image(void *p)
{
    (void)p;
    return false;
}

static void reset(void *p)
{
    (void)p;
}

static void stop(void)
{
    wasm_runtime_unload(state.module);
    wasm_runtime_destroy();
    free(state.bytes);
}
#else
static const char *const variants[] = {"hak", "hak-tenants", NULL};

static wasm_module_inst_t module_instance(instance *i)
{
    return hak_wasm_wamr_instance(i->guest);
}

static void call_function(instance *i, const char *name, uint32_t n, uint32_t *arguments)
{
    if (!hak_wasm_wamr_call(i->guest, name, n, arguments)) {
        const char *why = hak_wasm_wamr_exception(i->guest);
        bench_fail("%s: %s", name, why ? why : "no such function");
    }
}

static void start_runtime(const char *variant, RuntimeInitArgs *arguments)
{
    state.tenants = strcmp(variant, "hak-tenants") == 0;
    state.host = hak_wasm_host_new(NULL);
    if (!state.host) bench_fail("no host");
    state.tenant = hak_wasm_tenant_new(state.host, NULL);
    hak_wasm_wamr_args(state.host, arguments);
}

static wasm_module_t load_module(uint32_t size, char *error, uint32_t error_size)
{
    return hak_wasm_wamr_load(state.tenant, state.bytes, size, error, error_size);
}

static void *open_instance(unsigned number)
{
    (void)number;
    char error[128] = "no memory";
    instance *i = calloc(1, sizeof *i);
    if (i && state.tenants) i->tenant = hak_wasm_tenant_new(state.host, NULL);
    if (i)
        i->guest = hak_wasm_wamr_open(i->tenant ? i->tenant : state.tenant, state.module, state.stack, error,
                                      sizeof error);
    if (!i || !i->guest) bench_fail("%s", error);
    return i;
}

static void close_instance(void *p)
{
    instance *i = p;
    hak_wasm_wamr_close(i->guest);
    if (i->tenant) hak_wasm_tenant_close(i->tenant, HAK_WASM_RETIRE);
    free(i);
}

static bool image(void *p)
{
    const char *why;
    state.snapshot = hak_wasm_wamr_take(((instance *)p)->guest, &why);
    if (!state.snapshot) bench_fail("%s", why);
    return true;
}

static void reset(void *p)
{
    if (hak_wasm_wamr_reset(((instance *)p)->guest, state.snapshot) != 0) bench_fail("no reset in place");
}

static void stop(void)
{
    hak_wasm_wamr_drop(state.snapshot);
    wasm_runtime_unload(state.module);
    wasm_runtime_destroy();
    hak_wasm_tenant_close(state.tenant, HAK_WASM_RETIRE);
    hak_wasm_host_delete(state.host);
    free(state.bytes);
}
#endif

/* What QuickJS asks of its host, beyond the system interface: nothing happens. */
static int32_t nothing2(wasm_exec_env_t env, int32_t a, int32_t b)
{
    (void)env, (void)a, (void)b;
    return 0;
}

static int32_t nothing0(wasm_exec_env_t env)
{
    (void)env;
    return 0;
}

static void nothing3(wasm_exec_env_t env, int32_t a, int32_t b, int32_t c)
{
    (void)env, (void)a, (void)b, (void)c;
}

static int32_t nothing5(wasm_exec_env_t env, int32_t a, int32_t b, int32_t c, int32_t d, int32_t e)
{
    (void)env, (void)a, (void)b, (void)c, (void)d, (void)e;
    return 0;
}

static NativeSymbol natives[] = {
    {"host_get_timezone_offset", (void *)(uintptr_t)nothing2, "(ii)i", NULL},
    {"host_interrupt", (void *)(uintptr_t)nothing0, "()i", NULL},
    {"host_promise_rejection", (void *)(uintptr_t)nothing3, "(iii)", NULL},
    {"host_module_normalize", (void *)(uintptr_t)nothing2, "(ii)i", NULL},
    {"host_module_load", (void *)(uintptr_t)nothing2, "(ii)i", NULL},
    {"host_call", (void *)(uintptr_t)nothing5, "(iiiii)i", NULL},
};

static void start(const char *variant, const guest *g, unsigned most)
{
    /* WAMR writes to all of a stack at once. */
    state.stack = most > 10000 ? 8192 : 65536;
    RuntimeInitArgs arguments = {0};
    start_runtime(variant, &arguments);
    arguments.native_module_name = "env";
    arguments.native_symbols = natives;
    arguments.n_native_symbols = sizeof natives / sizeof natives[0];
    if (!wasm_runtime_full_init(&arguments)) bench_fail("WAMR does not start");
    state.qjs = strcmp(g->name, "qjs") == 0;
    state.bytes = malloc(g->size);
    if (!state.bytes) bench_fail("no memory");
    memcpy(state.bytes, g->bytes, g->size);
    char error[128] = "";
    state.module = load_module((uint32_t)g->size, error, sizeof error);
    if (!state.module) bench_fail("%s", error);
}

static void thread_start(void)
{
    if (!wasm_runtime_init_thread_env()) bench_fail("WAMR refuses a thread");
}

static void *memory(void *p, size_t *size)
{
    wasm_memory_inst_t m = wasm_runtime_get_default_memory(module_instance(p));
    *size = (size_t)(wasm_memory_get_cur_page_count(m) * wasm_memory_get_bytes_per_page(m));
    return wasm_memory_get_base_address(m);
}

static uint32_t put_text(instance *i, const char *text)
{
    uint32_t at = (uint32_t)strlen(text) + 1;
    call_function(i, "malloc", 1, &at);
    size_t size;
    memcpy((char *)memory(i, &size) + at, text, strlen(text) + 1);
    return at;
}

static void init(void *p)
{
    instance *i = p;
    uint32_t result = 0;
    if (!state.qjs) {
        call_function(i, "init", 0, NULL);
        return;
    }
    /* WAMR itself has called _initialize. */
    call_function(i, "qjs_init", 0, &result);
    if (result != 0) bench_fail("QuickJS does not start");
    i->script = put_text(i, bench_script);
    i->name = put_text(i, "request");
}

static int32_t call(void *p, function f, int32_t argument)
{
    instance *i = p;
    uint32_t cells[4] = {(uint32_t)argument, 0, 0, 0};
    if (!state.qjs) {
        if (f == FN_NOTHING) call_function(i, "nothing", 0, cells);
        else call_function(i, f == FN_GROW ? "grow" : "request", 1, cells);
        return (int32_t)cells[0];
    }
    uint32_t evaluate[4] = {i->script, (uint32_t)strlen(bench_script), i->name, 0};
    call_function(i, "qjs_eval", 4, evaluate);
    uint32_t value = evaluate[0];
    cells[0] = value;
    call_function(i, "qjs_get_float64", 2, cells); /* the result has two */
    double number;
    memcpy(&number, cells, sizeof number);
    call_function(i, "qjs_free_value", 1, &value);
    return (int32_t)number;
}

const runtime bench_runtime = {variants,      version, start, thread_start,   wasm_runtime_destroy_thread_env,
                               open_instance, init,    call,  close_instance, image,
                               reset,         memory,  stop};
