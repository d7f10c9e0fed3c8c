/* Names of the functions of an image, from the first of these that is there: its .symtab, that of its debug
 * package (by build id), its .dynsym. The file is mapped for as long as it is read: its pages would count as
 * the program's. */
#ifndef HK_SYMBOLS_H
#define HK_SYMBOLS_H

#include "image.h"

typedef enum hk_symbols_source {
    HK_SYMBOLS_NONE,
    HK_SYMBOLS_DYNSYM, /* exported functions only: the image is stripped */
    HK_SYMBOLS_DEBUG,  /* a debug package */
    HK_SYMBOLS_SYMTAB
} hk_symbols_source;

/* A function: where it begins, its name as in the table (`pad`, `pad.constprop.0`), and the source file of
 * one that is local to it (NULL = not known). The texts are there until the visit returns. */
typedef void hk_symbols_visit(void *user, uintptr_t start, const char *name, const char *file);

/* Visits all functions, in the order of the table; several may begin at one place. debug_root:
 * "/usr/lib/debug", which holds .build-id. NONE = the file cannot be read or has no symbols. Keeps errno. */
hk_symbols_source hk_symbols_read(const hk_image *image, const char *debug_root, hk_symbols_visit *visit,
                                  void *user);

#endif
