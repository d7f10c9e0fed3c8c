/* Structs of the interface that begin with their size, of any version of the header. */
#include "base/base.h"

void hk_sized_init(void *to, size_t size)
{
    memset(to, 0, size);
    memcpy(to, &size, sizeof size);
}

/* Where it is inlined, gcc 12 at -O3 warns of sizes that the caller's struct does not have. */
HK_NOINLINE void hk_sized_write(void *to, const void *from, size_t known)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    if (size > known) memset((char *)to + known, 0, size - known);
    memcpy(to, from, hk_min(size, known));
    memcpy(to, &size, sizeof size);
}

bool hak_sized_copy(void *to, size_t known, const void *from)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    /* Structs end at a multiple of 8 bytes, as their members do: an end within 8 bytes is a broken size. */
    if (size < sizeof size || size % sizeof size || (size > known && size - known > HK_STRUCT_TAIL_MOST))
        return false;
    for (size_t i = known; i < size; i++)
        if (((const char *)from)[i]) return false;
    memset(to, 0, known);
    memcpy(to, from, hk_min(size, known));
    memcpy(to, &known, sizeof known);
    return true;
}
