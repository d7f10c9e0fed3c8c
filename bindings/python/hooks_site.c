/* Provider "site": the line of Python code that asked, and the native label. RAW has no line: it is called
 * without the GIL too, when the frames of this thread may not be there to read. */
#define _DEFAULT_SOURCE
#include "json.h"
#include "map.h"
#include "native.h"
#include "provider.h"
#include "site.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HK_PY_HOOKS hk_py_hooks_site
#define HK_PY_ROUND(n) hk_py_site_round(n)
#define HK_PY_LAST(n) hk_py_site_last(n)
#define HK_PY_MARK(domain) ((domain) != HK_PY_RAW ? hk_py_place_now() : 0)
#define HK_PY_MARK_FIND(domain) ((domain) != HK_PY_RAW ? hk_py_place_find() : 0)
#define HK_PY_PLACED(p, n, mark) hk_py_site_put(p, n, (hk_py_site_mark)(mark))
#define HK_PY_MARKED(p, mark) hk_py_site_mark_end(p, (hk_py_site_mark)(mark))
#include "hooks.h"

static const char *start(hak_ctx *ctx)
{
    const char *unable = hk_py_native_start(ctx);
    return unable ? unable : hk_py_site_start();
}

static int by_bytes(const void *a, const void *b)
{
    const hk_py_site_info *x = a, *y = b;
    return (x->live_bytes < y->live_bytes) - (x->live_bytes > y->live_bytes);
}

static void site_json(FILE *out, const char *before, const hk_py_site_info *site)
{
    fprintf(out, "%s{\"file\":", before);
    hk_py_json_string(out, site->file);
    fputs(",\"function\":", out);
    hk_py_json_string(out, site->function);
    fprintf(out, ",\"line\":%d", site->line);
    hk_py_json_size(out, ",", "live_bytes", site->live_bytes);
    hk_py_json_size(out, ",", "live_blocks", site->live_blocks);
    fputc('}', out);
}

/* The largest first. What has no line is `file` "". */
static void report(FILE *out, bool gil)
{
    hk_py_provider_native.report(out, gil);
    fputs(",\"frames\":", out);
    hk_py_json_string(out, hk_py_frames_state());
    size_t count = hk_py_site_count();
    hk_py_site_info *sites = hk_py_pages(count * sizeof *sites);
    if (!sites) return;
    hk_py_site_stats(sites, count);
    qsort(sites, count, sizeof *sites, by_bytes);
    fputs(",\"sites\":[", out);
    for (size_t i = 0; i < count && sites[i].live_blocks > 0; i++)
        site_json(out, i ? ",\n" : "\n", &sites[i]);
    fputc(']', out);
    munmap(sites, count * sizeof *sites);
}

const hk_py_provider hk_py_provider_site = {"site", start, &hk_py_hooks_site, report, hk_py_places_none};
