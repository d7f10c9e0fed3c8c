#define _GNU_SOURCE
#include "cfi.h"

#ifdef HKC_CFI_WALK

#include "readable.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Encodings of addresses (DW_EH_PE_*): 4 bytes signed, from the place itself or from the index on; 4 bytes
 * unsigned. What linkers and compilers write on x86-64 and aarch64. */
enum { ENC_PCREL_SDATA4 = 0x1b, ENC_DATAREL_SDATA4 = 0x3b, ENC_UDATA4 = 0x03 };
#ifdef __x86_64__
enum { DWARF_RBX = 3, DWARF_FP = 6, DWARF_SP = 7, DWARF_R12 = 12, DWARF_R15 = 15, DWARF_RA = 16 };
#else
enum { DWARF_X19 = 19, DWARF_FP = 29, DWARF_RA = 30, DWARF_SP = 31 };
#endif
enum { REMEMBERED_MAX = 4, PAGE = 4096, ENTRY_HEAD = 8, ENTRY_MOST = 1 << 20 };

typedef struct image {
    uintptr_t pc;         /* to look for */
    const uint8_t *index; /* .eh_frame_hdr; NULL = none */
    uintptr_t end;        /* of the segment in which it is, if that is read-only; 0 = it is not */
} image;

static int match_image(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    image *img = user;
    bool found = false;
    const uint8_t *index = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_GNU_EH_FRAME) index = (const uint8_t *)low;
        else if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) != 0) found |= img->pc - low < ph->p_memsz;
    }
    img->index = index;
    img->end = 0;
    for (int i = 0; found && index && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_W) == 0 && (uintptr_t)index - low < ph->p_filesz)
            img->end = low + ph->p_filesz;
    }
    return found;
}

bool hkc_cfi_in_image(uintptr_t pc)
{
    image img = {.pc = pc};
    return dl_iterate_phdr(match_image, &img) != 0;
}

void hkc_cfi_give_back(uintptr_t pc)
{
    image img = {.pc = pc};
    if (dl_iterate_phdr(match_image, &img) == 0 || img.end == 0) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t low = ((uintptr_t)img.index + page - 1) & ~(page - 1),
              high = (img.end + page - 1) & ~(page - 1);
    /* the file's pages, unchanged: who reads them next has them again */
    if (low < high) madvise((void *)low, high - low, MADV_DONTNEED);
}

/* An entry of the index, sorted: where a function begins and its description, from the index on. */
typedef struct index_entry {
    int32_t function, description;
} index_entry;

typedef struct function_index {
    const uint8_t *base;
    const index_entry *entries;
    uint32_t count;
} function_index;

#ifdef DLFO_EH_SEGMENT_TYPE
/* Of glibc 2.35 and later; weak, so that the same binary runs with an older one. */
__attribute__((weak)) int _dl_find_object(void *, struct dl_find_object *);
#endif

/* The index of the image with code at pc; NULL = none. Without a lock where the system can. */
static const uint8_t *find_header(uintptr_t pc)
{
#ifdef DLFO_EH_SEGMENT_TYPE
    struct dl_find_object found;
    if (_dl_find_object) return _dl_find_object((void *)pc, &found) == 0 ? found.dlfo_eh_frame : NULL;
#endif
    image img = {.pc = pc};
    return dl_iterate_phdr(match_image, &img) != 0 ? img.index : NULL;
}

/* False also for indexes of another form. The count may be broken: entries are to be probed. */
static bool find_index(uintptr_t pc, function_index *index)
{
    static const uint8_t form[] = {1, ENC_PCREL_SDATA4, ENC_UDATA4, ENC_DATAREL_SDATA4};
    const uint8_t *header = find_header(pc);
    if (!header || !hkc_readable(header, 12) || memcmp(header, form, sizeof form) != 0) return false;
    index->base = header;
    index->entries = (const index_entry *)(const void *)(header + 12);
    memcpy(&index->count, header + 8, sizeof index->count);
    return true;
}

static uintptr_t start_of(const function_index *index, uint32_t i)
{
    return (uintptr_t)index->base + (uintptr_t)(intptr_t)index->entries[i].function;
}

