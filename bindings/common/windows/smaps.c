/* The totals of the calling process on Windows; the rest is in elsewhere/smaps.c. */
#include "common/smaps.h"

#include "common/elsewhere/own.h"

#define WIN32_LEAN_AND_MEAN
#define PSAPI_VERSION 2 /* its functions are in kernel32 */
#include <windows.h>
/* needs windows.h */
#include <psapi.h>

#include <stdlib.h>
#include <string.h>

bool hkc_is_own(pid_t pid)
{
    return pid == 0 || pid == (pid_t)GetCurrentProcessId();
}

/* Private bytes count whether they are resident or not; no more than is resident is reported. */
void hkc_totals_read(hkc_totals *out, pid_t pid)
{
    PROCESS_MEMORY_COUNTERS_EX now;
    memset(out, 0, sizeof *out);
    memset(&now, 0, sizeof now);
    now.cb = sizeof now;
    if (!hkc_is_own(pid) ||
        !GetProcessMemoryInfo(GetCurrentProcess(), (PROCESS_MEMORY_COUNTERS *)&now, sizeof now))
        return;
    out->resident = now.WorkingSetSize;
    out->peak = now.PeakWorkingSetSize;
    out->anonymous = now.PrivateUsage < now.WorkingSetSize ? now.PrivateUsage : now.WorkingSetSize;
}

/* The C library has taken the command line apart already, in the code page of the program's texts. */
char **hkc_own_arguments(int *count)
{
    *count = __argc;
    return __argv;
}

static double seconds(FILETIME t)
{
    return (double)((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) / 1e7;
}

double hkc_cpu_seconds(void)
{
    FILETIME made, ended, kernel, user;
    if (!GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user)) return 0;
    return seconds(kernel) + seconds(user);
}

/* The parent may be gone, and its number another's. */
pid_t hkc_parent(void)
{
    return 0;
}
