#define _GNU_SOURCE
#include "hook/say.h"

#include "common/file.h"
#include "common/pipe.h"
#include "common/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static hkc_stream at_load = {.fd = -1}, kept = {.fd = -1};

void hkp_say_begin(void)
{
    hkc_stream_note(&at_load, STDERR_FILENO);
}

bool hkp_say_keep(void)
{
    if (hkc_stream_now(&at_load) >= 0) hkc_stream_keep(&kept, STDERR_FILENO);
    return hkp_say_descriptor() >= 0;
}

void hkp_say_in_child(void)
{
    const int fd = hkc_stream_now(&kept);
    if (fd >= 0) close(fd);
    kept.fd = -1;
}

int hkp_say_descriptor(void)
{
    const int fd = hkc_stream_now(&kept);
    return fd >= 0 ? fd : hkc_stream_now(&at_load);
}

void hkp_say(const char *format, ...)
{
    char text[HKC_FILE_NAME + 256];
    const int fd = hkp_say_descriptor();
    if (fd < 0) return;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0) (void)hkc_pipe_write(fd, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
