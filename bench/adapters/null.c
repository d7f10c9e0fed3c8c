#include "null.h"

_Alignas(RING_SMALL) char null_ring_small[RINGS][RING_SMALL];
char null_ring_big[RING_BIG];
_Thread_local uintptr_t null_at_small;
