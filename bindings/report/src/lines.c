#include "lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HKR_LINES

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODES = 256, ID_BYTES = 64 };

/* A file that was asked for; without a module nothing is known of it. */
typedef struct code {
    char *path, *build_id;
    Dwfl *reader;
    Dwfl_Module *module;
} code;
static code codes[CODES];
static size_t code_count;

static char *no_search;
static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = dwfl_standard_find_debuginfo,
                                         .section_address = dwfl_offline_section_address,
                                         .debuginfo_path = &no_search};

static bool has_id(Dwfl_Module *module, const char *build_id)
{
    const unsigned char *bits;
    GElf_Addr where;
    char text[2 * ID_BYTES + 1] = "";
    const int n = dwfl_module_build_id(module, &bits, &where);
    for (int i = 0; i < n && i < ID_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bits[i]);
    return n > 0 && strcmp(text, build_id) == 0;
}

/* A report may name anything: nothing is waited for, and only a file is read. */
static int open_file(const char *path)
{
    struct stat is;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static void read_code(code *c)
{
    const int fd = open_file(c->path);
    if (fd < 0) return;
    c->reader = dwfl_begin(&callbacks);
    Dwfl_Module *module = c->reader ? dwfl_report_offline(c->reader, "", c->path, fd) : NULL;
    if (!module) { /* else the descriptor is the reader's */
        close(fd);
        return;
    }
    dwfl_report_end(c->reader, NULL, NULL);
    if (has_id(module, c->build_id)) c->module = module;
}

static const code *code_of(const char *path, const char *build_id)
{
    for (size_t i = 0; i < code_count; i++)
        if (strcmp(codes[i].build_id, build_id) == 0 && strcmp(codes[i].path, path) == 0) return &codes[i];
    if (code_count == CODES) return NULL;
    code *c = &codes[code_count];
    *c = (code){.path = strdup(path), .build_id = strdup(build_id)};
    if (!c->path || !c->build_id) {
        free(c->path);
        free(c->build_id);
        return NULL;
    }
    code_count++;
    read_code(c);
    return c;
}

static const char *name_of(Dwarf_Die *die)
{
    static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
    Dwarf_Attribute attribute;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *name = dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));
        if (name) return name;
    }
    return dwarf_diename(die);
}

/* Where the call stands that was inlined. */
static void call_of(Dwarf_Die *unit, Dwarf_Die *die, hkr_code_line *line)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file = 0, number = 0;
    Dwarf_Files *files;
    size_t count = 0;
    dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &file);
    dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number);
    *line = (hkr_code_line){.line = (int)number};
    if (dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
        line->file = dwarf_filesrc(files, (size_t)file, NULL, NULL);
}

/* The scopes around an address, from the innermost on. To be freed. */
static int scopes_of(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **scopes)
{
    Dwarf_Die *innermost = NULL;
    *scopes = NULL;
    const int n = dwarf_getscopes(unit, address, &innermost);
    const int all = n > 0 ? dwarf_getscopes_die(&innermost[0], scopes) : 0;
    free(innermost);
    return all;
}

/* From the line of the code itself outwards. */
static size_t add_inlined(Dwarf_Die *unit, Dwarf_Addr address, hkr_code_line lines[HKR_INLINED])
{
    Dwarf_Die *scopes;
    const int n = scopes_of(unit, address, &scopes);
    size_t count = 1;
    for (int i = 0; i < n && dwarf_tag(&scopes[i]) != DW_TAG_subprogram; i++) {
        if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine) continue;
        lines[count - 1].function = name_of(&scopes[i]);
        if (count == HKR_INLINED) count--; /* the inner ones matter less than where they are called from */
        call_of(unit, &scopes[i], &lines[count++]);
    }
    free(scopes);
    return count;
}

size_t hkr_code_lines(const char *path, const char *build_id, uint64_t address,
                      hkr_code_line lines[HKR_INLINED])
{
    const code *c = code_of(path, build_id);
    GElf_Addr shift, unit_shift;
    int number = 0;
    if (!c || !c->module || !dwfl_module_getelf(c->module, &shift)) return 0;
    Dwfl_Line *line = dwfl_module_getsrc(c->module, address + shift);
    const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (!file) return 0;
    lines[0] = (hkr_code_line){.file = file, .line = number};
    Dwarf_Die *unit = dwfl_module_addrdie(c->module, address + shift, &unit_shift);
    return unit ? add_inlined(unit, address + shift - unit_shift, lines) : 1;
}

/* ---- Types ----------------------------------------------------------------------------------------- */

enum { TYPE_NAME = 4096, SCOPES = 64 };

typedef struct types {
    hkr_type_fn *each;
    void *user;
    char name[TYPE_NAME]; /* the scopes around, each with its "::" */
} types;

static bool is_record(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_type(int tag)
{
    return is_record(tag) || tag == DW_TAG_enumeration_type || tag == DW_TAG_base_type ||
           tag == DW_TAG_typedef;
}

/* used: bytes of the scopes around. */
static void visit_types(types *t, Dwarf_Die *parent, size_t used, unsigned depth)
{
    Dwarf_Die die;
    if (depth == SCOPES || dwarf_child(parent, &die) != 0) return;
    do {
        const int tag = dwarf_tag(&die);
        /* The name of a type in a function has nothing of the scopes around. */
        if (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block) {
            types inner = {.each = t->each, .user = t->user};
            visit_types(&inner, &die, 0, depth + 1);
        }
        if (!is_type(tag) && tag != DW_TAG_namespace) continue;
        const char *name = dwarf_diename(&die);
        if (!name && tag == DW_TAG_namespace) name = "(anonymous namespace)";
        const size_t size = name ? strlen(name) : 0;
        if (size == 0 || size + 3 > sizeof t->name - used) continue;
        memcpy(t->name + used, name, size + 1);
        if (tag != DW_TAG_namespace) t->each(t->user, t->name, is_record(tag));
        memcpy(t->name + used + size, "::", 3);
        visit_types(t, &die, used + size + 2, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

void hkr_code_types(const char *path, const char *build_id, hkr_type_fn *each, void *user)
{
    const code *c = code_of(path, build_id);
    types t = {.each = each, .user = user};
    Dwarf_Addr shift;
    Dwarf_Die *unit = NULL;
    while (c && c->module && (unit = dwfl_module_nextcu(c->module, unit, &shift)) != NULL)
        visit_types(&t, unit, 0, 0);
}

#else

void hkr_code_types(const char *path, const char *build_id, hkr_type_fn *each, void *user)
{
    (void)path, (void)build_id, (void)each, (void)user;
}

size_t hkr_code_lines(const char *path, const char *build_id, uint64_t address,
                      hkr_code_line lines[HKR_INLINED])
{
    (void)path, (void)build_id, (void)address, (void)lines;
    return 0;
}

#endif
