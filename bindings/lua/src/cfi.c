#define _GNU_SOURCE
#include "cfi.h"

#ifdef HK_CFI_WALK

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>

enum { DWARF_RBP = 6, DWARF_RSP = 7, DWARF_RA = 16 };
enum { MAX_CFA_OFFSET = 2040, MAX_FP_SLOT = 31 };

typedef struct image {
    uintptr_t low, high; /* [low, high) */
    uintptr_t bias;      /* address = address in the file + bias */
    const char *path;
} image;

/* The image that was read last stays open: calibration asks for thousands of rules of one image. */
static struct {
    image img;
    int fd;
    Elf *elf;
    Dwarf_CFI *cfi;
} opened = {.fd = -1};

static int match_image(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    image *img = user;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD || (ph->p_flags & PF_X) == 0)
            continue;
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        if (img->low < low || img->low >= low + ph->p_memsz)
            continue;
        img->low = low;
        img->high = low + ph->p_memsz;
        img->bias = info->dlpi_addr;
        img->path = info->dlpi_name != NULL && info->dlpi_name[0] != 0 ? info->dlpi_name : "/proc/self/exe";
        return 1;
    }
    return 0;
}

static bool find_image(uintptr_t pc, image *img) {
    img->low = pc;
    return dl_iterate_phdr(match_image, img) == 1;
}

bool hk_cfi_in_image(uintptr_t pc) {
    image img;
    return find_image(pc, &img);
}

uintptr_t hk_cfi_function(uintptr_t pc) {
    return (uintptr_t)_Unwind_FindEnclosingFunction((void *)pc);
}

void hk_cfi_close(void) {
    if (opened.cfi != NULL)
        dwarf_cfi_end(opened.cfi);
    if (opened.elf != NULL)
        elf_end(opened.elf);
    if (opened.fd >= 0)
        close(opened.fd);
    opened.cfi = NULL;
    opened.elf = NULL;
    opened.fd = -1;
    opened.img = (image){0};
}

static bool open_image(uintptr_t pc) {
    if (pc >= opened.img.low && pc < opened.img.high)
        return opened.cfi != NULL;
    image img;
    if (!find_image(pc, &img))
        return false;
    hk_cfi_close();
    opened.img = img;
    if (elf_version(EV_CURRENT) == EV_NONE)
        return false;
    opened.fd = open(img.path, O_RDONLY | O_CLOEXEC);
    if (opened.fd >= 0)
        opened.elf = elf_begin(opened.fd, ELF_C_READ_MMAP, NULL);
    if (opened.elf != NULL)
        opened.cfi = dwarf_getcfi_elf(opened.elf);
    return opened.cfi != NULL;
}

static bool read_cfa(Dwarf_Frame *frame, hk_cfi_rule *rule) {
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count != 1 || ops[0].atom != DW_OP_bregx)
        return false;
    if (ops[0].number != DWARF_RSP && ops[0].number != DWARF_RBP)
        return false;
    if (ops[0].number2 > MAX_CFA_OFFSET || ops[0].number2 % 8 != 0)
        return false;
    rule->cfa_from_fp = ops[0].number == DWARF_RBP;
    rule->cfa_offset = (uint16_t)ops[0].number2;
    return true;
}

/* Where the caller's register is: `below` bytes under the CFA, 0 = still in the register. */
static bool read_saved(Dwarf_Frame *frame, int reg, size_t *below) {
    Dwarf_Op mem[3];
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_register(frame, reg, mem, &ops, &count) != 0)
        return false;
    if (count == 0) {
        *below = 0;
        return ops == NULL;
    }
    if (count != 2 || ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_plus_uconst)
        return false;
    *below = (size_t)0 - (size_t)ops[1].number;
    return true;
}

bool hk_cfi_rule_at(uintptr_t pc, hk_cfi_rule *rule) {
    Dwarf_Frame *frame;
    /* pc may already belong to the next function when the call is the last instruction of its own. */
    if (!open_image(pc) || dwarf_cfi_addrframe(opened.cfi, pc - 1 - opened.img.bias, &frame) != 0)
        return false;
    size_t ra, fp;
    bool ok = read_cfa(frame, rule) && read_saved(frame, DWARF_RA, &ra) && ra == 8 &&
              read_saved(frame, DWARF_RBP, &fp) && fp % 8 == 0 && fp / 8 <= MAX_FP_SLOT;
    if (ok)
        rule->fp_slot = (uint8_t)(fp / 8);
    free(frame);
    return ok;
}

#endif