/* Whether there is an entry, of a length that entries have. */
static bool is_entry(const uint8_t *entry, uint32_t *length)
{
    if (!hkc_readable(entry, ENTRY_HEAD)) return false;
    memcpy(length, entry, sizeof *length);
    return *length >= ENTRY_HEAD && *length < ENTRY_MOST && hkc_readable(entry + 4, *length);
}

/* The description of the function, which is of that length. */
static bool find_function(uintptr_t pc, uintptr_t *function, const uint8_t **description, uint32_t *length)
{
    function_index index;
    if (!find_index(pc, &index)) return false;
    const index_entry *entries = index.entries;
    uint32_t count = index.count;
    intptr_t at = (intptr_t)(pc - 1 - (uintptr_t)index.base); /* the call may be the last instruction */
    uint32_t low = 0;
    uintptr_t known = 0; /* a page that is there */
    while (count > 0) {
        uint32_t half = count / 2;
        const index_entry *entry = &entries[low + half];
        if ((uintptr_t)entry - known > PAGE - sizeof *entry) {
            if (!hkc_readable(entry, sizeof *entry)) return false;
            known = (uintptr_t)entry & ~(uintptr_t)(PAGE - 1);
        }
        if (entry->function <= at) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    if (low == 0) return false;
    *function = start_of(&index, low - 1);
    *description = index.base + entries[low - 1].description;
    uint32_t size;
    if (!is_entry(*description, length) || *length < 3 * sizeof size) return false;
    memcpy(&size, *description + 12, sizeof size); /* behind its beginning, which is known */
    return pc - 1 - *function < size;
}

uintptr_t hkc_cfi_function(uintptr_t pc)
{
    uintptr_t function;
    const uint8_t *description;
    uint32_t length;
    return find_function(pc, &function, &description, &length) ? function : 0;
}

size_t hkc_cfi_functions(uintptr_t pc, uintptr_t *starts, size_t count)
{
    function_index index;
    if (!find_index(pc, &index) || !hkc_readable(index.entries, index.count * sizeof(index_entry))) return 0;
    for (uint32_t i = 0; i < index.count && i < count; i++)
        starts[i] = start_of(&index, i);
    return index.count;
}

/* ---- The description of a function: a table in the form of a program ------------------------------ */

typedef struct reader {
    const uint8_t *p, *end;
    bool ok;
} reader;

static uint64_t read_bytes(reader *r, size_t n)
{
    uint64_t value = 0;
    if ((size_t)(r->end - r->p) < n) {
        r->ok = false;
        r->p = r->end;
        return 0;
    }
    memcpy(&value, r->p, n);
    r->p += n;
    return value;
}

static void skip(reader *r, uint64_t n)
{
    if ((uint64_t)(r->end - r->p) < n) r->ok = false;
    r->p = r->ok ? r->p + n : r->end;
}

static uint64_t read_leb(reader *r, bool is_signed)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = read_bytes(r, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0 && r->ok);
    if (is_signed && (byte & 0x40) != 0 && shift < 64) value |= ~UINT64_C(0) << shift;
    return value;
}

static uint64_t read_uleb(reader *r)
{
    return read_leb(r, false);
}

static int64_t read_sleb(reader *r)
{
    return (int64_t)read_leb(r, true);
}

/* Where a register of the caller is. */
typedef struct saved {
    enum { SAME, AT_CFA, ELSEWHERE } where;
    int64_t offset;
} saved;

typedef struct row {
    uint64_t cfa_register; /* UINT64_MAX = an expression */
    int64_t cfa_offset;
    saved registers[HKC_CFI_SAVED], ra;
} row;

/* What all functions of one common entry share. */
typedef struct common {
    uint64_t code_align;
    int64_t data_align;
    reader program;
} common;

typedef struct machine {
    const common *shared;
    row now, initial, remembered[REMEMBERED_MAX];
    unsigned depth;
    uint64_t location, target; /* from the function's beginning */
} machine;

