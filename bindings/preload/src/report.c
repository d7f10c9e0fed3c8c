#include "report.h"

#include "common/file.h"
#include "common/mapped.h"
#include "common/pipe.h"
#include "common/report.h"
#include "common/stream.h"
#include "context.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *path;
static pid_t told; /* the process that said at its start that there will be no report */

static hkc_stream errors = {.fd = -1}, stream = {.fd = -1};

/* Room for a line, and for a report, which has a row for each label of a program with tokens. */
enum { LINE_BYTES = 2048, REPORT_BYTES = 64 << 10, LABELS = HAK_LABELS_MAX + 1 };
typedef struct text {
    char *bytes;
    size_t room, used;
} text;
#define TEXT(bytes)                                                                                          \
    {                                                                                                        \
        bytes, sizeof(bytes), 0                                                                              \
    }

static int try_append(const char *file)
{
    char target[HKC_FILE_NAME];
    const int too_long = hkc_file_of_process(file, getpid(), target);
    const int error = too_long ? too_long : hkc_file_try_append(target);
    if (error) hks_report_failed("report", too_long ? file : target, error);
    return error;
}

void hks_report_open(const char *file)
{
    const int error = *file != '\0' ? try_append(file) : 0;
    if (error) told = getpid();
    path = file;
    /* Beside a file it is only for errors, and no reason to keep a pipe open unless there is one already. */
    if (*file == '\0' || error) hkc_stream_keep(&errors, STDERR_FILENO);
    if (errors.fd < 0) hkc_stream_note(&errors, STDERR_FILENO);
    /* Programs close their standard output before the report comes, or write what is left in a buffer after it. */
    if (*file != '\0' && !error) hkc_stream_keep(&stream, hkc_file_descriptor(file));
}

/* Before the start of the program it is standard error. */
int hks_report_descriptor(void)
{
    return path ? hkc_stream_now(&errors) : STDERR_FILENO;
}

static void put(void *to, const char *bytes, size_t n)
{
    text *t = to;
    if (n > t->room - t->used) return;
    memcpy(t->bytes + t->used, bytes, n);
    t->used += n;
}

static __attribute__((format(printf, 2, 3))) void add(text *t, const char *format, ...)
{
    char line[1300];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof line) put(t, line, (size_t)n);
}

hkc_parts *hks_report_parts(void)
{
    hak_ctx *ctx = hks_context_made();
    const bool maps = hkc_mapped_measure(0) > 0;
    hkc_parts *parts = hkc_parts_begin(0);
    if (parts) hkc_parts_context(parts, ctx);
    if (parts && maps) {
        hkc_parts_context(parts, hkc_mapped_context());
        hkc_mapped_parts(parts);
    }
    hkc_parts_end(parts);
    return parts;
}

/* Labels are those of a program with tokens; there is room for LABELS. */
static void compose(text *t, hak_label_info *labels)
{
    hkc_report report = {.name = hks_process.name, .note = ""};
    hak_ctx *ctx = hks_context_made();
    if (!ctx) return;
    hkc_report_take(&report, ctx, labels);
    if (!hak_label_name(ctx, 1)) report.label_count = 0;
    hkc_parts *parts = hks_report_parts();
    report.stats.hard_limit = hks_settings_get()->limit;
    report.parts = parts;
    report.threads = atomic_load(&hks_process.threads);
    report.threads_now = report.threads - atomic_load(&hks_process.threads_gone);
    hkc_report_put(&report, put, t);
    hkc_parts_close(parts);
}

static bool write_bytes(int fd, const char *bytes, size_t size)
{
    if (fd < 0) return false;
    const int error = hkc_pipe_write_all(fd, bytes, size);
    if (error) errno = error;
    return !error;
}

static bool write_all(int fd, const text *t)
{
    return write_bytes(fd, t->bytes, t->used);
}

/* In pages: a thread with a small stack may end the process. Behind the text is the room for labels. false =
 * there is no memory. */
enum { REPORT_PAGES = REPORT_BYTES + LABELS * sizeof(hak_label_info) };
static bool compose_report(text *t)
{
    char *p = mmap(NULL, REPORT_PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    *t = (text){p, REPORT_BYTES, 0};
    compose(t, (hak_label_info *)(void *)(p + REPORT_BYTES));
    return true;
}

static void write_file(const text *t)
{
    char target[HKC_FILE_NAME];
    const int too_long = hkc_file_of_process(path, getpid(), target);
    const int beside = hkc_stream_now(&stream);
    if (beside >= 0 && write_all(beside, t)) return;
    const int fd = too_long ? -1 : hkc_file_open_at_once(target, O_CREAT | O_APPEND, 0666);
    if (too_long) errno = too_long;
    const bool known = told != 0 && told != getpid(); /* of a forked child */
    if (!write_all(fd, t) && !known) hks_report_failed("report", too_long ? path : target, errno);
    if (fd >= 0) close(fd);
}

void hks_report_write(void)
{
    text t;
    if (!compose_report(&t)) return;
    if (*path == '\0') write_all(hks_report_descriptor(), &t);
    else write_file(&t);
    munmap(t.bytes, REPORT_PAGES);
}

void hks_report_print(void (*print)(void *to, const char *text), void *to)
{
    text t;
    if (!compose_report(&t)) return;
    if (t.used == t.room) t.used--;
    t.bytes[t.used] = '\0';
    if (print) print(to, t.bytes);
    else write_all(STDERR_FILENO, &t);
    munmap(t.bytes, REPORT_PAGES);
}

void hks_report_failed(const char *what, const char *file, int error)
{
    char bytes[LINE_BYTES];
    text why = TEXT(bytes);
    add(&why, "hakmem: HAKMEM: no %s in %.1000s: %s\n", what, file, strerror(error));
    write_all(hks_report_descriptor(), &why);
}

void hks_report_try(const char *what, const char *file)
{
    const int error = hkc_file_try(file);
    if (error) hks_report_failed(what, file, error);
}

void hks_report_stop(const char *why)
{
    char bytes[LINE_BYTES];
    text line = TEXT(bytes);
    add(&line, "hakmem: HAKMEM: %.1000s; the program is not started\n", why);
    write_all(hks_report_descriptor(), &line);
    _exit(HKS_STATUS);
}

void hks_report_line(const char *what)
{
    char bytes[LINE_BYTES];
    text line = TEXT(bytes);
    add(&line, "hakmem: HAKMEM: %.1000s\n", what);
    write_all(hks_report_descriptor(), &line);
}

void hks_report_text(const char *bytes, size_t n)
{
    write_bytes(hks_report_descriptor(), bytes, n);
}

bool hks_report_misuse(const char *error, const void *p, const char *what)
{
    static atomic_uint lines;
    unsigned before = atomic_load(&lines);
    do {
        if (before > HKS_MISUSE_LINES) return false;
    } while (!atomic_compare_exchange_weak(&lines, &before, before + 1));
    char bytes[LINE_BYTES];
    text t = TEXT(bytes);
    if (before < HKS_MISUSE_LINES) add(&t, "hakmem: process %d: %s: %p: %s\n", (int)getpid(), error, p, what);
    else add(&t, "hakmem: process %d: further misuse is not reported\n", (int)getpid());
    write_all(hks_report_descriptor(), &t);
    return before < HKS_MISUSE_LINES;
}
