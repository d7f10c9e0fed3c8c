/* leave WHAT: main leaves by pthread_exit; the process is to end with its last thread. Prints what that
 * thread saw; 2 = unknown WHAT. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_t main_thread;
static int milliseconds;

static void *work(void *joins)
{
    if (joins) pthread_join(main_thread, NULL);
    for (int i = 0; i < 1000; i++)
        free(malloc((size_t)i));
    for (int i = 0; i < milliseconds; i++)
        usleep(1000);
    puts(joins ? "joined" : "worked");
    fflush(stdout);
    return NULL;
}

/* What the program's own last thread would run. */
static void at_exit(void)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    puts(sigismember(&blocked, SIGTERM) ? "at exit, signals blocked" : "at exit");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    pthread_t thread;
    main_thread = pthread_self();
    atexit(at_exit);
    if (strcmp(what, "late") == 0) milliseconds = 300;
    else if (strcmp(what, "forever") == 0) milliseconds = 1000000;
    else if (strcmp(what, "at-once") != 0 && strcmp(what, "joined") != 0 && strcmp(what, "alone") != 0)
        return 2;
    if (strcmp(what, "alone") != 0 &&
        pthread_create(&thread, NULL, work, strcmp(what, "joined") == 0 ? &main_thread : NULL) != 0)
        return 1;
    pthread_exit(NULL);
}
