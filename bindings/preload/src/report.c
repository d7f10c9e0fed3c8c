#include "report.h"

#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIGH_FD = 200 };

static const char *path;
static int kept = -1;
static struct stat kept_stat;

typedef struct text {
    char bytes[2048];
    size_t used;
} text;

void hk_report_open(const char *file)
{
    path = file;
    /* Out of the way of programs that count on low numbers. Beside a file it is only for errors, and no
     * reason to keep a pipe open. */
    if (*file == '\0') kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, HIGH_FD);
    if (kept < 0) kept = STDERR_FILENO;
    if (fstat(kept, &kept_stat) != 0) kept = -1;
}

/* The descriptor, if it still is the same file: a program may have closed the number and opened another. */
static int kept_descriptor(void)
{
    struct stat now;
    if (fstat(kept, &now) != 0 || now.st_dev != kept_stat.st_dev || now.st_ino != kept_stat.st_ino) return -1;
    return kept;
}

static __attribute__((format(printf, 2, 3))) void add(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->bytes + t->used, sizeof t->bytes - t->used, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof t->bytes - t->used) t->used += (size_t)n;
}

static void add_bytes(text *t, const char *name, size_t bytes, const char *what)
{
    add(t, "  %-10s %14zu %11.2f MiB  %s\n", name, bytes, (double)bytes / (1 << 20), what);
}

static void compose(text *t)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx *ctx = hk_heap_shared();
    if (ctx == NULL || hak_ctx_stats(ctx, &s) != 0) return;
    add(t, "hakmem %s: %s, process %d\n", hak_version(), hk_heap_name, (int)getpid());
    add_bytes(t, "live", s.live_bytes, "");
    t->used -= strlen("\n");
    add(t, "in %zu blocks\n", s.live_blocks);
    add_bytes(t, "cached", s.cached_bytes, "free, kept for the next blocks");
    add_bytes(t, "metadata", s.metadata_bytes, "bitmaps and tables of hakmem");
    add_bytes(t, "committed", s.committed_bytes, "the sum of these three");
    add_bytes(t, "released", s.released_bytes, "part of cached that is back at the system");
    add_bytes(t, "idle", s.idle_bytes, "recycled pages beside what is committed");
    add_bytes(t, "peak", s.peak_bytes, "highest live so far");
    if (s.hard_limit != 0) add_bytes(t, "limit", s.hard_limit, "of committed bytes");
    add(t, "  %-10s %14zu                  that allocated, %zu of them now\n", "threads", hk_heap_threads(),
        hk_heap_threads_now());
    add(t, "  %-10s %14llu                  allocations refused\n", "failures",
        (unsigned long long)s.failures);
}

static bool write_all(int fd, const text *t)
{
    /* The rest once more after a short write, to learn why. */
    for (size_t done = 0; done < t->used;) {
        ssize_t n = fd >= 0 ? write(fd, t->bytes + done, t->used - done) : -1;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

void hk_report_write(void)
{
    text t = {.used = 0};
    compose(&t);
    if (*path == '\0') {
        write_all(kept_descriptor(), &t);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (!write_all(fd, &t)) {
        text why = {.used = 0};
        add(&why, "hakmem: HAKMEM: no report in %.1000s: %s\n", path, strerror(errno));
        write_all(kept_descriptor(), &why);
    }
    if (fd >= 0) close(fd);
}
