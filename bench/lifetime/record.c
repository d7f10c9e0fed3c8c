/* LD_PRELOAD: writes what a program asks of malloc into the file HAK_RECORD (see record.h). Only the first
 * process that finds no such file is recorded. malloc_trim() and SIGUSR2 mark a trough. glibc. */
#include "record.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

enum { BUFFER = 4096, NAMES = 1 << 14, OWN_FRAMES = 4 /* at most */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;
static int fd = -2; /* not asked yet; -1 = not recorded */
static pid_t owner;
static record_event buffer[BUFFER];
static size_t buffered;
static record_frames frames_of;
static volatile sig_atomic_t marked;
/* Return addresses whose hashes are known. */
static struct name {
    void *address;
    uint32_t hash;
} names[NAMES];

static void flush(void)
{
    const char *p = (const char *)buffer;
    size_t left = buffered * sizeof *buffer;
    while (fd >= 0 && left) {
        ssize_t n = write(fd, p, left);
        if (n < 0) fd = -1;
        else p += n, left -= (size_t)n;
    }
    buffered = 0;
}

static void put(unsigned op, const void *p, size_t size, const uint32_t *site)
{
    record_event *e = &buffer[buffered++];
    *e = (record_event){.address = (uintptr_t)p & (((uint64_t)1 << 56) - 1),
                        .op = op & 255,
                        .size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX};
    if (site) memcpy(e->site, site, sizeof e->site);
    if (buffered == BUFFER) flush();
}

static void on_signal(int number)
{
    (void)number;
    marked = 1;
}

static void begin(void)
{
    const char *file = getenv("HAK_RECORD");
    fd = -1;
    if (!file) return;
    owner = getpid();
    fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) signal(SIGUSR2, on_signal);
}

/* Whether this call is to be noted; then the lock is held. */
static bool enter(void)
{
    if (inside) return false;
    inside = true;
    pthread_mutex_lock(&lock);
    if (fd == -2) begin();
    if (fd >= 0 && owner == getpid()) {
        if (marked) put(RECORD_MARK, NULL, 0, NULL);
        marked = 0;
        return true;
    }
    pthread_mutex_unlock(&lock);
    inside = false;
    return false;
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
    inside = false;
}

/* ---- Sites ---------------------------------------------------------------------------------------- */

void record_set_frames(record_frames frames)
{
    frames_of = frames;
}

/* File and offset of an address, which hold from run to run. */
static uint32_t hash_of(void *address)
{
    struct name *n = &names[((uintptr_t)address * 0x9e3779b97f4a7c15u >> 40) % NAMES];
    if (n->address == address) return n->hash;
    Dl_info info = {0};
    uintptr_t offset = (uintptr_t)address;
    uint32_t hash = record_seed;
    if (dladdr(address, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/'), *file = slash ? slash + 1 : info.dli_fname;
        offset -= (uintptr_t)info.dli_fbase;
        hash = record_hash(hash, file, strlen(file));
    }
    *n = (struct name){address, record_hash(hash, &offset, sizeof offset)};
    return n->hash;
}

/* From the caller of malloc on. */
static unsigned native_frames(uint32_t *frames, unsigned most, const void *caller)
{
    void *stack[RECORD_FRAMES + OWN_FRAMES];
    int n = backtrace(stack, RECORD_FRAMES + OWN_FRAMES), i = 0;
    unsigned count = 0;
    while (i < n && stack[i] != caller)
        i++;
    for (; i < n && count < most; i++)
        frames[count++] = hash_of(stack[i]);
    return count;
}

static void find_site(uint32_t *site, const void *caller)
{
    static const unsigned depths[RECORD_DEPTHS] = {1, 4, RECORD_FRAMES};
    uint32_t frames[RECORD_FRAMES];
    unsigned n = frames_of ? frames_of(frames, RECORD_FRAMES) : 0;
    if (!n) n = native_frames(frames, RECORD_FRAMES, caller);
    for (unsigned d = 0; d < RECORD_DEPTHS; d++)
        site[d] = record_hash(record_seed, frames, sizeof *frames * (n < depths[d] ? n : depths[d]));
}

/* ---- Events --------------------------------------------------------------------------------------- */

static void note_alloc(void *p, size_t n, const void *caller)
{
    if (!p || !enter()) return;
    uint32_t site[RECORD_DEPTHS];
    find_site(site, caller);
    put(RECORD_ALLOC, p, n, site);
    leave();
}

static void note_free(void *p)
{
    if (!p || !enter()) return;
    put(RECORD_FREE, p, 0, NULL);
    leave();
}

void *malloc(size_t n)
{
    void *p = __libc_malloc(n);
    note_alloc(p, n, __builtin_return_address(0));
    return p;
}

void *calloc(size_t count, size_t n)
{
    void *p = __libc_calloc(count, n);
    note_alloc(p, count * n, __builtin_return_address(0));
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
    if (!p) {
        void *q = __libc_malloc(n);
        note_alloc(q, n, __builtin_return_address(0));
        return q;
    }
    if (!n) {
        free(p);
        return NULL;
    }
    bool noted = enter();
    void *q = __libc_realloc(p, n);
    if (!noted) return q;
    if (q) {
        put(RECORD_FROM, p, 0, NULL);
        put(RECORD_TO, q, n, NULL);
    }
    leave();
    return q;
}

void *memalign(size_t align, size_t n)
{
    void *p = __libc_memalign(align, n);
    note_alloc(p, n, __builtin_return_address(0));
    return p;
}

void *aligned_alloc(size_t align, size_t n)
{
    void *p = __libc_memalign(align, n);
    note_alloc(p, n, __builtin_return_address(0));
    return p;
}

int posix_memalign(void **out, size_t align, size_t n)
{
    void *p = __libc_memalign(align, n);
    note_alloc(p, n, __builtin_return_address(0));
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

/* A program that is linked with another allocator would find that one's. */
size_t malloc_usable_size(void *p)
{
    static size_t (*usable)(void *);
    if (!usable) {
        bool was = inside;
        inside = true;
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        *(void **)&usable = libc ? dlsym(libc, "malloc_usable_size") : NULL;
        inside = was;
    }
    return usable ? usable(p) : 0;
}

int malloc_trim(size_t pad)
{
    (void)pad;
    if (!enter()) return 0;
    put(RECORD_MARK, NULL, 0, NULL);
    leave();
    return 1;
}

__attribute__((destructor)) static void end(void)
{
    pthread_mutex_lock(&lock);
    if (fd >= 0 && owner == getpid()) flush();
    pthread_mutex_unlock(&lock);
}
