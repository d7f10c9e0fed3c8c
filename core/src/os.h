/* Pages of the operating system. Only this layer calls it; everything above goes through a hak_os. */
#ifndef HK_OS_H
#define HK_OS_H

#include "base.h"

/* What is wrong with a table; NULL = nothing. */
const char *hk_os_error(const hak_os *os);

/* Spins briefly, then yields. Held for a few dozen instructions, or over one call of the OS. */
typedef atomic_flag hk_lock;
void hk_lock_wait(hk_lock *lock);

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
