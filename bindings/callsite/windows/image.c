/* Images of Windows are in the format PE. */
#include "callsite/image.h"

#include <string.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* Programs and libraries have no build id of the kind that ELF has. */
const uint8_t *hkc_image_build_id(const void *notes, size_t size, size_t *id_size)
{
    (void)notes, (void)size, (void)id_size;
    return NULL;
}

/* path: HKC_IMAGE_PATH bytes; NULL = the image has no path then. */
static bool find(uintptr_t address, hkc_image *image, char *path)
{
    HMODULE module;
    if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (const char *)address, &module))
        return false;
    const char *base = (const char *)module;
    const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)(const void *)base;
    const IMAGE_NT_HEADERS64 *head = (const IMAGE_NT_HEADERS64 *)(const void *)(base + dos->e_lfanew);
    memset(image, 0, sizeof *image);
    image->low = (uintptr_t)base;
    image->high = image->low + head->OptionalHeader.SizeOfImage;
    image->path = "";
    /* Addresses in the file are those for the base that the linker chose, which the loader writes over. */
    image->bias = image->low;
    if (!path) return true;
    if (!GetModuleFileNameA(module, path, HKC_IMAGE_PATH)) path[0] = '\0';
    image->path = path;
    return true;
}

bool hkc_image_at(uintptr_t address, hkc_image *image)
{
    return find(address, image, NULL);
}

bool hkc_image_copy_at(uintptr_t address, hkc_image *image, hkc_image_texts *texts)
{
    return find(address, image, texts->path);
}

void hkc_image_stem(const hkc_image *image, char *stem, size_t size)
{
    const char *name = image->path;
    for (const char *p = name; *p; p++)
        if (*p == '/' || *p == '\\') name = p + 1;
    hkc_image_stem_of(name, stem, size);
}
