/* Pages as Windows has them: reserved at multiples of 64 KiB, committed by pages, released as a whole. Windows commits no
 * more than the machine has; here the kernel refuses that, because nothing is mapped with MAP_NORESERVE. */
#define _GNU_SOURCE
#include "windows.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 64 << 10, PAGE = 4096, MOST = 1 << 14 };
/* Of a page: whether it is committed, and may be touched. */
enum { COMMITTED = 1, OPEN = 2 };

typedef struct reservation {
    char *p;
    size_t n;
    unsigned char *pages; /* a map of its own: of much of it nothing is ever touched */
} reservation;

static reservation all[MOST];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void broken(const char *what, const void *p, size_t n)
{
    fprintf(stderr, "windows: %s (%p, %zu bytes)\n", what, p, n);
    abort();
}

/* The one that holds all of these pages, which are rounded outwards. */
static reservation *holder(char **p, size_t *n)
{
    uintptr_t from = (uintptr_t)*p & ~(uintptr_t)(PAGE - 1),
              to = ((uintptr_t)*p + *n + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    *p = (char *)from;
    *n = to - from;
    for (size_t i = 0; i < count; i++)
        if ((uintptr_t)all[i].p <= from && to <= (uintptr_t)all[i].p + all[i].n) return &all[i];
    return NULL;
}

static void set(reservation *r, const char *p, size_t n, unsigned char state)
{
    memset(r->pages + (p - r->p) / PAGE, state, n / PAGE);
}

static void *anywhere(size_t n)
{
    char *p = mmap(NULL, n + STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    char *start = (char *)(((uintptr_t)p + STEP - 1) & ~(uintptr_t)(STEP - 1));
    if (start > p) munmap(p, (size_t)(start - p));
    munmap(start + n, (size_t)(p + STEP - start));
    return start;
}

static void *reserve(char *at, size_t n)
{
    n = (n + PAGE - 1) & ~(size_t)(PAGE - 1);
    at = (char *)((uintptr_t)at & ~(uintptr_t)(STEP - 1));
    if (n == 0 || n > (size_t)1 << 47 || count == MOST) return NULL;
    char *p =
        at ? mmap(at, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) : anywhere(n);
    if (p == MAP_FAILED || !p) return NULL;
    unsigned char *pages =
        mmap(NULL, n / PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        munmap(p, n);
        return NULL;
    }
    all[count++] = (reservation){p, n, pages};
    return p;
}

static void *commit(char *p, size_t n)
{
    reservation *r = holder(&p, &n);
    if (!r || mprotect(p, n, PROT_READ | PROT_WRITE) != 0) return NULL;
    set(r, p, n, COMMITTED | OPEN);
    return p;
}

void *VirtualAlloc(void *p, size_t n, DWORD kind, DWORD protection)
{
    pthread_mutex_lock(&lock);
    void *q = NULL;
    if (kind == MEM_RESERVE && protection == PAGE_NOACCESS) q = reserve(p, n);
    else if (kind == MEM_COMMIT && protection == PAGE_READWRITE) q = commit(p, n);
    else broken("VirtualAlloc with such arguments", p, n);
    pthread_mutex_unlock(&lock);
    return q;
}

/* Returns the lowest free addresses for n bytes below `end`, at a multiple of align; 0 = there are none. The
 * system's list has the reservations, too. */
static uintptr_t lowest(size_t n, size_t align, uintptr_t end)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t at = align, a, b;
    if (!maps) abort();
    for (char line[512]; fgets(line, sizeof line, maps);) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &a, &b) != 2 || b <= at) continue;
        if (a > at && a - at >= n) break;
        at = (b + align - 1) & ~(uintptr_t)(align - 1);
    }
    fclose(maps);
    return at < end && n <= end - at ? at : 0;
}

/* As on x86-64: the last 64 KiB below 2^47 are the system's. */
static const uintptr_t last = ((uintptr_t)1 << 47) - STEP - 1;

void GetSystemInfo(SYSTEM_INFO *info)
{
    info->lpMaximumApplicationAddress = (void *)last;
}

static void *alloc2(HANDLE process, void *p, size_t n, ULONG kind, ULONG protection,
                    MEM_EXTENDED_PARAMETER *parameter, ULONG parameters)
{
    const MEM_ADDRESS_REQUIREMENTS *range = parameter->Pointer;
    uintptr_t end = (range->HighestEndingAddress ? (uintptr_t)range->HighestEndingAddress : last) + 1;
    size_t align = range->Alignment;
    if (process || p || n % PAGE || kind != MEM_RESERVE || protection != PAGE_NOACCESS || parameters != 1 ||
        parameter->Type != MemExtendedParameterAddressRequirements || end % STEP || align < STEP ||
        align & (align - 1))
        broken("VirtualAlloc2 with such arguments", p, n);
    if (end - 1 > last) return NULL;
    pthread_mutex_lock(&lock);
    uintptr_t at = lowest(n, align, end);
    void *q = at ? reserve((char *)at, n) : NULL;
    pthread_mutex_unlock(&lock);
    return q;
}

HMODULE GetModuleHandleA(const char *name)
{
    return strcmp(name, "kernelbase.dll") == 0 ? &count : NULL;
}

FARPROC GetProcAddress(HMODULE library, const char *name)
{
    return library == &count && strcmp(name, "VirtualAlloc2") == 0 ? (FARPROC)alloc2 : NULL;
}

