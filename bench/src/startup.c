/* startup: the first allocation of a process, 64 bytes, with whatever the allocator needs before it: time
 * and resident memory. Case buffer: a space that begins in static memory of the program. What constructors
 * did before main shows in the resident size of the process, start_kib, against that of null. */
#include "harness.h"
#include BENCH_ADAPTER

#include <string.h>

enum { BUFFER = 256 * 1024 };

static void startup(const bench_case *c, const bench_settings *s)
{
    (void)s;
    /* Both calls once before, so that their own first pages are not counted. */
    resident_bytes();
    wall_ns();
    double before = (double)resident_bytes();
    uint64_t faults = page_faults(), from = wall_ns(), to;
    if (!strcmp(c->name, "buffer")) {
#if BA_HAS_BUFFER
        static _Alignas(4096) char buffer[BUFFER];
        ba_init_buffer(buffer, sizeof buffer);
#else
        bench_fail("this allocator cannot begin in a buffer of the caller");
#endif
    } else {
        ba_init();
    }
    touch(ba_alloc(64), 1);
    to = wall_ns();
    put("first_us", (double)(to - from) / 1000);
    put("first_faults", (double)(page_faults() - faults));
    put("first_kib", ((double)resident_bytes() - before) / (double)KIB);
    put("start_kib", before / (double)KIB);
}

static const bench_case cases[] = {{"mapping", 0, 0, false}, {"buffer", 1, 0, false}, {NULL, 0, 0, false}};

const bench_row rows_startup[] = {{"startup", cases, startup}, {NULL, NULL, NULL}};
