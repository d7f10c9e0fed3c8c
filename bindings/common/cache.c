#define _GNU_SOURCE
#include "common/cache.h"

#include <stdio.h>
#include <stdlib.h>

bool hkc_cache_folder(char *out, size_t size)
{
    const char *within = "/hakmem", *base = secure_getenv("XDG_CACHE_HOME");
    if (!base || base[0] != '/') {
        within = "/.cache/hakmem";
        base = secure_getenv("HOME");
    }
    if (!base || base[0] != '/') return false;
    const int length = snprintf(out, size, "%s%s", base, within);
    return length > 0 && (size_t)length < size;
}
