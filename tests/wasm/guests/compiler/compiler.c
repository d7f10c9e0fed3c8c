/* WAMR's compiler for the guests of the tests: compiler GUEST.wasm GUEST.aot none|small|whole, the last of
 * frames. */
#include "aot_export.h"
#include "wasm_export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *why)
{
    fprintf(stderr, "compiler: %s\n", why);
    return 1;
}

static AOTCompOption options(const char *frames)
{
    AOTCompOption o = {.target_arch = (char *)"x86_64",
                       .opt_level = 3,
                       .size_level = 3,
                       .bounds_checks = 1,
                       .output_format = AOT_FORMAT_FILE,
                       .enable_bulk_memory = true,
                       .enable_ref_types = true,
                       .enable_aux_stack_check = true};
    if (strcmp(frames, "none") == 0) return o;
    o.aux_stack_frame_type =
        strcmp(frames, "small") == 0 ? AOT_STACK_FRAME_TYPE_TINY : AOT_STACK_FRAME_TYPE_STANDARD;
    memset(&o.call_stack_features, 1, sizeof o.call_stack_features);
    o.call_stack_features.frame_per_function = o.aux_stack_frame_type == AOT_STACK_FRAME_TYPE_TINY;
    return o;
}

int main(int argc, char **argv)
{
    static uint8_t bytes[1 << 20];
    char error[200];
    RuntimeInitArgs args = {.mem_alloc_type = Alloc_With_Allocator};
    args.mem_alloc_option.allocator.malloc_func = malloc;
    args.mem_alloc_option.allocator.realloc_func = realloc;
    args.mem_alloc_option.allocator.free_func = free;
    FILE *in = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (!in) return fail("GUEST.wasm GUEST.aot none|small|whole");
    const uint32_t n = (uint32_t)fread(bytes, 1, sizeof bytes, in);
    if (!wasm_runtime_full_init(&args)) return fail("WAMR does not start");
    wasm_module_t module = wasm_runtime_load(bytes, n, error, sizeof error);
    if (!module) return fail(error);
    AOTCompOption o = options(argv[3]);
    aot_comp_data_t data = aot_create_comp_data(module, o.target_arch, false);
    aot_comp_context_t context = data ? aot_create_comp_context(data, &o) : NULL;
    const bool done = context && aot_compile_wasm(context) && aot_emit_aot_file(context, data, argv[2]);
    return done ? 0 : fail(aot_get_last_error());
}
