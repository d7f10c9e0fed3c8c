/* costs: calls functions of the interface on heaps of two sizes, for the sentences on cost in the headers.
 * Run under callgrind by test_costs.py: each part of what that writes is named WHAT/SIZE/CALLS and has the
 * instructions of CALLS calls on a heap of SIZE. Without callgrind it does the same and says nothing. */
#include "costs.h"

#include <valgrind/callgrind.h>

#include <stdlib.h>

hak_space *space;
hak_ctx *ctx;
void *blocks[MANY];
size_t count;
volatile size_t sink;

void must(bool ok)
{
    if (ok) return;
    fprintf(stderr, "costs: no memory\n");
    exit(1);
}

void measure(const char *what, size_t size, size_t calls, void (*call)(size_t i))
{
    char name[80];
    snprintf(name, sizeof name, "%s/%zu/%zu", what, size, calls);
    CALLGRIND_ZERO_STATS;
    for (size_t i = 0; i < calls; i++)
        call(i);
    CALLGRIND_DUMP_STATS_AT(name);
}

void begin(const hak_options *options)
{
    space = hak_space_new(NULL);
    ctx = space ? hak_ctx_new(space, options) : NULL;
    must(ctx);
}

void end(void)
{
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
}

int main(void)
{
    for (int way = 0; way < 3; way++) {
        measure_full((size_t)4 << 20, way == 0, way == 2);
        measure_full((size_t)16 << 20, way == 0, way == 2);
    }
    measure_owners(32);
    measure_owners(2048);
    measure_heap(MANY / 16, false);
    measure_heap(MANY, false);
    measure_heap(MANY / 16, true);
    measure_heap(MANY, true);
    measure_contexts(16);
    measure_contexts(512);
    measure_labels(10);
    measure_labels(200);
    measure_groups(2);
    measure_groups(32);
    measure_spaces(1);
    measure_spaces(64);
    measure_structs(2);
    measure_structs(200);
    measure_threads(2, 0);
    measure_threads(32, 0);
    measure_threads(2, 256);
    measure_threads(2, 4096);
    measure_profile(64);
    measure_profile(2048);
    measure_policy(8);
    measure_policy(512);
    measure_learner(2);
    measure_learner(32);
    measure_guard(8);
    measure_guard(64);
    measure_trace(32);
    measure_trace(1024);
    return 0;
}