/* NULL = a register that does not matter. */
static saved *register_of(row *of, uint64_t reg)
{
    if (reg == DWARF_RA) return &of->ra;
#ifdef __x86_64__
    if (reg == DWARF_RBX) return &of->registers[HKC_CFI_RBX];
    if (reg == DWARF_FP) return &of->registers[HKC_CFI_FP];
    if (reg >= DWARF_R12 && reg <= DWARF_R15) return &of->registers[HKC_CFI_R12 + (reg - DWARF_R12)];
#else
    if (reg >= DWARF_X19 && reg <= DWARF_FP) return &of->registers[HKC_CFI_X19 + (reg - DWARF_X19)];
#endif
    return NULL;
}

static void set_saved(machine *m, uint64_t reg, saved value)
{
    saved *of = register_of(&m->now, reg);
    if (of) *of = value;
}

static void restore(machine *m, uint64_t reg)
{
    const saved *initial = register_of(&m->initial, reg);
    if (initial) set_saved(m, reg, *initial);
}

static void set_cfa(machine *m, uint64_t reg, int64_t offset)
{
    m->now.cfa_register = reg;
    m->now.cfa_offset = offset;
}

static int64_t factored(const machine *m, int64_t n)
{
    return n * m->shared->data_align;
}

/* The instructions with an operand inside, and those that name a register. */
static bool run_register(machine *m, reader *r, unsigned op)
{
    uint64_t reg = 0;
    switch (op) {
    case 0x05: /* offset_extended */
        reg = read_uleb(r);
        set_saved(m, reg, (saved){AT_CFA, factored(m, (int64_t)read_uleb(r))});
        return true;
    case 0x06: /* restore_extended */
        restore(m, read_uleb(r));
        return true;
    case 0x07: /* undefined */
        set_saved(m, read_uleb(r), (saved){ELSEWHERE, 0});
        return true;
    case 0x08: /* same_value */
        set_saved(m, read_uleb(r), (saved){SAME, 0});
        return true;
    case 0x09: /* register */
        set_saved(m, read_uleb(r), (saved){ELSEWHERE, 0});
        read_uleb(r);
        return true;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        set_saved(m, read_uleb(r), (saved){ELSEWHERE, 0});
        skip(r, read_uleb(r));
        return true;
    case 0x11: /* offset_extended_sf */
        reg = read_uleb(r);
        set_saved(m, reg, (saved){AT_CFA, factored(m, read_sleb(r))});
        return true;
    case 0x14: /* val_offset */
    case 0x15: /* val_offset_sf */
        set_saved(m, read_uleb(r), (saved){ELSEWHERE, 0});
        read_uleb(r);
        return true;
    default:
        return false;
    }
}

static bool run_cfa(machine *m, reader *r, unsigned op)
{
    uint64_t reg;
    switch (op) {
    case 0x0c: /* def_cfa */
        reg = read_uleb(r);
        set_cfa(m, reg, (int64_t)read_uleb(r));
        return true;
    case 0x0d: /* def_cfa_register */
        set_cfa(m, read_uleb(r), m->now.cfa_offset);
        return true;
    case 0x0e: /* def_cfa_offset */
        set_cfa(m, m->now.cfa_register, (int64_t)read_uleb(r));
        return true;
    case 0x0f: /* def_cfa_expression */
        set_cfa(m, UINT64_MAX, 0);
        skip(r, read_uleb(r));
        return true;
    case 0x12: /* def_cfa_sf */
        reg = read_uleb(r);
        set_cfa(m, reg, factored(m, read_sleb(r)));
        return true;
    case 0x13: /* def_cfa_offset_sf */
        set_cfa(m, m->now.cfa_register, factored(m, read_sleb(r)));
        return true;
    default:
        return false;
    }
}

static bool run_other(machine *m, reader *r, unsigned op)
{
    switch (op) {
    case 0x00: /* nop */
        return true;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
    case 0x04:
        m->location += read_bytes(r, (size_t)1 << (op - 2)) * m->shared->code_align;
        return true;
    case 0x0a: /* remember_state */
        if (m->depth == REMEMBERED_MAX) return false;
        m->remembered[m->depth++] = m->now;
        return true;
    case 0x0b: /* restore_state */
        if (m->depth == 0) return false;
        m->now = m->remembered[--m->depth];
        return true;
    case 0x2e: /* GNU_args_size */
        read_uleb(r);
        return true;
#ifdef __aarch64__
    case 0x2d: /* AARCH64_negate_ra_state: return addresses are signed from here on, or no more */
        return true;
#endif
    default:
        return false;
    }
}

