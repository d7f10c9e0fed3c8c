#define _GNU_SOURCE
#include "lesson/file.h"

#if defined(_WIN32) || defined(__APPLE__)

/* Nothing is learnt of machine code there, so that no lesson is kept. */
size_t hkl_lesson_read(const char *folder, hkl_lesson_name name, const hkl_lesson_ids *ids,
                       uint32_t words[HKL_LESSON_WORDS])
{
    (void)folder, (void)name, (void)ids, (void)words;
    return 0;
}

void hkl_lesson_write(const char *folder, hkl_lesson_name name, const hkl_lesson_ids *ids,
                      const uint32_t *words, size_t count)
{
    (void)folder, (void)name, (void)ids, (void)words, (void)count;
}

#else

#include "common/file.h"

#include <lua.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_MOST = 32, ID_IN_NAME = 8, FORMAT = 1 };

/* Before the words. */
typedef struct head {
    char magic[8];
    uint32_t format, lua, name, count, runtime_size, own_size;
    uint8_t runtime[ID_MOST], own[ID_MOST];
    uint64_t sum; /* of all others, and of the words */
} head;

/* FNV-1a. */
static uint64_t add_up(uint64_t sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * UINT64_C(1099511628211);
    return sum;
}

static uint64_t sum_of(const head *h, const uint32_t *words)
{
    head blank;
    memcpy(&blank, h, sizeof blank);
    blank.sum = 0;
    const uint64_t sum = add_up(UINT64_C(14695981039346656037), &blank, sizeof blank);
    return add_up(sum, words, h->count * sizeof *words);
}

static bool fill_in(head *h, hkl_lesson_name name, const hkl_lesson_ids *ids, size_t count)
{
    if (!ids->own || ids->own_size > ID_MOST || ids->runtime_size > ID_MOST) return false;
    memset(h, 0, sizeof *h);
    memcpy(h->magic, "hakless", sizeof h->magic);
    h->format = FORMAT;
    h->lua = LUA_VERSION_NUM;
    h->name = name;
    h->count = (uint32_t)count;
    h->runtime_size = (uint32_t)ids->runtime_size;
    h->own_size = (uint32_t)ids->own_size;
    memcpy(h->runtime, ids->runtime, ids->runtime_size);
    memcpy(h->own, ids->own, ids->own_size);
    return true;
}

static char *write_hex(char *to, const uint8_t *id)
{
    for (int i = 0; i < ID_IN_NAME; i++, to += 2)
        snprintf(to, 3, "%02x", id[i]);
    return to;
}

static void name_of(char path[HKC_FILE_NAME], const char *folder, const head *h)
{
    static const char *const names[HKL_LESSON_NAMES] = {"labels", "threads", "traces", "close", "leave"};
    char runtime[2 * ID_IN_NAME + 1], own[2 * ID_IN_NAME + 1];
    write_hex(runtime, h->runtime);
    write_hex(own, h->own);
    snprintf(path, HKC_FILE_NAME, "%s/lua-%s-%s-%s", folder, runtime, own, names[h->name]);
}

/* A file that others may write to is not taken. */
static bool is_own(int fd)
{
    struct stat is;
    return fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && is.st_uid == geteuid() &&
           (is.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static size_t read_from(int fd, const head *wanted, uint32_t words[HKL_LESSON_WORDS])
{
    head h;
    if (!is_own(fd) || read(fd, &h, sizeof h) != (ssize_t)sizeof h) return 0;
    const size_t count = h.count;
    if (count == 0 || count > HKL_LESSON_WORDS) return 0;
    const size_t size = count * sizeof *words;
    char beyond;
    if (read(fd, words, size) != (ssize_t)size || read(fd, &beyond, 1) != 0) return 0;
    const uint64_t sum = h.sum;
    if (sum != sum_of(&h, words)) return 0;
    h.sum = 0;
    h.count = 0;
    return memcmp(&h, wanted, sizeof h) == 0 ? count : 0;
}

size_t hkl_lesson_read(const char *folder, hkl_lesson_name name, const hkl_lesson_ids *ids,
                       uint32_t words[HKL_LESSON_WORDS])
{
    head wanted;
    char path[HKC_FILE_NAME];
    if (!fill_in(&wanted, name, ids, 0)) return 0;
    name_of(path, folder, &wanted);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return 0;
    const size_t count = read_from(fd, &wanted, words);
    close(fd);
    return count;
}

/* The folder, and the one that it is in. */
static void make(const char *folder)
{
    char parent[HKL_LESSON_FOLDER];
    if (mkdir(folder, 0700) == 0 || errno != ENOENT) return;
    snprintf(parent, sizeof parent, "%s", folder);
    char *slash = strrchr(parent, '/');
    if (!slash || slash == parent) return;
    *slash = '\0';
    if (mkdir(parent, 0700) == 0) mkdir(folder, 0700);
}

void hkl_lesson_write(const char *folder, hkl_lesson_name name, const hkl_lesson_ids *ids,
                      const uint32_t *words, size_t count)
{
    head h;
    hkc_file file;
    char path[HKC_FILE_NAME];
    if (!fill_in(&h, name, ids, count)) return;
    h.sum = sum_of(&h, words);
    name_of(path, folder, &h);
    const int before = errno;
    make(folder);
    if (hkc_file_open(&file, path, 0600) == 0) {
        const size_t size = count * sizeof *words;
        const bool ok =
            write(file.fd, &h, sizeof h) == (ssize_t)sizeof h && write(file.fd, words, size) == (ssize_t)size;
        hkc_file_close(&file, ok ? 0 : EIO);
    }
    errno = before;
}

#endif
