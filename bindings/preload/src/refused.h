/* Blocks that the heap refuses: a limit counts what is mapped past malloc, which may be less by now. */
#ifndef HKS_PRELOAD_REFUSED_H
#define HKS_PRELOAD_REFUSED_H

#include "heap.h"

#include <stdbool.h>
#include <stddef.h>

/* Asks once more for a block that this thread's heap refused. old: the block to resize, which keeps its label
 * where the label is 0; NULL = a new one. align: 0 = that of malloc. Sets errno where it returns NULL. */
void *hks_refused(void *old, size_t align, size_t n, bool zero, hak_label label)
    __attribute__((cold, visibility("hidden")));

/* Returns p, or asks once more if that is NULL. */
static inline void *hks_checked(void *p, void *old, size_t align, size_t n, bool zero, hak_label label)
{
    return HKS_LIKELY(p) ? p : hks_refused(old, align, n, zero, label);
}

#endif
