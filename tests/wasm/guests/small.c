/* A guest of 192 KiB whose request touches about ten pages of 4 KiB. Imports nothing. */
#include <stdint.h>
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(#name))) name

static unsigned char table[16 * 1024];
static uint32_t requests;

void EXPORT(init)(void)
{
    for (unsigned i = 0; i < sizeof table; i++)
        table[i] = (unsigned char)(i * 7 + 1);
}

/* The answer depends on the seed and on how many requests the memory has seen. */
uint32_t EXPORT(handle)(uint32_t seed)
{
    uint32_t sum = ++requests * 1000003u;
    unsigned char *block[12];
    for (unsigned i = 0; i < 12; i++) {
        block[i] = malloc(1500);
        if (!block[i]) return 0;
        for (unsigned j = 0; j < 1500; j += 50)
            block[i][j] = (unsigned char)(seed + i * j);
    }
    for (unsigned i = 0; i < sizeof table; i += 512)
        sum = sum * 31 + (table[i] += (unsigned char)seed);
    for (unsigned i = 0; i < 12; i++) {
        sum = sum * 31 + block[i][i * 50];
        if (i & 1) free(block[i]);
    }
    return sum;
}

int32_t EXPORT(grow)(int32_t pages)
{
    return (int32_t)__builtin_wasm_memory_grow(0, (unsigned long)pages);
}

int32_t EXPORT(pages)(void)
{
    return (int32_t)__builtin_wasm_memory_size(0);
}

uint32_t EXPORT(load)(uint32_t at)
{
    return *(volatile unsigned char *)(uintptr_t)at;
}

void EXPORT(store)(uint32_t at, uint32_t value)
{
    *(volatile unsigned char *)(uintptr_t)at = (unsigned char)value;
}

/* Allocates until there is nothing left; returns how many KiB it got. */
uint32_t EXPORT(hog)(void)
{
    uint32_t n = 0;
    for (volatile char *p; (p = malloc(64 * 1024)); n += 64)
        *p = 1;
    return n;
}

/* Changes the memory and the stack pointer, then traps below a few frames. */
__attribute__((noinline)) static int fall(volatile int *depth)
{
    volatile int here[64];
    here[*depth & 63] = (*depth)--;
    if (*depth <= 0) __builtin_trap();
    return fall(depth) + here[0];
}

int EXPORT(trap)(void)
{
    volatile int depth = 5;
    requests += 77;
    return fall(&depth);
}

/* A stack of frames without end. */
int EXPORT(recurse)(int n)
{
    volatile int here = n;
    return recurse(n + 1) + here;
}

void EXPORT(nothing)(void)
{
}
