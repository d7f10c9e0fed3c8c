#include "paths/process.h"

#include "paths/providers.h"

const hkp_process_allocator *hkp_process_now = &hkp_hooks_off.process;

void hkp_process_use(const hkp_hooks *hooks)
{
    __atomic_store_n(&hkp_process_now, &hooks->process, __ATOMIC_RELEASE);
}
