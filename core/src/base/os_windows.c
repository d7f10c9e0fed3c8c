/* Windows: addresses are reserved in steps of 64 KiB, and pages committed in them, which count from then on.
 * A reservation goes back as a whole. */
#include "base/os.h"

#ifdef HK_WINDOWS
#include "base/os_plain.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { STEP = 64 << 10 };

static void *reserve_at(uintptr_t at, size_t n)
{
    return VirtualAlloc((void *)at, n, MEM_RESERVE, PAGE_NOACCESS);
}

typedef void *WINAPI alloc2_fn(HANDLE process, void *at, SIZE_T n, ULONG kind, ULONG protection,
                               MEM_EXTENDED_PARAMETER *parameters, ULONG count);

/* Windows has VirtualAlloc2 since version 1803 of Windows 10: a program that imports VirtualAlloc2 would not
 * start on older ones. The core keeps no state of the process, so it asks for the function each time. */
static alloc2_fn *find_alloc2(void)
{
    HMODULE library = GetModuleHandleA("kernelbase.dll");
    return library ? (alloc2_fn *)(void (*)(void))GetProcAddress(library, "VirtualAlloc2") : NULL;
}

/* Reserves the lowest free addresses that fit, on systems without VirtualAlloc2: visits each region below. */
static void *walk_low(size_t n, size_t align, uintptr_t below)
{
    MEMORY_BASIC_INFORMATION region;
    for (uintptr_t at = STEP; at < below && n <= below - at;
         at = (uintptr_t)region.BaseAddress + region.RegionSize) {
        if (!VirtualQuery((void *)at, &region, sizeof region)) return NULL;
        uintptr_t end = (uintptr_t)region.BaseAddress + region.RegionSize, from = hk_align_up(at, align);
        if (region.State != MEM_FREE || from < at || from >= end || n > end - from || n > below - from)
            continue;
        void *p = reserve_at(from, n);
        if (p) return p;
    }
    return NULL;
}

/* Reserves below a bound under which the system would seldom choose addresses. VirtualAlloc2 searches the
 * system's own tree; a walk over all regions makes n reservations cost n * n calls. */
static void *reserve_low(size_t n, size_t align, uintptr_t below)
{
    alloc2_fn *alloc2 = find_alloc2();
    if (!alloc2) return walk_low(n, align, below);
    /* The highest address that VirtualAlloc2 takes is the last one of a step, and no higher than the system's own bound. */
    uintptr_t end = below & ~(uintptr_t)(STEP - 1);
    if (n > end) return NULL;
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    MEM_ADDRESS_REQUIREMENTS range = {.Alignment = align};
    if (end - 1 < (uintptr_t)system.lpMaximumApplicationAddress)
        range.HighestEndingAddress = (void *)(end - 1);
    MEM_EXTENDED_PARAMETER parameter = {.Type = MemExtendedParameterAddressRequirements, .Pointer = &range};
    return alloc2(NULL, NULL, n, MEM_RESERVE, PAGE_NOACCESS, &parameter, 1);
}

/* Reserves at a multiple of align: nothing can be cut off, so that room is found, given back and taken at the
 * right place, unless another thread was faster. */
static void *reserve_aligned(size_t n, size_t align)
{
    enum { TRIES = 8 };
    void *p = NULL;
    for (int i = 0; i < TRIES && !p; i++) {
        void *room = n <= SIZE_MAX - align ? reserve_at(0, n + align) : NULL;
        if (!room) return NULL;
        VirtualFree(room, 0, MEM_RELEASE);
        p = reserve_at(hk_align_up((uintptr_t)room, align), n);
    }
    return p;
}

/* All that Windows gives to programs lies below 2^47. */
static void *os_reserve(void *user, size_t n, size_t align, uintptr_t below)
{
    (void)user;
    void *p = align <= STEP ? reserve_at(0, n) : reserve_aligned(n, align);
    if (p && (!below || (uintptr_t)p + n <= below)) return p;
    if (p) VirtualFree(p, 0, MEM_RELEASE);
    return below ? reserve_low(n, hk_max(align, STEP), below) : NULL;
}

static int os_commit(void *user, void *p, size_t n)
{
    (void)user;
    return VirtualAlloc(p, n, MEM_COMMIT, PAGE_READWRITE) ? 0 : -1;
}

static void os_decommit(void *user, void *p, size_t n)
{
    (void)user;
    VirtualFree(p, n, MEM_DECOMMIT);
}

static void os_release(void *user, void *p, size_t n)
{
    (void)user, (void)n;
    VirtualFree(p, 0, MEM_RELEASE);
}

/* Pages that are not committed cannot be touched anyway, and are left as they are. */
static int os_protect(void *user, void *p, size_t n, bool access)
{
    MEMORY_BASIC_INFORMATION region;
    (void)user;
    for (char *at = p, *end = at + n; at < end; at = (char *)region.BaseAddress + region.RegionSize) {
        DWORD before;
        if (!VirtualQuery(at, &region, sizeof region)) return -1;
        size_t bytes =
            hk_min((size_t)((char *)region.BaseAddress + region.RegionSize - at), (size_t)(end - at));
        bool committed = region.State == MEM_COMMIT;
        if (!committed && access) return -1;
        if (committed && !VirtualProtect(at, bytes, access ? PAGE_READWRITE : PAGE_NOACCESS, &before))
            return -1;
    }
    return 0;
}

bool hk_os_opens(const hak_os *os)
{
    (void)os;
    return false;
}

/* The map of an extent counts as a whole. */
size_t hk_os_reserve(const hak_os *os)
{
    return (size_t)(os->commit == os_commit ? 4 : 64) << 30;
}

/* The table is such a one by itself. */
HAK_API bool hak_os_counted(hak_os *os)
{
    return os->reserve == os_reserve && os->commit == os_commit && os->decommit == os_decommit;
}

size_t hk_os_page(void)
{
    return HK_PAGE;
}

void *hk_os_map(size_t n, size_t align, uintptr_t below)
{
    void *p = os_reserve(NULL, n, align, below);
    if (!p || os_commit(NULL, p, n) == 0) return p;
    os_release(NULL, p, n);
    return NULL;
}

static uint64_t os_clock(void *user)
{
    LARGE_INTEGER now, per_second;
    (void)user;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&per_second);
    uint64_t ticks = (uint64_t)now.QuadPart, rate = (uint64_t)per_second.QuadPart;
    return ticks / rate * 1000000000u + ticks % rate * 1000000000u / rate;
}

static uint64_t os_thread_id(void *user)
{
    (void)user;
    return GetCurrentThreadId();
}

/* A number is used again, by other processes too. One that may not be asked for lives. */
static bool os_thread_alive(void *user, uint64_t id)
{
    (void)user;
    HANDLE thread = OpenThread(SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)id);
    if (!thread) return GetLastError() != ERROR_INVALID_PARAMETER;
    bool alive = GetProcessIdOfThread(thread) == GetCurrentProcessId() &&
                 WaitForSingleObject(thread, 0) == WAIT_TIMEOUT;
    CloseHandle(thread);
    return alive;
}

HAK_API void hak_os_init(hak_os *os, size_t size)
{
    const hak_os table = {.size = size, HK_OS_FUNCTIONS};
    memset(os, 0, size);
    memcpy(os, &table, hk_min(size, sizeof table));
}

void hk_os_yield(void)
{
    SwitchToThread();
}

/* The clock by which threads wake has steps of 1 to 16 ms: shorter sleeps are not to be had. */
void hk_os_sleep(unsigned ns)
{
    Sleep((ns + 999999) / 1000000);
}

#endif
