#define _GNU_SOURCE
#include "native/native.h"

#include "base/cold.h"
#include "base/cpython.h"
#include "heap/labels.h"
#include "native/constructor.h"
#include "native/fixed.h"
#include "native/parts.h"
#include "native/subsystem.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { STEM_MAX = 40 };

/* Libraries that allocate for their callers: strdup, operator new, dlopen. What they keep for themselves is
 * theirs where their frames cannot be passed. */
bool hkp_native_for_others(const hkc_image *image)
{
    static const char *const names[] = {"libc", "libstdc++", "ld-linux-x86-64", "ld-linux-aarch64",
                                        "libhakmem_pymalloc"};
    char name[STEM_MAX];
    hkc_image_stem(image, name, sizeof name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

hkc_image hkp_native_core(void)
{
    const hkp_python *python = hkp_python_find();
    hkc_image image = {0};
    if (python && !hkc_image_at((uintptr_t)python->object_malloc, &image)) image = (hkc_image){0};
    return image;
}

#ifdef HKC_CFI_WALK

hkc_site_word hkp_sites[HKP_SITE_SLOTS + HKC_SITE_PROBES];
hkc_site_word *hkp_sites_at_hand = hkp_sites;

void hkp_native_scoped(void)
{
    static hkc_site_word none[HKP_SITE_SLOTS]; /* never written to: no memory */
    __atomic_store_n(&hkp_sites_at_hand, none, __ATOMIC_RELEASE);
}

enum { FRAMES_MAX = 12 };

/* The image with CPython in it. */
static hkc_image core;
static uintptr_t core_code; /* an address in its code */
static atomic_bool awaited;
static hkp_parts parts;
static hkc_symbols_source source;
static hak_label labels[HKP_SUBSYSTEM_COUNT];

/* A library other than CPython's, by name. The program may be a mere launcher of a libpython. */
static hak_label label_of_image(const hkc_image *image)
{
    char name[4 + STEM_MAX] = "ext:";
    hkc_image_stem(image, name + 4, STEM_MAX);
    hak_label label = name[4] != 0 ? hkp_label_define(name) : 0;
    return label != 0 ? label : labels[HKP_CORE];
}

typedef enum answer { LABEL, HELPER, NAMELESS } answer;

static answer judge(uintptr_t pc, hak_label *label)
{
    *label = labels[HKP_CORE];
    if (pc - core.low >= core.high - core.low) {
        hkc_image image;
        answer is = LABEL;
        if (hkc_image_at(pc, &image)) {
            *label = label_of_image(&image);
            if (hkp_native_for_others(&image)) is = NAMELESS;
        }
        if (is == LABEL && !awaited) hkp_cold_leave();
        return is;
    }
    /* the call may be the last instruction of its function */
    unsigned char subsystem = hkp_part_at(&parts, pc - 1 - core.low);
    if (subsystem == HKP_HELPER) return HELPER;
    if (subsystem == HKP_CORE || subsystem == HKP_UNKNOWN) {
        const hkp_subsystem made = hkp_constructor_part(pc);
        if (made != HKP_CORE) subsystem = (unsigned char)made;
        if (!awaited) hkp_cold_leave();
    }
    if (subsystem == HKP_UNKNOWN) return NAMELESS;
    *label = labels[subsystem];
    return LABEL;
}

/* What was read for a new place. */
static void give_back(void)
{
    hkc_cfi_give_back(core_code);
    hkp_cold_leave();
}

void hkp_native_await(bool is_awaited)
{
    awaited = is_awaited;
    if (!is_awaited) give_back();
}

#ifdef __x86_64__

/* How far above its own the frame is that called the one with this return address: as kept of a place, 0 =
 * unknown. A frame that is found by the frame pointer may have any size (alloca), except in a helper and
 * where the code tells that it has one. */
static unsigned climb(uintptr_t pc, hkc_cfi_place sp, bool helper)
{
    hkc_cfi_rule rule;
    unsigned words = 0;
    if (hkc_cfi_rule_at(pc, &rule) && (helper || !rule.cfa_from_fp || hkp_frame_is_fixed(pc))) {
        hkc_cfi_frame frame = {pc, sp, 0};
        if (rule.cfa_from_fp) frame = hkc_cfi_frame_at(sp);
        if (frame.sp == sp) words = hkc_site_climb(hkc_cfi_up(frame, &rule).sp - sp);
    }
    return words;
}

#else

/* Whether a function has a frame record is no rule of the processor, and code that was compiled without keeps
 * other things in its register. The unwind tables tell where the record is: there the place must have found
 * it. Then it is there whenever this call returns. 0 = it is not. */
static __attribute__((noinline)) unsigned climb(uintptr_t pc, hkc_cfi_place place, bool helper)
{
    enum { OWN_FRAMES = 8 };
    hkc_cfi_frame frame = HKC_CFI_CALLER();
    hkc_cfi_rule rule;
    (void)helper;
    for (int i = 0; i < FRAMES_MAX + OWN_FRAMES && hkc_cfi_rule_at(frame.pc, &rule); i++) {
        const hkc_cfi_frame up = hkc_cfi_up(frame, &rule);
        const bool record = rule.fp_below != 0 && rule.ra_below + sizeof(uintptr_t) == rule.fp_below;
        if (frame.pc == pc && record && up.sp - rule.fp_below == (uintptr_t)place.record)
            return hkc_site_climb(sizeof(uintptr_t));
        frame = up;
    }
    return 0;
}

#endif

/* What to remember of a return address. A function without a name is taken for part of its caller. */
static unsigned information(uintptr_t pc, hkc_cfi_place place)
{
    hak_label label;
    answer is = judge(pc, &label);
    unsigned words = is != LABEL ? climb(pc, place, is == HELPER) : 0;
    if (is != LABEL && !awaited) give_back();
    return words != 0 ? words : label;
}

hak_label hkp_native_find(hkc_cfi_place place)
{
    int error = errno;
    hak_label label = labels[HKP_CORE];
    for (int i = 0; i < FRAMES_MAX; i++) {
        uintptr_t pc = hkc_cfi_return_at(place);
        unsigned info = (unsigned)(hkc_site_fetch(hkp_sites, HKP_SITE_SLOTS, pc) & HKC_SITE_INFO);
        if (info == 0) {
            info = information(pc, place);
            hkc_site_put(hkp_sites, HKP_SITE_SLOTS, pc, info);
        }
        if (!(info & HKC_SITE_CLIMB)) {
            label = (hak_label)info;
            break;
        }
        place = hkc_cfi_place_up(place, (info & (HKC_SITE_CLIMB - 1)) * sizeof(uintptr_t));
    }
    errno = error;
    return label;
}

const char *hkp_native_start(hak_ctx *ctx)
{
    const hkp_python *python = hkp_python_find();
    core = hkp_native_core();
    if (!python || core.high == 0) return "no CPython in this process";
    if (!hkp_labels_begin()) return "no memory for labels";
    for (int i = 0; i < HKP_SUBSYSTEM_COUNT; i++) {
        labels[i] = hak_label_define(ctx, hkp_subsystem_name((hkp_subsystem)i));
        if (labels[i] == 0) return "no memory for labels";
    }
    /* without parts there is still which library it was */
    core_code = (uintptr_t)python->object_malloc + 1;
    hkp_constructor_start(hkp_symbol("PyType_Type"));
    if (parts.count == 0) source = hkp_parts_find(&parts, &core, core_code);
    hkc_cfi_give_back(core_code);
    return NULL;
}

hkc_symbols_source hkp_native_source(void)
{
    return source;
}

#else

void hkp_native_scoped(void)
{
}

void hkp_native_await(bool is_awaited)
{
    (void)is_awaited;
}

const char *hkp_native_start(hak_ctx *ctx)
{
    (void)ctx;
    return "labels by call site are there for Linux on x86-64 and aarch64";
}

hkc_symbols_source hkp_native_source(void)
{
    return HKC_SYMBOLS_NONE;
}

#endif
