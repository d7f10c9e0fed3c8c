/* mimalloc 2 and 3, built without override: only these calls reach it. */
#ifndef BENCH_ADAPTER_MIMALLOC_H
#define BENCH_ADAPTER_MIMALLOC_H

#include <mimalloc.h>

#include <stdio.h>

#define BA_MALLOC mi_malloc
#define BA_FREE mi_free
#define BA_REALLOC mi_realloc
#include "calls.h"
#include "no_setup.h"

#define BA_HAS_CTX 1
#define BA_HAS_BUFFER 0

static inline const char *ba_version(void)
{
    static char text[20];
    int v = mi_version();
    int wide = v >= 10000; /* 1 + 2 + 2 digits; before, 1 + 1 + 1 */
    snprintf(text, sizeof text, "%d.%d.%d", wide ? v / 10000 : v / 100, wide ? v / 100 % 100 : v / 10 % 10,
             wide ? v % 100 : v % 10);
    return text;
}
static inline void ba_trim(void)
{
    mi_collect(true);
}

typedef mi_heap_t ba_ctx;
static inline ba_ctx *ba_ctx_new(void)
{
    return mi_heap_new();
}
static inline void *ba_ctx_alloc(ba_ctx *c, size_t n)
{
    return mi_heap_malloc(c, n);
}
static inline void ba_ctx_destroy(ba_ctx *c)
{
    mi_heap_destroy(c);
}

#endif
