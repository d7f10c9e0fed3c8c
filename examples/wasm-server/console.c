#define _GNU_SOURCE
#include "console.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MOST = 64 << 10, LINES_MOST = 1000 };

/* Functions of the language are taken before a script can replace them. */
const char console_script[] =
    "(() => {\n"
    "  const emit = globalThis." CONSOLE_HOST ", {stringify} = JSON, text = String, object = Error;\n"
    "  delete globalThis." CONSOLE_HOST ";\n"
    "  const say = value => {\n"
    "    if (typeof value !== 'object' || value === null || value instanceof object) return text(value);\n"
    "    try { return stringify(value) ?? text(value); } catch { return Array.isArray(value) ? '[...]' : "
    "'{...}'; }\n"
    "  };\n"
    "  const console = {};\n"
    "  for (const level of ['log', 'info', 'warn', 'error', 'debug'])\n"
    "    console[level] = (...values) => {\n"
    "      let line = level;\n"
    "      for (let i = 0; i < values.length; i++) line += ' ' + say(values[i]);\n"
    "      emit(line);\n"
    "    };\n"
    "  Object.defineProperty(globalThis, 'console', {value: console, writable: true, configurable: true});\n"
    "})()";

void console_add(console *c, const char *line, size_t n)
{
    if (!c->bytes) c->bytes = malloc(BYTES_MOST);
    size_t room = c->bytes ? BYTES_MOST - c->size : 0;
    if (c->lines == LINES_MOST || room < sizeof n || n > room - sizeof n) {
        c->lost++;
        return;
    }
    char *text = c->bytes + c->size + sizeof n;
    memcpy(text, line, n);
    n = text_make_utf8(text, n, n);
    memcpy(c->bytes + c->size, &n, sizeof n);
    c->size += sizeof n + n;
    c->lines++;
}

void console_clear(console *c)
{
    c->size = 0;
    c->lines = c->lost = 0;
}

void console_free(console *c)
{
    free(c->bytes);
    *c = (console){0};
}

void console_write_json(const console *c, FILE *to)
{
    const char *at = c->bytes;
    putc('[', to);
    for (unsigned i = 0; i < c->lines; i++) {
        size_t n;
        memcpy(&n, at, sizeof n);
        at += sizeof n;
        const char *blank = memchr(at, ' ', n);
        size_t level = blank ? (size_t)(blank - at) : n, said = blank ? level + 1 : n;
        fputs(i > 0 ? ",{\"level\":" : "{\"level\":", to);
        text_write_json(to, at, level);
        fputs(",\"text\":", to);
        text_write_json(to, at + said, n - said);
        putc('}', to);
        at += n;
    }
    putc(']', to);
}
