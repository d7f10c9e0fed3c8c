/* Linear memories: what a slot is while somebody has it. */
#include "image.h"
#include "profile.h"

#include <string.h>

static hkw_slot *live_at(const hak_wasm_host *host, const void *p)
{
    hkw_slot *slot = p ? hkw_slot_at(&host->slots, p) : NULL;
    return slot && atomic_load_explicit(&slot->tenant, memory_order_relaxed) ? slot : NULL;
}

static size_t page_up(size_t n)
{
    return (n + HKW_PAGE - 1) & ~(HKW_PAGE - 1);
}

static size_t size_of(const hkw_slot *slot)
{
    return atomic_load_explicit(&slot->size, memory_order_relaxed);
}

/* What a memory of this size is charged with: its slot takes gigabytes of address space, whatever it holds,
 * and tenants without a page would take the slots of all others. */
static size_t cost_of(size_t bytes)
{
    const size_t least = (size_t)64 << 10;
    return bytes > least ? bytes : least;
}

static bool reserve(hak_wasm_tenant *tenant, size_t bytes)
{
    return hkw_reserve(tenant, HKW_BYTES, bytes);
}

static void keep(hak_wasm_tenant *tenant, size_t bytes)
{
    hkw_keep(tenant, HKW_BYTES, bytes);
    atomic_fetch_add_explicit(&tenant->own_bytes, bytes, memory_order_relaxed);
}

static void uncharge(hak_wasm_tenant *tenant, size_t bytes)
{
    atomic_fetch_sub_explicit(&tenant->own_bytes, bytes, memory_order_relaxed);
    hkw_uncharge(tenant, HKW_BYTES, bytes);
}

static void set_size(hkw_slot *slot, size_t bytes)
{
    atomic_store_explicit(&slot->size, bytes, memory_order_relaxed);
    if (bytes > slot->high) slot->high = page_up(bytes);
}

static void link_memory(hak_wasm_tenant *tenant, hkw_slot *slot)
{
    pthread_mutex_lock(&tenant->memories_lock);
    slot->prev = NULL;
    slot->next = tenant->memories;
    if (slot->next) slot->next->prev = slot;
    tenant->memories = slot;
    pthread_mutex_unlock(&tenant->memories_lock);
}

static void unlink_memory(hak_wasm_tenant *tenant, hkw_slot *slot)
{
    pthread_mutex_lock(&tenant->memories_lock);
    if (slot->prev) slot->prev->next = slot->next;
    else tenant->memories = slot->next;
    if (slot->next) slot->next->prev = slot->prev;
    slot->prev = slot->next = NULL;
    pthread_mutex_unlock(&tenant->memories_lock);
}

void hkw_memories_each(hak_wasm_tenant *tenant, hkw_slot_fn *fn, void *user)
{
    pthread_mutex_lock(&tenant->memories_lock);
    for (hkw_slot *slot = tenant->memories; slot; slot = slot->next)
        fn(user, slot);
    pthread_mutex_unlock(&tenant->memories_lock);
}

/* A slot for the current tenant, charged and sized. */
static hkw_slot *begin(hak_wasm_host *host, size_t bytes, const hak_wasm_image *image, hak_site site)
{
    hak_wasm_tenant *tenant = hkw_tenant_current(host);
    if (bytes > host->slots.slot_bytes || !reserve(tenant, cost_of(bytes))) return NULL;
    hkw_slot *slot = hkw_slot_take(&host->slots, bytes, image);
    if (!slot) {
        hkw_cancel(tenant, HKW_BYTES, cost_of(bytes));
        return NULL;
    }
    keep(tenant, cost_of(bytes));
    set_size(slot, bytes);
    atomic_fetch_add_explicit(&tenant->own_memories, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tenant->refs, 1, memory_order_relaxed);
    link_memory(tenant, slot);
    atomic_store_explicit(&slot->tenant, tenant, memory_order_relaxed);
    hkw_profile_grown(tenant, slot, bytes, site);
    return slot;
}

void hkw_memory_end(hak_wasm_host *host, hkw_slot *slot)
{
    hkw_slot_wake(&host->slots, slot);
    hak_wasm_tenant *tenant = atomic_load_explicit(&slot->tenant, memory_order_relaxed);
    size_t bytes = size_of(slot);
    hkw_profile_shrunk(tenant, slot, bytes);
    atomic_store_explicit(&slot->tenant, NULL, memory_order_relaxed);
    unlink_memory(tenant, slot);
    hkw_slot_give(&host->slots, slot);
    uncharge(tenant, cost_of(bytes));
    atomic_fetch_sub_explicit(&tenant->own_memories, 1, memory_order_relaxed);
    hkw_tenant_unref(tenant);
}

void *hak_wasm_memory_new(hak_wasm_host *host, size_t bytes)
{
    hkw_slot *slot = begin(host, bytes, NULL, HAK_CALLSITE());
    return slot ? slot->base : NULL;
}

