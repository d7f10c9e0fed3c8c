#include "binary.h"

uint8_t hkw_read_byte(hkw_reader *r)
{
    if (r->p == r->end) {
        r->bad = true;
        return 0;
    }
    return *r->p++;
}

uint64_t hkw_read_leb(hkw_reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = hkw_read_byte(r);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    /* The tenth byte ends a number of 64 bits. */
    r->bad = true;
    return 0;
}

void hkw_read_skip(hkw_reader *r, uint64_t n)
{
    if (n > (uint64_t)(r->end - r->p)) {
        r->bad = true;
        r->p = r->end;
    } else {
        r->p += n;
    }
}

hkw_reader hkw_read_part(hkw_reader *r, uint64_t n)
{
    hkw_reader part = {r->p, r->p, false};
    hkw_read_skip(r, n);
    part.end = r->p;
    part.bad = r->bad;
    return part;
}

uint8_t hkw_read_type(hkw_reader *r)
{
    uint8_t type = hkw_read_byte(r);
    if (type == 0x63 || type == 0x64) hkw_read_leb(r); /* (ref null? heaptype) */
    return type;
}

static void skip_numbers(hkw_reader *r, uint64_t count)
{
    while (count-- > 0 && !r->bad)
        hkw_read_leb(r);
}

static void skip_block_type(hkw_reader *r)
{
    if (r->p < r->end && (*r->p == 0x63 || *r->p == 0x64)) {
        hkw_read_type(r);
    } else {
        hkw_read_leb(r);
    }
}

static void skip_memory_argument(hkw_reader *r)
{
    uint64_t align = hkw_read_leb(r);
    if (align & 0x40) hkw_read_leb(r); /* index of the memory */
    hkw_read_leb(r);
}

static void skip_catches(hkw_reader *r)
{
    for (uint64_t n = hkw_read_leb(r); n > 0 && !r->bad; n--) {
        skip_numbers(r, hkw_read_byte(r) < 2 ? 2 : 1);
    }
}

/* Prefix 0xFC: saturating conversions, bulk memory, tables, wide arithmetic. */
static hkw_effect read_misc(hkw_reader *r)
{
    uint64_t op = hkw_read_leb(r);
    if (op <= 7 || (op >= 19 && op <= 22)) return HKW_EFFECT_NONE;
    switch (op) {
    case 8:  /* memory.init */
    case 10: /* memory.copy */
        skip_numbers(r, 2);
        return HKW_EFFECT_NONE;
    case 11: /* memory.fill */
    case 16: /* table.size */
        skip_numbers(r, 1);
        return HKW_EFFECT_NONE;
    case 12: /* table.init */
    case 14: /* table.copy */
        skip_numbers(r, 2);
        return HKW_EFFECT_TABLE;
    case 9:  /* data.drop */
    case 13: /* elem.drop */
        skip_numbers(r, 1);
        return HKW_EFFECT_DROP;
    case 15: /* table.grow */
        skip_numbers(r, 1);
        return HKW_EFFECT_GROW;
    case 17: /* table.fill */
        skip_numbers(r, 1);
        return HKW_EFFECT_TABLE;
    default:
        return HKW_EFFECT_UNKNOWN;
    }
}

/* Prefix 0xFD: vectors. */
static hkw_effect read_vector(hkw_reader *r)
{
    uint64_t op = hkw_read_leb(r);
    if (op <= 11 || (op >= 84 && op <= 93)) {
        skip_memory_argument(r);
        if (op >= 84 && op <= 91) hkw_read_byte(r);
    } else if (op == 12 || op == 13) {
        hkw_read_skip(r, 16);
    } else if (op >= 21 && op <= 34) {
        hkw_read_byte(r);
    } else if (op > 0x113) {
        return HKW_EFFECT_UNKNOWN;
    }
    return HKW_EFFECT_NONE;
}

hkw_effect hkw_read_instruction(hkw_reader *r)
{
    uint8_t op = hkw_read_byte(r);
    if (op >= 0x45 && op <= 0xc4) return HKW_EFFECT_NONE;
    if (op >= 0x28 && op <= 0x3e) {
        skip_memory_argument(r);
        return HKW_EFFECT_NONE;
    }
    switch (op) {
    case 0x0b:
        return HKW_EFFECT_END;
    case 0x00: /* unreachable */
    case 0x01: /* nop */
    case 0x05: /* else */
    case 0x0a: /* throw_ref */
    case 0x0f: /* return */
    case 0x1a: /* drop */
    case 0x1b: /* select */
    case 0xd1: /* ref.is_null */
    case 0xd3: /* ref.eq */
    case 0xd4: /* ref.as_non_null */
        return HKW_EFFECT_NONE;
    case 0x02: /* block */
    case 0x03: /* loop */
    case 0x04: /* if */
        skip_block_type(r);
        return HKW_EFFECT_NONE;
    case 0x08: /* throw */
    case 0x0c: /* br */
    case 0x0d: /* br_if */
    case 0x10: /* call */
    case 0x12: /* return_call */
    case 0x14: /* call_ref */
    case 0x15: /* return_call_ref */
    case 0x20: /* local.get */
    case 0x21: /* local.set */
    case 0x22: /* local.tee */
    case 0x23: /* global.get */
    case 0x24: /* global.set */
    case 0x25: /* table.get */
    case 0x3f: /* memory.size */
    case 0x40: /* memory.grow */
    case 0x41: /* i32.const */
    case 0x42: /* i64.const */
    case 0xd0: /* ref.null */
    case 0xd2: /* ref.func */
    case 0xd5: /* br_on_null */
    case 0xd6: /* br_on_non_null */
        skip_numbers(r, 1);
        return HKW_EFFECT_NONE;
    case 0x0e: /* br_table */
        skip_numbers(r, hkw_read_leb(r));
        skip_numbers(r, 1);
        return HKW_EFFECT_NONE;
    case 0x11: /* call_indirect */
    case 0x13: /* return_call_indirect */
        skip_numbers(r, 2);
        return HKW_EFFECT_NONE;
    case 0x1c: /* select with types */
        for (uint64_t n = hkw_read_leb(r); n > 0 && !r->bad; n--)
            hkw_read_type(r);
        return HKW_EFFECT_NONE;
    case 0x1f: /* try_table */
        skip_block_type(r);
        skip_catches(r);
        return HKW_EFFECT_NONE;
    case 0x26: /* table.set */
        skip_numbers(r, 1);
        return HKW_EFFECT_TABLE;
    case 0x43: /* f32.const */
        hkw_read_skip(r, 4);
        return HKW_EFFECT_NONE;
    case 0x44: /* f64.const */
        hkw_read_skip(r, 8);
        return HKW_EFFECT_NONE;
    case 0xfc:
        return read_misc(r);
    case 0xfd:
        return read_vector(r);
    default: /* garbage collected types (0xFB), atomics (0xFE), the first exception proposal */
        return HKW_EFFECT_UNKNOWN;
    }
}
