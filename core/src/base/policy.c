#include "base/policy.h"

/* ---- Modes ---------------------------------------------------------------------------------------- */

/* Apart from the policies: who asks for a name alone does not have eleven KiB of constants with it. */
static const char mode_names[HK_MODES][16] = {
    [HAK_MODE_BALANCED] = "balanced", [HAK_MODE_MINIMAL] = "minimal",   [HAK_MODE_FAST] = "fast",
    [HAK_MODE_LEAN] = "lean",         [HAK_MODE_LEARNING] = "learning", [HAK_MODE_RESEARCH] = "research",
};

#define BUILT_IN(number, text)                                                                               \
    [number] = {.built_in = true, .mode = (number), .tuning = HAK_TUNING_INIT, .name = text}
/* They are in constant memory, so nothing counts their references. */
static const struct hak_policy of_mode[HK_MODES] = {
    BUILT_IN(HAK_MODE_BALANCED, "balanced"), BUILT_IN(HAK_MODE_MINIMAL, "minimal"),
    BUILT_IN(HAK_MODE_FAST, "fast"),         BUILT_IN(HAK_MODE_LEAN, "lean"),
    BUILT_IN(HAK_MODE_LEARNING, "learning"), BUILT_IN(HAK_MODE_RESEARCH, "research"),
};

const char *hak_mode_name(hak_mode mode)
{
    return (unsigned)mode < HK_MODES ? mode_names[mode] : NULL;
}

int hak_mode_by_name(const char *name)
{
    for (int i = 0; name && i < HK_MODES; i++)
        if (strcmp(mode_names[i], name) == 0) return i;
    return -1;
}

const hak_policy *hak_policy_of_mode(hak_mode mode)
{
    return (unsigned)mode < HK_MODES ? &of_mode[mode] : NULL;
}

/* ---- Names ---------------------------------------------------------------------------------------- */

