#define _GNU_SOURCE
#include "hook/copy.h"

#include "base/map.h"
#include "base/process.h"
#include "heap/heap.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 1 << 18 };

typedef struct order {
    int (*fn)(void *of);
    void *of;
    int milliseconds;
    bool held; /* the heap's locks are */
    pid_t process, parent;
    uint64_t cpu;
} order;

static void set_alarm(int milliseconds)
{
    const struct itimerval once = {
        .it_value = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}};
    setitimer(ITIMER_REAL, &once, NULL);
}

/* Of the signals only the one that cuts it off: one for the whole group is for the program. */
static void only_alarm(int milliseconds)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    sigaction(SIGALRM, &by_default, NULL);
    sigprocmask(SIG_SETMASK, &all, NULL);
    set_alarm(milliseconds);
}

void hkp_copy_unlimited(void)
{
    set_alarm(0);
}

static int copy_main(void *given)
{
    const order *o = given;
    only_alarm(o->milliseconds);
    hkp_process_copied(o->process, o->parent, o->cpu);
    if (o->held) hak_ctx_fork_child(hkp_ctx());
    return o->fn(o->of);
}

static order order_of(int (*fn)(void *of), void *of, int milliseconds)
{
    return (order){fn, of, milliseconds, false, getpid(), getppid(), hkp_process_cpu()};
}

pid_t hkp_copy_start(char **stack, int (*fn)(void *of), void *of, int milliseconds)
{
    order o = order_of(fn, of, milliseconds);
    if (!*stack) *stack = hkp_pages(STACK);
    if (*stack) return clone(copy_main, *stack + STACK, 0, &o);
    errno = ENOMEM;
    return -1;
}

static int milliseconds_of(const struct timeval *t)
{
    return (int)(t->tv_sec * 1000 + t->tv_usec / 1000);
}

hkp_copied hkp_copy_wait(pid_t copy, int milliseconds)
{
    enum { WAITED = 10 }; /* that part of the time at most it computed */
    struct rusage usage;
    int status;
    while (wait4(copy, &status, __WALL, &usage) < 0)
        if (errno != EINTR) return (hkp_copied){.process = copy, .status = -2};
    const int computed = milliseconds_of(&usage.ru_utime) + milliseconds_of(&usage.ru_stime);
    return (hkp_copied){.process = copy,
                        .status = WIFSIGNALED(status) ? -1 : WEXITSTATUS(status),
                        .worked = computed > milliseconds / WAITED};
}

hkp_copied hkp_copy_run(char **stack, int (*fn)(void *of), void *of, int milliseconds)
{
    const pid_t copy = hkp_copy_start(stack, fn, of, milliseconds);
    return copy < 0 ? (hkp_copied){.process = copy, .status = -2} : hkp_copy_wait(copy, milliseconds);
}

/* ---- With the heap's locks ----------------------------------------------------------------------- */

typedef struct hold {
    order o;
    char *stack;
    hkp_copied copied;
} hold;

/* A process that shares this one's memory takes the locks for the thread that waits here: the thread may have
 * one itself, and then it is this process that is cut off. */
static int hold_main(void *given)
{
    enum { PATIENCE = 6000 }; /* milliseconds: a busy heap has many locks */
    hold *h = given;
    only_alarm(PATIENCE);
    hak_ctx_fork_prepare(hkp_ctx());
    const pid_t copy = clone(copy_main, h->stack + STACK, 0, &h->o);
    set_alarm(0);
    hak_ctx_fork_parent(hkp_ctx());
    h->copied =
        copy < 0 ? (hkp_copied){.process = copy, .status = -2} : hkp_copy_wait(copy, h->o.milliseconds);
    return 0;
}

/* Returns false if the locks were not to be had; those that were stay taken, and the process must end. */
static bool run_held(char **stack, int (*fn)(void *of), void *of, int milliseconds, hkp_copied *copied)
{
    char *own = hkp_pages(STACK); /* not one for all: other threads may be here, and share the memory */
    hold h = {order_of(fn, of, milliseconds), *stack, {.status = -2}};
    int status;
    h.o.held = true;
    const pid_t holder = own && hkp_ctx() ? clone(hold_main, own + STACK, CLONE_VM, &h) : -1;
    if (holder < 0) return false;
    while (waitpid(holder, &status, __WALL) < 0)
        if (errno != EINTR) return false;
    *copied = h.copied;
    return !WIFSIGNALED(status);
}

/* ---- For the end of the process ------------------------------------------------------------------ */

/* The links of this folder are the two of every folder, and one for each thread. */
static bool alone(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

int hkp_copy_insist(int (*fn)(void *of), void *of, void (*cut)(void *of, pid_t copy))
{
    static const int patience[] = {250, 250, 1000, 1000, 20000};
    enum { LAST = sizeof patience / sizeof *patience - 1, FIRST_LONG = LAST - 2 };
    static char *stack; /* not that of a copy which a handler of this thread may be about to make */
    hkp_copied c = {.status = -1};
    const bool only = alone();
    for (int i = only ? FIRST_LONG : 0; c.status == -1 && i <= LAST; i++) {
        if (i == LAST && !c.worked) break;
        if (only || i < FIRST_LONG) c = hkp_copy_run(&stack, fn, of, patience[i]);
        else if (!run_held(&stack, fn, of, patience[i], &c)) return -1;
        if (c.status == -1) cut(of, c.process);
    }
    return c.status;
}
