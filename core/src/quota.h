/* Limits and counters of groups of contexts, a tree. Lock-free; any thread. */
#ifndef HK_QUOTA_H
#define HK_QUOTA_H

#include "base.h"

/* Charges the group and its parents: all or nothing. NULL is a group without a limit. */
bool hk_quota_charge(hak_quota *q, size_t n);
void hk_quota_uncharge(hak_quota *q, size_t n);

#endif
