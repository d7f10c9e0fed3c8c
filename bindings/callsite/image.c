#define _GNU_SOURCE
#include "image.h"

#include <link.h>
#include <string.h>

typedef struct search {
    uintptr_t address;
    hkc_image *image;
    hkc_image_texts *texts; /* NULL = nothing is copied */
} search;

const uint8_t *hkc_image_build_id(const void *notes, size_t size, size_t *id_size)
{
    const uint8_t *note = notes;
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, note, sizeof head);
        const uint64_t name = (head.n_namesz + UINT64_C(3)) & ~UINT64_C(3),
                       content = (head.n_descsz + UINT64_C(3)) & ~UINT64_C(3);
        if (name + content > size - sizeof head) return NULL;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
            memcmp(note + sizeof head, "GNU", 4) == 0) {
            *id_size = head.n_descsz;
            return note + sizeof head + name;
        }
        note += sizeof head + name + content;
        size -= sizeof head + name + content;
    }
    return NULL;
}

static void copy(hkc_image *image, hkc_image_texts *texts)
{
    const size_t length = strnlen(image->path, sizeof texts->path - 1);
    memcpy(texts->path, image->path, length);
    texts->path[length] = '\0';
    image->path = texts->path;
    if (image->build_id_size > sizeof texts->build_id) image->build_id = NULL;
    if (!image->build_id) return;
    memcpy(texts->build_id, image->build_id, image->build_id_size);
    image->build_id = texts->build_id;
}

static int match(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    const search *s = user;
    hkc_image image = {.bias = info->dlpi_addr, .low = UINTPTR_MAX, .path = info->dlpi_name};
    bool found = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD) continue;
        uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        found |= s->address - low < ph->p_memsz;
        if (low < image.low) image.low = low;
        if (low + ph->p_memsz > image.high) image.high = low + ph->p_memsz;
    }
    if (!found) return 0;
    for (int i = 0; i < info->dlpi_phnum && !image.build_id; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_NOTE) continue;
        const void *notes = (const void *)(info->dlpi_addr + ph->p_vaddr);
        image.build_id = hkc_image_build_id(notes, ph->p_memsz, &image.build_id_size);
    }
    if (s->texts) copy(&image, s->texts);
    *s->image = image;
    return 1;
}

bool hkc_image_at(uintptr_t address, hkc_image *image)
{
    search s = {address, image, NULL};
    return dl_iterate_phdr(match, &s) != 0;
}

bool hkc_image_copy_at(uintptr_t address, hkc_image *image, hkc_image_texts *texts)
{
    search s = {address, image, texts};
    return dl_iterate_phdr(match, &s) != 0;
}

void hkc_image_stem(const hkc_image *image, char *stem, size_t size)
{
    const char *slash = strrchr(image->path, '/');
    hkc_image_stem_of(slash ? slash + 1 : image->path, stem, size);
}
