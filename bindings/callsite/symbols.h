/* Names of the functions of an image, from the first of these that is there: its .symtab, that of its debug
 * package (by build id), its .dynsym. Allocates by mmap only and keeps errno. */
#ifndef HK_SYMBOLS_H
#define HK_SYMBOLS_H

#include "image.h"

typedef enum hk_symbols_source {
    HK_SYMBOLS_NONE,
    HK_SYMBOLS_DYNSYM, /* exported functions only: the image is stripped */
    HK_SYMBOLS_DEBUG,  /* a debug package */
    HK_SYMBOLS_SYMTAB
} hk_symbols_source;

typedef struct hk_symbols {
    hk_symbols_source source;
    uintptr_t bias;
    const void *file; /* mapped */
    size_t file_size;
    const void *table; /* of the file: its symbols, and their names */
    size_t table_count;
    const char *names;
    size_t names_size;
    uint64_t *starts; /* sorted: address in the file above 32 bits, number in the table below */
    size_t count;
} hk_symbols;

typedef struct hk_symbol {
    const char *name; /* as in the table: `pad`, `pad.constprop.0` */
    const char *file; /* the source file of a function that is local to it; NULL = not known */
} hk_symbol;

/* debug_root: "/usr/lib/debug", which holds .build-id. False = the file cannot be read or has no symbols. */
bool hk_symbols_open(hk_symbols *symbols, const hk_image *image, const char *debug_root);
void hk_symbols_close(hk_symbols *symbols);

/* The function that begins at `start`; false = it has no name. */
bool hk_symbols_find(const hk_symbols *symbols, uintptr_t start, hk_symbol *symbol);

#endif
