#include "profile/profile.h"

#include "common/mapped.h"
#include "common/otel.h"
#include "common/size.h"
#include "heap/heap.h"
#include "lines/site.h"
#include "profile/stack.h"

#include <errno.h>
#include <string.h>

enum { DEPTH = 64, TABLE_BYTES = 16 << 20 };
#define EXACT_TABLE_BYTES ((size_t)1 << 30) /* each live block is in it */

static unsigned depth_now = DEPTH;

/* Runs inside of an allocation. What it calls may allocate only by mistake; then that has no frames. */
static size_t take(void *unused, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
{
    static _Thread_local bool inside;
    (void)unused, (void)ctx;
    if (inside || room < 4) return 0;
    const int error = errno;
    inside = true;
    const size_t n = hkp_profile_stack(site, depth_now, frames, room);
    inside = false;
    errno = error;
    return n;
}

size_t hkp_profile_frames(hak_site site, uintptr_t *frames, size_t room)
{
    return take(NULL, NULL, site, frames, room);
}

const char *hkp_profile_parse(const char *text, hkp_profile_options *options)
{
    *options = (hkp_profile_options){.exact = strcmp(text, "exact") == 0};
    return options->exact || !*text ? NULL : hkc_size_parse(text, &options->mean);
}

const char *hkp_profile_start(const hkp_profile_options *o)
{
    if (!hkp_ctx()) return "no memory for a context";
    if (o->depth > HKP_PROFILE_DEPTH) return "depth is at most 100";
    hak_profile_options core = {
        .size = sizeof core,
        .mode = o->exact ? HAK_PROFILE_EXACT : HAK_PROFILE_SAMPLED,
        .mean = o->mean,
        .depth = HAK_PROFILE_DEPTH_MOST,
        .table_bytes = o->table_bytes != 0 ? o->table_bytes
                       : o->exact          ? EXACT_TABLE_BYTES
                                           : TABLE_BYTES,
        .frames = take,
        .seed = o->seed,
        .frames_alone = true,
        .one_by_one = true,
        .resident = hkc_mapped_resident,
        .window_ns = o->window_ns,
    };
    hkc_otel_tell(&core);
    const char *wrong = hak_profile_options_error(&core);
    if (wrong) return wrong;
    hkp_site_numbers(); /* without lines, stacks are of machine code alone */
    hak_profile_info info = {.size = sizeof info};
    if (hak_profile_stats(hkp_ctx(), &info) == 0 && info.running) return "a profile runs already";
    depth_now = o->depth != 0 ? o->depth : DEPTH;
    return hak_profile_start(hkp_ctx(), &core) == 0 ? NULL : "no memory for a profile, or over the limit";
}

int hkp_profile_stop(void)
{
    return hkp_ctx() ? hak_profile_stop(hkp_ctx()) : -1;
}

int hkp_profile_reset(void)
{
    return hkp_ctx() ? hak_profile_reset(hkp_ctx()) : -1;
}

int hkp_profile_mark(const char *name)
{
    return hkp_ctx() ? hak_profile_mark(hkp_ctx(), name) : -1;
}

int hkp_profile_stats(hak_profile_info *info)
{
    return hkp_ctx() ? hak_profile_stats(hkp_ctx(), info) : -1;
}

void hkp_profile_end(void)
{
    hkp_frames_end();
}
