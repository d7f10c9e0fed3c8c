/* Linux: pages by mmap, mprotect and madvise; spaces that grow where nobody else maps anything. */
#define _GNU_SOURCE /* mremap, syscall */
#include "base/os.h"

#ifdef HK_LINUX
#include "base/os_posix.h"

#include <sys/syscall.h>

/* Kernels before 5.14 refuse it; headers of some C libraries leave it out. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static bool advise(void *p, size_t n)
{
    return madvise(p, n, MADV_DONTNEED) == 0;
}

static void os_decommit(void *user, void *p, size_t n)
{
    int error = errno;
    (void)user;
    posix_decommit(p, n, advise);
    errno = error;
}

/* ---- Where each page counts that may be written to, used or not (vm.overcommit_memory=2) ------------- */

/* Its code differs from that of os_commit: compilers may give two functions of the same code one address, and
 * the address tells which table it is. */
static int counted_commit(void *user, void *p, size_t n)
{
    (void)user;
    return posix_open(p, n) != 0;
}

/* Only a new mapping is counted no longer. */
static bool map_anew(void *p, size_t n)
{
    return mmap(p, n, PROT_NONE, HK_FLAGS | MAP_FIXED, -1, 0) != MAP_FAILED || advise(p, n);
}

static void counted_decommit(void *user, void *p, size_t n)
{
    int error = errno;
    (void)user;
    posix_decommit(p, n, map_anew);
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

bool hk_os_own(const hak_os *os)
{
    return os->reserve == os_reserve && os->commit == os_commit && os->decommit == os_decommit &&
           os->release == os_release;
}

size_t hk_os_reserve(const hak_os *os)
{
    return (size_t)(os->commit == counted_commit ? 4 : 64) << 30;
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
    void *p = mmap((void *)at, n, HK_PROT, HK_FLAGS, -1, 0);
    if ((uintptr_t)p == at) return 0;
    if (p == MAP_FAILED) return -1;
    munmap(p, n);
    return 1;
}

bool hk_os_close(void *p, size_t n, bool keep)
{
    int error = errno;
    bool ok = keep ? mmap(p, n, PROT_NONE, HK_FLAGS | MAP_FIXED, -1, 0) != MAP_FAILED : munmap(p, n) == 0;
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
    void *target = posix_map_below(n, below, PROT_NONE);
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

HAK_API void hak_os_init(hak_os *os, size_t size)
{
    const hak_os table = {size,    NULL,     os_reserve,   os_commit,       os_decommit, os_release, os_remap,
                          os_huge, os_clock, os_thread_id, os_thread_alive, os_populate, os_protect};
    memset(os, 0, size);
    memcpy(os, &table, hk_min(size, sizeof table));
}

/* By syscall: the functions of libc are points at which a thread can be cancelled, with other locks held. */
void hk_os_sleep(unsigned ns)
{
    struct timespec pause = {0, (long)ns};
    syscall(SYS_nanosleep, &pause, NULL);
}

#endif
