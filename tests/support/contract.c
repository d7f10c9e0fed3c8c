#define _GNU_SOURCE
#include "contract.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <unistd.h>
#endif

#define PAGE ((size_t)4096)
#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define HIGH ((uintptr_t)1 << 47)

typedef struct trial {
    const hak_os *os;
    unsigned flags;
    bool left_out;
} trial;

/* What a point finds: NULL = all as promised. */
typedef const char *point_fn(trial *t);

#define MUST(holds)                                                                                          \
    do {                                                                                                     \
        if (!(holds)) return #holds;                                                                         \
    } while (0)

/* ---- Helpers ----------------------------------------------------------------------------------------- */

/* Asks the system, which does not fault. */
static bool readable(const void *p)
{
#ifdef _WIN32
    MEMORY_BASIC_INFORMATION page;
    return VirtualQuery(p, &page, sizeof page) && page.State == MEM_COMMIT && page.Protect == PAGE_READWRITE;
#else
    int ends[2];
    if (pipe(ends) != 0) return false;
    bool ok = write(ends[1], p, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return ok;
#endif
}

static void *reserve(const trial *t, size_t n, size_t align, uintptr_t below)
{
    return t->os->reserve(t->os->user, n, align, below);
}

static bool commit(const trial *t, void *p, size_t n)
{
    return !t->os->commit || t->os->commit(t->os->user, p, n) == 0;
}

static void decommit(const trial *t, void *p, size_t n)
{
    t->os->decommit(t->os->user, p, n);
}

static void release(const trial *t, void *p, size_t n)
{
    t->os->release(t->os->user, p, n);
}

static bool all(const char *p, size_t n, char value)
{
    return n == 0 || (p[0] == value && memcmp(p, p + 1, n - 1) == 0);
}

/* Usable pages, all of which hold `value`; NULL = there are none. */
static char *filled(const trial *t, size_t n, char value)
{
    char *p = reserve(t, n, PAGE, HIGH);
    if (p && commit(t, p, n)) return memset(p, value, n);
    if (p) release(t, p, n);
    return NULL;
}

/* ---- Points ------------------------------------------------------------------------------------------ */

static const char *try_reserve(trial *t)
{
    static const size_t aligns[] = {PAGE, 16 * KIB, 64 * KIB, 2 * MIB, 1024 * MIB};
    static const size_t sizes[] = {PAGE, 5 * PAGE, 64 * KIB + PAGE, 3 * MIB};
    for (unsigned a = 0; a < sizeof aligns / sizeof *aligns; a++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t n = sizes[i];
            char *p = reserve(t, n, aligns[a], a % 2 ? HIGH : 0);
            MUST(p != NULL);
            MUST((uintptr_t)p % aligns[a] == 0);
            MUST(a % 2 == 0 || (uintptr_t)p + n <= HIGH);
            char *other = reserve(t, n, aligns[a], 0);
            MUST(other != NULL && (other >= p + n || p >= other + n));
            MUST(commit(t, p, n));
            MUST(all(p, n, 0));
            memset(p, 1, n);
            release(t, other, n);
            MUST(all(p, n, 1));
            release(t, p, n);
        }
    /* There may be no room there; what is given must fit. */
    uintptr_t low = (uintptr_t)1 << 32;
    char *p = reserve(t, MIB, 2 * MIB, low);
    MUST(!p || (uintptr_t)p + MIB <= low);
    if (p) release(t, p, MIB);
    return NULL;
}

static const char *try_failure(trial *t)
{
    MUST(reserve(t, (size_t)1 << 60, PAGE, 0) == NULL);
    MUST(reserve(t, ~(size_t)0 - 64 * KIB + 1, 1024 * MIB, 0) == NULL);
    MUST(reserve(t, 64 * MIB, PAGE, 32 * MIB) == NULL);
    MUST(reserve(t, (size_t)1 << 60, PAGE, HIGH) == NULL);
    return NULL;
}

static const char *try_commit(trial *t)
{
    const size_t n = MIB;
    char *p = reserve(t, n, 64 * KIB, 0);
    MUST(p != NULL);
    MUST(commit(t, p + 37 * PAGE, PAGE));
    MUST(all(p + 37 * PAGE, PAGE, 0));
    memset(p + 37 * PAGE, 5, PAGE);
    MUST(commit(t, p, n));
    MUST(all(p + 37 * PAGE, PAGE, 5));
    MUST(all(p, 37 * PAGE, 0) && all(p + 38 * PAGE, n - 38 * PAGE, 0));
    memset(p, 6, n);
    MUST(commit(t, p, n));
    MUST(all(p, n, 6));
    release(t, p, n);
    return NULL;
}

static const char *try_decommit(trial *t)
{
    const size_t n = MIB;
    char *p = filled(t, n, 3);
    MUST(p != NULL);
    /* Also in parts of what pages of 16 and of 64 KiB have. */
    static const size_t from[] = {64 * KIB, 300 * KIB}, bytes[] = {64 * KIB, 7 * PAGE};
    for (int i = 0; i < 2; i++) {
        size_t at = from[i], size = bytes[i];
        memset(p, 3, n);
        decommit(t, p + at, size);
        MUST(all(p, at, 3));
        MUST(all(p + at + size, n - at - size, 3));
        decommit(t, p + at, size);
        MUST(commit(t, p + at, size));
        MUST(all(p + at, size, 0));
        MUST(all(p, at, 3));
        memset(p + at, 4, size);
        MUST(all(p + at + size, n - at - size, 3));
    }
    release(t, p, n);
    errno = 0;
    p = filled(t, n, 3);
    MUST(p != NULL);
    errno = 77;
    decommit(t, p, n);
    MUST(errno == 77);
    release(t, p, n);
    MUST(errno == 77);
    return NULL;
}

static const char *try_release(trial *t)
{
    enum { ROUNDS = 200 };
    for (int i = 0; i < ROUNDS; i++) {
        char *p = filled(t, 2 * PAGE, 7);
        MUST(p != NULL);
        release(t, p, 2 * PAGE);
        MUST(!readable(p) || p[0] != 7);
    }
    return NULL;
}

static const char *try_remap(trial *t)
{
    t->left_out = !t->os->remap;
    if (t->left_out) return NULL;
    size_t n = MIB;
    char *p = filled(t, n, 8);
    MUST(p != NULL);
    MUST(t->os->remap(t->os->user, p, n, (size_t)1 << 60, 0) == NULL);
    MUST(all(p, n, 8));
    char *q = t->os->remap(t->os->user, p, n, 5 * n, HIGH);
    MUST(q != NULL);
    MUST((uintptr_t)q + 5 * n <= HIGH);
    MUST(all(q, n, 8));
    MUST(all(q + n, 4 * n, 0));
    memset(q, 9, 5 * n);
    p = t->os->remap(t->os->user, q, 5 * n, 5 * PAGE, 0);
    MUST(p != NULL);
    MUST(all(p, 5 * PAGE, 9));
    q = t->os->remap(t->os->user, p, 5 * PAGE, n, 0);
    MUST(q != NULL);
    MUST(all(q, 5 * PAGE, 9));
    MUST(all(q + 5 * PAGE, n - 5 * PAGE, 0));
    const uintptr_t below = (uintptr_t)q + n + n / 2;
    p = t->os->remap(t->os->user, q, n, 2 * n, below);
    MUST(!p || (uintptr_t)p + 2 * n <= below);
    MUST(all(p ? p : q, 5 * PAGE, 9));
    release(t, p ? p : q, p ? 2 * n : n);
    return NULL;
}

static const char *try_hint(const trial *t, void (*hint)(void *user, void *p, size_t n))
{
    char *p = filled(t, 4 * MIB, 2);
    MUST(p != NULL);
    errno = 77;
    hint(t->os->user, p, 4 * MIB);
    MUST(all(p, 4 * MIB, 2));
    decommit(t, p + MIB, MIB);
    MUST(commit(t, p + MIB, MIB));
    hint(t->os->user, p + MIB, MIB);
    MUST(all(p + MIB, MIB, 0));
    release(t, p, 4 * MIB);
    return NULL;
}

static const char *try_huge(trial *t)
{
    t->left_out = !t->os->huge;
    return t->left_out ? NULL : try_hint(t, t->os->huge);
}

static const char *try_populate(trial *t)
{
    t->left_out = !t->os->populate;
    return t->left_out ? NULL : try_hint(t, t->os->populate);
}

static uint64_t wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const char *try_clock(trial *t)
{
    uint64_t first = t->os->clock(t->os->user), last = first;
    MUST(first != 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t now = t->os->clock(t->os->user);
        MUST(now >= last);
        last = now;
    }
    if (t->flags & CONTRACT_CLOCK_STANDS) return NULL;
    first = t->os->clock(t->os->user);
    for (uint64_t from = wall(); wall() - from < 20000000;) {
    }
    last = t->os->clock(t->os->user);
    MUST(last - first > 10000000);
    MUST(last - first < 60u * 1000000000ull);
    return NULL;
}

typedef struct visitor {
    const hak_os *os;
    uint64_t id;
    bool lives;
} visitor;

static void *visit(void *user)
{
    visitor *v = user;
    v->id = v->os->thread_id(v->os->user);
    v->lives = !v->os->thread_alive || v->os->thread_alive(v->os->user, v->id);
    return NULL;
}

static const char *try_threads(trial *t)
{
    t->left_out = !t->os->thread_id;
    if (t->left_out) return NULL;
    visitor other = {.os = t->os};
    pthread_t thread;
    uint64_t own = t->os->thread_id(t->os->user);
    MUST(own != 0);
    MUST(pthread_create(&thread, NULL, visit, &other) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(other.id != 0 && other.id != own);
    MUST(t->os->thread_id(t->os->user) == own);
    if (!t->os->thread_alive) return NULL;
    MUST(other.lives);
    MUST(t->os->thread_alive(t->os->user, own));
    /* A system may end a thread a little after it was joined. */
    bool lives = true;
    for (uint64_t from = wall(); lives && wall() - from < 2000000000;)
        lives = t->os->thread_alive(t->os->user, other.id);
    MUST(!lives);
    return NULL;
}

static const char *try_protect(trial *t)
{
    const size_t n = 64 * KIB;
    t->left_out = !t->os->protect;
    if (t->left_out) return NULL;
    char *p = filled(t, 3 * n, 4);
    MUST(p != NULL);
    /* Where pages are larger, less may be refused: then nothing changes. */
    if (t->os->protect(t->os->user, p + PAGE, PAGE, false) == 0) {
        MUST(readable(p) && !readable(p + PAGE) && readable(p + 2 * PAGE));
        MUST(t->os->protect(t->os->user, p + PAGE, PAGE, true) == 0);
    }
    MUST(all(p, n, 4) && all(p + 2 * n, n, 4));
    MUST(t->os->protect(t->os->user, p + n, n, false) == 0);
    MUST(!readable(p + n) && !readable(p + 2 * n - 1));
    MUST(readable(p + n - 1) && readable(p + 2 * n));
    MUST(t->os->protect(t->os->user, p + n, n, true) == 0);
    memset(p + n, 5, n);
    MUST(all(p, n, 4) && all(p + 2 * n, n, 4));
    /* As pages of guards go back, and come again. */
    decommit(t, p + n, n);
    MUST(t->os->protect(t->os->user, p + n, n, false) == 0);
    MUST(!readable(p + n));
    MUST(commit(t, p + n, n));
    MUST(t->os->protect(t->os->user, p + n, n, true) == 0);
    MUST(all(p + n, n, 0));
    release(t, p, 3 * n);
    /* What was never committed cannot be touched. */
    p = reserve(t, n, PAGE, 0);
    MUST(p != NULL);
    MUST(t->os->protect(t->os->user, p, n, false) == 0);
    MUST(!readable(p));
    release(t, p, n);
    return NULL;
}

unsigned contract_try(const hak_os *os, unsigned flags, contract_say *say, void *user)
{
    static const struct {
        const char *name;
        point_fn *fn;
    } points[] = {{"reserve", try_reserve},   {"commit", try_commit},  {"decommit", try_decommit},
                  {"release", try_release},   {"remap", try_remap},    {"huge", try_huge},
                  {"populate", try_populate}, {"clock", try_clock},    {"threads", try_threads},
                  {"protect", try_protect},   {"failure", try_failure}};
    unsigned failed = 0;
    for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
        trial t = {os, flags, false};
        const char *wrong = points[i].fn(&t);
        failed += wrong != NULL;
        say(user, points[i].name, wrong, t.left_out);
    }
    return failed;
}
