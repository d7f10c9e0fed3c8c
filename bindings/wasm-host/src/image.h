/* Makes images of linear memories, and maps them. */
#ifndef HAKMEM_WASM_IMAGE_H
#define HAKMEM_WASM_IMAGE_H

#include "slot.h"

/* Of `size` bytes at memory, which the current tenant pays for. NULL = no memory, or over its limit. */
hak_wasm_image *hkw_image_new(hak_wasm_host *host, const char *memory, size_t size);
/* Maps the image over the beginning of the slot, which then holds a reference. */
int hkw_image_attach(hak_wasm_image *image, hkw_slot *slot);

#endif
