/* A cache of 40,000 entries whose sizes drift: each miss frees the oldest entry and makes a new one. argv[1]:
 * thousands of misses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    enum { ENTRIES = 40000 };
    static void *entries[ENTRIES];
    const long misses = 1000L * (argc > 1 ? atoi(argv[1]) : 6000);
    uint64_t state = 3;
    for (long i = 0; i < misses; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const size_t drift = 200 + (size_t)(i / 100000 * 37 % 1800);
        const size_t size = drift + (size_t)(state >> 33) % 400;
        free(entries[i % ENTRIES]);
        entries[i % ENTRIES] = malloc(size);
        memset(entries[i % ENTRIES], 1, size);
    }
    for (int i = 0; i < ENTRIES; i++)
        free(entries[i]);
    return 0;
}
