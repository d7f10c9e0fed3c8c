/* The files of file.h on Windows. Names are those of the program's code page, with either slash. A file is
 * written beside its name and moved over it in one step. A program that keeps the old one open without
 * sharing it makes that step fail, and then the old one stays. */
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* ---- Names --------------------------------------------------------------------------------------- */

/* What scripts write for the streams of this process is understood here, too. */
int hkc_file_descriptor(const char *name)
{
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, standard[i]) == 0) return i;
    return -1;
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* CON, NUL and their kind are devices in every folder, and pipes have a place of their own. */
static bool is_device(const char *name)
{
    static const char *const devices[] = {"CON", "CONOUT$", "NUL", "PRN", "AUX"};
    if (is_slash(name[0]) && is_slash(name[1]) && name[2] == '.') return true;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (_stricmp(name, devices[i]) == 0) return true;
    return false;
}

bool hkc_file_in_place(const char *name)
{
    return hkc_file_descriptor(name) >= 0 || is_device(name);
}

/* So many threads with the same number may write the same file at a time. */
enum { PARTS = 100 };

static int take_name(hkc_file *file, const char *name)
{
    file->part[0] = '\0';
    if (strlen(name) >= sizeof file->name) return ENAMETOOLONG;
    strcpy(file->name, name);
    return 0;
}

/* Makes the name of the part with that number, from 0 on. */
static void name_part(hkc_file *file, long thread, int number)
{
    const int n = snprintf(file->part, sizeof file->part, "%s.part-%ld", file->name, thread);
    if (number > 0) snprintf(file->part + n, sizeof file->part - (size_t)n, "-%d", number);
}

int hkc_file_of_process(const char *name, pid_t process, char *out)
{
    const char *p = strstr(name, "%p");
    const int n = p ? snprintf(out, HKC_FILE_NAME, "%.*s%ld%s", (int)(p - name), name, (long)process, p + 2)
                    : snprintf(out, HKC_FILE_NAME, "%s", name);
    return n >= 0 && n < HKC_FILE_NAME ? 0 : ENAMETOOLONG;
}

/* Of the system's errors those that a name can bring about. */
static int errno_now(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
        return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
        return EACCES;
    case ERROR_DISK_FULL:
        return ENOSPC;
    default:
        return EIO;
    }
}

int hkc_file_absolute(const char *name, char *out)
{
    char folder[HKC_FILE_NAME], *last = NULL;
    const size_t length = strlen(name);
    if (length == 0 || is_slash(name[length - 1])) return EISDIR;
    const DWORD n = GetFullPathNameA(name, HKC_FILE_NAME, out, &last);
    if (n == 0 || n >= HKC_FILE_NAME) return n == 0 ? errno_now() : ENAMETOOLONG;
    if (!last) return EISDIR;
    memcpy(folder, out, (size_t)(last - out));
    folder[last - out] = '\0';
    const DWORD is = GetFileAttributesA(folder);
    if (is == INVALID_FILE_ATTRIBUTES) return errno_now();
    return is & FILE_ATTRIBUTE_DIRECTORY ? 0 : ENOTDIR;
}

/* ---- Writing ------------------------------------------------------------------------------------- */

/* A name that is there: 0 where it may be written. ENOENT = it is not. */
static int may_replace(const char *name)
{
    const DWORD is = GetFileAttributesA(name);
    if (is == INVALID_FILE_ATTRIBUTES) return errno_now();
    if (is & FILE_ATTRIBUTE_DIRECTORY) return EISDIR;
    return is & FILE_ATTRIBUTE_READONLY ? EACCES : 0;
}

int hkc_file_open_at_once(const char *name, int flags, mode_t mode)
{
    return _open(name, O_WRONLY | O_BINARY | O_NOINHERIT | flags, mode);
}

/* Returns a descriptor that no other program inherits, and which owns the handle; -1 = errno, and it is closed. */
static int descriptor_of(HANDLE handle)
{
    const int fd = _open_osfhandle((intptr_t)handle, O_NOINHERIT);
    if (fd < 0) CloseHandle(handle);
    return fd;
}

