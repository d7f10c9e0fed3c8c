/* LD_PRELOAD: writes what a program asks of malloc into the file HAK_RECORD (see record.h). Only the first
 * process that finds no such file is recorded. malloc_trim() and SIGUSR2 mark a trough. glibc. */
#include "record.h"

#include "preloaded.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <string.h>

enum { BUFFER = 4096, NAMES = 1 << 14, OWN_FRAMES = 6 /* at most */ };

static record_event buffer[BUFFER];
static size_t buffered;
static record_frames frames_of;
static volatile sig_atomic_t marked;
/* Return addresses whose hashes are known. */
static struct name {
    void *address;
    uint32_t hash;
} names[NAMES];

static void note_end(void)
{
    record_write(buffer, buffered * sizeof *buffer);
    buffered = 0;
}

static void put(unsigned op, const void *p, size_t size, const uint32_t *site)
{
    record_event *e = &buffer[buffered++];
    *e = (record_event){.address = (uintptr_t)p & (((uint64_t)1 << 56) - 1),
                        .op = op & 255,
                        .size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX};
    if (site) memcpy(e->site, site, sizeof e->site);
    if (buffered == BUFFER) note_end();
}

static void on_signal(int number)
{
    (void)number;
    marked = 1;
}

static bool note_begin(void)
{
    signal(SIGUSR2, on_signal);
    return true;
}

static void put_mark(void)
{
    put(RECORD_MARK, NULL, 0, NULL);
    marked = 0;
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

static void note_made(void *p, size_t n, const void *caller)
{
    uint32_t site[RECORD_DEPTHS];
    if (marked) put_mark();
    find_site(site, caller);
    put(RECORD_ALLOC, p, n, site);
}

static void note_freed(void *p)
{
    if (marked) put_mark();
    put(RECORD_FREE, p, 0, NULL);
}

static void note_resized(void *p, void *now, size_t n)
{
    if (marked) put_mark();
    put(RECORD_FROM, p, 0, NULL);
    put(RECORD_TO, now, n, NULL);
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
    put_mark();
    leave();
    return 1;
}
