#define _GNU_SOURCE
#include "symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef ElfW(Sym) symbol;
typedef ElfW(Shdr) section;

static bool map_file(hk_symbols *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat st;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size > sizeof(ElfW(Ehdr)))
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED) return false;
    s->file = p;
    s->file_size = (size_t)st.st_size;
    return true;
}

static void unmap_file(hk_symbols *s)
{
    if (s->file != NULL) munmap((void *)(uintptr_t)s->file, s->file_size);
    s->file = NULL;
}

static const void *inside(const hk_symbols *s, uint64_t offset, uint64_t size)
{
    return offset <= s->file_size && size <= s->file_size - offset ? (const char *)s->file + offset : NULL;
}

static bool find_table(hk_symbols *s, unsigned type)
{
    const ElfW(Ehdr) *head = s->file;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_shentsize != sizeof(section)) return false;
    const section *sections = inside(s, head->e_shoff, head->e_shnum * sizeof(section));
    if (sections == NULL) return false;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const section *table = &sections[i];
        if (table->sh_type != type || table->sh_link >= head->e_shnum) continue;
        const section *names = &sections[table->sh_link];
        s->table = inside(s, table->sh_offset, table->sh_size);
        s->names = inside(s, names->sh_offset, names->sh_size);
        s->table_count = table->sh_size / sizeof(symbol);
        s->names_size = names->sh_size;
        /* names end, whatever a broken file says */
        return s->table != NULL && s->names != NULL && names->sh_size > 0 &&
               s->names[names->sh_size - 1] == 0;
    }
    return false;
}

/* Heap sort: the C library's qsort may allocate. */
static void sift(uint64_t *a, size_t root, size_t count)
{
    uint64_t value = a[root];
    size_t child;
    while ((child = 2 * root + 1) < count) {
        if (child + 1 < count && a[child + 1] > a[child]) child++;
        if (a[child] <= value) break;
        a[root] = a[child];
        root = child;
    }
    a[root] = value;
}

static void sort(uint64_t *a, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(a, i, count);
    for (size_t i = count; i-- > 1;) {
        uint64_t largest = a[0];
        a[0] = a[i];
        a[i] = largest;
        sift(a, 0, i);
    }
}

static bool is_function(const symbol *sym)
{
    return ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_shndx != SHN_UNDEF &&
           sym->st_value <= UINT32_MAX;
}

static bool make_index(hk_symbols *s)
{
    const symbol *table = s->table;
    size_t count = 0;
    for (size_t i = 0; i < s->table_count; i++)
        count += is_function(&table[i]);
    if (count == 0) return false;
    uint64_t *starts =
        mmap(NULL, count * sizeof *starts, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (starts == MAP_FAILED) return false;
    s->count = 0;
    for (size_t i = 0; i < s->table_count; i++) {
        if (is_function(&table[i])) starts[s->count++] = (uint64_t)table[i].st_value << 32 | i;
    }
    sort(starts, count);
    s->starts = starts;
    madvise((void *)(uintptr_t)s->file, s->file_size,
            MADV_DONTNEED); /* names are read again when asked for */
    return true;
}

static bool read_table(hk_symbols *s, const char *path, unsigned type, hk_symbols_source source)
{
    if (!map_file(s, path)) return false;
    if (find_table(s, type) && make_index(s)) {
        s->source = source;
        return true;
    }
    unmap_file(s);
    return false;
}

static bool debug_path(const hk_image *image, const char *root, char *path, size_t size)
{
    if (image->build_id == NULL || image->build_id_size < 2 || image->build_id_size > 32) return false;
    int at = snprintf(path, size, "%s/.build-id/%02x/", root, image->build_id[0]);
    for (size_t i = 1; i < image->build_id_size && at > 0 && (size_t)at < size; i++)
        at += snprintf(path + at, size - (size_t)at, "%02x", image->build_id[i]);
    return at > 0 && (size_t)at < size &&
           (size_t)snprintf(path + at, size - (size_t)at, ".debug") < size - (size_t)at;
}

bool hk_symbols_open(hk_symbols *symbols, const hk_image *image, const char *debug_root)
{
    int error = errno;
    *symbols = (hk_symbols){.bias = image->bias};
    const char *path = image->path[0] != 0 ? image->path : "/proc/self/exe";
    char debug[256];
    bool ok = read_table(symbols, path, SHT_SYMTAB, HK_SYMBOLS_SYMTAB) ||
              (debug_path(image, debug_root, debug, sizeof debug) &&
               read_table(symbols, debug, SHT_SYMTAB, HK_SYMBOLS_DEBUG)) ||
              read_table(symbols, path, SHT_DYNSYM, HK_SYMBOLS_DYNSYM);
    errno = error;
    return ok;
}

void hk_symbols_close(hk_symbols *symbols)
{
    unmap_file(symbols);
    if (symbols->starts != NULL) munmap(symbols->starts, symbols->count * sizeof *symbols->starts);
    *symbols = (hk_symbols){.source = HK_SYMBOLS_NONE};
}

static const char *name_of(const hk_symbols *s, const symbol *sym)
{
    return sym->st_name < s->names_size ? s->names + sym->st_name : "";
}

/* Local symbols stand behind that of their file. */
static const char *file_of(const hk_symbols *s, size_t index)
{
    const symbol *table = s->table;
    if (ELF64_ST_BIND(table[index].st_info) != STB_LOCAL) return NULL;
    while (index-- > 0) {
        if (ELF64_ST_TYPE(table[index].st_info) != STT_FILE) continue;
        const char *name = name_of(s, &table[index]);
        return name[0] != 0 && name[0] != '<' ? name : NULL; /* <artificial>: link-time optimisation */
    }
    return NULL;
}

bool hk_symbols_find(const hk_symbols *symbols, uintptr_t start, hk_symbol *found)
{
    uint64_t wanted = (uint64_t)(start - symbols->bias) << 32;
    if (start - symbols->bias > UINT32_MAX) return false;
    size_t low = 0, count = symbols->count;
    while (count > 0) {
        size_t half = count / 2;
        if (symbols->starts[low + half] < wanted) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    if (low == symbols->count || symbols->starts[low] >> 32 != wanted >> 32) return false;
    size_t index = (uint32_t)symbols->starts[low];
    found->name = name_of(symbols, (const symbol *)symbols->table + index);
    found->file = file_of(symbols, index);
    return found->name[0] != 0;
}
