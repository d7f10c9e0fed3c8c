/* Images of macOS are in the format Mach-O. */
#include "callsite/image.h"

#include <dlfcn.h>
#include <mach-o/loader.h>
#include <string.h>

/* An image is where its code is, the segment __TEXT: libraries of the system have the other segments elsewhere, with
 * those of other libraries between. Its UUID stands for the build id. */
static void read_head(const struct mach_header_64 *head, hkc_image *image)
{
    const char *at = (const char *)(head + 1);
    image->low = (uintptr_t)head;
    for (uint32_t i = 0; i < head->ncmds; i++) {
        const struct load_command *command = (const void *)at;
        if (command->cmd == LC_SEGMENT_64) {
            const struct segment_command_64 *segment = (const void *)at;
            if (strcmp(segment->segname, SEG_TEXT) == 0) {
                image->bias = image->low - segment->vmaddr;
                image->high = image->low + segment->vmsize;
            }
        } else if (command->cmd == LC_UUID) {
            const struct uuid_command *id = (const void *)at;
            image->build_id = id->uuid;
            image->build_id_size = sizeof id->uuid;
        }
        at += command->cmdsize;
    }
}

bool hkc_image_at(uintptr_t address, hkc_image *image)
{
    Dl_info info;
    if (dladdr((const void *)address, &info) == 0 || !info.dli_fbase) return false;
    memset(image, 0, sizeof *image);
    read_head(info.dli_fbase, image);
    image->path = info.dli_fname ? info.dli_fname : "";
    return image->low <= address && address < image->high;
}

bool hkc_image_copy_at(uintptr_t address, hkc_image *image, hkc_image_texts *texts)
{
    if (!hkc_image_at(address, image)) return false;
    const size_t length = strnlen(image->path, sizeof texts->path - 1);
    memcpy(texts->path, image->path, length);
    texts->path[length] = '\0';
    image->path = texts->path;
    if (!image->build_id) return true;
    memcpy(texts->build_id, image->build_id, image->build_id_size);
    image->build_id = texts->build_id;
    return true;
}

void hkc_image_stem(const hkc_image *image, char *stem, size_t size)
{
    const char *slash = strrchr(image->path, '/');
    hkc_image_stem_of(slash ? slash + 1 : image->path, stem, size);
}