/* Makes the file beside the name. Nobody else can open it to write as long as this process has it open, from
 * another machine with the same share neither, where a thread may have the same number. What a thread left
 * that had this number before is open nowhere, and is replaced. -1 = errno. */
static int make_part(hkc_file *file, long thread)
{
    HANDLE part = INVALID_HANDLE_VALUE, lock = NULL;
    for (int number = 0; part == INVALID_HANDLE_VALUE; number++) {
        name_part(file, thread, number);
        part = CreateFileA(file->part, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                           CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
        if (part != INVALID_HANDLE_VALUE || (GetLastError() == ERROR_SHARING_VIOLATION && number + 1 < PARTS))
            continue;
        errno = errno_now();
        return -1;
    }
    const HANDLE self = GetCurrentProcess();
    const bool locked = DuplicateHandle(self, part, self, &lock, 0, FALSE, DUPLICATE_SAME_ACCESS);
    const int fd = descriptor_of(part);
    file->lock = locked ? descriptor_of(lock) : -1;
    if (fd >= 0 && file->lock >= 0) return fd;
    DeleteFileA(file->part);
    if (fd >= 0) _close(fd);
    if (file->lock >= 0) _close(file->lock);
    errno = EMFILE;
    return -1;
}

int hkc_file_open(hkc_file *file, const char *name, mode_t mode)
{
    file->fd = -1;
    file->part[0] = '\0';
    (void)mode; /* there is none */
    if (hkc_file_in_place(name)) {
        const int fd = hkc_file_descriptor(name);
        file->fd = fd >= 0 ? _dup(fd) : hkc_file_open_at_once(name, 0, 0);
        return file->fd >= 0 ? 0 : errno;
    }
    int error = may_replace(name);
    if (error && error != ENOENT) return error;
    error = take_name(file, name);
    if (error) return error;
    file->fd = make_part(file, (long)GetCurrentThreadId());
    if (file->fd >= 0) return 0;
    file->part[0] = '\0';
    return errno;
}

/* Gives the part its name. Others have the old file open for a moment: one that writes it too and has just
 * ended, or one that looks for viruses. Therefore it tries again, for an eighth of a second. */
static int give_name(const hkc_file *file)
{
    enum { TRIES = 7 };
    for (unsigned i = 0;; i++) {
        if (MoveFileExA(file->part, file->name, MOVEFILE_REPLACE_EXISTING)) return 0;
        const int error = errno_now();
        if (error != EACCES || i == TRIES) return error;
        Sleep(1u << i);
    }
}

int hkc_file_close(hkc_file *file, int error)
{
    if (file->fd >= 0 && _close(file->fd) != 0 && !error) error = errno;
    file->fd = -1;
    if (file->part[0] == '\0') return error;
    if (!error) error = give_name(file);
    if (error) DeleteFileA(file->part); /* first: without the lock the name may be another's */
    _close(file->lock);
    file->part[0] = '\0';
    return error;
}

int hkc_file_try(const char *name)
{
    hkc_file file;
    if (hkc_file_in_place(name)) return 0;
    const int error = hkc_file_open(&file, name, 0600);
    if (!error) hkc_file_close(&file, ECANCELED);
    return error;
}

int hkc_file_try_append(const char *name)
{
    const int error = hkc_file_in_place(name) ? 0 : may_replace(name);
    return error == ENOENT ? hkc_file_try(name) : error;
}

/* One that is written to cannot be opened. */
static void remove_stale(const char *part)
{
    const HANDLE file =
        CreateFileA(part, GENERIC_WRITE | DELETE, 0, NULL, OPEN_EXISTING, FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
}

void hkc_file_remove_part(const char *name, pid_t thread)
{
    hkc_file file;
    if (hkc_file_in_place(name) || take_name(&file, name) != 0) return;
    for (int number = 0; number < PARTS; number++) {
        name_part(&file, (long)thread, number);
        remove_stale(file.part);
    }
}
