#define _GNU_SOURCE
#include "base/out.h"

#include "base/map.h"
#include "common/pipe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { BUFFER = 1 << 16, FORMATTED = 256 };

void hkp_out_open(hkp_out *out, int fd)
{
    *out = (hkp_out){.bytes = hkp_pages(BUFFER), .size = BUFFER, .fd = fd};
    if (!out->bytes) out->error = ENOMEM;
}

int hkp_out_flush(hkp_out *out)
{
    if (out->fd < 0) return out->error;
    if (!out->error) out->error = hkc_pipe_write_all(out->fd, out->bytes, out->used);
    out->used = 0;
    return out->error;
}

static void make_room(hkp_out *out)
{
    if (out->fd >= 0) {
        hkp_out_flush(out);
        return;
    }
    void *larger = mremap(out->bytes, out->size, 2 * out->size, MREMAP_MAYMOVE);
    if (larger == MAP_FAILED) {
        out->error = ENOMEM;
        return;
    }
    out->bytes = larger;
    out->size *= 2;
}

void hkp_out_bytes(hkp_out *out, const char *bytes, size_t n)
{
    while (n > 0 && !out->error) {
        size_t part = n < out->size - out->used ? n : out->size - out->used;
        memcpy(out->bytes + out->used, bytes, part);
        out->used += part;
        bytes += part;
        n -= part;
        if (out->used == out->size) make_room(out);
    }
}

void hkp_out_text(hkp_out *out, const char *text)
{
    hkp_out_bytes(out, text, strlen(text));
}

void hkp_out_format(hkp_out *out, const char *format, ...)
{
    char text[FORMATTED];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hkp_out_text(out, text);
}

void hkp_out_close(hkp_out *out)
{
    if (out->bytes) munmap(out->bytes, out->size);
    *out = (hkp_out){.fd = -1};
}
