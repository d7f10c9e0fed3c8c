/* What the programs of this folder share: the clock, files, messages. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bench_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("wasm_bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

double bench_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint8_t *bench_read(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) bench_fail("cannot read %s", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*size);
    if (!bytes || fread(bytes, 1, *size, f) != *size) bench_fail("cannot read %s", path);
    fclose(f);
    return bytes;
}
