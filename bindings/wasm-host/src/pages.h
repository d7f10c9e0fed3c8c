/* Which pages were written to, and making them clean again. */
#ifndef HAKMEM_WASM_PAGES_H
#define HAKMEM_WASM_PAGES_H

#include <hakmem/wasm.h>

#include <pthread.h>
#include <stdatomic.h>

#define HK_WASM_PAGE ((size_t)4096)
#define HK_WASM_RANGES 64

typedef struct hk_wasm_pages {
    hak_wasm_dirty method; /* not AUTO */
    pthread_mutex_t lock;
    /* Descriptor of the pagemap plus one, in a page that the kernel wipes on fork: the parent's
     * descriptor shows the parent's pages. */
    _Atomic int *fd;
} hk_wasm_pages;

int hk_wasm_pages_init(hk_wasm_pages *pages, hak_wasm_dirty wanted);
void hk_wasm_pages_destroy(hk_wasm_pages *pages);

typedef struct hk_wasm_range {
    uint64_t start, end;
    uint64_t categories; /* the kernel's */
} hk_wasm_range;

/* Walks the pages of [at, end) that are the process' own: written to, resident or swapped. */
typedef struct hk_wasm_walk {
    hk_wasm_pages *pages;
    uintptr_t at, end;
    unsigned next, count;
    hk_wasm_range ranges[HK_WASM_RANGES];
} hk_wasm_walk;

void hk_wasm_walk_begin(hk_wasm_walk *walk, hk_wasm_pages *pages, const void *base, size_t n);
/* 1 = a range; 0 = the end; -1 = this kernel does not tell. Ranges come in ascending order. */
int hk_wasm_walk_next(hk_wasm_walk *walk, hk_wasm_range *range);

/* Anonymous memory reads zero again. `keep` = false: pages go back instead of being cleared. Returns how
 * many bytes stay resident. */
size_t hk_wasm_pages_clear(hk_wasm_pages *pages, void *base, size_t n, bool keep);
/* A private mapping of a file reads as `source` again. Returns how many bytes stay resident as copies. */
size_t hk_wasm_pages_restore(hk_wasm_pages *pages, void *base, const void *source, size_t n);
/* Own bytes resident in [base, base + n). */
size_t hk_wasm_pages_resident(hk_wasm_pages *pages, const void *base, size_t n);

#endif
