#include "process.h"

#include "json.h"

#include <unistd.h>

size_t hk_py_resident(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f) return 0;
    size_t pages = 0;
    if (fscanf(f, "%*s %zu", &pages) != 1) pages = 0;
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

void hk_py_command_json(FILE *out)
{
    char text[4096];
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = '\0';
    fputc('[', out);
    for (size_t at = 0; at < n;) {
        if (at > 0) fputc(',', out);
        hk_py_json_string(out, text + at);
        while (at < n && text[at])
            at++;
        at++;
    }
    fputc(']', out);
}
