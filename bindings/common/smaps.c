#include "common/smaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* A process has 65,530 mappings at most, unless its system was told to grant more. */
enum { MAPPINGS = 1 << 17, NAMES = 2048, SLOTS = 2 * NAMES };

/* Pages that are not touched cost nothing: one reservation has room for all tables. */
typedef struct tables {
    hkc_mapping at[MAPPINGS];
    char names[NAMES][HKC_MAPPING_NAME];
    uint64_t hashes[NAMES]; /* of whole names */
    size_t sums[2 * NAMES];
    uint16_t slots[SLOTS]; /* places of names by hash; 0 = free */
    hkc_lines in;
} tables;

/* ---- Lines ---------------------------------------------------------------------------------------- */

int hkc_proc_open(pid_t pid, const char *name)
{
    char path[64];
    if (pid) snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    else snprintf(path, sizeof path, "/proc/self/%s", name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

char *hkc_next_line(hkc_lines *l)
{
    for (bool cut = false;;) {
        char *line = l->text + l->at, *end = memchr(line, '\n', l->end - l->at);
        if (end) {
            *end = '\0';
            l->at = (size_t)(end - l->text) + 1;
            if (!cut) return line;
            cut = false;
            continue;
        }
        if (l->at == 0 && l->end == sizeof l->text) {
            /* No line that is looked at is as long: a path is shorter. */
            l->end = 0;
            cut = true;
        }
        memmove(l->text, l->text + l->at, l->end -= l->at);
        l->at = 0;
        const ssize_t n = read(l->fd, l->text + l->end, sizeof l->text - l->end);
        if (n <= 0) return NULL;
        l->end += (size_t)n;
    }
}

static const char *hexadecimal(const char *text, uintptr_t *n)
{
    const char *from = text;
    *n = 0;
    for (;; text++) {
        const char *digits = "0123456789abcdef", *digit = *text ? strchr(digits, *text) : NULL;
        if (!digit) return text > from ? text : NULL;
        *n = *n << 4 | (uintptr_t)(digit - digits);
    }
}

/* Returns what stands behind the blanks and so many words. */
static const char *behind(const char *text, int words)
{
    for (text += strspn(text, " "); words > 0; words--) {
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    return text;
}

bool hkc_kilobytes(const char *line, const char *name, size_t *bytes)
{
    const size_t n = strlen(name);
    if (strncmp(line, name, n) != 0) return false;
    *bytes = 0;
    for (line += n + strspn(line + n, " \t"); *line >= '0' && *line <= '9'; line++)
        *bytes = *bytes * 10 + (size_t)(*line - '0');
    *bytes <<= 10;
    return true;
}

/* ---- Names ---------------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Returns the place of a name, which is told apart from others by all of it; 0 = there is no room. */
static uint32_t place_of(hkc_smaps *m, tables *t, const char *whole, const char *shown, size_t n)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = whole; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001B3u;
    size_t slot = (size_t)(hash >> 32) % SLOTS;
    for (; t->slots[slot]; slot = (slot + 1) % SLOTS)
        if (t->hashes[t->slots[slot]] == hash) return t->slots[slot];
    if (m->name_count == NAMES) return 0;
    if (n >= HKC_MAPPING_NAME) n = HKC_MAPPING_NAME - 1;
    t->hashes[m->name_count] = hash;
    memcpy(t->names[m->name_count], shown, n);
    t->slots[slot] = (uint16_t)m->name_count;
    return (uint32_t)m->name_count++;
}

static void name_file(hkc_smaps *m, tables *t, hkc_mapping *p, const char *path)
{
    static const char deleted[] = " (deleted)";
    const char *slash = strrchr(path, '/'), *shown = slash ? slash + 1 : path;
    size_t n = strlen(shown);
    if (n >= sizeof deleted && strcmp(shown + n - (sizeof deleted - 1), deleted) == 0)
        n -= sizeof deleted - 1;
    p->kind = HKC_MAPPING_FILE;
    p->name = place_of(m, t, path, shown, n);
}

static void name_mapping(hkc_smaps *m, tables *t, hkc_mapping *p, const char *name)
{
    static const char *const shared[] = {"/memfd:", "/dev/zero", "/dev/shm/", "/SYSV", "[anon_shmem:"};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        if (begins(name, shared[i])) p->kind = HKC_MAPPING_SHARED;
    if (p->kind == HKC_MAPPING_SHARED) return;
    if (*name == '/') name_file(m, t, p, name);
    else if (begins(name, "[heap]")) p->kind = HKC_MAPPING_MALLOC;
    else if (begins(name, "[stack]")) p->kind = HKC_MAPPING_MAIN_STACK;
    /* glibc says so itself if glibc.mem.decorate_maps is set. */
    else if (begins(name, "[anon: glibc: malloc")) p->kind = HKC_MAPPING_MALLOC;
    else if (begins(name, "[anon: glibc: pthread") || begins(name, "[stack:")) p->kind = HKC_MAPPING_STACK;
    else if (begins(name, "[anon:")) {
        const char *shown = name + sizeof "[anon:" - 1;
        shown += strspn(shown, " ");
        p->kind = HKC_MAPPING_NAMED;
        p->name = place_of(m, t, name, shown, strcspn(shown, "]"));
    } else if (*name == '[') p->kind = HKC_MAPPING_SYSTEM;
    else if (*name) name_file(m, t, p, name); /* anon_inode:... */
}

/* ---- What mappings beside each other tell --------------------------------------------------------- */

enum {
    ARENA = 64 << 20,
    GUARD_MOST = 1 << 20,
    STACK_LEAST = 16 << 10,
    STACK_MOST = ARENA,
    ZEROED_MOST = 8 << 20
};

static bool plain(const hkc_mapping *p)
{
    return p->kind == HKC_MAPPING_ANONYMOUS && p->readable && p->writable && !p->executable;
}

/* glibc cuts an arena from 64 MiB that begin at a multiple of these: what is in use, then what is not yet. */
static bool is_arena(const hkc_mapping *p, const hkc_mapping *next)
{
    if (!plain(p) || p->start % ARENA != 0 || p->end - p->start > ARENA) return false;
    return p->end - p->start == ARENA ||
           (next && next->start == p->end && !next->readable && next->end == p->start + ARENA);
}

/* Below a stack is a guard that nobody may touch; or, since Linux 6.7, a mapping that was made as a stack has
 * no huge pages. */
static bool is_stack(const hkc_mapping *p, const hkc_mapping *before)
{
    const size_t n = p->end - p->start;
    if (!plain(p) || n < STACK_LEAST || n > STACK_MOST) return false;
    const bool guarded = before && before->end == p->start && !before->readable && !before->writable &&
                         before->kind == HKC_MAPPING_ANONYMOUS && before->end - before->start <= GUARD_MOST;
    return guarded || p->no_huge;
}

/* What a library has of zeroed data beyond its file lies behind the part that can be written to. */
static bool is_zeroed(const hkc_mapping *p, const hkc_mapping *before)
{
    return plain(p) && before && before->end == p->start && before->kind == HKC_MAPPING_FILE &&
           before->writable && p->end - p->start <= ZEROED_MOST;
}

static void look_beside(hkc_smaps *m)
{
    for (size_t i = 0; i < m->count; i++) {
        hkc_mapping *p = &m->at[i];
        const hkc_mapping *before = i > 0 ? p - 1 : NULL, *next = i + 1 < m->count ? p + 1 : NULL;
        if (p->kind != HKC_MAPPING_ANONYMOUS) continue;
        if (p->executable) p->kind = HKC_MAPPING_CODE;
        else if (is_arena(p, next)) p->kind = HKC_MAPPING_MALLOC;
        else if (is_zeroed(p, before)) {
            p->kind = HKC_MAPPING_FILE;
            p->name = before->name;
        } else if (is_stack(p, before)) p->kind = HKC_MAPPING_STACK;
    }
}

/* ---- The file ------------------------------------------------------------------------------------- */

static bool begin_mapping(hkc_smaps *m, tables *t, const char *line, hkc_mapping *p)
{
    uintptr_t start, end;
    const char *at = hexadecimal(line, &start);
    if (!at || *at != '-' || !(at = hexadecimal(at + 1, &end)) || *at != ' ' || strlen(at) < 5) return false;
    *p = (hkc_mapping){.start = start,
                       .end = end,
                       .readable = at[1] == 'r',
                       .writable = at[2] == 'w',
                       .executable = at[3] == 'x'};
    name_mapping(m, t, p, behind(at, 4));
    /* Without a name and shared: of a parent's and its children's. */
    if (p->kind == HKC_MAPPING_ANONYMOUS && at[4] == 's') p->kind = HKC_MAPPING_SHARED;
    return true;
}

static void read_detail(const char *line, hkc_mapping *p)
{
    if (hkc_kilobytes(line, "Rss:", &p->resident) || hkc_kilobytes(line, "Anonymous:", &p->own)) return;
    if (begins(line, "VmFlags:") && strstr(line, " nh")) p->no_huge = true;
}

bool hkc_smaps_read_fd(hkc_smaps *m, int fd)
{
    hkc_mapping none, *p = &none;
    tables *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t == MAP_FAILED) return false;
    *m = (hkc_smaps){.at = t->at, .names = t->names, .name_count = 1, .sums = t->sums};
    t->in.fd = fd;
    for (char *line; (line = hkc_next_line(&t->in));) {
        /* Names of details begin with a capital. */
        if (*line >= 'A' && *line <= 'Z') {
            read_detail(line, p);
            if (p == &none && hkc_kilobytes(line, "Rss:", &none.resident)) m->beyond += none.resident;
            continue;
        }
        p = m->count < MAPPINGS ? &m->at[m->count] : &none;
        /* One of the kernel's own, above all addresses of the process. */
        if (!begin_mapping(m, t, line, p)) p = &none;
        else if (p != &none) m->count++;
    }
    if (m->count == 0) hkc_smaps_close(m);
    else look_beside(m);
    return m->at;
}

bool hkc_smaps_read(hkc_smaps *m, pid_t pid)
{
    const int fd = hkc_proc_open(pid, "smaps");
    const bool ok = fd >= 0 && hkc_smaps_read_fd(m, fd);
    if (fd >= 0) close(fd);
    return ok;
}

void hkc_smaps_close(hkc_smaps *m)
{
    if (m->at) munmap(m->at, sizeof(tables));
    *m = (hkc_smaps){0};
}

/* ---- Totals --------------------------------------------------------------------------------------- */

/* Reads as much of the file as there is room for, and puts a 0 behind it. */
static size_t read_of(pid_t pid, const char *name, char *text, size_t size)
{
    const int fd = hkc_proc_open(pid, name);
    size_t n = 0;
    ssize_t more;
    while (fd >= 0 && n < size - 1 && (more = read(fd, text + n, size - 1 - n)) > 0)
        n += (size_t)more;
    if (fd >= 0) close(fd);
    text[n] = '\0';
    return n;
}

size_t hkc_resident_within(int pagemap, uintptr_t start, uintptr_t end)
{
    enum { ENTRIES = 128, PRESENT = 63 }; /* few: threads with small stacks come here. The bit: pagemap.rst */
    uint64_t entries[ENTRIES];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t sum = 0;
    ssize_t n = 0;
    for (uintptr_t at = start / page, last = end / page; at < last; at += (size_t)n) {
        const size_t wanted = last - at < ENTRIES ? last - at : ENTRIES;
        n = pread(pagemap, entries, wanted * sizeof *entries, (off_t)(at * sizeof *entries));
        n /= (ssize_t)sizeof *entries;
        if (n <= 0) break;
        for (ssize_t i = 0; i < n; i++)
            sum += entries[i] >> PRESENT ? page : 0;
    }
    return sum;
}

size_t hkc_resident_of(pid_t pid)
{
    char text[96];
    const int before = errno; /* windows of profiles begin inside of allocations */
    read_of(pid, "statm", text, sizeof text);
    errno = before;
    const char *second = strchr(text, ' ');
    return second ? (size_t)strtoull(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

void hkc_totals_read(hkc_totals *out, pid_t pid)
{
    hkc_lines in = {.fd = hkc_proc_open(pid, "status")};
    *out = (hkc_totals){0};
    for (char *line; in.fd >= 0 && (line = hkc_next_line(&in)) != NULL;)
        if (!hkc_kilobytes(line, "VmRSS:", &out->resident) && !hkc_kilobytes(line, "VmHWM:", &out->peak))
            hkc_kilobytes(line, "RssAnon:", &out->anonymous);
    if (in.fd >= 0) close(in.fd);
}

size_t hkc_command_of(pid_t pid, char *text, size_t size)
{
    return read_of(pid, "cmdline", text, size);
}

double hkc_cpu_seconds(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

pid_t hkc_parent(void)
{
    return getppid();
}
