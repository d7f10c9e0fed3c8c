/* Windows does not tell which page belongs to what: reports there have the totals, and no list of parts. */
#include "common/smaps.h"

#define WIN32_LEAN_AND_MEAN
#define PSAPI_VERSION 2 /* its functions are in kernel32 */
#include <windows.h>
/* needs windows.h */
#include <psapi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hkc_smaps_read(hkc_smaps *maps, pid_t pid)
{
    (void)pid;
    memset(maps, 0, sizeof *maps);
    return false;
}

bool hkc_smaps_read_fd(hkc_smaps *maps, int fd)
{
    (void)fd;
    return hkc_smaps_read(maps, 0);
}

void hkc_smaps_close(hkc_smaps *maps)
{
    memset(maps, 0, sizeof *maps);
}

/* ---- Totals, of the calling process ----------------------------------------------------------------- */

static bool is_own(pid_t pid)
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
    if (!is_own(pid) ||
        !GetProcessMemoryInfo(GetCurrentProcess(), (PROCESS_MEMORY_COUNTERS *)&now, sizeof now))
        return;
    out->resident = now.WorkingSetSize;
    out->peak = now.PeakWorkingSetSize;
    out->anonymous = now.PrivateUsage < now.WorkingSetSize ? now.PrivateUsage : now.WorkingSetSize;
}

int hkc_proc_open(pid_t pid, const char *name)
{
    (void)pid, (void)name;
    return -1;
}

size_t hkc_resident_within(int pagemap, uintptr_t start, uintptr_t end)
{
    (void)pagemap, (void)start, (void)end;
    return 0;
}

size_t hkc_resident_of(pid_t pid)
{
    hkc_totals all;
    hkc_totals_read(&all, pid);
    return all.resident;
}

/* The C library has taken the command line apart already, in the code page of the program's texts. */
size_t hkc_command_of(pid_t pid, char *text, size_t size)
{
    size_t n = 0;
    for (int i = 0; is_own(pid) && i < __argc && __argv; i++) {
        const size_t length = strlen(__argv[i]) + 1;
        if (length > size - 1 - n) break;
        memcpy(text + n, __argv[i], length);
        n += length;
    }
    text[n] = '\0';
    return n;
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
