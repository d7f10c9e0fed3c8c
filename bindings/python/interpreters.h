/* The label of a domain in each interpreter: that of the domain in the main one, `obj@1` and so on in others.
 */
#ifndef HK_PY_INTERPRETERS_H
#define HK_PY_INTERPRETERS_H

#include "core.h"

/* CPython's list of interpreters has the newest in front: other than the main one while there are more. */
typedef struct hk_py_interpreters {
    const void *const volatile *newest; /* in the runtime; before it is known, a place with `main` */
    const void *main;                   /* NULL = the list is not known */
    const void *alone; /* the newest where there are neither others nor scopes of the program */
} hk_py_interpreters;
extern hk_py_interpreters hk_py_interpreters_known HK_PY_HIDDEN;

/* Finds the list. Python is initialized, and the GIL is held. */
void hk_py_interpreters_find(void);
/* The program has scopes from now on. */
void hk_py_interpreters_scoped(void);
hak_label hk_py_interpreters_label(hk_py_domain domain);

/* RAW belongs to no interpreter: it is called without the GIL too. -1 = there are several interpreters, or
 * scopes. */
HK_PY_INLINE int hk_py_domain_label(hk_py_domain domain)
{
    bool alone = domain == HK_PY_RAW || *hk_py_interpreters_known.newest == hk_py_interpreters_known.alone;
    return HK_PY_LIKELY(alone) ? HK_PY_DOMAIN_LABEL(domain) : -1;
}
HK_PY_INLINE hak_label hk_py_domain_label_find(hk_py_domain domain)
{
    int label = hk_py_domain_label(domain);
    return label >= 0 ? (hak_label)label : hk_py_interpreters_label(domain);
}

#endif
