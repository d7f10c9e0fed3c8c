#include "hak.h"

#include <stdio.h>
#include <stdlib.h>

hak_space *bench_space;
hak_ctx *bench_ctx;

hak_ctx *bench_hak_ctx(void) {
#ifdef BENCH_DEBUG
    hak_options options = HAK_OPTIONS_INIT;
    options.debug = HAK_DEBUG_CHECK;
    hak_ctx *ctx = hak_ctx_new(bench_space, &options);
#else
    hak_ctx *ctx = hak_ctx_new(bench_space, NULL);
#endif
#ifdef BENCH_LABELLED
    static const char *const names[BENCH_LABELS] = {"string",  "table", "array", "hash",   "closure",  "upvalue",
                                                    "proto", "userdata", "thread", "buffer", "registry", "other"};
    for (unsigned i = 0; ctx && i < BENCH_LABELS; i++)
        if (hak_label_define(ctx, names[i]) != i + 1) abort();
#endif
    return ctx;
}

void bench_hak_init(void *buffer, size_t size) {
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.buffer = buffer;
    options.buffer_size = size;
    bench_space = hak_space_new(&options);
    bench_ctx = bench_space ? bench_hak_ctx() : NULL;
    if (!bench_ctx) {
        fprintf(stderr, "bench: hakmem gave no context\n");
        exit(1);
    }
}
