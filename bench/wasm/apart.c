/* wasm_bench_apart GUEST.wasm [COUNT]: how long a module takes to compile in the host, by all of wasmtime's threads
 * and by one, and in a process of its own. Milliseconds by the clock, the median and the smallest of COUNT. */
#define _GNU_SOURCE
#include "bench.h"

#include <hakmem/wasm_wasmtime_apart.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MOST = 1001 };

static void fail(const char *what, wasmtime_error_t *error)
{
    wasm_name_t text = {0, NULL};
    if (error) wasmtime_error_message(error, &text);
    bench_fail("%s %.*s", what, (int)text.size, text.data ? text.data : "");
}

static double now(void)
{
    return bench_seconds(CLOCK_MONOTONIC) * 1e3;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static wasm_config_t *config(bool parallel)
{
    wasm_config_t *c = wasm_config_new();
    wasmtime_config_parallel_compilation_set(c, parallel);
    return c;
}

/* parallel: by wasmtime's threads. apart NULL = in this process. */
static void measure(const char *name, const guest *g, int count, bool parallel,
                    const hak_wasmtime_apart_options *apart)
{
    double samples[COUNT_MOST];
    wasmtime_error_t *error = NULL;
    hak_wasmtime_apart_info info = HAK_WASMTIME_APART_INFO_INIT;
    hak_wasm_host_options options = HAK_WASM_HOST_OPTIONS_INIT;
    options.bounds = HAK_WASM_GUARD;
    hak_wasm_host *host = hak_wasm_host_new(&options);
    wasm_engine_t *engine = hak_wasmtime_engine_new(host, config(parallel), &error);
    if (!engine) fail("no engine:", error);
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(host);
    for (int i = 0; i < count; i++) {
        const double begun = now();
        hak_wasmtime_module *module =
            apart ? hak_wasmtime_module_apart(tenant, engine, NULL, g->bytes, g->size, apart, &info, &error)
                  : hak_wasmtime_module_new(tenant, engine, NULL, g->bytes, g->size, &error);
        samples[i] = now() - begun;
        if (!module) fail("no module:", error);
        hak_wasmtime_module_delete(module);
    }
    qsort(samples, (size_t)count, sizeof *samples, compare);
    printf("%-24s %9.2f %9.2f", name, samples[count / 2], samples[0]);
    if (apart) printf("   %.1f MiB", (double)info.bytes / (1 << 20));
    printf("\n");
    wasm_engine_delete(engine);
    hak_wasm_host_delete(host);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--compile") == 0) return hak_wasmtime_compile_main(config(false));
    const int count = argc == 3 ? atoi(argv[2]) : 11;
    if (argc < 2 || argc > 3 || count < 1 || count > COUNT_MOST) {
        fprintf(stderr, "usage: wasm_bench_apart GUEST.wasm [COUNT]\n");
        return 2;
    }
    static const char *const program[] = {"/proc/self/exe", "--compile", NULL};
    hak_wasmtime_apart_options apart = HAK_WASMTIME_APART_OPTIONS_INIT;
    apart.program = program;
    apart.milliseconds = apart.cpu_milliseconds = 100000;
    guest g = {.name = argv[1]};
    g.bytes = bench_read(argv[1], &g.size);
    printf("%-24s %9s %9s\n", "ms", "median", "least");
    measure("in the host", &g, count, true, NULL);
    measure("in the host, one thread", &g, count, false, NULL);
    measure("apart", &g, count, false, &apart);
    free(g.bytes);
    return 0;
}
