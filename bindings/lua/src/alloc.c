/* The way of a block from Lua to the context. osize is exact on every engine, so that frees and resizes
 * need no look-up. */
#include "alloc.h"
#include "end.h"
#include "hakmem/lua.h"
#include "label.h"
#include "profile/live.h"
#include "profile/profile.h"
#include "shared.h"

#include <string.h>

void *hak_lua_alloc(void *ctx, void *ptr, size_t osize, size_t nsize)
{
    if (nsize == 0) {
        /* first: PUC Lua calls with (NULL, 0) very often */
        if (ptr) hak_free_sized(ctx, ptr, osize);
        return NULL;
    }
    if (!ptr) return hak_alloc(ctx, nsize);
    return hak_realloc_sized(ctx, ptr, osize, nsize);
}

/* hak_lua_alloc for a state that ends with its last block. */
static void *alloc_own(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hkl_state *st = ud;
    if (nsize == 0) {
        if (!ptr) return NULL;
        if (hkl_frees_watched(st)) return hkl_free_watched(st, ptr, osize);
        if (__builtin_expect(ptr == st->last, 0)) hkl_free_last(st, ptr, osize);
        else hak_free_sized(st->ctx, ptr, osize);
        return NULL;
    }
    if (!ptr) return hkl_is_strange(st, nsize, HAK_CALLSITE()) ? NULL : hak_alloc(st->ctx, nsize);
    return hak_realloc_sized(st->ctx, ptr, osize, nsize);
}

/* The same with blocks of another allocator about, and with the collector to hurry. */
static void *alloc_guarded(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hkl_state *st = ud;
    if (nsize == 0 && hkl_frees_watched(st)) return hkl_free_watched(st, ptr, osize);
    if (nsize == 0) return hkl_free(st, ptr, osize);
    if (!ptr && hkl_is_strange(st, nsize, HAK_CALLSITE())) return NULL;
    return !ptr ? hkl_new(st, nsize, 0, 0) : hkl_resize(st, ptr, osize, nsize, 0, 0);
}

lua_Alloc hkl_alloc_for(const hkl_state *st)
{
    if (st->shared) return st->labelled ? hkl_labels_alloc_shared : hkl_shared_alloc;
    if (st->profile && (st->profile->running || hkl_profile_by_line(st)))
        return hkl_profile_alloc_for(st->profile);
    const bool refuses = st->hard != 0 || (LUA_VERSION_NUM == 501 && st->soft != 0);
    if (st->labelled) return refuses ? hkl_labels_alloc_limited : hkl_labels_alloc;
    return st->old_alloc || st->soft != 0 || refuses ? alloc_guarded : alloc_own;
}

bool hkl_alloc_has_state(lua_Alloc f)
{
    return f == alloc_own || f == alloc_guarded || f == hkl_labels_alloc || f == hkl_labels_alloc_limited ||
           f == hkl_shared_alloc || f == hkl_labels_alloc_shared || f == hkl_end_alloc ||
           hkl_profile_is_alloc(f) || hkl_live_is_alloc(f);
}

#if LUA_VERSION_NUM >= 505
void *hkl_free_watched(hkl_state *st, void *ptr, size_t osize)
{
#ifdef HKC_CFI_WALK
    hkl_profile *p = st->profile;
    if (ptr && p->registers) hkl_quick_freed(&p->quick, ptr);
    if (ptr && hkl_profile_by_line(st)) hkl_lines_freed(p->lines, ptr, osize);
#endif
    return hkl_free(st, ptr, osize);
}
#endif

/* For the states beside the one that came first: nothing of that one is looked at from now on. */
static void leave_to_others(hkl_state *st)
{
    __atomic_store_n(&st->ended, true, __ATOMIC_RELAXED);
    if (st->shared) return; /* the other threads read `main` */
    st->main = NULL;
    st->soft = st->hard = st->reserve_size = 0;
    st->until_check = INT64_MAX;
    st->hurried = st->forbids = st->collects = st->leaves = false;
    st->events = 0;
}

/* The last block of the state that came first. The context and st stay while others have blocks. */
void hkl_free_last(hkl_state *st, void *ptr, size_t osize)
{
    hak_ctx *ctx = st->ctx;
    __atomic_store_n(&st->last, NULL, __ATOMIC_RELAXED); /* the place may become another block */
    if (st->profile) hkl_profile_end(st->profile);
    if (st->ending) {
        hak_ctx_destroy(ctx);
        return;
    }
    if (hkl_is_foreign(st, ptr)) st->old_alloc(st->old_ud, ptr, osize, 0);
    else hak_free_sized(ctx, ptr, osize);
    hkl_reserve_free(st);
    if (hkl_others_live(st)) {
        leave_to_others(st);
        return;
    }
    hkl_profile_delete(st->profile);
    if (st->owns_ctx) {
        hak_ctx_destroy(ctx);
        return;
    }
    hkl_labels_delete(st->labels);
    hak_free_sized(ctx, st, sizeof *st);
}

void *hkl_migrate(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    if (nsize <= osize) /* moving could fail, and a shrink must not */
        return st->old_alloc(st->old_ud, ptr, osize, nsize);
    hkl_grow(st, nsize);
    void *p = hak_alloc_cs(st->ctx, nsize, label, site);
    if (!p) p = hkl_refused(st, ptr, osize, nsize, label, site);
    if (!p) return NULL;
    memcpy(p, ptr, osize);
    st->old_alloc(st->old_ud, ptr, osize, 0);
    return p;
}
