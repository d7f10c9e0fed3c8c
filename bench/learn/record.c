/* LD_PRELOAD: writes what a program asks of malloc into the file HAK_RECORD (see trace.h), HAK_RECORD_MOST events
 * at most. Only the first process that finds no
 * such file is recorded. glibc. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

enum { BUFFER = 4096, MAP = 1 << 23 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;
static int fd = -2;          /* not asked yet; -1 = not recorded */
static pid_t owner;
static size_t most, written;
static trace_event buffer[BUFFER];
static size_t buffered;
/* Open addressing: address of a block -> its slot. Free slots are a stack. */
static struct entry {
    uintptr_t p;
    uint32_t slot;
} *map;
static uint32_t *free_slots, free_count, slots;

static size_t number_of(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void *pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void begin(void)
{
    const char *file = getenv("HAK_RECORD");
    fd = -1;
    most = number_of("HAK_RECORD_MOST", SIZE_MAX);
    map = pages(MAP * sizeof *map);
    free_slots = pages(MAP * sizeof *free_slots);
    if (!file || !map || !free_slots) return;
    owner = getpid();
    fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static void flush(void)
{
    if (fd >= 0 && buffered && write(fd, buffer, buffered * sizeof *buffer) < 0) fd = -1;
    buffered = 0;
}

static struct entry *find(uintptr_t p)
{
    size_t i = (p >> 4) * 0x9e3779b97f4a7c15u >> 41;
    while (map[i].p && map[i].p != p)
        i = (i + 1) % MAP;
    return &map[i];
}

/* The entries behind it move up, so that searches find them. */
static void drop(struct entry *e)
{
    size_t hole = (size_t)(e - map), i = hole;
    for (;;) {
        map[hole].p = 0;
        for (;;) {
            i = (i + 1) % MAP;
            if (!map[i].p) return;
            size_t home = (map[i].p >> 4) * 0x9e3779b97f4a7c15u >> 41;
            if (((i - home) % MAP) >= ((i - hole) % MAP)) break;
        }
        map[hole] = map[i];
        hole = i;
    }
}

static void put(unsigned op, uint32_t slot, size_t size, uint32_t site)
{
    if (written++ >= most) return;
    buffer[buffered++] = trace_event_of(op, slot, size, site);
    if (buffered == BUFFER) flush();
}

/* Whether this call is to be noted; then the lock is held. */
static bool enter(void)
{
    if (inside) return false;
    inside = true;
    pthread_mutex_lock(&lock);
    if (fd == -2) begin();
    if (fd >= 0 && owner == getpid()) return true;
    pthread_mutex_unlock(&lock);
    inside = false;
    return false;
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
    inside = false;
}

static void note_alloc(void *p, size_t n)
{
    if (!p || !enter()) return;
    struct entry *e = find((uintptr_t)p);
    e->p = (uintptr_t)p;
    e->slot = free_count ? free_slots[--free_count] : slots++;
    put(TRACE_ALLOC, e->slot, n ? n : 1, 0);
    leave();
}

static void note_free(void *p)
{
    if (!p || !enter()) return;
    struct entry *e = find((uintptr_t)p);
    if (e->p) {
        put(TRACE_FREE, e->slot, 0, 0);
        free_slots[free_count++] = e->slot;
        drop(e);
    }
    leave();
}

void *malloc(size_t n)
{
    void *p = __libc_malloc(n);
    note_alloc(p, n);
    return p;
}

void *calloc(size_t count, size_t n)
{
    void *p = __libc_calloc(count, n);
    note_alloc(p, count * n);
    return p;
}

void free(void *p)
{
    int error = errno;
    note_free(p);
    __libc_free(p);
    errno = error;
}

void *realloc(void *p, size_t n)
{
    if (!p) return malloc(n);
    if (!n) {
        free(p);
        return NULL;
    }
    bool noted = enter();
    void *q = __libc_realloc(p, n);
    if (!noted) return q;
    struct entry *e = find((uintptr_t)p);
    if (q && e->p) {
        uint32_t slot = e->slot;
        drop(e);
        e = find((uintptr_t)q);
        *e = (struct entry){(uintptr_t)q, slot};
        put(TRACE_REALLOC, slot, n, 0);
    }
    leave();
    return q;
}

void *memalign(size_t align, size_t n)
{
    void *p = __libc_memalign(align, n);
    note_alloc(p, n);
    return p;
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    void *p = memalign(align, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

__attribute__((destructor)) static void end(void)
{
    pthread_mutex_lock(&lock);
    if (fd >= 0 && owner == getpid()) flush();
    pthread_mutex_unlock(&lock);
}
