/* Policies of contexts. */
#include "base/policy.h"
#include "heap/apply_heap.h"
#include "heap/hints.h"
#include "shared/thread_heap.h"

static void change(hak_ctx *whole, const hak_policy *policy)
{
    hak_tuning t;
    hk_policy_settings(&t, &whole->settings.hints->base, whole->settings.given, policy,
                       (hak_workload)whole->settings.workload);
    if (whole->heaps) {
        hk_shared_settings_change(whole, &t);
        return;
    }
    whole->settings.hinted = hk_hints_any(whole->settings.hints);
    hk_heap_settings_change(whole, &t);
}

int hak_ctx_policy_set(hak_ctx *ctx, const hak_policy *policy)
{
    hak_ctx *whole = hk_whole(ctx);
    hak_policy_ref(policy);
    hk_whole_lock(whole);
    bool made = hk_hints_make(whole);
    const hak_policy *before = policy;
    if (made) {
        before = hk_hints_take(whole, policy);
        change(whole, policy);
    }
    hk_whole_unlock(whole);
    hak_policy_unref(before);
    if (!made) return -1;
    if (whole->own_space) hak_space_policy_set(whole->space, policy);
    return 0;
}

hak_policy *hak_ctx_policy(const hak_ctx *ctx)
{
    hak_ctx *whole = hk_whole(ctx);
    hk_whole_lock(whole);
    hak_policy *policy = whole->settings.hints ? hak_policy_ref(whole->settings.hints->policy) : NULL;
    hk_whole_unlock(whole);
    return policy;
}

int hak_ctx_tuning(const hak_ctx *ctx, hak_tuning *out)
{
    hak_ctx *whole = hk_whole(ctx);
    if (!hk_tuning_fits(out)) return -1;
    hak_tuning t;
    hk_whole_lock(whole);
    hk_heap_settings_get(whole, &t);
    hk_whole_unlock(whole);
    hk_sized_write(out, &t, sizeof t);
    return 0;
}

int hak_site_define(hak_ctx *ctx, hak_site site, const char *name)
{
    hak_ctx *whole = hk_whole(ctx);
    if (!site || !name || !hk_name_good(name, HAK_HINT_NAME_MOST)) return -1;
    hk_whole_lock(whole);
    int rc = hk_hints_site(whole, site, hk_name_hash(name));
    hk_whole_unlock(whole);
    return rc;
}
