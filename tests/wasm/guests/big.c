/* A guest with 16 MiB of heap whose request touches 31 pages of 4 KiB. Imports nothing. */
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(#name))) name

static unsigned char heap[16 << 20];

void EXPORT(init)(void)
{
    for (uint32_t i = 0; i < sizeof heap; i += 16)
        heap[i] = (unsigned char)(i >> 4) | 1;
}

uint32_t EXPORT(handle)(uint32_t seed)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 31; i++) {
        uint32_t at = (seed * 2654435761u + i * 540677u) % sizeof heap;
        sum = sum * 31 + heap[at]++;
    }
    return sum;
}
