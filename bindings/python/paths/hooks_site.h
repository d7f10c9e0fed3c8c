/* The hooks of provider "site" for one version of CPython: included with HKP_LAYOUT and HKP_HOOKS. */
#include "lines/site.h"
#include "native/native.h"
#include "paths/providers.h"

#define HKP_ROUND(n) hkp_site_round(n)
#define HKP_LAST(n) hkp_site_last(n)
#define HKP_WITH_GIL(domain) ((domain) != HKP_RAW && (domain) != HKP_MALLOC)
#define HKP_MARK(domain) (HKP_WITH_GIL(domain) ? hkp_place_now(HKP_LAYOUT) : hkp_place_raw(HKP_LAYOUT))
#define HKP_MARK_FIND(domain) (HKP_WITH_GIL(domain) ? hkp_place_find() : hkp_place_find_raw())
#define HKP_USABLE(heap, p) hkp_site_usable(heap, p)
#define HKP_PLACED(p, n, mark) hkp_site_put(p, n, (hkp_site_mark)(mark))
#define HKP_MARKED(p, n, mark) hkp_site_mark_end(p, n, (hkp_site_mark)(mark))
#include "paths/hooks.h"
