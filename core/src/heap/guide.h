/* Puts what a policy says where the slow paths of a context find it: copies the numbers into the context, or
 * into the heaps of a shared one, and keeps the hints in the context's guide, by label and by site. */
#ifndef HK_GUIDE_H
#define HK_GUIDE_H

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
struct hk_guide {
    hak_ctx *ctx;
    hk_guide *next, *prev;    /* in its space, whose end may come first */
    const hak_policy *policy; /* referenced; NULL = none */
    hak_tuning base;          /* the context's numbers without a policy */
    uint8_t room[256];        /* by label: percent */
    hk_named_site *sites;     /* open addressing */
    hk_slab *site_units;      /* where they are; NULL = among the context's own data */
    uint32_t site_count, site_room;
};

/* NULL = no memory. */
hk_guide *hk_guide_make(hak_ctx *ctx);
/* Of a new context, whose numbers without the policy are in base: takes a reference. false = no memory. */
bool hk_guide_begin(hak_ctx *ctx, const hak_tuning *base, const hak_policy *policy);
/* The policy, for which the guide has a reference already; what it had is returned. */
const hak_policy *hk_guide_take(hak_ctx *ctx, const hak_policy *policy);
/* The label, whose name is new, gets its hint. */
void hk_guide_label(const hak_ctx *ctx, hak_label label);
/* 0 = ok, -1 = no memory. */
int hk_guide_site(hak_ctx *ctx, hak_site site, uint64_t name);
/* Percent; 0 = there is no hint. The site's goes first. */
unsigned hk_guide_room(const hk_guide *guide, hak_label label, hak_site site);
/* Whether it has any hint. */
HK_INLINE bool hk_guide_hints(const hk_guide *guide)
{
    return guide && guide->policy && guide->policy->hint_count;
}
/* The context ends. */
void hk_guide_end(const hak_ctx *ctx);

#endif
