/* Provider "site": the line of Python code that asked, and the native label. RAW, which is called without
 * the GIL too, has a line where the thread holds it. */
#define _DEFAULT_SOURCE
#include "base/map.h"
#include "common/profile_json.h"
#include "lines/site.h"
#include "native/native.h"
#include "paths/providers.h"

#include <sys/mman.h>

static const char *start(hak_ctx *ctx)
{
    static const hkp_hooks *const hooks[HKP_LAYOUTS] = {&hkp_hooks_site_3_10, &hkp_hooks_site_3_11,
                                                        &hkp_hooks_site_3_12, &hkp_hooks_site_3_13,
                                                        &hkp_hooks_site_3_14};
    static const hkp_hooks *const profiled[HKP_LAYOUTS] = {
        &hkp_hooks_site_3_10_profiled, &hkp_hooks_site_3_11_profiled, &hkp_hooks_site_3_12_profiled,
        &hkp_hooks_site_3_13_profiled, &hkp_hooks_site_3_14_profiled};
    const char *unable = hkp_native_start(ctx);
    if (!unable) unable = hkp_site_start();
    if (unable) return unable;
    hkp_provider_site.hooks = hooks[hkp_frames_layout()];
    hkp_provider_site.profiled = profiled[hkp_frames_layout()];
    return NULL;
}

static void swap(hkp_site_info *a, hkp_site_info *b)
{
    hkp_site_info c = *a;
    *a = *b;
    *b = c;
}

/* From the root of a heap in which it alone may be out of place: the smallest is on top. */
static void sift(hkp_site_info *sites, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && sites[child + 1].live_bytes < sites[child].live_bytes) child++;
        if (sites[root].live_bytes <= sites[child].live_bytes) return;
        swap(&sites[root], &sites[child]);
    }
}

/* The largest first. Not qsort, which may call malloc. */
static void sort(hkp_site_info *sites, size_t count)
{
    for (size_t i = count / 2; i > 0; i--)
        sift(sites, i - 1, count);
    for (size_t end = count; end > 1; end--) {
        swap(&sites[0], &sites[end - 1]);
        sift(sites, 0, end - 1);
    }
}

/* A stack of one frame; of none for what has no line. */
static void site_json(hkc_json *w, hkc_frames *frames, size_t number, const hkp_site_info *site)
{
    hkc_json_object(w, NULL);
    hkc_json_array(w, "frames");
    if (number != 0) hkc_frames_number_json(w, frames, HKP_SITE_FRAME(number));
    hkc_json_end(w);
    hkc_json_size(w, "live_bytes", site->live_bytes);
    hkc_json_size(w, "asked_bytes", site->asked_bytes);
    if (site->pinned_bytes > 0) hkc_json_size(w, "pinned_bytes", site->pinned_bytes);
    if (site->reused_bytes > 0) hkc_json_size(w, "reused_bytes", site->reused_bytes);
    hkc_json_size(w, "live_blocks", site->live_blocks);
    hkc_json_end(w);
}

static void report(hkc_json *w)
{
    hkp_provider_native.report(w);
    hkc_json_text(w, "lines_state", hkp_frames_state());
}

/* The largest first. */
static void lines(hkc_json *w, hkc_frames *frames, const char *key)
{
    size_t count = hkp_site_count();
    hkp_site_info *sites = hkp_pages(count * sizeof *sites);
    if (!sites) return;
    hkp_site_stats(sites, count);
    sort(sites, count);
    hkc_json_array(w, key);
    for (size_t i = 0; i < count && sites[i].live_blocks > 0; i++)
        site_json(w, frames, sites[i].number, &sites[i]);
    hkc_json_end(w);
    munmap(sites, count * sizeof *sites);
}

static void await(bool awaited)
{
    hkp_native_await(awaited);
    hkp_places_none(awaited);
}

hkp_provider hkp_provider_site = {
    .name = "site", .needs_all = true, .start = start, .report = report, .lines = lines, .await = await};
