/* The hook functions, as a template: included once for each label provider, which defines before
 *
 *   HK_PY_HOOKS                       the name of the hk_py_hooks to define
 *   HK_PY_LABEL(domain, where)        hak_label of a block if that is known at once, else negative: also
 *                                     where the program has scopes
 *   HK_PY_LABEL_FIND(domain, where)   the same, however long it takes
 *
 * and, if it has a use for them,
 *
 *   HK_PY_WHERE()                     the stack pointer of the code that called PyMem_* or PyObject_*, which
 *                                     jump to the hook as their last act
 *   HK_PY_ROUND(n)                    the bytes to ask for, a multiple of 16
 *   HK_PY_LAST(n)                     the last of these bytes, counted from 0; SIZE_MAX if there may be none
 *   HK_PY_MARK(domain)                what to leave in the block if that is known at once, else negative
 *   HK_PY_MARK_FIND(domain)           however long it takes
 *   HK_PY_COUNTED                     1: label 0 says that the block has none, and is counted in domains.h
 *   HK_PY_PLACED(p, n, mark)          after a block was made that is no larger than asked for
 *   HK_PY_MARKED(p, mark)             after one was made or resized that may be larger
 *
 * `ctx` is never looked at: PyMem_SetAllocator copies five words without a lock, so that a racing thread may
 * come with that of another allocator. */
#include "domains.h"
#include "heap.h"
#include "original.h"
#include "program.h"
#include "scope.h"

#ifndef HK_PY_WHERE
#define HK_PY_WHERE() 0
#endif
#ifndef HK_PY_ROUND
#define HK_PY_ROUND(n) hk_py_round(n)
#define HK_PY_LAST(n) hk_py_last(n)
#endif
#ifndef HK_PY_COUNTED
#define HK_PY_COUNTED 0
#endif
#ifndef HK_PY_MARK
#define HK_PY_MARK(domain) ((void)(domain), 0)
#define HK_PY_MARK_FIND(domain) ((void)(domain), 0)
#define HK_PY_PLACED(p, n, mark) ((void)(mark))
#define HK_PY_MARKED(p, mark) ((void)(mark))
#endif

/* The common case of a hook calls nothing, so that it has no registers to save: all else is a jump at its end
 * into one of these. */
#define HK_PY_APART static __attribute__((noinline))

/* Whether blocks of the domain are counted, which those of OBJ are not. */
HK_PY_INLINE bool hk_py_domain_counted(hk_py_domain domain)
{
    return HK_PY_COUNTED && domain != HK_PY_OBJ;
}

/* Whether the block is counted. Any pointer whatever. */
HK_PY_INLINE bool hk_py_is_counted(hak_ctx *heap, hk_py_domain domain, const void *p)
{
    return hk_py_domain_counted(domain) && (HK_PY_LABEL(domain, 0) == 0 || hak_label_of(heap, p) == 0) &&
           hak_usable_size(heap, p) != 0;
}

/* Whether a block of that kind is of this heap, and counted if blocks of the domain are. */
HK_PY_INLINE bool hk_py_quick(hk_py_domain domain, uint32_t kind)
{
    return kind < HAK_INLINE_BINS && !(hk_py_domain_counted(domain) && HK_PY_LABEL(domain, 0) != 0);
}

HK_PY_INLINE hak_label hk_py_label(hk_py_domain domain, uintptr_t where)
{
    int label = HK_PY_LABEL(domain, where);
    return HK_PY_LIKELY(label >= 0) ? (hak_label)label : HK_PY_LABEL_FIND(domain, where);
}

/* After a block was made in the heap. */
HK_PY_INLINE void hk_py_made(hak_ctx *heap, void *p, size_t n, int mark)
{
    if (HK_PY_LIKELY(hk_py_fits(heap, p, HK_PY_ROUND(n)))) HK_PY_PLACED(p, n, mark);
    else HK_PY_MARKED(p, mark);
}

