/* A program that runs Python three times in one process ("cycles"), or once with CPython's debug hooks on top
 * ("debug"); in each run blocks must come from hakmem. Or it forks beside threads that
 * allocate while libc's lock of all streams is held ("fork-beside-flush"), or in a signal handler, in the
 * middle of allocations of its only thread ("fork-in-handler"). Arguments: the path of the preloaded hook,
 * which. */
#define _GNU_SOURCE
#include <Python.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static bool (*owns)(const void *);
static int (*install)(bool all);

static int run(const char *name)
{
    Py_Initialize();
    int failed = PyRun_SimpleString("import json, re, collections\n"
                                    "x = [{'a': i, 'b': str(i)} for i in range(20000)]\n"
                                    "assert json.loads(json.dumps(x)) == x\n");
    void *obj = PyObject_Malloc(100), *mem = PyMem_Malloc(100), *raw = PyMem_RawMalloc(100);
    bool ours = owns(obj) && owns(mem) && owns(raw);
    PyObject_Free(obj);
    PyMem_Free(mem);
    PyMem_RawFree(raw);
    failed |= Py_FinalizeEx() < 0;
    printf("%s: %s\n", name, ours ? "ours" : "not ours");
    return failed || !ours;
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
        p[i] = PyMem_RawMalloc(n * 40 + 64 * (size_t)i);
    for (int i = 0; i < 20; i++)
        PyMem_RawFree(p[i]);
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
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        if (child == 0) {
            PyMem_RawFree(PyMem_RawMalloc(100000));
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
    return bad;
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

static int fork_in_handler(void)
{
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 2000}, {0, 2000}}, NULL);
    void *held[512] = {0};
    for (unsigned i = 0; forks < 300; i++) {
        unsigned at = i * 2654435761u >> 23;
        PyMem_RawFree(held[at]);
        held[at] = PyMem_RawMalloc(at % 7 == 0 ? 70000 : at * 9);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    return (int)bad_forks;
}

int main(int argc, char **argv)
{
    void *hook = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *owns_address = hook ? dlsym(hook, "hkp_owns") : NULL;
    void *install_address = hook ? dlsym(hook, "hakmem_python_install") : NULL;
    if (!owns_address || !install_address) {
        fprintf(stderr, "the hook is not loaded\n");
        return 2;
    }
    memcpy(&owns, &owns_address, sizeof owns);
    memcpy(&install, &install_address, sizeof install);
    if (strcmp(argv[2], "debug") == 0) {
        int failed = install(true) != 0;
        PyMem_SetupDebugHooks();
        return failed | run("debug hooks on top");
    }
    if (strncmp(argv[2], "fork-", 5) == 0) {
        if (install(true) != 0) return 2;
        Py_Initialize();
        int bad = strcmp(argv[2], "fork-in-handler") == 0 ? fork_in_handler() : fork_beside_flush();
        printf("%d bad\n", bad);
        return 0;
    }
    int failed = 0;
    for (int i = 1; i <= 3; i++) {
        char name[20];
        snprintf(name, sizeof name, "cycle %d", i);
        /* CPython 3.12 and later forget the allocators with each Py_Finalize, and set them up here again. */
        PyPreConfig config;
        PyPreConfig_InitPythonConfig(&config);
        failed |= PyStatus_Exception(Py_PreInitialize(&config)) || install(true) != 0;
        failed |= run(name);
    }
    return failed;
}
