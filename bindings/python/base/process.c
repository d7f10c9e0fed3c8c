#define _GNU_SOURCE
#include "base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    pid_t of, parent; /* 0 = this process */
    struct rusage usage;
} copy;

void hkp_process_copied(pid_t of, pid_t parent, const struct rusage *usage)
{
    copy.of = of;
    copy.parent = parent;
    copy.usage = *usage;
}

pid_t hkp_process(void)
{
    return copy.of ? copy.of : getpid();
}

pid_t hkp_process_parent(void)
{
    return copy.of ? copy.parent : getppid();
}

void hkp_process_usage(struct rusage *usage)
{
    if (copy.of) *usage = copy.usage;
    else getrusage(RUSAGE_SELF, usage);
}

int hkp_process_open(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)hkp_process(), name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

void hkp_command_json(hkp_out *out)
{
    char text[4096];
    size_t n = 0;
    int fd = hkp_process_open("cmdline");
    for (ssize_t more = 1; fd >= 0 && more > 0 && n<sizeof text - 1; n += more> 0 ? (size_t)more : 0)
        more = read(fd, text + n, sizeof text - 1 - n);
    if (fd >= 0) close(fd);
    text[n] = '\0';
    hkp_out_text(out, "[");
    for (size_t at = 0; at < n;) {
        if (at > 0) hkp_out_text(out, ",");
        hkp_out_string(out, text + at);
        while (at < n && text[at])
            at++;
        at++;
    }
    hkp_out_text(out, "]");
}
