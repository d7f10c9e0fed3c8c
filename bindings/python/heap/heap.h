/* The one context of the process, and how a thread gets at it.
 *
 *     base < heap < native, lines < profile < paths < hook < module
 *
 * heap/ has the context, labels of domains and interpreters, counts of blocks without labels, what is
 * resident of the context, and the allocators that were there before. It alone makes or configures the
 * context, and knows nothing of call sites and lines. */
#ifndef HKP_HEAP_H
#define HKP_HEAP_H

#include "common/process.h"
#include "heap/domains.h"

#include <hakmem/tuning.h>

#include <stdatomic.h>

/* The context of the process, made on first use; NULL = no memory. Inside the hook only; the module, which
 * does not see the core, has the functions below it. [any thread] */
hak_ctx *hkp_ctx(void);
/* Before the context is made: its mode, -1 = lean; its policy, NULL = none; hak_space_options.reserve. */
void hkp_ctx_wish(int mode, const hak_policy *policy, size_t reserve);
/* The same as hkp_ctx, where it is made for all domains, or for RAW and arenas. [one thread at a time] */
hak_ctx *hkp_ctx_for(bool all);

/* The functions of hakmem.h of the same name, for that context. [any thread] */
HKP_API const char *hkp_version(void);
HKP_API int hkp_stats(hak_stats *stats);
HKP_API int hkp_visit(hak_visit_fn *fn, void *user);
HKP_API bool hkp_owns(const void *p);
HKP_API size_t hkp_trim(void);
HKP_API void hkp_peak_reset(void);
HKP_API int hkp_limit(size_t soft, size_t hard, hak_pressure_fn *fn, void *user);
/* The soft limit and its function stay as they are. */
HKP_API int hkp_limit_hard(size_t hard);
/* So much memory is mapped past malloc, which the hard limit counts too. false = that would be over the limit, and
 * nothing has changed; always true where it insists. */
bool hkp_limit_charge(size_t now, bool insists) HKP_HIDDEN;
/* Asked where the heap is refused memory: whether mappings leave more of the limit by now. NULL = nothing is counted. */
extern bool (*hkp_limit_settles)(void) HKP_HIDDEN;

/* The calling thread's heap; hkp_none = none yet, with nothing at hand and no room. Initial-exec: two words
 * at most, which the loader can place also when the module loads this library late. */
extern _Thread_local hak_ctx *hkp_mine HKP_NEAR;
#define hkp_none ((hak_ctx *)(void *)&hkp_no_heap)
extern hak_inline_ctx hkp_no_heap HKP_HIDDEN;
/* What the last free of this thread could not free, since it is not ours; NULL = all was. */
extern _Thread_local void *hkp_foreign HKP_NEAR;

/* Bytes from start to end that are ours, blocks and what describes them: mappings of others may have become
 * one with ours. */
size_t hkp_bytes_within(uintptr_t start, uintptr_t end);

/* Whether p is the start of a block of hakmem's, in use; also before there is a context. */
bool hkp_is_block(const void *p);

/* The process's malloc comes to hakmem: true from its first call on. */
extern HKP_API bool hkp_malloc_in;

/* Finds the heap, or without memory for one, and when the thread has ended, gives the shared context, which
 * does the same slower. NULL = malloc's first call, and there is no memory for a context. */
hak_ctx *hkp_heap_find(void);

/* The hooks of CPython are installed after the context exists. */
HKP_INLINE hak_ctx *hkp_heap(void)
{
    hak_ctx *heap = hkp_mine;
    return HKP_LIKELY(heap != hkp_none) ? heap : hkp_heap_find();
}

/* Memory that is unused goes back as time passes, which the heap is told here: when a block is made that is
 * not at hand, and the last time was a while ago. No heap's lock is held. */
extern _Atomic uint32_t hkp_calls HKP_HIDDEN;
HKP_INLINE void hkp_time_passes(void)
{
    /* Looking at the clock takes as long as making a block. A call that is not counted does no harm. */
    uint32_t calls = atomic_load_explicit(&hkp_calls, memory_order_relaxed) + 1;
    atomic_store_explicit(&hkp_calls, calls, memory_order_relaxed);
    if (HKP_UNLIKELY(calls % 64 == 0)) hkc_process_tick();
}

/* Whether a block that the limit refused is to be asked for once more: mappings leave more of the limit by now. */
bool hkp_limit_leaves_more(void) HKP_HIDDEN;

/* A small block, or old made one, where the limit refused it: of what is set aside. A thread has so many
 * until one is refused all the same, which raises MemoryError: then it has them anew, to handle that. NULL =
 * refused. */
void *hkp_allocate_aside(hak_ctx *heap, void *old, size_t n, hak_label label, hak_site site) HKP_HIDDEN;

/* CPython wants every block 16-aligned, which a multiple of 16 is. n is at most PTRDIFF_MAX: CPython
 * refuses more before it calls an allocator. The last of these bytes, counted from 0, where n is not 0; for 0
 * more than any block has. */
HKP_INLINE size_t hkp_last(size_t n)
{
    return (n - 1) | 15;
}
HKP_INLINE size_t hkp_round(size_t n)
{
    return hkp_last(n + (n == 0)) + 1;
}

/* Whether a block made for `size` bytes, a multiple of 16, is known to be no larger. */
HKP_INLINE bool hkp_fits(hak_ctx *heap, const void *p, size_t size)
{
    return size <= HAK_INLINE_EIGHTS && hak_inline_kind(heap, p) == hak_inline_class_of_eights(size / 8);
}

HKP_INLINE hak_inline_bin *hkp_bin_of_last(hak_ctx *heap, size_t last)
{
    /* hak_inline_class_of_eights((last + 1) / 8), of which the compiler does not see that it has no rest */
    size_t at = (last - 7) * (sizeof(hak_inline_bin) / 8);
    return (void *)((char *)((hak_inline_ctx *)(void *)heap)->bins + at);
}

/* A block of the heap's magazines; NULL = there is none, or not of that size. last: 1 below a multiple of 16.
 * Most are small enough for a class that is known without a table. */
HKP_INLINE void *hkp_at_hand(hak_ctx *heap, size_t last, hak_label label, bool labelled)
{
    if (HKP_UNLIKELY(last >= HAK_INLINE_EIGHTS)) return NULL;
    hak_inline_bin *bin = hkp_bin_of_last(heap, last);
    void **top = bin->top;
    if (HKP_UNLIKELY(top <= bin->lo)) return NULL;
    void *p = top[-1];
    if (!p) __builtin_unreachable();
    bin->top = top - 1;
    if (labelled) bin->labels[(uintptr_t)p >> bin->shift] = (uint8_t)label;
    return p;
}

/* The same while the heap is profiled. */
HKP_INLINE void *hkp_at_hand_counted(hak_ctx *heap, size_t last, hak_label label, bool labelled)
{
    if (HKP_UNLIKELY(last >= HAK_INLINE_EIGHTS)) return NULL;
    hak_inline_bin *bin = hkp_bin_of_last(heap, last);
    void *p = hak_alloc_counted(heap, bin, last + 1, hak_inline_left_at);
    if (labelled && HKP_LIKELY(p)) bin->labels[(uintptr_t)p >> bin->shift] = (uint8_t)label;
    return p;
}

#endif
