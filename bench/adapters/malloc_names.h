/* What the allocators that go by the plain malloc names have in common. */
#ifndef BENCH_ADAPTER_MALLOC_NAMES_H
#define BENCH_ADAPTER_MALLOC_NAMES_H

#include <stddef.h>
#include <stdlib.h>

static inline void ba_init(void) {
}
static inline void ba_thread_begin(size_t lane) {
    (void)lane;
}
static inline void ba_thread_end(void) {
}
static inline void *ba_alloc(size_t n) {
    return malloc(n);
}
static inline void ba_free(void *p, size_t n) {
    (void)n;
    free(p);
}
static inline void *ba_realloc(void *p, size_t old, size_t n) {
    (void)old;
    return realloc(p, n);
}
static inline void ba_tick(void) {
}

#endif
