/* measure FILE command [arguments]: runs the command and writes what it used to FILE, as JSON.
 *
 * A parent of its own because the kernel counts the memory of the process that calls exec into the peak
 * of the new program: under a Python parent no figure would be below 10 MB. This one has about 1 MB. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: measure FILE command [arguments]\n");
        return 2;
    }
    double start = now();
    pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "measure: fork: %s\n", strerror(errno));
        return 126;
    }
    if (child == 0) {
        execvp(argv[2], argv + 2);
        fprintf(stderr, "measure: %s: %s\n", argv[2], strerror(errno));
        _exit(127);
    }
    int status;
    struct rusage use;
    while (wait4(child, &status, 0, &use) < 0) {
        if (errno != EINTR) {
            fprintf(stderr, "measure: wait4: %s\n", strerror(errno));
            return 126;
        }
    }
    double wall = now() - start;
    FILE *f = fopen(argv[1], "w");
    if (!f) {
        fprintf(stderr, "measure: %s: %s\n", argv[1], strerror(errno));
        return 126;
    }
    fprintf(f, "{\"user_s\": %.6f, \"sys_s\": %.6f, \"wall_s\": %.6f, \"peak_kb\": %ld, \"faults\": %ld}\n",
            seconds(use.ru_utime), seconds(use.ru_stime), wall, use.ru_maxrss, use.ru_minflt);
    if (fclose(f) != 0) {
        fprintf(stderr, "measure: %s: %s\n", argv[1], strerror(errno));
        return 126;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
