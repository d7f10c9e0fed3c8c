/* Maps memory past malloc, as allocators of libraries do, and says what it got. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

int main(void)
{
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
