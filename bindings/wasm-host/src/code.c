/* A folder of compiled modules: a file for each module and runtime, which is taken only as it was put
 * there. */
#define _GNU_SOURCE
#include "sha256.h"

#include "common/pipe.h"

#include <hakmem/wasm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a file: this, the hash of its name and of the code, the code. */
static const char mark[8] = "hakcode1";
enum { HEAD = sizeof mark + HKW_SHA256_BYTES, NAME = 2 * HKW_SHA256_BYTES + 1 };

static int refuse(char *error, size_t error_size, const char *what, const char *folder, const char *why)
{
    if (error && error_size) snprintf(error, error_size, "hakmem: %s \"%s\": %s", what, folder, why);
    return -1;
}

/* Of runtime and module, with the length of the first, so that no two pairs are the same bytes. */
static void name_of(const char *runtime, const void *module, size_t size, char name[NAME])
{
    uint8_t hash[HKW_SHA256_BYTES];
    const uint64_t length = strlen(runtime);
    hkw_sha256 sha;
    hkw_sha256_begin(&sha);
    hkw_sha256_add(&sha, &length, sizeof length);
    hkw_sha256_add(&sha, runtime, (size_t)length);
    hkw_sha256_add(&sha, module, size);
    hkw_sha256_end(&sha, hash);
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(name + 2 * i, 3, "%02x", hash[i]);
}

static void hash_of(const char *name, const void *bytes, size_t size, uint8_t hash[HKW_SHA256_BYTES])
{
    hkw_sha256 sha;
    hkw_sha256_begin(&sha);
    hkw_sha256_add(&sha, name, NAME - 1);
    hkw_sha256_add(&sha, bytes, size);
    hkw_sha256_end(&sha, hash);
}

/* Machine code is run as it is: whoever can write to it is the process. */
static bool is_own(const struct stat *s)
{
    return (s->st_uid == geteuid() || s->st_uid == 0) && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* -1 with a text. */
static int open_folder(const char *folder, char *error, size_t error_size)
{
    const char *what = "the folder of compiled modules";
    struct stat s;
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return refuse(error, error_size, what, folder, strerror(errno));
    if (fstat(dir, &s) == 0 && is_own(&s)) return dir;
    close(dir);
    return refuse(error, error_size, what, folder, "others may write to it");
}

static bool read_all(int file, uint8_t *to, size_t n)
{
    while (n) {
        const ssize_t part = read(file, to, n);
        if (part <= 0) return false;
        to += part;
        n -= (size_t)part;
    }
    return true;
}

/* 1 = *code is what was put; 0 = it is not. */
static int take_file(int file, const char *name, hak_wasm_code *code)
{
    struct stat s;
    uint8_t head[HEAD], hash[HKW_SHA256_BYTES];
    if (fstat(file, &s) != 0 || !S_ISREG(s.st_mode) || !is_own(&s) || s.st_size <= HEAD) return 0;
    code->size = (size_t)s.st_size - HEAD;
    code->bytes = malloc(code->size);
    if (code->bytes && read_all(file, head, HEAD) && read_all(file, code->bytes, code->size)) {
        hash_of(name, code->bytes, code->size, hash);
        if (memcmp(head, mark, sizeof mark) == 0 && memcmp(head + sizeof mark, hash, sizeof hash) == 0)
            return 1;
    }
    hak_wasm_code_free(code);
    return 0;
}

int hak_wasm_code_get(const char *folder, const char *runtime, const void *module, size_t size,
                      hak_wasm_code *code, char *error, size_t error_size)
{
    char name[NAME];
    *code = (hak_wasm_code){NULL, 0};
    const int dir = open_folder(folder, error, error_size);
    if (dir < 0) return -1;
    name_of(runtime, module, size, name);
    const int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int found = file < 0 ? 0 : take_file(file, name, code);
    if (file >= 0) close(file);
    close(dir);
    return found;
}

/* NULL = it is there, else what went wrong. */
static const char *put_file(int dir, const char *name, const void *code, size_t code_size)
{
    enum { TRIES = 1000 };
    static _Atomic unsigned puts;
    char new_name[NAME + 32];
    uint8_t head[HEAD];
    int file = -1, tries = 0;
    memcpy(head, mark, sizeof mark);
    hash_of(name, code, code_size, head + sizeof mark);
    /* In a container each process has the same number: one that was killed may have left a file of the name, or
     * one of another container may be writing to it. */
    do {
        snprintf(new_name, sizeof new_name, "%s.%ld.%u", name, (long)getpid(), puts++);
        file = openat(dir, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } while (file < 0 && errno == EEXIST && ++tries < TRIES);
    if (file < 0) return strerror(errno);
    bool ok = !hkc_pipe_write_all(file, head, HEAD) && !hkc_pipe_write_all(file, code, code_size);
    ok = close(file) == 0 && ok;
    if (ok && renameat(dir, new_name, dir, name) == 0) return NULL;
    const char *why = strerror(errno);
    unlinkat(dir, new_name, 0);
    return why;
}

int hak_wasm_code_put(const char *folder, const char *runtime, const void *module, size_t size,
                      const void *code, size_t code_size, char *error, size_t error_size)
{
    char name[NAME];
    const int dir = open_folder(folder, error, error_size);
    if (dir < 0) return -1;
    name_of(runtime, module, size, name);
    const char *why = code_size ? put_file(dir, name, code, code_size) : "there is no code";
    close(dir);
    return why ? refuse(error, error_size, "a compiled module cannot be put into", folder, why) : 0;
}

void hak_wasm_code_free(hak_wasm_code *code)
{
    free(code->bytes);
    *code = (hak_wasm_code){NULL, 0};
}
