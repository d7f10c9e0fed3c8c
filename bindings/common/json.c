#include "common/json.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- Bytes --------------------------------------------------------------------------------------- */

static void flush(hkc_json *w)
{
    if (w->used > 0 && !w->error) w->error = w->put(w->to, w->buffer, w->used);
    w->used = 0;
}

static void put(hkc_json *w, const char *bytes, size_t n)
{
    while (n > 0) {
        size_t part = n < HKC_JSON_BUFFER - w->used ? n : HKC_JSON_BUFFER - w->used;
        memcpy(w->buffer + w->used, bytes, part);
        w->used += part;
        bytes += part;
        n -= part;
        if (w->used == HKC_JSON_BUFFER) flush(w);
    }
}

static int put_fd(void *to, const char *bytes, size_t n)
{
    const int fd = (int)(intptr_t)to;
    while (n > 0) {
        ssize_t done = write(fd, bytes, (unsigned)n); /* at most HKC_JSON_BUFFER */
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done == 0 ? EIO : errno;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

void hkc_json_open(hkc_json *w, hkc_json_put *to_put, void *to)
{
    w->put = to_put;
    w->to = to;
    w->error = 0;
    w->depth = 0;
    w->arrays = w->filled = 0;
    w->used = 0;
}

void hkc_json_open_fd(hkc_json *w, int fd)
{
    hkc_json_open(w, put_fd, (void *)(intptr_t)fd);
}

int hkc_json_close(hkc_json *w)
{
    flush(w);
    return w->error;
}

/* ---- Text ---------------------------------------------------------------------------------------- */

/* Length of the character of UTF-8 at p; 0 = it is none: too long for its value, a surrogate, above U+10FFFF.
 */
static size_t utf8(const unsigned char *p, size_t n)
{
    unsigned char least = 0x80, most = 0xBF;
    size_t length = p[0] < 0x80   ? 1
                    : p[0] < 0xC2 ? 0
                    : p[0] < 0xE0 ? 2
                    : p[0] < 0xF0 ? 3
                    : p[0] < 0xF5 ? 4
                                  : 0;
    if (length < 2 || length > n) return length < 2 ? length : 0;
    if (p[0] == 0xE0) least = 0xA0;
    if (p[0] == 0xED) most = 0x9F;
    if (p[0] == 0xF0) least = 0x90;
    if (p[0] == 0xF4) most = 0x8F;
    if (p[1] < least || p[1] > most) return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return length;
}

static void string(hkc_json *w, const char *text, size_t n)
{
    put(w, "\"", 1);
    for (size_t i = 0; i < n;) {
        const unsigned char c = (unsigned char)text[i];
        size_t length = utf8((const unsigned char *)text + i, n - i);
        if (length == 0) {
            put(w, "\xEF\xBF\xBD", 3);
            i++;
        } else if (c < 0x20 || c == 0x7F) {
            const char *hex = "0123456789abcdef";
            const char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            put(w, code, 6);
            i++;
        } else {
            if (c == '"' || c == '\\') put(w, "\\", 1);
            put(w, text + i, length);
            i += length;
        }
    }
    put(w, "\"", 1);
}

/* ---- Values -------------------------------------------------------------------------------------- */

static uint64_t level(const hkc_json *w)
{
    return (uint64_t)1 << (w->depth - 1);
}

static void key_of(hkc_json *w, const char *key)
{
    if (w->depth == 0) return;
    if (w->filled & level(w)) put(w, ",", 1);
    w->filled |= level(w);
    if (w->arrays & level(w)) return;
    string(w, key ? key : "", key ? strlen(key) : 0);
    put(w, ":", 1);
}

static void begin(hkc_json *w, const char *key, bool array)
{
    key_of(w, key);
    if (w->depth == HKC_JSON_DEPTH) { /* a mistake of the caller's: nothing more is written */
        if (!w->error) w->error = EOVERFLOW;
        return;
    }
    w->depth++;
    w->filled &= ~level(w);
    w->arrays = array ? w->arrays | level(w) : w->arrays & ~level(w);
    put(w, array ? "[" : "{", 1);
}

void hkc_json_object(hkc_json *w, const char *key)
{
    begin(w, key, false);
}

void hkc_json_array(hkc_json *w, const char *key)
{
    begin(w, key, true);
}

void hkc_json_end(hkc_json *w)
{
    if (w->depth == 0) return;
    put(w, w->arrays & level(w) ? "]" : "}", 1);
    if (--w->depth == 0) put(w, "\n", 1);
}

void hkc_json_text_n(hkc_json *w, const char *key, const char *text, size_t n)
{
    key_of(w, key);
    string(w, text, n);
}

void hkc_json_text(hkc_json *w, const char *key, const char *text)
{
    hkc_json_text_n(w, key, text ? text : "", text ? strlen(text) : 0);
}

static void digits(hkc_json *w, uint64_t n)
{
    char text[20], *end = text + sizeof text, *p = end;
    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    put(w, p, (size_t)(end - p));
}

void hkc_json_size(hkc_json *w, const char *key, uint64_t n)
{
    key_of(w, key);
    digits(w, n);
}

void hkc_json_integer(hkc_json *w, const char *key, int64_t n)
{
    key_of(w, key);
    if (n < 0) put(w, "-", 1);
    digits(w, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void hkc_json_number(hkc_json *w, const char *key, double n)
{
    key_of(w, key);
    const double size = n < 0 ? -n : n;
    if (!(size < 9.2e18)) {
        put(w, "0", 1);
        return;
    }
    uint64_t whole = (uint64_t)size;
    unsigned thousandths = size < 9007199254740992.0 ? (unsigned)((size - (double)whole) * 1000 + 0.5) : 0;
    if (thousandths == 1000) {
        whole++;
        thousandths = 0;
    }
    if (n < 0 && (whole || thousandths)) put(w, "-", 1);
    digits(w, whole);
    if (thousandths == 0) return;
    const char fraction[4] = {'.', (char)('0' + thousandths / 100), (char)('0' + thousandths / 10 % 10),
                              (char)('0' + thousandths % 10)};
    put(w, fraction, fraction[3] != '0' ? 4 : fraction[2] != '0' ? 3 : 2);
}

void hkc_json_bool(hkc_json *w, const char *key, bool b)
{
    key_of(w, key);
    put(w, b ? "true" : "false", b ? 4 : 5);
}
