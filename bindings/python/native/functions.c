#define _GNU_SOURCE
#include "native/functions.h"

#include "base/map.h"
#include "cfi.h"

#ifdef HKC_CFI_WALK

#include <sys/mman.h>

void hkp_functions_open(hkp_functions *f, uintptr_t pc)
{
    *f = (hkp_functions){0};
    size_t count = hkc_cfi_functions(pc, NULL, 0), room = count * sizeof *f->starts;
    uintptr_t *starts = count > 0 ? hkp_pages(room) : NULL;
    if (!starts) return;
    hkc_cfi_functions(pc, starts, count);
    size_t near_count = (starts[count - 1] - starts[0]) / HKP_FUNCTIONS_NEAR + 1;
    uint32_t *near = hkp_pages(near_count * sizeof *near);
    if (!near) {
        munmap(starts, room);
        return;
    }
    for (size_t i = 0, k = 0; i < near_count; i++) {
        while (starts[k] - starts[0] < i * HKP_FUNCTIONS_NEAR)
            k++;
        near[i] = (uint32_t)k;
    }
    *f = (hkp_functions){starts, count, near, near_count};
}

void hkp_functions_close(hkp_functions *f)
{
    if (f->count == 0) return;
    munmap(f->starts, f->count * sizeof *f->starts);
    munmap(f->near, f->near_count * sizeof *f->near);
    *f = (hkp_functions){0};
}

#endif
