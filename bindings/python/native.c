#define _GNU_SOURCE
#include "native.h"

#include "functions.h"
#include "learn.h"
#include "map.h"
#include "python.h"
#include "subsystem.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#ifdef HK_CFI_WALK

hk_site_word hk_py_sites[HK_PY_SITE_SLOTS + HK_SITE_PROBES];

enum { FRAMES_MAX = 12, STEM_MAX = 40 };

/* The image with CPython in it, and a subsystem for each of its functions, or HK_PY_UNKNOWN. */
static hk_image core;
static unsigned char *subsystems;
static hk_symbols_source source;
static hak_label labels[HK_PY_SUBSYSTEM_COUNT];

/* A library other than CPython's, by name. The program may be a mere launcher of a libpython. */
static hak_label label_of_image(const hk_image *image)
{
    char name[4 + STEM_MAX] = "ext:";
    hk_image_stem(image, name + 4, STEM_MAX);
    hak_label label = name[4] != 0 ? hk_py_label_define(name) : 0;
    return label != 0 ? label : labels[HK_PY_CORE];
}

typedef enum answer { LABEL, HELPER, NAMELESS } answer;

static answer judge(uintptr_t pc, hak_label *label)
{
    *label = labels[HK_PY_CORE];
    if (pc - core.low >= core.high - core.low) {
        hk_image image;
        if (hk_image_at(pc, &image)) *label = label_of_image(&image);
        return LABEL;
    }
    size_t function = subsystems != NULL ? hk_cfi_function_number(pc) : SIZE_MAX;
    unsigned char subsystem = function != SIZE_MAX ? subsystems[function] : HK_PY_UNKNOWN;
    if (subsystem == HK_PY_UNKNOWN) return NAMELESS;
    if (subsystem == HK_PY_HELPER) return HELPER;
    *label = labels[subsystem];
    return LABEL;
}

/* What to remember of a return address. A function without a name is taken for part of its caller. A frame
 * that is found by the frame pointer may have any size (alloca), except in a helper. */
static unsigned information(uintptr_t pc, const hk_cfi_frame *frame)
{
    hak_label label;
    answer is = judge(pc, &label);
    hk_cfi_rule rule;
    if (is == LABEL || !hk_cfi_rule_at(pc, &rule) || (is == NAMELESS && rule.cfa_from_fp)) return label;
    unsigned climb = hk_site_climb(hk_cfi_up(*frame, &rule).sp - frame->sp);
    return climb != 0 ? climb : label;
}

/* An address in its code. */
static uintptr_t core_code(void)
{
    return (uintptr_t)hk_py_python_find()->object_malloc + 1;
}

/* The kernel maps 64 KiB of tables around what is read. Most places are new while the interpreter starts. */
static void give_tables_back(void)
{
    enum { START = 128 };
    static atomic_uint resolved;
    if (atomic_fetch_add_explicit(&resolved, 1, memory_order_relaxed) >= START) hk_cfi_give_back(core_code());
}

/* Reads unwind tables from the hook on, to know the frame pointer at the address that is new. */
static hak_label resolve(hk_cfi_frame frame)
{
    for (int i = 0; i < FRAMES_MAX; i++) {
        unsigned info = (unsigned)(hk_site_find(hk_py_sites, HK_PY_SITE_SLOTS, frame.pc) & HK_SITE_INFO);
        if (info == 0) {
            info = information(frame.pc, &frame);
            hk_site_put(hk_py_sites, HK_PY_SITE_SLOTS, frame.pc, info);
        }
        hk_cfi_rule rule;
        if (!(info & HK_SITE_CLIMB)) return (hak_label)info;
        if (!hk_cfi_rule_at(frame.pc, &rule)) break;
        frame = hk_cfi_up(frame, &rule);
    }
    return labels[HK_PY_CORE];
}

hak_label hk_py_native_find(uintptr_t sp)
{
    const uintptr_t first = sp;
    for (;;) {
        uint64_t word = hk_site_fetch(hk_py_sites, HK_PY_SITE_SLOTS, ((const uintptr_t *)sp)[-1]);
        if (word == 0) break;
        if (!(word & HK_SITE_CLIMB)) return (hak_label)(word & HK_SITE_INFO);
        sp += (word & (HK_SITE_CLIMB - 1)) * sizeof(uintptr_t);
    }
    int error = errno;
    hak_label label = resolve(hk_cfi_frame_at(first));
    give_tables_back();
    errno = error;
    return label;
}

/* While functions are classified. */
typedef struct classes {
    hk_py_functions functions;
    hk_py_words *words;
    const char *file; /* of the function before, and what it says */
    hk_py_subsystem by_file;
} classes;

/* By the first name that a function has. */
static void visit_symbol(void *user, uintptr_t start, const char *name, const char *file)
{
    classes *c = user;
    size_t i = hk_py_functions_number(&c->functions, start);
    if (i == c->functions.count || subsystems[i] != HK_PY_UNKNOWN) return;
    if (file != c->file) {
        c->file = file;
        c->by_file = file != NULL ? hk_py_subsystem_of_file(c->words, file) : HK_PY_CORE;
    }
    subsystems[i] = (unsigned char)hk_py_subsystem_of(c->words, name, c->by_file);
}

/* All functions at once: a byte for each is less than the pages of names that single look-ups would keep. */
static void classify(void)
{
    classes c = {.words = hk_py_words_open()};
    if (c.words == NULL) return;
    hk_py_functions_open(&c.functions, core_code());
    subsystems = c.functions.count > 0 ? hk_py_pages(c.functions.count) : NULL;
    if (subsystems != NULL) {
        memset(subsystems, HK_PY_UNKNOWN, c.functions.count);
        source = hk_symbols_read(&core, "/usr/lib/debug", visit_symbol, &c);
        if (source <= HK_SYMBOLS_DYNSYM)
            hk_py_learn(&core, &c.functions, c.words, subsystems, dlsym(RTLD_DEFAULT, "PyType_Type"));
    }
    hk_py_functions_close(&c.functions);
    hk_py_words_close(c.words);
}

const char *hk_py_native_start(hak_ctx *ctx)
{
    const hk_py_python *python = hk_py_python_find();
    if (!python || !hk_image_at((uintptr_t)python->object_malloc, &core)) return "no CPython in this process";
    for (int i = 0; i < HK_PY_SUBSYSTEM_COUNT; i++) {
        labels[i] = hak_label_define(ctx, hk_py_subsystem_name((hk_py_subsystem)i));
        if (labels[i] == 0) return "no memory for labels";
    }
    /* without functions there is still which library it was */
    if (subsystems == NULL) classify();
    return NULL;
}

hk_symbols_source hk_py_native_source(void)
{
    return source;
}

#else

const char *hk_py_native_start(hak_ctx *ctx)
{
    (void)ctx;
    return "labels by call site are there for x86-64 Linux";
}

hk_symbols_source hk_py_native_source(void)
{
    return HK_SYMBOLS_NONE;
}

#endif
