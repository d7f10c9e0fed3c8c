/* Folders: base < heap < native, lines < profile < paths < hook < module
 *
 * paths/ has the functions that CPython calls for each block: one set for each provider of labels,
 * and for each version of CPython where that reads frames. They bring together heap, native and lines,
 * and do not know how they were installed.
 *
 * The hook functions, as a template: included once for each label provider (sources.cmake makes the files of
 * hooks_site.h), which defines before
 *
 *   HKP_HOOKS                       the name of the hkp_hooks to define
 *   HKP_LABEL(domain, where)        hak_label of a block if that is known at once, else negative: also
 *                                     where the program has scopes
 *   HKP_LABEL_FIND(domain, where)   the same, however long it takes
 *
 * and, if it has a use for them,
 *
 *   HKP_WHERE()                     the place of the call of PyMem_* or PyObject_*, which jump to the hook
 *                                     as their last act
 *   HKP_PLACE                       its type
 *   HKP_ROUND(n)                    the bytes to ask for, a multiple of 16
 *   HKP_LAST(n)                     the last of these bytes, counted from 0; SIZE_MAX if there may be none
 *   HKP_MARK(domain)                what to leave in the block if that is known at once, else negative
 *   HKP_MARK_FIND(domain)           however long it takes
 *   HKP_COUNTED                     1: label 0 says that the block has none, and is counted in domains.h
 *   HKP_USABLE(heap, p)             what the program may use of a block
 *   HKP_PLACED(p, n, mark)          after a block was made that is no larger than asked for
 *   HKP_MARKED(p, n, mark)          after one was made or resized for n bytes that may be larger
 *   HKP_PROFILED                    1: hooks for as long as a profile runs, which count to the next sample
 *
 * `ctx` is never looked at: PyMem_SetAllocator copies five words without a lock, so that a racing
 * thread may come with that of another allocator. */
#include "base/await.h"
#include "heap/domains.h"
#include "heap/heap.h"
#include "heap/labels.h"
#include "heap/original.h"
#include "paths/scope.h"

#include "heap/libc.h"

#include <errno.h>
#include <string.h>

#ifndef HKP_WHERE
#define HKP_WHERE() 0
#define HKP_PLACE uintptr_t
#endif
#define HKP_NOWHERE ((HKP_PLACE){0})
#ifndef HKP_ROUND
#define HKP_ROUND(n) hkp_round(n)
#define HKP_LAST(n) hkp_last(n)
#endif
#ifndef HKP_COUNTED
#define HKP_COUNTED 0
#endif
#ifndef HKP_USABLE
#define HKP_USABLE(heap, p) hak_usable_size(heap, p)
#endif
#ifndef HKP_PROFILED
#define HKP_PROFILED 0
#endif
#if HKP_PROFILED
#include "paths/reused.h"
#include "profile/asker.h"
#define HKP_AT_HAND hkp_at_hand_counted
#define HKP_ASKS(domain) ((void)(hkp_asking = (uint8_t)(domain)))
#define HKP_FRESH(domain, p) ((void)((domain) == HKP_OBJ ? hkp_reused_fresh = (p) : NULL))
#else
#define HKP_AT_HAND hkp_at_hand
#define HKP_ASKS(domain) ((void)(domain))
#define HKP_FRESH(domain, p) ((void)(p))
#endif
#ifndef HKP_MARK
#define HKP_MARK(domain) ((void)(domain), 0)
#define HKP_MARK_FIND(domain) ((void)(domain), 0)
#define HKP_PLACED(p, n, mark) ((void)(mark))
#define HKP_MARKED(p, n, mark) ((void)(mark))
#endif

/* The common case of a hook calls nothing, so that it has no registers to save: all else is a jump at its end
 * into one of these. */
#define HKP_APART static __attribute__((noinline))

/* Nobody can be asked for a scope without the GIL. */
HKP_INLINE bool hkp_domain_scoped(hkp_domain domain)
{
    return domain != HKP_RAW && domain != HKP_MALLOC;
}

HKP_APART void *hkp_refused(hkp_domain domain)
{
    if (domain == HKP_MALLOC) errno = ENOMEM;
    return NULL;
}

/* Whether blocks of the domain are counted, which those of OBJ are not. */
HKP_INLINE bool hkp_domain_counted(hkp_domain domain)
{
    return HKP_COUNTED && domain != HKP_OBJ;
}

