#define _GNU_SOURCE
#include "native.h"

#include "learn.h"
#include "python.h"
#include "subsystem.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#ifdef HK_CFI_WALK

hk_site_word hk_py_sites[HK_PY_SITE_SLOTS + HK_SITE_PROBES];

enum { FRAMES_MAX = 12, STEM_MAX = 40 };

/* The image with CPython in it, and the names of its functions. */
static hk_image core;
static hk_symbols symbols;
static hk_py_learnt learnt; /* where there are few names */
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
    uintptr_t start = hk_cfi_function(pc);
    hk_symbol symbol;
    bool named = start != 0 && hk_symbols_find(&symbols, start, &symbol);
    hk_py_subsystem subsystem =
        named ? hk_py_subsystem_of(symbol.name, symbol.file) : hk_py_learnt_find(&learnt, start);
    if (subsystem == HK_PY_HELPER) return HELPER;
    if (!named && subsystem == HK_PY_CORE) return NAMELESS;
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

hak_label hk_py_native_find(uintptr_t sp, uintptr_t fp)
{
    const hk_cfi_frame first = {((const uintptr_t *)sp)[-1], sp, fp};
    for (;;) {
        uint64_t word = hk_site_fetch(hk_py_sites, HK_PY_SITE_SLOTS, ((const uintptr_t *)sp)[-1]);
        if (word == 0) break;
        if (!(word & HK_SITE_CLIMB)) return (hak_label)(word & HK_SITE_INFO);
        sp += (word & (HK_SITE_CLIMB - 1)) * sizeof(uintptr_t);
    }
    int error = errno;
    hak_label label = resolve(first);
    errno = error;
    return label;
}

const char *hk_py_native_start(hak_ctx *ctx)
{
    const hk_py_python *python = hk_py_python_find();
    if (!python || !hk_image_at((uintptr_t)python->object_malloc, &core)) return "no CPython in this process";
    for (int i = 0; i < HK_PY_SUBSYSTEM_COUNT; i++) {
        labels[i] = hak_label_define(ctx, hk_py_subsystem_name((hk_py_subsystem)i));
        if (labels[i] == 0) return "no memory for labels";
    }
    /* without a file of names there is still which library it was */
    if (symbols.source == HK_SYMBOLS_NONE) hk_symbols_open(&symbols, &core, "/usr/lib/debug");
    if (symbols.source <= HK_SYMBOLS_DYNSYM && learnt.subsystems.count == 0)
        hk_py_learn(&learnt, &core, &symbols, dlsym(RTLD_DEFAULT, "PyType_Type"));
    return NULL;
}

hk_symbols_source hk_py_native_source(void)
{
    return symbols.source;
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
