#include "shared.h"

#include "label.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* ---- Who makes a state ---------------------------------------------------------------------------- */

/* A state may move from thread to thread: the one that asks for other large blocks is the one that it is on.
 */
__attribute__((noinline)) bool hkl_strange_now(hkl_state *st, size_t nsize, hak_site caller)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const uintptr_t thread = hkl_thread_now();
    const bool makes = hkl_newstate_asks(nsize, caller) && (st->main || st->ended);
    if (!makes) __atomic_store_n(&st->thread, thread, __ATOMIC_RELAXED);
    if (__atomic_load_n(&st->thread, __ATOMIC_RELAXED) == thread) {
        if (makes) st->others = true;
        return false;
    }
    if (!atomic_flag_test_and_set(&said))
        fputs("hakmem: a second thread makes a Lua state with the allocator of a state whose heap is one "
              "thread's "
              "alone: refused; --hak-shared, hak_options.shared or require(\"hakmem.adopt\"){ shared = true "
              "} makes "
              "the heap that of all threads\n",
              stderr);
    return true;
}

/* ---- lua_Alloc ------------------------------------------------------------------------------------ */

void *hkl_shared_free(hkl_state *st, void *ptr, size_t osize)
{
    if (!ptr) return NULL;
    if (ptr == __atomic_load_n(&st->last, __ATOMIC_RELAXED)) hkl_free_last(st, ptr, osize);
    else if (hkl_is_foreign(st, ptr)) st->old_alloc(st->old_ud, ptr, osize, 0);
    else hak_free_sized(st->ctx, ptr, osize);
    return NULL;
}

void *hkl_shared_new(hkl_state *st, size_t nsize, hak_label label, hak_site site, hak_site caller)
{
    void *p = hak_alloc_cs(st->ctx, nsize, label, site);
    if (__builtin_expect(nsize >= HKL_STATE_LEAST, 0) && p && st->main && hkl_newstate_asks(nsize, caller))
        __atomic_store_n(&st->others, true, __ATOMIC_RELAXED);
    return p;
}

void *hkl_shared_resize(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    if (hkl_is_foreign(st, ptr)) return hkl_migrate(st, ptr, osize, nsize, label, site);
    return hak_realloc_sized_cs(st->ctx, ptr, osize, nsize, label, site);
}

void *hkl_shared_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hkl_state *st = ud;
    if (nsize == 0) return hkl_shared_free(st, ptr, osize);
    if (ptr) return hkl_shared_resize(st, ptr, osize, nsize, 0, 0);
    return hkl_shared_new(st, nsize, 0, 0, HAK_CALLSITE());
}

bool hkl_has_others(const hkl_state *st)
{
    return __atomic_load_n(&st->others, __ATOMIC_RELAXED);
}

int hkl_switch_labels(hkl_state *st, bool on)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&making);
    if (on && !st->labels) st->labels = hkl_labels_new(st->ctx);
    const bool failed = on && !st->labels;
    if (!failed) st->labelled = on;
    pthread_mutex_unlock(&making);
    return failed ? -1 : 0;
}

/* All threads of a state have one registry. */
bool hkl_is_first(const hkl_state *st, lua_State *L)
{
    return !__atomic_load_n(&st->ended, __ATOMIC_RELAXED) && st->main &&
           lua_topointer(L, LUA_REGISTRYINDEX) == lua_topointer(st->main, LUA_REGISTRYINDEX);
}

/* A state has at least one block from its beginning to its end. Of a context that is the host's the blocks
 * are not known. */
bool hkl_others_live(const hkl_state *st)
{
    if (st->stays) return true;
    if (!hkl_has_others(st)) return false;
    hak_stats s = {.size = sizeof s};
    const size_t own = st->labels ? 2 : 1;
    return !st->owns_ctx || hak_ctx_stats(st->ctx, &s) != 0 || s.live_blocks > own;
}

/* ---- hakmem.label --------------------------------------------------------------------------------- */

static _Thread_local hkl_scope_of here;

hak_label hkl_scope(const hkl_state *st)
{
    if (!st->shared) return st->scope;
    return here.st == st ? here.label : 0;
}

hkl_scope_of hkl_scope_begin(hkl_state *st, hak_label label)
{
    const hkl_scope_of before = st->shared ? here : (hkl_scope_of){st, st->scope};
    if (st->shared) here = (hkl_scope_of){st, label};
    else st->scope = label;
    return before;
}

void hkl_scope_end(hkl_state *st, hkl_scope_of before)
{
    if (st->shared) here = before;
    else st->scope = before.label;
}
