/* Where the report goes. The stream or device of --hak-report is opened at the start, when the file is tried:
 * what cannot be written is told before the program runs. */
#include "launcher.h"

#include "common/file.h"

#include <errno.h>
#include <unistd.h>

static FILE *special;                 /* stderr; or what is written in place */
static char target[HKC_FILE_NAME];    /* absolute, for the program may change directories; "" = special */
static hkc_file file = {.fd = -1};

static FILE *stream(void)
{
    FILE *out = fdopen(file.fd, "w");
    if (!out) hkc_file_close(&file, errno);
    return out;
}

bool hkl_report_plan(const char *name)
{
    special = stderr;
    if (!name) return true;
    int error = 0;
    if (hkc_file_in_place(name)) {
        error = hkc_file_open(&file, name, 0666);
        if (!error && !(special = stream())) error = errno;
    } else {
        error = hkc_file_absolute(name, target);
        if (!error) error = hkc_file_try(target);
    }
    errno = error;
    return error == 0;
}

FILE *hkl_report_open(void)
{
    if (target[0] == '\0') return special;
    return hkc_file_open(&file, target, 0666) == 0 ? stream() : NULL;
}

bool hkl_report_close(FILE *out, bool ok)
{
    if (out == stderr) return ok;
    if (!out) return false;
    if (fclose(out) != 0) ok = false;
    file.fd = -1;
    return hkc_file_close(&file, ok ? 0 : EIO) == 0;
}
