#include "base/os_lock.h"

#include "base/os.h"

#include <errno.h>

bool hk_lock_soon(hk_lock *lock)
{
    enum { SPINS = 64, YIELDS = 64 };
    int error = errno;
    bool taken = hk_lock_try(lock);
    for (unsigned n = 0; !taken && n < SPINS + YIELDS; n++) {
        if (n >= SPINS) hk_os_yield();
        taken = hk_lock_try(lock);
    }
    errno = error;
    return taken;
}

/* Takes the lock for a thread that has waited for long, or marks it as wanted. */
static bool take_at_last(hk_lock *lock)
{
    uint8_t held = HK_LOCK_HELD;
    if (hk_lock_from(lock, HK_LOCK_WANTED) || hk_lock_try(lock)) return true;
    atomic_compare_exchange_strong_explicit(lock, &held, HK_LOCK_HELD | HK_LOCK_WANTED, memory_order_relaxed,
                                            memory_order_relaxed);
    return false;
}

/* A thread that yields leaves the processor to threads of its own priority only: the holder of the lock may
 * have a lower priority and the same processor. Therefore it sleeps in the end. There is no futex: whoever
 * drops a lock would need a second atomic instruction each time to learn whether somebody waits, and a child
 * after fork has no waiters to wake. After about a millisecond it has waited for long. From then on its
 * sleeps are short again, since nobody else has the lock while one that is wanted waits for it. A lock that
 * was wanted by a thread which a fork left behind is taken by the first one that waits as long. */
void hk_lock_wait(hk_lock *lock)
{
    enum { SHORT_NS = 32 << 10, WANTING_NS = 128 << 10, LONG_NS = 512 << 10 };
    int error = errno;
    unsigned pause = SHORT_NS;
    if (hk_lock_soon(lock)) return;
    for (bool wanting = false; wanting ? !take_at_last(lock) : !hk_lock_try(lock);) {
        hk_os_sleep(pause);
        wanting = wanting || pause == LONG_NS;
        pause = wanting ? WANTING_NS : 2 * pause;
    }
    errno = error;
}
