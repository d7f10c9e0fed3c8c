/* Labels and totals of one moment: nothing is allocated in the context while they are read. */
#ifndef HKL_SNAPSHOT_H
#define HKL_SNAPSHOT_H

#include "hakmem/hakmem.h"

#define HKL_NO_LABEL "unlabelled" /* what label 0 is called */

typedef struct hkl_snapshot {
    hak_stats stats;
    int count;                                 /* of labels, label 0 included */
    hak_label_info labels[HAK_LABELS_MAX + 1]; /* largest first */
} hkl_snapshot;

void hkl_snapshot_take(hkl_snapshot *snap, const hak_ctx *ctx);

#endif
