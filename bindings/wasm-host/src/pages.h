/* Which pages were written to, and making them clean again. */
#ifndef HAKMEM_WASM_PAGES_H
#define HAKMEM_WASM_PAGES_H

#include "file.h"

#include <hakmem/wasm.h>

#include <pthread.h>
#include <stdatomic.h>

#define HKW_PAGE ((size_t)4096)
#define HKW_RANGES 64

typedef struct hkw_pages {
    hak_wasm_dirty method; /* not AUTO */
    pthread_mutex_t lock;
    /* In a page that the kernel wipes on fork: the parent's descriptor shows the parent's pages. */
    hkw_file *pagemap;
} hkw_pages;

int hkw_pages_init(hkw_pages *pages, hak_wasm_dirty wanted);
void hkw_pages_destroy(hkw_pages *pages);

typedef struct hkw_range {
    uint64_t start, end;
    uint64_t categories; /* the kernel's */
} hkw_range;

/* Walks the pages of [at, end) that are the process' own: written to, resident or swapped. */
typedef struct hkw_walk {
    hkw_pages *pages;
    uintptr_t at, end;
    int fd; /* of the pagemap; -1 = not asked for yet */
    unsigned next, count;
    hkw_range ranges[HKW_RANGES];
} hkw_walk;

void hkw_walk_begin(hkw_walk *walk, hkw_pages *pages, const void *base, size_t n);
/* 1 = a range; 0 = the end; -1 = this kernel does not tell. Ranges come in ascending order. */
int hkw_walk_next(hkw_walk *walk, hkw_range *range);

/* The pages of [base, base + n) go back: anonymous memory reads zero, a private mapping of a file as the
 * file. false = the kernel refuses: what was written is there, or parts of it. */
bool hkw_pages_return(void *base, size_t n);
/* Anonymous memory that is readable and writable reads zero again. `keep` = false: pages go back instead of
 * being cleared, unless the kernel refuses. Returns how many bytes stay resident. */
size_t hkw_pages_clear(hkw_pages *pages, void *base, size_t n, bool keep);
/* A private mapping of a file reads as `source` again. Returns how many bytes stay resident as copies; all
 * where the kernel does not tell. */
size_t hkw_pages_restore(hkw_pages *pages, void *base, const void *source, size_t n);
/* Own bytes resident in [base, base + n). */
size_t hkw_pages_resident(hkw_pages *pages, const void *base, size_t n);

#endif
