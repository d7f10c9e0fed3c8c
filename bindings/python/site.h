/* Which line of Python code asked for a block, exactly: every block ends with the number of its line, written
 * when it is made or resized, and never looked at before a report. */
#ifndef HK_PY_SITE_H
#define HK_PY_SITE_H

#include "places.h"

/* NULL = ready, else why there can be no sites here. */
const char *hk_py_site_start(void);

/* The number of the place's line in its file and function; 0 = too many of them. */
uint32_t hk_py_site_number(const hk_py_place *place);

typedef uint32_t hk_py_site_mark;
/* Up to here, blocks at hand are no larger than asked for, so that their end is known without a look-up. */
enum { HK_PY_SITE_SMALL = 512 };

/* Bytes to ask for: n and the mark, a multiple of 16; and the last of them, counted from 0. */
HK_PY_INLINE size_t hk_py_site_last(size_t n)
{
    return (n + sizeof(hk_py_site_mark) - 1) | 15;
}
HK_PY_INLINE size_t hk_py_site_round(size_t n)
{
    return hk_py_site_last(n) + 1;
}

/* Wherever the block ends. */
void hk_py_site_mark_end(void *p, hk_py_site_mark mark);

/* p: a block for hk_py_site_round(n) bytes that is no larger, if that is at most HK_PY_SITE_SMALL. */
HK_PY_INLINE void hk_py_site_put(void *p, size_t n, hk_py_site_mark mark)
{
    size_t size = hk_py_site_round(n);
    if (HK_PY_LIKELY(size <= HK_PY_SITE_SMALL)) memcpy((char *)p + size - sizeof mark, &mark, sizeof mark);
    else hk_py_site_mark_end(p, mark);
}

typedef struct hk_py_site_info {
    const char *file, *function; /* UTF-8, for the life of the process; "" for number 0 */
    int line;                    /* 0 = not known */
    size_t live_bytes, live_blocks;
} hk_py_site_info;

/* How many lines there are, with number 0 for blocks of no line; 0 = sites are off. [any thread] */
HK_PY_API size_t hk_py_site_count(void);
/* What lives of each line, by number; up to `count` of them. Visits every block. [any thread] */
HK_PY_API void hk_py_site_stats(hk_py_site_info *out, size_t count);
/* The line of one live block; false = none known. [any thread] */
HK_PY_API bool hk_py_site_of(const void *p, hk_py_site_info *info);

#endif
