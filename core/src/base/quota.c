#include "base/quota.h"

#include <errno.h>

hak_quota *hak_quota_new_os(const hak_os *given, hak_quota *parent, size_t hard)
{
    hak_os os;
    if (hk_os_read(&os, !given && parent ? &parent->os : given)) return NULL;
    hak_quota *q = hk_os_take(&os, sizeof *q);
    if (!q) return NULL;
    q->parent = parent;
    q->os = os;
    atomic_store(&q->hard, hard);
    return q;
}

hak_quota *hak_quota_new(hak_quota *parent, size_t hard)
{
    return hak_quota_new_os(NULL, parent, hard);
}

void hak_quota_delete(hak_quota *q)
{
    if (!q) return;
    hak_os os = q->os; /* which is in the page */
    hk_os_give(&os, q, sizeof *q);
}

size_t hak_quota_used(const hak_quota *q)
{
    return atomic_load(&q->used);
}

size_t hak_quota_peak(const hak_quota *q)
{
    return hk_max(atomic_load(&q->peak), atomic_load(&q->used));
}

void hak_quota_set(hak_quota *q, size_t hard)
{
    atomic_store(&q->hard, hard);
}

static bool fits_limit(size_t used, size_t hard, size_t n)
{
    return !hard || (used < hard && n <= hard - used);
}

static bool take_one(hak_quota *q, size_t n)
{
    size_t taken = atomic_load(&q->taken);
    do {
        if (!fits_limit(taken, atomic_load(&q->hard), n)) return false;
    } while (!atomic_compare_exchange_weak(&q->taken, &taken, taken + n));
    return true;
}

static void give_back(hak_quota *q, const hak_quota *end, size_t n)
{
    for (; q != end; q = q->parent)
        atomic_fetch_sub(&q->taken, n);
}

/* Counts the parents first, so that no group ever shows more than a parent of it. Returns what q showed
 * before. */
static size_t show(hak_quota *q, size_t n)
{
    if (q->parent) show(q->parent, n);
    return atomic_fetch_add(&q->used, n);
}

/* Returns whether n more fits what all groups show. */
static bool fits_shown(const hak_quota *q, size_t n)
{
    for (; q; q = q->parent)
        if (!fits_limit(atomic_load(&q->used), atomic_load(&q->hard), n)) return false;
    return true;
}

/* Takes from the leaf up, so that a group that refuses takes nothing from those beside and above it. */
static bool take_all(hak_quota *q, size_t n)
{
    for (hak_quota *at = q; at; at = at->parent) {
        if (take_one(at, n)) continue;
        give_back(q, at, n);
        return false;
    }
    return true;
}

/* Yields after some rounds, then sleeps: a thread of a lower priority may be the one that is waited for. */
static void wait_a_moment(unsigned round)
{
    enum { SPINS = 64, YIELDS = 64, SLEEP_NS = 32 << 10 };
    const int error = errno;
    if (round >= SPINS + YIELDS) hk_os_sleep(SLEEP_NS);
    else if (round >= SPINS) hk_os_yield();
    errno = error;
}

/* Refuses a request that does not fit what the groups show, and shows the bytes when all groups have agreed.
 * What others have taken and do not show yet is no reason to refuse: a group above may refuse them, and they
 * give it back after a few instructions. The wait for them has an end, because a fork leaves behind what other
 * threads had taken just then, until the child is told of it. */
bool hk_quota_charge(hak_quota *q, size_t n, size_t *before)
{
    enum { ROUNDS = 1024 };
    *before = 0;
    if (!q) return true;
    for (unsigned round = 0; fits_shown(q, n) && round < ROUNDS; round++) {
        if (take_all(q, n)) {
            *before = show(q, n);
            return true;
        }
        wait_a_moment(round);
    }
    return false;
}

void hk_quota_refund(hak_quota *q, size_t n)
{
    for (hak_quota *at = q; at; at = at->parent)
        atomic_fetch_sub(&at->used, n);
    give_back(q, NULL, n);
}

/* A peak is noted when it is over: bytes that are charged and then refused are in no peak. */
void hk_quota_uncharge(hak_quota *q, size_t n)
{
    for (hak_quota *at = q; at; at = at->parent) {
        size_t used = atomic_fetch_sub(&at->used, n), peak = atomic_load(&at->peak);
        while (peak < used && !atomic_compare_exchange_weak(&at->peak, &peak, used)) {
        }
    }
    give_back(q, NULL, n);
}

void hk_quota_forked(hak_quota *q)
{
    for (; q; q = q->parent)
        atomic_store(&q->taken, atomic_load(&q->used));
}

size_t hk_quota_least(const hak_quota *q, size_t least)
{
    for (; q; q = q->parent) {
        size_t hard = atomic_load_explicit(&q->hard, memory_order_relaxed);
        if (hard && (!least || hard < least)) least = hard;
    }
    return least;
}
