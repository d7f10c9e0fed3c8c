#define _GNU_SOURCE
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#ifdef __APPLE__
#include <pthread.h>
#else
#include <sys/syscall.h>
#endif
#include <unistd.h>

/* ---- Names --------------------------------------------------------------------------------------- */

/* Names of what is open already. */
static bool is_stream(const char *name)
{
    return strncmp(name, "/dev/std", 8) == 0 || strncmp(name, "/dev/fd/", 8) == 0 ||
           (strncmp(name, "/proc/", 6) == 0 && strstr(name, "/fd/") != NULL);
}

int hkc_file_descriptor(const char *name)
{
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, standard[i]) == 0) return i;
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(folders[i]);
        char *end;
        if (strncmp(name, folders[i], n) != 0 || name[n] < '0' || name[n] > '9') continue;
        const long number = strtol(name + n, &end, 10);
        if (*end == '\0' && number <= INT_MAX) return (int)number;
    }
    return -1;
}

/* A stream of this process that leads to a file, by the position that the program has in it: what the program
 * writes later goes behind what is written here. -1 = it is none. */
static int open_beside_program(const char *name)
{
    struct stat is;
    const int fd = hkc_file_descriptor(name);
    return fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
}

bool hkc_file_in_place(const char *name)
{
    struct stat is;
    return is_stream(name) || (stat(name, &is) == 0 && !S_ISREG(is.st_mode));
}

/* Whether somebody else put the link into a folder that is open to all, as /tmp is: the kernel follows none of those
 * (fs.protected_symlinks), and nobody else may choose which file is replaced. */
static bool is_planted(char name[HKC_FILE_NAME])
{
    const mode_t open_to_all = S_ISVTX | S_IWOTH;
    struct stat link, folder;
    char *slash = strrchr(name, '/');
    if (lstat(name, &link) != 0) return false;
    if (slash) *slash = '\0';
    const bool known = stat(!slash ? "." : slash == name ? "/" : name, &folder) == 0;
    if (slash) *slash = '/';
    return known && (folder.st_mode & open_to_all) == open_to_all && link.st_uid != geteuid() &&
           link.st_uid != folder.st_uid;
}

