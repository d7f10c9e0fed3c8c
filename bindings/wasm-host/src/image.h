/* The content of a linear memory as a file in memory. */
#ifndef HAKMEM_WASM_IMAGE_H
#define HAKMEM_WASM_IMAGE_H

#include "slot.h"

struct hak_wasm_image {
    hak_wasm_host *host;
    hak_wasm_tenant *tenant; /* who pays; a reference */
    size_t charged;
    hkw_file file;
    size_t size;          /* of the memory */
    const char *view;     /* read-only; NULL when size is 0 */
    _Atomic size_t refs;  /* the caller's and one for each slot that is attached */
    _Atomic bool dropped; /* by the caller: nothing new is attached */
};

/* Of `size` bytes at memory, which the current tenant pays for. NULL = no memory, or over its limit. */
hak_wasm_image *hkw_image_new(hak_wasm_host *host, const char *memory, size_t size);
/* Maps the image over the beginning of the slot, which then holds a reference. */
int hkw_image_attach(hak_wasm_image *image, hkw_slot *slot);
void hkw_image_unref(hak_wasm_image *image);

#endif
