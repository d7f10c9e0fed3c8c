/* base/: what all other folders share. Nothing here knows of spaces or contexts. This header has the unit
 * sizes and a few helpers; beside it are bit masks, size classes, quotas, the MPSC stack, the numbers of
 * tuning and policies, structs of any version; and the only files that know which system (os.h) and which
 * processor (machine.h) there is. */
#ifndef HK_BASE_H
#define HK_BASE_H

#include "base/machine.h"
#include "hakmem/hakmem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HK_PAGE ((size_t)4096)
#define HK_UNIT_SHIFT 14
#define HK_UNIT ((size_t)1 << HK_UNIT_SHIFT) /* what a context takes */
#define HK_UNIT_BITS 1024                    /* of a unit's bitmap: blocks of 8 bytes fill half a slab */
#define HK_CHUNK_UNITS 128u                  /* units in a chunk of 2 MiB */
#define HK_CHUNK (HK_UNIT * HK_CHUNK_UNITS)
#define HK_SMALL_MAX ((size_t)32 << 10) /* blocks in slabs */
#define HK_RUN_MAX ((size_t)1 << 20)    /* blocks in runs of units */
#define HK_ALIGN_MAX ((size_t)1 << 30)
#define HK_SIZE_MOST ((size_t)PTRDIFF_MAX - HK_ALIGN_MAX)
#define HK_POINTERS_BELOW ((uintptr_t)1 << 47) /* what LuaJIT can hold */

/* Unused bytes wherever metadata lie beside blocks, or may come to lie there: a block that is overflowed by
 * so many bytes in either direction changes none. */
enum { HK_BESIDE = 64 };

/* A struct that says to be larger than what is known of it by more than this has a broken size. */
#define HK_STRUCT_TAIL_MOST ((size_t)4096)

#define HK_LIKELY(x) __builtin_expect(!!(x), 1)
#define HK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HK_COLD __attribute__((noinline, cold))
#define HK_NOINLINE __attribute__((noinline))
/* Deliberate race: the function reads single words that another thread may be writing; a stale word is
 * acceptable, and is checked where it matters. HK_LOCK_PLAIN: locks do without assembler, which
 * ThreadSanitizer does not see. */
#if defined(__SANITIZE_THREAD__)
#define HK_RACY __attribute__((noinline, no_sanitize_thread))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HK_RACY __attribute__((noinline, no_sanitize("thread")))
#endif
#endif
/* Inline functions of that kind. ThreadSanitizer's are plain ones: gcc warns of what is inline and is not to be. */
#ifdef HK_RACY
#define HK_LOCK_PLAIN 1
#define HK_RACY_INLINE HK_RACY __attribute__((unused)) static
#define HK_RACY_ALWAYS HK_RACY_INLINE
#else
#define HK_RACY
#define HK_RACY_INLINE static inline
#define HK_RACY_ALWAYS HK_INLINE
#endif
/* States what holds whatever the program does: wrong pointers and writes to other blocks break none of these.
 * With HAKMEM_ASSERT, as in the trees with sanitizers and of the fuzz targets, the program stops where one
 * does not hold; else the compiler reads it and computes nothing. */
#ifdef HAKMEM_ASSERT
HK_COLD __attribute__((noreturn)) void hk_assert_failed(const char *what);
#define HK_TEXT(x) #x
#define HK_TEXT_OF(x) HK_TEXT(x)
#define HK_ASSERT(holds)                                                                                     \
    (HK_LIKELY(holds) ? (void)0 : hk_assert_failed(__FILE__ ":" HK_TEXT_OF(__LINE__) ": " #holds "\n"))
#else
#define HK_ASSERT(holds) ((void)(0 && (holds)))
#endif

HK_INLINE size_t hk_align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

HK_INLINE bool hk_is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

HK_INLINE size_t hk_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

HK_INLINE size_t hk_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

HK_INLINE unsigned hk_log2(size_t n)
{
    return 63u - (unsigned)__builtin_clzll((unsigned long long)n);
}

/* How many bits are set. The compiler's own is a call where the processor may be an old one. */
HK_INLINE unsigned hk_bits(uint64_t w)
{
    w -= w >> 1 & UINT64_C(0x5555555555555555);
    w = (w & UINT64_C(0x3333333333333333)) + (w >> 2 & UINT64_C(0x3333333333333333));
    w = (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(w * UINT64_C(0x0101010101010101) >> 56);
}

/* A struct that begins with its size, all else 0. */
void hk_sized_init(void *to, size_t size);
/* Whether a caller's struct of this size can be written to, where the library knows `known` bytes of it. */
HK_INLINE bool hk_sized_fits(size_t size, size_t known)
{
    return size >= sizeof size && size <= known + HK_STRUCT_TAIL_MOST;
}
/* Copies what the library knows of a struct into the caller's, which keeps its size: a smaller one gets fewer
 * members, a larger one zeros at its end. */
void hk_sized_write(void *to, const void *from, size_t known);

#endif
