/* What forks have to bear of an allocator: beside threads that allocate while libc's lock of all streams is
 * held, and in a signal handler, in the middle of allocations of the only thread. For one C file of a
 * program, which defines _GNU_SOURCE first. */
#ifndef TESTS_SUPPORT_FORKS_H
#define TESTS_SUPPORT_FORKS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct forks_allocator {
    void *(*take)(size_t n);
    void (*give)(void *p);
} forks_allocator;

static atomic_bool forks_over;

static void *forks_flush_all(void *unused)
{
    while (!atomic_load(&forks_over))
        fflush(NULL);
    return unused;
}

/* A stream whose flush allocates: it runs with libc's lock of all streams held. */
static ssize_t forks_write_slowly(void *allocator, const char *text, size_t n)
{
    const forks_allocator *a = (const forks_allocator *)allocator;
    void *p[20];
    for (int i = 0; i < 20; i++)
        p[i] = a->take(n * 40 + 64 * (size_t)i);
    for (int i = 0; i < 20; i++)
        a->give(p[i]);
    return (ssize_t)n + 0 * text[0];
}

static void *forks_print_all(void *stream)
{
    while (!atomic_load(&forks_over))
        fputs("text", (FILE *)stream);
    return NULL;
}

/* 0 = the child did all of its work. */
static int forks_child_failed(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return status != 0;
}

/* Children that failed. */
static int fork_beside_flush(forks_allocator a, int times)
{
    FILE *stream = fopencookie(&a, "w", (cookie_io_functions_t){.write = forks_write_slowly});
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, forks_flush_all, NULL);
    pthread_create(&threads[1], NULL, forks_print_all, stream);
    int bad = 0;
    for (int i = 0; i < times; i++) {
        pid_t child = fork();
        if (child == 0) {
            a.give(a.take(100000));
            fflush(NULL);
            _exit(0);
        }
        bad += forks_child_failed(child);
    }
    atomic_store(&forks_over, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    fclose(stream);
    return bad;
}

static volatile sig_atomic_t forks_done, forks_bad;

static void forks_on_alarm(int signal_number)
{
    (void)signal_number;
    pid_t child = fork();
    if (child == 0) _exit(0);
    forks_bad += forks_child_failed(child);
    forks_done++;
}

/* Children that failed, one each `microseconds` of allocations. */
static int fork_in_handler(forks_allocator a, int times, long microseconds)
{
    signal(SIGALRM, forks_on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, microseconds}, {0, microseconds}}, NULL);
    void *held[512] = {0};
    for (unsigned i = 0; forks_done < times; i++) {
        unsigned at = i * 2654435761u >> 23;
        a.give(held[at]);
        held[at] = a.take(at % 7 == 0 ? 70000 : at * 9);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    for (unsigned i = 0; i < 512; i++)
        a.give(held[i]);
    return (int)forks_bad;
}

#endif
