#include "base/text.h"

void hk_text_put(hk_text *t, const char *s)
{
    for (; *s && t->at + 1 < t->room; s++)
        t->out[t->at++] = *s;
}

/* Below a blank, DEL, and C2 80 to C2 9F, the same again in UTF-8. */
void hk_text_name(hk_text *t, const char *s)
{
    for (; *s && t->at + 1 < t->room; s++) {
        unsigned char c = (unsigned char)*s;
        bool two = c == 0xC2 && ((unsigned char)s[1] & 0xE0) == 0x80;
        t->out[t->at++] = c < 0x20 || c == 0x7F || two ? '?' : *s;
        s += two;
    }
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
