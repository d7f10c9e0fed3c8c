/* What processors do that C does not say: the register that tells threads apart, single instructions, words
 * that threads share. A processor that is not named here gets plain C. No other file of the core
 * knows on which processor it runs. */
#ifndef HK_MACHINE_H
#define HK_MACHINE_H

#include "base/system.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_INLINE static inline __attribute__((always_inline))

/* ---- Threads ----------------------------------------------------------------------------------------- */

/* Returns a number of the calling thread that is not 0 and that no other living thread of the process has. A
 * fiber has that of the thread that runs it. */
HK_INLINE uintptr_t hk_thread_register(void)
{
    uintptr_t p;
#if defined(_WIN32) && defined(__x86_64__)
    __asm__("movq %%gs:0x30, %0" : "=r"(p));
#elif defined(_WIN32) && defined(__aarch64__)
    __asm__("mov %0, x18" : "=r"(p));
#elif defined(__APPLE__) && defined(__x86_64__)
    __asm__("movq %%gs:0, %0" : "=r"(p));
#elif defined(__APPLE__) && defined(__aarch64__)
    __asm__("mrs %0, tpidrro_el0" : "=r"(p));
    p &= ~(uintptr_t)7; /* the processor's number was there once */
#elif defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(p));
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(p));
#elif defined(__riscv)
    __asm__("mv %0, tp" : "=r"(p));
#else
    p = (uintptr_t)&errno;
#endif
    return p;
}

/* ---- Single instructions ----------------------------------------------------------------------------- */

/* Each is one instruction, beside which compilers need moves or a second test. */
HK_INLINE size_t hk_shift_left(uint32_t w, unsigned n)
{
#if defined(__x86_64__)
    size_t wide;
    __asm__("shll %b2, %k0" : "=r"(wide) : "0"(w), "ci"((uint8_t)n) : "cc");
    return wide;
#else
    return (size_t)w << n;
#endif
}

HK_INLINE uint64_t hk_rotate_right(uint64_t w, uint8_t n)
{
#if defined(__x86_64__)
    __asm__("rorq %b1, %0" : "+r"(w) : "c"(n) : "cc");
    return w;
#else
    return w >> (n & 63) | w << (-n & 63);
#endif
}

HK_INLINE bool hk_test_and_set(uint64_t *w, uint64_t bit)
{
#if defined(__x86_64__)
    bool was;
    __asm__("btsq %2, %0" : "+r"(*w), "=@ccc"(was) : "r"(bit));
    return was;
#else
    bool was = *w >> (bit & 63) & 1;
    *w |= UINT64_C(1) << (bit & 63);
    return was;
#endif
}

/* Shifts the lowest n bits out, 1 to 63, and returns the last of them. */
HK_INLINE bool hk_shift_out(uint64_t *w, size_t n)
{
    bool last;
#if defined(__x86_64__)
    __asm__("shrq %b2, %0" : "+r"(*w), "=@ccc"(last) : "c"(n));
#else
    *w >>= n - 1;
    last = *w & 1;
    *w >>= 1;
#endif
    return last;
}

/* Returns the number of the lowest bit of w, which is not 0. */
HK_INLINE size_t hk_first_bit(uint64_t w)
{
#if defined(__x86_64__)
    size_t i;
    __asm__("rep; bsfq %1, %0" : "=r"(i) : "r"(w) : "cc");
    return i;
#else
    return (size_t)__builtin_ctzll(w);
#endif
}

/* Adds 1 and returns the highest bit. */
HK_INLINE bool hk_count_high(uint16_t *n)
{
#if defined(__x86_64__)
    bool high;
    __asm__("addw $1, %0" : "+m"(*n), "=@ccs"(high));
    return high;
#else
    return ++*n >> 15;
#endif
}

HK_INLINE void hk_clear_bit(uint64_t *w, uint64_t bit)
{
#if defined(__x86_64__)
    __asm__("btrq %1, %0" : "+r"(*w) : "r"(bit) : "cc");
#else
    *w &= ~(UINT64_C(1) << (bit & 63));
#endif
}

/* Makes the compiler keep n in the register of the third argument, so that a fast path need not move it. */
HK_INLINE void hk_stay_third(size_t n)
{
#if defined(__x86_64__) && !defined(_WIN32)
    if (!__builtin_constant_p(n)) __asm__("" : : "d"(n));
#else
    (void)n;
#endif
}

/* ---- Words that threads share ------------------------------------------------------------------------ */

/* Words of which another thread may see an old or a new value, and with a new one what was written before. */
HK_INLINE uint32_t hk_read(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

HK_INLINE void hk_write(uint32_t *word, uint32_t v)
{
    __atomic_store_n(word, v, __ATOMIC_RELEASE);
}

/* Clears bits of a byte that other threads may be setting bits of, and what was written before is seen with
 * it. What they set in that moment may be lost. plain: in a form that ThreadSanitizer sees. */
HK_INLINE void hk_drop_bits(_Atomic uint8_t *byte, uint8_t bits, bool plain)
{
#if defined(__x86_64__)
    if (!plain) {
        /* One instruction, not locked: there is no other way to say so in C. */
        __asm__ volatile("andb %1, %0"
                         : "+m"(*(volatile uint8_t *)byte)
                         : "qi"((int8_t)~bits)
                         : "memory", "cc");
        return;
    }
#endif
    (void)plain;
    uint8_t rest = atomic_load_explicit(byte, memory_order_relaxed) & (uint8_t)~bits;
    atomic_store_explicit(byte, rest, memory_order_release);
}

/* Counters that other threads may read: plain moves, no locked instruction. */
typedef _Atomic size_t hk_counter;

HK_INLINE size_t hk_get(const hk_counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

HK_INLINE void hk_set(hk_counter *c, size_t v)
{
    atomic_store_explicit(c, v, memory_order_relaxed);
}

HK_INLINE void hk_add(hk_counter *c, size_t v)
{
    hk_set(c, hk_get(c) + v);
}

HK_INLINE void hk_sub(hk_counter *c, size_t v)
{
    hk_set(c, hk_get(c) - v);
}

#endif
