#ifndef BENCH_ADAPTER_GLIBC_H
#define BENCH_ADAPTER_GLIBC_H

#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdlib.h>

#define BA_HAS_CTX 0
#define BA_HAS_BUFFER 0

static inline const char *ba_version(void) {
    return gnu_get_libc_version();
}
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
static inline void ba_trim(void) {
    malloc_trim(0);
}
static inline void ba_tick(void) {
}

#endif
