/* Which line of Python code asked for a block, exactly: every block ends with the number of its line, written
 * when it is made or resized, and never looked at before a report. */
#ifndef HK_PY_SITE_H
#define HK_PY_SITE_H

#include "frames.h"

#include <stdatomic.h>

/* NULL = ready, else why there can be no sites here. */
const char *hk_py_site_start(hak_ctx *ctx);

/* One word a place: 40 bits of its hash, 24 of the number of its line. 0 = free. In groups of 8. */
enum { HK_PY_PLACES = 8192, HK_PY_PLACES_GROUP = 8 };
extern _Atomic uint64_t hk_py_places[HK_PY_PLACES];

#define HK_PY_SITE_NUMBER UINT64_C(0xffffff)

HK_PY_INLINE size_t hk_py_place_slot(uint64_t hash)
{
    return (size_t)(hash >> 12) & (HK_PY_PLACES - 1);
}

/* For a place that is not in its first slot. */
uint32_t hk_py_site_find(const void *frame, uint64_t hash);

/* The number of the line that runs in this thread; 0 = none. With the GIL held. */
HK_PY_INLINE uint32_t hk_py_site_now(void)
{
    if (HK_PY_UNLIKELY(!hk_py_frames_ready.layout)) {
        hk_py_frames_prepare();
        return 0;
    }
    const hk_py_layout *at = hk_py_frames_ready.layout;
    const void *frame = hk_py_frame_now();
    if (HK_PY_UNLIKELY(!frame)) return 0;
    hk_py_place place = hk_py_place_of(at, frame);
    /* A dead code object's address comes back with another stamp, name or file: bodies of modules have the
     * first two alike. So may the address of the name, with another hash. */
    const void *name = hk_py_load(place.code, at->code_name);
    uint64_t stamp = hk_py_load64(place.code, at->code_stamp) ^ (uintptr_t)name ^
                     hk_py_load64(place.code, at->code_file) >> 3;
    if (at->name_hash != 0) stamp ^= hk_py_load64(name, at->name_hash);
    uint64_t hash = place.instruction * UINT64_C(0x9e3779b97f4a7c15) ^ stamp * UINT64_C(0xd6e8feb86659fd93);
    uint64_t word = atomic_load_explicit(&hk_py_places[hk_py_place_slot(hash)], memory_order_relaxed);
    if (HK_PY_LIKELY((word ^ hash) <= HK_PY_SITE_NUMBER && word != 0))
        return (uint32_t)(word & HK_PY_SITE_NUMBER);
    return hk_py_site_find(frame, hash);
}

typedef uint32_t hk_py_site_mark;
/* Up to here, blocks are as large as asked for, so that their end is known without a look-up. */
enum { HK_PY_SITE_SMALL = 512 };

/* Bytes to ask for: n and the mark, a multiple of 16. */
HK_PY_INLINE size_t hk_py_site_round(size_t n)
{
    return (n + sizeof(hk_py_site_mark) + 15) & ~(size_t)15;
}

void hk_py_site_mark_large(void *p, hk_py_site_mark mark);

/* p: a block of hk_py_site_round(n) bytes. */
HK_PY_INLINE void hk_py_site_put(void *p, size_t n, hk_py_site_mark mark)
{
    size_t size = hk_py_site_round(n);
    if (HK_PY_LIKELY(size <= HK_PY_SITE_SMALL)) memcpy((char *)p + size - sizeof mark, &mark, sizeof mark);
    else hk_py_site_mark_large(p, mark);
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
