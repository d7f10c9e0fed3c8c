/* A program that runs Python three times in one process ("cycles"), or once with CPython's debug hooks on top
 * ("debug"); in each run blocks must come from hakmem. Or it forks beside threads that
 * allocate while libc's lock of all streams is held ("fork-beside-flush"), or in a signal handler, in the
 * middle of allocations of its only thread ("fork-in-handler"). Or each further argument is the program of a
 * Python of its own, and when they are gone memory is taken ("lives"). Arguments: the path of the preloaded
 * hook, which. */
#define _GNU_SOURCE
#include <Python.h>

#include "forks.h"

#include <dlfcn.h>
#include <locale.h>
#include <string.h>

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

static int live(int count, char **programs)
{
    enum { BLOCK = 8 << 20, BLOCKS = 30 };
    int failed = 0;
    for (int i = 0; i < count; i++) {
        Py_Initialize();
        failed |= PyRun_SimpleString(programs[i]) != 0;
        failed |= Py_FinalizeEx() < 0;
        setlocale(LC_CTYPE, NULL); /* as a program does that goes on without Python */
    }
    for (int i = 0; i < BLOCKS; i++) {
        char *p = malloc(BLOCK);
        if (p) memset(p, 1, BLOCK);
    }
    puts("over");
    return failed;
}

int main(int argc, char **argv)
{
    void *hook = argc >= 3 ? dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) : NULL;
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
        const forks_allocator raw = {PyMem_RawMalloc, PyMem_RawFree};
        bool in_handler = strcmp(argv[2], "fork-in-handler") == 0;
        int bad = in_handler ? fork_in_handler(raw, 300, 2000) : fork_beside_flush(raw, 300);
        printf("%d bad\n", bad);
        return 0;
    }
    if (strcmp(argv[2], "lives") == 0) return live(argc - 3, argv + 3);
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
