/* The file of --hak-report is written beside its name and renamed when it is whole: until then, and if a
 * signal ends the process, what was there stays. */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *special; /* stderr; or a pipe, a terminal, /dev/stdout: no file may take its place */
static char *file;    /* absolute, for the program may change directories; NULL = special */
static char *part;    /* the name beside it, while it is written */
static mode_t mode = 0666;

/* Names of what is open already, as /dev/stdout and /dev/fd/3. */
static bool is_stream(const char *name)
{
    return strncmp(name, "/dev/std", 8) == 0 || strncmp(name, "/dev/fd/", 8) == 0 ||
           strncmp(name, "/proc/", 6) == 0;
}

/* The absolute name of a file that need not exist; NULL = errno says why there can be none. */
static char *absolute(const char *name)
{
    char *whole = realpath(name, NULL);
    if (whole || errno != ENOENT) return whole;
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    if (*last == '\0') {
        errno = EISDIR;
        return NULL;
    }
    char *folder = slash ? strndup(name, (size_t)(last - name)) : strdup(".");
    char *real = folder ? realpath(folder, NULL) : NULL;
    if (real && (whole = malloc(strlen(real) + strlen(last) + 2))) sprintf(whole, "%s/%s", real, last);
    free(real);
    free(folder);
    return whole;
}

static FILE *open_part(void)
{
    sprintf(part, "%s.part-%ld", file, (long)getpid());
    unlink(part); /* of a process that had this number before */
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return fd >= 0 ? fdopen(fd, "w") : NULL;
}

bool hkl_report_plan(const char *name)
{
    struct stat is;
    special = stderr;
    if (!name) return true;
    const bool exists = stat(name, &is) == 0;
    if ((exists && !S_ISREG(is.st_mode)) || is_stream(name)) return (special = fopen(name, "we"));
    if (exists && access(name, W_OK) != 0) return false;
    if (exists) mode = is.st_mode & 0777;
    if (!(file = absolute(name)) || !(part = malloc(strlen(file) + 32))) return false;
    FILE *tried = open_part();
    if (!tried) return false;
    fclose(tried);
    return unlink(part) == 0;
}

FILE *hkl_report_open(void)
{
    return file ? open_part() : special;
}

bool hkl_report_close(FILE *out, bool ok)
{
    if (out == stderr) return ok;
    if (!out || fclose(out) != 0) ok = false;
    if (!file) return ok;
    if (ok && rename(part, file) == 0) return true;
    unlink(part);
    return false;
}
