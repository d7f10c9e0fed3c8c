/* wasmtime: its own strategies, and linear memories of hakmem. */
#include "bench.h"

#include <hakmem/wasm_wasmtime.h>

#include <stdlib.h>
#include <string.h>

enum { ON_DEMAND, POOLING, POOLING_256K, POOLING_1M, POOLING_20M, HAK, HAK_TENANTS, HAK_HEAP };
static const char *const variants[] = {"on-demand",       "pooling",          "pooling-keep-256K",
                                       "pooling-keep-1M", "pooling-keep-20M", "hak",
                                       "hak-tenants",     "hak-heap",         NULL};
/* Of pooled memories: 256 KiB covers `small`, 1 MiB QuickJS, 20 MiB `big`. */
static const size_t keep_resident[] = {0, 0, 256 << 10, 1 << 20, 20 << 20};

static struct {
    int variant;
    bool qjs, ready;
    wasm_engine_t *engine;
    wasmtime_linker_t *linker;
    wasmtime_module_t *module; /* these two of wasmtime's own variants */
    wasmtime_instance_pre_t *linked;
    hak_wasm_host *host; /* and these of hakmem's */
    hak_wasm_tenant *tenant;
    hak_wasmtime_module *hak_module;
    hak_wasmtime_image *image;
} state;

typedef struct instance {
    wasmtime_store_t *store; /* own variants */
    wasmtime_instance_t own;
    hak_wasmtime_instance *hak;
    hak_wasm_tenant *tenant; /* NULL = the common one */
    wasmtime_context_t *context;
    wasmtime_instance_t *exports;
    int32_t script, name; /* where QuickJS has them */
    bool functions_known;
    wasmtime_func_t request, value, release;
} instance;

static void check(wasmtime_error_t *error, wasm_trap_t *trap)
{
    if (!error && !trap) return;
    wasm_name_t text;
    if (error) wasmtime_error_message(error, &text);
    else wasm_trap_message(trap, &text);
    bench_fail("wasmtime: %.*s", (int)text.size, text.data);
}

static const char *version(void)
{
    return "wasmtime " WASMTIME_VERSION;
}

/* The system interface as far as QuickJS needs it: every call succeeds and does nothing. */
static wasm_trap_t *succeed(void *env, wasmtime_caller_t *caller, const wasmtime_val_t *arguments, size_t n,
                            wasmtime_val_t *results, size_t result_count)
{
    (void)env, (void)caller, (void)arguments, (void)n;
    if (result_count > 0) results[0] = (wasmtime_val_t){.kind = WASMTIME_I32, .of.i32 = 0};
    return NULL;
}

static void define_imports(const guest *g)
{
    state.linker = wasmtime_linker_new(state.engine);
    wasmtime_module_t *module;
    check(wasmtime_module_new(state.engine, g->bytes, g->size, &module), NULL);
    wasm_importtype_vec_t imports;
    wasmtime_module_imports(module, &imports);
    for (size_t i = 0; i < imports.size; i++) {
        const wasm_name_t *from = wasm_importtype_module(imports.data[i]);
        const wasm_name_t *name = wasm_importtype_name(imports.data[i]);
        const wasm_functype_t *type =
            wasm_externtype_as_functype_const(wasm_importtype_type(imports.data[i]));
        check(wasmtime_linker_define_func(state.linker, from->data, from->size, name->data, name->size, type,
                                          succeed, NULL, NULL),
              NULL);
    }
    wasm_importtype_vec_delete(&imports);
    wasmtime_module_delete(module);
}

