#define _GNU_SOURCE
#include "process.h"

#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Returns 0 or errno. */
static int set_descriptors(posix_spawn_file_actions_t *actions, int input, int output)
{
    int error = posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, output, STDERR_FILENO);
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
#endif
#endif
    return error;
}

/* Signals that the host blocks or ignores would reach the program so, and its timers would not end it. It has a
 * process group of its own, so that what it starts can be killed with it. */
static void set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int start(const char *const *program, int input, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        set_attributes(&attributes);
        error = set_descriptors(&actions, input, output);
        if (!error)
            error = posix_spawn(pid, program[0], &actions, &attributes, (char *const *)(uintptr_t)program,
                                environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

typedef struct child {
    pid_t pid;
    int descriptor; /* never becomes another process', as the number may; -1 = the kernel has none */
} child;

/* Whether it ended; its status stays. *taken: nobody has it any more, because the host ignores SIGCHLD or takes
 * every child's. */
static bool has_ended(const child *c, bool *taken)
{
    enum { OF_DESCRIPTOR = 3 }; /* P_PIDFD, Linux 5.4 */
    const int how = WEXITED | WNOHANG | WNOWAIT;
    siginfo_t info;
    info.si_pid = 0;
    int result = c->descriptor >= 0 ? waitid((idtype_t)OF_DESCRIPTOR, (id_t)c->descriptor, &info, how) : -1;
    if (c->descriptor < 0 || (result != 0 && errno == EINVAL))
        result = waitid(P_PID, (id_t)c->pid, &info, how);
    *taken = result != 0 && errno == ECHILD;
    return *taken || (result == 0 && info.si_pid == c->pid);
}

/* Waits for a short time, or until the process ends if there is a descriptor of it. */
static void wait_a_while(int descriptor, int64_t left, int64_t *pause)
{
    enum { PAUSE_MOST = 10 };
    if (descriptor >= 0) {
        struct pollfd p = {descriptor, POLLIN, 0};
        poll(&p, 1, left < INT32_MAX ? (int)left : INT32_MAX);
        return;
    }
    const int64_t ms = *pause < left ? *pause : left;
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
    if (*pause < PAUSE_MOST) ++*pause;
}

/* Returns whether it ended before the deadline. */
static bool wait_until(const child *c, int64_t deadline, bool *taken)
{
    int64_t pause = 1;
    for (;;) {
        if (has_ended(c, taken)) return true;
        const int64_t left = deadline - hkc_milliseconds();
        if (left <= 0) return false;
        wait_a_while(c->descriptor, left, &pause);
    }
}

/* Kills the process, or all of its group. Returns 0 or errno. */
static int send_kill(const child *c, bool group)
{
#ifdef SYS_pidfd_send_signal
    enum { PROCESS_GROUP = 4 }; /* PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9 */
    if (c->descriptor >= 0) {
        if (syscall(SYS_pidfd_send_signal, c->descriptor, SIGKILL, NULL, group ? PROCESS_GROUP : 0) == 0)
            return 0;
        if (errno == ESRCH) return errno;
    }
#endif
    return kill(group ? -c->pid : c->pid, SIGKILL) == 0 ? 0 : errno;
}

static unsigned milliseconds_of(struct timeval t)
{
    return (unsigned)(t.tv_sec * 1000 + t.tv_usec / 1000);
}

/* Nobody may kill a program that has become another user's. It may end by itself. */
static bool wait_for_killed(const child *c, int error, bool *taken)
{
    enum { UNKILLED_MS = 100 };
    const bool killed = error == 0 || error == ESRCH;
    return wait_until(c, killed ? INT64_MAX : hkc_milliseconds() + UNKILLED_MS, taken);
}

static void end_process(const child *c, hkw_end *end)
{
    struct rusage usage = {0};
    /* Also where the status is taken: a group that has processes keeps its number. */
    send_kill(c, true);
    if (end->late && !wait_for_killed(c, send_kill(c, false), &end->taken)) return;
    /* The number may be another child's by now. */
    if (end->taken) return;
    pid_t got;
    do {
        got = wait4(c->pid, &end->status, 0, &usage);
    } while (got < 0 && errno == EINTR);
    if (got != c->pid) {
        end->taken = true;
        end->status = 0;
        return;
    }
    end->cpu_milliseconds = milliseconds_of(usage.ru_utime) + milliseconds_of(usage.ru_stime);
}

int hkw_process_run(const char *const *program, int input, int output, unsigned milliseconds, hkw_end *end)
{
    *end = (hkw_end){0};
    child c = {0, -1};
    int cancel;
    /* A thread that ended here would leave the process. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const int64_t begun = hkc_milliseconds();
    const int error = start(program, input, output, &c.pid);
    if (!error) {
#ifdef SYS_pidfd_open
        c.descriptor = (int)syscall(SYS_pidfd_open, c.pid, 0);
#endif
        end->late = !wait_until(&c, begun + milliseconds, &end->taken);
        end_process(&c, end);
        end->milliseconds = (unsigned)(hkc_milliseconds() - begun);
        if (c.descriptor >= 0) close(c.descriptor);
    }
    pthread_setcancelstate(cancel, NULL);
    return error;
}
