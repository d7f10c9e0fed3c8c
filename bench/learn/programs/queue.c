/* Two threads make messages, two free them: a queue between threads, with bursts. argv[1]: rounds. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 20000, PAIRS = 2 };
static void *messages[PAIRS][MESSAGES];

static void *make(void *at)
{
    void **to = at;
    for (int i = 0; i < MESSAGES; i++) {
        size_t n = 64 + (size_t)(i * 37 % 3000);
        to[i] = malloc(n);
        memset(to[i], 1, n);
    }
    return NULL;
}

static void *end(void *at)
{
    void **from = at;
    for (int i = 0; i < MESSAGES; i++)
        free(from[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 60;
    for (int round = 0; round < rounds; round++) {
        const struct timespec pause = {0, 200000000};
        pthread_t threads[PAIRS];
        for (int step = 0; step < 2; step++) {
            for (int i = 0; i < PAIRS; i++)
                pthread_create(&threads[i], NULL, step ? end : make, messages[i]);
            for (int i = 0; i < PAIRS; i++)
                pthread_join(threads[i], NULL);
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}
