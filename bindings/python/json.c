#include "json.h"

void hk_py_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\') fprintf(out, "\\%c", *c);
        else if (*c < 0x20) fprintf(out, "\\u%04x", *c);
        else fputc(*c, out);
    }
    fputc('"', out);
}

void hk_py_json_size(FILE *out, const char *comma, const char *name, size_t n)
{
    fprintf(out, "%s\"%s\":%zu", comma, name, n);
}
