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

static const char *start(hak_ctx *ctx)
{
    static const hk_py_hooks *const hooks[HK_PY_LAYOUTS] = {&hk_py_hooks_site_3_10, &hk_py_hooks_site_3_11,
                                                            &hk_py_hooks_site_3_12, &hk_py_hooks_site_3_13};
    const char *unable = hk_py_native_start(ctx);
    if (!unable) unable = hk_py_site_start();
    if (!unable) hk_py_provider_site.hooks = hooks[hk_py_frames_layout()];
    return unable;
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

static void await(bool awaited)
{
    hk_py_native_await(awaited);
    hk_py_places_none(awaited);
}

hk_py_provider hk_py_provider_site = {"site", start, NULL, report, await};
