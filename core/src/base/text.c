#include "base/text.h"

void hk_text_put(hk_text *t, const char *s)
{
    for (; *s && t->at + 1 < t->room; s++)
        t->out[t->at++] = *s;
}

void hk_text_number(hk_text *t, uintptr_t n, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n);
    if (base == 16) hk_text_put(t, "0x");
    hk_text_put(t, digits + at);
}

size_t hk_text_end(hk_text *t)
{
    if (t->room) t->out[t->at] = 0;
    return t->at;
}
