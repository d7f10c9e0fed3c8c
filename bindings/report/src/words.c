#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void hkr_clean(char *text, size_t size, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < size; n++) {
        const unsigned char c = (unsigned char)from[n], next = (unsigned char)from[n + 1];
        /* Below a blank, DEL, and C2 80 to C2 9F, the same again in UTF-8. */
        const bool control = c < 0x20 || c == 0x7F || (c == 0xC2 && next >= 0x80 && next < 0xA0);
        text[n] = control ? '?' : (char)c;
        if (control && c == 0xC2 && n + 2 < size) text[++n] = '?';
    }
    /* Not in the middle of a character. */
    if (from[n])
        while (n > 0 && ((unsigned char)from[n] & 0xC0) == 0x80)
            n--;
    text[n] = '\0';
}

bool hkr_fail(char *error, const char *format, ...)
{
    char text[HKR_ERROR];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hkr_clean(error, HKR_ERROR, text);
    return false;
}

void hkr_frame_text(char *text, size_t size, const hkr_frame *f)
{
    char whole[1024];
    const char *slash = strrchr(f->module, '/');
    if (*f->file && f->line)
        snprintf(whole, sizeof whole, "%.500s (%.500s:%d)", f->function, f->file, f->line);
    else if (*f->file) snprintf(whole, sizeof whole, "%.500s (%.500s)", f->function, f->file);
    else if (*f->module)
        snprintf(whole, sizeof whole, "%.500s [%.500s]", f->function, slash ? slash + 1 : f->module);
    else snprintf(whole, sizeof whole, "%.1000s", f->function);
    hkr_clean(text, size, whole);
}

const hkr_frame *hkr_site(const hkr_context *c, const hkr_stack *s)
{
    for (size_t i = 0; i < s->depth; i++)
        if (!c->frames[s->frames[i]].native) return &c->frames[s->frames[i]];
    return s->depth > 0 ? &c->frames[s->frames[0]] : NULL;
}

const char *hkr_bytes(char text[32], double bytes, bool sign)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    const char *format = sign ? "%+.2f %s" : "%.2f %s";
    if (fabs(bytes) < 1024) {
        snprintf(text, 32, sign ? "%+.0f B" : "%.0f B", bytes);
        return text;
    }
    int unit = 0;
    for (bytes /= 1024; fabs(bytes) >= 1024 && unit < 3; unit++)
        bytes /= 1024;
    snprintf(text, 32, format, bytes, units[unit]);
    return text;
}

size_t hkr_stacks(hkr_report *const *reports, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < reports[i]->context_count; c++)
            n += reports[i]->contexts[c].stack_count;
    return n;
}
