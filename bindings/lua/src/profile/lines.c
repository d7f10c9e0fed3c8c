#include "profile/lines.h"

#ifdef HKC_CFI_WALK

#include "common/pages.h"

#include <string.h>

enum { FIRST_PAGES = 64, PAGE_BYTES = HKL_LINES_PAGE * sizeof(uint16_t) };

static size_t directory_bytes(size_t room)
{
    return room * sizeof(hkl_lines_page);
}

hkl_lines *hkl_lines_new(hak_ctx *ctx)
{
    hkl_lines *l = hkc_pages(sizeof *l);
    if (!l) return NULL;
    l->pages = hkc_pages(directory_bytes(FIRST_PAGES));
    if (!l->pages) {
        hkc_pages_give(l, sizeof *l);
        return NULL;
    }
    l->page_room = FIRST_PAGES;
    l->running = true;
    l->ctx = ctx;
    l->all = hak_profile_tally_of(ctx);
    return l;
}

void hkl_lines_stop(hkl_lines *l)
{
    l->running = false;
    memset(l->met, 0, sizeof l->met);
}

void hkl_lines_forget(hkl_lines *l)
{
    for (size_t i = 0; i < l->page_room; i++)
        if (l->pages[i].key != 0) hkc_pages_give(l->pages[i].at, PAGE_BYTES);
    memset(l->pages, 0, directory_bytes(l->page_room));
    l->page_count = 0;
    memset(l->met, 0, sizeof l->met);
}

void hkl_lines_delete(hkl_lines *l)
{
    if (!l) return;
    hkl_lines_forget(l);
    hkc_pages_give(l->pages, directory_bytes(l->page_room));
    hkc_pages_give(l, sizeof *l);
}

unsigned hkl_lines_number(hkl_lines *l, const uintptr_t *frames, size_t depth, hak_label label)
{
    hak_profile_counts *counts = hak_profile_counts_of(l->ctx, frames, (unsigned)depth, label);
    if (!counts || counts->id >= HKL_LINES_MOST) return 0;
    l->counts[counts->id] = counts;
    return counts->id;
}

/* ---- The table beside the heap -------------------------------------------------------------------- */

static hkl_lines_page *slot_of(hkl_lines_page *pages, size_t room, uintptr_t key)
{
    size_t i = key & (room - 1);
    while (pages[i].key != 0 && pages[i].key != key)
        i = (i + 1) & (room - 1);
    return &pages[i];
}

static bool widen(hkl_lines *l)
{
    const size_t room = l->page_room * 4;
    hkl_lines_page *wider = hkc_pages(directory_bytes(room));
    if (!wider) return false;
    for (size_t i = 0; i < l->page_room; i++)
        if (l->pages[i].key != 0) *slot_of(wider, room, l->pages[i].key) = l->pages[i];
    hkc_pages_give(l->pages, directory_bytes(l->page_room));
    l->pages = wider;
    l->page_room = room;
    return true;
}

uint16_t *hkl_lines_look(hkl_lines *l, uintptr_t key, uintptr_t grain, bool make)
{
    hkl_lines_page *page = slot_of(l->pages, l->page_room, key);
    if (page->key == key) return page->at + grain;
    if (!make || !l->running) return &l->none;
    if (l->page_count >= l->page_room / 4) {
        if (!widen(l)) return &l->none;
        page = slot_of(l->pages, l->page_room, key);
    }
    page->at = hkc_pages(PAGE_BYTES);
    if (!page->at) return &l->none;
    page->key = key;
    l->page_count++;
    return page->at + grain;
}

void hkl_lines_resized(hkl_lines *l, const void *from, size_t old_size, const void *to, size_t size,
                       unsigned number)
{
    uint16_t *at = hkl_lines_at(l, from, old_size, false);
    const unsigned old = *at;
    if (old == 0) { /* from before, which it stays when it shrinks */
        if (from != to && size > old_size) hkl_lines_made(l, to, size, number);
        return;
    }
    if (from != to) {
        hak_profile_counts *counts = l->counts[old];
        if (size > old_size) {
            counts->grown_blocks++;
            counts->grown_bytes += size - old_size;
        }
        hkl_lines_freed(l, from, old_size);
        hkl_lines_made(l, to, size, number != 0 || size > old_size ? number : old);
        return;
    }
    uint16_t *now = hkl_lines_at(l, to, size, true);
    if (now == &l->none) { /* 8 bytes that grew */
        hkl_lines_freed(l, from, old_size);
        l->all->missed++;
        return;
    }
    *at = 0;
    *now = (uint16_t)old;
    hak_profile_count_resize(l->all, l->counts[old], old_size, size);
}

#endif
