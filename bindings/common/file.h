/* Files that are whole or not there: what is written beside the name takes its place at the end. Until then,
 * and if a signal ends the process, what was there stays. Who writes at the same time writes beside each
 * other, and the last one to end wins. Pipes, devices and streams that are open already
 * (/dev/stdout, /dev/fd/3), whose place no file may take, are written to as they are.
 *
 * Without malloc and stdio, for copies of a process in which others hold their locks. [one thread a file] */
#ifndef HKC_FILE_H
#define HKC_FILE_H

#include "common/pipe.h"

#include <stdbool.h>
#include <sys/types.h>

enum { HKC_FILE_NAME = 4096, HKC_FILE_PART = HKC_FILE_NAME + 40 };

typedef struct hkc_file {
    int fd; /* to write to; -1 = not open. Who closes it sets it to -1 */
    char name[HKC_FILE_NAME];
    char part[HKC_FILE_PART]; /* what is written beside it; "" = nothing */
    int lock; /* while something is: the same file, so that nobody else takes its name; -1 = nothing is */
    hkc_pipe quiet; /* ... the signal of a file that may not grow is kept off */
} hkc_file;

/* name: links are followed, but for those of others in folders that are open to all; a file that is there gives
 * the new one its mode, and is not replaced where it may not be written. mode: as for open, of a file that is not
 * there. 0 = fd is open, else errno. */
int hkc_file_open(hkc_file *file, const char *name, mode_t mode);
/* Closes fd, and gives what was written its name, or with an error removes it. Returns the error, or errno of
 * what failed now. */
int hkc_file_close(hkc_file *file, int error);
/* Removes what was being written, in a signal handler whose thread was about to open, write or close the file, and
 * will not go on. What others write beside the same name stays. A file that is all zero is fine. */
void hkc_file_abandon(hkc_file *file);
/* Whether it could be opened: 0 or errno. Leaves nothing behind. */
int hkc_file_try(const char *name);
/* The same of one that is appended to: 0 or errno. */
int hkc_file_try_append(const char *name);
/* Removes what a thread that is gone was writing beside the name, if it was; not what another writes, in a
 * container where it has the same number. */
void hkc_file_remove_part(const char *name, pid_t thread);

/* open() for writing, with further flags. Of a pipe that nobody reads an error (ENXIO), not a wait. */
int hkc_file_open_at_once(const char *name, int flags, mode_t mode);
/* The descriptor that a name means in this process, such as /dev/stdout or /dev/fd/3; -1 = none. */
int hkc_file_descriptor(const char *name);
/* Whether it would be written to in place. */
bool hkc_file_in_place(const char *name);
/* Replaces the first %p in the name by the number of a process. 0, or ENAMETOOLONG. out has HKC_FILE_NAME
 * bytes. */
int hkc_file_of_process(const char *name, pid_t process, char *out);
/* The absolute name, for a program that may change directories: 0 or errno. The file need not exist, the
 * folder must. out has HKC_FILE_NAME bytes. */
int hkc_file_absolute(const char *name, char *out);

#endif
