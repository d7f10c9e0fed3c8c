/* The folders of the binding. A file knows its own folder and those below it:
 *
 *     base < heap < native, lines < profile < paths < hook < module
 *
 * base/ has what the parts of the hook share: the types of domains and providers (here), the
 * interpreter found by name, JSON without stdio, a hash table, options, pages of cold code. It knows of
 * no heap.
 *
 * Nothing here needs Python.h: the hook serves any CPython, found by name at run time (cpython.h).
 * Hook functions run with and without the GIL, before Py_Initialize and after Py_Finalize, and inside
 * the collector: a label provider must not lock, not allocate through Python and not call its API. */
#ifndef HKP_CORE_H
#define HKP_CORE_H

#include <hakmem/hakmem.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HKP_INLINE static inline __attribute__((always_inline))
#define HKP_LIKELY(x) __builtin_expect(!!(x), 1)
#define HKP_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* For variables that the allocation path reads: known to be the hook's own where they are not optimized with
 * it. */
#define HKP_HIDDEN __attribute__((visibility("hidden")))
/* On variables of threads that each block needs: reached without a call. musl has no room for such variables of a
 * library that comes when the program runs, and would not load the hook for `import hakmem`. */
#ifdef __GLIBC__
#define HKP_NEAR __attribute__((tls_model("initial-exec")))
#else
#define HKP_NEAR
#endif
/* What the extension module takes from the hook. */
#define HKP_API __attribute__((visibility("default")))

/* The first three as PyMemAllocatorDomain numbers them. */
typedef enum hkp_domain { HKP_RAW, HKP_MEM, HKP_OBJ, HKP_ARENA, HKP_MALLOC, HKP_DOMAINS } hkp_domain;

/* PyMemAllocatorEx. */
typedef struct hkp_allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t n);
    void *(*calloc)(void *ctx, size_t count, size_t n);
    void *(*realloc)(void *ctx, void *p, size_t n);
    void (*free)(void *ctx, void *p);
} hkp_allocator;

/* PyObjectArenaAllocator. */
typedef struct hkp_arena_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t n);
    void (*free)(void *ctx, void *p, size_t n);
} hkp_arena_allocator;

/* The malloc of the process, where hakmem serves that. NULL comes with errno. */
typedef struct hkp_process_allocator {
    void *(*malloc)(size_t n);
    void *(*calloc)(size_t n);
    void *(*realloc)(void *p, size_t n);            /* p is not NULL */
    void *(*aligned_alloc)(size_t align, size_t n); /* align: a power of 2 */
    void (*free)(void *p);
    size_t (*usable_size)(void *p);
} hkp_process_allocator;

/* The hook functions of RAW, MEM and OBJ, compiled once for each provider by including hooks.h. */
typedef struct hkp_hooks {
    hkp_allocator domains[3];
    hkp_arena_allocator arena;
    hkp_process_allocator process;
} hkp_hooks;

struct hkc_json;
struct hkc_frames;

/* A way to label blocks: "off", "native", "site". Chosen at install, for the life of the process. */
typedef struct hkp_provider {
    const char *name;
    /* It serves where all domains are replaced, and is refused elsewhere. */
    bool needs_all;
    /* Blocks have no label, and are counted by domain. */
    bool counts;
    /* Before its hooks are installed; defines the labels. NULL = ready, else why it cannot serve here. */
    const char *(*start)(hak_ctx *ctx);
    const hkp_hooks *hooks, *profiled; /* profiled: for as long as a profile runs */
    /* Members of its own for the context of the JSON report. NULL = none. */
    void (*report)(struct hkc_json *w);
    /* What lives of each line, as an array of that name and in the form of stacks. NULL = it knows none. */
    void (*lines)(struct hkc_json *w, struct hkc_frames *frames, const char *key);
    /* Python is awaited (true), or has come. The GIL need not be held. NULL = does not matter. */
    void (*await)(bool awaited);
} hkp_provider;

/* The one in use; "off" before the installation. */
const hkp_provider *hkp_provider_current(void);
void hkp_provider_use(const hkp_provider *provider);

#endif
