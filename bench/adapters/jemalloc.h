/* jemalloc; a context is an arena without thread cache. */
#ifndef BENCH_ADAPTER_JEMALLOC_H
#define BENCH_ADAPTER_JEMALLOC_H

#include <jemalloc/jemalloc.h>

#include <stdint.h>
#include <stdio.h>

#include "malloc_names.h"

#define BA_HAS_CTX 1
#define BA_HAS_BUFFER 0

static inline const char *ba_version(void)
{
    return JEMALLOC_VERSION;
}
static inline void ba_trim(void)
{
    char name[40];
    mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    snprintf(name, sizeof name, "arena.%u.purge", (unsigned)MALLCTL_ARENAS_ALL);
    mallctl(name, NULL, NULL, NULL, 0);
}

/* An arena is its number plus one, so that NULL still says failure. */
typedef struct jemalloc_arena ba_ctx;
static inline ba_ctx *ba_ctx_new(void)
{
    unsigned index;
    size_t size = sizeof index;
    return mallctl("arenas.create", &index, &size, NULL, 0) ? NULL : (ba_ctx *)(uintptr_t)(index + 1u);
}
static inline void *ba_ctx_alloc(ba_ctx *c, size_t n)
{
    return mallocx(n, MALLOCX_ARENA((uintptr_t)c - 1) | MALLOCX_TCACHE_NONE);
}
static inline void ba_ctx_destroy(ba_ctx *c)
{
    char name[40];
    snprintf(name, sizeof name, "arena.%u.destroy", (unsigned)((uintptr_t)c - 1));
    mallctl(name, NULL, NULL, NULL, 0);
}

#endif