/* Until the row for the target. False: the program has something that is not known here. */
static bool run(machine *m, reader r)
{
    while (r.p < r.end) {
        row before = m->now;
        unsigned op = (unsigned)read_bytes(&r, 1), low = op & 0x3f;
        bool known = true;
        switch (op & 0xc0) {
        case 0x40:
            m->location += low * m->shared->code_align;
            break;
        case 0x80:
            set_saved(m, low, (saved){AT_CFA, factored(m, (int64_t)read_uleb(&r))});
            break;
        case 0xc0:
            restore(m, low);
            break;
        default:
            known = run_other(m, &r, op) || run_cfa(m, &r, op) || run_register(m, &r, op);
            break;
        }
        if (!known || !r.ok) return false;
        if (m->location > m->target) {
            m->now = before;
            return true;
        }
    }
    return true;
}

static bool read_common(const uint8_t *entry, common *c)
{
    uint32_t length;
    if (!is_entry(entry, &length)) return false;
    reader r = {entry + 4, entry + 4 + length, true};
    read_bytes(&r, 4); /* 0: a common entry */
    uint64_t version = read_bytes(&r, 1);
    const char *augmentation = (const char *)r.p;
    const uint8_t *zero = memchr(r.p, 0, (size_t)(r.end - r.p));
    if ((version != 1 && version != 3) || !zero || augmentation[0] != 'z') return false;
    r.p = zero + 1;
    c->code_align = read_uleb(&r);
    c->data_align = read_sleb(&r);
    uint64_t ra = version == 1 ? read_bytes(&r, 1) : read_uleb(&r);
    uint64_t data = read_uleb(&r);
    c->program = r;
    skip(&c->program, data);
    uint64_t encoding = 0;
    for (const char *a = augmentation + 1; *a != 0; a++) {
        if (*a == 'P') { /* the personality, 4 bytes or 8 */
            unsigned size = (unsigned)read_bytes(&r, 1) & 7;
            read_bytes(&r, size == 3 ? 4 : 8);
        } else if (*a == 'R') {
            encoding = read_bytes(&r, 1);
        } else if (*a == 'L') {
            read_bytes(&r, 1);
        } else if (*a != 'S' && *a != 'B' /* aarch64: the other key signs */) {
            return false;
        }
    }
    return ra == DWARF_RA && encoding == ENC_PCREL_SDATA4 && r.ok && c->program.ok;
}

static bool find_row(uintptr_t pc, machine *m)
{
    uintptr_t function;
    const uint8_t *description;
    uint32_t length, back;
    if (!find_function(pc, &function, &description, &length)) return false;
    memcpy(&back, description + 4, sizeof back);
    common shared;
    if (!read_common(description + 4 - back, &shared)) return false;
    reader r = {description + 16, description + 4 + length, true};
    skip(&r, read_uleb(&r));
    *m = (machine){.shared = &shared, .target = pc - 1 - function};
    if (!r.ok || !run(m, shared.program)) return false;
    m->initial = m->now;
    return run(m, r);
}

/* Whether the frame can be left by that row: the cfa is from one of the two registers, and the return address
 * where a call has put it, or on aarch64 where the function has. */
static bool has_form(const row *now)
{
    const int64_t word = sizeof(uintptr_t);
    return (now->cfa_register == DWARF_FP || now->cfa_register == DWARF_SP) && now->cfa_offset > 0 &&
           now->ra.where == AT_CFA && now->ra.offset <= -word && now->ra.offset >= -now->cfa_offset &&
           (DWARF_RA != 16 || now->ra.offset == -word);
}

/* Bytes from the cfa down; 0 = in its register still, -1 = not to be had. */
static int64_t below(const saved *s)
{
    if (s->where == SAME) return 0;
    return s->where == AT_CFA && s->offset < 0 ? -s->offset : -1;
}

