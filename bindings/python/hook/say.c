#define _GNU_SOURCE
#include "hook/say.h"

#include "common/file.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIGH = 200 }; /* out of the way of programs that count on low numbers */

static bool there;
static dev_t device;
static ino_t inode;
static int kept = -1;

static bool is_it(int fd)
{
    struct stat now;
    return there && fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == device && now.st_ino == inode;
}

void hkp_say_begin(void)
{
    struct stat now;
    there = fstat(STDERR_FILENO, &now) == 0;
    if (!there) return;
    device = now.st_dev;
    inode = now.st_ino;
}

bool hkp_say_keep(void)
{
    if (is_it(STDERR_FILENO)) kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, HIGH);
    return hkp_say_descriptor() >= 0;
}

void hkp_say_in_child(void)
{
    if (is_it(kept)) close(kept);
    kept = -1;
}

int hkp_say_descriptor(void)
{
    if (is_it(kept)) return kept;
    return is_it(STDERR_FILENO) ? STDERR_FILENO : -1;
}

void hkp_say(const char *format, ...)
{
    char text[HKC_FILE_NAME + 256];
    const int fd = hkp_say_descriptor();
    if (fd < 0) return;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0) (void)hkc_pipe_write(fd, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
