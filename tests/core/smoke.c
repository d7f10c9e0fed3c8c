/* What the core asks of a C library and of a processor, in C alone: for targets that the C++ tests are not
 * built for. Prints what fails; the exit status is the number of failures, at most 100. */
#define _GNU_SOURCE
#include <hakmem/hakmem.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

static unsigned failures;

#define CHECK(x)                                                                                             \
    do {                                                                                                     \
        if (!(x)) {                                                                                          \
            __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);                                              \
            printf("smoke.c:%d: %s\n", __LINE__, #x);                                                        \
        }                                                                                                    \
    } while (0)

enum { SLOTS = 2000, STEPS = 60000 };

/* The largest sizes are blocks with mappings of their own, which are moved when they grow. */
static size_t some_size(uint32_t r)
{
    static const size_t most[8] = {64, 64, 256, 1000, 1000, 20000, 200000, 3000000};
    return r % (r % 97 ? most[r >> 20 & 3] : most[r >> 20 & 7]) + 1;
}

static void history(hak_ctx *ctx, uint32_t seed)
{
    static _Thread_local unsigned char *block[SLOTS];
    static _Thread_local size_t size[SLOTS];
    unsigned failed = 0, wrong = 0;
    memset(block, 0, sizeof block);
    for (unsigned step = 0; step < STEPS; step++) {
        seed = seed * 1664525 + 1013904223;
        unsigned i = (seed >> 8) % SLOTS;
        size_t n = some_size(seed * 2654435761u);
        unsigned char mark = (unsigned char)(i * 7);
        if (block[i] && (block[i][0] != mark || block[i][size[i] - 1] != mark)) wrong++;
        if (block[i] && step % 3 == 0) {
            hak_free_sized(ctx, block[i], size[i]);
            block[i] = NULL;
            continue;
        }
        unsigned char *p = block[i] ? hak_realloc(ctx, block[i], n) : hak_alloc(ctx, n);
        if (!p) {
            failed++;
            continue;
        }
        if (block[i] && p[0] != mark) wrong++;
        p[0] = p[n - 1] = mark;
        block[i] = p;
        size[i] = n;
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (block[i]) hak_free(ctx, block[i]);
    CHECK(failed == 0);
    CHECK(wrong == 0);
}

static bool sound_and_empty(hak_ctx *ctx)
{
    hak_stats stats;
    stats.size = sizeof stats;
    return hak_ctx_check(ctx, NULL, NULL) && hak_ctx_stats(ctx, &stats) == 0 && stats.live_blocks == 0;
}

static void *thread_main(void *ctx)
{
    history(ctx, (uint32_t)(uintptr_t)&ctx);
    void *kept = hak_alloc(ctx, 100);
    CHECK(kept != NULL);
    return kept;
}

#ifndef _WIN32
static void test_fork(hak_ctx *shared)
{
    void *before = hak_alloc(shared, 50);
    fflush(stdout);
    hak_ctx_fork_prepare(shared);
    pid_t pid = fork();
    if (pid == 0) {
        hak_ctx_fork_child(shared);
        hak_free(shared, before);
        history(shared, 5);
        _exit(failures || !sound_and_empty(shared));
    }
    hak_ctx_fork_parent(shared);
    int status = 1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    hak_free(shared, before);
}
#endif

int main(void)
{
    hak_ctx *local = hak_ctx_new(NULL, NULL);
    CHECK(local != NULL);
    if (!local) return 1;
    for (uint32_t i = 0; i < 4; i++)
        history(local, i);
    CHECK(sound_and_empty(local));
    hak_ctx_destroy(local);

    /* Threads that end without a word, whose heaps others take over. */
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    hak_ctx *shared = hak_ctx_new(NULL, &options);
    CHECK(shared != NULL);
    if (!shared) return 1;
    for (unsigned round = 0; round < 3; round++) {
        enum { THREADS = 3 };
        pthread_t thread[THREADS];
        for (unsigned i = 0; i < THREADS; i++)
            CHECK(pthread_create(&thread[i], NULL, thread_main, shared) == 0);
        for (unsigned i = 0; i < THREADS; i++) {
            void *kept;
            CHECK(pthread_join(thread[i], &kept) == 0);
            hak_free(shared, kept);
        }
        hak_ctx_trim(shared);
    }

#ifndef _WIN32
    test_fork(shared);
#endif
    CHECK(sound_and_empty(shared));
    hak_ctx_destroy(shared);
    return (int)(failures < 100 ? failures : 100);
}
