/* host guest.wasm: two requests to a guest, and a reset that forgets the second: wasmtime cannot shrink a
 * memory. */
#include <hakmem/wasm_wasmtime.h>

#include <stdio.h>
#include <string.h>

static wasmtime_val_t call(hak_wasmtime_instance *guest, const char *name, const int32_t *argument)
{
    wasmtime_extern_t function;
    wasmtime_context_t *context = hak_wasmtime_instance_context(guest);
    wasmtime_val_t in = {.kind = WASMTIME_I32, .of.i32 = argument ? *argument : 0};
    wasmtime_val_t out = {.kind = WASMTIME_I32, .of.i32 = -2};
    wasm_trap_t *trap = NULL;
    if (!wasmtime_instance_export_get(context, hak_wasmtime_instance_get(guest), name, strlen(name),
                                      &function) ||
        hak_wasmtime_call(guest, &function.of.func, &in, argument ? 1 : 0, &out, argument ? 0 : 1, &trap) ||
        trap)
        printf("%s fails\n", name);
    return out;
}

int main(int argc, char **argv)
{
    static uint8_t bytes[4096];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) return 2;
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);

    wasmtime_error_t *error = NULL;
    wasm_trap_t *trap = NULL;
    hak_wasm_host_options options = HAK_WASM_HOST_OPTIONS_INIT;
    options.bounds = HAK_WASM_GUARD;
    hak_wasm_host *host = hak_wasm_host_new(&options);
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, NULL);
    wasm_engine_t *engine = hak_wasmtime_engine_new(host, wasm_config_new(), &error);
    if (!tenant || !engine) return 3;
    wasmtime_linker_t *linker = wasmtime_linker_new(engine);
    hak_wasmtime_module *module = hak_wasmtime_module_new(tenant, engine, linker, bytes, size, &error);
    wasmtime_linker_delete(linker);
    hak_wasmtime_instance *guest =
        module ? hak_wasmtime_instance_new(tenant, module, NULL, NULL, &error, &trap) : NULL;
    if (!guest) return 4;
    const char *why = "";
    const int32_t number = 4711;
    call(guest, "put", &number);
    const int before = call(guest, "get", NULL).of.i32;
    hak_wasmtime_image *first = hak_wasmtime_image_take(guest, &why);
    call(guest, "put", &(int32_t){1});
    const int reset = first ? hak_wasmtime_reset(guest, first) : -1;
    printf("%d %d %d\n", before, reset, (int)call(guest, "get", NULL).of.i32);
    hak_wasmtime_image_drop(first);
    hak_wasmtime_instance_close(guest);
    hak_wasmtime_module_delete(module);
    wasm_engine_delete(engine);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_host_delete(host);
    return 0;
}
