/* Putting the hooks in, and telling whether they are still there. */
#ifndef HK_PY_INSTALL_H
#define HK_PY_INSTALL_H

#include "python.h"

typedef enum hk_py_state {
    HK_PY_DEFAULT,  /* never ours */
    HK_PY_REPLACED, /* blocks come from the context */
    HK_PY_WRAPPED,  /* blocks come from the allocator that was there; calls are counted */
    HK_PY_COVERED,  /* somebody installed a hook since, that still passes on to ours */
    HK_PY_DISPLACED /* ours before, and somebody put another allocator in its place */
} hk_py_state;

typedef enum hk_py_mode {
    HK_PY_REPLACE, /* or refuse */
    HK_PY_WRAP,    /* in all domains */
    HK_PY_AUTO     /* replace where that is allowed, else wrap */
} hk_py_mode;

typedef struct hk_py_status {
    hk_py_state state[HK_PY_DOMAINS];
    bool installed; /* an installation succeeded */
    bool early;     /* and it came before Py_Initialize */
    bool all;       /* RAW, MEM and OBJ, not only RAW and arenas */
    const char *labels;
    /* Where the allocator on top of ours or in place of ours lies, "file: symbol"; "" = ours is on top. */
    char holder[HK_PY_DOMAINS][80];
    char why[240]; /* of the last refusal or restriction; "" */
} hk_py_status;

/* all: RAW, MEM and OBJ; else RAW and arenas. labels: the name of a provider; what is installed once keeps
 * its provider. 0 = installed; -1 = refused, and the status says why. May be called again. A program that
 * initializes Python anew must: CPython 3.12 and later put their own allocators back, so between
 * Py_PreInitialize and Py_InitializeFromConfig. */
HK_PY_API int hk_py_install(bool all, hk_py_mode mode, const char *labels);
/* The same for programs that embed Python and find it by dlsym: replaces, without labels. */
HK_PY_API int hakmem_python_install(bool all);
/* gil: it is held, or Python is not initialized. Then a block is allocated where another hook is on top of
 * ours, to see where it comes from; else such a domain counts as displaced. */
HK_PY_API void hk_py_status_get(hk_py_status *status, bool gil);

#endif
