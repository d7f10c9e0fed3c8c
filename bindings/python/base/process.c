#define _GNU_SOURCE
#include "base/process.h"

#include <sys/resource.h>
#include <unistd.h>

static struct {
    pid_t of, parent; /* 0 = this process */
    uint64_t cpu;
} copy;

/* Processor time at the beginning of the program; children of a fork begin with none. */
static struct {
    pid_t of;
    uint64_t cpu;
} before;

static uint64_t microseconds(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static uint64_t cpu_of_process(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime);
}

void hkp_process_begin(void)
{
    before.of = getpid();
    before.cpu = cpu_of_process();
}

void hkp_process_copied(pid_t of, pid_t parent, uint64_t cpu)
{
    copy.of = of;
    copy.parent = parent;
    copy.cpu = cpu;
}

pid_t hkp_process(void)
{
    return copy.of ? copy.of : getpid();
}

pid_t hkp_process_parent(void)
{
    return copy.of ? copy.parent : getppid();
}

uint64_t hkp_process_cpu(void)
{
    if (copy.of) return copy.cpu;
    uint64_t now = cpu_of_process(), then = before.of == getpid() ? before.cpu : 0;
    return now > then ? now - then : 0;
}