/* With all that is rare: a scope of the program, no heap yet, a place seen for the first time. */
HK_PY_APART void *hk_py_allocate_slowly(hk_py_domain domain, size_t n, uintptr_t where, const void *caller)
{
    if (domain == HK_PY_RAW && hk_py_awaited) hk_py_await_look();
    /* RAW is called without the GIL too, where nobody can be asked for a scope. */
    hak_label label = domain != HK_PY_RAW ? hk_py_scope_label() : 0;
    if (!label) label = hk_py_label(domain, where);
    hak_ctx *heap = hk_py_heap();
    void *p = hak_alloc_cs(heap, HK_PY_ROUND(n), label, (hak_site)caller);
    if (!p) return NULL;
    if (hk_py_domain_counted(domain) && label == 0) hk_py_count(heap, domain, p, 1);
    hk_py_made(heap, p, n, HK_PY_MARK_FIND(domain));
    return p;
}

/* There is no block at hand. */
HK_PY_APART void *hk_py_allocate_more(hak_ctx *heap, size_t n, hak_label label, int mark, const void *caller)
{
    void *p = hak_alloc_cs(heap, HK_PY_ROUND(n), label, (hak_site)caller);
    if (HK_PY_LIKELY(p)) hk_py_made(heap, p, n, mark);
    return p;
}

/* The same where the block is counted. */
HK_PY_APART void *hk_py_allocate_counted(hak_ctx *heap, hk_py_domain domain, size_t n, const void *caller)
{
    void *p = hak_alloc_cs(heap, HK_PY_ROUND(n), 0, (hak_site)caller);
    if (HK_PY_LIKELY(p)) hk_py_count(heap, domain, p, 1);
    return p;
}

HK_PY_INLINE void *hk_py_allocate(hk_py_domain domain, size_t n)
{
    int label = HK_PY_LABEL(domain, HK_PY_WHERE());
    if (HK_PY_UNLIKELY(label < 0)) goto slowly;
    int mark = HK_PY_MARK(domain);
    if (HK_PY_UNLIKELY(mark < 0)) goto slowly;
    hak_ctx *heap = hk_py_mine;
    if (domain == HK_PY_RAW && HK_PY_UNLIKELY(hk_py_awaited)) goto slowly;
    void *p = hk_py_at_hand(heap, HK_PY_LAST(n), (hak_label)label, !HK_PY_COUNTED);
    if (HK_PY_UNLIKELY(!p)) {
        if (HK_PY_UNLIKELY(heap == hk_py_none)) goto slowly;
        if (hk_py_domain_counted(domain))
            return hk_py_allocate_counted(heap, domain, n, __builtin_return_address(0));
        return hk_py_allocate_more(heap, n, (hak_label)label, mark, __builtin_return_address(0));
    }
    if (hk_py_domain_counted(domain)) hk_py_count_kind(domain, (uint32_t)(HK_PY_LAST(n) / 8), 1);
    HK_PY_PLACED(p, n, mark);
    return p;
slowly:
    return hk_py_allocate_slowly(domain, n, HK_PY_WHERE(), __builtin_return_address(0));
}

HK_PY_INLINE int hk_py_mark(hk_py_domain domain)
{
    int mark = HK_PY_MARK(domain);
    return HK_PY_LIKELY(mark >= 0) ? mark : HK_PY_MARK_FIND(domain);
}

HK_PY_INLINE void *hk_py_allocate_zeroed(hk_py_domain domain, size_t count, size_t n)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total) || total > PTRDIFF_MAX) return NULL;
    hak_label label = domain != HK_PY_RAW ? hk_py_scope_label() : 0;
    if (HK_PY_LIKELY(label == 0)) label = hk_py_label(domain, HK_PY_WHERE());
    hak_ctx *heap = hk_py_heap();
    void *p = hak_calloc_cs(heap, 1, HK_PY_ROUND(total), label, (hak_site)__builtin_return_address(0));
    if (HK_PY_UNLIKELY(!p)) return NULL;
    if (hk_py_domain_counted(domain) && label == 0) hk_py_count(heap, domain, p, 1);
    hk_py_made(heap, p, total, hk_py_mark(domain));
    return p;
}

