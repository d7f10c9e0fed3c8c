#include "common/cache.h"

#include <stdio.h>
#include <stdlib.h>

bool hkc_cache_folder(char *out, size_t size)
{
    const char *base = getenv("LOCALAPPDATA");
    if (!base || base[0] == '\0') return false;
    const int length = snprintf(out, size, "%s\\hakmem", base);
    return length > 0 && (size_t)length < size;
}
