/* helper main|thread: a helper is begun there and sleeps for ever; main leaves, and later the other thread.
 */
#include "common/helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sleep_for(long milliseconds)
{
    const struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void help(void)
{
    for (;;)
        sleep_for(1000000);
}

static void begin(void)
{
    pthread_t thread;
    if (hkc_helper_begin(help, 64 << 10, &thread) != 0) exit(1);
}

static void *work(void *begins)
{
    if (begins) begin();
    sleep_for(300);
    puts("works");
    return NULL;
}

static void at_exit(void)
{
    puts("ends");
}

int main(int argc, char **argv)
{
    const int in_main = argc > 1 && strcmp(argv[1], "main") == 0;
    pthread_t thread;
    atexit(at_exit);
    if (in_main) begin();
    if (pthread_create(&thread, NULL, work, in_main ? NULL : &thread) != 0) return 1;
    pthread_exit(NULL);
}
