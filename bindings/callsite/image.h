/* The images (program and libraries) of this process: which one an address is in, and the files with the
 * names of its functions. */
#ifndef HKC_IMAGE_H
#define HKC_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HKC_IMAGE_PATH = 4096, HKC_IMAGE_ID = 64 };

typedef struct hkc_image {
    uintptr_t bias;          /* address = bias + address in the file */
    uintptr_t low, high;     /* all that is mapped of it */
    const char *path;        /* "" = the program. Valid until the image is unloaded */
    const uint8_t *build_id; /* in the image; NULL = none */
    size_t build_id_size;
} hkc_image;

/* For copies of what is in an image. */
typedef struct hkc_image_texts {
    char path[HKC_IMAGE_PATH];
    uint8_t build_id[HKC_IMAGE_ID];
} hkc_image_texts;

/* The image that is mapped at an address; on Linux and Windows data included, on macOS its code, and the path of the
 * program is known. No lock but that of dl_iterate_phdr. */
bool hkc_image_at(uintptr_t address, hkc_image *image);
/* The same with path and build id in `texts`, for images that others may unload meanwhile. A longer path is
 * cut, a longer build id left out. */
bool hkc_image_copy_at(uintptr_t address, hkc_image *image, hkc_image_texts *texts);
/* The build id in notes, of an image or a file; NULL = none. */
const uint8_t *hkc_image_build_id(const void *notes, size_t size, size_t *id_size);
/* Name of the library's file up to the first dot: `_csv` for `_csv.cpython-311-x86_64-linux-gnu.so`. At most
 * size - 1 bytes; "" for the program. */
void hkc_image_stem(const hkc_image *image, char *stem, size_t size);
/* The same of a name without its folders. */
static inline void hkc_image_stem_of(const char *name, char *stem, size_t size)
{
    size_t length = strcspn(name, ".");
    if (length > size - 1) length = size - 1;
    memcpy(stem, name, length);
    stem[length] = '\0';
}

#endif
