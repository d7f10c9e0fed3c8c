/* Memory that libraries and the program map for themselves, past malloc: allocators that came with a library,
 * arenas of virtual machines. Only memory of no file counts, and only by calls of mmap, mremap, mprotect and
 * munmap that come to the functions below; libc's own calls and system calls by hand do not.
 *
 * Reports count what was touched, since allocators map far more than they use. A limit counts a new mapping in full
 * if it is writable; when somebody would be refused, what was touched is measured, and old mappings count as much as
 * that. What is mapped by then may be touched later without a question; then the next request is refused. Each mapping
 * is booked to the library that called and to the stack of the call that made it writable.
 *
 * The functions take no memory from malloc. Tables are pages of their own. [any thread] */
#ifndef HKC_MAPPED_H
#define HKC_MAPPED_H

#include "common/json.h"
#include "common/parts.h"
#include "common/profile_json.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct hkc_mapped_options {
    uintptr_t low, high; /* code whose own calls do not count: that of the heap */
    /* The stack of the call, the innermost frame first; `caller` is where it returns to. Runs under no lock. */
    size_t (*frames)(uintptr_t caller, uintptr_t *frames, size_t room);
    /* So many bytes count for the limit from now on. false = that would be over the limit, and nothing has changed;
     * always true where it insists. Runs under the lock of the table. NULL = no limit. */
    bool (*charge)(size_t now, bool insists);
    void (*tell)(const char *line); /* what was refused, a line without its end */
    uint64_t window_ns;             /* of the profile, as hak_profile_options.window_ns; 0 = no windows */
} hkc_mapped_options;

/* From now on calls are counted, in forked children too. false = there is no memory. Once in a process. */
bool hkc_mapped_begin(const hkc_mapped_options *options);

/* Set by hkc_mapped_begin. Until then nobody calls the functions below. */
extern atomic_bool hkc_mapped_counts;

/* The functions of libc of the same name, errno too. caller: the return address of the call. */
void *hkc_mapped_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset, uintptr_t caller);
void *hkc_mapped_sbrk(intptr_t more, uintptr_t caller);
int hkc_mapped_munmap(void *at, size_t n, uintptr_t caller);
int hkc_mapped_mprotect(void *at, size_t n, int prot, uintptr_t caller);
void *hkc_mapped_mremap(void *at, size_t n, size_t now, int flags, void *to, uintptr_t caller);

/* The heap is refused memory: measures what was touched, if that may be less than what counts. true = the limit leaves
 * more to the heap than before. Keeps errno. */
bool hkc_mapped_settle(void);
/* Begins a window of the mappings' profile if one is due, which measures what was touched, and returns the resident
 * bytes of the process: for hak_profile_options.resident of the heap, so that the windows of both begin about together.
 * Calls that map, and reports, begin windows too. Keeps errno. */
size_t hkc_mapped_resident(void);
/* Measures what was touched, by the page, and returns the bytes; 0 = less than 1 MiB, which stays with the rest of the
 * process, or the system does not tell. pid: of the
 * process, of which this one may be a copy; 0 = this one. Cost: some milliseconds for each gigabyte that is
 * writable. This function and those below wait for no thread: they tell nothing where one stays in here, as in a copy
 * that was made meanwhile. */
size_t hkc_mapped_measure(pid_t pid);
/* For each library what was touched, into the parts, whose list is not made yet. After hkc_mapped_measure. */
void hkc_mapped_parts(hkc_parts *parts);
/* A context "mapped" of the report, with its profile: nothing where nothing was touched. After
 * hkc_mapped_measure. */
int hkc_mapped_json(hkc_json *w, const hkc_profile_writer *by);
/* For hak_profile_visit: the context with the profile; NULL = there is none. */
hak_ctx *hkc_mapped_context(void);

#endif
