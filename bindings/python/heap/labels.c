#include "heap/labels.h"

#include "heap/domains.h"
#include "heap/heap.h"

#include <stdatomic.h>
#include <stdio.h>

const char *const hkp_domain_names[HKP_DOMAINS] = {"raw", "mem", "obj", "arena", "malloc"};
static _Atomic int labels_begun;

/* By the last bits of the interpreter's number: the number and one above 16 bits of its label. */
enum { SLOTS = 64 };
static _Atomic uint64_t known_labels[HKP_DOMAINS][SLOTS];

bool hkp_labels_begin(void)
{
    if (labels_begun) return true;
    if (!hkp_ctx()) return false;
    hkp_interpreters_ask();
    for (int d = 0; d < HKP_DOMAINS; d++)
        if (hak_label_define(hkp_ctx(), hkp_domain_names[d]) == 0) return false;
    labels_begun = 1;
    return true;
}

/* Blocks without a label go to their domains. */
static void share(hak_label_info *of)
{
    hak_label_info *rest = &of[HKP_DOMAIN_LABEL(HKP_OBJ)];
    for (int d = 0; d < HKP_DOMAINS; d++) {
        if (d == HKP_OBJ) continue;
        hkp_amount c = hkp_counts_sum((hkp_domain)d);
        if (c.bytes > of->live_bytes || c.blocks > of->live_blocks)
            c = (hkp_amount){of->live_bytes, of->live_blocks};
        of[HKP_DOMAIN_LABEL(d)].live_bytes += c.bytes;
        of[HKP_DOMAIN_LABEL(d)].live_blocks += c.blocks;
        of->live_bytes -= c.bytes;
        of->live_blocks -= c.blocks;
    }
    rest->live_bytes += of->live_bytes;
    rest->live_blocks += of->live_blocks;
    of->live_bytes = of->live_blocks = 0;
}

int hkp_labels(hak_label_info out[HAK_LABELS_MAX + 1])
{
    if (!hkp_ctx()) return 0;
    int n = hak_labels_stats(hkp_ctx(), out, HAK_LABELS_MAX + 1);
    for (; n <= HKP_DOMAINS; n++)
        out[n] = (hak_label_info){.name = hkp_domain_names[n - 1], .label = (hak_label)n};
    if (hkp_provider_current()->counts) share(out);
    return n;
}

hak_label hkp_label_define(const char *name)
{
    return hkp_labels_begin() ? hak_label_define(hkp_ctx(), name) : 0;
}

static hak_label define(hkp_domain domain, int64_t interpreter)
{
    char name[40];
    snprintf(name, sizeof name, "%s@%lld", hkp_domain_names[domain], (long long)interpreter);
    return hkp_label_define(name);
}

hak_label hkp_domain_label_find(hkp_domain domain)
{
    if (!hkp_labels_begin()) return 0;
    /* RAW and malloc belong to no interpreter: they are called without the GIL too. */
    int64_t id = domain == HKP_RAW || domain == HKP_MALLOC ? 0 : hkp_interpreters_other();
    if (id == 0) return HKP_DOMAIN_LABEL(domain);
    _Atomic uint64_t *slot = &known_labels[domain][id % SLOTS];
    uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);
    if (word >> 16 == (uint64_t)id + 1) return (hak_label)(word & 0xffff);
    /* more labels than a context has: the rest is with the main one */
    hak_label label = define(domain, id);
    if (label == 0) label = HKP_DOMAIN_LABEL(domain);
    atomic_store_explicit(slot, ((uint64_t)id + 1) << 16 | label, memory_order_relaxed);
    return label;
}
