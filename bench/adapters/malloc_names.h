/* What the allocators that go by the plain malloc names have in common. */
#ifndef BENCH_ADAPTER_MALLOC_NAMES_H
#define BENCH_ADAPTER_MALLOC_NAMES_H

#include <stdlib.h>

#define BA_MALLOC malloc
#define BA_FREE free
#define BA_REALLOC realloc
#include "calls.h"
#include "no_setup.h"

#endif
