/* Frames of machine code: which function a return address belongs to, and where the next one
 * is. From the unwind tables (.eh_frame) of the images, which stripped libraries have too. No allocation,
 * no lock but that of dl_iterate_phdr; not for the allocation path all the same. */
#ifndef HKC_CFI_H
#define HKC_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elsewhere there are no frames to go by. */
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__linux__)
#define HKC_CFI_WALK 1

/* A return address, and the registers when the call before it has returned. */
typedef struct hkc_cfi_frame {
    uintptr_t pc, sp, fp;
} hkc_cfi_frame;

/* The registers that a function leaves to its caller as they were: what the caller keeps in them across a
 * call, a frame further down may have saved. */
#ifdef __x86_64__

enum { HKC_CFI_RBX, HKC_CFI_FP, HKC_CFI_R12, HKC_CFI_R13, HKC_CFI_R14, HKC_CFI_R15, HKC_CFI_SAVED };
typedef uint8_t hkc_cfi_mask; /* a bit for each of them */

/* The place of a call, for a quick way up in a function that is not inlined: its sp when it has returned. A
 * call has put the return address below, so that who knows the size of a frame knows the next place. */
typedef uintptr_t hkc_cfi_place;
#define HKC_CFI_SP_ABOVE() ((uintptr_t)__builtin_dwarf_cfa())
static inline uintptr_t hkc_cfi_return_at(hkc_cfi_place place)
{
    return ((const uintptr_t *)place)[-1];
}
static inline hkc_cfi_place hkc_cfi_place_up(hkc_cfi_place place, size_t bytes)
{
    return place + bytes;
}

/* The frame of the caller of the function that uses this. It is not inlined, and gets a frame pointer. */
#define HKC_CFI_CALLER() hkc_cfi_caller_of((uintptr_t)__builtin_frame_address(0))
static inline hkc_cfi_frame hkc_cfi_caller_of(uintptr_t frame)
{
    const uintptr_t *stack = (const uintptr_t *)frame;
    const hkc_cfi_frame caller = {stack[1], frame + 2 * sizeof(uintptr_t), stack[0]};
    return caller;
}

static inline uintptr_t hkc_cfi_plain(uintptr_t return_address)
{
    return return_address;
}

#else

enum { HKC_CFI_X19, HKC_CFI_FP = 10, HKC_CFI_SAVED };
typedef uint16_t hkc_cfi_mask;

/* A return address without its signature: addresses of programs have 48 bits. */
static inline uintptr_t hkc_cfi_plain(uintptr_t return_address)
{
    return return_address & (((uintptr_t)1 << 48) - 1);
}

/* A frame has, somewhere in it, a record that compilers make by default: where that of the caller is, and the
 * return address. The place of a call is its return address, and the record of the frame that it returns to:
 * good after the function's own frame is gone, as where it ends with a jump. */
typedef struct hkc_cfi_place {
    uintptr_t pc;
    const uintptr_t *record;
} hkc_cfi_place;
#define HKC_CFI_SP_ABOVE() hkc_cfi_place_of((const uintptr_t *)__builtin_frame_address(0))
static inline hkc_cfi_place hkc_cfi_place_of(const uintptr_t *record)
{
    const hkc_cfi_place place = {hkc_cfi_plain(record[1]), (const uintptr_t *)record[0]};
    return place;
}
static inline uintptr_t hkc_cfi_return_at(hkc_cfi_place place)
{
    return place.pc;
}
static inline hkc_cfi_place hkc_cfi_place_up(hkc_cfi_place place, size_t bytes)
{
    (void)bytes;
    return hkc_cfi_place_of(place.record);
}

#define HKC_CFI_CALLER()                                                                                     \
    hkc_cfi_caller_of((uintptr_t)__builtin_frame_address(0), (uintptr_t)__builtin_dwarf_cfa())
static inline hkc_cfi_frame hkc_cfi_caller_of(uintptr_t record, uintptr_t sp)
{
    const uintptr_t *words = (const uintptr_t *)record;
    const hkc_cfi_frame caller = {hkc_cfi_plain(words[1]), sp, words[0]};
    return caller;
}

#endif

/* cfa = (cfa_from_fp ? fp : sp) + cfa_offset, which is the caller's sp; the return address is at cfa -
 * ra_below; the caller's fp is at cfa - fp_below, or in its register when that is 0. */
typedef struct hkc_cfi_rule {
    bool cfa_from_fp;
    size_t cfa_offset, fp_below, ra_below;
} hkc_cfi_rule;

/* The rule for the frame with this return address; false = none, or not of that form. */
bool hkc_cfi_rule_at(uintptr_t pc, hkc_cfi_rule *rule);
hkc_cfi_frame hkc_cfi_up(hkc_cfi_frame frame, const hkc_cfi_rule *rule);
/* The frame further up the stack with that sp. */
hkc_cfi_frame hkc_cfi_frame_at(uintptr_t sp);

/* A return address, and these registers when the call before it has returned. */
typedef struct hkc_cfi_registers {
    uintptr_t saved[HKC_CFI_SAVED];
    uintptr_t sp, pc;
} hkc_cfi_registers;

/* Of the call to it: a start to go up from. */
void hkc_cfi_here(hkc_cfi_registers *out);

/* As hkc_cfi_rule; below[r] is where register r was saved, from the cfa down; 0 = it was not. */
typedef struct hkc_cfi_saves {
    bool cfa_from_fp;
    uint32_t cfa_offset;
#ifndef __x86_64__
    uint32_t ra_below; /* 8 there */
#endif
    uint32_t below[HKC_CFI_SAVED];
} hkc_cfi_saves;

/* false = none, or not of that form. */
bool hkc_cfi_saves_at(uintptr_t pc, hkc_cfi_saves *saves);
static inline uint32_t hkc_cfi_ra_below(const hkc_cfi_saves *saves)
{
#ifdef __x86_64__
    (void)saves;
    return sizeof(uintptr_t);
#else
    return saves->ra_below;
#endif
}
/* From one frame to its caller's, in place. */
static inline void hkc_cfi_climb(hkc_cfi_registers *at, const hkc_cfi_saves *saves)
{
    const uintptr_t cfa = (saves->cfa_from_fp ? at->saved[HKC_CFI_FP] : at->sp) + saves->cfa_offset;
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        if (saves->below[r] != 0) at->saved[r] = *(const uintptr_t *)(cfa - saves->below[r]);
    at->pc = hkc_cfi_plain(*(const uintptr_t *)(cfa - hkc_cfi_ra_below(saves)));
    at->sp = cfa;
}

/* Whether an image (the program or a library) has code at pc. */
bool hkc_cfi_in_image(uintptr_t pc);
/* First address of the function of the call that returns to pc; 0 = unknown. */
uintptr_t hkc_cfi_function(uintptr_t pc);
/* First addresses of all functions of the image with code at pc, in order, up to `count` of them. Returns how
 * many there are. A function may be in several parts, each with a beginning. */
size_t hkc_cfi_functions(uintptr_t pc, uintptr_t *starts, size_t count);
/* The pages of the unwind tables of the image with code at pc, which little else reads: they are no longer
 * resident. One call of the OS. */
void hkc_cfi_give_back(uintptr_t pc);

#endif
#endif
