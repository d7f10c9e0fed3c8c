#include "crowd.h"

#include "label_site.h"

void test_crowd_sites(size_t step)
{
#ifdef HK_CFI_WALK
    for (size_t i = 0; i < HK_SITE_SLOTS + HK_SITE_PROBES; i += step)
        atomic_store(&hk_site_cache[i], (uint64_t)(i + 1) << 16 | HK_KIND_TRACE);
#else
    (void)step;
#endif
}
