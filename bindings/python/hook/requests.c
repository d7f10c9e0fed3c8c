#define _GNU_SOURCE
#include "hook/requests.h"

#include "common/clock.h"
#include "heap/heap.h"
#include "hook/deliver.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The asker ----------------------------------------------------------------------------------- */

/* In the value of a request. */
enum { MAGIC = 0x48616, MAGIC_AT = 44, WISH_AT = 42, ATTEMPT_AT = 39 };
#define NAME_BITS ((UINT64_C(1) << ATTEMPT_AT) - 1)

/* What an attempt to write a report may take, in milliseconds: in the handler; and twice that in all, if the
 * main thread goes on with it. */
static const int patience[] = {250, 250, 250, 250, 1000, 1000, 1000, 10000};
enum { ATTEMPTS = sizeof patience / sizeof *patience };
_Static_assert(ATTEMPTS == 1 << (WISH_AT - ATTEMPT_AT) && MAGIC < 1 << (64 - MAGIC_AT), "it fits");

int hkp_request(pid_t process, int number, hkp_wish wish, unsigned attempt, unsigned long long name)
{
    uint64_t value = (uint64_t)MAGIC << MAGIC_AT | (uint64_t)wish << WISH_AT |
                     (uint64_t)(attempt < ATTEMPTS ? attempt : ATTEMPTS - 1) << ATTEMPT_AT |
                     (name & NAME_BITS);
    return sigqueue(process, number, (union sigval){.sival_ptr = (void *)(uintptr_t)value});
}

/* ---- The program --------------------------------------------------------------------------------- */

void *hkp_requests_publish(void)
{
    char name[64];
    enum { PAGE = 4096 };
    snprintf(name, sizeof name, HKP_MARKER "%d", HKP_REQUEST);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0) return NULL;
    void *p = ftruncate(fd, PAGE) == 0 ? mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    return p != MAP_FAILED ? p : NULL;
}

void hkp_requests_withdraw(void *marker)
{
    munmap(marker, 1);
}

enum { NAME = 64 };

/* The report that the main thread is to write, and until when somebody waits for it. */
static struct {
    enum { NOTHING, CHANGES, DUE } _Atomic state;
    char file[NAME];
    int64_t until; /* by hkc_milliseconds() */
} left;
static atomic_bool trim_due;

/* What was asked of the parent. */
void hkp_requests_in_child(void)
{
    atomic_store(&left.state, NOTHING);
    atomic_store(&trim_due, false);
}

/* A later one takes the place of one that the main thread did not come to. */
static void leave(const char *file, int64_t until)
{
    if (atomic_exchange(&left.state, CHANGES) == CHANGES) return; /* another thread is here, or reads it */
    snprintf(left.file, sizeof left.file, "%s", file);
    left.until = until;
    atomic_store(&left.state, DUE);
}

void hkp_requests_follow(const siginfo_t *info, int (*interrupt)(int number))
{
    uint64_t value = info->si_code == SI_QUEUE ? (uint64_t)(uintptr_t)info->si_value.sival_ptr : 0;
    bool known = value >> MAGIC_AT == MAGIC;
    if (known && (value >> WISH_AT & 3) == HKP_WISH_REPORT) {
        char file[NAME];
        snprintf(file, sizeof file, "/tmp/hakmem-%010llx.json", (unsigned long long)(value & NAME_BITS));
        const int milliseconds = patience[value >> ATTEMPT_AT & (ATTEMPTS - 1)];
        const int64_t until = hkc_milliseconds() + 2 * milliseconds;
        const hkp_apart done = hkp_report_apart(file, milliseconds);
        if (done != HKP_APART_CUT && done != HKP_APART_WAITED) return;
        leave(file, until);
    } else {
        atomic_store(&trim_due, true);
    }
    interrupt(HKP_REQUEST);
}

/* A copy that a handler makes always meets a lock of threads that allocate all the time. Here the main thread
 * takes the locks first. */
void hkp_requests_answer(void)
{
    int due = DUE;
    if (atomic_compare_exchange_strong(&left.state, &due, CHANGES)) {
        if (hkc_milliseconds() < left.until) (void)hkp_report_between(left.file, left.until);
        atomic_store(&left.state, NOTHING);
    }
    if (atomic_exchange(&trim_due, false)) hkp_trim();
}
