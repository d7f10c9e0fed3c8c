#define _GNU_SOURCE
#include "hook/deliver.h"

#include "base/process.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/pipe.h"
#include "heap/heap.h"
#include "hook/copy.h"
#include "hook/report.h"
#include "hook/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NAME = HKC_FILE_NAME };

static char target[NAME]; /* "" = none */
static pid_t owner;       /* the process that plans; a vfork child is another that shares this memory */
static bool written;
bool hkp_report_due;
static int shown = -1;                             /* the file to show on stderr */
static char *stack, *beside_stack, *between_stack; /* of copies of the process */

static void in_child(void)
{
    owner = getpid();
    written = false;
    if (shown >= 0) close(shown);
    shown = -1;
    hkp_say_in_child();
    if (!strstr(target, "%p")) target[0] = '\0';
}

/* ---- Files --------------------------------------------------------------------------------------- */

/* The name with %p replaced. */
static bool expand(char out[NAME])
{
    return target[0] != '\0' && hkc_file_of_process(target, hkp_process(), out) == 0;
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
    if (error) hkp_say("hakmem: no report can be written in %s: %s\n", name, strerror(error));
}

void hkp_report_plan(const char *name, bool first)
{
    if (!strstr(name, "%p") && !first) return;
    const bool text = strcmp(name, "-") == 0;
    if (strlen(name) >= sizeof target) {
        hkp_say("hakmem: no report in %.60s...: the name is too long\n", name);
        return;
    }
    if (text && !hkp_say_keep()) return;
    strcpy(target, name);
    hkp_report_due = true;
    owner = getpid();
    if (first && !text) try_target();
    pthread_atfork(NULL, NULL, in_child);
}

bool hkp_report_in_place(void)
{
    char name[NAME];
    return target[0] && strcmp(target, "-") != 0 && expand(name) && hkc_file_in_place(name);
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
    if (error) hkp_say("hakmem: no report in %s: %s\n", name, strerror(error));
    return error;
}

void hkp_report_write(bool gil)
{
    if (!target[0] || owner != getpid() || written) return;
    int saved = errno;
    hkc_pipe quiet;
    hkc_pipe_begin(&quiet);
    int error = write_target(gil);
    hkc_pipe_end(&quiet, error);
    written = true;
    errno = saved;
}

void hkp_report_renew(void)
{
    if (owner != getpid()) return;
    if (shown >= 0) close(shown);
    shown = -1;
    written = false;
}

/* ---- Showing ------------------------------------------------------------------------------------- */

/* What is in the file, from its beginning, goes to who reads the other one, if it takes him long. Returns
 * errno; 0 = all of it. */
