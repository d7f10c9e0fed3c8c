#define _GNU_SOURCE
#include "seldom.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

static void leave(uintptr_t from, uintptr_t to)
{
    enum { PAGE = 4096 };
    from = (from + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    if (from >= to) return;
    madvise((void *)from, to - from, MADV_RANDOM); /* that it differs is what parts the mappings */
    madvise((void *)from, to - from, MADV_DONTNEED);
}

static int leave_in(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    const uintptr_t starts[] = {(uintptr_t)hk_py_seldom_code, (uintptr_t)hk_py_seldom_constants};
    int found = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        for (int k = 0; k < 2; k++) {
            if (ph->p_type != PT_LOAD || ph->p_flags & PF_W || starts[k] - low >= ph->p_memsz) continue;
            leave(starts[k], low + ph->p_memsz);
            found = 1;
        }
    }
    return found;
}

void hk_py_seldom_leave(void)
{
    dl_iterate_phdr(leave_in, NULL);
}

int hk_py_seldom_call(void *fn)
{
    int result = ((const hk_py_seldom_fn *)fn)->call();
    hk_py_seldom_leave();
    return result;
}
