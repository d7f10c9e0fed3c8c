#include "mapped.h"

#include "callsite/walk.h"
#include "common/mapped_calls.h"
#include "context.h"
#include "report.h"
#include "settings.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static size_t charged;

static size_t left_of(size_t limit)
{
    return limit > charged ? limit - charged : 1; /* 0 would be none */
}

/* The heap's own limit is what the mappings leave of that of the settings. */
static bool charge(size_t now, bool insists)
{
    hak_stats stats = {.size = sizeof stats};
    hak_ctx *ctx = hks_context_made();
    const size_t limit = hks_settings_get()->limit, before = charged;
    charged = now;
    hak_limit(ctx, 0, left_of(limit), NULL, NULL); /* first: no other thread takes the room meanwhile */
    if (insists || now <= before) return true;
    for (int trims = 0; now < limit && hak_ctx_stats(ctx, &stats) == 0; trims++) {
        if (stats.committed_bytes <= left_of(limit)) return true;
        if (trims == 1) break;
        hak_ctx_trim(ctx);
    }
    charged = before;
    hak_limit(ctx, 0, left_of(limit), NULL, NULL);
    return false;
}

static size_t frames_of(uintptr_t caller, uintptr_t *frames, size_t room)
{
#ifdef HKC_CFI_WALK
    static hkc_walk walk;
    hkc_cfi_registers here;
    (void)caller;
    hkc_cfi_here(&here);
    return hkc_walk_stack(&walk, &here, (uintptr_t)__ehdr_start, (uintptr_t)etext, frames, room);
#else
    (void)caller;
    (void)frames;
    return 0 * room;
#endif
}

void hks_mapped_begin(void)
{
    const hks_settings *settings = hks_settings_get();
    const bool shown = *settings->profile != '\0' || *settings->live != '\0';
    if (settings->limit == 0 && !settings->report && !shown) return;
    const hkc_mapped_options options = {.low = (uintptr_t)__ehdr_start,
                                        .high = (uintptr_t)etext,
                                        .frames = frames_of,
                                        .charge = settings->limit != 0 ? charge : NULL,
                                        .tell = hks_report_line,
                                        .window_ns = shown ? settings->window_ns : 0};
    if (hkc_mapped_begin(&options)) return;
    if (settings->limit != 0) hks_report_stop("there is no memory to count what the program maps");
    hks_report_line("there is no memory to count what the program maps");
}
