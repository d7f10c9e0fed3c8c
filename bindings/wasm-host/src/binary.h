/* Reading a module's binary: numbers, limits, single instructions. */
#ifndef HKW_BINARY_H
#define HKW_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `bad` is set by a read past the end and stays; what is read then is 0. */
typedef struct hkw_reader {
    const uint8_t *p, *end;
    bool bad;
} hkw_reader;

uint8_t hkw_read_byte(hkw_reader *r);
uint64_t hkw_read_leb(hkw_reader *r);
void hkw_read_skip(hkw_reader *r, uint64_t n);
/* A part of n bytes as a reader of its own; r goes on behind it. */
hkw_reader hkw_read_part(hkw_reader *r, uint64_t n);
/* One value or reference type; returns its first byte. */
uint8_t hkw_read_type(hkw_reader *r);

typedef enum hkw_effect {
    HKW_EFFECT_NONE,    /* nothing outside of stack, locals, globals and memory */
    HKW_EFFECT_END,     /* `end`: nothing either, and closes a constant expression */
    HKW_EFFECT_TABLE,   /* changes elements of a table */
    HKW_EFFECT_GROW,    /* changes the size of a table */
    HKW_EFFECT_DROP,    /* drops a segment */
    HKW_EFFECT_UNKNOWN, /* not an instruction that this file knows; the reader cannot go on */
} hkw_effect;

/* Reads one instruction with its immediates. */
hkw_effect hkw_read_instruction(hkw_reader *r);

#endif
