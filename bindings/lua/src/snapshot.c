#include "snapshot.h"

#include <stdlib.h>
#include <string.h>

static int larger_first(const void *a, const void *b)
{
    const hak_label_info *x = a, *y = b;
    if (x->live_bytes != y->live_bytes) return x->live_bytes < y->live_bytes ? 1 : -1;
    return (int)x->label - (int)y->label;
}

void hkl_snapshot_take(hkl_snapshot *snap, const hak_ctx *ctx)
{
    const int room = (int)(sizeof snap->labels / sizeof snap->labels[0]);
    memset(&snap->stats, 0, sizeof snap->stats);
    snap->stats.size = sizeof snap->stats;
    hak_ctx_stats(ctx, &snap->stats);
    snap->count = hak_labels_stats(ctx, snap->labels, (size_t)room);
    if (snap->count > room) snap->count = room;
    for (int i = 0; i < snap->count; i++)
        if (snap->labels[i].label == 0) snap->labels[i].name = HKL_NO_LABEL;
    qsort(snap->labels, (size_t)snap->count, sizeof snap->labels[0], larger_first);
}
