/* Copies of texts that stay, in pages of the system: for where malloc may not be called. */
#ifndef HKC_TEXTS_H
#define HKC_TEXTS_H

#include "common/pages.h"

#include <stddef.h>
#include <string.h>

enum { HKC_TEXTS_PAGES = 64 << 10, HKC_TEXTS_MOST = 4096 };

typedef struct hkc_texts {
    struct hkc_texts *next;
    size_t used;
    char bytes[HKC_TEXTS_PAGES - 2 * sizeof(void *)];
} hkc_texts;

/* Copies a text, of which no more than HKC_TEXTS_MOST bytes with the 0 at its end. *texts: NULL = none yet.
 * NULL = no memory. */
static inline const char *hkc_texts_keep(hkc_texts **texts, const char *text)
{
    const size_t length = strlen(text), size = length < HKC_TEXTS_MOST ? length + 1 : HKC_TEXTS_MOST;
    hkc_texts *t = *texts;
    if (!t || sizeof t->bytes - t->used < size) {
        t = hkc_pages(sizeof *t);
        if (!t) return NULL;
        t->next = *texts;
        *texts = t;
    }
    char *kept = t->bytes + t->used;
    memcpy(kept, text, size - 1);
    kept[size - 1] = '\0';
    t->used += size;
    return kept;
}

static inline void hkc_texts_close(hkc_texts **texts)
{
    while (*texts) {
        hkc_texts *t = *texts;
        *texts = t->next;
        hkc_pages_give(t, sizeof *t);
    }
}

#endif
