#ifndef HKC_MALLOC_NO_MEMORY_H
#define HKC_MALLOC_NO_MEMORY_H

#include <errno.h>
#include <stddef.h>

/* Sets errno. Returns NULL. */
static __attribute__((cold, noinline)) void *hkc_no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

#endif
