/* What the functions of the module share. */
#ifndef HKL_MODULE_CHECK_H
#define HKL_MODULE_CHECK_H

#include "hakmem/lua.h"

#include <stdint.h>

void hkl_push_count(lua_State *L, uint64_t n);
/* The context, or an error. */
hak_ctx *hkl_check_context(lua_State *L);
/* The value at the index: a number of bytes, or a size as text. `zero`: what 0 means. An argument error of
 * argument `arg`. */
size_t hkl_check_size(lua_State *L, int index, int arg, const char *zero);

#endif
