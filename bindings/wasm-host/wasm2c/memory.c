/* In place of wasm2c's memory functions, by the linker's --wrap. */
#include <hakmem/wasm_wasm2c.h>

#include <stdatomic.h>

#define PAGE_BYTES UINT64_C(65536)
#define MAX_PAGES 65535u /* wasm_rt_memory_t.size has 32 bits */

static _Atomic(hak_wasm_host *) default_host;

int hak_wasm_wasm2c_use(hak_wasm_host *host, bool signals)
{
    bool guarded = hak_wasm_host_bounds(host) == HAK_WASM_GUARD &&
                   hak_wasm_slot_bytes(host) + hak_wasm_guard_bytes(host) >= UINT64_C(8) << 30;
    if (signals && !guarded) return -1;
    atomic_store(&default_host, host);
    return 0;
}

static hak_wasm_host *host_of_thread(void)
{
    hak_wasm_tenant *tenant = hak_wasm_current().tenant;
    return tenant ? hak_wasm_tenant_host(tenant) : atomic_load(&default_host);
}

/* The host that has the memory; the thread may have another tenant by now. */
static hak_wasm_host *host_of(const wasm_rt_memory_t *memory)
{
    hak_wasm_host *host = host_of_thread();
    return hak_wasm_is_memory(host, memory->data) ? host : atomic_load(&default_host);
}

void __wrap_wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint32_t pages, uint32_t max_pages);
uint32_t __wrap_wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint32_t delta);
void __wrap_wasm_rt_free_memory(wasm_rt_memory_t *memory);

void __wrap_wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint32_t pages, uint32_t max_pages)
{
    memory->data = pages <= MAX_PAGES ? hak_wasm_memory_new(host_of_thread(), pages * PAGE_BYTES) : NULL;
    if (!memory->data) wasm_rt_trap(WASM_RT_TRAP_OOB);
    memory->pages = pages;
    memory->max_pages = max_pages < MAX_PAGES ? max_pages : MAX_PAGES;
    memory->size = (uint32_t)(pages * PAGE_BYTES);
}

uint32_t __wrap_wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint32_t delta)
{
    uint32_t before = memory->pages;
    uint64_t pages = (uint64_t)before + delta;
    if (delta == 0) return before;
    if (pages > memory->max_pages ||
        hak_wasm_memory_grow(host_of(memory), memory->data, pages * PAGE_BYTES) != 0)
        return UINT32_MAX;
    memory->pages = (uint32_t)pages;
    memory->size = (uint32_t)(pages * PAGE_BYTES);
    return before;
}

void __wrap_wasm_rt_free_memory(wasm_rt_memory_t *memory)
{
    hak_wasm_memory_free(host_of(memory), memory->data);
    memory->data = NULL;
}

int hak_wasm_wasm2c_reset(hak_wasm_host *host, wasm_rt_memory_t *memory, hak_wasm_image *image)
{
    if (hak_wasm_memory_reset(host, memory->data, image) != 0) return -1;
    memory->size = (uint32_t)hak_wasm_image_size(image);
    memory->pages = (uint32_t)(hak_wasm_image_size(image) / PAGE_BYTES);
    return 0;
}
