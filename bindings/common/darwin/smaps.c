/* The totals of the calling process on macOS; the rest is in elsewhere/smaps.c. */
#include "common/smaps.h"

#include "common/elsewhere/own.h"

#include <crt_externs.h>
#include <mach/mach.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

bool hkc_is_own(pid_t pid)
{
    return pid == 0 || pid == getpid();
}

void hkc_totals_read(hkc_totals *out, pid_t pid)
{
    task_vm_info_data_t now;
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
    memset(out, 0, sizeof *out);
    if (!hkc_is_own(pid) ||
        task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&now, &count) != KERN_SUCCESS)
        return;
    out->resident = now.resident_size;
    out->peak = now.resident_size_peak;
    out->anonymous = now.internal < now.resident_size ? now.internal : now.resident_size;
}

char **hkc_own_arguments(int *count)
{
    *count = *_NSGetArgc();
    return *_NSGetArgv();
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
