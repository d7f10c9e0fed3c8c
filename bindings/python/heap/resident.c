#include "heap/resident.h"

#include "base/process.h"
#include "heap/heap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

size_t hkp_resident(void)
{
    char text[128] = "";
    size_t pages = 0;
    int fd = hkp_process_open("statm");
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0 || sscanf(text, "%*s %zu", &pages) != 1) return 0;
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Lines of a file, without stdio, of which a copy of the process may find the locks held. */
typedef struct lines {
    int fd;
    size_t at, end;
    char text[4096];
} lines;

/* The next one, without its end; NULL = there is none. One that is longer than the buffer comes in parts. */
static char *next_line(lines *l)
{
    for (;;) {
        char *line = l->text + l->at, *end = memchr(line, '\n', l->end - l->at);
        if (end) {
            *end = '\0';
            l->at = (size_t)(end - l->text) + 1;
            return line;
        }
        if (l->at == 0 && l->end == sizeof l->text - 1) {
            l->text[l->end] = '\0';
            l->end = 0;
            return line;
        }
        memmove(l->text, line, l->end -= l->at);
        l->at = 0;
        ssize_t n = read(l->fd, l->text + l->end, sizeof l->text - 1 - l->end);
        if (n <= 0) return NULL;
        l->end += (size_t)n;
    }
}

size_t hkp_resident_ours(void)
{
    lines l = {.fd = hkp_process_open("smaps")};
    if (l.fd < 0) return 0;
    size_t sum = 0, inside = 0, whole = 1, kib;
    uintptr_t start, end;
    for (char *line; (line = next_line(&l));) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            inside = hkp_bytes_within(start, end);
            whole = end - start;
        } else if (inside > 0 && sscanf(line, "Rss: %zu kB", &kib) == 1) {
            sum +=
                inside == whole ? kib << 10 : (size_t)((double)(kib << 10) * (double)inside / (double)whole);
            inside = 0;
        }
    }
    close(l.fd);
    return sum;
}

/* Which line tells the memory of a mapping that is no file's: one without a name, [heap], where malloc
 * begins, one named by who mapped it, or a shared one. NULL = it is none of these. */
static const char *taken_by(const char *line)
{
    const char *name = strpbrk(line, "/[");
    if (name && strncmp(name, "/dev/zero ", 10) == 0) return "Rss:";
    return !name || strncmp(name, "[heap]", 6) == 0 || strncmp(name, "[anon", 5) == 0 ? "Anonymous:" : NULL;
}

static bool kib_of(const char *line, const char *name, size_t *kib)
{
    const size_t n = strlen(name);
    return strncmp(line, name, n) == 0 && sscanf(line + n, "%zu", kib) == 1;
}

size_t hkp_resident_past(void)
{
    lines l = {.fd = hkp_process_open("smaps")};
    if (l.fd < 0) return 0;
    size_t sum = 0, whole = 1, others = 0, kib;
    uintptr_t start, end;
    const char *taken = NULL;
    for (char *line; (line = next_line(&l));) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            whole = end - start;
            taken = taken_by(line);
            others = taken ? whole - hkp_bytes_within(start, end) : 0;
        } else if (others > 0 && kib_of(line, taken, &kib)) {
            sum +=
                others == whole ? kib << 10 : (size_t)((double)(kib << 10) * (double)others / (double)whole);
            others = 0;
        }
    }
    close(l.fd);
    return sum;
}

size_t hkp_resident_anonymous_peak(void)
{
    lines l = {.fd = hkp_process_open("status")};
    size_t peak = 0, files = 0, kib;
    if (l.fd < 0) return 0;
    for (char *line; (line = next_line(&l));) {
        if (sscanf(line, "VmHWM: %zu kB", &kib) == 1) peak = kib << 10;
        if (sscanf(line, "RssFile: %zu kB", &kib) == 1 || sscanf(line, "RssShmem: %zu kB", &kib) == 1)
            files += kib << 10;
    }
    close(l.fd);
    return peak > files ? peak - files : 0;
}

size_t hkp_resident_peak(void)
{
    lines l = {.fd = hkp_process_open("status")};
    size_t kib = 0;
    if (l.fd < 0) return 0;
    for (char *line; (line = next_line(&l)) && sscanf(line, "VmHWM: %zu kB", &kib) != 1;)
        continue;
    close(l.fd);
    return kib << 10;
}
