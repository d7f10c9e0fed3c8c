/* tcmalloc of gperftools (libtcmalloc_minimal). */
#ifndef BENCH_ADAPTER_TCMALLOC_H
#define BENCH_ADAPTER_TCMALLOC_H

#include <gperftools/malloc_extension_c.h>
#include <gperftools/tcmalloc.h>

#define BA_MALLOC tc_malloc
#define BA_FREE tc_free
#define BA_REALLOC tc_realloc
#include "calls.h"
#include "no_setup.h"

#define BA_HAS_CTX 0
#define BA_HAS_BUFFER 0

static inline const char *ba_version(void)
{
    return TC_VERSION_STRING;
}
static inline void ba_trim(void)
{
    MallocExtension_MarkThreadIdle();
    MallocExtension_ReleaseFreeMemory();
    MallocExtension_MarkThreadBusy();
}

#endif