/* Whether the block is counted. Any pointer whatever. */
HKP_INLINE bool hkp_is_counted(hak_ctx *heap, hkp_domain domain, const void *p)
{
    return hkp_domain_counted(domain) &&
           (HKP_LABEL(domain, HKP_NOWHERE) == 0 || hak_label_of(heap, p) == 0) &&
           hak_usable_size(heap, p) != 0;
}

/* Whether a block of that kind is of this heap, and counted if blocks of the domain are. */
HKP_INLINE bool hkp_quick(hkp_domain domain, uint32_t kind)
{
    return kind < HAK_INLINE_BINS && !(hkp_domain_counted(domain) && HKP_LABEL(domain, HKP_NOWHERE) != 0);
}

HKP_INLINE hak_label hkp_label(hkp_domain domain, HKP_PLACE where)
{
    int label = HKP_LABEL(domain, where);
    return HKP_LIKELY(label >= 0) ? (hak_label)label : HKP_LABEL_FIND(domain, where);
}

/* After a block was made in the heap. */
HKP_INLINE void hkp_made(hak_ctx *heap, void *p, size_t n, int mark)
{
    if (HKP_LIKELY(hkp_fits(heap, p, HKP_ROUND(n)))) HKP_PLACED(p, n, mark);
    else HKP_MARKED(p, n, mark);
}

/* With all that is rare: a scope of the program, no heap yet, a place seen for the first time. */
HKP_APART void *hkp_allocate_slowly(hkp_domain domain, size_t n, HKP_PLACE where, const void *caller)
{
    HKP_ASKS(domain);
    if (domain == HKP_RAW && hkp_awaited) hkp_await_look();
    if (domain == HKP_MALLOC) hkp_malloc_in = true;
    hak_label label = hkp_domain_scoped(domain) ? hkp_scope_label() : 0;
    if (!label) label = hkp_label(domain, where);
    hak_ctx *heap = hkp_heap();
    if (domain == HKP_MALLOC && HKP_UNLIKELY(!heap)) return hkp_refused(domain);
    hkp_time_passes();
    void *p = hak_alloc_cs(heap, HKP_ROUND(n), label, (hak_site)caller);
    if (HKP_UNLIKELY(!p)) p = hkp_allocate_aside(heap, NULL, HKP_ROUND(n), label, (hak_site)caller);
    if (!p) return hkp_refused(domain);
    HKP_FRESH(domain, p);
    if (hkp_domain_counted(domain) && label == 0) hkp_count(heap, domain, p, 1);
    hkp_made(heap, p, n, HKP_MARK_FIND(domain));
    return p;
}

/* There is no block at hand. */
HKP_APART void *hkp_allocate_more(hak_ctx *heap, hkp_domain domain, size_t n, hak_label label, int mark,
                                  const void *caller)
{
    HKP_ASKS(domain);
    hkp_time_passes();
    void *p = hak_alloc_cs(heap, HKP_ROUND(n), label, (hak_site)caller);
    if (HKP_UNLIKELY(!p)) p = hkp_allocate_aside(heap, NULL, HKP_ROUND(n), label, (hak_site)caller);
    if (HKP_UNLIKELY(!p)) return hkp_refused(domain);
    HKP_FRESH(domain, p);
    hkp_made(heap, p, n, mark);
    return p;
}

/* The same where the block is counted. */
HKP_APART void *hkp_allocate_counted(hak_ctx *heap, hkp_domain domain, size_t n, const void *caller)
{
    HKP_ASKS(domain);
    hkp_time_passes();
    void *p = hak_alloc_cs(heap, HKP_ROUND(n), 0, (hak_site)caller);
    if (HKP_UNLIKELY(!p)) p = hkp_allocate_aside(heap, NULL, HKP_ROUND(n), 0, (hak_site)caller);
    if (HKP_UNLIKELY(!p)) return hkp_refused(domain);
    HKP_FRESH(domain, p);
    hkp_count(heap, domain, p, 1);
    return p;
}

HKP_INLINE void *hkp_allocate(hkp_domain domain, size_t n)
{
    int label = HKP_LABEL(domain, HKP_WHERE());
    if (HKP_UNLIKELY(label < 0)) goto slowly;
    int mark = HKP_MARK(domain);
    if (HKP_UNLIKELY(mark < 0)) goto slowly;
    hak_ctx *heap = hkp_mine;
    if (domain == HKP_RAW && HKP_UNLIKELY(hkp_awaited)) goto slowly;
    void *p = HKP_AT_HAND(heap, HKP_LAST(n), (hak_label)label, !HKP_COUNTED);
    if (HKP_UNLIKELY(!p)) {
        if (HKP_UNLIKELY(heap == hkp_none)) goto slowly;
        if (hkp_domain_counted(domain))
            return hkp_allocate_counted(heap, domain, n, __builtin_return_address(0));
        return hkp_allocate_more(heap, domain, n, (hak_label)label, mark, __builtin_return_address(0));
    }
    if (hkp_domain_counted(domain)) hkp_count_kind(domain, (uint32_t)(HKP_LAST(n) / 8), 1);
    HKP_PLACED(p, n, mark);
    return p;
slowly:
    return hkp_allocate_slowly(domain, n, HKP_WHERE(), __builtin_return_address(0));
}

