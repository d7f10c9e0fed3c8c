#define _GNU_SOURCE
#include "functions.h"

#include "cfi.h"
#include "map.h"

#ifdef HK_CFI_WALK

#include <sys/mman.h>

void hk_py_functions_open(hk_py_functions *f, uintptr_t pc)
{
    *f = (hk_py_functions){0};
    size_t count = hk_cfi_functions(pc, NULL, 0), room = count * sizeof *f->starts;
    uintptr_t *starts = count > 0 ? hk_py_pages(room) : NULL;
    if (starts == NULL) return;
    hk_cfi_functions(pc, starts, count);
    size_t near_count = (starts[count - 1] - starts[0]) / HK_PY_FUNCTIONS_NEAR + 1;
    uint32_t *near = hk_py_pages(near_count * sizeof *near);
    if (near == NULL) {
        munmap(starts, room);
        return;
    }
    for (size_t i = 0, k = 0; i < near_count; i++) {
        while (starts[k] - starts[0] < i * HK_PY_FUNCTIONS_NEAR)
            k++;
        near[i] = (uint32_t)k;
    }
    *f = (hk_py_functions){starts, count, near, near_count};
}

void hk_py_functions_close(hk_py_functions *f)
{
    if (f->count == 0) return;
    munmap(f->starts, f->count * sizeof *f->starts);
    munmap(f->near, f->near_count * sizeof *f->near);
    *f = (hk_py_functions){0};
}

#endif
