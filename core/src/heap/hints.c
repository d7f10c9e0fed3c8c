#include "heap/hints.h"

#include "heap/apply_heap.h"
#include "heap/label.h"
#include "heap/metadata.h"

enum { SITES_FIRST = 16 };

hk_hints *hk_hints_make(hak_ctx *ctx)
{
    if (ctx->settings.hints) return ctx->settings.hints;
    hk_hints *h = hk_meta_alloc(ctx, sizeof *h);
    if (!h) return NULL;
    memset(h, 0, sizeof *h);
    hk_heap_settings_get(ctx, &h->base);
    h->ctx = ctx;
    hak_space *s = ctx->space;
    hk_lock_take(&s->lock);
    h->next = s->hints;
    if (h->next) h->next->prev = h;
    s->hints = h;
    hk_lock_drop(&s->lock);
    return ctx->settings.hints = h;
}

bool hk_hints_begin(hak_ctx *ctx, const hak_tuning *base, const hak_policy *policy)
{
    if (!hk_hints_make(ctx)) return false;
    ctx->settings.hints->base = *base;
    hk_hints_take(ctx, hak_policy_ref(policy));
    ctx->settings.hinted = hk_hints_any(ctx->settings.hints);
    return true;
}

void hk_hints_label(const hak_ctx *ctx, hak_label label)
{
    hk_hints *h = ctx->settings.hints;
    if (!h) return;
    h->room[label] = (uint8_t)hk_policy_room(h->policy, false, hk_name_hash(hk_label_name(ctx, label)));
}

static unsigned room_of_site(const hak_policy *policy, uint32_t name)
{
    for (size_t i = 0; policy && i < policy->hint_count; i++)
        if (policy->hints[i].site && (uint32_t)policy->hints[i].hash == name) return policy->hints[i].room;
    return 0;
}

const hak_policy *hk_hints_take(hak_ctx *ctx, const hak_policy *policy)
{
    hk_hints *h = ctx->settings.hints;
    const hak_policy *before = h->policy;
    h->policy = policy;
    for (unsigned label = 1; label <= ctx->labels.count; label++)
        hk_hints_label(ctx, (hak_label)label);
    for (uint32_t i = 0; i < h->site_room; i++)
        h->sites[i].room = room_of_site(policy, h->sites[i].name);
    return before;
}

/* Where the site is, or would be. room: a power of two, not all taken. */
static hk_named_site *find_site(hk_named_site *sites, uint32_t room, hak_site site)
{
    uint32_t i = (uint32_t)((uint64_t)site * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    while (sites[i & (room - 1)].site && sites[i & (room - 1)].site != site)
        i++;
    return &sites[i & (room - 1)];
}

static bool sites_grow(hak_ctx *ctx, hk_hints *h)
{
    uint32_t room = h->site_room ? h->site_room * 2 : SITES_FIRST;
    size_t bytes = room * sizeof *h->sites;
    bool zero, alone = bytes >= HK_UNIT;
    hk_slab *s = alone ? hk_meta_units(ctx, bytes, &zero) : NULL;
    hk_named_site *sites = s ? hk_meta_start(ctx, s) : !alone ? hk_meta_alloc(ctx, bytes) : NULL;
    if (!sites) return false;
    memset(sites, 0, bytes);
    for (uint32_t i = 0; i < h->site_room; i++)
        if (h->sites[i].site) *find_site(sites, room, h->sites[i].site) = h->sites[i];
    if (h->site_units) hk_units_give(ctx, h->site_units);
    h->site_units = s;
    h->sites = sites;
    h->site_room = room;
    return true;
}

int hk_hints_site(hak_ctx *ctx, hak_site site, uint64_t name)
{
    hk_hints *h = hk_hints_make(ctx);
    if (!h) return -1;
    hk_named_site *at = h->site_room ? find_site(h->sites, h->site_room, site) : NULL;
    if (!at || !at->site) {
        if (h->site_count >= h->site_room / 4 * 3 && !sites_grow(ctx, h)) return -1;
        at = find_site(h->sites, h->site_room, site);
        h->site_count++;
    }
    *at = (hk_named_site){site, (uint32_t)name, room_of_site(h->policy, (uint32_t)name)};
    return 0;
}

unsigned hk_hints_room(const hk_hints *h, hak_label label, hak_site site)
{
    unsigned room = 0;
    if (site && h->site_room) {
        const hk_named_site *at = find_site(h->sites, h->site_room, site);
        if (at->site) room = at->room;
    }
    return room ? room : h->room[label <= HAK_LABELS_MAX ? label : 0];
}

void hk_hints_end(const hak_ctx *ctx)
{
    hk_hints *h = ctx->settings.hints;
    hak_space *s = ctx->space;
    if (!h) return;
    hk_lock_take(&s->lock);
    if (h->next) h->next->prev = h->prev;
    if (h->prev) h->prev->next = h->next;
    else s->hints = h->next;
    hk_lock_drop(&s->lock);
    hak_policy_unref(h->policy);
}
