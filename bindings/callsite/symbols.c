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

/* A file while it is read. */
typedef struct reading {
    const void *file; /* mapped */
    size_t file_size;
    const symbol *table;
    size_t table_count;
    const char *names;
    size_t names_size;
} reading;

static bool map_file(reading *r, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat st;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size > sizeof(ElfW(Ehdr)))
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED) return false;
    *r = (reading){.file = p, .file_size = (size_t)st.st_size};
    return true;
}

static const void *inside(const reading *r, uint64_t offset, uint64_t size)
{
    return offset <= r->file_size && size <= r->file_size - offset ? (const char *)r->file + offset : NULL;
}

/* NULL = it is no such file. */
static const section *sections_of(const reading *r, unsigned *count)
{
    const ElfW(Ehdr) *head = r->file;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_shentsize != sizeof(section)) return NULL;
    *count = head->e_shnum;
    return inside(r, head->e_shoff, head->e_shnum * sizeof(section));
}

/* Under the name of an image there may be another file by now, as after an upgrade. */
static bool is_of(const reading *r, const hkc_image *image)
{
    unsigned count = 0;
    const section *sections = sections_of(r, &count);
    if (!image->build_id) return true;
    for (unsigned i = 0; sections && i < count; i++) {
        const section *s = &sections[i];
        const void *notes = s->sh_type == SHT_NOTE ? inside(r, s->sh_offset, s->sh_size) : NULL;
        size_t size = 0;
        const uint8_t *id = notes ? hkc_image_build_id(notes, s->sh_size, &size) : NULL;
        if (id) return size == image->build_id_size && memcmp(id, image->build_id, size) == 0;
    }
    return false;
}

static bool find_table(reading *r, unsigned type)
{
    unsigned count = 0;
    const section *sections = sections_of(r, &count);
    for (unsigned i = 0; sections && i < count; i++) {
        const section *table = &sections[i];
        if (table->sh_type != type || table->sh_link >= count) continue;
        const section *names = &sections[table->sh_link];
        r->table = inside(r, table->sh_offset, table->sh_size);
        r->names = inside(r, names->sh_offset, names->sh_size);
        r->table_count = table->sh_size / sizeof(symbol);
        r->names_size = names->sh_size;
        /* names end, whatever a broken file says */
        return r->table && r->names && names->sh_size > 0 && r->names[names->sh_size - 1] == 0;
    }
    return false;
}

/* Local symbols stand behind that of their file. */
static size_t visit_functions(const reading *r, uintptr_t bias, hkc_symbols_visit *visit, void *user)
{
    const char *file = NULL;
    size_t count = 0;
    for (const symbol *sym = r->table; sym < r->table + r->table_count; sym++) {
        unsigned type = ELF64_ST_TYPE(sym->st_info);
        const char *name = sym->st_name < r->names_size ? r->names + sym->st_name : "";
        if (type == STT_FILE) /* <artificial>: link-time optimisation */
            file = name[0] != 0 && name[0] != '<' ? name : NULL;
        if (type != STT_FUNC || sym->st_shndx == SHN_UNDEF || name[0] == 0) continue;
        visit(user, bias + sym->st_value, name, ELF64_ST_BIND(sym->st_info) == STB_LOCAL ? file : NULL);
        count++;
    }
    return count;
}

static bool read_table(const char *path, unsigned type, const hkc_image *image, hkc_symbols_visit *visit,
                       void *user)
{
    reading r;
    if (!map_file(&r, path)) return false;
    bool ok = is_of(&r, image) && find_table(&r, type) && visit_functions(&r, image->bias, visit, user) > 0;
    munmap((void *)(uintptr_t)r.file, r.file_size);
    return ok;
}

static bool debug_path(const hkc_image *image, const char *root, char *path, size_t size)
{
    if (!image->build_id || image->build_id_size < 2 || image->build_id_size > 32) return false;
    int at = snprintf(path, size, "%s/.build-id/%02x/", root, image->build_id[0]);
    for (size_t i = 1; i < image->build_id_size && at > 0 && (size_t)at < size; i++)
        at += snprintf(path + at, size - (size_t)at, "%02x", image->build_id[i]);
    return at > 0 && (size_t)at < size &&
           (size_t)snprintf(path + at, size - (size_t)at, ".debug") < size - (size_t)at;
}

hkc_symbols_source hkc_symbols_read(const hkc_image *image, const char *debug_root, hkc_symbols_visit *visit,
                                    void *user)
{
    int error = errno;
    const char *path = image->path[0] != 0 ? image->path : "/proc/self/exe";
    char debug[256];
    hkc_symbols_source source = HKC_SYMBOLS_NONE;
    if (read_table(path, SHT_SYMTAB, image, visit, user)) source = HKC_SYMBOLS_SYMTAB;
    else if (debug_path(image, debug_root, debug, sizeof debug) &&
             read_table(debug, SHT_SYMTAB, image, visit, user))
        source = HKC_SYMBOLS_DEBUG;
    else if (read_table(path, SHT_DYNSYM, image, visit, user)) source = HKC_SYMBOLS_DYNSYM;
    errno = error;
    return source;
}
