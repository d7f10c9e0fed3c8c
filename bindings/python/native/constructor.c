#define _GNU_SOURCE
#include "native/constructor.h"

#include "cfi.h"

#ifdef HKC_CFI_WALK

#include <link.h>
#include <stddef.h>
#include <string.h>

enum { OB_TYPE = 8, TYPE_NAME = 24, CALL_BYTES = 5, BACK_MOST = 64 };

static struct {
    uintptr_t type_type, low, high; /* the segment with the types */
} data;

static int find_segment(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size, (void)user;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        const uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type != PT_LOAD || data.type_type - low >= ph->p_memsz) continue;
        data.low = low;
        data.high = low + ph->p_memsz;
        return 1;
    }
    return 0;
}

void hkp_constructor_start(const void *type_type)
{
    data.type_type = (uintptr_t)type_type;
    if (type_type) dl_iterate_phdr(find_segment, NULL);
}

static uintptr_t word(uintptr_t at)
{
    uintptr_t value;
    memcpy(&value, (const void *)at, sizeof value);
    return value;
}

static bool is_type(uintptr_t at)
{
    return at % sizeof(uintptr_t) == 0 && at >= data.low && at < data.high &&
           data.high - at > TYPE_NAME + sizeof(uintptr_t) && word(at + OB_TYPE) == data.type_type &&
           word(at + TYPE_NAME) != 0;
}

/* What `mov $address, %edi` or `lea distance(%rip), %rdi` puts there; 0 = it is neither. */
static uintptr_t argument(const uint8_t *code)
{
    static const uint8_t relative[] = {0x48, 0x8d, 0x3d};
    const size_t head = code[0] == 0xbf ? 1 : sizeof relative;
    uint32_t number;
    memcpy(&number, code + head, sizeof number);
    if (head == 1) return number;
    if (memcmp(code, relative, sizeof relative) != 0) return 0;
    return (uintptr_t)code + head + sizeof number + (uintptr_t)(intptr_t)(int32_t)number;
}

/* The nearest one before the call: an address of a type is hardly ever there by chance. */
hkp_subsystem hkp_constructor_part(uintptr_t pc)
{
    const uint8_t *call = (const uint8_t *)pc - CALL_BYTES;
    if (*call != 0xe8) return HKP_CORE;
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
