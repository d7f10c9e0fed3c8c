/* The label of a domain in each interpreter: that of the domain in the main one, `obj@1` and so on in others.
 */
#ifndef HK_PY_INTERPRETERS_H
#define HK_PY_INTERPRETERS_H

#include "core.h"

/* CPython's list of interpreters has the newest in front: other than the main one while there are more. */
typedef struct hk_py_interpreters {
    const void *const volatile *newest; /* in the runtime; before it is known, a place with `main` */
    const void *main;
} hk_py_interpreters;
extern hk_py_interpreters hk_py_interpreters_known;

/* Finds the list. Python is initialized, and the GIL is held. */
void hk_py_interpreters_find(void);
hak_label hk_py_interpreters_label(hk_py_domain domain);

/* RAW belongs to no interpreter: it is called without the GIL too. */
HK_PY_INLINE hak_label hk_py_domain_label(hk_py_domain domain)
{
    if (domain != HK_PY_RAW &&
        HK_PY_UNLIKELY(*hk_py_interpreters_known.newest != hk_py_interpreters_known.main))
        return hk_py_interpreters_label(domain);
    return HK_PY_DOMAIN_LABEL(domain);
}

#endif
