#define _GNU_SOURCE
#include "cfi.h"

#ifdef HK_CFI_WALK

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DWARF_RBP = 6, DWARF_RSP = 7, DWARF_RA = 16 };

/* libdw and the four libraries that it needs take 0.5 MB of every process that is linked with them, so it
 * is loaded for as long as rules are read. */
#define LIBDW_FUNCTIONS(X)                                                                                   \
    X(elf_version)                                                                                           \
    X(elf_begin)                                                                                             \
    X(elf_end)                                                                                               \
    X(dwarf_getcfi_elf)                                                                                      \
    X(dwarf_cfi_end)                                                                                         \
    X(dwarf_cfi_addrframe)                                                                                   \
    X(dwarf_frame_cfa)                                                                                       \
    X(dwarf_frame_register)

typedef struct image {
    uintptr_t low, high; /* code */
    uintptr_t bias;      /* address = address in the file + bias */
    const char *path;
    const uint8_t *index; /* .eh_frame_hdr; NULL = none */
} image;

#define DECLARE(f) __typeof__(&f) f;
static struct {
    void *library;
    LIBDW_FUNCTIONS(DECLARE)
    image img; /* the image that was read last stays open */
    int fd;
    Elf *elf;
    Dwarf_CFI *cfi;
} dw;
#undef DECLARE

static int match_image(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    image *img = user;
    bool found = false;
    const uint8_t *index = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_GNU_EH_FRAME) {
            index = (const uint8_t *)low;
        } else if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) != 0 && img->low - low < ph->p_memsz) {
            img->low = low;
            img->high = low + ph->p_memsz;
            found = true;
        }
    }
    if (!found)
        return 0;
    img->bias = info->dlpi_addr;
    img->path = info->dlpi_name != NULL && info->dlpi_name[0] != 0 ? info->dlpi_name : "/proc/self/exe";
    img->index = index;
    return 1;
}

static bool find_image(uintptr_t pc, image *img) {
    img->low = pc;
    return dl_iterate_phdr(match_image, img) == 1;
}

bool hk_cfi_in_image(uintptr_t pc) {
    image img;
    return find_image(pc, &img);
}

/* An entry of the index: where a function begins and its unwind data, from the index's address on. */
typedef struct index_entry {
    int32_t function, data;
} index_entry;

uintptr_t hk_cfi_function(uintptr_t pc) {
    /* version 1; pointer, count and entries in the encodings that all linkers use */
    static const uint8_t form[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
                                   DW_EH_PE_datarel | DW_EH_PE_sdata4};
    image img;
    if (!find_image(pc, &img) || img.index == NULL || memcmp(img.index, form, sizeof form) != 0)
        return 0;
    uint32_t count;
    memcpy(&count, img.index + 8, sizeof count);
    const index_entry *entries = (const index_entry *)(const void *)(img.index + 12);
    intptr_t at = (intptr_t)(pc - 1 - (uintptr_t)img.index); /* the call may be the last instruction */
    uint32_t low = 0;
    while (count > 0) {
        uint32_t half = count / 2;
        if (entries[low + half].function <= at) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low == 0 ? 0 : (uintptr_t)img.index + (uintptr_t)(intptr_t)entries[low - 1].function;
}

static void close_image(void) {
    if (dw.cfi != NULL)
        dw.dwarf_cfi_end(dw.cfi);
    if (dw.elf != NULL)
        dw.elf_end(dw.elf);
    if (dw.fd >= 0)
        close(dw.fd);
    dw.cfi = NULL;
    dw.elf = NULL;
    dw.fd = -1;
    dw.img = (image){0};
}

bool hk_cfi_open(void) {
    dw.fd = -1;
    dw.library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (dw.library == NULL)
        return false;
    bool all = true;
    /* ISO C has no conversion from void * to a function */
#define RESOLVE(f)                                                                                           \
    {                                                                                                        \
        void *address = dlsym(dw.library, #f);                                                               \
        memcpy(&dw.f, &address, sizeof address);                                                             \
        all = all && address != NULL;                                                                        \
    }
    LIBDW_FUNCTIONS(RESOLVE)
#undef RESOLVE
    if (all && dw.elf_version(EV_CURRENT) != EV_NONE)
        return true;
    hk_cfi_close();
    return false;
}

void hk_cfi_close(void) {
    close_image();
    dlclose(dw.library);
}

static bool open_image(uintptr_t pc) {
    if (pc - dw.img.low >= dw.img.high - dw.img.low) {
        close_image();
        if (!find_image(pc, &dw.img))
            return false;
        dw.fd = open(dw.img.path, O_RDONLY | O_CLOEXEC);
        if (dw.fd >= 0)
            dw.elf = dw.elf_begin(dw.fd, ELF_C_READ_MMAP, NULL);
        if (dw.elf != NULL)
            dw.cfi = dw.dwarf_getcfi_elf(dw.elf);
    }
    return dw.cfi != NULL;
}

static bool read_cfa(Dwarf_Frame *frame, hk_cfi_rule *rule) {
    Dwarf_Op *ops;
    size_t count;
    if (dw.dwarf_frame_cfa(frame, &ops, &count) != 0 || count != 1 || ops[0].atom != DW_OP_bregx)
        return false;
    if (ops[0].number != DWARF_RSP && ops[0].number != DWARF_RBP)
        return false;
    rule->cfa_from_fp = ops[0].number == DWARF_RBP;
    rule->cfa_offset = ops[0].number2;
    return true;
}

/* Where the caller's register is: bytes below the CFA, 0 = still in the register. */
static bool read_saved(Dwarf_Frame *frame, int reg, size_t *below) {
    Dwarf_Op mem[3];
    Dwarf_Op *ops;
    size_t count;
    *below = 0;
    if (dw.dwarf_frame_register(frame, reg, mem, &ops, &count) != 0)
        return false;
    if (count == 0)
        return ops == NULL;
    if (count != 2 || ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_plus_uconst)
        return false;
    *below = (size_t)0 - (size_t)ops[1].number;
    return true;
}

bool hk_cfi_rule_at(uintptr_t pc, hk_cfi_rule *rule) {
    Dwarf_Frame *frame;
    if (!open_image(pc) || dw.dwarf_cfi_addrframe(dw.cfi, pc - 1 - dw.img.bias, &frame) != 0)
        return false;
    size_t ra;
    bool ok = read_cfa(frame, rule) && read_saved(frame, DWARF_RA, &ra) && ra == sizeof(uintptr_t) &&
              read_saved(frame, DWARF_RBP, &rule->fp_below);
    free(frame);
    return ok;
}

hk_cfi_frame hk_cfi_up(hk_cfi_frame frame, const hk_cfi_rule *rule) {
    uintptr_t cfa = (rule->cfa_from_fp ? frame.fp : frame.sp) + rule->cfa_offset;
    hk_cfi_frame up = {((const uintptr_t *)cfa)[-1], cfa, frame.fp};
    if (rule->fp_below != 0)
        up.fp = *(const uintptr_t *)(cfa - rule->fp_below);
    return up;
}

#endif