HKP_INLINE int hkp_mark(hkp_domain domain)
{
    int mark = HKP_MARK(domain);
    return HKP_LIKELY(mark >= 0) ? mark : HKP_MARK_FIND(domain);
}

HKP_INLINE void *hkp_allocate_zeroed(hkp_domain domain, size_t count, size_t n)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total) || total > PTRDIFF_MAX) return hkp_refused(domain);
    if (domain == HKP_MALLOC) hkp_malloc_in = true;
    HKP_ASKS(domain);
    hak_label label = hkp_domain_scoped(domain) ? hkp_scope_label() : 0;
    if (HKP_LIKELY(label == 0)) label = hkp_label(domain, HKP_WHERE());
    hak_ctx *heap = hkp_heap();
    if (domain == HKP_MALLOC && HKP_UNLIKELY(!heap)) return hkp_refused(domain);
    hak_site site = (hak_site)__builtin_return_address(0);
    /* The heap's own calloc takes the long way as long as it is profiled. */
    const bool quick = HKP_PROFILED && !(HKP_COUNTED && label != 0);
    void *p = quick ? HKP_AT_HAND(hkp_mine, HKP_LAST(total), label, !HKP_COUNTED) : NULL;
    if (p) memset(p, 0, total);
    else p = hak_calloc_cs(heap, 1, HKP_ROUND(total), label, site);
    if (HKP_UNLIKELY(!p)) {
        p = hkp_allocate_aside(heap, NULL, HKP_ROUND(total), label, site);
        if (!p) return hkp_refused(domain);
        memset(p, 0, total);
    }
    HKP_FRESH(domain, p);
    if (hkp_domain_counted(domain) && label == 0) hkp_count(heap, domain, p, 1);
    hkp_made(heap, p, total, hkp_mark(domain));
    return p;
}

/* The block may be in another thread's heap, or not ours. */
HKP_APART void *hkp_resize_slowly(hkp_domain domain, void *p, size_t n)
{
    hak_ctx *heap = hkp_heap();
    if ((domain == HKP_MALLOC && HKP_UNLIKELY(!heap)) || !hak_owns(heap, p))
        return hkp_original[domain].realloc(hkp_original[domain].ctx, p, n);
    HKP_ASKS(domain);
    bool counted = hkp_is_counted(heap, domain, p);
    if (counted) hkp_count(heap, domain, p, -1);
    void *q = hak_realloc(heap, p, HKP_ROUND(n));
    if (HKP_UNLIKELY(!q)) q = hkp_allocate_aside(heap, p, HKP_ROUND(n), 0, 0);
    if (counted) hkp_count(heap, domain, q ? q : p, 1);
    if (!q) return hkp_refused(domain);
    HKP_FRESH(domain, q);
    HKP_MARKED(q, n, HKP_MARK_FIND(domain));
    return q;
}

/* A block keeps its label. */
HKP_INLINE void *hkp_resize(hkp_domain domain, void *p, size_t n)
{
    if (!p) return hkp_allocate(domain, n);
    hak_ctx *heap = hkp_mine;
    uint32_t kind = hak_inline_kind(heap, p);
    if (HKP_UNLIKELY(!hkp_quick(domain, kind))) return hkp_resize_slowly(domain, p, n);
    HKP_ASKS(domain);
    void *q = hak_realloc(heap, p, HKP_ROUND(n));
    if (HKP_UNLIKELY(!q)) q = hkp_allocate_aside(heap, p, HKP_ROUND(n), 0, 0);
    if (HKP_UNLIKELY(!q)) return hkp_refused(domain);
    HKP_FRESH(domain, q);
    if (hkp_domain_counted(domain)) {
        hkp_count_kind(domain, kind, -1);
        hkp_count(heap, domain, q, 1);
    }
    hkp_made(heap, q, n, hkp_mark(domain));
    return q;
}

