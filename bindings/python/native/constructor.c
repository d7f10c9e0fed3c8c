#define _GNU_SOURCE
#include "native/constructor.h"

#include "cfi.h"

#if defined(HKC_CFI_WALK) && defined(__x86_64__)

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { OB_TYPE = 8, TYPE_NAME = 24, CALL_BYTES = 5, BACK_MOST = 64 };

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
hkp_subsystem hkp_constructor_part(uintptr_t pc)
{
    const uint8_t *call = (const uint8_t *)pc - CALL_BYTES;
    if (!holds(code, pc - CALL_BYTES - BACK_MOST, CALL_BYTES + BACK_MOST) || *call != 0xe8) return HKP_CORE;
    for (size_t back = CALL_BYTES; back <= BACK_MOST; back++) {
        const uintptr_t type = argument(call - back);
        if (!is_type(type)) continue;
        hkp_words *words = hkp_words_open();
        if (!words) return HKP_CORE;
        const hkp_subsystem part = hkp_subsystem_of_type(words, (const char *)word(type + TYPE_NAME));
        hkp_words_close(words);
        return part;
    }
    return HKP_CORE;
}

#endif
