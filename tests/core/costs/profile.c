/* Profiles, by the number of stacks. */
#include "costs.h"

static void profile_start(size_t i)
{
    (void)i;
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    options.table_bytes = (size_t)64 << 20;
    must(hak_profile_start(ctx, &options) == 0);
}

static void profile_stop(size_t i)
{
    (void)i;
    must(hak_profile_stop(ctx) == 0);
}

static void profile_reset(size_t i)
{
    (void)i;
    must(hak_profile_reset(ctx) == 0);
}

static bool stack_seen(void *user, const hak_profile_stack *stack)
{
    (void)user;
    sink += stack->id;
    return true;
}

static bool growth_seen(void *user, const hak_profile_growth *growth)
{
    (void)user;
    sink += growth->stack;
    return true;
}

static void profile_visit(size_t i)
{
    (void)i;
    sink += (size_t)hak_profile_visit(ctx, stack_seen, NULL);
}

static void profile_stats(size_t i)
{
    (void)i;
    hak_profile_info info = {.size = sizeof info};
    must(hak_profile_stats(ctx, &info) == 0);
}

static void profile_mark(size_t i)
{
    (void)i;
    must(hak_profile_mark(ctx, "window") > 0);
}

static void profile_turn(size_t i)
{
    (void)i;
    must(hak_profile_turn(ctx) == 0);
}

static void profile_marks(size_t i)
{
    (void)i;
    hak_profile_window windows[8];
    must(hak_profile_marks(ctx, windows, 8) > 0);
}

static bool sample_seen(void *user, uint32_t stack, unsigned window, double bytes)
{
    (void)user, (void)bytes;
    sink += stack + window;
    return true;
}

/* Between two stacks that there are. */
static void profile_reuse(size_t i)
{
    must(hak_profile_reuse(ctx, blocks[i], 0, 1 + (i + 1) % 8) == 1);
}

static void profile_kept(size_t i)
{
    (void)i;
    must(hak_profile_kept(ctx, sample_seen, NULL) == 0);
}

static void profile_diff(size_t i)
{
    (void)i;
    must(hak_profile_diff(ctx, 1, 2, stack_seen, NULL) == 0);
}

static void profile_grown(size_t i)
{
    (void)i;
    must(hak_profile_grown(ctx, growth_seen, NULL) == 0);
}

static void counts_of(size_t i)
{
    const uintptr_t frame = 1 + i % count;
    hak_profile_counts *counts = hak_profile_counts_of(ctx, &frame, 1, 0);
    must(counts != NULL);
    sink += counts->id;
}

static void tally_of(size_t i)
{
    (void)i;
    must(hak_profile_tally_of(ctx) != NULL);
}

static void count_pair(size_t i)
{
    static hak_profile_counts *counts;
    if (i == 0) counts = hak_profile_counts_of(ctx, &(uintptr_t){1}, 1, 0);
    hak_profile_tally *all = hak_profile_tally_of(ctx);
    hak_profile_count_alloc(all, counts, 64);
    hak_profile_count_free(all, counts, 64);
}

/* n stacks that the host counts. */
static void measure_counted(size_t n)
{
    begin(NULL);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_COUNTED;
    options.window_ns = (uint64_t)3600 * 1000000000; /* read, never due */
    options.table_bytes = (size_t)64 << 20;
    must(hak_profile_start(ctx, &options) == 0);
    count = n;
    for (size_t i = 0; i < n; i++)
        counts_of(i);
    measure("profile_counts_of", n, 64, counts_of);
    measure("profile_tally_of", n, 10, tally_of);
    measure("profile_turn", n, 10, profile_turn);
    measure("profile_count pair", n, 100, count_pair);
    measure("profile_stats counted", n, 10, profile_stats);
    end();
}

/* n stacks, each with one live block. */
void measure_profile(size_t n)
{
    measure_counted(n);
    begin(NULL);
    measure("profile_start", n, 1, profile_start);
    for (count = 0; count < n; count++)
        must((blocks[count] = hak_alloc_cs(ctx, 64, 0, 1 + count)) != NULL);
    for (size_t i = 0; i < 5; i++)
        profile_mark(i);
    measure("profile_mark", n, 1, profile_mark);
    measure("profile_marks", n, 10, profile_marks);
    measure("profile_stats", n, 10, profile_stats);
    measure("profile_visit", n, 2, profile_visit);
    measure("profile_diff", n, 2, profile_diff);
    measure("profile_kept", n, 2, profile_kept);
    measure("profile_grown", n, 1, profile_grown);
    measure("profile_reuse", n, 8, profile_reuse);
    measure("profile_stop", n, 1, profile_stop);
    measure("profile_reset", n, 1, profile_reset);
    end();
}
