/* Reports on macOS have the totals of the process, and no list of its parts: there is no /proc. */
#include "common/smaps.h"

#include <crt_externs.h>
#include <mach/mach.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
    return pid == 0 || pid == getpid();
}

void hkc_totals_read(hkc_totals *out, pid_t pid)
{
    task_vm_info_data_t now;
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
    memset(out, 0, sizeof *out);
    if (!is_own(pid) || task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&now, &count) != KERN_SUCCESS)
        return;
    out->resident = now.resident_size;
    out->peak = now.resident_size_peak;
    out->anonymous = now.internal < now.resident_size ? now.internal : now.resident_size;
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

size_t hkc_command_of(pid_t pid, char *text, size_t size)
{
    char **const arguments = *_NSGetArgv();
    const int count = is_own(pid) && arguments ? *_NSGetArgc() : 0;
    size_t n = 0;
    for (int i = 0; i < count && arguments[i]; i++) {
        const size_t length = strlen(arguments[i]) + 1;
        if (length > size - 1 - n) break;
        memcpy(text + n, arguments[i], length);
        n += length;
    }
    text[n] = '\0';
    return n;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

double hkc_cpu_seconds(void)
{
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? seconds(used.ru_utime) + seconds(used.ru_stime) : 0;
}

pid_t hkc_parent(void)
{
    return getppid();
}
