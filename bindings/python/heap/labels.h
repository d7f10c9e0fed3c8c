/* Labels of the context. A block of which nobody knows better has that of its domain, in each interpreter:
 * that of the domain in the main one, `obj@1` and so on in others. */
#ifndef HKP_LABELS_H
#define HKP_LABELS_H

#include "heap/interpreters.h"

/* The label of each domain while nobody knows better. Labels 1 to HKP_DOMAINS of the context, so that they
 * are constants in the hooks. */
#define HKP_DOMAIN_LABEL(domain) ((hak_label)((domain) + 1))
extern const char *const hkp_domain_names[HKP_DOMAINS];

/* From now on blocks have labels: of a provider that starts with them, or where that of their domain is not
 * enough any more. Until then they have none, and no memory for them. false = no memory. [any thread] */
bool hkp_labels_begin(void);
HKP_API hak_label hkp_label_define(const char *name);
/* All labels, those of the domains with the blocks that have none; returns how many. */
HKP_API int hkp_labels(hak_label_info out[HAK_LABELS_MAX + 1]);

/* 0 = a block needs no label to say whose it is. -1 = ask: there are several interpreters, or labels. */
HKP_INLINE int hkp_domain_label(void)
{
    bool alone = *hkp_interpreters_known.newest == hkp_interpreters_known.alone;
    return HKP_LIKELY(alone) ? 0 : -1;
}
/* The same, asked; 0 = there are no labels, or none to be had. */
hak_label hkp_domain_label_find(hkp_domain domain);

#endif
