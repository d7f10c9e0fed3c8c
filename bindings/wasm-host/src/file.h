/* Descriptors of a library: the program may close them, as by closefrom(3), and have other files under their
 * numbers. To read those would show a tenant what is not its own; to close them is not the library's. */
#ifndef HAKMEM_WASM_FILE_H
#define HAKMEM_WASM_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/* All zero = none. */
typedef struct hkw_file {
    _Atomic int number; /* plus one */
    _Atomic uint64_t device, inode;
} hkw_file;

/* One thread at a time; others may ask meanwhile. -1 = it cannot be told apart, and is closed. */
static inline int hkw_file_set(hkw_file *file, int fd)
{
    struct stat info;
    atomic_store_explicit(&file->number, 0, memory_order_relaxed);
    if (fd < 0) return -1;
    if (fstat(fd, &info) != 0) {
        close(fd);
        return -1;
    }
    atomic_store_explicit(&file->device, (uint64_t)info.st_dev, memory_order_relaxed);
    atomic_store_explicit(&file->inode, (uint64_t)info.st_ino, memory_order_relaxed);
    atomic_store_explicit(&file->number, fd + 1, memory_order_release);
    return fd;
}

/* Whatever the number stands for by now; -1 = there is none. */
static inline int hkw_file_number(const hkw_file *file)
{
    return atomic_load_explicit(&file->number, memory_order_acquire) - 1;
}

/* The descriptor; -1 = there is none, or the number is another file's by now. Cost: one fstat. */
static inline int hkw_file_get(const hkw_file *file)
{
    struct stat info;
    int fd = hkw_file_number(file);
    if (fd < 0 || fstat(fd, &info) != 0) return -1;
    const bool same = atomic_load_explicit(&file->device, memory_order_relaxed) == (uint64_t)info.st_dev &&
                      atomic_load_explicit(&file->inode, memory_order_relaxed) == (uint64_t)info.st_ino;
    return same ? fd : -1;
}

static inline void hkw_file_close(hkw_file *file)
{
    int fd = hkw_file_get(file);
    if (fd >= 0) close(fd);
}

#endif
