/* Teaches label_site the allocation sites of the runtime: runs operations whose blocks are known by kind
 * in a scratch state and watches where they allocate. */
#ifndef HKL_CALIBRATE_H
#define HKL_CALIBRATE_H

#include <stdbool.h>

/* Once per process; later calls return at once. false = no memory. */
bool hkl_calibrate(void);

#endif
