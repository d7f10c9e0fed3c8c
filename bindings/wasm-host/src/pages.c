#define _GNU_SOURCE
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/* linux/fs.h has these since Linux 6.7, and a compiler for musl may have no headers of Linux at all. */
struct pm_scan_arg {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define PAGEMAP_SCAN _IOWR('f', 16, struct pm_scan_arg)
#define PAGE_IS_FILE (1u << 2)
#define PAGE_IS_PRESENT (1u << 3)
#define PAGE_IS_SWAPPED (1u << 4)
#define PAGE_IS_PFNZERO (1u << 5)

/* Bits of an entry of the pagemap. */
#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_FILE (UINT64_C(1) << 61)

/* In a private mapping of a file a page is written to exactly if it is there and is not the file's. The
 * page of zeros stands for anonymous pages that were only read. */
static int scan(hkw_walk *walk, int fd)
{
    struct pm_scan_arg arg = {
        .size = sizeof arg,
        .start = walk->at,
        .end = walk->end,
        .vec = (uint64_t)(uintptr_t)walk->ranges,
        .vec_len = HKW_RANGES,
        .category_inverted = PAGE_IS_FILE | PAGE_IS_PFNZERO,
        .category_mask = PAGE_IS_FILE | PAGE_IS_PFNZERO,
        .category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
        .return_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
    };
    /* musl's ioctl takes the request as an int, which this number does not fit into. */
    long n = syscall(SYS_ioctl, fd, PAGEMAP_SCAN, &arg);
    if (n < 0) return -1;
    walk->count = (unsigned)n;
    walk->at = (uintptr_t)arg.walk_end;
    return 0;
}

static bool is_own(uint64_t entry)
{
    return (entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) && !(entry & ENTRY_FILE);
}

static int read_entries(hkw_walk *walk, int fd)
{
    enum { ENTRIES = 512 };
    uint64_t entries[ENTRIES];
    while (walk->at < walk->end && walk->count == 0) {
        size_t n = (walk->end - walk->at) / HKW_PAGE;
        if (n > ENTRIES) n = ENTRIES;
        if (pread(fd, entries, n * 8, (off_t)(walk->at / HKW_PAGE * 8)) != (ssize_t)(n * 8)) return -1;
        size_t i = 0;
        while (i < n && walk->count < HKW_RANGES) {
            if (!is_own(entries[i])) {
                i++;
                continue;
            }
            size_t first = i;
            while (i < n && is_own(entries[i]))
                i++;
            walk->ranges[walk->count++] =
                (hkw_range){walk->at + first * HKW_PAGE, walk->at + i * HKW_PAGE, 0};
        }
        walk->at += i * HKW_PAGE;
    }
    return 0;
}

static int ask(hkw_walk *walk, int fd)
{
    return walk->pages->method == HAK_WASM_DIRTY_SCAN ? scan(walk, fd) : read_entries(walk, fd);
}

/* Whether a page that is known to be written to is found; with the wrong answer nothing would be cleared. */
static bool works(hkw_pages *pages, int fd)
{
    char *p = mmap(NULL, 3 * HKW_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    p[HKW_PAGE] = 1;
    hkw_walk walk;
    hkw_walk_begin(&walk, pages, p, 3 * HKW_PAGE);
    const uintptr_t written = (uintptr_t)p + HKW_PAGE;
    bool found = ask(&walk, fd) == 0 && walk.at >= walk.end && walk.count == 1 &&
                 walk.ranges[0].start == written && walk.ranges[0].end == written + HKW_PAGE;
    munmap(p, 3 * HKW_PAGE);
    return found;
}

/* The descriptor of this process, opened anew in a child and where the program has closed it; -1 = there is
 * none. */
static int pagemap(hkw_pages *pages)
{
    int fd = hkw_file_get(pages->pagemap);
    if (fd >= 0) return fd;
    pthread_mutex_lock(&pages->lock);
    fd = hkw_file_get(pages->pagemap);
    if (fd < 0) {
        fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && !works(pages, fd)) {
            close(fd);
            fd = -1;
        }
        fd = hkw_file_set(pages->pagemap, fd);
    }
    pthread_mutex_unlock(&pages->lock);
    return fd;
}

/* Other files can be read like a pagemap, but the ioctl fails on them: with it, a walk asks whose number it
 * is only after that, since the question takes as long as a short walk. */
static int fill(hkw_walk *walk)
{
    hkw_pages *pages = walk->pages;
    if (walk->fd < 0 && pages->method == HAK_WASM_DIRTY_SCAN) walk->fd = hkw_file_number(pages->pagemap);
    if (walk->fd >= 0 && ask(walk, walk->fd) == 0) return 0;
    walk->fd = pagemap(pages);
    return walk->fd >= 0 ? ask(walk, walk->fd) : -1;
}

void hkw_walk_begin(hkw_walk *walk, hkw_pages *pages, const void *base, size_t n)
{
    walk->pages = pages;
    walk->at = (uintptr_t)base;
    walk->end = walk->at + ((n + HKW_PAGE - 1) & ~(HKW_PAGE - 1));
    walk->fd = -1;
    walk->next = walk->count = 0;
}

int hkw_walk_next(hkw_walk *walk, hkw_range *range)
{
    while (walk->next == walk->count) {
        if (walk->at >= walk->end) return 0;
        if (walk->pages->method == HAK_WASM_DIRTY_COMPARE) return -1;
        walk->next = walk->count = 0;
        if (fill(walk) != 0) return -1;
    }
    *range = walk->ranges[walk->next++];
    return 1;
}

int hkw_pages_init(hkw_pages *pages, hak_wasm_dirty wanted)
{
    void *page = mmap(NULL, HKW_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return -1;
    pthread_mutex_init(&pages->lock, NULL);
    pages->pagemap = page;
    bool wipes = madvise(page, HKW_PAGE, MADV_WIPEONFORK) == 0;
    for (pages->method = wanted == HAK_WASM_DIRTY_AUTO ? HAK_WASM_DIRTY_SCAN : wanted;; pages->method++) {
        if (pages->method == HAK_WASM_DIRTY_COMPARE || (wipes && pagemap(pages) >= 0)) return 0;
        if (wanted != HAK_WASM_DIRTY_AUTO) break;
    }
    hkw_pages_destroy(pages);
    return -1;
}

void hkw_pages_destroy(hkw_pages *pages)
{
    hkw_file_close(pages->pagemap);
    munmap(pages->pagemap, HKW_PAGE);
    pthread_mutex_destroy(&pages->lock);
}

/* MADV_DONTNEED fails on mappings of our own where pages are locked, as by mlockall(); Linux before 5.18 has
 * nothing for these. A filter of system calls may refuse both. */
bool hkw_pages_return(void *base, size_t n)
{
    size_t whole = (n + HKW_PAGE - 1) & ~(HKW_PAGE - 1);
    return madvise(base, whole, MADV_DONTNEED) == 0 || madvise(base, whole, MADV_DONTNEED_LOCKED) == 0;
}

size_t hkw_pages_clear(hkw_pages *pages, void *base, size_t n, bool keep)
{
    hkw_walk walk;
    hkw_range range;
    size_t resident = 0;
    int more;
    if (n == 0 || (!keep && hkw_pages_return(base, n))) return 0;
    hkw_walk_begin(&walk, pages, base, n);
    while ((more = hkw_walk_next(&walk, &range)) == 1) {
        memset((void *)(uintptr_t)range.start, 0, range.end - range.start);
        resident += range.end - range.start;
    }
    if (more == 0) return resident;
    if (keep && hkw_pages_return(base, n)) return 0;
    memset(base, 0, n);
    return n;
}

size_t hkw_pages_restore(hkw_pages *pages, void *base, const void *source, size_t n)
{
    const char *from = source;
    hkw_walk walk;
    hkw_range range;
    size_t copied = 0;
    int more;
    hkw_walk_begin(&walk, pages, base, n);
    while ((more = hkw_walk_next(&walk, &range)) == 1) {
        size_t size = range.end - range.start;
        memcpy((void *)(uintptr_t)range.start, from + (range.start - (uintptr_t)base), size);
        copied += size;
    }
    if (more == 0) return copied;
    for (size_t at = 0; at < n; at += HKW_PAGE) {
        size_t size = n - at < HKW_PAGE ? n - at : HKW_PAGE;
        char *page = (char *)base + at;
        if (memcmp(page, from + at, size) != 0) memcpy(page, from + at, size);
    }
    return n;
}

size_t hkw_pages_resident(hkw_pages *pages, const void *base, size_t n)
{
    hkw_walk walk;
    hkw_range range;
    size_t resident = 0;
    int more;
    hkw_walk_begin(&walk, pages, base, n);
    while ((more = hkw_walk_next(&walk, &range)) == 1)
        resident += range.end - range.start;
    return more == 0 ? resident : n;
}
