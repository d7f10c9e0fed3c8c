/* Exact counts by line: every block, under the stack down to the first function in Lua, with its label, in a
 * counted profile of the context. Which record a block belongs to stands in a table beside the heap, two
 * bytes for each 16 bytes of addresses: nothing is added to blocks, and counting may begin and end at any
 * time. */
#ifndef HKL_PROFILE_LINES_H
#define HKL_PROFILE_LINES_H

#include "profile/frames.h"

#include <hakmem/profile.h>

#ifdef HKC_CFI_WALK

enum {
    HKL_LINES_MOST = 1 << 16, /* by number, 0 = none */
    HKL_LINES_MET = 2048,
    HKL_LINES_PAGE = 1 << 16 /* numbers in a page of the table */
};

typedef struct hkl_lines_page {
    uintptr_t key; /* 0 = free */
    uint16_t *at;
} hkl_lines_page;

/* The number of a stack and label that profile/quick.h has found. */
typedef struct hkl_lines_met {
    uint32_t stack; /* 0 = free */
    hak_label label;
    uint16_t line;
} hkl_lines_met;

typedef struct hkl_lines {
    hak_ctx *ctx;
    hak_profile_tally *all;
    bool running;
    hkl_lines_page *pages; /* a hash table, at most a quarter full */
    size_t page_room, page_count;
    uint16_t none;                    /* what blocks outside of all pages have; stays 0 */
    uint32_t stacks;                  /* that profile/quick.h has found: a number for each, in its slot */
    hkl_lines_met met[HKL_LINES_MET]; /* by number and label */
    hak_profile_counts *counts[HKL_LINES_MOST];
} hkl_lines;

static inline hkl_lines_met *hkl_lines_met_at(hkl_lines *lines, uint32_t stack, hak_label label)
{
    return &lines->met[(stack * 4 + label) % HKL_LINES_MET];
}

/* For a context in which a counted profile has begun. NULL = no memory. */
hkl_lines *hkl_lines_new(hak_ctx *ctx);
void hkl_lines_delete(hkl_lines *lines);
/* Blocks from now on have no number. */
void hkl_lines_stop(hkl_lines *lines);
/* The records are about to go. */
void hkl_lines_forget(hkl_lines *lines);

/* The number of the stack. 0 = there is no room. */
unsigned hkl_lines_number(hkl_lines *lines, const uintptr_t *frames, size_t depth, hak_label label);

/* Blocks of up to 8 bytes may lie 8 bytes apart, all others are 16 apart. */
static inline uintptr_t hkl_lines_grain(const void *block, size_t size, uintptr_t *key)
{
    const uintptr_t grain = (uintptr_t)block >> (size <= 8 ? 3 : 4);
    *key = (grain / HKL_LINES_PAGE) * 2 + (size <= 8);
    return grain % HKL_LINES_PAGE;
}

uint16_t *hkl_lines_look(hkl_lines *lines, uintptr_t key, uintptr_t grain, bool make);
/* Where the number of a block is; of &lines->none nothing may be changed. */
static inline uint16_t *hkl_lines_at(hkl_lines *lines, const void *block, size_t size, bool make)
{
    uintptr_t key, grain = hkl_lines_grain(block, size, &key);
    const hkl_lines_page *page = &lines->pages[key & (lines->page_room - 1)];
    return __builtin_expect(page->key == key, 1) ? page->at + grain : hkl_lines_look(lines, key, grain, make);
}

static inline void hkl_lines_made(hkl_lines *lines, const void *block, size_t size, unsigned number)
{
    uint16_t *at = hkl_lines_at(lines, block, size, true);
    if (number == 0 || at == &lines->none) {
        if (lines->running) lines->all->missed++;
        return;
    }
    *at = (uint16_t)number;
    hak_profile_count_alloc(lines->all, lines->counts[number], size);
}

static inline void hkl_lines_freed(hkl_lines *lines, const void *block, size_t size)
{
    uint16_t *at = hkl_lines_at(lines, block, size, false);
    const unsigned number = *at;
    if (number == 0) return;
    *at = 0;
    hak_profile_count_free(lines->all, lines->counts[number], size);
}

/* number: of the line that asks, for a block that moves. */
void hkl_lines_resized(hkl_lines *lines, const void *from, size_t old_size, const void *to, size_t size,
                       unsigned number);

#endif
#endif
