#define _GNU_SOURCE
#include "base/cold.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { NATIVE, LINES, COLD, SECTIONS, PAGE = 4096 };
enum { CODE, CONSTANTS, KINDS };

typedef struct pages {
    uintptr_t from, to;
} pages;

/* Its code and its constants; none until mappings are parted. */
static pages cold[KINDS];

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
    const uintptr_t starts[KINDS][SECTIONS] = {
        {(uintptr_t)hkp_native_code, (uintptr_t)hkp_lines_code, (uintptr_t)hkp_cold_code},
        {(uintptr_t)hkp_native_constants, (uintptr_t)hkp_lines_constants, (uintptr_t)hkp_cold_constants}};
    int found = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        for (int k = CODE; k < KINDS; k++) {
            const uintptr_t *at = starts[k];
            if (ph->p_type != PT_LOAD || ph->p_flags & PF_W || at[NATIVE] - low >= ph->p_memsz) continue;
            const pages native = part_off(at[NATIVE], at[LINES], MADV_RANDOM);
            part_off(at[LINES], at[COLD], MADV_SEQUENTIAL);
            cold[k] = part_off(at[COLD], low + ph->p_memsz, MADV_RANDOM);
            /* Those of native labels and of lines are few, and may share a page with what a new heap reads, which
             * is behind them. */
            if (k == CONSTANTS) cold[k].from = native.from;
            found = 1;
        }
    }
    return found;
}

void hkp_sections_part(void)
{
    dl_iterate_phdr(part_in, NULL);
}

void hkp_cold_leave(void)
{
    for (int k = CODE; k < KINDS; k++)
        leave(cold[k].from, cold[k].to);
}

int hkp_cold_call(void *fn)
{
    int result = ((const hkp_cold_fn *)fn)->call();
    hkp_cold_leave();
    return result;
}
