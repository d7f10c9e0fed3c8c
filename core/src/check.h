/* Checks that cost: the allocation and free paths of HAK_DEBUG_CHECK and HAK_DEBUG_POISON. */
#ifndef HK_CHECK_H
#define HK_CHECK_H

#include "ctx.h"

enum { HK_POISON_NEW = 0xCD, HK_POISON_FREE = 0xDD };

/* A block of an opened class, one at a time, without magazine. NULL = no memory. */
void *hk_check_alloc(hak_ctx *ctx, hk_bin *bin, hak_label label);
/* Compares the size told for a live block of `size` bytes (HAK_NONE = none told). */
void hk_check_size(hak_ctx *ctx, const void *p, size_t size, size_t told);
/* Before a free: checks the size told, poisons the block. */
void hk_check_free(hak_ctx *ctx, void *p, size_t n);

#endif
