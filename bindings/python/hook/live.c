#define _GNU_SOURCE
#include "hook/live.h"

#include "base/cpython.h"
#include "common/file.h"
#include "common/live.h"
#include "hook/deliver.h"
#include "hook/say.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[HKC_LIVE_PATH]; /* "" = none */
static bool planned;
static pid_t owner; /* has a socket; a child of vfork is another process that shares this memory */
static char why[HKC_LIVE_ERROR];

/* The file goes to the viewer as it is. */
static int pass(int fd, hkc_json *w)
{
    char bytes[HKC_JSON_BUFFER];
    int error = 0;
    off_t at = 0;
    for (ssize_t n; !error && (n = pread(fd, bytes, sizeof bytes, at)) > 0; at += n)
        error = w->put(w->to, bytes, (size_t)n);
    return at == 0 && !error ? EIO : error;
}

/* On a thread that Python does not know, beside threads that allocate, end and begin a profile: of a copy of
 * the process all of that stands still. It may meet a lock of the loader that another thread held, and is
 * made again. */
static int report(void *unused, hkc_json *w)
{
    static const int patience[] = {250, 1000, 6000}; /* milliseconds; a viewer waits for 10 seconds */
    const int fd = memfd_create("hakmem-live", MFD_CLOEXEC);
    int error = fd < 0 ? errno : ETIMEDOUT;
    (void)unused;
    for (size_t i = 0; error == ETIMEDOUT && i < sizeof patience / sizeof *patience; i++) {
        error = ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 ? errno : 0;
        if (!error) error = hkp_report_beside(fd, patience[i]);
    }
    if (!error) error = pass(fd, w);
    if (fd >= 0) close(fd);
    return error;
}

static const char *begin(void)
{
    const hkc_live_options options = {.place = place, .report = report};
    owner = getpid();
    if (hkc_live_begin(&options, why)) return NULL;
    owner = 0;
    return why;
}

static bool paused;
static void *(*frame_now)(void); /* PyEval_GetFrame */
static void *forking;            /* the frame that forks, for as long as the thread pauses */
static int looks;                /* of resume(), since */
enum { LOOKS_MOST = 10000 };     /* they take some milliseconds */

/* The thread is gone, and the socket is the parent's. */
static void after_fork(void)
{
    hkc_live_in_child();
    owner = 0;
    paused = false;
}

/* The links of this folder are the two of every folder, and one for each thread. */
static bool is_second_of_two(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 4;
}

void hkp_live_before_fork(void)
{
    enum { WARNS = 0x030c };
    const hkp_python *python = hkp_python_find();
    if (owner != getpid() || !python || python->version < WARNS || !is_second_of_two() ||
        !hkp_function("PyEval_GetFrame", &frame_now) || !hkc_live_pause())
        return;
    paused = true;
    forking = frame_now();
    looks = 0;
}

/* Python looks for threads after it has called all who asked for that, which may be functions that make
 * pending calls. The fork is over where the frame that forked goes on, and for who takes long. */
static int resume(void *unused)
{
    const hkp_python *python = hkp_python_find();
    if (!paused || owner != getpid()) return 0;
    if (frame_now() != forking && ++looks < LOOKS_MOST && python->add_pending_call(resume, unused) == 0)
        return 0;
    paused = false;
    const char *wrong = hkc_live_resume();
    if (wrong) hkp_say("hakmem: no thread for the socket: %s\n", wrong);
    return 0;
}

void hkp_live_after_fork(void)
{
    const hkp_python *python = hkp_python_find();
    if (!paused || owner != getpid() || python->add_pending_call(resume, NULL) == 0) return;
    looks = LOOKS_MOST;
    resume(NULL);
}

const char *hkp_live_start(const char *at)
{
    static bool watched;
    if (owner == getpid()) return "there is a socket already";
    if (strlen(at) >= sizeof place) return strerror(ENAMETOOLONG);
    strcpy(place, at);
    if (!watched && pthread_atfork(NULL, NULL, after_fork) == 0) watched = true;
    return begin();
}

void hkp_live_plan(const char *at, bool first)
{
    if (strcmp(at, "on") != 0 && !strstr(at, "%p") && !first) return;
    planned = strlen(at) < sizeof place;
    if (planned) strcpy(place, at);
    else fprintf(stderr, "hakmem: HAKMEM_LIVE: no socket at %.60s...: the name is too long\n", at);
}

bool hkp_live_first_call(void)
{
    char at[sizeof place];
    if (!planned) return false;
    if (owner == getpid()) return true; /* of a Python before, in the same process */
    strcpy(at, place);
    const char *wrong = hkp_live_start(at);
    if (wrong) fprintf(stderr, "hakmem: HAKMEM_LIVE: %s\n", wrong);
    return !wrong;
}

void hkp_live_in_child(void)
{
    if (place[0] && (strcmp(place, "on") == 0 || strstr(place, "%p"))) begin();
}

void hkp_live_end(void)
{
    if (owner != 0 && owner == getpid()) hkc_live_end();
}

void hkp_live_leave(void)
{
    char path[HKC_FILE_NAME];
    if (owner == 0 || owner != getpid()) return;
    if (strcmp(place, "on") == 0) hkc_live_path(path, geteuid(), owner);
    else if (hkc_file_of_process(place, owner, path)) return;
    unlink(path);
}
