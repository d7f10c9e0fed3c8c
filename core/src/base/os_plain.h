/* Definitions for systems whose spaces reserve by the table of OS functions, as with a host's table. hk_os_own()
 * is false there, so nobody calls the other functions of such spaces. */
#ifndef HK_OS_PLAIN_H
#define HK_OS_PLAIN_H

#include "base/os.h"

/* The rows of hak_os_init's table. */
#define HK_OS_FUNCTIONS                                                                                      \
    .reserve = os_reserve, .commit = os_commit, .decommit = os_decommit, .release = os_release,              \
    .clock = os_clock, .thread_id = os_thread_id, .thread_alive = os_thread_alive, .protect = os_protect

bool hk_os_own(const hak_os *os)
{
    (void)os;
    return false;
}

bool hk_os_counts(const hak_os *os)
{
    (void)os;
    return false;
}

void hk_os_discard(void *p, size_t n)
{
    (void)p, (void)n;
}

uintptr_t hk_os_draw(unsigned attempt, size_t n)
{
    (void)attempt, (void)n;
    return 0;
}

int hk_os_map_at(uintptr_t at, size_t n)
{
    (void)at, (void)n;
    return -1;
}

bool hk_os_close(void *p, size_t n, bool keep)
{
    (void)p, (void)n, (void)keep;
    return false;
}

#endif
