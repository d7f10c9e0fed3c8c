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
#include <sys/syscall.h>
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
static void only_alarm(sighandler_t handler, int milliseconds)
{
    const struct sigaction action = {.sa_handler = handler};
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_SETMASK, &all, NULL);
    set_alarm(milliseconds);
}

/* How a copy ends that is cut off. */
enum { CUT = 100, CUT_WAITED };
static int granted; /* milliseconds, in a copy */

void hkp_copy_grant(int milliseconds)
{
    granted = milliseconds;
    set_alarm(milliseconds);
}

static int milliseconds_of(const struct timeval *t)
{
    return (int)(t->tv_sec * 1000 + t->tv_usec / 1000);
}

/* One that waits has hardly computed, and went to sleep, which one that only has no processor does not. It is
 * asked here: what the end of a process takes would count as well. _exit would be the hook's. */
static void cut_off(int number)
{
    enum { PART = 10 };
    struct rusage u;
    (void)number;
    getrusage(RUSAGE_SELF, &u);
    const int computed = milliseconds_of(&u.ru_utime) + milliseconds_of(&u.ru_stime);
    const int status = computed <= granted / PART && u.ru_nvcsw > 0 ? CUT_WAITED : CUT;
    for (;;)
        syscall(SYS_exit_group, status);
}

static int copy_main(void *given)
{
    const order *o = given;
    granted = o->milliseconds;
    only_alarm(cut_off, o->milliseconds);
    hkp_process_copied(o->process, o->parent, o->cpu);
    if (o->held) hak_ctx_fork_child(hkp_ctx());
    return o->fn(o->of);
}

static order order_of(int (*fn)(void *of), void *of, int milliseconds)
{
    return (order){fn, of, milliseconds, false, getpid(), getppid(), hkp_process_cpu()};
}

static pid_t start(char **stack, order *o)
{
    if (!*stack) *stack = hkp_pages(STACK);
    if (*stack) return clone(copy_main, *stack + STACK, 0, o);
    errno = ENOMEM;
    return -1;
}

pid_t hkp_copy_start(char **stack, int (*fn)(void *of), void *of, int milliseconds)
{
    order o = order_of(fn, of, milliseconds);
    return start(stack, &o);
}

static hkp_copied wait_for(pid_t copy)
{
    hkp_copied c = {.process = copy, .status = -2};
    int status;
    if (copy < 0) return c;
    while (waitpid(copy, &status, __WALL) < 0)
        if (errno != EINTR) return c;
    c.status = WIFSIGNALED(status) ? -1 : WEXITSTATUS(status);
    c.waited = c.status == CUT_WAITED;
    if (c.status == CUT || c.waited) c.status = -1;
    return c;
}

hkp_copied hkp_copy_run(char **stack, int (*fn)(void *of), void *of, int milliseconds)
{
    return wait_for(hkp_copy_start(stack, fn, of, milliseconds));
}

/* ---- With the heap's locks ----------------------------------------------------------------------- */

static pid_t start_held(char **stack, order *o)
{
    o->held = true;
    hak_ctx_fork_prepare(hkp_ctx());
    const pid_t copy = start(stack, o);
    const int error = errno;
    hak_ctx_fork_parent(hkp_ctx());
    errno = error;
    return copy;
}

hkp_copied hkp_copy_run_held(char **stack, int (*fn)(void *of), void *of, int milliseconds)
{
    order o = order_of(fn, of, milliseconds);
    errno = ENOMEM;
    return wait_for(hkp_ctx() ? start_held(stack, &o) : -1);
}

typedef struct hold {
    order o;
    char **stack;
    hkp_copied copied;
} hold;

/* A process that shares this one's memory takes the locks for the thread that waits here: the thread may have
 * one itself, and then it is this process that is cut off. */
static int hold_main(void *given)
{
    enum { PATIENCE = 6000 }; /* milliseconds: a busy heap has many locks */
    hold *h = given;
    only_alarm(SIG_DFL, PATIENCE);
    const pid_t copy = start_held(h->stack, &h->o);
    set_alarm(0);
    h->copied = wait_for(copy);
    return 0;
}

/* Returns false if the locks were not to be had; those that were stay taken, and the process must end. */
static bool run_by_another(char **stack, int (*fn)(void *of), void *of, int milliseconds, hkp_copied *copied)
{
    char *own = hkp_pages(STACK); /* not one for all: other threads may be here, and share the memory */
    hold h = {order_of(fn, of, milliseconds), stack, {.status = -2}};
    int status;
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
    static const int patience[] = {100, 100, 1000, 1000, 20000};
    enum { LAST = sizeof patience / sizeof *patience - 1, FIRST_LONG = LAST - 2 };
    static char *stack; /* not that of a copy which a handler of this thread may be about to make */
    hkp_copied c = {.status = -1};
    const bool only = alone();
    for (int i = only ? FIRST_LONG : 0; c.status == -1 && i <= LAST; i++) {
        if (i == LAST && c.waited) break;
        if (only || i < FIRST_LONG) c = hkp_copy_run(&stack, fn, of, patience[i]);
        else if (!run_by_another(&stack, fn, of, patience[i], &c)) return -1;
        if (c.status == -1) cut(of, c.process);
    }
    return c.status;
}
