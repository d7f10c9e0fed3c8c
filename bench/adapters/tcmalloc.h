/* tcmalloc of gperftools (libtcmalloc_minimal). */
#ifndef BENCH_ADAPTER_TCMALLOC_H
#define BENCH_ADAPTER_TCMALLOC_H

#include <gperftools/malloc_extension_c.h>
#include <gperftools/tcmalloc.h>

#define BA_HAS_CTX 0
#define BA_HAS_BUFFER 0

static inline const char *ba_version(void) {
    return TC_VERSION_STRING;
}
static inline void ba_init(void) {
}
static inline void ba_thread_begin(size_t lane) {
    (void)lane;
}
static inline void ba_thread_end(void) {
}
static inline void *ba_alloc(size_t n) {
    return tc_malloc(n);
}
static inline void ba_free(void *p, size_t n) {
    (void)n;
    tc_free(p);
}
static inline void *ba_realloc(void *p, size_t old, size_t n) {
    (void)old;
    return tc_realloc(p, n);
}
static inline void ba_trim(void) {
    MallocExtension_MarkThreadIdle();
    MallocExtension_ReleaseFreeMemory();
    MallocExtension_MarkThreadBusy();
}
static inline void ba_tick(void) {
}

#endif
