/* hotpath WORK N...: N rounds of one kind of work, for instruction counts by callgrind. The functions to be
 * counted are called from here and from nowhere else, so that a collector may switch on by their names.
 * Several kinds run one after another, each in a process of its own, so that callgrind starts once for all. */
#define _DEFAULT_SOURCE
#include <hakmem/hakmem.h>
#include <hakmem/learn.h>
#include <hakmem/profile.h>
#include <hakmem/tuning.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 64, RUN = 20 * 1024, BATCH = 8, SLOTS = 400, FILL = 4000, LIMIT = 400 << 10 };

static hak_ctx *ctx;
static hak_label label;

static void pairs(size_t n, size_t rounds)
{
    void *p[BATCH];
    for (; rounds; rounds--) {
        for (int i = 0; i < BATCH; i++)
            p[i] = hak_alloc(ctx, n);
        for (int i = BATCH; i--;)
            hak_free(ctx, p[i]);
    }
}

/* Threads that live at once and run one after another. */
static struct member {
    pthread_t thread;
    sem_t goes, ready;
    size_t n, rounds;
} crowd[16];

static void *run_member(void *user)
{
    struct member *m = user;
    if (!hak_calloc(ctx, 1, m->n)) abort();
    for (int turn = 0; turn < 2; turn++) {
        sem_post(&m->ready);
        sem_wait(&m->goes);
        if (turn == 0) pairs(m->n, m->rounds);
    }
    return NULL;
}

