/* Where reports go. The stream or device of an option is opened at the start, when the file is tried: what
 * cannot be written is told before the program runs. */
#include "launcher.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static FILE *stream(hkl_output *o)
{
    FILE *out = fdopen(o->file.fd, "w");
    if (!out) hkc_file_close(&o->file, errno);
    return out;
}

bool hkl_output_plan(hkl_output *o, const char *name)
{
    char own[HKC_FILE_NAME];
    o->special = stderr;
    o->target[0] = '\0';
    o->file.fd = -1;
    o->owner = getpid();
    if (!name) return true;
    int error = hkc_file_of_process(name, o->owner, own);
    if (!error && hkc_file_in_place(own)) {
        error = hkc_file_open(&o->file, own, 0666);
        if (!error && !(o->special = stream(o))) error = errno;
    } else if (!error) {
        error = hkc_file_absolute(name, o->target);
        if (!error) error = hkc_file_of_process(o->target, o->owner, own);
        if (!error) error = hkc_file_try(own);
    }
    errno = error;
    return error == 0;
}

bool hkl_output_due(const hkl_output *o)
{
    return getpid() == o->owner || strstr(o->target, "%p");
}

FILE *hkl_output_open(hkl_output *o)
{
    char own[HKC_FILE_NAME];
    if (o->target[0] == '\0') return o->special;
    int error = hkc_file_of_process(o->target, getpid(), own);
    if (!error) error = hkc_file_open(&o->file, own, 0666);
    if (!error) return stream(o);
    errno = error;
    return NULL;
}

int hkl_output_close(hkl_output *o, FILE *out, int error)
{
    if (out == stderr || !out) return error;
    if (fclose(out) != 0 && !error) error = errno;
    o->file.fd = -1;
    return hkc_file_close(&o->file, error);
}
