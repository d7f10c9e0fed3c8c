/* Names of functions on macOS: the table of symbols of an image, which the loader maps with it. A library of the system
 * has the exported ones there, and a file .dSYM is not read. Source files are not known. */
#include "callsite/symbols.h"

#include <mach-o/loader.h>
#include <mach-o/nlist.h>
#include <string.h>

/* What an image says of its symbols. Sections are counted over all segments, from 1 on. */
typedef struct tables {
    const struct segment_command_64 *linkedit;
    const struct symtab_command *symbols;
    bool code[NO_SECT + MAX_SECT + 1];
} tables;

static void read_sections(const struct segment_command_64 *segment, size_t before, tables *t)
{
    const struct section_64 *sections = (const void *)(segment + 1);
    for (size_t i = 0; i < segment->nsects && before + i < MAX_SECT; i++)
        t->code[before + i + 1] =
            (sections[i].flags & (S_ATTR_PURE_INSTRUCTIONS | S_ATTR_SOME_INSTRUCTIONS)) != 0;
}

static bool read_commands(const struct mach_header_64 *head, tables *t)
{
    const char *at = (const char *)(head + 1);
    size_t sections = 0;
    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < head->ncmds; i++) {
        const struct load_command *command = (const void *)at;
        if (command->cmd == LC_SYMTAB) t->symbols = (const void *)at;
        if (command->cmd == LC_SEGMENT_64) {
            const struct segment_command_64 *segment = (const void *)at;
            if (strcmp(segment->segname, SEG_LINKEDIT) == 0) t->linkedit = segment;
            read_sections(segment, sections, t);
            sections += segment->nsects;
        }
        at += command->cmdsize;
    }
    return t->linkedit && t->symbols;
}

hkc_symbols_source hkc_symbols_read(const hkc_image *image, const char *debug_root, hkc_symbols_visit *visit,
                                    void *user)
{
    tables t;
    size_t visited = 0;
    (void)debug_root;
    if (!read_commands((const void *)image->low, &t)) return HKC_SYMBOLS_NONE;
    /* Places in the file, which are all in this segment. */
    const char *file = (const char *)(image->bias + t.linkedit->vmaddr - t.linkedit->fileoff);
    const struct nlist_64 *symbols = (const void *)(file + t.symbols->symoff);
    const char *texts = file + t.symbols->stroff;
    for (uint32_t i = 0; i < t.symbols->nsyms; i++) {
        const struct nlist_64 *s = &symbols[i];
        if ((s->n_type & N_STAB) != 0 || (s->n_type & N_TYPE) != N_SECT || !t.code[s->n_sect]) continue;
        if (s->n_un.n_strx == 0 || s->n_un.n_strx >= t.symbols->strsize) continue;
        const char *name = texts + s->n_un.n_strx;
        visit(user, image->bias + s->n_value, name + (name[0] == '_'),
              NULL); /* compilers put a _ before names of C */
        visited++;
    }
    return visited > 0 ? HKC_SYMBOLS_SYMTAB : HKC_SYMBOLS_NONE;
}