uint64_t hk_name_hash(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

bool hk_name_good(const char *name, size_t most)
{
    size_t n = 0;
    for (; name[n]; n++)
        if (n == most || (unsigned char)name[n] < ' ' || name[n] == 127) return false;
    return n && name[0] != ' ' && name[n - 1] != ' ';
}

/* ---- Objects -------------------------------------------------------------------------------------- */

static const char *hint_wrong(const hak_hint *h)
{
    if (!h->label == !h->site) return "hints: a label or a site each";
    if (h->label && !hk_name_good(h->label, HAK_POLICY_NAME_MOST))
        return "hints: a label has 1 to 63 bytes, no blank at an end, no control characters";
    if (h->site && !hk_name_good(h->site, HAK_HINT_NAME_MOST))
        return "hints: a site has 1 to 191 bytes, no blank at an end, no control characters";
    if (h->room == 0 || h->room > HAK_HINT_ROOM_MOST) return "room: 1 to 100";
    return NULL;
}

static const char *hint_name_of(const hak_hint *h)
{
    return h->site ? h->site : h->label;
}

/* By a table of what came before: comparisons of all pairs would be millions of steps. */
static bool name_twice(const hak_policy_options *o)
{
    enum { SLOTS = 2 * HAK_HINTS_MOST };
    uint16_t slots[SLOTS] = {0};
    for (size_t i = 0; i < o->hint_count; i++) {
        const bool site = o->hints[i].site;
        const char *name = hint_name_of(&o->hints[i]);
        size_t at = hk_name_hash(name) % SLOTS;
        for (; slots[at]; at = (at + 1) % SLOTS) {
            const hak_hint *other = &o->hints[slots[at] - 1];
            const char *others = site ? other->site : other->label;
            if (others && strcmp(others, name) == 0) return true;
        }
        slots[at] = (uint16_t)(i + 1);
    }
    return false;
}

const char *hk_tried_name(const char *name)
{
    static const char names[2][16] = {"mode", "retained_bytes"};
    for (unsigned i = 0; name && i < 2; i++)
        if (strcmp(names[i], name) == 0) return names[i];
    return NULL;
}

const char *hk_price_wrong(size_t price)
{
    return price > HAK_PRICE_MOST ? "price: 1 to 1000000 millionths of the time for a MiB" : NULL;
}

const char *hk_budget_wrong(size_t budget)
{
    const size_t least = (size_t)1 << 20, most = (size_t)1 << 40;
    return budget && (budget < least || budget > most) ? "budget: 1 MiB to 1 TiB" : NULL;
}

const char *hk_undone_wrong(const hak_undone *u)
{
    const char *number = hk_tried_name(u->number);
    if (!number) return "undone: mode or retained_bytes expected";
    if (strcmp(number, "mode") == 0 && (u->to >= HK_MODES || u->from >= HK_MODES))
        return "undone: mode: HAK_MODE_* only";
    if (u->to == u->from) return "undone: two values that differ expected";
    if (u->windows == 0) return "undone: windows: 1 on";
    if (u->price == 0 || hk_price_wrong(u->price)) return "undone: price: 1 to 1000000";
    return u->fault_ns == 0 ? "undone: fault: 1 ns on" : NULL;
}

static const char *undone_wrong(const hak_policy_options *o)
{
    const char *error;
    if (o->undone_count > HAK_UNDONE_MOST) return "undone_count: at most 32";
    if (o->undone_count && !o->undone) return "undone_count without undone";
    for (size_t i = 0; i < o->undone_count; i++) {
        const hak_undone *u = &o->undone[i];
        if ((error = hk_undone_wrong(u))) return error;
        for (size_t k = 0; k < i; k++)
            if (strcmp(o->undone[k].number, u->number) == 0 && o->undone[k].to == u->to &&
                o->undone[k].from == u->from)
                return "undone: two are for one step";
    }
    return NULL;
}

static const char *read_policy_options(hak_policy_options *o, hak_tuning *t, const hak_policy_options *given)
{
    static const hak_policy_options defaults = HAK_POLICY_OPTIONS_INIT;
    if (!hak_sized_copy(o, sizeof *o, given ? given : &defaults))
        return "hak_policy_options.size is not set, or more is set than is known";
    if (given && given->size <= offsetof(hak_policy_options, mode)) o->mode = HAK_POLICY_MODE_NONE;
    if (o->mode != HAK_POLICY_MODE_NONE && (unsigned)o->mode >= HK_MODES) return "mode: HAK_MODE_* only";
    if (o->name && *o->name && !hk_name_good(o->name, HAK_POLICY_NAME_MOST))
        return "name: up to 63 bytes, no blank at an end, no control characters";
    static const hak_tuning nothing = HAK_TUNING_INIT;
    const char *error = hk_settings_copy(t, o->tuning ? o->tuning : &nothing);
    if (error) return error;
    if ((error = hk_price_wrong(o->price)) || (error = hk_budget_wrong(o->budget))) return error;
    if ((error = undone_wrong(o))) return error;
    if (o->hint_count > HAK_HINTS_MOST) return "hint_count: at most 1024";
    if (o->hint_count && !o->hints) return "hint_count without hints";
    for (size_t i = 0; i < o->hint_count; i++)
        if ((error = hint_wrong(&o->hints[i]))) return error;
    return o->hint_count > 1 && name_twice(o) ? "hints: two are for one name" : NULL;
}

const char *hak_policy_options_error(const hak_policy_options *given)
{
    hak_policy_options o;
    hak_tuning t;
    return read_policy_options(&o, &t, given);
}

static const hk_hint *find_hint(const hak_policy *policy, bool site, uint64_t hash)
{
    for (size_t i = 0; policy && i < policy->hint_count; i++)
        if (policy->hints[i].hash == hash && policy->hints[i].site == site) return &policy->hints[i];
    return NULL;
}

/* false = it is there already. */
static bool add_hint(hak_policy *policy, const hak_hint *from, char **names)
{
    const char *name = hint_name_of(from);
    uint64_t hash = hk_name_hash(name);
    size_t n = strlen(name) + 1;
    if (find_hint(policy, from->site, hash)) return false;
    memcpy(*names, name, n);
    policy->hints[policy->hint_count++] = (hk_hint){.site = from->site,
                                                    .room = (uint16_t)from->room,
                                                    .name = (uint32_t)(*names - (char *)policy),
                                                    .hash = hash};
    *names += n;
    return true;
}

hak_policy *hak_policy_new(const hak_os *given, const hak_policy_options *options)
{
    hak_policy_options o;
    hak_tuning t;
    hak_os os;
    if (read_policy_options(&o, &t, options)) return NULL;
    if (hk_os_read(&os, given)) return NULL;
    size_t bytes = sizeof(hak_policy) + o.hint_count * sizeof(hk_hint);
    for (size_t i = 0; i < o.hint_count; i++)
        bytes += strlen(hint_name_of(&o.hints[i])) + 1;
    hak_policy *policy = hk_os_take(&os, bytes);
    if (!policy) return NULL;
    atomic_store(&policy->refs, 1);
    policy->mode = o.mode;
    policy->tuning = t;
    policy->os = os;
    policy->bytes = bytes;
    if (o.name) memcpy(policy->name, o.name, strlen(o.name));
    policy->price = o.price;
    policy->budget = o.budget;
    for (; policy->undone_count < o.undone_count; policy->undone_count++) {
        hak_undone *u = &policy->undone[policy->undone_count];
        *u = o.undone[policy->undone_count];
        u->number = hk_tried_name(u->number);
    }
    policy->hints = (hk_hint *)(void *)(policy + 1);
    char *names = (char *)&policy->hints[o.hint_count];
    for (size_t i = 0; i < o.hint_count; i++)
        if (!add_hint(policy, &o.hints[i], &names)) {
            hak_policy_unref(policy);
            return NULL;
        }
    return policy;
}

static hak_policy *counted(const hak_policy *policy)
{
    return (hak_policy *)(uintptr_t)policy;
}

hak_policy *hak_policy_ref(const hak_policy *policy)
{
    if (policy && !policy->built_in)
        atomic_fetch_add_explicit(&counted(policy)->refs, 1, memory_order_relaxed);
    return counted(policy);
}

void hak_policy_unref(const hak_policy *policy)
{
    if (!policy || policy->built_in) return;
    if (atomic_fetch_sub_explicit(&counted(policy)->refs, 1, memory_order_acq_rel) != 1) return;
    hak_os os = policy->os; /* which is in the pages */
    hk_os_give(&os, counted(policy), policy->bytes);
}

/* ---- Reading -------------------------------------------------------------------------------------- */

const char *hak_policy_name(const hak_policy *policy)
{
    return policy->name;
}

int hak_policy_mode(const hak_policy *policy)
{
    return policy->mode;
}

int hak_policy_tuning(const hak_policy *policy, hak_tuning *out)
{
    if (!hk_tuning_fits(out)) return -1;
    hk_sized_write(out, &policy->tuning, sizeof *out);
    return 0;
}

size_t hak_policy_hints(const hak_policy *policy, hak_hint *out, size_t count)
{
    for (size_t i = 0; i < policy->hint_count && i < count; i++) {
        const hk_hint *h = &policy->hints[i];
        const char *name = hk_hint_name(policy, h);
        out[i] = (hak_hint){h->site ? NULL : name, h->site ? name : NULL, h->room};
    }
    return policy->hint_count;
}

unsigned hak_policy_price(const hak_policy *policy)
{
    return policy->price;
}

size_t hak_policy_budget(const hak_policy *policy)
{
    return policy->budget;
}

size_t hak_policy_undone(const hak_policy *policy, hak_undone *out, size_t count)
{
    for (size_t i = 0; i < policy->undone_count && i < count; i++)
        out[i] = policy->undone[i];
    return policy->undone_count;
}

unsigned hk_policy_room(const hak_policy *policy, bool site, uint64_t hash)
{
    const hk_hint *h = find_hint(policy, site, hash);
    return h ? h->room : 0;
}

void hk_policy_settings(hak_tuning *to, const hak_tuning *base, uint32_t given, const hak_policy *policy,
                        hak_workload workload)
{
    *to = *base;
    if (!policy) return;
    const hak_tuning *by_mode =
        policy->mode == HAK_POLICY_MODE_NONE ? base : hk_settings_default((hak_mode)policy->mode, workload);
    for (unsigned i = 1; i < HK_SETTING_WORDS; i++) {
        size_t own = hk_setting_get(&policy->tuning, i);
        if (own) hk_setting_set(to, i, own);
        else if (!(given >> i & 1)) hk_setting_set(to, i, hk_setting_get(by_mode, i));
    }
}
