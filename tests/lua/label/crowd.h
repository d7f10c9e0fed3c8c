/* Collisions in the table of return addresses. */
#ifndef TEST_CROWD_H
#define TEST_CROWD_H

#include <stddef.h>

/* Puts addresses that nobody returns to into each step-th slot, as trace memory: what was there is thrown
 * out, and what comes back is far from its home. */
void test_crowd_sites(size_t step);

#endif
