/* Frames of the runtime's machine code: where a function begins, and how to get from a return address to
 * the one above it. Read from the images' unwind tables, which stripped libraries have too. Not for the
 * allocation path. One thread at a time. */
#ifndef HK_LUA_CFI_H
#define HK_LUA_CFI_H

#include <stdbool.h>
#include <stdint.h>

/* Elsewhere labels come from type tags alone. */
#if defined(__x86_64__) && defined(__linux__)
#define HK_CFI_WALK 1
/* The frame of the caller, in a function that is not inlined. */
#define HK_CFI_CALLER()                                                                                      \
    ((hk_cfi_frame){((const uintptr_t *)__builtin_frame_address(0))[1],                                      \
                    (uintptr_t)((const uintptr_t *)__builtin_frame_address(0) + 2),                          \
                    ((const uintptr_t *)__builtin_frame_address(0))[0]})
#endif

/* The registers that a walk needs, as they are when the call before `pc` has returned. */
typedef struct hk_cfi_frame {
    uintptr_t pc, sp, fp;
} hk_cfi_frame;

/* cfa = (cfa_from_fp ? fp : sp) + cfa_offset; the return address is at cfa - 8; the caller's fp is at
 * cfa - 8 * fp_slot, or unchanged when that is 0; the caller's sp is cfa. */
typedef struct hk_cfi_rule {
    uint16_t cfa_offset; /* a multiple of 8 */
    bool cfa_from_fp;
    uint8_t fp_slot;
} hk_cfi_rule;

/* Whether an image (the program or a library) has code at pc. */
bool hk_cfi_in_image(uintptr_t pc);
/* First address of the function of the call that returns to pc; 0 = unknown. */
uintptr_t hk_cfi_function(uintptr_t pc);
/* The rule of the frame that the call before pc was made from. false = none, or not of this simple form. */
bool hk_cfi_rule_at(uintptr_t pc, hk_cfi_rule *rule);
/* Gives back what hk_cfi_rule_at keeps open. */
void hk_cfi_close(void);

static inline void hk_cfi_step(hk_cfi_frame *frame, hk_cfi_rule rule) {
    uintptr_t cfa = (rule.cfa_from_fp ? frame->fp : frame->sp) + rule.cfa_offset;
    const uintptr_t *stack = (const uintptr_t *)cfa;
    frame->pc = stack[-1];
    frame->sp = cfa;
    if (rule.fp_slot != 0)
        frame->fp = stack[-(int)rule.fp_slot];
}

#endif
