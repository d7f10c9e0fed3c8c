/* Whether the labels tell kinds of objects apart in this interpreter: objects of some kinds are made, and
 * each must have the label of its kind. How a build was optimized decides that, and what was learned from its
 * tables is a guess until it was tried. */
#ifndef HKP_KINDS_H
#define HKP_KINDS_H

#include "base/core.h"

/* Makes them and looks. Where objects are not in the heap, nothing is found wrong. With the GIL held. */
void hkp_kinds_try(void);

/* A kind that was found under the label of another one. */
typedef struct hkp_mixed {
    const char *kind, *label;
} hkp_mixed;
enum { HKP_KINDS = 11 };
/* Fills `out` with those, and returns how many there are. */
HKP_API size_t hkp_kinds_mixed(hkp_mixed out[HKP_KINDS]);

#endif