static wasm_config_t *own_config(int variant, unsigned most)
{
    wasm_config_t *config = wasm_config_new();
    if (variant == ON_DEMAND) return config;
    wasmtime_pooling_allocation_config_t *pool = wasmtime_pooling_allocation_config_new();
    wasmtime_pooling_allocation_config_total_core_instances_set(pool, most);
    wasmtime_pooling_allocation_config_total_memories_set(pool, most);
    wasmtime_pooling_allocation_config_total_tables_set(pool, most);
    wasmtime_pooling_allocation_config_max_memory_size_set(pool, (size_t)1 << 32);
    if (keep_resident[variant] > 0) {
        wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, keep_resident[variant]);
        wasmtime_pooling_allocation_config_table_keep_resident_set(pool, 64 << 10);
    }
    wasmtime_pooling_allocation_strategy_set(config, pool);
    wasmtime_pooling_allocation_config_delete(pool);
    return config;
}

static void start(const char *variant, const guest *g, unsigned most)
{
    while (strcmp(variants[state.variant], variant) != 0)
        state.variant++;
    state.qjs = strcmp(g->name, "qjs") == 0;
    state.ready = g->ready;
    if (state.variant < HAK) {
        state.engine = wasm_engine_new_with_config(own_config(state.variant, most + 8));
        if (!state.engine) bench_fail("no engine");
        define_imports(g);
        check(wasmtime_module_new(state.engine, g->bytes, g->size, &state.module), NULL);
        check(wasmtime_linker_instantiate_pre(state.linker, state.module, &state.linked), NULL);
        return;
    }
    hak_wasm_host_options options = HAK_WASM_HOST_OPTIONS_INIT;
    options.bounds = HAK_WASM_GUARD;
    state.host = hak_wasm_host_new(&options);
    if (!state.host) bench_fail("no host");
    if (state.variant == HAK_HEAP && hak_wasmtime_hook_heap(state.host) != 0) bench_fail("no heap hook");
    state.tenant = hak_wasm_tenant_new(state.host, NULL);
    wasmtime_error_t *error;
    state.engine = hak_wasmtime_engine_new(state.host, wasm_config_new(), &error);
    check(error, NULL);
    define_imports(g);
    state.hak_module =
        hak_wasmtime_module_new(state.tenant, state.engine, state.linker, g->bytes, g->size, &error);
    check(error, NULL);
}

static void *open_instance(unsigned number)
{
    (void)number;
    instance *i = calloc(1, sizeof *i);
    if (!i) bench_fail("no memory");
    wasmtime_error_t *error;
    wasm_trap_t *trap = NULL;
    if (state.variant < HAK) {
        i->store = wasmtime_store_new(state.engine, NULL, NULL);
        i->context = wasmtime_store_context(i->store);
        error = wasmtime_instance_pre_instantiate(state.linked, i->context, &i->own, &trap);
        i->exports = &i->own;
    } else {
        if (state.variant >= HAK_TENANTS) i->tenant = hak_wasm_tenant_new(state.host, NULL);
        i->hak = hak_wasmtime_instance_new(i->tenant ? i->tenant : state.tenant, state.hak_module, NULL, NULL,
                                           &error, &trap);
        if (i->hak) {
            i->context = hak_wasmtime_instance_context(i->hak);
            i->exports = hak_wasmtime_instance_get(i->hak);
        }
    }
    check(error, trap);
    return i;
}

static void close_instance(void *p)
{
    instance *i = p;
    if (i->store) wasmtime_store_delete(i->store);
    hak_wasmtime_instance_close(i->hak);
    if (i->tenant) hak_wasm_tenant_close(i->tenant, HAK_WASM_RETIRE);
    free(i);
}

static wasmtime_func_t export(instance *i, const char *name)
{
    wasmtime_extern_t item;
    if (!wasmtime_instance_export_get(i->context, i->exports, name, strlen(name), &item)) {
        bench_fail("the guest has no '%s'", name);
    }
    return item.of.func;
}

static wasmtime_val_t call_function(instance *i, const wasmtime_func_t *f, const int32_t *arguments, size_t n,
                                    size_t results)
{
    wasmtime_val_t values[4] = {{0}}, result = {.kind = WASMTIME_I32, .of.i32 = 0};
    for (size_t k = 0; k < n; k++)
        values[k] = (wasmtime_val_t){.kind = WASMTIME_I32, .of.i32 = arguments[k]};
    wasm_trap_t *trap = NULL;
    check(i->hak ? hak_wasmtime_call(i->hak, f, values, n, &result, results, &trap)
                 : wasmtime_func_call(i->context, f, values, n, &result, results, &trap),
          trap);
    return result;
}

