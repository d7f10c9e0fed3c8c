#define _GNU_SOURCE
#include "hook/deliver.h"

#include "base/map.h"
#include "base/process.h"
#include "hook/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { STACK = 1 << 18, NAME = 4096, PART = NAME + 32 };

static char target[NAME]; /* "" = none */
static pid_t owner;       /* the process that plans; a vfork child is another that shares this memory */
static bool written;
bool hkp_report_due;
static int shown = -1; /* the file to show on stderr */
static char *stack;    /* of copies of the process */

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
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1) < 0)
        return;
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

/* To where a link leads. realpath may call malloc. */
static void follow(char name[NAME])
{
    enum { LINKS = 16 };
    char to[NAME];
    for (int i = 0; i < LINKS; i++) {
        ssize_t n = readlink(name, to, sizeof to - 1);
        const char *slash = strrchr(name, '/');
        size_t folder = n > 0 && to[0] != '/' && slash ? (size_t)(slash - name) + 1 : 0;
        if (n <= 0 || folder + (size_t)n >= NAME) return;
        memcpy(name + folder, to, (size_t)n);
        name[folder + (size_t)n] = '\0';
    }
}

/* A file beside it, of one thread alone. */
static bool part_of(char name[NAME], pid_t thread, char out[PART])
{
    follow(name);
    int n = snprintf(out, PART, "%s.part-%ld", name, (long)thread);
    errno = ENAMETOOLONG;
    return n > 0 && n < PART;
}

static int open_part(char name[NAME], char out[PART], mode_t mode)
{
    if (!part_of(name, (pid_t)syscall(SYS_gettid), out)) return -1;
    unlink(out);
    return open(out, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* Whether there is something by that name that no file may take the place of: a pipe, a terminal, /dev/null.
 */
static bool special(const char *name)
{
    struct stat is;
    return stat(name, &is) == 0 && !S_ISREG(is.st_mode);
}

static int write_json(int fd, bool gil)
{
    hkp_out out;
    hkp_out_open(&out, fd);
    hkp_report_json(&out, gil);
    int error = hkp_out_flush(&out);
    hkp_out_close(&out);
    return error;
}

/* What is being written beside its name; "" = nothing. */
static char part[PART];

/* Returns errno; 0 = it is there. */
static int write_file(char name[NAME], mode_t mode, bool gil)
{
    bool in_place = special(name);
    int fd = in_place ? open(name, O_WRONLY | O_CLOEXEC) : open_part(name, part, mode);
    if (fd < 0) return errno;
    int error = write_json(fd, gil);
    if (close(fd) != 0 && !error) error = errno;
    if (in_place) return error;
    if (!error && rename(part, name) != 0) error = errno;
    if (error) unlink(part);
    part[0] = '\0';
    return error;
}

/* Says at the start what would be said at the end. */
static void try_target(void)
{
    char name[NAME], tried[PART];
    if (!expand(name) || special(name)) return;
    int fd = open_part(name, tried, 0666);
    if (fd < 0) {
        say("hakmem: no report can be written in %s: %s\n", name, strerror(errno));
        return;
    }
    close(fd);
    unlink(tried);
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
        shown = memfd_create("hakmem-report", MFD_CLOEXEC);
        error = shown < 0 ? errno : write_json(shown, gil);
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
    write_target(gil);
    written = true;
    errno = saved;
}

/* ---- Showing ------------------------------------------------------------------------------------- */

/* Text is made by the tool, in a process of its own: this one may be in any state. */
typedef struct tool {
    char *interpreter, file[32], *arguments[6], **environment;
} tool;

static bool tool_for(tool *t, int fd)
{
    *t = (tool){.interpreter = getenv("HAKMEM_PYTHON")};
    snprintf(t->file, sizeof t->file, "/proc/self/fd/%d", fd);
    char *const arguments[] = {t->interpreter,   (char *)"-m", (char *)"hakmem",
                               (char *)"report", t->file,      NULL};
    memcpy(t->arguments, arguments, sizeof arguments);
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    t->environment = hkp_pages((count + 1) * sizeof *t->environment);
    if (!t->interpreter || !t->environment) {
        say("hakmem: no report on stderr: HAKMEM_PYTHON names no Python\n");
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "HAKMEM_", 7) != 0 && strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            t->environment[kept++] = environ[i];
    return true;
}

static void show(int fd)
{
    tool t;
    if (!tool_for(&t, fd)) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fd, fd); /* it stays open */
    /* `-m` looks for modules in the current folder first, which is the program's. */
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    pid_t child;
    if (posix_spawn(&child, t.interpreter, &actions, NULL, t.arguments, t.environment) == 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
    posix_spawn_file_actions_destroy(&actions);
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
    int milliseconds, signal;
    pid_t process, parent;
    struct rusage usage;
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

static int become_tool(void)
{
    tool t;
    sigset_t none;
    if (!tool_for(&t, shown) || fcntl(shown, F_SETFD, 0) != 0) return 1;
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (chdir("/") != 0) return 1;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(t.interpreter, t.arguments, t.environment);
    return 1;
}

static int report_copy(void *of)
{
    const order *o = of;
    only_alarm(o->milliseconds);
    hkp_process_copied(o->process, o->parent, &o->usage);
    char name[NAME];
    if (o->file) {
        snprintf(name, sizeof name, "%s", o->file);
        int error = write_file(name, 0600, false);
        if (error) say("hakmem: no report in %s: %s\n", name, strerror(error));
        return error != 0;
    }
    if (!written && write_target(false) != 0) return 1;
    /* The text takes an interpreter, which is not cut short by what the report may take. */
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    return shown >= 0 ? become_tool() : 0;
}

static int signal_copy(void *of)
{
    const order *o = of;
    only_alarm(10000);
    nanosleep(&(struct timespec){.tv_nsec = o->milliseconds * 1000000L}, NULL);
    kill(o->process, o->signal);
    return 0;
}

static pid_t copy(int (*fn)(void *order), order *o)
{
    o->process = getpid();
    o->parent = getppid();
    getrusage(RUSAGE_SELF, &o->usage);
    if (!stack) stack = hkp_pages(STACK);
    return stack ? clone(fn, stack + STACK, 0, o) : -1;
}

/* Of a copy that was cut off. */
static void remove_part(const char *file, pid_t of)
{
    char name[NAME], left[PART];
    if (file) snprintf(name, sizeof name, "%s", file);
    else if (!expand(name)) return;
    if (part_of(name, of, left)) unlink(left);
}

int hkp_report_apart(const char *file, int milliseconds)
{
    if (!file && (!target[0] || owner != getpid() || (written && shown < 0))) return 0;
    order o = {.file = file, .milliseconds = milliseconds};
    int status = 0;
    pid_t child = copy(report_copy, &o);
    if (child < 0) {
        say("hakmem: no report: %s\n", strerror(errno));
        return 1;
    }
    while (waitpid(child, &status, __WALL) < 0)
        if (errno != EINTR) return 1;
    if (WIFSIGNALED(status)) {
        remove_part(file, child);
        return -1;
    }
    if (file) return WEXITSTATUS(status) != 0;
    if (part[0]) unlink(part); /* this thread was about to write it */
    part[0] = '\0';
    written = true;
    shown = -1;
    return WEXITSTATUS(status) != 0;
}

void hkp_report_again(int signal)
{
    enum { MOMENT = 2 };
    order o = {.milliseconds = MOMENT, .signal = signal};
    copy(signal_copy, &o);
}
