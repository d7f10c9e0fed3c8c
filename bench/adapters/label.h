/* 12 labels, chosen pseudo-randomly from the size: harsher than an interpreter with its constants. */
#ifndef BENCH_LABEL_H
#define BENCH_LABEL_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_LABELS = 12 };

static inline unsigned label_index(size_t n)
{
    return (unsigned)(((uint64_t)((uint32_t)n * 0x9E3779B1u) * BENCH_LABELS) >> 32);
}

#endif