/* The block may be in another thread's heap, or not ours. */
HK_PY_APART void *hk_py_resize_slowly(hk_py_domain domain, void *p, size_t n)
{
    hak_ctx *heap = hk_py_heap();
    if (!hak_owns(heap, p)) return hk_py_original[domain].realloc(hk_py_original[domain].ctx, p, n);
    bool counted = hk_py_is_counted(heap, domain, p);
    if (counted) hk_py_count(heap, domain, p, -1);
    void *q = hak_realloc(heap, p, HK_PY_ROUND(n));
    if (counted) hk_py_count(heap, domain, q ? q : p, 1);
    if (q) HK_PY_MARKED(q, HK_PY_MARK_FIND(domain));
    return q;
}

/* A block keeps its label. */
HK_PY_INLINE void *hk_py_resize(hk_py_domain domain, void *p, size_t n)
{
    if (!p) return hk_py_allocate(domain, n);
    hak_ctx *heap = hk_py_mine;
    uint32_t kind = hak_inline_kind(heap, p);
    if (HK_PY_UNLIKELY(!hk_py_quick(domain, kind))) return hk_py_resize_slowly(domain, p, n);
    void *q = hak_realloc(heap, p, HK_PY_ROUND(n));
    if (HK_PY_UNLIKELY(!q)) return NULL;
    if (hk_py_domain_counted(domain)) {
        hk_py_count_kind(domain, kind, -1);
        hk_py_count(heap, domain, q, 1);
    }
    hk_py_made(heap, q, n, hk_py_mark(domain));
    return q;
}

HK_PY_APART void hk_py_release_slowly(hk_py_domain domain, void *p)
{
    hak_ctx *heap = hk_py_heap();
    if (hk_py_is_counted(heap, domain, p)) hk_py_count(heap, domain, p, -1);
    hak_free(heap, p);
    if (HK_PY_UNLIKELY(hk_py_foreign)) hk_py_pass_free(domain);
}

HK_PY_INLINE void hk_py_release(hk_py_domain domain, void *p)
{
    hak_ctx *heap = hk_py_mine;
    uint32_t kind = hak_inline_kind(heap, p);
    if (HK_PY_UNLIKELY(!hk_py_quick(domain, kind)) || HK_PY_UNLIKELY(!hak_inline_push(heap, kind, p))) {
        hk_py_release_slowly(domain, p);
        return;
    }
    if (hk_py_domain_counted(domain)) hk_py_count_kind(domain, kind, -1);
}

#define HK_PY_DOMAIN_HOOKS(name, domain)                                                                     \
    static void *name##_malloc(void *ctx, size_t n)                                                          \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return hk_py_allocate(domain, n);                                                                    \
    }                                                                                                        \
    static void *name##_calloc(void *ctx, size_t count, size_t n)                                            \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return hk_py_allocate_zeroed(domain, count, n);                                                      \
    }                                                                                                        \
    static void *name##_realloc(void *ctx, void *p, size_t n)                                                \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return hk_py_resize(domain, p, n);                                                                   \
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
    hak_label label = HK_PY_COUNTED ? 0 : HK_PY_DOMAIN_LABEL(HK_PY_ARENA);
    void *p = hak_alloc_cs(heap, n, label, (hak_site)__builtin_return_address(0));
    if (HK_PY_COUNTED && p) hk_py_count(heap, HK_PY_ARENA, p, 1);
    return p;
}

static void arena_free(void *ctx, void *p, size_t n)
{
    (void)ctx;
    hak_ctx *heap = hk_py_heap();
    if (HK_PY_COUNTED && hak_usable_size(heap, p) != 0) hk_py_count(heap, HK_PY_ARENA, p, -1);
    hak_free_sized(heap, p, n);
    if (HK_PY_UNLIKELY(hk_py_foreign)) hk_py_pass_arena(n);
}

const hk_py_hooks HK_PY_HOOKS = {
    .domains = {{NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
                {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
                {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free}},
    .arena = {NULL, arena_alloc, arena_free},
};
