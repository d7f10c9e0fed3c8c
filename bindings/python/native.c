#define _GNU_SOURCE
#include "native.h"

#include "parts.h"
#include "python.h"
#include "seldom.h"
#include "subsystem.h"

#include <errno.h>
#include <stdatomic.h>

#ifdef HK_CFI_WALK

hk_site_word hk_py_sites[HK_PY_SITE_SLOTS + HK_SITE_PROBES];
hk_site_word *hk_py_sites_at_hand = hk_py_sites;

void hk_py_native_scoped(void)
{
    static hk_site_word none[HK_PY_SITE_SLOTS]; /* never written to: no memory */
    __atomic_store_n(&hk_py_sites_at_hand, none, __ATOMIC_RELEASE);
}

enum { FRAMES_MAX = 12, STEM_MAX = 40 };

/* The image with CPython in it. */
static hk_image core;
static uintptr_t core_code; /* an address in its code */
static atomic_bool awaited;
static hk_py_parts parts;
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
        if (!awaited) hk_py_seldom_leave();
        return LABEL;
    }
    /* the call may be the last instruction of its function */
    unsigned char subsystem = hk_py_part_at(&parts, pc - 1 - core.low);
    if (subsystem == HK_PY_UNKNOWN) return NAMELESS;
    if (subsystem == HK_PY_HELPER) return HELPER;
    *label = labels[subsystem];
    return LABEL;
}

/* What was read for a new place. */
static void give_back(void)
{
    hk_cfi_give_back(core_code);
    hk_py_seldom_leave();
}

void hk_py_native_await(bool is_awaited)
{
    awaited = is_awaited;
    if (!is_awaited) give_back();
}

/* How far above its own the frame is that called the one with this return address: as kept of a place, 0 =
 * unknown. A frame that is found by the frame pointer may have any size (alloca), except in a helper. */
static unsigned climb(uintptr_t pc, uintptr_t sp, bool helper)
{
    hk_cfi_rule rule;
    unsigned words = 0;
    if (hk_cfi_rule_at(pc, &rule) && (helper || !rule.cfa_from_fp)) {
        hk_cfi_frame frame = {pc, sp, 0};
        if (rule.cfa_from_fp) frame = hk_cfi_frame_at(sp);
        if (frame.sp == sp) words = hk_site_climb(hk_cfi_up(frame, &rule).sp - sp);
    }
    return words;
}

/* What to remember of a return address. A function without a name is taken for part of its caller. */
static unsigned information(uintptr_t pc, uintptr_t sp)
{
    hak_label label;
    answer is = judge(pc, &label);
    unsigned words = is != LABEL ? climb(pc, sp, is == HELPER) : 0;
    if (is != LABEL && !awaited) give_back();
    return words != 0 ? words : label;
}

hak_label hk_py_native_find(uintptr_t sp)
{
    int error = errno;
    hak_label label = labels[HK_PY_CORE];
    for (int i = 0; i < FRAMES_MAX; i++) {
        uintptr_t pc = ((const uintptr_t *)sp)[-1];
        unsigned info = (unsigned)(hk_site_fetch(hk_py_sites, HK_PY_SITE_SLOTS, pc) & HK_SITE_INFO);
        if (info == 0) {
            info = information(pc, sp);
            hk_site_put(hk_py_sites, HK_PY_SITE_SLOTS, pc, info);
        }
        if (!(info & HK_SITE_CLIMB)) {
            label = (hak_label)info;
            break;
        }
        sp += (info & (HK_SITE_CLIMB - 1)) * sizeof(uintptr_t);
    }
    errno = error;
    return label;
}

const char *hk_py_native_start(hak_ctx *ctx)
{
    const hk_py_python *python = hk_py_python_find();
    if (!python || !hk_image_at((uintptr_t)python->object_malloc, &core)) return "no CPython in this process";
    if (!hk_py_labels_begin()) return "no memory for labels";
    for (int i = 0; i < HK_PY_SUBSYSTEM_COUNT; i++) {
        labels[i] = hak_label_define(ctx, hk_py_subsystem_name((hk_py_subsystem)i));
        if (labels[i] == 0) return "no memory for labels";
    }
    /* without parts there is still which library it was */
    core_code = (uintptr_t)python->object_malloc + 1;
    if (parts.count == 0) source = hk_py_parts_find(&parts, &core, core_code);
    hk_cfi_give_back(core_code);
    return NULL;
}

hk_symbols_source hk_py_native_source(void)
{
    return source;
}

#else

void hk_py_native_scoped(void)
{
}

void hk_py_native_await(bool is_awaited)
{
    (void)is_awaited;
}

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
