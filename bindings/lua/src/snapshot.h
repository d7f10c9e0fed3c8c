/* Labels and totals of one moment: nothing is allocated in the context while they are read. */
#ifndef HK_LUA_SNAPSHOT_H
#define HK_LUA_SNAPSHOT_H

#include "hakmem/hakmem.h"

#define HK_LUA_NO_LABEL "unlabelled" /* what label 0 is called */

typedef struct hk_lua_snapshot {
    hak_stats stats;
    int count;                                 /* of labels, label 0 included */
    hak_label_info labels[HAK_LABELS_MAX + 1]; /* largest first */
} hk_lua_snapshot;

void hk_lua_snapshot_take(hk_lua_snapshot *snap, const hak_ctx *ctx);

/* Resident bytes of the process; 0 when the system does not tell. */
size_t hk_lua_process_rss(void);

#endif
