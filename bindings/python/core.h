/* What the parts of the Python hook share: domains, the one context, and who labels a block.
 *
 * Nothing here needs Python.h: the hook serves any CPython, found by name at run time (python.h). Hook
 * functions run with and without the GIL, before Py_Initialize and after Py_Finalize, and inside the
 * collector: a label provider must not lock, not allocate through Python and not call its API. */
#ifndef HK_PY_CORE_H
#define HK_PY_CORE_H

#include <hakmem/hakmem.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HK_PY_INLINE static inline __attribute__((always_inline))
#define HK_PY_LIKELY(x) __builtin_expect(!!(x), 1)
#define HK_PY_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* For variables that the allocation path reads: known to be the hook's own where they are not optimized with
 * it. */
#define HK_PY_HIDDEN __attribute__((visibility("hidden")))
/* What the extension module takes from the hook. */
#define HK_PY_API __attribute__((visibility("default")))

/* The first three as PyMemAllocatorDomain numbers them. */
typedef enum hk_py_domain { HK_PY_RAW, HK_PY_MEM, HK_PY_OBJ, HK_PY_ARENA, HK_PY_DOMAINS } hk_py_domain;

/* PyMemAllocatorEx. */
typedef struct hk_py_allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t n);
    void *(*calloc)(void *ctx, size_t count, size_t n);
    void *(*realloc)(void *ctx, void *p, size_t n);
    void (*free)(void *ctx, void *p);
} hk_py_allocator;

/* PyObjectArenaAllocator. */
typedef struct hk_py_arena_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t n);
    void (*free)(void *ctx, void *p, size_t n);
} hk_py_arena_allocator;

/* The hook functions of RAW, MEM and OBJ, compiled once for each provider by including hooks.h. */
typedef struct hk_py_hooks {
    hk_py_allocator domains[3];
    hk_py_arena_allocator arena;
} hk_py_hooks;

/* A way to label blocks: "off", "native", "site". Chosen at install, for the life of the process. */
typedef struct hk_py_provider {
    const char *name;
    /* Before its hooks are installed; defines the labels. NULL = ready, else why it cannot serve here. */
    const char *(*start)(hak_ctx *ctx);
    const hk_py_hooks *hooks;
    /* Members for the JSON report, each as `,"name":value`. The GIL is held if `gil`. NULL = none. */
    void (*report)(FILE *out, bool gil);
    /* Python is awaited (true), or has come. The GIL need not be held. NULL = does not matter. */
    void (*await)(bool awaited);
} hk_py_provider;

/* NULL = no such provider. */
const hk_py_provider *hk_py_provider_find(const char *name);
/* The one in use; "off" before the installation. */
const hk_py_provider *hk_py_provider_current(void);

/* The context of the process, made on first use; NULL = no memory. Inside the hook only; the module, which
 * does not see the core, has the functions below it. [any thread] */
hak_ctx *hk_py_ctx(void);
/* The same, where it is made for all domains, or for RAW and arenas. [one thread at a time] */
hak_ctx *hk_py_ctx_for(bool all);

/* The functions of hakmem.h of the same name, for that context. [any thread] */
HK_PY_API int hk_py_stats(hak_stats *stats);
HK_PY_API int hk_py_visit(hak_visit_fn *fn, void *user);
HK_PY_API bool hk_py_owns(const void *p);
HK_PY_API size_t hk_py_trim(void);
HK_PY_API void hk_py_peak_reset(void);
HK_PY_API int hk_py_limit(size_t soft, size_t hard, hak_pressure_fn *fn, void *user);

/* The label of each domain while nobody knows better. Labels 1 to HK_PY_DOMAINS of the context, so that they
 * are constants in the hooks. */
#define HK_PY_DOMAIN_LABEL(domain) ((hak_label)((domain) + 1))
extern const char *const hk_py_domain_names[HK_PY_DOMAINS];

/* From now on blocks have labels: of a provider that starts with them, or where that of their domain is not
 * enough any more. Until then they have none, and no memory for them. false = no memory. [any thread] */
bool hk_py_labels_begin(void);
HK_PY_API hak_label hk_py_label_define(const char *name);
/* All labels, those of the domains with the blocks that have none; returns how many. */
HK_PY_API int hk_py_labels(hak_label_info out[HAK_LABELS_MAX + 1]);

#endif
