/* A library that is initialized before the shim: allocates, and frees again at the end. */
#include <stdlib.h>
#include <string.h>

static void *blocks[500];

__attribute__((constructor(101))) static void begin(void)
{
    for (size_t i = 0; i < 500; i++) {
        blocks[i] = i % 2 ? malloc(i * 40) : calloc(i + 1, 16);
        if (blocks[i] == NULL) abort();
    }
    for (size_t i = 0; i < 500; i += 3) {
        free(blocks[i]);
        blocks[i] = realloc(NULL, 64);
    }
}

__attribute__((destructor(101))) static void end(void)
{
    for (size_t i = 0; i < 500; i++)
        free(blocks[i]);
}
