/* A server that sleeps for seconds and is then asked much at once: sessions of some kilobytes that all come, stay
 * for the burst and go, but for one in fifty, which stays until the next. argv[1]: bursts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SESSIONS = 4000, PARTS = 12, STAYS = 50 };

static uint64_t state = 3;

static size_t below(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(state >> 33) % n;
}

static void *parts[SESSIONS][PARTS];

static void end(int session)
{
    for (int i = 0; i < PARTS; i++) {
        free(parts[session][i]);
        parts[session][i] = NULL;
    }
}

int main(int argc, char **argv)
{
    const int bursts = argc > 1 ? atoi(argv[1]) : 6;
    for (int burst = 0; burst < bursts; burst++) {
        const struct timespec idle = {2, 0};
        for (int s = 0; s < SESSIONS; s++) {
            end(s);
            for (int i = 0; i < PARTS; i++) {
                const size_t n = i == 0 ? 2000 + below(6000) : 24 + below(500);
                parts[s][i] = malloc(n);
                memset(parts[s][i], 1, n);
            }
        }
        for (int s = 0; s < SESSIONS; s++)
            if ((s + burst) % STAYS != 0) end(s);
        nanosleep(&idle, NULL);
    }
    return 0;
}
