#define _GNU_SOURCE
#include "text.h"

#include <string.h>

/* Half of a surrogate pair, which JavaScript allows alone and UTF-8 does not, becomes U+FFFD. What is longer
 * than it may be ends with a whole character. */
size_t text_make_utf8(char *text, size_t size, size_t most)
{
    for (char *at = text; (at = memchr(at, '\xed', (size_t)(text + size - at))); at++) {
        if (text + size - at >= 3 && (at[1] & 0x20)) memcpy(at, "\xef\xbf\xbd", 3);
    }
    if (size <= most) return size;
    size = most;
    while (size > 0 && (text[size] & 0xc0) == 0x80)
        size--;
    return size;
}

void text_write_json(FILE *to, const char *text, size_t size)
{
    putc('"', to);
    for (const char *at = text; at < text + size; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '"' || byte == '\\') fprintf(to, "\\%c", byte);
        else if (byte == '\n') fputs("\\n", to);
        else if (byte < 0x20 || byte == 0x7f) fprintf(to, "\\u%04x", byte);
        else putc(byte, to);
    }
    putc('"', to);
}
