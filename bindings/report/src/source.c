#include "source.h"

#include "common/clock.h"
#include "common/live.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A report of a million stacks is below that. */
enum { REPORT_MOST = 1 << 30 };

static bool is_socket(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 && S_ISSOCK(is.st_mode);
}

/* A server may have begun as root and be somebody else now. */
static bool find_process(hkr_source *s, pid_t process, char *error)
{
    char proc[64], path[HKC_LIVE_PATH];
    struct stat is;
    snprintf(proc, sizeof proc, "/proc/%ld", (long)process);
    if (stat(proc, &is) != 0) return hkr_fail(error, "there is no process %ld", (long)process);
    const uid_t users[] = {is.st_uid, geteuid(), 0};
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        hkc_live_path(path, users[i], process);
        if (!is_socket(path)) continue;
        *s = (hkr_source){.is_socket = true, .process = process};
        snprintf(s->path, sizeof s->path, "%s", path);
        return true;
    }
    return hkr_fail(
        error,
        "process %ld does not listen: it was started without a live view (HAKMEM=live=on, --hak-live=on or "
        "python -m hakmem run --live), or belongs to another user",
        (long)process);
}

bool hkr_source_find(hkr_source *s, const char *what, char *error)
{
    char *end;
    const long process = strtol(what, &end, 10);
    struct stat is;
    if (end != what && *end == '\0' && process > 0 && process <= INT32_MAX && stat(what, &is) != 0)
        return find_process(s, (pid_t)process, error);
    if (strlen(what) >= sizeof s->path) return hkr_fail(error, "%.100s: %s", what, strerror(ENAMETOOLONG));
    if (stat(what, &is) != 0)
        return hkr_fail(error,
                        errno == ENOENT && !strchr(what, '/')
                            ? "%.400s: neither the number of a process nor a socket or a file"
                            : "%.400s: %s",
                        what, strerror(errno));
    *s = (hkr_source){.is_socket = is_socket(what)};
    strcpy(s->path, what);
    return true;
}

/* Nobody else may answer in the place of the process. */
static bool is_trusted(const hkr_source *s, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return s->process != 0 ? peer.pid == s->process
                           : peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0;
}

/* ---- The answer ----------------------------------------------------------------------------------- */

/* A connection, and when its patience ends. */
typedef struct call {
    int fd, error; /* errno of what failed */
    int64_t end;
} call;

static int left(call *c)
{
    const int64_t all = HKR_SOURCE_SECONDS * 1000, now = hkc_milliseconds();
    if (c->end - now > all) c->end = now + all; /* the clock went back */
    return c->end > now ? (int)(c->end - now) : 0;
}

/* Of a FILE. A signal, as where a window changes its size, ends no wait. */
static ssize_t read_some(void *cookie, char *bytes, size_t size)
{
    call *c = cookie;
    struct pollfd answer = {.fd = c->fd, .events = POLLIN};
    for (;;) {
        const int ready = poll(&answer, 1, left(c));
        const ssize_t n = ready > 0 ? read(c->fd, bytes, size) : -1;
        if (n >= 0) return n;
        if (ready == 0) errno = ETIMEDOUT;
        if (errno == EINTR) continue;
        c->error = errno;
        return -1;
    }
}

/* 0 or errno. It waits where many others are being served. */
static int connect_to(call *c, const struct sockaddr_un *address)
{
    for (;;) {
        const int wait = left(c);
        const struct timeval patience = {.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000};
        if (wait == 0) return ETIMEDOUT;
        setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(c->fd, (const struct sockaddr *)address, sizeof *address) == 0) return 0;
        if (errno != EINTR) return errno == EAGAIN ? ETIMEDOUT : errno;
    }
}

static bool failed(const hkr_source *s, int number, char *error)
{
    if (number == ETIMEDOUT)
        return hkr_fail(error, "%.400s: no answer in %d seconds", s->path, HKR_SOURCE_SECONDS);
    const bool ended = number == ECONNREFUSED || number == ECONNRESET; /* before, or since it was dialled */
    return hkr_fail(error, "%.400s: %s", s->path,
                    ended ? "nobody listens: the process has ended" : strerror(number));
}

/* The fd is the caller's, even where it fails; -1 = none. */
static bool dial(call *c, const hkr_source *s, char *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(s->path) >= sizeof address.sun_path) return failed(s, ENAMETOOLONG, error);
    strcpy(address.sun_path, s->path);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int number = c->fd < 0 ? errno : connect_to(c, &address);
    if (number) return failed(s, number, error);
    return is_trusted(s, c->fd) ? true
                                : hkr_fail(error, "%.400s: another process has taken this place", s->path);
}

static hkr_report *receive(call *c, const hkr_source *s, char *error)
{
    FILE *in = fopencookie(c, "r", (cookie_io_functions_t){.read = read_some});
    if (!in) {
        failed(s, errno, error);
        return NULL;
    }
    hkr_report *r = NULL;
    const int first = fgetc(in);
    if (first != EOF) {
        ungetc(first, in);
        r = hkr_load_stream(in, REPORT_MOST, s->path, error);
    } else if (!c->error) {
        hkr_fail(error, "%.400s: the process gave no report", s->path);
    }
    if (!r && c->error) failed(s, c->error, error);
    fclose(in);
    return r;
}

hkr_report *hkr_source_load(const hkr_source *s, char *error)
{
    if (!s->is_socket) return hkr_load(s->path, error);
    call c = {.fd = -1, .end = hkc_milliseconds() + HKR_SOURCE_SECONDS * 1000};
    hkr_report *r = dial(&c, s, error) ? receive(&c, s, error) : NULL;
    if (c.fd >= 0) close(c.fd);
    return r;
}
