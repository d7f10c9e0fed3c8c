/* small_stack WHAT: threads with the smallest stack that there is (16 KiB on x86-64) call the allocator, and
 * what they touch of it is counted. WHAT: "calls" of all kinds, "misuse" as well, or a "fault" after a free,
 * which does not end well. Prints the bytes touched by a thread that does nothing, by one that calls, and the
 * size of the stack. 1 = no stack, 2 = unknown WHAT. */
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAINT = 0xA5, PAGE = 4096, BLOCKS = 120, OTHERS = 300 };

static void *others[OTHERS]; /* of the first thread, for the small ones to free */
static void *volatile seen;

static void *nothing(void *unused)
{
    return unused;
}

static size_t size_of(unsigned i)
{
    return i % 40 == 39 ? (size_t)(i % 7) << 18 : i % 10 == 9 ? i * 71 % 60000 : i * 37 % 2000;
}

static void *calls(void *unused)
{
    void *blocks[BLOCKS] = {0};
    for (unsigned i = 0; i < 6000; i++) {
        void **p = &blocks[i % BLOCKS];
        if (i % 3 == 0) {
            *p = realloc(*p, size_of(i) + 1);
        } else {
            free(*p);
            *p = i % 3 == 1 ? malloc(size_of(i))
                 : i % 2    ? calloc(1, size_of(i))
                            : aligned_alloc(64, size_of(i) / 64 * 64 + 64);
        }
        seen = *p;
        if (i < OTHERS) free(others[i]);
        if (i % 500 == 0) raise(SIGUSR2); /* asks for a profile, if the settings say so */
        if (i % 1500 == 0) malloc_trim(0);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return unused;
}

static void *misuse(void *unused)
{
    calls(unused);
    char *p = malloc(100);
    seen = p;
    free(p);
    free(seen); /* twice */
    seen = &p;
    free(seen); /* foreign */
    p = malloc(200);
    seen = p + 8;
    free(seen); /* inside */
    free(p);
    return unused;
}

static void *fault(void *unused)
{
    for (unsigned i = 0; i < OTHERS; i++)
        free(others[i]); /* they have all places for drawn blocks */
    char *p = malloc(1000);
    seen = p;
    free(p);
    *(volatile char *)seen = 1;
    return unused;
}

/* Bytes from the deepest one that was touched to the end; 0 = there is no such thread. */
static size_t touched(void *(*run)(void *), size_t size)
{
    unsigned char *whole =
        mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *stack = whole + PAGE;
    pthread_attr_t attr;
    pthread_t thread;
    if (whole == MAP_FAILED || mprotect(whole, PAGE, PROT_NONE) != 0) return 0;
    memset(stack, PAINT, size);
    if (pthread_attr_init(&attr) != 0 || pthread_attr_setstack(&attr, stack, size) != 0 ||
        pthread_create(&thread, &attr, run, NULL) != 0)
        return 0;
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    size_t clean = 0;
    while (clean < size && stack[clean] == PAINT)
        clean++;
    munmap(whole, size + PAGE);
    return size - clean;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void *(*run)(void *);
    } known[] = {{"calls", calls}, {"misuse", misuse}, {"fault", fault}};
    void *(*what)(void *) = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof known / sizeof *known; i++)
        if (strcmp(argv[1], known[i].name) == 0) what = known[i].run;
    if (!what) return 2;
    for (unsigned i = 0; i < OTHERS; i++)
        others[i] = malloc(size_of(i));
    const size_t size = (size_t)PTHREAD_STACK_MIN;
    const size_t least = touched(nothing, size), most = touched(what, size);
    if (!least || !most) return 1;
    printf("%zu %zu %zu\n", least, most, size);
    return 0;
}
