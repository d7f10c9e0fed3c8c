#include "common/memory.h"

#include "common/size.h"

#include <string.h>

static const struct {
    char name[8];
    unsigned price;
} words[] = {{"cheap", HAK_PRICE_CHEAP}, {"normal", HAK_PRICE_NORMAL}, {"dear", HAK_PRICE_DEAR}};

const char *hkc_memory_parse(const char *text, hkc_memory *out)
{
    const size_t least = (size_t)1 << 20, most = (size_t)1 << 40;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i].name) != 0) continue;
        out->price = words[i].price;
        return NULL;
    }
    size_t bytes = 0;
    if (hkc_size_parse(text, &bytes) || bytes < least || bytes > most)
        return "cheap, normal, dear or a size from 1M to 1T expected";
    out->budget = bytes;
    return NULL;
}

const char *hkc_price_parse(const char *text, hkc_memory *out)
{
    unsigned price = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && price <= HAK_PRICE_MOST; p++)
        price = price * 10 + (unsigned)(*p - '0');
    if (p == text || *p || price == 0 || price > HAK_PRICE_MOST)
        return "1 to 1000000 expected, millionths of the CPU time for a MiB";
    out->price = price;
    return NULL;
}

/* The mode that a program begins with; HAK_POLICY_MODE_NONE = its own. */
static int first_mode(const hkc_memory *m, bool learns)
{
    if (learns) return m->price < HKC_PRICE_DEAR_FROM ? HAK_MODE_FAST : HAK_POLICY_MODE_NONE;
    if (m->budget || (m->price && m->price <= HAK_PRICE_CHEAP)) return HAK_MODE_FAST;
    return m->price >= HKC_PRICE_DEAR_FROM ? HAK_MODE_LEAN : HAK_POLICY_MODE_NONE;
}

static size_t at_most(size_t number, size_t most)
{
    return number && number != HAK_NONE && number < most ? number : most;
}

hak_policy *hkc_memory_begin(hak_policy *policy, const hkc_memory *m, bool learns, bool named)
{
    hak_hint hints[HAK_HINTS_MOST];
    hak_undone undone[HAK_UNDONE_MOST];
    hak_policy_options o = HAK_POLICY_OPTIONS_INIT;
    hak_tuning t = HAK_TUNING_INIT;
    if (!m->price && !m->budget && (policy || named || !learns)) return policy;
    if (policy) {
        o.name = hak_policy_name(policy);
        o.mode = hak_policy_mode(policy);
        o.hints = hints;
        o.hint_count = hak_policy_hints(policy, hints, HAK_HINTS_MOST);
        o.undone = undone;
        o.undone_count = hak_policy_undone(policy, undone, HAK_UNDONE_MOST);
        o.price = hak_policy_price(policy);
        o.budget = hak_policy_budget(policy);
        hak_policy_tuning(policy, &t);
    } else if (!named) {
        o.mode = first_mode(m, learns);
    }
    if (m->price) o.price = m->price;
    if (m->budget) {
        /* Half for recycled pages, half for freed big blocks; a share of the heap would have no bound. */
        o.budget = m->budget;
        t.retained_bytes = at_most(t.retained_bytes, m->budget / 2);
        t.big_cache = at_most(t.big_cache, m->budget / 2);
        t.retained_percent = HAK_NONE;
        if (!o.price) o.price = HAK_PRICE_CHEAP;
    }
    o.tuning = &t;
    hak_policy *made = hak_policy_new(NULL, &o);
    hak_policy_unref(policy);
    return made;
}
