/* The malloc family as glibc has it, over hks_heap(), whose blocks are all 16-aligned. Pointers that are not
 * hakmem's (of ld.so, from before) are ignored. */
#include "heap.h"

#include <hakmem/inline.h>

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

enum { PAGE = 4096 };

static __attribute__((cold, noinline)) void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static inline void *checked(void *p)
{
    return HKS_LIKELY(p) ? p : no_memory();
}

static __attribute__((noinline)) void *malloc_slow(size_t n)
{
    hak_ctx *heap = hks_heap();
    return !heap ? no_memory() : checked(hak_alloc(heap, n));
}

void *malloc(size_t n)
{
    hak_ctx *heap = hks_thread_heap;
    if (HKS_UNLIKELY(!heap)) return malloc_slow(n);
    return checked(hak_alloc_inline(heap, n, 0));
}

static __attribute__((noinline)) void free_slow(void *p)
{
    hak_ctx *heap = hks_heap();
    if (heap) hak_free(heap, p);
}

void free(void *p)
{
    hak_ctx *heap = hks_thread_heap;
    if (HKS_LIKELY(heap)) hak_free_inline(heap, p);
    else free_slow(p);
}

/* Of libcs before glibc 2.26; programs built then may still look for it. */
void cfree(void *p);
void cfree(void *p)
{
    free(p);
}

/* Of C23. The heap knows size and alignment. */
void free_sized(void *p, size_t n);
void free_sized(void *p, size_t n)
{
    (void)n;
    free(p);
}

void free_aligned_sized(void *p, size_t align, size_t n);
void free_aligned_sized(void *p, size_t align, size_t n)
{
    (void)align;
    (void)n;
    free(p);
}

void *calloc(size_t count, size_t n)
{
    size_t total;
    hak_ctx *heap = hks_heap();
    if (__builtin_mul_overflow(count, n, &total) || !heap) return no_memory();
    return checked(hak_calloc(heap, 1, total));
}

void *realloc(void *p, size_t n)
{
    if (!p) return malloc(n);
    if (n == 0) {
        free(p);
        return NULL;
    }
    hak_ctx *heap = hks_heap();
    return HKS_UNLIKELY(!heap) ? no_memory() : checked(hak_realloc(heap, p, n));
}

void *reallocarray(void *p, size_t count, size_t n)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total)) return no_memory();
    return realloc(p, total);
}

/* align: a power of two. errno is left alone. */
static void *aligned(size_t align, size_t n)
{
    int saved = errno;
    hak_ctx *heap = hks_heap();
    void *p = !heap ? NULL : hak_aligned_alloc(heap, align, n);
    errno = saved;
    return p;
}

static inline int is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

int posix_memalign(void **out, size_t align, size_t n)
{
    if (!is_power_of_two(align) || align % sizeof(void *) != 0) return EINVAL;
    void *p = aligned(align, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

void *aligned_alloc(size_t align, size_t n)
{
    if (!is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    return checked(aligned(align, n));
}

/* glibc takes the next power of two. */
void *memalign(size_t align, size_t n)
{
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = 1;
    while (power < align)
        power *= 2;
    return checked(aligned(power, n));
}

void *valloc(size_t n)
{
    return memalign(PAGE, n);
}

void *pvalloc(size_t n)
{
    if (n > SIZE_MAX - PAGE) return no_memory();
    return memalign(PAGE, n == 0 ? PAGE : (n + PAGE - 1) & ~(size_t)(PAGE - 1));
}

size_t malloc_usable_size(void *p)
{
    hak_ctx *heap = hks_heap();
    return !heap ? 0 : hak_block_size(heap, p);
}

int malloc_trim(size_t pad)
{
    (void)pad;
    hak_ctx *heap = hks_heap_shared();
    return heap && hak_ctx_trim(heap) > 0;
}
