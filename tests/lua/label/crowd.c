#include "crowd.h"

#include "label_site.h"

void test_crowd_sites(size_t step)
{
#ifdef HKC_CFI_WALK
    for (size_t i = 0; i < HKL_SITE_SLOTS + HKC_SITE_PROBES; i += step)
        atomic_store(&hkl_site_cache[i], (uint64_t)(i + 1) << 16 | HKL_KIND_TRACE);
#else
    (void)step;
#endif
}
