/* Which state of an instance is outside of its memory, and a module that shows it. */
#ifndef HK_WASMTIME_MODULE_H
#define HK_WASMTIME_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define HK_EXPORT_PREFIX "hak:"
#define HK_EXPORT_MEMORY HK_EXPORT_PREFIX "memory"
#define HK_EXPORT_GLOBAL HK_EXPORT_PREFIX "global:" /* and a decimal number from 0 */

typedef struct hk_module {
    uint8_t *bytes; /* malloc; NULL when no copy was made */
    size_t size;
    uint32_t globals;    /* mutable ones, all exported by the copy */
    const char *refused; /* why memory and globals are not all of the state; NULL = they are */
} hk_module;

/* Looks through a whole binary. Where an instance's state is its one memory and its mutable globals, makes
 * a copy that exports them; else says why not. A binary that is not valid is refused, too. */
void hk_module_read(const uint8_t *bytes, size_t size, hk_module *out);

#endif
