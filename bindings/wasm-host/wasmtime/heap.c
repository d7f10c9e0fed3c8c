/* wasmtime's own heap: the functions of the malloc family that its shared library imports, replaced in the
 * library's table of imported addresses. */
#define _GNU_SOURCE
#include <hakmem/wasm_wasmtime.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* malloc has no user pointer, so the host is the process'. Written before the first patched call. */
static hak_wasm_host *hooked;

/* Rust asks malloc for what is 16-aligned and no smaller than 16 bytes; hakmem aligns multiples of 16 so. */
static size_t rounded(size_t n)
{
    return n <= 16 || n > SIZE_MAX - 15 ? n : (n + 15) & ~(size_t)15;
}

/* The tenant's, or past its hard limit the host's. */
static void *get(size_t align, size_t n)
{
    void *p = hak_wasm_aligned_alloc(hooked, align, n);
    if (!p) {
        hak_wasm_scope before = hak_wasm_enter(NULL, HAK_WASM_OTHER);
        p = hak_wasm_aligned_alloc(hooked, align, n);
        hak_wasm_leave(before);
    }
    if (!p) errno = ENOMEM;
    return p;
}

static void *heap_malloc(size_t n)
{
    void *p = hak_wasm_alloc(hooked, rounded(n));
    return p ? p : get(8, rounded(n));
}

static void *heap_calloc(size_t count, size_t n)
{
    size_t all;
    if (__builtin_mul_overflow(count, n, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = hak_wasm_calloc(hooked, 1, rounded(all));
    if (!p && (p = get(8, rounded(all)))) memset(p, 0, all);
    return p;
}

static int heap_posix_memalign(void **out, size_t align, size_t n)
{
    void *p = get(align, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

static void heap_free(void *p)
{
    if (!p || hak_wasm_owns(hooked, p)) {
        hak_wasm_free(hooked, p);
    } else {
        free(p);
    }
}

static void *heap_realloc(void *p, size_t n)
{
    if (!p) return heap_malloc(n);
    if (!hak_wasm_owns(hooked, p)) return realloc(p, n);
    void *q = hak_wasm_realloc(hooked, p, rounded(n));
    if (q || !(q = get(8, rounded(n)))) return q;
    size_t old = hak_wasm_usable_size(hooked, p);
    memcpy(q, p, old < n ? old : n);
    hak_wasm_free(hooked, p);
    return q;
}

/* A library that has another allocator than libc's may import some of them all the same; without these two no
 * limit would hold. */
enum { FOUND_MALLOC = 1, FOUND_FREE = 2, FOUND_ENOUGH = 3, FOUND_OTHER = 4 };

static uintptr_t replacement(const char *name, int *found)
{
    *found = FOUND_MALLOC;
    if (strcmp(name, "malloc") == 0) return (uintptr_t)heap_malloc;
    *found = FOUND_FREE;
    if (strcmp(name, "free") == 0) return (uintptr_t)heap_free;
    *found = FOUND_OTHER;
    if (strcmp(name, "calloc") == 0) return (uintptr_t)heap_calloc;
    if (strcmp(name, "realloc") == 0) return (uintptr_t)heap_realloc;
    if (strcmp(name, "posix_memalign") == 0) return (uintptr_t)heap_posix_memalign;
    return 0;
}

typedef ElfW(Dyn) elf_dyn;
typedef ElfW(Phdr) elf_phdr;
typedef ElfW(Rela) elf_rela;
typedef ElfW(Sym) elf_sym;

typedef struct library {
    uintptr_t inside; /* an address in it */
    uintptr_t base;
    const elf_dyn *dynamic;     /* NULL = not found */
    uintptr_t relro, relro_end; /* read-only since it was linked */
} library;

static int find_library(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    library *l = user;
    library found = {l->inside, info->dlpi_addr, NULL, 0, 0};
    bool holds = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const elf_phdr *h = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && l->inside - at < h->p_memsz) holds = true;
        if (h->p_type == PT_DYNAMIC) found.dynamic = (const elf_dyn *)at;
        if (h->p_type == PT_GNU_RELRO) {
            found.relro = at;
            found.relro_end = at + h->p_memsz;
        }
    }
    /* The program itself has no name: a wasmtime in it shares the malloc of everything else there. */
    if (holds && info->dlpi_name[0] != '\0') *l = found;
    return holds;
}

#if defined(__x86_64__)
enum { SLOT_DATA = R_X86_64_GLOB_DAT, SLOT_CALL = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { SLOT_DATA = R_AARCH64_GLOB_DAT, SLOT_CALL = R_AARCH64_JUMP_SLOT };
#else
#error "the relocations of imported functions on this architecture"
#endif

/* The slots that one table of relocations fills, which are set or only looked for; returns FOUND_*. */
static int patch(const library *l, const elf_rela *rela, size_t bytes, const elf_sym *symbols,
                 const char *names, bool set)
{
    int all = 0;
    for (const elf_rela *end = rela + bytes / sizeof *rela; rela < end; rela++) {
        if (ELF64_R_TYPE(rela->r_info) != SLOT_DATA && ELF64_R_TYPE(rela->r_info) != SLOT_CALL) continue;
        int found;
        uintptr_t address = replacement(names + symbols[ELF64_R_SYM(rela->r_info)].st_name, &found);
        if (!address) continue;
        if (set) *(uintptr_t *)(l->base + rela->r_offset) = address;
        all |= found;
    }
    return all;
}

static int patch_all(const library *l, bool set)
{
    const elf_rela *rela = NULL, *calls = NULL;
    const elf_sym *symbols = NULL;
    const char *names = NULL;
    size_t rela_bytes = 0, calls_bytes = 0;
    for (const elf_dyn *d = l->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_RELA) rela = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_RELASZ) rela_bytes = d->d_un.d_val;
        if (d->d_tag == DT_JMPREL) calls = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_PLTRELSZ) calls_bytes = d->d_un.d_val;
        if (d->d_tag == DT_SYMTAB) symbols = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_STRTAB) names = (const void *)d->d_un.d_ptr;
    }
    if (!symbols || !names) return 0;
    return patch(l, rela, rela ? rela_bytes : 0, symbols, names, set) |
           patch(l, calls, calls ? calls_bytes : 0, symbols, names, set);
}

int hak_wasmtime_hook_heap(hak_wasm_host *host)
{
    if (!host) return -1;
    if (hooked) return hooked == host ? 0 : -1;
    library l = {(uintptr_t)dlsym(RTLD_DEFAULT, "wasm_engine_new"), 0, NULL, 0, 0};
    if (!l.inside || !dl_iterate_phdr(find_library, &l) || !l.dynamic) return -1;
    if ((patch_all(&l, false) & FOUND_ENOUGH) != FOUND_ENOUGH) return -1;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = l.relro & ~(page - 1);
    /* What shares a page with data stays writable by the linker's rule. */
    size_t bytes = l.relro_end > from ? (l.relro_end & ~(page - 1)) - from : 0;
    if (bytes > 0 && mprotect((void *)from, bytes, PROT_READ | PROT_WRITE) != 0) return -1;
    hooked = host;
    patch_all(&l, true);
    if (bytes > 0) mprotect((void *)from, bytes, PROT_READ);
    return 0;
}
