#define _GNU_SOURCE
#include "hook/deliver.h"

#include "base/map.h"
#include "base/process.h"
#include "common/file.h"
#include "common/pipe.h"
#include "heap/heap.h"
#include "hook/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 1 << 18, NAME = HKC_FILE_NAME };

static char target[NAME]; /* "" = none */
static pid_t owner;       /* the process that plans; a vfork child is another that shares this memory */
static bool written;
bool hkp_report_due;
static int shown = -1;             /* the file to show on stderr */
static char *stack, *beside_stack; /* of copies of the process */

static void in_child(void)
{
    owner = getpid();
    written = false;
    if (shown >= 0) close(shown);
    shown = -1;
    if (!strstr(target, "%p")) target[0] = '\0';
}

/* To stderr, without stdio: others may be in it for ever. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[NAME + 256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n <= 0) return;
    (void)hkc_pipe_write(STDERR_FILENO, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* ---- Files --------------------------------------------------------------------------------------- */

/* The name with %p replaced. */
static bool expand(char out[NAME])
{
    const char *p = strstr(target, "%p");
    int n = p ? snprintf(out, NAME, "%.*s%ld%s", (int)(p - target), target, (long)hkp_process(), p + 2)
              : snprintf(out, NAME, "%s", target);
    return n > 0 && n < NAME;
}

static int write_text(int fd, bool gil)
{
    hkp_out out;
    hkp_out_open(&out, fd);
    hkp_report_text(&out, gil);
    int error = hkp_out_flush(&out);
    hkp_out_close(&out);
    return error;
}

static int write_json(int fd, bool gil)
{
    hkc_json w;
    hkc_json_open_fd(&w, fd);
    hkp_report_json(&w, gil);
    return hkc_json_close(&w);
}

static hkc_file file = {.fd = -1};

/* Returns errno; 0 = it is there. */
static int write_file(const char *name, mode_t mode, bool gil)
{
    int error = hkc_file_open(&file, name, mode);
    return error ? error : hkc_file_close(&file, write_json(file.fd, gil));
}

/* Says at the start what would be said at the end. */
static void try_target(void)
{
    char name[NAME];
    int error = expand(name) ? hkc_file_try(name) : 0;
    if (error) say("hakmem: no report can be written in %s: %s\n", name, strerror(error));
}

void hkp_report_plan(const char *name, bool first)
{
    if (!strstr(name, "%p") && !first) return;
    if (strlen(name) >= sizeof target) {
        fprintf(stderr, "hakmem: no report in %.60s...: the name is too long\n", name);
        return;
    }
    strcpy(target, name);
    hkp_report_due = true;
    owner = getpid();
    if (first && strcmp(name, "-") != 0) try_target();
    pthread_atfork(NULL, NULL, in_child);
}

/* 0 = done. */
static int write_target(bool gil)
{
    char name[NAME] = "stderr";
    int error = 0;
    if (strcmp(target, "-") == 0) {
        int fd = memfd_create("hakmem-report", MFD_CLOEXEC);
        /* The program may have closed stderr: what is written there must not come here. */
        shown = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (fd >= 0) close(fd);
        error = shown < 0 ? errno : write_text(shown, gil);
    } else if (expand(name)) {
        error = write_file(name, 0666, gil);
    }
    if (error) say("hakmem: no report in %s: %s\n", name, strerror(error));
    return error;
}

void hkp_report_write(bool gil)
{
    if (!target[0] || owner != getpid() || written) return;
    int saved = errno;
    hkc_pipe quiet;
    hkc_pipe_begin(&quiet);
    int error = write_target(gil);
    hkc_pipe_end(&quiet, error == EPIPE);
    written = true;
    errno = saved;
}

/* ---- Showing ------------------------------------------------------------------------------------- */

/* The text goes to stderr. */
static void show(int fd)
{
    char bytes[4096];
    bool broken = false;
    hkc_pipe quiet;
    hkc_pipe_begin(&quiet);
    off_t at = 0;
    for (ssize_t n; (n = pread(fd, bytes, sizeof bytes, at)) > 0; at += n) {
        n = write(STDERR_FILENO, bytes, (size_t)n);
        if (n >= 0) continue;
        broken = errno == EPIPE;
        if (errno == EAGAIN) poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR) break;
        n = 0;
    }
    hkc_pipe_end(&quiet, broken);
}

