#include "heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

_Thread_local hak_ctx *hk_thread_heap __attribute__((tls_model("initial-exec")));
char hk_heap_name[HK_NAME_SIZE];

/* HK_ENDING: the key's destructor ran once; HK_GONE: this thread has no heap any more. */
typedef enum { HK_NEW, HK_ENDING, HK_GONE } hk_stage;
static _Thread_local hk_stage stage __attribute__((tls_model("initial-exec")));

static _Atomic(hak_ctx *) shared;
static pthread_key_t key;
static atomic_bool key_made;
static atomic_size_t threads, threads_gone;

size_t hk_heap_threads(void)
{
    return atomic_load(&threads);
}

size_t hk_heap_threads_now(void)
{
    return atomic_load(&threads) - atomic_load(&threads_gone);
}

/* free() keeps errno; of all that it calls, only these may change it. */
static hak_os os;

static void decommit(void *user, void *p, size_t n)
{
    int saved = errno;
    os.decommit(user, p, n);
    errno = saved;
}

static void release(void *user, void *p, size_t n)
{
    int saved = errno;
    os.release(user, p, n);
    errno = saved;
}

/* Nobody else gives the heap time: without it, what threads left at hand stays until others come. */
static void give_time(void)
{
    static _Atomic(uint64_t) last;
    const uint64_t every_ns = 250000000, now = os.clock(os.user);
    uint64_t seen = atomic_load(&last);
    if (now - seen >= every_ns && atomic_compare_exchange_strong(&last, &seen, now))
        hak_ctx_tick(atomic_load(&shared), now);
}

/* Runs when other keys' destructors may still free: it comes back for the next round, and ends the heap
 * there. What is freed later goes through the shared context. */
static void thread_end(void *heap)
{
    if (stage == HK_NEW) {
        stage = HK_ENDING;
        pthread_setspecific(key, heap);
        return;
    }
    stage = HK_GONE;
    hk_thread_heap = NULL;
    hak_ctx_thread_done(atomic_load(&shared));
    atomic_fetch_add(&threads_gone, 1);
    give_time();
}

static void fork_prepare(void)
{
    hak_ctx_fork_prepare(atomic_load(&shared));
}

static void fork_parent(void)
{
    hak_ctx_fork_parent(atomic_load(&shared));
}

/* Of all threads, the one that forked is left. */
static void fork_child(void)
{
    hak_ctx_fork_child(atomic_load(&shared));
    atomic_store(&threads_gone, atomic_load(&threads) - (hk_thread_heap != NULL));
}

static hak_ctx *make(void)
{
    hak_os_default(&os);
    hak_os mine = os;
    mine.decommit = decommit;
    mine.release = release;
    hak_space_options space_options = HAK_SPACE_OPTIONS_INIT;
    space_options.os = &mine;
    hak_space *space = hak_space_new(&space_options);
    if (space == NULL) return NULL;
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    options.counted = true; /* a queue frees in the order of addresses, too, and is no sweep */
    options.name = hk_heap_name;
    hak_ctx *made = hak_ctx_new(space, &options);
    hak_ctx *first = NULL;
    if (made == NULL || !atomic_compare_exchange_strong(&shared, &first, made)) {
        hak_space_delete(space);
        return first;
    }
    /* The first handlers of the process: prepare runs after all others, which may allocate. */
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    if (pthread_key_create(&key, thread_end) == 0) atomic_store(&key_made, true);
    return made;
}

hak_ctx *hk_heap_shared(void)
{
    hak_ctx *ctx = atomic_load_explicit(&shared, memory_order_acquire);
    return HK_LIKELY(ctx != NULL) ? ctx : make();
}

hak_ctx *hk_heap_of_thread(void)
{
    hak_ctx *ctx = hk_heap_shared();
    if (ctx == NULL || stage == HK_GONE) return ctx;
    hak_ctx *heap = hak_ctx_thread(ctx);
    if (heap == NULL) return ctx;
    hk_thread_heap = heap; /* before the key, whose memory may be asked for here */
    atomic_fetch_add(&threads, 1);
    if (atomic_load(&key_made)) pthread_setspecific(key, heap);
    return heap;
}
