#include "hak.h"

#include <stdio.h>
#include <stdlib.h>

hak_space *bench_space;
hak_ctx *bench_ctx;
#ifdef BENCH_TLS
_Thread_local hak_ctx *bench_heap;
#endif

static const char *const names[BENCH_LABELS] = {"string",  "table",   "array",    "hash",
                                                "closure", "upvalue", "proto",    "userdata",
                                                "thread",  "buffer",  "registry", "other"};

void bench_hak_define(hak_ctx *c)
{
    for (int i = 0; i < BENCH_LABELS; i++)
        hak_label_define(c, names[i]);
}

hak_ctx *bench_hak_ctx(void)
{
    hak_options options = HAK_OPTIONS_INIT;
#ifdef BENCH_LABELLED
    options.labels = names;
    options.label_count = BENCH_LABELS;
#endif
#ifdef BENCH_DEBUG
    options.debug = HAK_DEBUG_CHECK;
#endif
#ifdef BENCH_FAST
    options.mode = HAK_MODE_FAST;
#endif
#ifdef BENCH_SHARED
    options.shared = true;
#endif
    return hak_ctx_new(bench_space, &options);
}

void bench_hak_init(void *buffer, size_t size)
{
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.buffer = buffer;
    options.buffer_size = size;
#ifdef BENCH_FAST
    options.mode = HAK_MODE_FAST;
#endif
    bench_space = hak_space_new(&options);
    bench_ctx = bench_space ? bench_hak_ctx() : NULL;
    if (!bench_ctx) {
        fprintf(stderr, "bench: hakmem gave no context\n");
        exit(1);
    }
    ba_thread_begin(0);
}