/* What lies between their stacks differs, as in programs that map memory while they start threads. */
static void pairs_in_crowd(size_t n, size_t rounds)
{
    enum { COUNT = sizeof crowd / sizeof *crowd };
    for (size_t i = 0; i < COUNT; i++) {
        struct member *m = &crowd[i];
        m->n = n;
        m->rounds = rounds / COUNT;
        sem_init(&m->goes, 0, 0);
        sem_init(&m->ready, 0, 0);
        if (mmap(NULL, (i * i % 7 + 1) << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ||
            pthread_create(&m->thread, NULL, run_member, m) != 0)
            abort();
        sem_wait(&m->ready);
    }
    for (size_t i = 0; i < COUNT; i++) {
        sem_post(&crowd[i].goes);
        sem_wait(&crowd[i].ready);
    }
    for (size_t i = 0; i < COUNT; i++) {
        sem_post(&crowd[i].goes);
        pthread_join(crowd[i].thread, NULL);
    }
}

static void labelled(size_t n, size_t rounds)
{
    void *p[BATCH];
    for (; rounds; rounds--) {
        for (int i = 0; i < BATCH; i++)
            p[i] = hak_alloc_cs(ctx, n, label, HAK_CALLSITE());
        for (int i = BATCH; i--;)
            hak_free_sized(ctx, p[i], n);
    }
}

static void resize(size_t n, size_t rounds)
{
    void *p = hak_alloc(ctx, n);
    for (; rounds; rounds--)
        for (size_t i = 0; i < BATCH; i++)
            p = hak_realloc(ctx, p, n - i % 2);
    hak_free(ctx, p);
}

static void resize_sized(size_t n, size_t rounds)
{
    void *p = hak_alloc(ctx, n);
    for (; rounds; rounds--)
        for (size_t i = 0; i < BATCH; i++)
            p = hak_realloc_sized(ctx, p, n - !(i % 2), n - i % 2);
    hak_free(ctx, p);
}

static void size(size_t n, size_t rounds)
{
    void *p = hak_alloc(ctx, n);
    for (; rounds; rounds--)
        for (int i = 0; i < BATCH; i++)
            if (hak_block_size(ctx, p) < n) abort();
    hak_free(ctx, p);
}

/* Freed in the order of addresses, as a collector does. */
static void sweep(size_t n, size_t rounds)
{
    static void *p[FILL];
    for (size_t left = rounds * BATCH, count; left; left -= count) {
        count = left < FILL ? left : FILL;
        for (size_t i = 0; i < count; i++)
            p[i] = hak_alloc(ctx, n);
        for (size_t i = 0; i < count; i++)
            hak_free_sized(ctx, p[i], n);
    }
}

static void mix(size_t n, size_t rounds)
{
    (void)n;
    static void *slots[SLOTS];
    uint64_t r = 1;
    for (size_t i = 0; i < rounds * BATCH * 2; i++) {
        r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        void **s = &slots[((r >> 32) * SLOTS) >> 32];
        if (*s) {
            hak_free(ctx, *s);
            *s = NULL;
        } else {
            *s = hak_alloc(ctx, 16 + ((((r >> 16) & 0xffff) * 1009) >> 16));
        }
    }
}

/* The first pairs of a context with n blocks, and then of the next one: what a request or a small state does.
 * Each context lives for so many rounds, under this limit. */
static void live(size_t n, size_t rounds, size_t life, size_t limit, bool shared)
{
    static void *p[SLOTS];
    hak_space *space = hak_space_new(NULL);
    hak_ctx *whole = NULL, *c = NULL;
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = shared;
    uint64_t r = 1;
    for (size_t round = 0; round < rounds; round++) {
        if (round % life == 0) {
            hak_ctx_destroy(whole);
            whole = hak_ctx_new(space, shared ? &options : NULL);
            hak_limit(whole, 0, limit, NULL, NULL);
            c = hak_ctx_thread(whole);
            for (size_t i = 0; i < n; i++)
                if (!(p[i] = hak_calloc(c, 1, 16 + i * 500 / n))) abort();
        }
        for (int i = 0; i < BATCH; i++) {
            r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            void **s = &p[((r >> 32) * n) >> 32];
            hak_free(c, *s);
            *s = hak_alloc(c, 16 + (((r >> 16) & 0xffff) * 500 >> 16));
        }
    }
    hak_ctx_destroy(whole);
    hak_space_delete(space);
}

static void young(size_t n, size_t rounds)
{
    live(n, rounds, 3000 / BATCH, 0, false);
}

/* Until magazines are worth their memory. */
static void first(size_t n, size_t rounds)
{
    live(n, rounds, 48 / BATCH, 0, false);
}

/* The same in the heap of a thread. */
static void young_shared(size_t n, size_t rounds)
{
    live(n, rounds, 3000 / BATCH, 0, true);
}

static void young_limited(size_t n, size_t rounds)
{
    live(n, rounds, 3000 / BATCH, 200 << 10, false);
}

/* Contexts of n blocks, none of which is freed. */
static void grow(size_t n, size_t rounds)
{
    hak_space *space = hak_space_new(NULL);
    hak_ctx *c = NULL;
    uint64_t r = 1;
    for (size_t i = 0; i < rounds * BATCH; i++) {
        if (i % n == 0) {
            hak_ctx_destroy(c);
            c = hak_ctx_new(space, NULL);
        }
        r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (!hak_alloc(c, 16 + (((r >> 16) & 0xffff) * 500 >> 16))) abort();
    }
    hak_ctx_destroy(c);
    hak_space_delete(space);
}

static const struct {
    const char *name;
    void (*run)(size_t n, size_t rounds);
    size_t n;
    enum { SLABS, SHARED, PACKED, PROFILED, SAMPLED, GUARDED, FROZEN } heap;
} works[] = {
    {"pairs-small", pairs, SMALL, SLABS},
    {"pairs-run", pairs, RUN, SLABS},
    {"labelled-small", labelled, SMALL, SLABS},
    {"labelled-run", labelled, RUN, SLABS},
    {"resize-small", resize, SMALL, SLABS},
    {"resize-run", resize, RUN, SLABS},
    {"resize-sized-run", resize_sized, RUN, SLABS},
    {"shared-small", pairs, SMALL, SHARED},
    {"shared-run", pairs, RUN, SHARED},
    {"crowded-small", pairs_in_crowd, SMALL, SHARED},
    {"profiled-small", pairs, SMALL, PROFILED},
    {"guarded-small", pairs, SMALL, GUARDED},
    {"size-small", size, SMALL, SLABS},
    {"sweep", sweep, SMALL, SLABS},
    {"sweep-sampled", sweep, SMALL, SAMPLED},
    {"mix", mix, 0, SLABS},
    {"mix-frozen", mix, 0, FROZEN},
    {"mix-packed", mix, 0, PACKED},
    {"resize-packed", resize, RUN, PACKED},
    {"resize-packed-small", resize, SMALL, PACKED},
    {"young-20", young, 20, SLABS},
    {"young-200", young, 200, SLABS},
    {"young-shared-20", young_shared, 20, SLABS},
    {"young-shared-200", young_shared, 200, SLABS},
    {"first-20", first, 20, SLABS},
    {"limited-20", young_limited, 20, SLABS},
    {"grow-1000", grow, 1000, SLABS},
    {"grow-20", grow, 20, SLABS},
};

/* A learner that has nothing to do: it has frozen. */
static bool freeze(hak_learner *learner)
{
    hak_learner_info info = {.size = sizeof info};
    if (!learner || hak_learner_add(learner, ctx)) return false;
    for (uint64_t second = 1; second < 100; second++) {
        hak_ctx_tick(ctx, second * 1000000000);
        if (hak_learner_stats(learner, &info) == 0 && info.phase == HAK_PHASE_FROZEN) return true;
    }
    return false;
}

static int work(size_t w, size_t rounds)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = works[w].heap == SHARED;
    options.debug = works[w].heap == GUARDED ? HAK_DEBUG_GUARD : 0;
    hak_tuning tuning = HAK_TUNING_INIT;
    /* So that none is drawn: what that costs is system calls. */
    if (works[w].heap == GUARDED) tuning.guard_every = (size_t)1 << 30;
    if (works[w].heap != SHARED && works[w].heap != PACKED) tuning.packed_bytes = HAK_NONE;
    options.tuning = &tuning;
    ctx = hak_ctx_new(NULL, &options);
    label = ctx ? hak_label_define(ctx, "golden") : 0;
    if (!label) return 1;
    /* Under a limit classes whose blocks come and go stay packed. */
    if (works[w].heap == PACKED) hak_limit(ctx, 0, LIMIT, NULL, NULL);
    /* Of a heap that is at work. calloc, so that what is counted stays uncounted here. */
    for (int i = 0; i < FILL && works[w].heap != PACKED; i++)
        if (!hak_calloc(ctx, 1, SMALL)) return 1;
    if (works[w].heap == PROFILED && hak_profile_start(ctx, NULL)) return 1;
    /* Most units have a sample. */
    hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
    sampled.mean = SMALL << 8;
    if (works[w].heap == SAMPLED && hak_profile_start(ctx, &sampled)) return 1;
    if (works[w].heap == FROZEN && !freeze(hak_learner_new(NULL, NULL))) return 1;
    works[w].run(works[w].n, rounds);
    hak_ctx_destroy(ctx);
    return 0;
}

static int named(const char *name, const char *rounds)
{
    for (size_t w = 0; w < sizeof works / sizeof *works; w++)
        if (strcmp(name, works[w].name) == 0) return work(w, strtoul(rounds, NULL, 10));
    fprintf(stderr, "hotpath: no work %s\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: hotpath WORK ROUNDS...\n");
        return 2;
    }
    if (argc == 3) return named(argv[1], argv[2]);
    for (int i = 1; i < argc; i += 2) {
        pid_t child = fork();
        if (child == 0) return named(argv[i], argv[i + 1]);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "hotpath: %s %s failed\n", argv[i], argv[i + 1]);
            return 1;
        }
    }
    return 0;
}
