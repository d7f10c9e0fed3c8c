#include "common/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool hkc_cache_folder(char *out, size_t size)
{
    const char *home = issetugid() ? NULL : getenv("HOME");
    if (!home || home[0] != '/') return false;
    const int length = snprintf(out, size, "%s/Library/Caches/hakmem", home);
    return length > 0 && (size_t)length < size;
}
