/* A server that waits: bursts of requests, each with some small blocks and a body, at a few percent of a CPU.
 * Now and then a batch keeps some tens of MB for a moment. argv[1]: seconds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state = 7;

static size_t below(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(state >> 33) % n;
}

static void request(void)
{
    enum { BLOCKS = 200 };
    void *blocks[BLOCKS];
    size_t body = 16384 + below(400000);
    char *text = malloc(body);
    memset(text, 1, body);
    for (int i = 0; i < BLOCKS; i++) {
        size_t n = 16 + below(900);
        blocks[i] = malloc(n);
        memset(blocks[i], 2, n);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    free(text);
}

static void batch(void)
{
    enum { PARTS = 600 };
    static void *parts[PARTS];
    for (int i = 0; i < PARTS; i++) {
        size_t n = 20000 + below(120000);
        parts[i] = malloc(n);
        memset(parts[i], 3, n);
    }
    for (int i = 0; i < PARTS; i++)
        free(parts[i]);
}

int main(int argc, char **argv)
{
    const int steps = 50 * (argc > 1 ? atoi(argv[1]) : 20);
    for (int i = 0; i < steps; i++) {
        const struct timespec pause = {0, 20000000};
        for (int k = 0; k < 5; k++)
            request();
        if (i % 150 == 149) batch();
        nanosleep(&pause, NULL);
    }
    return 0;
}
