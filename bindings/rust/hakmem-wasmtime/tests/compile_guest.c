/* compile_guest in.wat out.cwasm [whole] [timed]: compiles a guest with the settings that Host::configure makes,
 * by a wasmtime that has a compiler. whole: what it exports is all of its state. timed: for Host::timed_engine. */
#include <hakmem/wasm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wasmtime.h>

static int fail(const char *what, wasmtime_error_t *error)
{
    wasm_name_t text;
    wasmtime_error_message(error, &text);
    fprintf(stderr, "compile_guest: %s: %.*s\n", what, (int)text.size, text.data);
    return 1;
}

int main(int argc, char **argv)
{
    static char text[1 << 20];
    bool whole = false, timed = false;
    for (int i = 3; i < argc; i++) {
        whole = whole || strcmp(argv[i], "whole") == 0;
        timed = timed || strcmp(argv[i], "timed") == 0;
    }
    FILE *f = argc >= 3 ? fopen(argv[1], "rb") : NULL;
    if (!f) return 1;
    const size_t size = fread(text, 1, sizeof text, f);
    fclose(f);
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_memory_init_cow_set(config, false);
    wasmtime_config_memory_may_move_set(config, false);
    wasmtime_config_memory_reservation_set(config, 4ull << 30);
    wasmtime_config_memory_guard_size_set(config, 32 << 20);
    wasmtime_config_parallel_compilation_set(config, false);
    wasmtime_config_wasm_component_model_set(config, false);
    wasmtime_config_concurrency_support_set(config, false);
    wasmtime_config_epoch_interruption_set(config, timed);
    wasm_engine_t *engine = wasm_engine_new_with_config(config);
    wasm_byte_vec_t binary, compiled;
    wasmtime_module_t *module = NULL;
    wasmtime_error_t *error = wasmtime_wat2wasm(text, size, &binary);
    hak_wasm_code copy = {NULL, 0};
    const char *why = NULL;
    if (!error && whole && hak_wasm_module_expose(binary.data, binary.size, &copy, &why) != 0)
        error = wasmtime_error_new(why);
    const void *bytes = copy.bytes ? copy.bytes : binary.data;
    if (!error) error = wasmtime_module_new(engine, bytes, copy.bytes ? copy.size : binary.size, &module);
    if (!error) error = wasmtime_module_serialize(module, &compiled);
    if (error) return fail(argv[1], error);
    f = fopen(argv[2], "wb");
    return !f || fwrite(compiled.data, 1, compiled.size, f) != compiled.size || fclose(f) != 0;
}
