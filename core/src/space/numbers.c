/* The numbers of a space, and its policy. */
#include "space/space.h"

#include "base/policy.h"

/* With the lock held, or alone. */
static void set(hak_space *s, const hak_tuning *t)
{
    s->retained_bytes = hk_or_none(t->retained_bytes);
    s->retained_percent = hk_or_none(t->retained_percent);
    s->retained_yields = t->retained_yields == 1;
    s->guard_slots = t->guard_slots;
    hk_set(&s->purge_ns, t->purge_ns);
    hk_set(&s->huge_from, t->huge_from);
}

static void merge(hak_space *s)
{
    hak_tuning t;
    hk_policy_merge(&t, &s->base, s->said, s->policy, HAK_WORKLOAD_TRACED);
    set(s, &t);
}

void hk_space_numbers_begin(hak_space *s, const hak_tuning *t, uint32_t said, const hak_policy *policy)
{
    s->base = *t;
    s->said = said;
    s->policy = hak_policy_ref(policy);
    merge(s);
}

static size_t none_or(size_t n)
{
    return n ? n : HAK_NONE;
}

void hk_space_numbers(hak_space *s, hak_tuning *t)
{
    hk_lock_take(&s->lock);
    t->retained_bytes = none_or(s->retained_bytes);
    t->retained_percent = none_or(s->retained_percent);
    t->guard_slots = s->guard_slots;
    t->purge_ns = hk_get(&s->purge_ns);
    t->huge_from = hk_get(&s->huge_from);
    t->retained_yields = s->retained_yields ? 1 : HAK_NONE;
    hk_lock_drop(&s->lock);
}

void hak_space_policy_set(hak_space *s, const hak_policy *policy)
{
    hak_policy_ref(policy);
    hk_lock_take(&s->lock);
    const hak_policy *before = s->policy;
    s->policy = policy;
    merge(s);
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
