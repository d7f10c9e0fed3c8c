/* Which part of the interpreter a block belongs to: a lua_Alloc that gives every block a label. */
#ifndef HK_LUA_LABEL_H
#define HK_LUA_LABEL_H

#include "state.h"

/* NULL = no memory. The first call of a process learns the runtime's allocation sites (a few ms); later
 * ones only define the labels. */
hk_lua_labels *hk_lua_labels_new(hak_ctx *ctx);
void hk_lua_labels_delete(hk_lua_labels *labels);

/* lua_Alloc; ud is the hk_lua_state, with labels set. */
void *hk_lua_labels_alloc(void *ud, void *ptr, size_t osize, size_t nsize);

/* The label for everything that lua_newstate makes, to be the scope while it runs. */
hak_label hk_lua_labels_registry(const hk_lua_labels *labels);

#endif
