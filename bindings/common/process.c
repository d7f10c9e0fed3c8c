#include "common/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

static hak_ctx *context;
static void (*on_thread_end)(void), (*on_child)(void);
static pthread_key_t key;
static atomic_bool key_made;

/* ---- Time ---------------------------------------------------------------------------------------- */

void hkc_process_tick(void)
{
    static _Atomic(uint64_t) last;
    const uint64_t every_ns = 250000000;
    struct timespec t;
    /* First, so that what another thread notes meanwhile is not taken for a clock that went back. */
    uint64_t seen = atomic_load(&last);
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    if ((now < seen || now - seen >= every_ns) && atomic_compare_exchange_strong(&last, &seen, now))
        hak_ctx_tick(context, now);
}

/* ---- Ends of threads ----------------------------------------------------------------------------- */

/* What the key holds: the first round of destructors is to come, or the second. */
static char first_round, second_round;

/* Runs when other keys' destructors may still free: it comes back for the next round, and ends the heap
 * there. */
static void thread_end(void *round)
{
    if (round == &first_round) {
        pthread_setspecific(key, &second_round);
        return;
    }
    on_thread_end();
    hak_ctx_thread_done(context);
    hkc_process_tick();
}

void hkc_process_thread(void)
{
    if (atomic_load(&key_made)) pthread_setspecific(key, &first_round);
}

/* ---- Fork ---------------------------------------------------------------------------------------- */

#ifdef __GLIBC__
#include <sys/single_threaded.h>

/* glibc's lock of all its streams, which fork takes after the prepare handlers. A thread that flushes all
 * streams holds it and may allocate: it comes before the locks of the heap. */
void _IO_list_lock(void);
void _IO_list_unlock(void);
void _IO_list_resetlock(void);

static bool is_alone(void)
{
    return __libc_single_threaded;
}
#else
/* musl's lock of streams is musl's own. A thread that holds it allocates only to flush a stream of
 * open_memstream. */
static void _IO_list_lock(void)
{
}
static void _IO_list_unlock(void)
{
}
static void _IO_list_resetlock(void)
{
}

/* The folder has a link for each thread beside its own two. */
static bool is_alone(void)
{
    struct stat threads;
    const int error = errno;
    const bool alone = stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 3;
    errno = error;
    return alone;
}
#endif

static bool fork_locked;

/* A single thread may fork in a signal handler, in the middle of an allocation: there is nobody to lock out,
 * and a lock that it holds itself would never be free. */
static void fork_prepare(void)
{
    fork_locked = !is_alone();
    if (!fork_locked) return;
    _IO_list_lock();
    hak_ctx_fork_prepare(context);
}

static void fork_parent(void)
{
    if (!fork_locked) return;
    hak_ctx_fork_parent(context);
    _IO_list_unlock();
}

static void fork_child(void)
{
    if (fork_locked) {
        hak_ctx_fork_child(context);
        _IO_list_resetlock();
    }
    on_child();
}

void hkc_process_begin(hak_ctx *shared, void (*thread_end_fn)(void), void (*in_child)(void))
{
    context = shared;
    on_thread_end = thread_end_fn;
    on_child = in_child;
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    if (pthread_key_create(&key, thread_end) == 0) atomic_store(&key_made, true);
}
