/* Which line of Python code asked for a block, exactly: every block ends with the number of its line,
 * written when it is made or resized, and never looked at before a report.
 *
 *     base < heap < native, lines < profile < paths < hook < module
 *
 * lines/ knows frames and code objects of CPython 3.10 to 3.15, and the heap, whose blocks carry the
 * numbers. It does not know native labels, which blocks have beside their lines. */
#ifndef HKP_SITE_H
#define HKP_SITE_H

#include "lines/places.h"

/* Lines have numbers from now on. NULL = ready, else why there can be no lines here. */
const char *hkp_site_numbers(void);
/* The same, and blocks have marks. Before the first of them is made. */
const char *hkp_site_start(void);

/* The number of the line; above it, in the highest byte, the lowest one of the size that was asked for, and
 * between them by how many times 256 bytes the block is larger, which is none for blocks at hand. Where that
 * is HKP_SITE_FAR or more there is room before the mark for the whole size. */
typedef uint32_t hkp_site_mark;
enum { HKP_SITE_SIZE_AT = 24, HKP_SITE_FAR = (1 << (HKP_SITE_SIZE_AT - HKP_NUMBER_BITS)) - 1 };
/* Up to here, blocks at hand are no larger than asked for, so that their end is known without a look-up. */
enum { HKP_SITE_SMALL = 512 };

/* Bytes to ask for: n and the mark, a multiple of 16; and the last of them, counted from 0. */
HKP_INLINE size_t hkp_site_last(size_t n)
{
    return (n + sizeof(hkp_site_mark) - 1) | 15;
}
HKP_INLINE size_t hkp_site_round(size_t n)
{
    return hkp_site_last(n) + 1;
}

/* Wherever the block for n bytes ends. */
void hkp_site_mark_end(void *p, size_t n, hkp_site_mark mark);

/* p: a block for hkp_site_round(n) bytes that is no larger, if that is at most HKP_SITE_SMALL. */
HKP_INLINE void hkp_site_put(void *p, size_t n, hkp_site_mark mark)
{
    size_t size = hkp_site_round(n);
    if (HKP_LIKELY(size <= HKP_SITE_SMALL)) {
        memcpy((char *)p + size - sizeof mark, &mark, sizeof mark);
        ((uint8_t *)p)[size - 1] = (uint8_t)n;
    } else {
        hkp_site_mark_end(p, n, mark);
    }
}

/* The bytes of a block that its owner may use: as many as were asked for. */
size_t hkp_site_usable(hak_ctx *heap, const void *p);

typedef struct hkp_site_info {
    uint32_t number;
    const char *file, *function; /* UTF-8, for the life of the process; "" for number 0 */
    int line;                    /* 0 = not known */
    size_t live_bytes, live_blocks;
    size_t asked_bytes; /* of these bytes those that were asked for: without what rounding and the mark add */
    size_t pinned_bytes; /* free memory that cannot go back since these blocks lie beside it */
    size_t
        reused_bytes; /* of live_bytes those of objects that another line may have asked for since: kept.h */
} hkp_site_info;

/* The frame of a stack that stands for the line with that number: no address of code. */
#define HKP_SITE_FRAME(number) ((uintptr_t)1 << 63 | (uintptr_t)(number))
#define HKP_SITE_IS_FRAME(frame) ((frame) >> 63 != 0)
#define HKP_SITE_OF_FRAME(frame) ((uint32_t)(frame))
/* The line with a number; false = there is none. live_*, asked_bytes and pinned_bytes are 0. [any thread] */
bool hkp_site_at(uint32_t number, hkp_site_info *info);

/* The number of a line of no file with that name, as of a function: for what stands in stacks beside lines. 0 = there
 * is no room. [any thread] */
uint32_t hkp_site_named(const char *name);
/* How many numbers there are, whether blocks have marks or not. [any thread] */
size_t hkp_site_numbered(void);

/* How many lines there are, with number 0 for blocks of no line; 0 = blocks have no marks. [any thread] */
HKP_API size_t hkp_site_count(void);
/* What lives of each line, by number; up to `count` of them. Visits every block. [any thread] */
HKP_API void hkp_site_stats(hkp_site_info *out, size_t count);
/* The line of one live block; false = none known. [any thread] */
HKP_API bool hkp_site_of(const void *p, hkp_site_info *info);

#endif
