/* Putting the hooks in, and telling whether they are still there.
 *
 *     base < heap < native, lines < profile < paths < hook < module
 *
 * hook/ has the life of the preloaded library in a process: installation, signals, reports, what runs
 * in the main thread. Only allocations that it wraps or that come to libc by mistake pass through it. */
#ifndef HKP_INSTALL_H
#define HKP_INSTALL_H

#include "base/cpython.h"
#include "profile/profile.h"

typedef enum hkp_state {
    HKP_DEFAULT,  /* never ours */
    HKP_REPLACED, /* blocks come from the context */
    HKP_WRAPPED,  /* blocks come from the allocator that was there; calls are counted */
    HKP_COVERED,  /* somebody installed a hook since, that still passes on to ours */
    HKP_DISPLACED /* ours before, and somebody put another allocator in its place */
} hkp_state;

typedef enum hkp_mode {
    HKP_REPLACE, /* or refuse */
    HKP_WRAP,    /* in all domains */
    HKP_AUTO     /* replace where that is allowed, else wrap */
} hkp_mode;

typedef struct hkp_status {
    hkp_state state[HKP_DOMAINS];
    bool installed; /* an installation succeeded */
    bool early;     /* and it came before Py_Initialize */
    bool all;       /* RAW, MEM and OBJ, not only RAW and arenas */
    const char *labels;
    /* Where the allocator on top of ours or in place of ours lies, "file: symbol"; "" = ours is on top. */
    char holder[HKP_DOMAINS][80];
    char why[240]; /* of the last refusal or restriction; "" */
} hkp_status;

/* all: RAW, MEM and OBJ; else RAW and arenas. labels: the name of a provider; what is installed once keeps
 * its provider. 0 = installed; -1 = refused, and the status says why. With the GIL held, or before there is a
 * Python that runs. May be called again: where hooks of others are on top of ours, that changes nothing. Who
 * initializes Python anew must, unless the hook was preloaded: CPython 3.12 and later put their own
 * allocators back, so between Py_PreInitialize and Py_InitializeFromConfig. */
HKP_API int hkp_install(bool all, hkp_mode mode, const char *labels);
/* Where blocks have labels: finds out whether these tell kinds of objects apart, and notes in the status
 * which they do not. With the GIL held. */
void hkp_install_try_kinds(void);
/* Objects from free lists are followed from now on, or no more, as labels and profile need it. With the GIL held. */
void hkp_install_follow(void);
/* hkp_profile_start and _stop, with hooks for it where ours are on top. With the GIL held, or before there is
 * a Python that runs. */
HKP_API const char *hkp_install_profile(const hkp_profile_options *options);
HKP_API int hkp_install_profile_stop(void);
/* The same as hkp_install for programs that embed Python and find it by dlsym: replaces, without labels. */
HKP_API int hakmem_python_install(bool all);
/* gil: it is held, or Python is not initialized. Then a block is allocated where another hook is on top of
 * ours, to see where it comes from; else such a domain counts as displaced. */
HKP_API void hkp_status_get(hkp_status *status, bool gil);

#endif