static int pass(int fd, int to)
{
    char bytes[4096];
    int error = 0;
    hkc_pipe quiet;
    hkc_pipe_begin(&quiet);
    off_t at = 0;
    for (ssize_t n; !error && (n = pread(fd, bytes, sizeof bytes, at)) > 0; at += n) {
        n = write(to, bytes, (size_t)n);
        if (n >= 0) continue;
        if (errno == EAGAIN) poll(&(struct pollfd){.fd = to, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR) error = errno;
        n = 0;
    }
    hkc_pipe_end(&quiet, error);
    return error;
}

/* The text goes to stderr. */
static void show(int fd)
{
    const int to = hkp_say_descriptor();
    if (to >= 0) (void)pass(fd, to);
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

/* A pipe has the report once and whole: a copy that is cut off must not have begun to write into it. */
static int write_in_place(const char *name)
{
    const int fd = memfd_create("hakmem-report", MFD_CLOEXEC);
    int error = fd < 0 ? errno : write_json(fd, false);
    hkp_copy_grant(0);
    if (!error) error = hkc_file_open(&file, name, 0);
    return error ? error : hkc_file_close(&file, pass(fd, file.fd));
}

/* What a copy is to write: into the file, or where the report is due. Who reads it there may take the time
 * that he likes. */
static int write_in_copy(void *of)
{
    const char *name = of;
    char due[NAME];
    int error = 0;
    if (!name && strcmp(target, "-") != 0 && expand(due) && hkc_file_in_place(due)) {
        name = due;
        error = write_in_place(due);
    } else if (name) {
        error = write_file(name, 0600, false);
    } else {
        if (!written && write_target(false) != 0) return 1;
        hkp_copy_grant(0);
        if (shown >= 0) show(shown);
    }
    if (error) hkp_say("hakmem: no report in %s: %s\n", name, strerror(error));
    return error != 0;
}

/* Of a copy that was cut off. */
static void remove_part(void *of, pid_t copy)
{
    const char *name = of;
    char expanded[NAME];
    if (name || expand(expanded)) hkc_file_remove_part(name ? name : expanded, copy);
}

/* Where the report is due, or its text is to be shown still. */
static bool is_left(void)
{
    return target[0] && owner == getpid() && (!written || shown >= 0);
}

/* It was written by a copy. */
static void settle(void)
{
    hkc_file_abandon(&file); /* this thread was about to write it */
    written = true;
    shown = -1;
}

hkp_apart hkp_report_apart(const char *name, int milliseconds)
{
    void *of = (void *)(uintptr_t)name;
    if (!name && !is_left()) return HKP_APART_DONE;
    const hkp_copied copy = hkp_copy_run(&stack, write_in_copy, of, milliseconds);
    if (copy.status == -2) {
        hkp_say("hakmem: no report: %s\n", strerror(errno));
        return HKP_APART_FAILED;
    }
    if (copy.status == -1) {
        remove_part(of, copy.process);
        return copy.waited ? HKP_APART_WAITED : HKP_APART_CUT;
    }
    if (!name) settle();
    return copy.status != 0 ? HKP_APART_FAILED : HKP_APART_DONE;
}

bool hkp_report_leave(void)
{
    if (!is_left()) return true;
    const int status = hkp_copy_insist(write_in_copy, NULL, remove_part);
    if (status == -2) hkp_say("hakmem: no report: %s\n", strerror(errno));
    if (status == -1) hkp_say("hakmem: no report: the process ends in the middle of an allocation\n");
    settle();
    return status != -1;
}

typedef struct again {
    int signal;
    pid_t thread;
} again;

static int send_in_copy(void *of)
{
    enum { MOMENT_NS = 2000000 };
    const again *a = of;
    nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
    /* Another thread may end meanwhile, and the signal with it. */
    if (a->thread != hkp_process()) return kill(hkp_process(), a->signal);
    return (int)syscall(SYS_tgkill, hkp_process(), a->thread, a->signal);
}

void hkp_report_again(int signal)
{
    enum { LONG = 10000 };
    again a = {signal, (pid_t)syscall(SYS_gettid)};
    hkp_copy_start(&stack, send_in_copy, &a, LONG);
}

/* ---- With the heap's locks ----------------------------------------------------------------------- */

static int write_beside(void *of)
{
    const int *fd = of;
    return write_json(*fd, false) != 0;
}

typedef struct between {
    const char *file;
    int64_t until;
} between;

/* Nobody looks for a file that comes later: the wait for the locks, and the making of the copy, count as well. */
static int write_between(void *of)
{
    const between *b = of;
    const int64_t left = b->until - hkc_milliseconds();
    if (left <= 0) return 1;
    hkp_copy_grant((int)left);
    return write_file(b->file, 0600, false) != 0;
}

static int error_of(const hkp_copied *copy)
{
    if (copy->status == -2) return errno;
    return copy->status == -1 ? ETIMEDOUT : copy->status != 0 ? EIO : 0;
}

int hkp_report_beside(int fd, int milliseconds)
{
    const hkp_copied copy = hkp_copy_run_held(&beside_stack, write_beside, &fd, milliseconds);
    return error_of(&copy);
}

int hkp_report_between(const char *name, int64_t until)
{
    enum { MOST = 60000 };
    between b = {name, until};
    const hkp_copied copy = hkp_copy_run_held(&between_stack, write_between, &b, MOST);
    const int error = error_of(&copy);
    if (error == ETIMEDOUT) remove_part((void *)(uintptr_t)name, copy.process);
    return error;
}
