#include <sys/mman.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#define WIN32_LEAN_AND_MEAN
#define PSAPI_VERSION 2
#include <windows.h>
/* needs windows.h */
#include <psapi.h>

enum { PAGE = 4096, MOST = 1 << 14 };

static struct {
    char *p;
    size_t n, mapped;
} all[MOST];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *mmap(void *at, size_t n, int protection, int flags, int file, long offset)
{
    (void)flags, (void)file, (void)offset;
    void *p = VirtualAlloc(at, n, MEM_RESERVE, PAGE_NOACCESS);
    if (p && protection != PROT_NONE && !VirtualAlloc(p, n, MEM_COMMIT, PAGE_READWRITE)) {
        VirtualFree(p, 0, MEM_RELEASE);
        p = NULL;
    }
    if (!p) return MAP_FAILED;
    pthread_mutex_lock(&lock);
    if (count == MOST) abort();
    all[count].p = p;
    all[count].n = n;
    all[count++].mapped = n;
    pthread_mutex_unlock(&lock);
    return p;
}

int munmap(void *p, size_t n)
{
    char *at = p;
    int code = -1;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && n; i++) {
        if (at < all[i].p || at >= all[i].p + all[i].n) continue;
        code = 0;
        VirtualFree(p, n, MEM_DECOMMIT);
        all[i].mapped -= n;
        if (!all[i].mapped) {
            VirtualFree(all[i].p, 0, MEM_RELEASE);
            all[i] = all[--count];
        }
        break;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int mprotect(void *p, size_t n, int protection)
{
    MEMORY_BASIC_INFORMATION region;
    if (protection != PROT_NONE) return VirtualAlloc(p, n, MEM_COMMIT, PAGE_READWRITE) ? 0 : -1;
    for (char *at = p, *end = at + n; at < end; at = (char *)region.BaseAddress + region.RegionSize) {
        DWORD before;
        if (!VirtualQuery(at, &region, sizeof region)) return -1;
        size_t bytes = region.RegionSize - (size_t)(at - (char *)region.BaseAddress);
        if (bytes > (size_t)(end - at)) bytes = (size_t)(end - at);
        if (region.State == MEM_COMMIT && !VirtualProtect(at, bytes, PAGE_NOACCESS, &before)) return -1;
    }
    return 0;
}

/* What may be touched stays so. */
int madvise(void *p, size_t n, int advice)
{
    MEMORY_BASIC_INFORMATION region;
    if (advice != MADV_DONTNEED) return 0;
    for (char *at = p, *end = at + n; at < end; at = (char *)region.BaseAddress + region.RegionSize) {
        if (!VirtualQuery(at, &region, sizeof region)) return -1;
        size_t bytes = region.RegionSize - (size_t)(at - (char *)region.BaseAddress);
        if (bytes > (size_t)(end - at)) bytes = (size_t)(end - at);
        if (region.State != MEM_COMMIT) continue;
        if (!VirtualFree(at, bytes, MEM_DECOMMIT) || !VirtualAlloc(at, bytes, MEM_COMMIT, region.Protect))
            return -1;
    }
    return 0;
}

int mincore(void *p, size_t n, unsigned char *resident)
{
    MEMORY_BASIC_INFORMATION region;
    for (size_t i = 0; i < n / PAGE; i++) {
        if (!VirtualQuery((char *)p + i * PAGE, &region, sizeof region)) return -1;
        resident[i] = region.State == MEM_COMMIT;
    }
    return 0;
}

/* Resident bytes of this process. */
size_t test_resident(void);
size_t test_resident(void)
{
    PROCESS_MEMORY_COUNTERS now = {.cb = sizeof now};
    return GetProcessMemoryInfo(GetCurrentProcess(), &now, sizeof now) ? now.WorkingSetSize : 0;
}
