#include "common/policy.h"

#include "common/file.h"
#include "common/pages.h"
#include "common/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef O_CLOEXEC /* Windows: handed to no program, and bytes as they are */
#define O_CLOEXEC (O_NOINHERIT | O_BINARY)
#define O_NONBLOCK 0
#endif

enum { MOST = (1 << 20) + 1 };

static void block(int fd)
{
#ifndef _WIN32
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
#else
    (void)fd;
#endif
}

/* In pages of its own, for the first malloc of a process may be what reads it. NULL = errno says why. */
static char *read_all(const char *file, size_t *n)
{
    /* A named pipe into which nobody writes is empty, and no reason to wait for ever. */
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) block(fd);
    char *text = fd >= 0 ? hkc_pages(MOST) : NULL;
    ssize_t got = text ? 1 : -1;
    for (*n = 0; got > 0 && *n < MOST; *n += (size_t)got)
        if ((got = read(fd, text + *n, (unsigned)(MOST - *n))) < 0) break;
    int error = errno;
    if (fd >= 0) close(fd);
    if (got >= 0) return text;
    hkc_pages_give(text, MOST);
    errno = error;
    return NULL;
}

static unsigned lines_of(const char *text, size_t n)
{
    unsigned lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

hak_policy *hkc_policy_load(const char *file, char *message, size_t size)
{
    size_t n;
    char *text = read_all(file, &n);
    if (!text) {
        snprintf(message, size, "%s: %s", file, strerror(errno));
        return NULL;
    }
    hak_policy_error error;
    hak_policy *policy = hak_policy_parse(NULL, text, n, &error);
    if (!policy) snprintf(message, size, "%s:%u: %s", file, error.line, error.text);
    /* Half a number is a number, too. */
    if (policy && text[n - 1] != '\n') {
        snprintf(message, size, "%s:%u: the last line has no end, the file seems to be cut off", file,
                 lines_of(text, n) + 1);
        hak_policy_unref(policy);
        policy = NULL;
    }
    hkc_pages_give(text, MOST);
    return policy;
}

int hkc_policy_save(const hak_policy *policy, const char *file, const char *comment)
{
    size_t n = hak_policy_print(policy, NULL, 0);
    char *text = malloc(n + 1);
    hkc_file out;
    int error = text ? hkc_file_open(&out, file, 0666) : ENOMEM;
    if (error) {
        free(text);
        return error;
    }
    hak_policy_print(policy, text, n + 1);
    if (comment) error = hkc_pipe_write_all(out.fd, comment, strlen(comment));
    if (!error) error = hkc_pipe_write_all(out.fd, text, n);
    free(text);
    return hkc_file_close(&out, error);
}

int hkc_mode_parse(const char *name, char *message, size_t size)
{
    int mode = hak_mode_by_name(name);
    if (mode < 0) {
        size_t n = (size_t)snprintf(message, size, "the mode '%.40s' is none of", name);
        const char *known;
        for (int i = 0; n < size && (known = hak_mode_name((hak_mode)i)); i++)
            n += (size_t)snprintf(message + n, size - n, "%s %s", i ? "," : "", known);
    }
    return mode;
}
