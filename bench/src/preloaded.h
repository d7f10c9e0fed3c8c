/* What the recorders for LD_PRELOAD share: malloc and its like, each call noted under one lock, in the first
 * process that finds no file HAK_RECORD. A recorder includes this once and defines the functions that are
 * declared here; none of them may allocate. glibc. */
#ifndef PRELOADED_H
#define PRELOADED_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static struct {
    pthread_mutex_t lock;
    int fd; /* -2 = not asked yet; -1 = not recorded */
    pid_t owner;
} recorded = {PTHREAD_MUTEX_INITIALIZER, -2, 0};
static __thread bool inside;

/* Before the first event; false = nothing is recorded. */
static bool note_begin(void);
/* The lock is held. A block of n bytes that `caller` asked for, one that is freed, and one that was at p
 * before. */
static void note_made(void *p, size_t n, const void *caller);
static void note_freed(void *p);
static void note_resized(void *p, void *now, size_t n);
static void note_end(void);

static void record_open(void)
{
    const char *file = getenv("HAK_RECORD");
    recorded.fd = -1;
    recorded.owner = getpid();
    if (file) recorded.fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (recorded.fd >= 0 && !note_begin()) recorded.fd = -1;
}

static void record_write(const void *data, size_t left)
{
    for (const char *p = data; recorded.fd >= 0 && left;) {
        ssize_t n = write(recorded.fd, p, left);
        if (n < 0) recorded.fd = -1;
        else p += n, left -= (size_t)n;
    }
}

/* Whether this call is to be noted; then the lock is held. */
static bool enter(void)
{
    if (inside) return false;
    inside = true;
    pthread_mutex_lock(&recorded.lock);
    if (recorded.fd == -2) record_open();
    if (recorded.fd >= 0 && recorded.owner == getpid()) return true;
    pthread_mutex_unlock(&recorded.lock);
    inside = false;
    return false;
}

static void leave(void)
{
    pthread_mutex_unlock(&recorded.lock);
    inside = false;
}

static void *made(void *p, size_t n, const void *caller)
{
    if (!p || !enter()) return p;
    note_made(p, n, caller);
    leave();
    return p;
}

void *malloc(size_t n)
{
    return made(__libc_malloc(n), n, __builtin_return_address(0));
}

void *calloc(size_t count, size_t n)
{
    return made(__libc_calloc(count, n), count * n, __builtin_return_address(0));
}

void free(void *p)
{
    int error = errno;
    if (p && enter()) {
        note_freed(p);
        leave();
    }
    __libc_free(p);
    errno = error;
}

void *realloc(void *p, size_t n)
{
    if (!p) return made(__libc_malloc(n), n, __builtin_return_address(0));
    if (!n) {
        free(p);
        return NULL;
    }
    bool noted = enter();
    void *now = __libc_realloc(p, n);
    if (!noted) return now;
    if (now) note_resized(p, now, n);
    leave();
    return now;
}

void *memalign(size_t align, size_t n)
{
    return made(__libc_memalign(align, n), n, __builtin_return_address(0));
}

void *aligned_alloc(size_t align, size_t n)
{
    return made(__libc_memalign(align, n), n, __builtin_return_address(0));
}

int posix_memalign(void **out, size_t align, size_t n)
{
    void *p = made(__libc_memalign(align, n), n, __builtin_return_address(0));
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

__attribute__((destructor)) static void record_end(void)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.fd >= 0 && recorded.owner == getpid()) note_end();
    pthread_mutex_unlock(&recorded.lock);
}

#endif
