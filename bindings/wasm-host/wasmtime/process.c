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
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
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

/* Whether it ended; its status stays. *taken: nobody has it any more, because the host ignores SIGCHLD or takes
 * every child's. */
static bool has_ended(pid_t pid, bool *taken)
{
    siginfo_t info;
    info.si_pid = 0;
    const int result = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    *taken = result != 0 && errno == ECHILD;
    return *taken || (result == 0 && info.si_pid == pid);
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
static bool wait_until(pid_t pid, int64_t deadline, bool *taken)
{
#ifdef SYS_pidfd_open
    const int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
#else
    const int descriptor = -1;
#endif
    int64_t pause = 1;
    bool ended = false;
    for (;;) {
        ended = has_ended(pid, taken);
        const int64_t left = deadline - hkc_milliseconds();
        if (ended || left <= 0) break;
        wait_a_while(descriptor, left, &pause);
    }
    if (descriptor >= 0) close(descriptor);
    return ended;
}

static unsigned milliseconds_of(struct timeval t)
{
    return (unsigned)(t.tv_sec * 1000 + t.tv_usec / 1000);
}

static void end_process(pid_t pid, hkw_end *end)
{
    struct rusage usage = {0};
    /* Until its status is taken, the number is no other process'. */
    if (!end->taken) kill(-pid, SIGKILL);
    if (end->late) kill(pid, SIGKILL);
    pid_t got;
    do {
        got = wait4(pid, &end->status, 0, &usage);
    } while (got < 0 && errno == EINTR);
    if (got != pid) {
        end->taken = true;
        end->status = 0;
        return;
    }
    end->cpu_milliseconds = milliseconds_of(usage.ru_utime) + milliseconds_of(usage.ru_stime);
}

int hkw_process_run(const char *const *program, int input, int output, unsigned milliseconds, hkw_end *end)
{
    *end = (hkw_end){0};
    pid_t pid;
    int cancel;
    /* A thread that ended here would leave the process. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const int64_t begun = hkc_milliseconds();
    const int error = start(program, input, output, &pid);
    if (!error) {
        end->late = !wait_until(pid, begun + milliseconds, &end->taken);
        end_process(pid, end);
        end->milliseconds = (unsigned)(hkc_milliseconds() - begun);
    }
    pthread_setcancelstate(cancel, NULL);
    return error;
}
