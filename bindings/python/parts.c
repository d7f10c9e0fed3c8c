#define _GNU_SOURCE
#include "parts.h"

#include "cfi.h"
#include "functions.h"
#include "learn.h"
#include "map.h"

#ifdef HK_CFI_WALK

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

/* While functions are classified. */
typedef struct classes {
    hk_py_functions functions;
    unsigned char *subsystems; /* by number of the function */
    hk_py_words *words;
    const char *file; /* of the function before, and what it says */
    hk_py_subsystem by_file;
} classes;

/* By the first name that a function has. */
static void visit_symbol(void *user, uintptr_t start, const char *name, const char *file)
{
    classes *c = user;
    size_t i = hk_py_functions_number(&c->functions, start);
    if (i == c->functions.count || c->subsystems[i] != HK_PY_UNKNOWN) return;
    if (file != c->file) {
        c->file = file;
        c->by_file = file != NULL ? hk_py_subsystem_of_file(c->words, file) : HK_PY_CORE;
    }
    c->subsystems[i] = (unsigned char)hk_py_subsystem_of(c->words, name, c->by_file);
}

static void put_together(const classes *c, hk_py_parts *parts, uintptr_t low)
{
    size_t count = c->functions.count; /* room for more than there are */
    uint32_t *starts = hk_py_pages(count * (sizeof *starts + 1));
    if (starts == NULL) return;
    *parts = (hk_py_parts){starts, (unsigned char *)(starts + count), 0};
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && c->subsystems[i] == c->subsystems[i - 1]) continue;
        starts[parts->count] = (uint32_t)(c->functions.starts[i] - low);
        parts->subsystems[parts->count++] = c->subsystems[i];
    }
}

hk_symbols_source hk_py_parts_find(hk_py_parts *parts, const hk_image *core, uintptr_t code)
{
    hk_symbols_source source = HK_SYMBOLS_NONE;
    classes c = {.words = hk_py_words_open()};
    if (c.words == NULL) return source;
    hk_py_functions_open(&c.functions, code);
    size_t count = core->high - core->low <= UINT32_MAX ? c.functions.count : 0;
    c.subsystems = count > 0 ? hk_py_pages(count) : NULL;
    if (c.subsystems != NULL) {
        memset(c.subsystems, HK_PY_UNKNOWN, count);
        source = hk_symbols_read(core, "/usr/lib/debug", visit_symbol, &c);
        if (source <= HK_SYMBOLS_DYNSYM)
            hk_py_learn(core, &c.functions, c.words, c.subsystems, dlsym(RTLD_DEFAULT, "PyType_Type"));
        put_together(&c, parts, core->low);
        munmap(c.subsystems, count);
    }
    hk_py_functions_close(&c.functions);
    hk_py_words_close(c.words);
    return source;
}

#endif
