/* Checks that cost: the allocation and free paths of HAK_DEBUG_CHECK and HAK_DEBUG_POISON. */
#ifndef HK_CHECK_H
#define HK_CHECK_H

#include "ctx.h"

enum { HK_POISON_NEW = 0xCD, HK_POISON_FREE = 0xDD };

/* A block of an opened class, one at a time, without magazine. NULL = no memory. */
void *hk_check_alloc(hak_ctx *ctx, hk_bin *bin, hak_label label);
/* Before a free: compares the told size (HAK_NONE = none told), poisons the block. */
void hk_check_free(hak_ctx *ctx, void *p, size_t n);

#endif
