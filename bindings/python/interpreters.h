/* The label of a domain in each interpreter: that of the domain in the main one, `obj@1` and so on in others.
 */
#ifndef HK_PY_INTERPRETERS_H
#define HK_PY_INTERPRETERS_H

#include "core.h"

/* CPython's list of interpreters has the newest in front: other than the main one while there are more. */
typedef struct hk_py_interpreters {
    const void *const volatile *newest; /* in the runtime; before it is known, a place with `main` */
    const void *main;                   /* NULL = the list is not known */
    const void *alone; /* the newest where nothing is to be asked: no others, and no labels yet */
} hk_py_interpreters;
extern hk_py_interpreters hk_py_interpreters_known HK_PY_HIDDEN;

/* Finds the list. Python is initialized, and the GIL is held. */
void hk_py_interpreters_find(void);
/* From now on each allocation asks for its label. */
void hk_py_interpreters_ask(void);
/* The label for the interpreter of this thread; 0 = there are no labels yet, or none to be had. */
hak_label hk_py_interpreters_label(hk_py_domain domain);

/* 0 = a block needs no label to say whose it is. -1 = ask: there are several interpreters, or labels. */
HK_PY_INLINE int hk_py_domain_label(void)
{
    bool alone = *hk_py_interpreters_known.newest == hk_py_interpreters_known.alone;
    return HK_PY_LIKELY(alone) ? 0 : -1;
}

#endif
