/* snmalloc by the C functions of its Rust library. It has no call that returns memory. */
#ifndef BENCH_ADAPTER_SNMALLOC_H
#define BENCH_ADAPTER_SNMALLOC_H

#include <stddef.h>

#define BA_HAS_CTX 0
#define BA_HAS_BUFFER 0

void *sn_malloc(size_t n);
void sn_free(void *p);
void *sn_realloc(void *p, size_t n);

static inline const char *ba_version(void) {
    return BENCH_PEER_VERSION;
}
static inline void ba_init(void) {
}
static inline void ba_thread_begin(size_t lane) {
    (void)lane;
}
static inline void ba_thread_end(void) {
}
static inline void *ba_alloc(size_t n) {
    return sn_malloc(n);
}
static inline void ba_free(void *p, size_t n) {
    (void)n;
    sn_free(p);
}
static inline void *ba_realloc(void *p, size_t old, size_t n) {
    (void)old;
    return sn_realloc(p, n);
}
static inline void ba_trim(void) {
}
static inline void ba_tick(void) {
}

#endif