HKP_APART void hkp_release_slowly(hkp_domain domain, void *p)
{
    hak_ctx *heap = hkp_heap();
    if (domain == HKP_MALLOC && HKP_UNLIKELY(!heap)) return;
    if (hkp_is_counted(heap, domain, p)) hkp_count(heap, domain, p, -1);
    hak_free(heap, p);
    if (HKP_UNLIKELY(hkp_foreign)) hkp_pass_free(domain);
}

HKP_INLINE void hkp_release(hkp_domain domain, void *p)
{
    hak_ctx *heap = hkp_mine;
    uint32_t kind = hak_inline_kind(heap, p);
    if (HKP_UNLIKELY(!hkp_quick(domain, kind)) || HKP_UNLIKELY(!hak_inline_push(heap, kind, p))) {
        hkp_release_slowly(domain, p);
        return;
    }
    if (hkp_domain_counted(domain)) hkp_count_kind(domain, kind, -1);
}

#define HKP_DOMAIN_HOOKS(name, domain)                                                                       \
    HKP_ALLOCATOR(name, domain, hkp_allocate, hkp_allocate_zeroed, hkp_resize, hkp_release)
HKP_DOMAIN_HOOKS(raw, HKP_RAW)
HKP_DOMAIN_HOOKS(mem, HKP_MEM)
HKP_DOMAIN_HOOKS(obj, HKP_OBJ)

/* Arenas of pymalloc: always whole units, never labelled otherwise. */
static void *arena_alloc(void *ctx, size_t n)
{
    (void)ctx;
    hak_ctx *heap = hkp_heap();
    HKP_ASKS(HKP_ARENA);
    hak_label label = HKP_COUNTED ? 0 : HKP_DOMAIN_LABEL(HKP_ARENA);
    void *p = hak_alloc_cs(heap, n, label, (hak_site)__builtin_return_address(0));
    if (HKP_COUNTED && p) hkp_count(heap, HKP_ARENA, p, 1);
    return p;
}

static void arena_free(void *ctx, void *p, size_t n)
{
    (void)ctx;
    hak_ctx *heap = hkp_heap();
    if (HKP_COUNTED && hak_usable_size(heap, p) != 0) hkp_count(heap, HKP_ARENA, p, -1);
    hak_free_sized(heap, p, n);
    if (HKP_UNLIKELY(hkp_foreign)) hkp_pass_arena(n);
}

static void *process_malloc(size_t n)
{
    return HKP_LIKELY(n <= PTRDIFF_MAX) ? hkp_allocate(HKP_MALLOC, n) : hkp_refused(HKP_MALLOC);
}

static void *process_calloc(size_t n)
{
    return hkp_allocate_zeroed(HKP_MALLOC, 1, n);
}

static void *process_realloc(void *p, size_t n)
{
    return HKP_LIKELY(n <= PTRDIFF_MAX) ? hkp_resize(HKP_MALLOC, p, n) : hkp_refused(HKP_MALLOC);
}

static void *process_aligned_alloc(size_t align, size_t n)
{
    if (n > PTRDIFF_MAX) return hkp_refused(HKP_MALLOC);
    hkp_malloc_in = true;
    HKP_ASKS(HKP_MALLOC);
    hak_label label = hkp_label(HKP_MALLOC, HKP_WHERE());
    hak_ctx *heap = hkp_heap();
    if (!heap) return hkp_refused(HKP_MALLOC);
    const hak_site site = (hak_site)__builtin_return_address(0);
    void *p = hak_aligned_alloc_cs(heap, align, HKP_ROUND(n), label, site);
    if (HKP_UNLIKELY(!p) && hkp_limit_leaves_more())
        p = hak_aligned_alloc_cs(heap, align, HKP_ROUND(n), label, site);
    if (!p) return hkp_refused(HKP_MALLOC);
    if (HKP_COUNTED && label == 0) hkp_count(heap, HKP_MALLOC, p, 1);
    hkp_made(heap, p, n, hkp_mark(HKP_MALLOC));
    return p;
}

static void process_free(void *p)
{
    if (HKP_LIKELY(p)) hkp_release(HKP_MALLOC, p);
}

static size_t process_usable_size(void *p)
{
    hak_ctx *heap = p ? hkp_heap() : NULL;
    if (!heap) return 0;
    return hak_owns(heap, p) ? HKP_USABLE(heap, p) : hkp_libc_usable_size(p);
}

const hkp_hooks HKP_HOOKS = {
    .domains = {{NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
                {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
                {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free}},
    .arena = {NULL, arena_alloc, arena_free},
    .process = {process_malloc, process_calloc, process_realloc, process_aligned_alloc, process_free,
                process_usable_size},
};
