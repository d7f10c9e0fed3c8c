#include "base/cpython.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static hkp_python python;
static atomic_bool found;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void *hkp_symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* POSIX lets a function's address travel as void *, ISO C does not: hence the copy. */
bool hkp_function(const char *name, void *function)
{
    void *address = hkp_symbol(name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* "3.11.7 (main, ...)": as 0x030b. */
static int version_of(const char *text)
{
    char *end;
    long major = strtol(text, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return (int)(major << 8 | minor);
}

static bool look(void)
{
    if (!(hkp_function("PyMem_GetAllocator", &python.get_allocator) &&
          hkp_function("PyMem_SetAllocator", &python.set_allocator) &&
          hkp_function("PyObject_GetArenaAllocator", &python.get_arena_allocator) &&
          hkp_function("PyObject_SetArenaAllocator", &python.set_arena_allocator) &&
          hkp_function("PyObject_Malloc", &python.object_malloc) &&
          hkp_function("Py_IsInitialized", &python.is_initialized) &&
          hkp_function("Py_GetVersion", &python.get_version) &&
          hkp_function("Py_AddPendingCall", &python.add_pending_call)))
        return false;
    const char *text = python.get_version();
    python.version = version_of(text);
    python.free_threading = strstr(text, "free-threading") != NULL;
    return python.version >= 0x030a;
}

const hkp_python *hkp_python_find(void)
{
    if (found) return &python;
    pthread_mutex_lock(&mutex);
    found = found || look();
    pthread_mutex_unlock(&mutex);
    return found ? &python : NULL;
}