bool hkc_cfi_rule_at(uintptr_t pc, hkc_cfi_rule *rule)
{
    machine m;
    if (!find_row(pc, &m)) return false;
    const row *now = &m.now;
    const int64_t fp = below(&now->registers[HKC_CFI_FP]);
    *rule = (hkc_cfi_rule){now->cfa_register == DWARF_FP, (size_t)now->cfa_offset, fp > 0 ? (size_t)fp : 0,
                           (size_t)-now->ra.offset};
    return has_form(now) && fp >= 0;
}

bool hkc_cfi_saves_at(uintptr_t pc, hkc_cfi_saves *saves)
{
    machine m;
    if (!find_row(pc, &m) || !has_form(&m.now) || m.now.cfa_offset > UINT32_MAX) return false;
    *saves = (hkc_cfi_saves){.cfa_from_fp = m.now.cfa_register == DWARF_FP,
                             .cfa_offset = (uint32_t)m.now.cfa_offset};
#ifndef __x86_64__
    saves->ra_below = (uint32_t)-m.now.ra.offset;
#endif
    for (int r = 0; r < HKC_CFI_SAVED; r++) {
        const int64_t at = below(&m.now.registers[r]);
        if (at < 0 || at > UINT32_MAX) return false;
        saves->below[r] = (uint32_t)at;
    }
    return true;
}

/* The call leaves all of these registers as they are. */
#ifdef __x86_64__
__asm__(".text\n"
        ".globl hkc_cfi_here\n"
        ".hidden hkc_cfi_here\n"
        ".type hkc_cfi_here, @function\n"
        "hkc_cfi_here:\n"
        "    .cfi_startproc\n"
        "    movq %rbx, 0(%rdi)\n"
        "    movq %rbp, 8(%rdi)\n"
        "    movq %r12, 16(%rdi)\n"
        "    movq %r13, 24(%rdi)\n"
        "    movq %r14, 32(%rdi)\n"
        "    movq %r15, 40(%rdi)\n"
        "    leaq 8(%rsp), %rax\n"
        "    movq %rax, 48(%rdi)\n"
        "    movq (%rsp), %rax\n"
        "    movq %rax, 56(%rdi)\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size hkc_cfi_here, .-hkc_cfi_here\n");
_Static_assert(HKC_CFI_SAVED == 6 && offsetof(hkc_cfi_registers, pc) == 56, "as hkc_cfi_here writes them");
#else
__asm__(".text\n"
        ".globl hkc_cfi_here\n"
        ".hidden hkc_cfi_here\n"
        ".type hkc_cfi_here, %function\n"
        "hkc_cfi_here:\n"
        "    .cfi_startproc\n"
        "    stp x19, x20, [x0]\n"
        "    stp x21, x22, [x0, 16]\n"
        "    stp x23, x24, [x0, 32]\n"
        "    stp x25, x26, [x0, 48]\n"
        "    stp x27, x28, [x0, 64]\n"
        "    mov x1, sp\n"
        "    stp x29, x1, [x0, 80]\n"
        "    str x30, [x0, 96]\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size hkc_cfi_here, .-hkc_cfi_here\n");
_Static_assert(HKC_CFI_SAVED == 11 && offsetof(hkc_cfi_registers, pc) == 96, "as hkc_cfi_here writes them");
#endif

hkc_cfi_frame hkc_cfi_up(hkc_cfi_frame frame, const hkc_cfi_rule *rule)
{
    uintptr_t cfa = (rule->cfa_from_fp ? frame.fp : frame.sp) + rule->cfa_offset;
    hkc_cfi_frame up = {hkc_cfi_plain(*(const uintptr_t *)(cfa - rule->ra_below)), cfa, frame.fp};
    if (rule->fp_below != 0) up.fp = *(const uintptr_t *)(cfa - rule->fp_below);
    return up;
}

/* What the compiler left in registers, the frames from here up tell. */
__attribute__((noinline)) hkc_cfi_frame hkc_cfi_frame_at(uintptr_t sp)
{
    hkc_cfi_frame frame = HKC_CFI_CALLER();
    hkc_cfi_rule rule;
    while (frame.sp < sp && hkc_cfi_rule_at(frame.pc, &rule))
        frame = hkc_cfi_up(frame, &rule);
    return frame;
}

#endif
