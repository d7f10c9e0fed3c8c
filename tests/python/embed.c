/* A program that runs Python three times in one process ("cycles"), or once with CPython's debug hooks on top
 * ("debug"); in each run blocks must come from hakmem. Arguments: the path of the preloaded hook, which. */
#include <Python.h>

#include <dlfcn.h>
#include <stdbool.h>
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

int main(int argc, char **argv)
{
    void *hook = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *owns_address = hook ? dlsym(hook, "hk_py_owns") : NULL;
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
