#include "common/otel.h"

#include "common/probe.h"

#ifdef HKC_PROBES

HKC_PROBE_SEMAPHORE(otel_memory, alloc);
HKC_PROBE_SEMAPHORE(otel_memory, free);

static void made(void *unused, const void *p, size_t n, double bytes)
{
    (void)unused;
    if (HKC_PROBE_AWAITED(otel_memory, alloc))
        HKC_PROBE3(otel_memory, alloc, (uintptr_t)p, n, (uint64_t)(bytes + 0.5));
}

static void gone(void *unused, const void *p)
{
    (void)unused;
    if (HKC_PROBE_AWAITED(otel_memory, free)) HKC_PROBE1(otel_memory, free, (uintptr_t)p);
}

void hkc_otel_tell(hak_profile_options *options)
{
    options->sample_made = made;
    options->sample_gone = gone;
}

bool hkc_otel_there(void)
{
    return true;
}

#else

void hkc_otel_tell(hak_profile_options *options)
{
    (void)options;
}

bool hkc_otel_there(void)
{
    return false;
}

#endif
