/* Text without stdio, for signal handlers: cut where the room ends. */
#ifndef HK_TEXT_H
#define HK_TEXT_H

#include "base/base.h"

typedef struct hk_text {
    char *out;
    size_t at, room; /* the last byte of the room is for a zero */
} hk_text;

void hk_text_put(hk_text *t, const char *s);
/* A name that may be a guest's: control characters, newlines too, become '?'. */
void hk_text_name(hk_text *t, const char *s);
/* base 16 with 0x, or 10. */
void hk_text_number(hk_text *t, uintptr_t n, unsigned base);
/* Ends it. Returns its bytes without the zero. */
size_t hk_text_end(hk_text *t);

#endif
