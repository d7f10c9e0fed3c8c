/* Locks, which threads hold for a few dozen instructions or over one call of the OS. A thread that waits
 * spins briefly, then yields, then sleeps for up to half a millisecond at a time. A lock of zeros is free.
 *
 * A thread that has waited for long comes first: it marks the lock as wanted, and when the holder drops the
 * lock, a thread that has waited for long gets it. Otherwise a thread that holds the lock nearly all the time
 * could take it again and again while another thread sleeps, above all on one processor. Taking a free lock
 * is one atomic instruction; dropping it is a plain store that keeps the mark. A mark set at the moment of
 * that store may be lost; the waiting thread then sets it again a little later. */
#ifndef HK_OS_LOCK_H
#define HK_OS_LOCK_H

#include "base/base.h"

enum {
    HK_LOCK_FREE = 0,
    HK_LOCK_HELD = 1,
    HK_LOCK_WANTED = 2 /* with HK_LOCK_HELD, or alone: free for a thread that has waited for long */
};
typedef _Atomic uint8_t hk_lock;
/* Of a lock that a thread holds over a fork for several contexts. */
typedef struct hk_fork_hold {
    _Atomic uintptr_t by; /* register of that thread; 0 = none */
    unsigned times;
} hk_fork_hold;
void hk_lock_wait(hk_lock *lock);
/* Without the sleep: false = still held after that. For a lock whose holder may be suspended. */
bool hk_lock_soon(hk_lock *lock);

/* Takes the lock if it is in state `from`. */
HK_INLINE bool hk_lock_from(hk_lock *lock, uint8_t from)
{
    return atomic_compare_exchange_strong_explicit(lock, &from, HK_LOCK_HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

HK_INLINE bool hk_lock_try(hk_lock *lock)
{
    return hk_lock_from(lock, HK_LOCK_FREE);
}

HK_INLINE void hk_lock_take(hk_lock *lock)
{
    if (HK_UNLIKELY(!hk_lock_try(lock))) hk_lock_wait(lock);
}

/* Whether somebody holds the lock, for assertions. */
HK_INLINE bool hk_lock_held(const hk_lock *lock)
{
    return atomic_load_explicit(lock, memory_order_relaxed) & HK_LOCK_HELD;
}

HK_INLINE void hk_lock_drop(hk_lock *lock)
{
    HK_ASSERT(hk_lock_held(lock));
#if defined(__x86_64__) && !defined(HK_LOCK_PLAIN)
    /* One instruction, not locked: there is no other way to say so in C. */
    __asm__ volatile("andb %1, %0"
                     : "+m"(*(volatile uint8_t *)lock)
                     : "i"((int8_t)~HK_LOCK_HELD)
                     : "memory", "cc");
#else
    uint8_t wanted = atomic_load_explicit(lock, memory_order_relaxed) & HK_LOCK_WANTED;
    atomic_store_explicit(lock, wanted, memory_order_release);
#endif
}

#endif
