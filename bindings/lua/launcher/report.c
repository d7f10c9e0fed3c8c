/* Where reports go. The stream or device of an option is opened at the start, when the file is tried: what
 * cannot be written is told before the program runs. */
#include "launcher.h"

#include <errno.h>
#include <unistd.h>

static FILE *stream(hkl_output *o)
{
    FILE *out = fdopen(o->file.fd, "w");
    if (!out) hkc_file_close(&o->file, errno);
    return out;
}

bool hkl_output_plan(hkl_output *o, const char *name)
{
    o->special = stderr;
    o->target[0] = '\0';
    o->file.fd = -1;
    if (!name) return true;
    int error = 0;
    if (hkc_file_in_place(name)) {
        error = hkc_file_open(&o->file, name, 0666);
        if (!error && !(o->special = stream(o))) error = errno;
    } else {
        error = hkc_file_absolute(name, o->target);
        if (!error) error = hkc_file_try(o->target);
    }
    errno = error;
    return error == 0;
}

FILE *hkl_output_open(hkl_output *o)
{
    if (o->target[0] == '\0') return o->special;
    return hkc_file_open(&o->file, o->target, 0666) == 0 ? stream(o) : NULL;
}

bool hkl_output_close(hkl_output *o, FILE *out, bool ok)
{
    if (out == stderr) return ok;
    if (!out) return false;
    if (fclose(out) != 0) ok = false;
    o->file.fd = -1;
    return hkc_file_close(&o->file, ok ? 0 : EIO) == 0;
}
