/* helper WHAT: what the shim has to bear, in a C program of its own. Prints what it saw; 2 = unknown WHAT. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* The module lies in the program's own search path (RUNPATH), which is that of the caller of dlopen. */
static int deep(void)
{
    void *module = dlopen("libpreload_deep.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (module == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    char *(*exchange)(char *) = (char *(*)(char *))(uintptr_t)dlsym(module, "deep_exchange");
    for (int i = 0; i < 100; i++) {
        char *text = malloc(5000);
        strcpy(text, "exchanged");
        text = exchange(text);
        if (i == 99) puts(text);
        free(text);
    }
    return 0;
}

static atomic_bool over;

static void *flush_all(void *unused)
{
    while (!atomic_load(&over))
        fflush(NULL);
    return unused;
}

/* A stream whose flush allocates: it runs with libc's lock of all streams held. */
static ssize_t write_slowly(void *cookie, const char *text, size_t n)
{
    (void)cookie;
    void *p[20];
    for (int i = 0; i < 20; i++)
        p[i] = malloc(n * 40 + 64 * (size_t)i);
    for (int i = 0; i < 20; i++)
        free(p[i]);
    return (ssize_t)n + 0 * text[0];
}

static void *print_all(void *stream)
{
    while (!atomic_load(&over))
        fputs("text", stream);
    return NULL;
}

static int fork_beside_flush(void)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_slowly});
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, flush_all, NULL);
    pthread_create(&threads[1], NULL, print_all, stream);
    int bad = 0;
    for (int i = 0; i < 2000; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100000));
            fflush(NULL);
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    atomic_store(&over, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%d bad\n", bad);
    return 0;
}

static volatile sig_atomic_t forks, bad_forks;

static void on_alarm(int signal_number)
{
    (void)signal_number;
    pid_t child = fork();
    if (child == 0) _exit(0);
    int status = -1;
    waitpid(child, &status, 0);
    bad_forks += status != 0;
    forks++;
}

/* In one thread, in the middle of malloc and free. */
static int fork_in_handler(void)
{
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 500}, {0, 500}}, NULL);
    void *held[512] = {0};
    for (unsigned i = 0; forks < 1000; i++) {
        unsigned at = i * 2654435761u >> 23;
        free(held[at]);
        held[at] = malloc(at % 7 == 0 ? 70000 : at * 9);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    printf("%d bad\n", (int)bad_forks);
    return 0;
}

/* Each is an error of the program; volatile, or else the compiler sees it. */
static void *volatile block;

static int misuse(const char *kind)
{
    static char here[64];
    setvbuf(stdout, NULL, _IONBF, 0);
    size_t size = strstr(kind, "big") ? 3 << 20 : strstr(kind, "middle") ? 100000 : 100;
    block = malloc(size);
    if (strncmp(kind, "double", 6) == 0) {
        free(block);
        free(block);
    } else if (strncmp(kind, "inside", 6) == 0) {
        free((char *)block + 16);
    } else if (strncmp(kind, "static", 6) == 0) {
        block = here;
        free((char *)block + 32);
    } else if (strncmp(kind, "realloc", 7) == 0) {
        free(block);
        block = realloc(block, size + 1);
        puts(block ? "resized" : "NULL");
    } else if (strncmp(kind, "many", 4) == 0) {
        for (int i = 0; i < 1000; i++)
            free((char *)block + 16);
    } else if (strncmp(kind, "none", 4) != 0) {
        return 2;
    }
    puts("went on");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "deep") == 0) return deep();
    if (strcmp(what, "fork-beside-flush") == 0) return fork_beside_flush();
    if (strcmp(what, "fork-in-handler") == 0) return fork_in_handler();
    if (strcmp(what, "misuse") == 0 && argc > 2) return misuse(argv[2]);
    return 2;
}
