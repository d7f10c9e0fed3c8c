#define _GNU_SOURCE
#include "image.h"

#include "tenant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_WRITE
#error "memory files with seals are needed: Linux 3.17"
#endif

static bool is_zero(const char *p, size_t n)
{
    return *p == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* The tenant pays for what it makes the host keep; the last slot that is attached may be another's. */
static bool charge(hak_wasm_image *image, size_t bytes)
{
    if (!hkw_reserve(image->tenant, HKW_BYTES, bytes)) return false;
    hkw_keep(image->tenant, HKW_BYTES, bytes);
    atomic_fetch_add_explicit(&image->tenant->own_images, bytes, memory_order_relaxed);
    image->charged += bytes;
    return true;
}

static void end_charge(hak_wasm_image *image)
{
    atomic_fetch_sub_explicit(&image->tenant->own_images, image->charged, memory_order_relaxed);
    hkw_uncharge(image->tenant, HKW_BYTES, image->charged);
    hkw_tenant_unref(image->tenant);
}

/* Pages that are zero stay holes of the file. */
static bool write_pages(hak_wasm_image *image, int file, const char *memory)
{
    const size_t size = image->size;
    for (size_t at = 0; at < size;) {
        size_t end = at, page = size - at < HKW_PAGE ? size - at : HKW_PAGE;
        if (is_zero(memory + at, page)) {
            at += page;
            continue;
        }
        while (end < size && !is_zero(memory + end, page)) {
            end += page;
            page = size - end < HKW_PAGE ? size - end : HKW_PAGE;
        }
        if (!charge(image, end - at)) return false;
        while (at < end) {
            ssize_t n = pwrite(file, memory + at, end - at, (off_t)at);
            if (n <= 0) return false;
            at += (size_t)n;
        }
    }
    return true;
}

static bool fill(hak_wasm_image *image, const char *memory)
{
    const int file = memfd_create("hakmem-wasm-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (hkw_file_set(&image->file, file) < 0) return false;
    void *view = NULL;
    bool ok = ftruncate(file, (off_t)image->size) == 0 && write_pages(image, file, memory) &&
              fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0;
    /* Linux before 6.7 refuses shared mappings of a file that is sealed against writing, to read too. */
    if (ok && image->size) view = mmap(NULL, image->size, PROT_READ, MAP_PRIVATE, file, 0);
    if (ok && view != MAP_FAILED) {
        image->view = view;
        return true;
    }
    hkw_file_close(&image->file);
    return false;
}

static void image_end(hak_wasm_image *image)
{
    atomic_fetch_sub(&image->host->image_bytes, image->size);
    hkw_file_close(&image->file);
    if (image->view) {
        munmap((void *)(uintptr_t)image->view, image->size);
        hkw_mappings_give(&image->host->slots.mappings, 1);
    }
    end_charge(image);
    free(image);
}

hak_wasm_image *hkw_image_new(hak_wasm_host *host, const char *memory, size_t size)
{
    hak_wasm_image *image = calloc(1, sizeof *image);
    if (!image) return NULL;
    image->host = host;
    image->size = size;
    image->end = image_end;
    image->tenant = hkw_tenant_current(host);
    atomic_fetch_add_explicit(&image->tenant->refs, 1, memory_order_relaxed);
    atomic_init(&image->refs, 1);
    const bool mapped = size && hkw_slots_map(&host->slots, 1);
    /* The file itself takes a page at most. */
    if ((size && !mapped) || !charge(image, HKW_PAGE) || !fill(image, memory)) {
        if (mapped) hkw_mappings_give(&host->slots.mappings, 1);
        end_charge(image);
        free(image);
        return NULL;
    }
    atomic_fetch_add(&host->image_bytes, size);
    return image;
}

int hkw_image_attach(hak_wasm_image *image, hkw_slot *slot)
{
    hkw_slots *slots = &image->host->slots;
    size_t size = (image->size + HKW_PAGE - 1) & ~(HKW_PAGE - 1);
    const int file = hkw_file_get(&image->file);
    if (file < 0) return -1;
    /* An older image may have mapped more than this one does. */
    if (slot->mapped > size && hkw_slot_detach(slots, slot) != 0) return -1;
    if (hkw_slot_expect(slots, slot, size) != 0) return -1;
    if (size && mmap(slot->base, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, file,
                     0) == MAP_FAILED) {
        hkw_slot_expect(slots, slot, slot->mapped);
        return -1;
    }
    slot->mapped = size;
    hkw_slot_attach(slots, slot, image);
    return 0;
}

void hak_wasm_image_drop(hak_wasm_image *image)
{
    if (!image) return;
    atomic_store(&image->dropped, true);
    hkw_slots_cool(&image->host->slots, UINT64_MAX, image);
    hkw_image_unref(image);
}

size_t hak_wasm_image_size(const hak_wasm_image *image)
{
    return image ? image->size : 0;
}