static BOOL decommit(char *p, size_t n)
{
    reservation *r = holder(&p, &n);
    if (!r) broken("decommit outside of a reservation", p, n);
    munlock(p, n); /* Linux would not take locked pages back */
    if (madvise(p, n, MADV_DONTNEED) != 0 || mprotect(p, n, PROT_NONE) != 0) return FALSE;
    set(r, p, n, 0);
    return 1;
}

BOOL VirtualFree(void *p, size_t n, DWORD kind)
{
    pthread_mutex_lock(&lock);
    BOOL ok = FALSE;
    if (kind == MEM_DECOMMIT) {
        ok = decommit(p, n);
    } else {
        size_t i = 0;
        while (i < count && all[i].p != p)
            i++;
        if (kind != MEM_RELEASE || n || i == count) broken("release of a part, or of nothing", p, n);
        munmap(p, all[i].n);
        munmap(all[i].pages, all[i].n / PAGE);
        all[i] = all[--count];
        ok = 1;
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

BOOL VirtualProtect(void *at, size_t n, DWORD protection, DWORD *before)
{
    char *p = at;
    pthread_mutex_lock(&lock);
    reservation *r = holder(&p, &n);
    *before = PAGE_READWRITE;
    for (size_t i = 0; r && i < n / PAGE; i++)
        if (!(r->pages[(size_t)(p - r->p) / PAGE + i] & COMMITTED)) r = NULL;
    bool open = protection == PAGE_READWRITE;
    BOOL ok = r && mprotect(p, n, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
    if (ok) set(r, p, n, (unsigned char)(open ? COMMITTED | OPEN : COMMITTED));
    pthread_mutex_unlock(&lock);
    return ok;
}

/* Of addresses that are not reserved the system's list tells; `from` is in none of the reservations. The rest of a step
 * before a reservation is told without the list, which has thousands of lines then. */
static void query_free(uintptr_t from, MEMORY_BASIC_INFORMATION *region)
{
    char *next = (char *)((from + STEP - 1) & ~(uintptr_t)(STEP - 1));
    for (size_t i = 0; i < count; i++) {
        if (all[i].p != next) continue;
        region->State = MEM_FREE;
        region->RegionSize = (uintptr_t)next - from;
        return;
    }
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t a, b, end = (uintptr_t)1 << 47;
    region->State = MEM_FREE;
    if (!maps) abort();
    for (char line[512]; fgets(line, sizeof line, maps);) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &a, &b) != 2 || b <= from) continue;
        if (a <= from) region->State = MEM_RESERVE;
        end = a <= from ? b : a;
        break;
    }
    fclose(maps);
    region->RegionSize = end - from;
}

/* The first page from `first` on, before `end`, that has another state. */
static size_t run_end(const unsigned char *pages, size_t first, size_t end)
{
    enum { ROW = 4096 };
    size_t i = first;
    while (end - i > ROW && memcmp(pages + i, pages + i + 1, ROW) == 0)
        i += ROW;
    while (i < end && pages[i] == pages[first])
        i++;
    return i;
}

size_t VirtualQuery(const void *at, MEMORY_BASIC_INFORMATION *region, size_t size)
{
    char *p = (char *)at;
    size_t n = 1;
    if ((uintptr_t)p >> 47) return 0;
    pthread_mutex_lock(&lock);
    const reservation *r = holder(&p, &n);
    region->BaseAddress = p;
    if (!r) {
        query_free((uintptr_t)p, region);
    } else {
        size_t first = (size_t)(p - r->p) / PAGE;
        region->RegionSize = (run_end(r->pages, first, r->n / PAGE) - first) * PAGE;
        region->State = r->pages[first] & COMMITTED ? MEM_COMMIT : MEM_RESERVE;
    }
    pthread_mutex_unlock(&lock);
    return size;
}

/* Steps of 100 ns, as on most machines. */
BOOL QueryPerformanceCounter(LARGE_INTEGER *now)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    now->QuadPart = (long long)t.tv_sec * 10000000 + t.tv_nsec / 100;
    return 1;
}

BOOL QueryPerformanceFrequency(LARGE_INTEGER *per_second)
{
    per_second->QuadPart = 10000000;
    return 1;
}

DWORD GetCurrentThreadId(void)
{
    return (DWORD)syscall(SYS_gettid);
}

DWORD GetCurrentProcessId(void)
{
    return (DWORD)getpid();
}

DWORD GetProcessIdOfThread(HANDLE thread)
{
    (void)thread;
    return (DWORD)getpid();
}

DWORD GetLastError(void)
{
    return ERROR_INVALID_PARAMETER;
}

static bool lives(DWORD id)
{
    return syscall(SYS_tgkill, getpid(), (pid_t)id, 0) == 0;
}

HANDLE OpenThread(DWORD access, BOOL inherit, DWORD id)
{
    (void)access, (void)inherit;
    return lives(id) ? (HANDLE)(uintptr_t)id : NULL;
}

DWORD WaitForSingleObject(HANDLE thread, DWORD ms)
{
    (void)ms;
    return lives((DWORD)(uintptr_t)thread) ? WAIT_TIMEOUT : 0;
}

BOOL CloseHandle(HANDLE thread)
{
    return thread != NULL;
}

BOOL SwitchToThread(void)
{
    return sched_yield() == 0;
}

void Sleep(DWORD ms)
{
    const struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}
