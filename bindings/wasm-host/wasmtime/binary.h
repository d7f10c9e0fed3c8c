/* Reading a module's binary: numbers, limits, single instructions. */
#ifndef HK_WASMTIME_BINARY_H
#define HK_WASMTIME_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `bad` is set by a read past the end and stays; what is read then is 0. */
typedef struct hk_reader {
    const uint8_t *p, *end;
    bool bad;
} hk_reader;

uint8_t hk_read_byte(hk_reader *r);
uint64_t hk_read_leb(hk_reader *r);
void hk_read_skip(hk_reader *r, uint64_t n);
/* A part of n bytes as a reader of its own; r goes on behind it. */
hk_reader hk_read_part(hk_reader *r, uint64_t n);
/* One value or reference type; returns its first byte. */
uint8_t hk_read_type(hk_reader *r);
void hk_read_limits(hk_reader *r);

typedef enum hk_effect {
    HK_EFFECT_NONE,    /* nothing outside of stack, locals, globals and memory */
    HK_EFFECT_END,     /* `end`: nothing either, and closes a constant expression */
    HK_EFFECT_STATE,   /* changes a table or drops a segment */
    HK_EFFECT_UNKNOWN, /* not an instruction that this file knows; the reader cannot go on */
} hk_effect;

/* Reads one instruction with its immediates. */
hk_effect hk_read_instruction(hk_reader *r);

#endif
