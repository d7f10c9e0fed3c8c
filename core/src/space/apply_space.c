/* The settings of a space, and its policy. */
#include "space/space.h"

#include "base/policy.h"

#define SET(name, in, none, ...) s->in = hk_setting_kept(t.name, none);
#define SHOW(name, in, none, ...) t->name = hk_setting_shown(s->in, none);

/* With the lock held, or alone. */
static void apply(hak_space *s)
{
    hak_tuning t;
    hk_policy_settings(&t, &s->base, s->given, s->policy, HAK_WORKLOAD_TRACED);
    HK_SETTINGS(HK_NOT_HERE, SET, HK_NOT_HERE)
}

void hk_space_settings_begin(hak_space *s, const hak_tuning *t, uint32_t given, const hak_policy *policy)
{
    s->base = *t;
    s->given = given;
    s->policy = hak_policy_ref(policy);
    apply(s);
}

void hk_space_settings_get(hak_space *s, hak_tuning *t)
{
    hk_lock_take(&s->lock);
    HK_SETTINGS(HK_NOT_HERE, SHOW, HK_NOT_HERE)
    hk_lock_drop(&s->lock);
}

void hak_space_policy_set(hak_space *s, const hak_policy *policy)
{
    hak_policy_ref(policy);
    hk_lock_take(&s->lock);
    const hak_policy *before = s->policy;
    s->policy = policy;
    apply(s);
    hk_lock_drop(&s->lock);
    hak_policy_unref(before);
}

hak_policy *hak_space_policy(hak_space *s)
{
    hk_lock_take(&s->lock);
    hak_policy *policy = hak_policy_ref(s->policy);
    hk_lock_drop(&s->lock);
    return policy;
}
