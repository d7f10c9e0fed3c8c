/* Names of return addresses, for reports: function, source file of one that is local to it, module. What was
 * looked up is kept, so that the next report looks up only what is new. Its memory is pages of the system,
 * for it is used where malloc may not be called. One thread at a time. */
#ifndef HKC_NAMES_H
#define HKC_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hkc_name {
    uintptr_t pc, start;         /* start of its symbol; 0 = not known */
    const char *function, *file; /* NULL = not known */
    const char *module;          /* name of the image's file; NULL = in no image */
    const char *path, *build_id; /* of that file: the whole name, and in hexadecimal; NULL = not known */
    uintptr_t address;           /* of pc in the file */
    bool looked_up;
} hkc_name;

/* Zero = empty. */
typedef struct hkc_names {
    hkc_name *names;                      /* by pc, but for those that were added since */
    size_t count, sorted, room, resolved; /* count == resolved: all of them were looked up */
    struct hkc_texts *texts;
    bool poor; /* names were left out: there was no memory for them */
} hkc_names;

/* false = no memory. Valid for hkc_names_find after hkc_names_resolve. */
bool hkc_names_add(hkc_names *names, uintptr_t pc);
/* Looks up what was added. Keeps errno. */
void hkc_names_resolve(hkc_names *names);
/* NULL = it was not added. */
const hkc_name *hkc_names_find(const hkc_names *names, uintptr_t pc);
void hkc_names_close(hkc_names *names);

#endif
