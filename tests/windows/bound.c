/* Reserves below a bound under which Windows chooses no addresses by itself. The test looks at the bound, and
 * counts calls of Windows: a reservation after thousands of others makes as many as the first. With the
 * argument "old", Windows has no VirtualAlloc2. */
#include <windows.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool old, none; /* none: Windows finds no addresses by itself */
static long calls;

static SIZE_T query(const void *p, MEMORY_BASIC_INFORMATION *region, SIZE_T n)
{
    calls++;
    return VirtualQuery(p, region, n);
}

/* Wine chooses the lowest free addresses, Windows chooses high ones. */
static void *alloc(void *p, SIZE_T n, DWORD kind, DWORD protection)
{
    calls++;
    if (none && !p) return NULL;
#ifdef MEM_TOP_DOWN
    if (!p && kind == MEM_RESERVE) kind |= MEM_TOP_DOWN;
#endif
    return VirtualAlloc(p, n, kind, protection);
}

static FARPROC procedure(HMODULE library, const char *name)
{
    calls++;
    return old ? NULL : GetProcAddress(library, name);
}

#define VirtualQuery query
#define VirtualAlloc alloc
#define GetProcAddress procedure
#include "base/os_windows.c"

enum { BYTES = 64 << 10 };
static const uintptr_t bound = (uintptr_t)1 << 31;

static int failures;

static void check(bool ok, const char *what)
{
    if (ok) return;
    failures++;
    printf("failed: %s\n", what);
}

/* Returns how many calls n reservations make. */
static long reserve(int n, size_t align)
{
    long before = calls;
    bool ok = true;
    for (int i = 0; i < n; i++) {
        void *p = os_reserve(NULL, BYTES, align, bound);
        ok &= p && (uintptr_t)p + BYTES <= bound && (uintptr_t)p % align == 0;
    }
    check(ok, "reservations below the bound, at multiples of align");
    return calls - before;
}

int main(int argc, char **argv)
{
    old = argc > 1 && strcmp(argv[1], "old") == 0;
    /* The walk takes seconds for thousands. */
    const int n = old ? 100 : 1000;
    const long first = reserve(n, HK_PAGE), others = reserve(3 * n, HK_PAGE);
    printf("%ld calls for %d reservations, %ld for %d more\n", first, n, others, 3 * n);
    check(first > n, "the system's own choice is above the bound");
    if (!old) check(others == 3 * first, "calls do not grow with the number of reservations");
    reserve(10, HK_CHUNK);
    check(!os_reserve(NULL, BYTES, HK_PAGE, HK_PAGE), "no room below one page");
    check(!os_reserve(NULL, bound, HK_PAGE, bound), "no room for all that lies below the bound");
    void *p = os_reserve(NULL, BYTES, HK_PAGE, bound);
    check(p && os_commit(NULL, p, BYTES) == 0, "pages below the bound can be committed");
    if (p) os_release(NULL, p, BYTES);
    none = true;
    p = os_reserve(NULL, BYTES, HK_PAGE, (uintptr_t)1 << 47);
    check(p, "a bound above all addresses that programs have");
    if (p) os_release(NULL, p, BYTES);
    return failures;
}
