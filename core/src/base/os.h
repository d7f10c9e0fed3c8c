/* Pages of the operating system. Only this layer calls it; everything above goes through a hak_os. */
#ifndef HK_OS_H
#define HK_OS_H

#include "base/base.h"

/* Copies a host's table of any version, or that of the operating system if `from` is NULL. Returns what is
 * wrong with it; NULL = nothing. */
const char *hk_os_read(hak_os *to, const hak_os *from);
/* The table refused to reserve n bytes. Whether that is because the kernel counts them as if they were used,
 * though it grants the addresses: the table then reserves these, and commits pages as they are used. */
bool hk_os_counts(hak_os *os, size_t n, uintptr_t below);
/* What a space reserves first. Where the kernel counts pages, the map of an extent counts as a whole: 1 MiB
 * then. */
size_t hk_os_reserve(const hak_os *os);
/* Pages for an object of n bytes that lies apart from contexts: committed, zeros, and HK_BESIDE around it,
 * for blocks may be in the pages beside these. NULL = no memory. To be given back with the same n. */
void *hk_os_take(const hak_os *os, size_t n);
void hk_os_give(const hak_os *os, void *p, size_t n);

/* Spins briefly, then yields, then sleeps for up to half a millisecond at a time. Held for a few dozen
 * instructions, or over one call of the OS. */
typedef atomic_flag hk_lock;
/* Of a lock that a thread holds over a fork for several contexts. */
typedef struct hk_fork_hold {
    _Atomic uintptr_t by; /* register of that thread; 0 = none */
    unsigned times;
} hk_fork_hold;
void hk_lock_wait(hk_lock *lock);
/* Without the sleep: false = still held after that. For a lock whose holder may be suspended. */
bool hk_lock_soon(hk_lock *lock);

HK_INLINE void hk_lock_take(hk_lock *lock)
{
    if (HK_UNLIKELY(atomic_flag_test_and_set_explicit(lock, memory_order_acquire))) hk_lock_wait(lock);
}

HK_INLINE bool hk_lock_try(hk_lock *lock)
{
    return !atomic_flag_test_and_set_explicit(lock, memory_order_acquire);
}

HK_INLINE void hk_lock_drop(hk_lock *lock)
{
    atomic_flag_clear_explicit(lock, memory_order_release);
}

/* abort(), for HAK_DEBUG_ABORT. */
_Noreturn void hk_os_abort(void);

#endif
