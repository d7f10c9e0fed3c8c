#include "quota.h"

#include "os.h"

hak_quota *hak_quota_new(hak_quota *parent, size_t hard)
{
    hak_os os;
    hak_os_default(&os);
    hak_quota *q = os.reserve(os.user, HK_PAGE, HK_PAGE, 0);
    if (!q) return NULL;
    q->parent = parent;
    atomic_store(&q->hard, hard);
    return q;
}

void hak_quota_delete(hak_quota *q)
{
    hak_os os;
    hak_os_default(&os);
    if (q) os.release(os.user, q, HK_PAGE);
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

static bool charge_one(hak_quota *q, size_t n, size_t *before)
{
    size_t used = atomic_load(&q->used), hard = atomic_load(&q->hard);
    do {
        if (hard && (used >= hard || n > hard - used)) return false;
    } while (!atomic_compare_exchange_weak(&q->used, &used, used + n));
    *before = used;
    return true;
}

/* Parents first, and given back last: no group shows more than a parent of it, or than the parent's limit. */
bool hk_quota_charge(hak_quota *q, size_t n, size_t *before)
{
    size_t ignored;
    *before = 0;
    if (!q) return true;
    if (!hk_quota_charge(q->parent, n, &ignored)) return false;
    if (charge_one(q, n, before)) return true;
    hk_quota_refund(q->parent, n);
    return false;
}

void hk_quota_refund(hak_quota *q, size_t n)
{
    for (; q; q = q->parent)
        atomic_fetch_sub(&q->used, n);
}

/* A peak is noted when it is over: what is refused after it was charged is in none. */
void hk_quota_uncharge(hak_quota *q, size_t n)
{
    for (; q; q = q->parent) {
        size_t used = atomic_fetch_sub(&q->used, n), peak = atomic_load(&q->peak);
        while (peak < used && !atomic_compare_exchange_weak(&q->peak, &peak, used)) {
        }
    }
}
