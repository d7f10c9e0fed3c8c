#define _GNU_SOURCE
#include "seldom.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { NATIVE, SITE, SELDOM, PARTS, PAGE = 4096 };
enum { CODE, CONSTANTS, KINDS };

typedef struct pages {
    uintptr_t from, to;
} pages;

/* Its code and its constants; none until mappings are parted. */
static pages seldom[KINDS];

static pages leave(uintptr_t from, uintptr_t to)
{
    pages p = {(from + PAGE - 1) & ~(uintptr_t)(PAGE - 1), (to + PAGE - 1) & ~(uintptr_t)(PAGE - 1)};
    if (p.from < p.to) madvise((void *)p.from, p.to - p.from, MADV_DONTNEED);
    return p;
}

/* That advice differs is what parts mappings. */
static pages part_off(uintptr_t from, uintptr_t to, int advice)
{
    pages p = leave(from, to);
    if (p.from < p.to) madvise((void *)p.from, p.to - p.from, advice);
    return p;
}

static int part_in(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    const uintptr_t starts[KINDS][PARTS] = {
        {(uintptr_t)hk_py_native_code, (uintptr_t)hk_py_site_code, (uintptr_t)hk_py_seldom_code},
        {(uintptr_t)hk_py_native_constants, (uintptr_t)hk_py_site_constants,
         (uintptr_t)hk_py_seldom_constants}};
    int found = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        for (int k = CODE; k < KINDS; k++) {
            const uintptr_t *at = starts[k];
            if (ph->p_type != PT_LOAD || ph->p_flags & PF_W || at[NATIVE] - low >= ph->p_memsz) continue;
            part_off(at[NATIVE], at[SITE], MADV_RANDOM);
            pages site = part_off(at[SITE], at[SELDOM], MADV_SEQUENTIAL);
            seldom[k] = part_off(at[SELDOM], low + ph->p_memsz, MADV_RANDOM);
            /* Constants of lines end before its first page: behind them is what a new heap reads. */
            if (k == CONSTANTS) seldom[k].from = site.from;
            found = 1;
        }
    }
    return found;
}

void hk_py_seldom_part(void)
{
    dl_iterate_phdr(part_in, NULL);
}

void hk_py_seldom_leave(void)
{
    for (int k = CODE; k < KINDS; k++)
        leave(seldom[k].from, seldom[k].to);
}

int hk_py_seldom_call(void *fn)
{
    int result = ((const hk_py_seldom_fn *)fn)->call();
    hk_py_seldom_leave();
    return result;
}
