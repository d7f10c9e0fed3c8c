#include "heap/guide.h"

#include "heap/metadata.h"
#include "heap/numbers.h"

enum { SITES_FIRST = 16 };

hk_guide *hk_guide_make(hak_ctx *ctx)
{
    if (ctx->advice.guide) return ctx->advice.guide;
    hk_guide *g = hk_meta_alloc(ctx, sizeof *g);
    if (!g) return NULL;
    memset(g, 0, sizeof *g);
    hk_numbers_get(ctx, &g->base);
    g->ctx = ctx;
    hak_space *s = ctx->space;
    hk_lock_take(&s->lock);
    g->next = s->guides;
    if (g->next) g->next->prev = g;
    s->guides = g;
    hk_lock_drop(&s->lock);
    return ctx->advice.guide = g;
}

bool hk_guide_begin(hak_ctx *ctx, const hak_tuning *base, const hak_policy *policy)
{
    if (!hk_guide_make(ctx)) return false;
    ctx->advice.guide->base = *base;
    hk_guide_take(ctx, hak_policy_ref(policy));
    ctx->advice.hinted = hk_guide_hints(ctx->advice.guide);
    return true;
}

/* With the lock of a shared context held: names do not change under it. */
static const char *label_name(const hak_ctx *ctx, unsigned label)
{
    size_t given = ctx->labels.given_count;
    return label <= given ? ctx->labels.given[label - 1] : ctx->labels.defined[label - 1 - given];
}

void hk_guide_label(const hak_ctx *ctx, hak_label label)
{
    hk_guide *g = ctx->advice.guide;
    if (!g) return;
    g->room[label] = (uint8_t)hk_policy_room(g->policy, false, hk_name_hash(label_name(ctx, label)));
}

static unsigned room_of_site(const hak_policy *policy, uint32_t name)
{
    for (size_t i = 0; policy && i < policy->hint_count; i++)
        if (policy->hints[i].site && (uint32_t)policy->hints[i].hash == name) return policy->hints[i].room;
    return 0;
}

const hak_policy *hk_guide_take(hak_ctx *ctx, const hak_policy *policy)
{
    hk_guide *g = ctx->advice.guide;
    const hak_policy *before = g->policy;
    g->policy = policy;
    for (unsigned label = 1; label <= ctx->labels.count; label++)
        hk_guide_label(ctx, (hak_label)label);
    for (uint32_t i = 0; i < g->site_room; i++)
        g->sites[i].room = room_of_site(policy, g->sites[i].name);
    return before;
}

/* Where the site is, or would be. room: a power of two, not all taken. */
static hk_named_site *find(hk_named_site *sites, uint32_t room, hak_site site)
{
    uint32_t i = (uint32_t)((uint64_t)site * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    while (sites[i & (room - 1)].site && sites[i & (room - 1)].site != site)
        i++;
    return &sites[i & (room - 1)];
}

static bool sites_grow(hak_ctx *ctx, hk_guide *g)
{
    uint32_t room = g->site_room ? g->site_room * 2 : SITES_FIRST;
    size_t bytes = room * sizeof *g->sites;
    bool zero, alone = bytes >= HK_UNIT;
    hk_slab *s = alone ? hk_meta_units(ctx, bytes, &zero) : NULL;
    hk_named_site *sites = s ? hk_meta_start(ctx, s) : !alone ? hk_meta_alloc(ctx, bytes) : NULL;
    if (!sites) return false;
    memset(sites, 0, bytes);
    for (uint32_t i = 0; i < g->site_room; i++)
        if (g->sites[i].site) *find(sites, room, g->sites[i].site) = g->sites[i];
    if (g->site_units) hk_units_give(ctx, g->site_units);
    g->site_units = s;
    g->sites = sites;
    g->site_room = room;
    return true;
}

int hk_guide_site(hak_ctx *ctx, hak_site site, uint64_t name)
{
    hk_guide *g = hk_guide_make(ctx);
    if (!g) return -1;
    hk_named_site *at = g->site_room ? find(g->sites, g->site_room, site) : NULL;
    if (!at || !at->site) {
        if (g->site_count >= g->site_room / 4 * 3 && !sites_grow(ctx, g)) return -1;
        at = find(g->sites, g->site_room, site);
        g->site_count++;
    }
    *at = (hk_named_site){site, (uint32_t)name, room_of_site(g->policy, (uint32_t)name)};
    return 0;
}

unsigned hk_guide_room(const hk_guide *g, hak_label label, hak_site site)
{
    unsigned room = 0;
    if (site && g->site_room) {
        const hk_named_site *at = find(g->sites, g->site_room, site);
        if (at->site) room = at->room;
    }
    return room ? room : g->room[label <= HAK_LABELS_MAX ? label : 0];
}

void hk_guide_end(const hak_ctx *ctx)
{
    hk_guide *g = ctx->advice.guide;
    hak_space *s = ctx->space;
    if (!g) return;
    hk_lock_take(&s->lock);
    if (g->next) g->next->prev = g->prev;
    if (g->prev) g->prev->next = g->next;
    else s->guides = g->next;
    hk_lock_drop(&s->lock);
    hak_policy_unref(g->policy);
}
