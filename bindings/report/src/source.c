#include "source.h"

#include "common/live.h"

#include <errno.h>
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
        error, "process %ld does not listen: it was not started with live=on, or belongs to somebody else",
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
    if (stat(what, &is) != 0) return hkr_fail(error, "%.400s: %s", what, strerror(errno));
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

static FILE *dial(const hkr_source *s, char *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = HKR_SOURCE_SECONDS};
    if (strlen(s->path) >= sizeof address.sun_path) {
        hkr_fail(error, "%.400s: %s", s->path, strerror(ENAMETOOLONG));
        return NULL;
    }
    strcpy(address.sun_path, s->path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *in = NULL;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        hkr_fail(error, "%.400s: %s", s->path,
                 errno == ECONNREFUSED ? "nobody listens: the process has ended" : strerror(errno));
    else if (!is_trusted(s, fd)) hkr_fail(error, "%.400s: another process has taken this place", s->path);
    else in = fdopen(fd, "r");
    if (!in && fd >= 0) close(fd);
    return in;
}

hkr_report *hkr_source_load(const hkr_source *s, char *error)
{
    if (!s->is_socket) return hkr_load(s->path, error);
    FILE *in = dial(s, error);
    if (!in) return NULL;
    const int first = fgetc(in);
    hkr_report *r = NULL;
    if (first != EOF) {
        ungetc(first, in);
        r = hkr_load_stream(in, REPORT_MOST, s->path, error);
    } else if (ferror(in)) {
        hkr_fail(error, "%.400s: no answer in %d seconds", s->path, HKR_SOURCE_SECONDS);
    } else {
        hkr_fail(error, "%.400s: the process gave no report", s->path);
    }
    fclose(in);
    return r;
}
