#define _GNU_SOURCE
#include "scripts.h"

#include "customers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scripts {
    int folder;
    pthread_rwlock_t lock; /* of all files: reading a script is reading, all else is writing */
};

enum { PATH_ROOM = 128, VERSION_MOST = 999999999 };
static const char unfinished[] = ".new"; /* never a version */

scripts *scripts_open(const char *folder)
{
    scripts *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->folder = open(folder, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (all->folder < 0) {
        fprintf(stderr, "wasm-server: %s is no folder for scripts: %s\n", folder, strerror(errno));
        free(all);
        return NULL;
    }
    pthread_rwlock_init(&all->lock, NULL);
    return all;
}

void scripts_close(scripts *all)
{
    if (!all) return;
    pthread_rwlock_destroy(&all->lock);
    close(all->folder);
    free(all);
}

/* A folder of CUSTOMER or of CUSTOMER/SCRIPT; NULL = there is none. */
static DIR *open_folder(const scripts *all, const char *path)
{
    int fd = openat(all->folder, path, O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !d) close(fd);
    return d;
}

/* The number that a file's name is; 0 = none. */
static unsigned version_of(const char *name)
{
    char *end;
    unsigned long n = strtoul(name, &end, 10);
    return *name >= '1' && *name <= '9' && !*end && n <= VERSION_MOST ? (unsigned)n : 0;
}

/* The latest and the oldest of a script, and how many; all 0 where there are none. */
typedef struct versions {
    unsigned latest, oldest, count;
} versions;

static versions look(const scripts *all, const char *path)
{
    versions v = {0};
    DIR *d = open_folder(all, path);
    for (struct dirent *e; d && (e = readdir(d));) {
        unsigned n = version_of(e->d_name);
        if (!n) continue;
        if (n > v.latest) v.latest = n;
        if (!v.oldest || n < v.oldest) v.oldest = n;
        v.count++;
    }
    if (d) closedir(d);
    return v;
}

static unsigned count_scripts(const scripts *all, const char *customer)
{
    unsigned n = 0;
    DIR *d = open_folder(all, customer);
    for (struct dirent *e; d && (e = readdir(d));)
        n += customers_name_is_good(e->d_name);
    if (d) closedir(d);
    return n;
}

/* Into the file `unfinished`, to the disk, and then under its name. */
static bool write_file(const scripts *all, const char *path, unsigned version, const char *bytes, size_t size)
{
    char from[PATH_ROOM + 16], to[PATH_ROOM + 16];
    snprintf(from, sizeof from, "%s/%s", path, unfinished);
    snprintf(to, sizeof to, "%s/%u", path, version);
    int fd = openat(all->folder, from, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return false;
    ssize_t n = 0;
    while (size > 0 && (n = write(fd, bytes, size)) > 0) {
        bytes += n;
        size -= (size_t)n;
    }
    bool written = size == 0 && fsync(fd) == 0;
    written &= close(fd) == 0;
    if (written && renameat(all->folder, from, all->folder, to) == 0) return true;
    unlinkat(all->folder, from, 0);
    return false;
}

static stored put(const scripts *all, const char *customer, const char *path, const char *bytes, size_t size,
                  unsigned *version)
{
    versions v = look(all, path);
    if (v.count == 0 && count_scripts(all, customer) >= SCRIPTS_OF_CUSTOMER) return STORED_TOO_MANY;
    if (v.latest == VERSION_MOST) return STORED_TOO_MANY;
    if (mkdirat(all->folder, customer, 0700) != 0 && errno != EEXIST) return STORED_NOT;
    if (mkdirat(all->folder, path, 0700) != 0 && errno != EEXIST) return STORED_NOT;
    *version = v.latest + 1;
    if (!write_file(all, path, *version, bytes, size)) {
        if (v.count == 0) unlinkat(all->folder, path, AT_REMOVEDIR);
        return STORED_NOT;
    }
    if (v.count >= SCRIPTS_VERSIONS) {
        char old[PATH_ROOM + 16];
        snprintf(old, sizeof old, "%s/%u", path, v.oldest);
        unlinkat(all->folder, old, 0);
    }
    return STORED;
}

static void make_path(char path[PATH_ROOM], const char *customer, const char *name)
{
    snprintf(path, PATH_ROOM, "%s/%s", customer, name);
}

stored scripts_put(scripts *all, const char *customer, const char *name, const char *bytes, size_t size,
                   unsigned *version)
{
    char path[PATH_ROOM];
    make_path(path, customer, name);
    pthread_rwlock_wrlock(&all->lock);
    stored result = put(all, customer, path, bytes, size, version);
    pthread_rwlock_unlock(&all->lock);
    return result;
}

static char *read_file(const scripts *all, const char *path, size_t *size)
{
    int fd = openat(all->folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat s;
    if (fd < 0) return NULL;
    char *bytes = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) ? malloc((size_t)s.st_size + 1) : NULL;
    size_t read_so_far = 0;
    ssize_t n = 0;
    while (bytes && read_so_far < (size_t)s.st_size &&
           (n = read(fd, bytes + read_so_far, (size_t)s.st_size - read_so_far)) > 0)
        read_so_far += (size_t)n;
    close(fd);
    if (bytes && read_so_far != (size_t)s.st_size) {
        free(bytes);
        return NULL;
    }
    *size = read_so_far;
    return bytes;
}

char *scripts_get(scripts *all, const char *customer, const char *name, unsigned *version, size_t *size)
{
    char path[PATH_ROOM], file[PATH_ROOM + 16];
    make_path(path, customer, name);
    pthread_rwlock_rdlock(&all->lock);
    if (*version == 0) *version = look(all, path).latest;
    snprintf(file, sizeof file, "%s/%u", path, *version);
    char *bytes = *version ? read_file(all, file, size) : NULL;
    pthread_rwlock_unlock(&all->lock);
    return bytes;
}

bool scripts_remove(scripts *all, const char *customer, const char *name)
{
    char path[PATH_ROOM];
    make_path(path, customer, name);
    pthread_rwlock_wrlock(&all->lock);
    DIR *d = open_folder(all, path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (version_of(e->d_name) || strcmp(e->d_name, unfinished) == 0) unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d) closedir(d);
    bool removed = d && unlinkat(all->folder, path, AT_REMOVEDIR) == 0;
    pthread_rwlock_unlock(&all->lock);
    return removed;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *scripts_list(scripts *all, const char *customer, size_t *size)
{
    char *text = NULL, *names[SCRIPTS_OF_CUSTOMER], path[PATH_ROOM];
    FILE *to = open_memstream(&text, size);
    if (!to) return NULL;
    unsigned count = 0;
    pthread_rwlock_rdlock(&all->lock);
    DIR *d = open_folder(all, customer);
    for (struct dirent *e; d && count < SCRIPTS_OF_CUSTOMER && (e = readdir(d));) {
        if (customers_name_is_good(e->d_name) && (names[count] = strdup(e->d_name))) count++;
    }
    if (d) closedir(d);
    qsort(names, count, sizeof *names, by_text);
    for (unsigned i = 0; i < count; i++) {
        make_path(path, customer, names[i]);
        unsigned latest = look(all, path).latest;
        if (latest) fprintf(to, "%s %u\n", names[i], latest);
        free(names[i]);
    }
    pthread_rwlock_unlock(&all->lock);
    fclose(to);
    return text;
}
