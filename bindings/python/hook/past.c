#include "hook/past.h"

#include "base/process.h"
#include "common/mapped.h"
#include "heap/heap.h"
#include "heap/resident.h"
#include "hook/say.h"

/* Every interpreter has some MiB of that: thread stacks, what libc keeps, buffers of libraries. */
static size_t worth(size_t limit)
{
    const size_t least = 8 << 20;
    return limit / 16 > least ? limit / 16 : least;
}

void hkp_past_tell(void)
{
    hak_stats stats = {.size = sizeof stats};
    if (hkp_stats(&stats) != 0 || stats.hard_limit == 0) return;
    const size_t counted = hkc_mapped_measure(hkp_process()), past = hkp_resident_past();
    const size_t now = past > counted ? past - counted : 0, peak = hkp_resident_anonymous_peak();
    /* At the peak the heap had the limit at most. */
    const size_t then = peak > stats.hard_limit ? peak - stats.hard_limit : 0;
    const size_t most = then > now ? then : now;
    if (most < worth(stats.hard_limit)) return;
    hkp_say("hakmem: C code took %s%.1f MiB past the limit of %.1f MiB, which %s\n",
            then > now ? "at least " : "", (double)most / (1 << 20), (double)stats.hard_limit / (1 << 20),
            hkp_malloc_in ? "does not count stacks of threads, and what was mapped before and touched since"
                          : "does not count malloc (--malloc does)");
}
