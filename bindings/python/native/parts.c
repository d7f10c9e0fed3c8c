#define _GNU_SOURCE
#include "native/parts.h"

#include "base/map.h"
#include "cfi.h"
#include "native/functions.h"
#include "native/learn.h"

#ifdef HKC_CFI_WALK

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

/* While functions are classified. */
typedef struct classes {
    hkp_functions functions;
    unsigned char *subsystems; /* by number of the function */
    hkp_words *words;
    const char *file; /* of the function before, and what it says */
    hkp_subsystem by_file;
} classes;

/* By the first name that a function has. */
static void visit_symbol(void *user, uintptr_t start, const char *name, const char *file)
{
    classes *c = user;
    size_t i = hkp_functions_number(&c->functions, start);
    if (i == c->functions.count || c->subsystems[i] != HKP_UNKNOWN) return;
    if (file != c->file) {
        c->file = file;
        c->by_file = file ? hkp_subsystem_of_file(c->words, file) : HKP_CORE;
    }
    c->subsystems[i] = (unsigned char)hkp_subsystem_of(c->words, name, c->by_file);
}

static void put_together(const classes *c, hkp_parts *parts, uintptr_t low)
{
    size_t count = c->functions.count; /* room for more than there are */
    uint32_t *starts = hkp_pages(count * (sizeof *starts + 1));
    if (!starts) return;
    *parts = (hkp_parts){starts, (unsigned char *)(starts + count), 0};
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && c->subsystems[i] == c->subsystems[i - 1]) continue;
        starts[parts->count] = (uint32_t)(c->functions.starts[i] - low);
        parts->subsystems[parts->count++] = c->subsystems[i];
    }
}

hkc_symbols_source hkp_parts_find(hkp_parts *parts, const hkc_image *core, uintptr_t code)
{
    hkc_symbols_source source = HKC_SYMBOLS_NONE;
    classes c = {.words = hkp_words_open()};
    if (!c.words) return source;
    hkp_functions_open(&c.functions, code);
    size_t count = core->high - core->low <= UINT32_MAX ? c.functions.count : 0;
    c.subsystems = count > 0 ? hkp_pages(count) : NULL;
    if (c.subsystems) {
        memset(c.subsystems, HKP_UNKNOWN, count);
        source = hkc_symbols_read(core, "/usr/lib/debug", visit_symbol, &c);
        if (source <= HKC_SYMBOLS_DYNSYM)
            hkp_learn(core, &c.functions, c.words, c.subsystems, dlsym(RTLD_DEFAULT, "PyType_Type"));
        put_together(&c, parts, core->low);
        munmap(c.subsystems, count);
    }
    hkp_functions_close(&c.functions);
    hkp_words_close(c.words);
    return source;
}

#endif
