/* Texts of scripts on their way to clients: as UTF-8, and as strings of JSON. */
#ifndef WASM_SERVER_TEXT_H
#define WASM_SERVER_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Makes valid UTF-8 in place of what JavaScript has, and returns the size, at most `most`. */
size_t text_make_utf8(char *text, size_t size, size_t most);
/* Writes a string of JSON, in its quotes. */
void text_write_json(FILE *to, const char *text, size_t size);

#endif
