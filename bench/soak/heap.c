/* soak-core, soak-shared [LEAKED]: for each line on stdin a batch of the steady mix, and one line of figures
 * on stdout. LEAKED blocks a batch are forgotten. In the shared program four new threads do a batch each on
 * the same slots, so that most blocks are freed by another thread than made them, and the threads end. */
#include "steady.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static bench_rng rng = 23;

#ifdef BENCH_SHARED
enum { THREADS = 4 };

static _Atomic(void *) *slots;

static void *thread(void *start)
{
    bench_rng r = *(bench_rng *)start;
    ba_thread_begin(0);
    for (int i = 0; i < STEADY_BATCH; i++) {
        _Atomic(void *) *slot = &slots[rng_index(rng_next(&r), STEADY_SLOTS)];
        void *old = atomic_exchange(slot, NULL);
        if (!old) {
            size_t n = steady_size(rng_next(&r));
            void *p = ba_alloc(n);
            touch_pages(p, n);
            old = atomic_exchange(slot, p);
        }
        ba_free(old, 0);
    }
    ba_thread_end();
    return NULL;
}

/* splitmix64: the states that follow each other in bench_rng itself would all walk the same way. */
static bench_rng seed(uint64_t number)
{
    uint64_t x = number * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t batch(void)
{
    static uint64_t born;
    pthread_t threads[THREADS];
    bench_rng seeds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = seed(++born);
        if (pthread_create(&threads[i], NULL, thread, &seeds[i])) bench_fail("no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ba_tick();
    return THREADS * STEADY_BATCH;
}

#else
static steady_slot *slots;

static uint64_t batch(void)
{
    steady_batch(slots, &rng);
    return STEADY_BATCH;
}
#endif

static void leak(unsigned long count)
{
    for (; count; count--) {
        size_t n = steady_size(rng_next(&rng));
        touch_pages(ba_alloc(n), n);
    }
}

int main(int argc, char **argv)
{
    char *end = "", line[8];
    errno = 0;
    unsigned long leaked = argc > 1 ? strtoul(argv[1], &end, 10) : 0;
    if (argc > 2 || *end || errno) bench_fail("one number of blocks, or nothing");
    slots = bench_table(STEADY_SLOTS * sizeof *slots);
    ba_init();
    for (uint64_t ops = 0; fgets(line, sizeof line, stdin);) {
        ops += batch();
        leak(leaked);
        hak_stats s = {.size = sizeof s};
        hak_ctx_stats(bench_ctx, &s);
        printf("{\"ops\": %llu, \"live_bytes\": %zu, \"committed_bytes\": %zu, \"metadata_bytes\": %zu, "
               "\"os_calls\": %llu}\n",
               (unsigned long long)ops, s.live_bytes, s.committed_bytes, s.metadata_bytes,
               (unsigned long long)s.os_calls);
        fflush(stdout);
    }
    return 0;
}
