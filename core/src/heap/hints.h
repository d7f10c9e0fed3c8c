/* Keeps the policy of a context, and what its slow paths ask of that policy: hints by label and by site. The
 * settings are copied, see apply_heap.h. */
#ifndef HK_HINTS_H
#define HK_HINTS_H

#include "base/policy.h"
#include "heap/ctx.h"

/* A site with a name. */
typedef struct hk_named_site {
    hak_site site; /* 0 = free */
    uint32_t name; /* half of the name's hash: a hint that is another's by mistake does no harm */
    uint32_t room;
} hk_named_site;

/* Of a local or shared context; of a shared one under its lock. Made with the first policy or named site, and
 * gone with the context. */
struct hk_hints {
    hak_ctx *ctx;
    hk_hints *next, *prev;    /* in its space, whose end may come first */
    const hak_policy *policy; /* referenced; NULL = none */
    hak_tuning base;          /* the context's settings without a policy */
    uint8_t room[256];        /* by label: percent */
    hk_named_site *sites;     /* open addressing */
    hk_slab *site_units;      /* where they are; NULL = among the context's own data */
    uint32_t site_count, site_room;
};

/* NULL = no memory. */
hk_hints *hk_hints_make(hak_ctx *ctx);
/* Of a new context, whose settings without the policy are in base: takes a reference. false = no memory. */
bool hk_hints_begin(hak_ctx *ctx, const hak_tuning *base, const hak_policy *policy);
/* The policy, for which there is a reference already; what it had is returned. */
const hak_policy *hk_hints_take(hak_ctx *ctx, const hak_policy *policy);
/* The label, whose name is new, gets its hint. */
void hk_hints_label(const hak_ctx *ctx, hak_label label);
/* 0 = ok, -1 = no memory. */
int hk_hints_site(hak_ctx *ctx, hak_site site, uint64_t name);
/* Percent; 0 = there is no hint. The site's goes first. */
unsigned hk_hints_room(const hk_hints *hints, hak_label label, hak_site site);
/* Whether it has any hint. */
HK_INLINE bool hk_hints_any(const hk_hints *hints)
{
    return hints && hints->policy && hints->policy->hint_count;
}
/* The context ends. */
void hk_hints_end(const hak_ctx *ctx);

#endif
