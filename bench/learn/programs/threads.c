/* Many threads that live for a moment each, as those of a pool that shrinks and grows: each fills a table of its
 * own, and leaves a few blocks to the thread that waits for it. argv[1]: rounds. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 32, BLOCKS = 1500, LEFT = 20 };

static void *work(void *at)
{
    void *blocks[BLOCKS];
    unsigned seed = (unsigned)(size_t)at;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < BLOCKS; i++) {
            const size_t n = 16 + (seed = seed * 1103515245 + 12345) / 65536 % (i % 100 == 0 ? 20000 : 400);
            blocks[i] = malloc(n);
            memset(blocks[i], 1, n);
        }
        for (int i = turn == 2 ? LEFT : 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    void **left = malloc(LEFT * sizeof *left);
    memcpy(left, blocks, LEFT * sizeof *left);
    return left;
}

int main(int argc, char **argv)
{
    for (int round = argc > 1 ? atoi(argv[1]) : 40; round > 0; round--) {
        const struct timespec pause = {0, 50000000};
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, (void *)(i + 1));
        for (int i = 0; i < THREADS; i++) {
            void **left;
            pthread_join(threads[i], (void **)&left);
            for (int k = 0; k < LEFT; k++)
                free(left[k]);
            free(left);
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}
