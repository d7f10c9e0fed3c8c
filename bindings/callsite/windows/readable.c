#include "callsite/readable.h"

#include <stdint.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

bool hkc_readable(const void *p, size_t n)
{
    const uintptr_t end = (uintptr_t)p + n;
    const DWORD saved = GetLastError();
    bool ok = end >= (uintptr_t)p;
    for (uintptr_t at = (uintptr_t)p; ok && at < end;) {
        MEMORY_BASIC_INFORMATION region;
        ok = VirtualQuery((const void *)at, &region, sizeof region) && region.State == MEM_COMMIT &&
             (region.Protect & (PAGE_NOACCESS | PAGE_GUARD | PAGE_EXECUTE)) == 0;
        at = (uintptr_t)region.BaseAddress + region.RegionSize;
    }
    SetLastError(saved);
    return ok;
}
