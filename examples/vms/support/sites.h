/* Labels by call site, for a machine that takes all of its memory through one function and does not say what
 * for: the label is that of the first function up the stack whose name is in a list. The machine is linked
 * statically, and the program keeps its symbols. Elsewhere than on x86-64 Linux all is unlabelled. */
#ifndef VMS_SITES_H
#define VMS_SITES_H

#include "cfi.h"
#include "site_cache.h"

#include <hakmem/hakmem.h>

/* Functions whose name begins so. */
typedef struct sites_rule {
    const char *prefix;
    hak_label label;
} sites_rule;

/* One machine's. The cache knows return addresses: the label, or how far up the next one is. */
enum { SITES_SLOTS = 2048 };
typedef struct sites {
    const sites_rule *rules; /* the first that fits counts; ends with prefix NULL */
    struct sites_function *functions;
    size_t count;
    hkc_site_word cache[SITES_SLOTS + HKC_SITE_PROBES];
} sites;

/* Reads the names of the functions; to be called once, before sites_label. false = there are none. */
bool sites_open(sites *s, const sites_rule *rules);
/* The label where the cache does not know it. */
hak_label sites_learn(sites *s, uintptr_t sp);

#ifdef HKC_CFI_WALK
/* In the function that the machine calls for memory, which must not be inlined. */
#define SITES_SP() HKC_CFI_SP_ABOVE()

static inline hak_label sites_label(sites *s, uintptr_t sp)
{
    for (uintptr_t at = sp;;) {
        uint64_t info = hkc_site_home(s->cache, SITES_SLOTS, ((const uintptr_t *)at)[-1]);
        if (info < HKC_SITE_CLIMB) return (hak_label)info;
        if (info > HKC_SITE_INFO) return sites_learn(s, sp);
        at += (info - HKC_SITE_CLIMB) * sizeof(uintptr_t);
    }
}
#else
#define SITES_SP() 0

static inline hak_label sites_label(sites *s, uintptr_t sp)
{
    (void)s;
    return (hak_label)sp;
}
#endif

#endif
