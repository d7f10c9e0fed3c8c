#include "native/fixed.h"

#include "cfi.h"

#if defined(HKC_CFI_WALK) && defined(__x86_64__) /* elsewhere frame records tell */

#include <stddef.h>

enum { CODE_MOST = 1 << 16 };

/* What alloca and arrays of variable length are compiled to, `sub register, %rsp` in one of its two forms,
 * and `and $number, %rsp`, which aligns. Other instructions that have these bytes only make a frame look as
 * if it were not fixed. */
static bool moves_freely(const uint8_t *code)
{
    if (code[0] != 0x48 && code[0] != 0x4c && code[0] != 0x49) return false;
    return (code[1] == 0x29 && (code[2] & 0xc7) == 0xc4) || (code[1] == 0x2b && (code[2] & 0x38) == 0x20) ||
           ((code[1] == 0x81 || code[1] == 0x83) && code[2] == 0xe4);
}

bool hkp_frame_is_fixed(uintptr_t pc)
{
    const uintptr_t start = hkc_cfi_function(pc);
    if (start == 0 || pc - start > CODE_MOST) return false;
    for (uintptr_t at = start; at + 3 <= pc; at++)
        if (moves_freely((const uint8_t *)at)) return false;
    return true;
}

#endif
