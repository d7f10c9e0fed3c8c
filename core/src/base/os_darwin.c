/* macOS, and FreeBSD, which counts threads in another way. There is no mremap, MADV_DONTNEED keeps what pages
 * hold, and pages may have 16 KiB. */
#include "base/os.h"

#ifdef HK_DARWIN
#include "base/os_plain.h"
#include "base/os_posix.h"

#ifdef __FreeBSD__
#include <pthread_np.h>
#include <sys/thr.h>
#else
#include <libproc.h>
#include <pthread.h>
#endif

/* Only a new mapping is sure to be zero. */
static bool map_anew(void *p, size_t n)
{
    return mmap(p, n, HK_PROT, HK_FLAGS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void os_decommit(void *user, void *p, size_t n)
{
    int error = errno;
    (void)user;
    posix_decommit(p, n, map_anew);
    errno = error;
}

size_t hk_os_reserve(const hak_os *os)
{
    (void)os;
    return (size_t)64 << 30;
}

/* No limit counts pages that were not touched. */
HAK_API bool hak_os_counted(hak_os *os)
{
    (void)os;
    return false;
}

#ifdef __FreeBSD__
static uint64_t os_thread_id(void *user)
{
    (void)user;
    return (uint64_t)pthread_getthreadid_np();
}

static bool os_thread_alive(void *user, uint64_t id)
{
    (void)user;
    int error = errno;
    bool alive = thr_kill((long)id, 0) == 0 || errno != ESRCH;
    errno = error;
    return alive;
}
#else
static uint64_t os_thread_id(void *user)
{
    uint64_t id = 0;
    (void)user;
    pthread_threadid_np(NULL, &id);
    return id;
}

static bool os_thread_alive(void *user, uint64_t id)
{
    struct proc_threadinfo info;
    (void)user;
    int error = errno;
    bool alive = proc_pidinfo(getpid(), PROC_PIDTHREADID64INFO, id, &info, sizeof info) > 0 || errno != ESRCH;
    errno = error;
    return alive;
}
#endif

HAK_API void hak_os_init(hak_os *os, size_t size)
{
    const hak_os table = {.size = size, HK_OS_FUNCTIONS};
    memset(os, 0, size);
    memcpy(os, &table, hk_min(size, sizeof table));
}

void hk_os_sleep(unsigned ns)
{
    struct timespec pause = {0, (long)ns};
    nanosleep(&pause, NULL);
}

#endif
