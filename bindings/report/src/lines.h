/* Lines and types of machine code, from debug information: of a file, or of the package with its debug
 * information. */
#ifndef HKR_LINES_H
#define HKR_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hkr_code_line {
    const char *function; /* of an inlined function its name, perhaps mangled; NULL = not known, or of the one
                             around */
    const char *file;     /* as the compiler was given it; NULL = not known */
    int line;             /* 0 = not known */
} hkr_code_line;

enum { HKR_INLINED = 16 };

/* The line at an address of a file; before it those of functions that are inlined there, the innermost first,
 * as many as have room. 0 = not known: there is no such file, it has another build id, no debug information
 * was found. Texts stay. Files stay open. */
size_t hkr_code_lines(const char *path, const char *build_id, uint64_t address,
                      hkr_code_line lines[HKR_INLINED]);

/* Calls `each` for every type of the file that has a name, as the source has it ("shop::Basket<int>"); the
 * same name may come again. is_record: it is a struct, a class or a union. */
typedef void hkr_type_fn(void *user, const char *name, bool is_record);
void hkr_code_types(const char *path, const char *build_id, hkr_type_fn *each, void *user);

#endif
