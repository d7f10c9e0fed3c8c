/* The way of a block from Lua to the context. osize is exact on every engine, so that frees and resizes
 * need no look-up. */
#include "alloc.h"
#include "hakmem/lua.h"
#include "label.h"

#include <string.h>

void *hak_lua_alloc(void *ctx, void *ptr, size_t osize, size_t nsize)
{
    if (nsize == 0) {
        /* first: PUC Lua calls with (NULL, 0) very often */
        if (ptr != NULL) hak_free_sized(ctx, ptr, osize);
        return NULL;
    }
    if (ptr == NULL) return hak_alloc(ctx, nsize);
    return hak_realloc_sized(ctx, ptr, osize, nsize);
}

/* hak_lua_alloc for a state that ends with its last block. */
static void *alloc_own(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hk_lua_state *st = ud;
    if (nsize == 0) {
        if (ptr == NULL) return NULL;
        if (__builtin_expect(ptr == st->last, 0)) hk_lua_free_last(st, ptr, osize);
        else hak_free_sized(st->ctx, ptr, osize);
        return NULL;
    }
    if (ptr == NULL) return hak_alloc(st->ctx, nsize);
    return hak_realloc_sized(st->ctx, ptr, osize, nsize);
}

/* The same with blocks of another allocator about, and with the collector to hurry. */
static void *alloc_guarded(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hk_lua_state *st = ud;
    if (nsize == 0) return hk_lua_free(st, ptr, osize);
    if (ptr == NULL) {
        hk_lua_grow(st, nsize);
        return hak_alloc(st->ctx, nsize);
    }
    if (hk_lua_is_foreign(st, ptr)) return hk_lua_migrate(st, ptr, osize, nsize, 0, 0);
    if (nsize > osize) hk_lua_grow(st, nsize - osize);
    return hak_realloc_sized(st->ctx, ptr, osize, nsize);
}

lua_Alloc hk_lua_alloc_for(const hk_lua_state *st)
{
    if (st->labels != NULL) return hk_lua_labels_alloc;
    return st->old_alloc != NULL || st->soft != 0 ? alloc_guarded : alloc_own;
}

bool hk_lua_alloc_has_state(lua_Alloc f)
{
    return f == alloc_own || f == alloc_guarded || f == hk_lua_labels_alloc;
}

void hk_lua_free_last(hk_lua_state *st, void *ptr, size_t osize)
{
    hak_ctx *ctx = st->ctx;
    bool owns_ctx = st->owns_ctx;
    if (st->labels != NULL) hk_lua_labels_delete(st->labels);
    if (hk_lua_is_foreign(st, ptr)) st->old_alloc(st->old_ud, ptr, osize, 0);
    else hak_free_sized(ctx, ptr, osize);
    if (owns_ctx) hak_ctx_destroy(ctx);
    else hak_free_sized(ctx, st, sizeof *st);
}

void *hk_lua_migrate(hk_lua_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    if (nsize <= osize) /* moving could fail, and a shrink must not */
        return st->old_alloc(st->old_ud, ptr, osize, nsize);
    hk_lua_grow(st, nsize);
    void *p = hak_alloc_cs(st->ctx, nsize, label, site);
    if (p == NULL) return NULL;
    memcpy(p, ptr, osize);
    st->old_alloc(st->old_ud, ptr, osize, 0);
    return p;
}
