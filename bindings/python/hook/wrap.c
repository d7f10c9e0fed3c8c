#include "hook/wrap.h"

#include "heap/original.h"

#include <stdatomic.h>

typedef struct counter {
    atomic_uint_fast64_t allocations, frees, bytes;
} counter;

static counter counters[3];
/* pymalloc passes blocks above 512 bytes on to RAW: only the outermost call is the program's. */
static _Thread_local unsigned depth;
static _Thread_local unsigned calls;

static void count(hkp_domain domain, size_t n)
{
    if (depth) return;
    calls++;
    atomic_fetch_add_explicit(&counters[domain].allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters[domain].bytes, n, memory_order_relaxed);
}

static void *pass_malloc(hkp_domain domain, size_t n)
{
    const hkp_allocator *below = &hkp_original[domain];
    count(domain, n);
    depth++;
    void *p = below->malloc(below->ctx, n);
    depth--;
    return p;
}

static void *pass_calloc(hkp_domain domain, size_t items, size_t n)
{
    const hkp_allocator *below = &hkp_original[domain];
    count(domain, items * n);
    depth++;
    void *p = below->calloc(below->ctx, items, n);
    depth--;
    return p;
}

static void *pass_realloc(hkp_domain domain, void *p, size_t n)
{
    const hkp_allocator *below = &hkp_original[domain];
    if (!p) count(domain, n);
    depth++;
    void *q = below->realloc(below->ctx, p, n);
    depth--;
    return q;
}

static void pass_free(hkp_domain domain, void *p)
{
    const hkp_allocator *below = &hkp_original[domain];
    if (p && !depth) atomic_fetch_add_explicit(&counters[domain].frees, 1, memory_order_relaxed);
    depth++;
    below->free(below->ctx, p);
    depth--;
}

#define WRAPPER(name, domain) HKP_ALLOCATOR(name, domain, pass_malloc, pass_calloc, pass_realloc, pass_free)
WRAPPER(raw, HKP_RAW)
WRAPPER(mem, HKP_MEM)
WRAPPER(obj, HKP_OBJ)

const hkp_allocator hkp_wrappers[3] = {
    {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
    {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
    {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free},
};

unsigned hkp_wrap_calls(void)
{
    return calls;
}

void hkp_wrap_counts(hkp_domain domain, hkp_wrap_count *out)
{
    const counter *c = &counters[domain];
    out->allocations = atomic_load_explicit(&c->allocations, memory_order_relaxed);
    out->frees = atomic_load_explicit(&c->frees, memory_order_relaxed);
    out->bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed);
}
