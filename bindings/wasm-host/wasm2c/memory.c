/* In place of wasm2c's memory functions, by the linker's --wrap. */
#include "parts.h"

#include <stdatomic.h>

/* Later versions tell 64-bit memories apart, and --wrap would put these functions in place of others. */
_Static_assert(_Generic(&wasm_rt_allocate_memory, void (*)(wasm_rt_memory_t *, uint32_t, uint32_t) : 1,
                        default : 0),
               "hakmem: wasm-rt.h is not that of wabt 1.0.32");

#define MAX_PAGES 65535u /* wasm_rt_memory_t.size has 32 bits */

static _Atomic(hak_wasm_host *) default_host;
static atomic_bool by_signals; /* guests have no bounds checks of their own */

/* Whether nothing of others can be reached from a memory of the host. */
static bool fits(const hak_wasm_host *host, bool signals)
{
    return !signals || (hak_wasm_host_bounds(host) == HAK_WASM_GUARD &&
                        hak_wasm_slot_bytes(host) + hak_wasm_guard_bytes(host) >= UINT64_C(8) << 30);
}

/* Without --wrap guests would get their memories elsewhere, and no limit would hold. */
static wasm_rt_memory_t probe;

static bool is_wrapped(void)
{
    static uint8_t mark;
    probe.data = &mark;
    wasm_rt_allocate_memory(&probe, 0, 0);
    const bool wrapped = probe.data == &mark;
    if (!wrapped) wasm_rt_free_memory(&probe);
    return wrapped;
}

int hak_wasm_wasm2c_use(hak_wasm_host *host, bool signals)
{
    if (!host || !fits(host, signals) || !is_wrapped()) return -1;
    atomic_store(&by_signals, signals);
    atomic_store(&default_host, host);
    return 0;
}

bool hkw_wasm2c_by_signals(void)
{
    return atomic_load(&by_signals);
}

hak_wasm_host *hkw_wasm2c_host(void)
{
    hak_wasm_tenant *tenant = hak_wasm_current().tenant;
    return tenant ? hak_wasm_tenant_host(tenant) : atomic_load(&default_host);
}

/* The current tenant's host first, as this needs no lock. */
hak_wasm_host *hkw_wasm2c_host_of(hkw_wasm2c_kind kind, const void *part, const void *data)
{
    hak_wasm_host *host = hkw_wasm2c_host();
    if (host && (kind == HKW_WASM2C_MEMORY ? hak_wasm_is_memory(host, data) : hak_wasm_owns(host, data)))
        return host;
    hak_wasm_host *own = hkw_wasm2c_part_host(kind, part);
    return own ? own : host;
}

static hak_wasm_host *host_of(const wasm_rt_memory_t *memory)
{
    return hkw_wasm2c_host_of(HKW_WASM2C_MEMORY, memory, memory->data);
}

void __wrap_wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint32_t pages, uint32_t max_pages);
uint32_t __wrap_wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint32_t delta);
void __wrap_wasm_rt_free_memory(wasm_rt_memory_t *memory);

void __wrap_wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint32_t pages, uint32_t max_pages)
{
    if (memory == &probe) return;
    hak_wasm_host *host = hkw_wasm2c_host();
    bool can = host && pages <= MAX_PAGES && fits(host, atomic_load(&by_signals));
    memory->data = can ? hak_wasm_memory_new(host, pages * HKW_WASM2C_PAGE) : NULL;
    if (memory->data && !hkw_wasm2c_add(HKW_WASM2C_MEMORY, memory, host)) {
        hak_wasm_memory_free(host, memory->data);
        memory->data = NULL;
    }
    if (!memory->data) wasm_rt_trap(WASM_RT_TRAP_OOB);
    memory->pages = pages;
    memory->max_pages = max_pages < MAX_PAGES ? max_pages : MAX_PAGES;
    memory->size = (uint32_t)(pages * HKW_WASM2C_PAGE);
}

uint32_t __wrap_wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint32_t delta)
{
    uint32_t before = memory->pages;
    uint64_t pages = (uint64_t)before + delta;
    if (delta == 0) return before;
    hak_wasm_wasm2c_stack(HKW_WASM2C_STACK);
    if (pages > memory->max_pages ||
        hak_wasm_memory_grow(host_of(memory), memory->data, pages * HKW_WASM2C_PAGE) != 0)
        return UINT32_MAX;
    memory->pages = (uint32_t)pages;
    memory->size = (uint32_t)(pages * HKW_WASM2C_PAGE);
    return before;
}

void __wrap_wasm_rt_free_memory(wasm_rt_memory_t *memory)
{
    hak_wasm_memory_free(host_of(memory), memory->data);
    hkw_wasm2c_remove(HKW_WASM2C_MEMORY, memory);
    memory->data = NULL;
}
