/* A program under the shim with another processor or another libc: threads that free each other's blocks, forks beside
 * them, what libc itself allocates, and a limit of 256 MiB. Ends with the number of what went wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, PLACES = 1024, ROUNDS = 20000, FORKS = 20 };

static _Atomic(unsigned char *) places[PLACES];
static atomic_int failures;

static void check(int ok, const char *what)
{
    if (ok) return;
    failures++;
    fprintf(stderr, "failed: %s\n", what);
}

/* Puts a block in a place, and frees what was there, whoever made it. */
static void *exchange(void *seed)
{
    unsigned random = (unsigned)(uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        const size_t n = 1 + (random >> 8) % 3000;
        unsigned char *block = malloc(n);
        if (!block) return "no block";
        block[0] = block[n - 1] = (unsigned char)n;
        unsigned char *old = atomic_exchange(&places[random % PLACES], block);
        if (old && malloc_usable_size(old) == 0) return "a block of nobody";
        free(old);
    }
    return NULL;
}

static void fork_once(void)
{
    const pid_t child = fork();
    if (child == 0) {
        char *p = calloc(1, 100000);
        const int right = p && p[99999] == 0;
        free(p);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child allocates");
}

static void fork_alone(void)
{
    for (int i = 0; i < 3; i++)
        fork_once();
}

static void fork_beside_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, exchange, (void *)(i + 1)) == 0, "a thread");
    for (int i = 0; i < FORKS; i++)
        fork_once();
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        check(!wrong, wrong ? wrong : "");
    }
    for (int i = 0; i < PLACES; i++)
        free(atomic_exchange(&places[i], NULL));
}

static void use_family(void)
{
    void *aligned = NULL;
    char *line = NULL, *text = strdup("what libc allocates"), *stream = NULL;
    size_t room = 0, size = 0;
    check(posix_memalign(&aligned, 4096, 100) == 0 && ((uintptr_t)aligned & 4095) == 0, "posix_memalign");
    void *more = aligned_alloc(256, 512);
    check(more && ((uintptr_t)more & 255) == 0, "aligned_alloc");
    check(text && malloc_usable_size(text) >= 20, "strdup is the shim's");
    text = realloc(text, 5000);
    check(text && strcmp(text, "what libc allocates") == 0, "realloc keeps what is there");
    FILE *out = open_memstream(&stream, &size);
    for (int i = 0; out && i < 10000; i++)
        fputs("line ", out);
    check(out && fclose(out) == 0 && size == 50000 && malloc_usable_size(stream) > size, "open_memstream");
    FILE *in = fopen("/proc/self/status", "r");
    check(in && getline(&line, &room, in) > 0 && malloc_usable_size(line) >= room, "getline");
    if (in) fclose(in);
    free(aligned);
    free(more);
    free(text);
    free(stream);
    free(line);
}

static void meet_limit(void)
{
    void *volatile p = malloc((size_t)300 << 20);
    check(!p && errno == ENOMEM, "the limit holds");
    free(p);
    p = malloc((size_t)100 << 20);
    check(p != NULL, "what the limit has room for");
    free(p);
}

int main(void)
{
    fork_alone();
    use_family();
    fork_beside_threads();
    meet_limit();
    return failures;
}
