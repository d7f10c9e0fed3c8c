/* A heap that rises to 120 MB and falls to nothing again and again, as a batch of work does. argv[1]: how often.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
    enum { BLOCKS = 2400, SIZE = 50000 };
    static void *blocks[BLOCKS];
    const int waves = argc > 1 ? atoi(argv[1]) : 20;
    for (int wave = 0; wave < waves; wave++) {
        const struct timespec pause = {0, 500000000};
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(SIZE);
            memset(blocks[i], wave, SIZE);
        }
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        nanosleep(&pause, NULL);
    }
    return 0;
}
