/* Maps memory past malloc, as allocators of libraries do, and says what it got. With the name of a function it asks
 * for one block by that, beside memory that was mapped and not touched. With "grows" it maps more and more, while
 * something else that it mapped stays as it is; with "touches" it touches more and more of one mapping, and calls malloc. */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MB = 1 << 20 };

static void say(const char *what, const void *p)
{
    printf("%s %s\n", what, p && p != MAP_FAILED ? "granted" : "refused");
}

__attribute__((noinline)) static char *map(size_t n, int prot)
{
    char *volatile p = mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p;
}

__attribute__((noinline)) static int open_part(char *p, size_t n)
{
    volatile int status = mprotect(p, n, PROT_READ | PROT_WRITE);
    return status;
}

static int by_function(const char *name)
{
    const size_t n = 20000000;
    void *p = NULL, *small = malloc(100);
    say("wide", map(30 * MB, PROT_READ | PROT_WRITE));
    if (strcmp(name, "malloc") == 0) p = malloc(n);
    else if (strcmp(name, "calloc") == 0) p = calloc(n / 10, 10);
    else if (strcmp(name, "realloc") == 0) p = realloc(small, n);
    else if (strcmp(name, "aligned_alloc") == 0) p = aligned_alloc(64, n);
    else if (strcmp(name, "memalign") == 0) p = memalign(256, n);
    else if (posix_memalign(&p, MB, n) != 0) p = NULL;
    if (p) memset(p, 1, n);
    say(name, p);
    return 0;
}

/* Each step has its time, so that what grows does so evenly by the clock, on a busy machine too. */
enum { STEPS = 50, STEP_NS = 30000000 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void run_steps(void (*step)(int i))
{
    const struct timespec pause = {0, STEP_NS / 4};
    const int64_t start = now_ns();
    for (int i = 0; i < STEPS;) {
        while (i < STEPS && now_ns() - start >= (int64_t)i * STEP_NS)
            step(i++);
        nanosleep(&pause, NULL);
    }
}

__attribute__((noinline)) static void map_more(int unused)
{
    char *volatile p = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)unused;
    if (p != MAP_FAILED) memset(p, 1, MB);
}

static char *growing;

static void touch_more(int i)
{
    memset(growing + (size_t)i * MB, 1, MB);
    for (int k = 0; k < 100; k++)
        free(malloc(1000));
}

static int by_steps(bool grows)
{
    growing = map((STEPS + 8) * MB, PROT_READ | PROT_WRITE);
    if (growing == MAP_FAILED) return 1;
    if (grows) memset(growing, 1, 8 * MB);
    run_steps(grows ? map_more : touch_more);
    return 0;
}

/* Memory that forked children would share. */
static int by_sharing(void)
{
    const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
    say("wide", mmap(NULL, 90 * MB, prot, flags, -1, 0));
    char *kept = mmap(NULL, 30 * MB, prot, flags, -1, 0);
    say("shared", kept);
    memset(kept, 1, 30 * MB);
    say("beside", malloc(40 * MB));
    say("larger", mremap(kept, 30 * MB, 90 * MB, MREMAP_MAYMOVE));
    munmap(kept, 30 * MB);
    say("again", malloc(40 * MB));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "grows") == 0) return by_steps(true);
    if (argc > 1 && strcmp(argv[1], "touches") == 0) return by_steps(false);
    if (argc > 1 && strcmp(argv[1], "shared") == 0) return by_sharing();
    if (argc > 1) return by_function(argv[1]);
    char *reserved = map((size_t)64 << 30, PROT_NONE);
    say("reserved", reserved);
    if (open_part(reserved, 20 * MB) == 0) memset(reserved, 1, 20 * MB);
    char *wide = map(30 * MB, PROT_READ | PROT_WRITE);
    say("wide", wide);
    memset(wide, 1, 2 * MB);
    char *block = malloc(20 * MB); /* which what was not touched of the other is no reason to refuse */
    say("block", block);
    if (block) memset(block, 1, 20 * MB);
    say("more", map(30 * MB, PROT_READ | PROT_WRITE));
    say("opened", open_part(reserved + 20 * MB, 30 * MB) == 0 ? reserved : NULL);
    say("moved", mremap(reserved, 20 * MB, 60 * MB, MREMAP_MAYMOVE));
    say("broken", sbrk(40 * MB) == (void *)-1 ? NULL : reserved);
    free(block);
    munmap(wide, 30 * MB);
    char *again = map(30 * MB, PROT_READ | PROT_WRITE);
    say("again", again);
    return 0;
}
