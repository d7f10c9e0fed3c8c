#include "profile/known.h"

#include "lines/site.h"

#include <string.h>

bool hkp_known_ends(const char *text, const char *end)
{
    const size_t n = strlen(text), most = strlen(end);
    return n >= most && strcmp(text + n - most, end) == 0;
}

bool hkp_known_has(hkp_known *k, uint32_t number)
{
    hkp_site_info info;
    for (; hkp_site_at(k->seen, &info); k->seen++)
        if (k->count < HKP_KNOWN_LINES && hkp_known_ends(info.function, k->function) &&
            hkp_known_ends(info.file, k->file))
            k->lines[k->count++] = k->seen;
    for (uint32_t i = 0; i < k->count; i++)
        if (k->lines[i] == number) return true;
    return false;
}
