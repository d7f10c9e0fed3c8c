/* What scripts say with `console`: lines that the answer brings along. */
#ifndef WASM_SERVER_CONSOLE_H
#define WASM_SERVER_CONSOLE_H

#include <stddef.h>
#include <stdio.h>

/* All zero at first. What a script says is kept up to 64 KiB and 1,000 lines; the rest is counted. */
typedef struct console {
    char *bytes; /* of each line its size, a size_t, and its text: the level, a blank, what was said */
    size_t size;
    unsigned lines, lost;
} console;

/* JavaScript that makes `console` of the function of the host that it finds as `globalThis.<CONSOLE_HOST>`.
 */
#define CONSOLE_HOST "emitLine"
extern const char console_script[];

/* Takes a line of n bytes. What there is no room for is lost. */
void console_add(console *c, const char *line, size_t n);
/* Forgets all lines. */
void console_clear(console *c);
void console_free(console *c);
/* Writes the lines as an array of JSON: [{"level":"log","text":"..."}, ...]. */
void console_write_json(const console *c, FILE *to);

#endif
