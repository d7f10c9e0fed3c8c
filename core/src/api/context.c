/* Life of contexts, and the end of spaces. */
#include "api/context.h"

#include "api/errors.h"
#include "api/learner.h"
#include "api/options.h"
#include "api/quarantine.h"
#include "api/trace.h"
#include "base/policy.h"
#include "heap/batch.h"
#include "heap/big.h"
#include "heap/context.h"
#include "heap/guard.h"
#include "heap/hints.h"
#include "heap/packed_quick.h"
#include "profile/profile.h"
#include "shared/thread_heap.h"
#include "space/apart.h"
#include "space/open.h"

const char *hak_ctx_name(const hak_ctx *ctx)
{
    return ctx->host.name;
}

void *hak_ctx_user(const hak_ctx *ctx)
{
    return ctx->host.user;
}

hak_ctx *(hak_ctx_new)(hak_space *space, const hak_options *host)
{
    hak_options o;
    hak_tuning t, merged;
    uint32_t given;
    if (hk_options_read(&o, &t, &given, host)) return NULL;
    const hak_tuning *base = o.tuning;
    /* Only a space in a caller's buffer must set units aside for label bytes, and a space of one's own never
     * is. */
    bool labelled = space && o.label_count;
    hak_space *own = NULL;
    if (!space) {
        hak_space_options small = HAK_SPACE_OPTIONS_INIT;
        small.mode = o.mode;
        small.tuning = given ? host->tuning : NULL;
        small.policy = o.policy;
        space = own = (hak_space_new)(&small);
        if (!space) return NULL;
    }
    if (labelled) hk_space_labels_begin(space);
    if (o.policy) {
        hk_policy_settings(&merged, base, given, o.policy, o.workload);
        o.tuning = &merged;
    }
    bool can = !(o.debug & HAK_DEBUG_GUARD) || hk_guard_make(space);
    hak_ctx *ctx = !can ? NULL : hk_ctx_new(space, &o, o.shared ? sizeof(hk_heaps) : 0);
    if (!ctx) {
        if (labelled) hk_space_labels_end(space);
        hak_space_delete(own);
        return NULL;
    }
    ctx->own_space = own;
    ctx->judge = hk_report_wrong;
    if (o.shared) hk_shared_make(ctx, &o);
    hk_account_begin(ctx);
    ctx->settings.given = given;
    if ((o.policy && !hk_hints_begin(ctx, base, o.policy)) ||
        (ctx->debug & HAK_DEBUG_TRACE && !hk_trace_begin(ctx, o.trace_calls))) {
        hak_ctx_destroy(ctx);
        return NULL;
    }
    if (o.shared) ctx->heaps->hinted = ctx->settings.hinted;
    return ctx;
}

void hak_ctx_destroy(hak_ctx *ctx)
{
    if (!ctx) return;
    if (ctx->settings.learner) hk_learner_forget(ctx);
    hak_space *space = ctx->space;
    if (ctx->role == HK_SHARED) hk_shared_destroy(ctx);
    hk_big_destroy(ctx);
    if (ctx->checked & HK_GUARDED) hk_guard_end(ctx);
    hk_profile *k = hk_profile_of(ctx);
    if (k) hk_profile_forget(k);
    hk_account_end(ctx);
    if (!ctx->own_space) {
        hk_ctx_end(ctx);
        return;
    }
    hak_space_delete(space);
}

void hak_space_delete(hak_space *space)
{
    if (!space) return;
    while (space->charged)
        hk_account_end(space->charged);
    hk_big_unmap_all(space);
    for (const hk_hints *h = space->hints; h; h = h->next) {
        if (h->ctx->settings.learner) hk_learner_forget(h->ctx);
        hak_policy_unref(h->policy);
    }
    hak_policy_unref(space->policy);
    hk_guard_release(atomic_load(&space->guard), &space->os);
    hk_apart_end(space);
    hak_os os = space->os;
    hk_extent first = space->extent;
    void *more = space->more_open ? space->more : NULL;
    for (uint32_t i = space->extents - 1; i > 0; i--) {
        hk_extent *e = hk_extent_number(space, i);
        if (e->grows) hk_extent_unmap(e, NULL);
        else os.release(os.user, e->reserved, e->reserved_size);
    }
    if (first.grows) hk_extent_unmap(&first, more);
    else if (first.owned) os.release(os.user, first.reserved, first.reserved_size);
}

void hk_retire_check(hak_ctx *ctx)
{
    if (hk_get(&ctx->live_blocks) == 0) hak_ctx_destroy(ctx);
}

void hak_ctx_retire(hak_ctx *ctx)
{
    if (!ctx) return;
    hk_quarantine_end(ctx);
    if (ctx->role == HK_SHARED) {
        hk_shared_retire(ctx);
        hak_ctx_flush(ctx);
        hk_shared_gather(ctx);
        if (hk_shared_empty(ctx)) hak_ctx_destroy(ctx);
        return;
    }
    hk_batches_end(ctx);
    hak_ctx_flush(ctx);
    ctx->retired = true;
    ctx->checked |= HK_CHECKED;
    hk_packed_quicken(ctx);
    /* Closed magazines send every call to the slow paths, which know that the context is retired. */
    if (!hk_bins_none(ctx)) {
        for (unsigned kind = 0; kind < HK_BINS; kind++) {
            hk_bin *bin = &ctx->bins[kind];
            bin->cap = 0;
            bin->hi = bin->slots;
        }
    }
    hk_retire_check(ctx);
}