/* To where a link leads. realpath may call malloc. */
static int follow(char name[HKC_FILE_NAME])
{
    enum { LINKS = 40 }; /* as the kernel */
    char to[HKC_FILE_NAME];
    for (int i = 0; i < LINKS; i++) {
        ssize_t n = readlink(name, to, sizeof to);
        if (n < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
        if (is_planted(name)) return EACCES;
        const char *slash = strrchr(name, '/');
        size_t folder = to[0] != '/' && slash ? (size_t)(slash - name) + 1 : 0;
        if (folder + (size_t)n >= HKC_FILE_NAME) return ENAMETOOLONG;
        memcpy(name + folder, to, (size_t)n);
        name[folder + (size_t)n] = '\0';
    }
    return ELOOP;
}

/* So many threads with the same number may write the same file at a time. */
enum { PARTS = 100 };

/* Makes the name of the part with that number, from 0 on. */
static void name_part(hkc_file *file, pid_t thread, int number)
{
    const int n = snprintf(file->part, sizeof file->part, "%s.part-%ld", file->name, (long)thread);
    if (number > 0) snprintf(file->part + n, sizeof file->part - (size_t)n, "-%d", number);
}

/* Finds what the name means, which is written beside it. */
static int find_name(hkc_file *file, const char *name)
{
    file->part[0] = '\0';
    if (strlen(name) >= sizeof file->name) return ENAMETOOLONG;
    strcpy(file->name, name);
    return follow(file->name);
}

int hkc_file_of_process(const char *name, pid_t process, char *out)
{
    const char *p = strstr(name, "%p");
    const int n = p ? snprintf(out, HKC_FILE_NAME, "%.*s%ld%s", (int)(p - name), name, (long)process, p + 2)
                    : snprintf(out, HKC_FILE_NAME, "%s", name);
    return n >= 0 && n < HKC_FILE_NAME ? 0 : ENAMETOOLONG;
}

int hkc_file_absolute(const char *name, char *out)
{
    char folder[HKC_FILE_NAME], real[PATH_MAX];
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    size_t n = slash ? (size_t)(last - name) : 0;
    if (*last == '\0') return EISDIR;
    if (n >= sizeof folder) return ENAMETOOLONG;
    memcpy(folder, name, n);
    strcpy(folder + n, n > 0 ? "" : ".");
    if (!realpath(folder, real)) return errno;
    const char *between = strcmp(real, "/") == 0 ? "" : "/";
    int length = snprintf(out, HKC_FILE_NAME, "%s%s%s", real, between, last);
    return length < HKC_FILE_NAME ? 0 : ENAMETOOLONG;
}

/* ---- Writing ------------------------------------------------------------------------------------- */

static bool same_file(int fd, const char *name)
{
    struct stat is, named;
    return fstat(fd, &is) == 0 && lstat(name, &named) == 0 && is.st_dev == named.st_dev &&
           is.st_ino == named.st_ino;
}

/* Removes a file of that name that is left from a thread that had this number before. Who writes one has it
 * locked: in another container, whose volume this is too, a thread may have the same number at the same time.
 * What cannot be opened or locked counts as written: it may be another user's, or there are no locks. false =
 * it is there still. */
static bool remove_stale(const char *part)
{
    const int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    int fd = open(part, O_WRONLY | flags); /* NFS locks only what is open for writing */
    if (fd < 0 && errno == EACCES) fd = open(part, O_RDONLY | flags);
    if (fd < 0) return errno == ENOENT;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    /* Meanwhile another may have removed it, and write one of the same name. */
    const bool gone = locked && (!same_file(fd, part) || unlink(part) == 0);
    close(fd);
    return gone;
}

/* Makes the file beside the name, and locks it until it has its name. -1 = errno. */
static int make_part(hkc_file *file, pid_t thread, mode_t mode)
{
    enum { TRIES = 2 * PARTS };
    int number = 0;
    for (int i = 0; i < TRIES && number < PARTS; i++) {
        name_part(file, thread, number);
        const int fd = open(file->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd < 0) {
            if (!remove_stale(file->part)) number++;
            continue;
        }
        /* Where there are no locks, nobody takes the file for one that is left. */
        const bool own = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (own && same_file(fd, file->part)) {
            file->lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
            if (file->lock >= 0) return fd;
            const int error = errno;
            unlink(file->part);
            close(fd);
            errno = error;
            return -1;
        }
        close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* The number is given up first: it may be another file's as soon as it is closed. */
static void drop_lock(hkc_file *file)
{
    const int lock = file->lock;
    file->lock = -1;
    close(lock);
}

static pid_t this_thread(void)
{
#ifdef __APPLE__
    uint64_t number = 0;
    pthread_threadid_np(NULL, &number);
    return (pid_t)number;
#else
    return (pid_t)syscall(SYS_gettid);
#endif
}

static int open_part(hkc_file *file, const char *name, mode_t mode)
{
    struct stat is;
    int error = find_name(file, name);
    const bool there = !error && stat(file->name, &is) == 0;
    if (there) {
        if (access(file->name, W_OK) != 0) error = errno;
        mode = is.st_mode & 0777;
    }
    if (error) return error;
    file->fd = make_part(file, this_thread(), mode);
    /* That of a file that was there goes before the umask. */
    if (file->fd >= 0 && (!there || fchmod(file->fd, mode) == 0)) {
        hkc_pipe_begin(&file->quiet);
        return 0;
    }
    error = errno;
    if (file->fd >= 0) {
        unlink(file->part); /* first: without the lock the name may be another's */
        close(file->fd);
        drop_lock(file);
        file->fd = -1;
    }
    file->part[0] = '\0';
    return error;
}

int hkc_file_open_at_once(const char *name, int flags, mode_t mode)
{
    const int fd = open(name, O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, mode);
    if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

int hkc_file_open(hkc_file *file, const char *name, mode_t mode)
{
    file->fd = -1;
    file->lock = -1;
    file->part[0] = '\0';
    if (!hkc_file_in_place(name)) return open_part(file, name, mode);
    file->fd = open_beside_program(name);
    if (file->fd >= 0) return 0;
    /* Behind what is in the file that a stream of another process leads to. */
    file->fd = hkc_file_open_at_once(name, is_stream(name) ? O_APPEND : 0, 0);
    return file->fd >= 0 ? 0 : errno;
}

int hkc_file_close(hkc_file *file, int error)
{
    if (file->fd >= 0 && close(file->fd) != 0 && !error) error = errno;
    file->fd = -1;
    if (file->part[0] == '\0') return error;
    if (!error && rename(file->part, file->name) != 0) error = errno;
    if (error) unlink(file->part);
    drop_lock(file);
    hkc_pipe_end(&file->quiet, error ? EFBIG : 0);
    file->part[0] = '\0';
    return error;
}

/* Without the lock the name may be another's, or nobody's yet. */
void hkc_file_abandon(hkc_file *file)
{
    if (file->part[0] == '\0') return;
    if (file->lock < 0) remove_stale(file->part);
    else if (same_file(file->lock, file->part)) unlink(file->part);
    file->part[0] = '\0';
}

int hkc_file_try(const char *name)
{
    hkc_file file;
    struct stat is;
    if (stat(name, &is) == 0 && S_ISDIR(is.st_mode)) return EISDIR;
    if (hkc_file_in_place(name)) return 0;
    int error = hkc_file_open(&file, name, 0600);
    if (!error) hkc_file_close(&file, ECANCELED);
    return error;
}

/* A pipe is left alone: its reader would take a close for the end. */
int hkc_file_try_append(const char *name)
{
    char folder[HKC_FILE_NAME];
    struct stat is;
    if (stat(name, &is) == 0) {
        if (S_ISDIR(is.st_mode)) return EISDIR;
        return !S_ISREG(is.st_mode) || faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) == 0 ? 0 : errno;
    }
    if (errno != ENOENT) return errno;
    if (strlen(name) >= sizeof folder) return ENAMETOOLONG;
    strcpy(folder, name);
    const int error = follow(folder);
    if (error) return error;
    char *slash = strrchr(folder, '/');
    if (slash == folder) slash++;
    if (slash) *slash = '\0';
    return faccessat(AT_FDCWD, slash ? folder : ".", W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

void hkc_file_remove_part(const char *name, pid_t thread)
{
    hkc_file file;
    if (hkc_file_in_place(name) || find_name(&file, name) != 0) return;
    for (int number = 0; number < PARTS; number++) {
        name_part(&file, thread, number);
        remove_stale(file.part);
    }
}
