#define _GNU_SOURCE
#include "heap/libc.h"

#include "base/core.h"

#include <dlfcn.h>
#include <string.h>

static void (*next_free)(void *p);
static void *(*next_realloc)(void *p, size_t n);
static size_t (*next_usable_size)(void *p);

/* dlsym begins by freeing the text of the last error. volatile: the compiler takes dlsym for a leaf. */
static _Thread_local volatile bool finding;

/* Each thread that comes here finds the same. */
static __attribute__((noinline, cold)) void find(const char *name, void *function)
{
    finding = true;
    void *address = dlsym(RTLD_NEXT, name);
    finding = false;
    memcpy(function, &address, sizeof address);
}

void hkp_libc_free(void *p)
{
    if (HKP_UNLIKELY(!next_free)) {
        if (finding) return; /* that text is lost */
        find("free", &next_free);
    }
    next_free(p);
}

void *hkp_libc_realloc(void *p, size_t n)
{
    if (HKP_UNLIKELY(!next_realloc)) find("realloc", &next_realloc);
    return next_realloc(p, n);
}

size_t hkp_libc_usable_size(void *p)
{
    if (HKP_UNLIKELY(!next_usable_size)) find("malloc_usable_size", &next_usable_size);
    return next_usable_size(p);
}
