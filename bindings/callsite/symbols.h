/* Names of the functions of an image, from the first of these that is there: its .symtab, that of its debug
 * package (by build id), its .dynsym. A file of another build id than the image's is none of these. The file
 * is mapped for as long as it is read: its pages would count as the program's. */
#ifndef HKC_SYMBOLS_H
#define HKC_SYMBOLS_H

#include "image.h"

typedef enum hkc_symbols_source {
    HKC_SYMBOLS_NONE,
    HKC_SYMBOLS_DYNSYM, /* exported functions only: the image is stripped */
    HKC_SYMBOLS_DEBUG,  /* a debug package */
    HKC_SYMBOLS_SYMTAB
} hkc_symbols_source;

/* A function: where it begins, its name as in the table (`pad`, `pad.constprop.0`), and the source file of
 * one that is local to it (NULL = not known). The texts are there until the visit returns. */
typedef void hkc_symbols_visit(void *user, uintptr_t start, const char *name, const char *file);

/* Visits all functions, in the order of the table; several may begin at one place. debug_root:
 * "/usr/lib/debug", which holds .build-id. NONE = the file cannot be read or has no symbols. Keeps errno. */
hkc_symbols_source hkc_symbols_read(const hkc_image *image, const char *debug_root, hkc_symbols_visit *visit,
                                    void *user);

#endif
