#include "null.h"

char null_ring_small[RING_SMALL], null_ring_big[RING_BIG];
size_t null_at_small;
