/* Limits and counters of groups of contexts, a tree. Lock-free; any thread. */
#ifndef HK_QUOTA_H
#define HK_QUOTA_H

#include "base/os.h"

struct hak_quota {
    hak_quota *parent;
    _Atomic size_t used, hard;
    _Atomic size_t taken; /* `used`, and what is on its way to be used or refused; at most `hard` */
    _Atomic size_t peak;  /* most that `used` was when it fell */
    atomic_bool crossed; /* of a shared context's heaps: the soft limit, and the callback does not know yet */
    hak_os os;           /* where its page came from; groups below it ask there, too */
};

/* Charges the group and its parents: all or nothing. NULL is a group without a limit. *before is what the
 * group had used until then. */
bool hk_quota_charge(hak_quota *q, size_t n, size_t *before);
void hk_quota_uncharge(hak_quota *q, size_t n);
/* Uncharges without recording a peak, after a failed commit. */
void hk_quota_refund(hak_quota *q, size_t n);
/* In the child of a fork, which has one thread: what others had taken and not shown is given back. */
void hk_quota_forked(hak_quota *q);
/* The lowest limit of `least`, the group and its parents; 0 = none. */
size_t hk_quota_least(const hak_quota *q, size_t least);

#endif
