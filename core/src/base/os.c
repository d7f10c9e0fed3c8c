#define _GNU_SOURCE /* mremap, syscall */
#include "base/os.h"

#include "base/random.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Kernels before 5.14 refuse it; headers of some C libraries leave it out. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#ifdef HAKMEM_ASSERT
void hk_assert_failed(const char *what)
{
    size_t n = strlen(what);
    (void)!write(STDERR_FILENO, what, n);
    __builtin_trap();
}
#endif

#define PROT (PROT_READ | PROT_WRITE)
/* Without MAP_NORESERVE: the kernel refuses a size that the machine cannot have. */
#define FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)

static uint64_t os_clock(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* MAP_FAILED = there is none; NULL = it lies too high. */
static void *map_at(uintptr_t hint, size_t n, uintptr_t below, int protection)
{
    void *p = mmap((void *)hint, n, protection, FLAGS, -1, 0);
    if (p == MAP_FAILED || !below || (uintptr_t)p + n <= below) return p;
    munmap(p, n);
    return NULL;
}

/* The kernel maps below 2^47 on x86-64 of its own accord. Elsewhere, and for lower bounds, it takes hints;
 * which are free nobody remembers here, so they are drawn: one in ten fails where a tenth is in use. Where it
 * refuses a hint it has no room for n bytes, or the process may have no more: it would refuse all others. */
static void *map_below(size_t n, uintptr_t below, int protection)
{
    enum { DRAWS = 512, FIRST = 8 * HK_CHUNK };
    void *p = map_at(0, n, below, protection);
    if (p && p != MAP_FAILED) return p;
    if (!below || n >= below || below - n < FIRST) return NULL;
    uint64_t places = (below - n - FIRST) / HK_CHUNK + 1, random = os_clock(NULL) ^ (uintptr_t)&p;
    p = NULL;
    for (int i = 0; i < DRAWS && !p; i++)
        p = map_at(FIRST + hk_random_next(&random) % places * HK_CHUNK, n, below, protection);
    return p == MAP_FAILED ? NULL : p;
}

static void *reserve(size_t n, size_t align, uintptr_t below, int protection)
{
    if (align <= HK_PAGE) return map_below(n, below, protection);
    if (n > SIZE_MAX / 2 - align) return NULL;
    /* On kernels with larger pages n may end within a page, which munmap refuses. */
    n = hk_align_up(n, (size_t)getpagesize());
    char *p = map_below(n + align, below, protection);
    if (!p) return NULL;
    char *start = (char *)hk_align_up((uintptr_t)p, align);
    if (start > p) munmap(p, (size_t)(start - p));
    munmap(start + n, (size_t)(p + align - start));
    return start;
}

/* Without access: what is reserved and not used is neither dumped nor locked, and no limit but that of
 * addresses counts it. */
static void *os_reserve(void *user, size_t n, size_t align, uintptr_t below)
{
    (void)user;
    return reserve(n, align, below, PROT_NONE);
}

static int open_pages(void *p, size_t n)
{
    size_t page = (size_t)getpagesize();
    uintptr_t from = (uintptr_t)p & ~(uintptr_t)(page - 1), to = hk_align_up((uintptr_t)p + n, page);
    return mprotect((void *)from, to - from, PROT);
}

/* A space knows by this function that pages stay usable after decommit. */
static int os_commit(void *user, void *p, size_t n)
{
    (void)user;
    return open_pages(p, n);
}

/* Gives back whole pages by `give`. What the kernel keeps is cleared by hand: locked pages, and parts of
 * pages where these are larger than HK_PAGE, for it would round up to what belongs to others. */
HK_INLINE void decommit(void *p, size_t n, bool (*give)(void *p, size_t n))
{
    /* sysconf() would make 64 KiB more of glibc resident in a small program. */
    size_t page = (size_t)getpagesize();
    char *at = p, *from = (char *)hk_align_up((uintptr_t)at, page), *end = at + n;
    char *to = (char *)((uintptr_t)end & ~(uintptr_t)(page - 1));
    if (from >= to || !give(from, (size_t)(to - from))) {
        memset(at, 0, n);
        return;
    }
    memset(at, 0, (size_t)(from - at));
    memset(to, 0, (size_t)(end - to));
}

static bool advise(void *p, size_t n)
{
    return madvise(p, n, MADV_DONTNEED) == 0;
}

/* This function and os_release keep errno, as free() should. */
static void os_decommit(void *user, void *p, size_t n)
{
    int error = errno;
    (void)user;
    decommit(p, n, advise);
    errno = error;
}

/* ---- Where each page counts that may be written to, used or not (vm.overcommit_memory=2) ------------- */

/* Its code differs from that of os_commit: compilers may give two functions of the same code one address, and
 * the address tells which table it is. */
static int counted_commit(void *user, void *p, size_t n)
{
    (void)user;
    return open_pages(p, n) != 0;
}

/* Only a new mapping is counted no longer. */
static bool map_anew(void *p, size_t n)
{
    return mmap(p, n, PROT_NONE, FLAGS | MAP_FIXED, -1, 0) != MAP_FAILED || advise(p, n);
}

static void counted_decommit(void *user, void *p, size_t n)
{
    int error = errno;
    (void)user;
    decommit(p, n, map_anew);
    errno = error;
}

bool hk_os_counts(const hak_os *os)
{
    return os->decommit == counted_decommit;
}

void hk_os_discard(void *p, size_t n)
{
    os_decommit(NULL, p, n);
}

HAK_API bool hak_os_counted(hak_os *os)
{
    if (os->reserve != os_reserve || os->commit != os_commit || os->decommit != os_decommit) return false;
    os->commit = counted_commit;
    os->decommit = counted_decommit;
    return true;
}

/* ---- Spaces whose pages are those of the system ------------------------------------------------------ */

static void os_release(void *user, void *p, size_t n)
{
    int error = errno;
    (void)user;
    munmap(p, n);
    errno = error;
}

bool hk_os_opens(const hak_os *os)
{
    return os->commit == os_commit;
}

bool hk_os_own(const hak_os *os)
{
    return os->reserve == os_reserve && os->commit == os_commit && os->decommit == os_decommit &&
           os->release == os_release;
}

size_t hk_os_reserve(const hak_os *os)
{
    return (size_t)(os->commit == counted_commit ? 4 : 64) << 30;
}

size_t hk_os_page(void)
{
    return (size_t)getpagesize();
}

void *hk_os_map(size_t n, size_t align, uintptr_t below)
{
    return reserve(n, align, below, PROT);
}

/* Libraries, stacks and all that is mapped without a wish lie above the first range, programs beside it; the
 * shadows of sanitizers, and the ends of what emulators have, leave one of the two. The first draw depends on
 * the stack alone, so that a first space has the same addresses each time where the system randomizes none.
 */
uintptr_t hk_os_draw(unsigned attempt, size_t n)
{
    const uintptr_t tib = (uintptr_t)1 << 40;
    uintptr_t from = (attempt == 2 ? 1 : 48) * tib, to = (attempt == 2 ? 15 : 80) * tib;
    uint64_t random = (uintptr_t)&random ^ (attempt > 0 ? os_clock(NULL) : 0);
    return from + hk_random_next(&random) % ((to - from - n) / HK_CHUNK) * HK_CHUNK;
}

int hk_os_map_at(uintptr_t at, size_t n)
{
    void *p = mmap((void *)at, n, PROT, FLAGS, -1, 0);
    if ((uintptr_t)p == at) return 0;
    if (p == MAP_FAILED) return -1;
    munmap(p, n);
    return 1;
}

bool hk_os_close(void *p, size_t n, bool keep)
{
    int error = errno;
    bool ok = keep ? mmap(p, n, PROT_NONE, FLAGS | MAP_FIXED, -1, 0) != MAP_FAILED : munmap(p, n) == 0;
    errno = error;
    return ok;
}

/* ---- The rest of the table ------------------------------------------------------------------------- */

static void *os_remap(void *user, void *p, size_t old_n, size_t n, uintptr_t below)
{
    (void)user;
    void *q = below && (uintptr_t)p + n > below ? MAP_FAILED : mremap(p, old_n, n, 0);
    if (q != MAP_FAILED) {
        /* The rest of a larger page stays, and is 0 should the block grow again. */
        if (n < old_n) memset((char *)q + n, 0, hk_min(hk_align_up(n, (size_t)getpagesize()), old_n) - n);
        return q;
    }
    if (!below || below >= HK_POINTERS_BELOW) {
        q = mremap(p, old_n, n, MREMAP_MAYMOVE);
        if (q == MAP_FAILED) return NULL;
        if (!below || (uintptr_t)q + n <= below) return q;
        mremap(q, n, old_n, MREMAP_MAYMOVE | MREMAP_FIXED, p);
        return NULL;
    }
    void *target = map_below(n, below, PROT_NONE);
    if (!target) return NULL;
    q = mremap(p, old_n, n, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (q == MAP_FAILED) {
        munmap(target, n);
        return NULL;
    }
    return q;
}

static void os_huge(void *user, void *p, size_t n)
{
    (void)user;
    madvise(p, n, MADV_HUGEPAGE);
}

static uint64_t os_thread_id(void *user)
{
    (void)user;
    return (uint64_t)syscall(SYS_gettid); /* not every C library has a function for this, or for the next */
}

static bool os_thread_alive(void *user, uint64_t id)
{
    (void)user;
    return syscall(SYS_tgkill, getpid(), (pid_t)id, 0) == 0 || errno != ESRCH;
}

static void os_populate(void *user, void *p, size_t n)
{
    (void)user;
    int error = errno;
    madvise(p, n, MADV_POPULATE_WRITE);
    errno = error;
}

static int os_protect(void *user, void *p, size_t n, bool access)
{
    (void)user;
    size_t page = (size_t)getpagesize();
    /* The kernel would open what follows, up to the end of its page. */
    if (((uintptr_t)p | n) & (page - 1)) return -1;
    int error = errno, rc = mprotect(p, n, access ? PROT : PROT_NONE);
    errno = error;
    return rc;
}

HAK_API void hak_os_init(hak_os *os, size_t size)
{
    const hak_os table = {size,    NULL,     os_reserve,   os_commit,       os_decommit, os_release, os_remap,
                          os_huge, os_clock, os_thread_id, os_thread_alive, os_populate, os_protect};
    memset(os, 0, size);
    memcpy(os, &table, hk_min(size, sizeof table));
}

const char *hk_os_read(hak_os *to, const hak_os *from)
{
    if (!from) return hak_os_init(to, sizeof *to), NULL;
    if (!hak_sized_copy(to, sizeof *to, from)) return "hak_os.size is not set, or more is set than is known";
    if (!to->reserve || !to->decommit || !to->release || !to->clock)
        return "hak_os needs reserve, decommit, release and clock";
    return NULL;
}

static size_t pages_for(size_t n)
{
    return hk_align_up(n + 2 * HK_BESIDE, HK_PAGE);
}

void *hk_os_take(const hak_os *os, size_t n)
{
    size_t bytes = pages_for(n);
    if (hk_os_own(os)) {
        char *own = hk_os_map(bytes, HK_PAGE, 0);
        return own ? own + HK_BESIDE : NULL;
    }
    char *p = os->reserve(os->user, bytes, HK_PAGE, 0);
    if (p && os->commit && os->commit(os->user, p, bytes) != 0) {
        os->release(os->user, p, bytes);
        return NULL;
    }
    return p ? p + HK_BESIDE : NULL;
}

void hk_os_give(const hak_os *os, void *p, size_t n)
{
    os->release(os->user, (char *)p - HK_BESIDE, pages_for(n));
}

_Noreturn void hk_os_abort(void)
{
    abort();
}