static void *memory(void *p, size_t *size)
{
    instance *i = p;
    wasmtime_extern_t item;
    wasmtime_instance_export_get(i->context, i->exports, "memory", 6, &item);
    *size = wasmtime_memory_data_size(i->context, &item.of.memory);
    return wasmtime_memory_data(i->context, &item.of.memory);
}

static int32_t put_text(instance *i, const wasmtime_func_t *allocate, const char *text)
{
    int32_t length = (int32_t)strlen(text) + 1;
    int32_t at = call_function(i, allocate, &length, 1, 1).of.i32;
    size_t size;
    memcpy((char *)memory(i, &size) + at, text, (size_t)length);
    return at;
}

static void init(void *p)
{
    instance *i = p;
    if (!state.ready && !state.qjs) {
        wasmtime_func_t f = export(i, "init");
        call_function(i, &f, NULL, 0, 0);
    } else if (!state.ready) {
        wasmtime_func_t initialize = export(i, "_initialize"), create = export(i, "qjs_init");
        call_function(i, &initialize, NULL, 0, 0);
        if (call_function(i, &create, NULL, 0, 1).of.i32 != 0) bench_fail("QuickJS does not start");
    }
    if (!state.qjs) return;
    wasmtime_func_t allocate = export(i, "malloc");
    i->script = put_text(i, &allocate, bench_script);
    i->name = put_text(i, &allocate, "request");
}

static int32_t request_qjs(instance *i)
{
    if (!i->functions_known) {
        i->request = export(i, "qjs_eval");
        i->value = export(i, "qjs_get_float64");
        i->release = export(i, "qjs_free_value");
        i->functions_known = true;
    }
    int32_t arguments[] = {i->script, (int32_t)strlen(bench_script), i->name, 0};
    int32_t result = call_function(i, &i->request, arguments, 4, 1).of.i32;
    double value = call_function(i, &i->value, &result, 1, 1).of.f64;
    call_function(i, &i->release, &result, 1, 0);
    return (int32_t)value;
}

static int32_t call(void *p, function f, int32_t argument)
{
    instance *i = p;
    if (state.qjs) return request_qjs(i);
    if (f == FN_GROW || f == FN_REQUEST) {
        if (!i->functions_known) {
            i->request = export(i, f == FN_GROW ? "grow" : "request");
            i->functions_known = true;
        }
        return call_function(i, &i->request, &argument, 1, 1).of.i32;
    }
    wasmtime_func_t nothing = export(i, "nothing");
    return call_function(i, &nothing, NULL, 0, 1).of.i32;
}

static bool image(void *p)
{
    if (state.variant < HAK) return false;
    const char *why;
    state.image = hak_wasmtime_image_take(((instance *)p)->hak, &why);
    if (!state.image) bench_fail("no image: %s", why);
    return true;
}

static void reset(void *p)
{
    if (hak_wasmtime_reset(((instance *)p)->hak, state.image) != 0) bench_fail("no reset");
}

static void stop(void)
{
    hak_wasmtime_image_drop(state.image);
    hak_wasmtime_module_delete(state.hak_module);
    if (state.linked) wasmtime_instance_pre_delete(state.linked);
    if (state.module) wasmtime_module_delete(state.module);
    wasmtime_linker_delete(state.linker);
    wasm_engine_delete(state.engine);
    if (state.tenant) hak_wasm_tenant_close(state.tenant, HAK_WASM_RETIRE);
    /* With the heap hooked, blocks of wasmtime live as long as the process. */
    if (state.host && state.variant != HAK_HEAP) hak_wasm_host_delete(state.host);
}

const runtime bench_runtime = {variants, version,        start, NULL,  NULL,   open_instance, init,
                               call,     close_instance, image, reset, memory, stop};
