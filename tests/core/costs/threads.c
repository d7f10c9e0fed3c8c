/* Shared contexts, by the number of threads. */
#include "costs.h"

#include <pthread.h>

enum { THREADS = 32 };
static pthread_barrier_t ready, over;

static void *has_a_heap(void *unused)
{
    (void)unused;
    must(hak_alloc(ctx, 64) != NULL);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&over);
    return NULL;
}

static void nothing(size_t i)
{
    (void)i;
}

static void heap_of_thread(size_t i)
{
    (void)i;
    sink += hak_ctx_thread(ctx) != NULL;
}

static void thread_done(size_t i)
{
    (void)i;
    hak_ctx_thread_done(ctx);
}

static void fork_locks(size_t i)
{
    (void)i;
    hak_ctx_fork_prepare(ctx);
    hak_ctx_fork_parent(ctx);
}

static void fork_in_child(size_t i)
{
    (void)i;
    hak_ctx_fork_prepare(ctx);
    hak_ctx_fork_child(ctx);
}

/* With heaps for n threads besides this one's, which holds `own` blocks. */
void measure_threads(size_t n, size_t own)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    begin(&options);
    pthread_t thread[THREADS];
    pthread_barrier_init(&ready, NULL, (unsigned)n + 1);
    pthread_barrier_init(&over, NULL, (unsigned)n + 1);
    for (size_t i = 0; i < n; i++)
        must(pthread_create(&thread[i], NULL, has_a_heap, NULL) == 0);
    pthread_barrier_wait(&ready);
    measure("start of threads", n, 1, nothing); /* which callgrind adds to the next dump */
    if (own == 0) {
        measure("first thread heap", n, 1, heap_of_thread);
        measure("live_bytes shared", n, 100, live_bytes);
        measure("stats shared", n, 100, stats);
        measure("peak_reset shared", n, 10, peak_reset);
        measure("tick shared", n, 10, tick);
        measure("fork", n, 10, fork_locks);
        measure("thread heap", n, 100, heap_of_thread);
        measure("limit shared", n, 100, limit);
    } else {
        for (size_t i = 0; i < own; i++)
            must(hak_alloc(ctx, 64) != NULL);
        measure("thread_done", own, 1, thread_done);
    }
    pthread_barrier_wait(&over);
    for (size_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    if (own == 0) measure("fork child", n, 1, fork_in_child);
    end();
}
