/* The images (program and libraries) of this process: which one an address is in, and the files with the
 * names of its functions. */
#ifndef HKC_IMAGE_H
#define HKC_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hkc_image {
    uintptr_t bias;          /* address = bias + address in the file */
    uintptr_t low, high;     /* all that is mapped of it */
    const char *path;        /* "" = the program. Valid until the image is unloaded */
    const uint8_t *build_id; /* in the image; NULL = none */
    size_t build_id_size;
} hkc_image;

/* The image that is mapped at an address, data included. No lock but that of dl_iterate_phdr. */
bool hkc_image_at(uintptr_t address, hkc_image *image);
/* Name of the library's file up to the first dot: `_csv` for `_csv.cpython-311-x86_64-linux-gnu.so`. At most
 * size - 1 bytes; "" for the program. */
void hkc_image_stem(const hkc_image *image, char *stem, size_t size);

#endif
