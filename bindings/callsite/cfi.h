/* Frames of machine code: which function a return address belongs to, and where the next one
 * is. From the unwind tables (.eh_frame) of the images, which stripped libraries have too. No allocation,
 * no lock but that of dl_iterate_phdr; not for the allocation path all the same. */
#ifndef HKC_CFI_H
#define HKC_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elsewhere there are no frames to go by. */
#if defined(__x86_64__) && defined(__linux__)
#define HKC_CFI_WALK 1

/* A return address, and the registers when the call before it has returned. */
typedef struct hkc_cfi_frame {
    uintptr_t pc, sp, fp;
} hkc_cfi_frame;

/* The sp of hkc_cfi_caller, in a function that is not inlined; it then has a frame pointer. */
#define HKC_CFI_CALLER_SP() ((uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uintptr_t))

/* The same without a frame pointer, for who does not ask for the frame. */
#define HKC_CFI_SP_ABOVE() ((uintptr_t)__builtin_dwarf_cfa())

/* The frame of the caller of the function that used HKC_CFI_CALLER_SP. */
static inline hkc_cfi_frame hkc_cfi_caller(uintptr_t sp)
{
    const uintptr_t *stack = (const uintptr_t *)sp;
    hkc_cfi_frame frame = {stack[-1], sp, stack[-2]};
    return frame;
}

/* cfa = (cfa_from_fp ? fp : sp) + cfa_offset, which is the caller's sp; the return address is at cfa - 8;
 * the caller's fp is at cfa - fp_below, or in its register when that is 0. */
typedef struct hkc_cfi_rule {
    bool cfa_from_fp;
    size_t cfa_offset, fp_below;
} hkc_cfi_rule;

/* The rule for the frame with this return address; false = none, or not of that form. */
bool hkc_cfi_rule_at(uintptr_t pc, hkc_cfi_rule *rule);
hkc_cfi_frame hkc_cfi_up(hkc_cfi_frame frame, const hkc_cfi_rule *rule);
/* The frame further up the stack with that sp, of HKC_CFI_SP_ABOVE. */
hkc_cfi_frame hkc_cfi_frame_at(uintptr_t sp);

/* The registers that a function leaves to its caller as they were: what the caller keeps in them across a
 * call, a frame further down may have saved. */
enum { HKC_CFI_RBX, HKC_CFI_RBP, HKC_CFI_R12, HKC_CFI_R13, HKC_CFI_R14, HKC_CFI_R15, HKC_CFI_SAVED };

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
    uint32_t below[HKC_CFI_SAVED];
} hkc_cfi_saves;

/* false = none, or not of that form. */
bool hkc_cfi_saves_at(uintptr_t pc, hkc_cfi_saves *saves);
/* From one frame to its caller's, in place. */
static inline void hkc_cfi_climb(hkc_cfi_registers *at, const hkc_cfi_saves *saves)
{
    const uintptr_t cfa = (saves->cfa_from_fp ? at->saved[HKC_CFI_RBP] : at->sp) + saves->cfa_offset;
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        if (saves->below[r] != 0) at->saved[r] = *(const uintptr_t *)(cfa - saves->below[r]);
    at->pc = ((const uintptr_t *)cfa)[-1];
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