void hkp_report_finish(void)
{
    hkp_report_write(false);
    if (shown < 0 || owner != getpid()) return;
    int fd = shown;
    shown = -1;
    fflush(NULL);
    show(fd);
    close(fd);
}

/* ---- By a copy ----------------------------------------------------------------------------------- */

/* What fork would do first, and what malloc and stdio would wait for, may wait for the thread that the signal
 * came to: a copy is made by clone alone, with a stack of its own, and does without them. It sends no SIGCHLD
 * and is found by no wait of the program. */

typedef struct order {
    const char *file;
    int fd;      /* instead of a file; -1 = none */
    bool locked; /* the heap's locks are held */
    int milliseconds, signal;
    pid_t process, parent;
    uint64_t cpu;
} order;

/* Of the signals only the one that cuts it off: one for the whole group is for the program. */
static void only_alarm(int milliseconds)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &all, NULL);
    const struct itimerval once = {
        .it_value = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static int report_copy(void *of)
{
    const order *o = of;
    only_alarm(o->milliseconds);
    hkp_process_copied(o->process, o->parent, o->cpu);
    if (o->locked) hak_ctx_fork_child(hkp_ctx());
    if (o->fd >= 0) return write_json(o->fd, false) != 0;
    if (o->file) {
        int error = write_file(o->file, 0600, false);
        if (error) say("hakmem: no report in %s: %s\n", o->file, strerror(error));
        return error != 0;
    }
    if (!written && write_target(false) != 0) return 1;
    /* Who reads stderr may take the time that he likes. */
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    if (shown >= 0) show(shown);
    return 0;
}

static int signal_copy(void *of)
{
    const order *o = of;
    only_alarm(10000);
    nanosleep(&(struct timespec){.tv_nsec = o->milliseconds * 1000000L}, NULL);
    kill(o->process, o->signal);
    return 0;
}

static pid_t copy(int (*fn)(void *order), order *o, char **on)
{
    o->process = getpid();
    o->parent = getppid();
    o->cpu = hkp_process_cpu();
    if (!*on) *on = hkp_pages(STACK);
    return *on ? clone(fn, *on + STACK, 0, o) : -1;
}

/* Of a copy that was cut off. */
static void remove_part(const char *name, pid_t of)
{
    char expanded[NAME];
    if (name || expand(expanded)) hkc_file_remove_part(name ? name : expanded, of);
}

int hkp_report_apart(const char *name, int milliseconds)
{
    if (!name && (!target[0] || owner != getpid() || (written && shown < 0))) return 0;
    order o = {.file = name, .fd = -1, .milliseconds = milliseconds};
    int status = 0;
    pid_t child = copy(report_copy, &o, &stack);
    if (child < 0) {
        say("hakmem: no report: %s\n", strerror(errno));
        return 1;
    }
    while (waitpid(child, &status, __WALL) < 0)
        if (errno != EINTR) return 1;
    if (WIFSIGNALED(status)) {
        remove_part(name, child);
        return -1;
    }
    if (name) return WEXITSTATUS(status) != 0;
    if (file.part[0]) unlink(file.part); /* this thread was about to write it */
    file.part[0] = '\0';
    written = true;
    shown = -1;
    return WEXITSTATUS(status) != 0;
}

void hkp_report_again(int signal)
{
    enum { MOMENT = 2 };
    order o = {.milliseconds = MOMENT, .signal = signal};
    copy(signal_copy, &o, &stack);
}

int hkp_report_beside(int fd, int milliseconds)
{
    order o = {.fd = fd, .locked = true, .milliseconds = milliseconds};
    int status = 0;
    if (!hkp_ctx()) return ENOMEM;
    hak_ctx_fork_prepare(hkp_ctx());
    const pid_t child = copy(report_copy, &o, &beside_stack);
    const int error = errno;
    hak_ctx_fork_parent(hkp_ctx());
    if (child < 0) return error;
    while (waitpid(child, &status, __WALL) < 0)
        if (errno != EINTR) return errno;
    return WIFSIGNALED(status) ? ETIMEDOUT : WEXITSTATUS(status) != 0 ? EIO : 0;
}
