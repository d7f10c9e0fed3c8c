/* operator new and delete, by their names in the ABI of C++ (Itanium, size_t = unsigned long). */
#define HKC_FUNCTION(name) name
#define HKC_TOKEN
#define HKC_PASS
#define HKC_NEW malloc
#include "common/malloc/new.h"

/* The real size and alignment are in the heap: what else is passed to delete is not needed. */
#define DELETE(name)                                                                                         \
    void name(void *p);                                                                                      \
    void name(void *p)                                                                                       \
    {                                                                                                        \
        free(p);                                                                                             \
    }
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
