/* Whether there are several interpreters, and which one runs in this thread. */
#ifndef HKP_INTERPRETERS_H
#define HKP_INTERPRETERS_H

#include "base/core.h"

/* CPython's list of interpreters has the newest in front: other than the main one while there are more. */
typedef struct hkp_interpreters {
    const void *const volatile *newest; /* in the runtime; before it is known, a place with `main` */
    const void *main;                   /* NULL = the list is not known */
    const void *alone; /* the newest where nothing is to be asked: no others, and no labels yet */
} hkp_interpreters;
extern hkp_interpreters hkp_interpreters_known HKP_HIDDEN;

/* Finds the list. Python is initialized, and the GIL is held. */
void hkp_interpreters_find(void);
/* From now on each allocation asks for its label. */
void hkp_interpreters_ask(void);
/* The number of the interpreter that runs in this thread; 0 = the main one, none, or not known. */
int64_t hkp_interpreters_other(void);

#endif
