#define _GNU_SOURCE
#include "native/constructor.h"

#include "cfi.h"

#ifdef HKC_CFI_WALK

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { OB_TYPE = 8, TYPE_NAME = 24, BACK_MOST = 64 };

typedef struct segment {
    uintptr_t low, high;
} segment;

static uintptr_t the_type; /* whose objects types are */
static segment data, code; /* of the image with the types */

static bool holds(segment s, uintptr_t at, size_t size)
{
    return at >= s.low && at < s.high && s.high - at >= size;
}

static int find_segments(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size, (void)user;
    segment executable = {0, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        const uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        const segment s = {low, low + ph->p_memsz};
        if (ph->p_type != PT_LOAD) continue;
        if (ph->p_flags & PF_X) executable = s;
        if (holds(s, the_type, 1)) data = s;
    }
    if (data.low != 0) code = executable;
    return data.low != 0;
}

void hkp_constructor_start(const void *type_type)
{
    the_type = (uintptr_t)type_type;
    if (type_type) dl_iterate_phdr(find_segments, NULL);
}

static uintptr_t word(uintptr_t at)
{
    uintptr_t value;
    memcpy(&value, (const void *)at, sizeof value);
    return value;
}

static bool is_type(uintptr_t at)
{
    return at % sizeof(uintptr_t) == 0 && holds(data, at, TYPE_NAME + sizeof(uintptr_t)) &&
           word(at + OB_TYPE) == the_type && word(at + TYPE_NAME) != 0;
}

#ifdef __x86_64__

enum { CALL_BYTES = 5 };

static bool is_call(const uint8_t *at)
{
    return *at == 0xe8;
}

/* What `mov $address, %edi` or `lea distance(%rip), %rdi` puts there; 0 = it is neither. */
static uintptr_t argument(const uint8_t *at)
{
    static const uint8_t relative[] = {0x48, 0x8d, 0x3d};
    const size_t head = at[0] == 0xbf ? 1 : sizeof relative;
    uint32_t number;
    memcpy(&number, at + head, sizeof number);
    if (head == 1) return number;
    if (memcmp(at, relative, sizeof relative) != 0) return 0;
    return (uintptr_t)at + head + sizeof number + (uintptr_t)(intptr_t)(int32_t)number;
}

/* The nearest one before the call: an address of a type is hardly ever there by chance. */
static uintptr_t type_before(const uint8_t *call)
{
    for (size_t back = CALL_BYTES; back <= BACK_MOST; back++) {
        const uintptr_t type = argument(call - back);
        if (is_type(type)) return type;
    }
    return 0;
}

#else

enum { CALL_BYTES = 4, REGISTER = 31, FIRST_KEPT = 19, ADD_12 = 22 };

static uint32_t instruction(const uint8_t *at)
{
    uint32_t w;
    memcpy(&w, at, sizeof w);
    return w;
}

static bool is_call(const uint8_t *at)
{
    return instruction(at) >> 26 == 0x25; /* bl */
}

/* What `adr` and `adrp` reach, whose distance is in two parts: bytes, or pages of 4 KiB from this one. */
static uintptr_t reached(uint32_t w, uintptr_t at)
{
    const int64_t high =
        (int64_t)((uint64_t)(w >> 5 & 0x7ffff) << 45) >> 43; /* 19 bits with a sign, times 4 */
    const uintptr_t distance = (uintptr_t)high | (w >> 29 & 3);
    return w >> 31 ? (at & ~(uintptr_t)4095) + distance * 4096 : at + distance;
}

/* Follows the first argument up from the call: through additions of constants and moves to the address from
 * which they count. 0 = something else was there. */
static uintptr_t type_before(const uint8_t *call)
{
    uint32_t of = 0; /* the register */
    uintptr_t sum = 0;
    for (const uint8_t *at = call - CALL_BYTES; at >= call - BACK_MOST; at -= CALL_BYTES) {
        const uint32_t w = instruction(at);
        const bool is_bl = w >> 26 == 0x25, is_blr = (w & 0xfffffc1f) == 0xd63f0000;
        if ((is_bl || is_blr) && of < FIRST_KEPT) return 0;
        if ((w & REGISTER) != of || is_bl || is_blr) continue;
        if (w >> 23 == 0x122) { /* add, of 12 bits */
            sum += (uintptr_t)(w >> 10 & 4095) << (w >> ADD_12 & 1 ? 12 : 0);
            of = w >> 5 & REGISTER;
        } else if ((w & 0xffe0ffe0) == 0xaa0003e0) { /* mov */
            of = w >> 16 & REGISTER;
        } else {
            const uintptr_t type = (w >> 24 & 0x1f) == 0x10 ? reached(w, (uintptr_t)at) + sum : 0;
            return is_type(type) ? type : 0;
        }
    }
    return 0;
}

#endif

hkp_subsystem hkp_constructor_part(uintptr_t pc)
{
    const uint8_t *call = (const uint8_t *)pc - CALL_BYTES;
    if (!holds(code, pc - CALL_BYTES - BACK_MOST, CALL_BYTES + BACK_MOST) || !is_call(call)) return HKP_CORE;
    const uintptr_t type = type_before(call);
    hkp_words *words = type != 0 ? hkp_words_open() : NULL;
    if (!words) return HKP_CORE;
    const hkp_subsystem part = hkp_subsystem_of_type(words, (const char *)word(type + TYPE_NAME));
    hkp_words_close(words);
    return part;
}

#endif
