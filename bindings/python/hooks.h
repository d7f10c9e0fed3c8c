/* The hook functions, as a template: included once for each label provider, which defines before
 *
 *   HK_PY_HOOKS                       the name of the hk_py_hooks to define
 *   HK_PY_LABEL(domain, n, caller)    hak_label of a block of n bytes; caller: the code that called PyMem_*
 * or PyObject_*, which jump to the hook as their last act HK_PY_ROUND(n)                    optional: the
 * bytes to ask for, a multiple of 16 HK_PY_PLACED(domain, p, n, caller)  optional: after a block was made,
 * moved or resized (p is not NULL)
 *
 * `ctx` is never looked at: PyMem_SetAllocator copies five words without a lock, so that a racing thread may
 * come with that of another allocator. */
#include "heap.h"
#include "original.h"
#include "program.h"
#include "scope.h"

#ifndef HK_PY_ROUND
#define HK_PY_ROUND(n) hk_py_round(n)
#endif
#ifndef HK_PY_PLACED
#define HK_PY_PLACED(domain, p, n, caller) ((void)0)
#endif

/* With a scope of the program, or in a thread that has no heap yet. */
static __attribute__((noinline, cold)) void *hk_py_allocate_rarely(size_t n, hak_label label,
                                                                   const void *caller)
{
    hak_label scope = hk_py_scope_label();
    return hak_alloc_cs(hk_py_heap(), n, scope ? scope : label, (hak_site)caller);
}

HK_PY_INLINE void *hk_py_allocate(hk_py_domain domain, size_t n, const void *caller)
{
    if (domain == HK_PY_RAW && HK_PY_UNLIKELY(hk_py_awaited)) hk_py_await_look();
    hak_label label = HK_PY_LABEL(domain, n, caller);
    hak_ctx *heap = hk_py_mine;
    void *p;
    /* RAW is called without the GIL too, where nobody can be asked for a scope. */
    if (HK_PY_UNLIKELY(!heap || (domain != HK_PY_RAW && hk_py_scoped)))
        p = domain == HK_PY_RAW ? hak_alloc_cs(hk_py_heap(), HK_PY_ROUND(n), label, (hak_site)caller)
                                : hk_py_allocate_rarely(HK_PY_ROUND(n), label, caller);
    else p = hak_alloc_cs(heap, HK_PY_ROUND(n), label, (hak_site)caller);
    if (HK_PY_LIKELY(p)) HK_PY_PLACED(domain, p, n, caller);
    return p;
}

HK_PY_INLINE void *hk_py_allocate_zeroed(hk_py_domain domain, size_t count, size_t n, const void *caller)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total) || total > PTRDIFF_MAX) return NULL;
    hak_label label = domain != HK_PY_RAW ? hk_py_scope_label() : 0;
    if (HK_PY_LIKELY(!label)) label = HK_PY_LABEL(domain, total, caller);
    hak_ctx *heap = hk_py_heap();
    void *p = hak_calloc_cs(heap, 1, HK_PY_ROUND(total), label, (hak_site)caller);
    if (HK_PY_LIKELY(p)) HK_PY_PLACED(domain, p, total, caller);
    return p;
}

/* A block keeps its label. */
HK_PY_INLINE void *hk_py_resize(hk_py_domain domain, void *p, size_t n, const void *caller)
{
    if (!p) return hk_py_allocate(domain, n, caller);
    hak_ctx *heap = hk_py_heap();
    bool ours = hak_owns(heap, p);
    void *q = ours ? hak_realloc(heap, p, HK_PY_ROUND(n)) : NULL;
    if (!ours) return hk_py_original[domain].realloc(hk_py_original[domain].ctx, p, n);
    if (HK_PY_LIKELY(q)) HK_PY_PLACED(domain, q, n, caller);
    return q;
}

HK_PY_INLINE void hk_py_release(hk_py_domain domain, void *p)
{
    hak_free(hk_py_heap(), p);
    if (HK_PY_UNLIKELY(hk_py_foreign)) hk_py_pass_free(domain);
}

#define HK_PY_DOMAIN_HOOKS(name, domain)                                                                     \
    static void *name##_malloc(void *ctx, size_t n)                                                          \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return hk_py_allocate(domain, n, __builtin_return_address(0));                                       \
    }                                                                                                        \
    static void *name##_calloc(void *ctx, size_t count, size_t n)                                            \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return hk_py_allocate_zeroed(domain, count, n, __builtin_return_address(0));                         \
    }                                                                                                        \
    static void *name##_realloc(void *ctx, void *p, size_t n)                                                \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return hk_py_resize(domain, p, n, __builtin_return_address(0));                                      \
    }                                                                                                        \
    static void name##_free(void *ctx, void *p)                                                              \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        hk_py_release(domain, p);                                                                            \
    }

HK_PY_DOMAIN_HOOKS(raw, HK_PY_RAW)
HK_PY_DOMAIN_HOOKS(mem, HK_PY_MEM)
HK_PY_DOMAIN_HOOKS(obj, HK_PY_OBJ)

/* Arenas of pymalloc: always whole units, never labelled otherwise. */
static void *arena_alloc(void *ctx, size_t n)
{
    (void)ctx;
    hak_ctx *heap = hk_py_heap();
    void *p = hak_alloc_cs(heap, n, HK_PY_DOMAIN_LABEL(HK_PY_ARENA), (hak_site)__builtin_return_address(0));
    return p;
}

static void arena_free(void *ctx, void *p, size_t n)
{
    (void)ctx;
    hak_free_sized(hk_py_heap(), p, n);
    if (HK_PY_UNLIKELY(hk_py_foreign)) hk_py_pass_arena(n);
}

const hk_py_hooks HK_PY_HOOKS = {
    .domains = {{NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
                {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
                {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free}},
    .arena = {NULL, arena_alloc, arena_free},
};
