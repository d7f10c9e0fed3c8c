#define _GNU_SOURCE
#include "common/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MILLISECONDS = 1, LEFT_MILLISECONDS = 100, RUNS_MILLISECONDS = 1000 };

/* Of one process: a forked child begins anew. */
static _Atomic(pid_t) process;
static atomic_int helpers;
static atomic_bool watched;
static sigset_t program_mask; /* for what runs at exit */

static void in_this_process(void)
{
    const pid_t now = getpid();
    if (atomic_exchange(&process, now) == now) return;
    atomic_store(&helpers, 0);
    atomic_store(&watched, false);
}

/* ---- Threads --------------------------------------------------------------------------------------- */

static void *run_helper(void *run)
{
    ((hkc_helper_fn *)(uintptr_t)run)();
    atomic_fetch_sub(&helpers, 1);
    return NULL;
}

static int begin(hkc_helper_fn *run, size_t stack, pthread_t *thread)
{
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack != 0) pthread_attr_setstacksize(&attr, stack);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, &attr, run_helper, (void *)(uintptr_t)run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    /* Afterwards: with one too many, this thread would be taken for it. */
    if (!error) atomic_fetch_add(&helpers, 1);
    return error;
}

/* ---- Ends of the program's threads ---------------------------------------------------------------- */

/* Reads how many threads the process has, and whether main's is over and waits for the others. 0 = nothing
 * is known. */
static long threads_now(bool *main_left)
{
    enum { FIELDS_BEFORE_THREADS = 17 }; /* behind the state, see proc(5) */
    char text[1024];
    const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')'); /* the name may have any byte */
    if (!at || at[1] == '\0') return 0;
    at += 2;
    *main_left = *at == 'Z';
    for (int i = 0; at && i < FIELDS_BEFORE_THREADS; i++)
        if ((at = strchr(at, ' ')) != NULL) at++;
    return at ? strtol(at, NULL, 10) : 0;
}

static void sleep_for(long milliseconds)
{
    const struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Ends the process as the C library ends it in the last thread. */
static void watch(void)
{
    for (long pause = FIRST_MILLISECONDS;; pause *= 2) {
        bool main_left = false;
        const long threads = threads_now(&main_left);
        if (main_left && threads == atomic_load(&helpers) + 1) break;
        const long most = main_left ? LEFT_MILLISECONDS : RUNS_MILLISECONDS;
        if (pause > most) pause = most;
        sleep_for(pause);
    }
    pthread_sigmask(SIG_SETMASK, &program_mask, NULL);
    exit(0);
}

static void begin_watch(void)
{
    pthread_t thread;
    if (atomic_exchange(&watched, true)) return;
    pthread_sigmask(SIG_SETMASK, NULL, &program_mask);
    if (begin(watch, 0, &thread) != 0) atomic_store(&watched, false);
}

static pthread_key_t key;
static bool key_made;

/* Runs when main leaves by pthread_exit. */
static void main_leaves(void *of)
{
    if ((pid_t)(intptr_t)of == getpid() && atomic_load(&helpers) > 0) begin_watch();
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, main_leaves) == 0;
}

/* Only main's own thread can be told when it leaves. */
static void expect_end(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const pid_t self = getpid();
    pthread_once(&once, make_key);
    const bool is_main = syscall(SYS_gettid) == self;
    if (!is_main || !key_made || pthread_setspecific(key, (void *)(intptr_t)self) != 0) begin_watch();
}

int hkc_helper_begin(hkc_helper_fn *run, size_t stack, pthread_t *thread)
{
    in_this_process();
    const int error = begin(run, stack, thread);
    if (!error) expect_end();
    return error;
}