int hak_wasm_memory_free(hak_wasm_host *host, void *memory)
{
    hkw_slot *slot = live_at(host, memory);
    if (!slot) return -1;
    hkw_memory_end(host, slot);
    return 0;
}

/* The size becomes `bytes`; what is cut off is zero then. */
static int resize(hak_wasm_host *host, hkw_slot *slot, size_t bytes, hak_site site)
{
    hkw_slots *slots = &host->slots;
    hak_wasm_tenant *tenant = atomic_load_explicit(&slot->tenant, memory_order_relaxed);
    size_t size = size_of(slot);
    if (bytes > slots->slot_bytes) return -1;
    if (bytes > size) {
        const size_t more = cost_of(bytes) - cost_of(size);
        if (!reserve(tenant, more)) return -1;
        if (hkw_slot_open(slots, slot, bytes) != 0) {
            hkw_cancel(tenant, HKW_BYTES, more);
            return -1;
        }
        keep(tenant, more);
        hkw_slot_grows(slots, slot, bytes - size);
        hkw_profile_grown(tenant, slot, bytes - size, site);
    } else if (bytes < size) {
        size_t edge = page_up(bytes) < size ? page_up(bytes) : size;
        memset(slot->base + bytes, 0, edge - bytes);
        size_t resident =
            hkw_pages_clear(&slots->pages, slot->base + edge, size - edge, slots->warm_limit > 0);
        hkw_slot_shrunk(slots, slot, edge, page_up(size), resident);
        if (hkw_slot_open(slots, slot, bytes) != 0) return -1;
        hkw_profile_shrunk(tenant, slot, size - bytes);
        uncharge(tenant, cost_of(size) - cost_of(bytes));
    }
    set_size(slot, bytes);
    return 0;
}

int hak_wasm_memory_grow(hak_wasm_host *host, void *memory, size_t bytes)
{
    hkw_slot *slot = live_at(host, memory);
    if (!slot || bytes < size_of(slot)) return -1;
    hkw_slot_wake(&host->slots, slot);
    return resize(host, slot, bytes, HAK_CALLSITE());
}

size_t hak_wasm_memory_size(const hak_wasm_host *host, const void *memory)
{
    const hkw_slot *slot = live_at(host, memory);
    return slot ? size_of(slot) : 0;
}

bool hak_wasm_is_memory(const hak_wasm_host *host, const void *p)
{
    return live_at(host, p);
}

/* ---- Images -------------------------------------------------------------------------------------- */

hak_wasm_image *hak_wasm_image_take(hak_wasm_host *host, void *memory)
{
    hkw_slot *slot = live_at(host, memory);
    if (slot) hkw_slot_wake(&host->slots, slot);
    hak_wasm_image *image = slot ? hkw_image_new(host, memory, size_of(slot)) : NULL;
    if (image && hkw_image_attach(image, slot) != 0) {
        hkw_image_unref(image);
        image = NULL;
    }
    return image;
}

int hak_wasm_memory_reset(hak_wasm_host *host, void *memory, hak_wasm_image *image)
{
    hkw_slot *slot = live_at(host, memory);
    if (!slot || !image || image->host != host) return -1;
    hkw_slot_wake(&host->slots, slot);
    size_t size = size_of(slot);
    if (slot->image == image) {
        if (size != image->size && resize(host, slot, image->size, HAK_CALLSITE()) != 0) return -1;
        if (image->size) hkw_pages_restore(&host->slots.pages, slot->base, image->view, image->size);
        return 0;
    }
    if (size < image->size && resize(host, slot, image->size, HAK_CALLSITE()) != 0) return -1;
    if (hkw_image_attach(image, slot) != 0) {
        if (size < image->size) resize(host, slot, size, HAK_CALLSITE());
        return -1;
    }
    return size > image->size ? resize(host, slot, image->size, HAK_CALLSITE()) : 0;
}

int hak_wasm_memory_rest(hak_wasm_host *host, void *memory, hak_wasm_image *image)
{
    if (hak_wasm_memory_reset(host, memory, image) != 0) return -1;
    hkw_slot_rest(&host->slots, live_at(host, memory));
    return 0;
}

int hak_wasm_memory_wake(hak_wasm_host *host, void *memory)
{
    hkw_slot *slot = live_at(host, memory);
    if (!slot) return -1;
    hkw_slot_wake(&host->slots, slot);
    return 0;
}

void *hak_wasm_memory_adopt(hak_wasm_host *host, hak_wasm_image *image)
{
    if (!image || image->host != host) return NULL;
    hkw_slot *slot = begin(host, image->size, image, HAK_CALLSITE());
    if (slot && slot->image != image && hkw_image_attach(image, slot) != 0) {
        hkw_memory_end(host, slot);
        return NULL;
    }
    return slot ? slot->base : NULL;
}
