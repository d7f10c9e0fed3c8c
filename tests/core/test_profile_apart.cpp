// Profiles whose table lies apart from the context: no limit counts the table, and all of it goes back.
#include "profiled.h"

#include <vector>

using namespace test;

namespace
{

hak_profile_options apart_options(hak_profile_mode mode)
{
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = mode;
    options.table_bytes = 64 * MiB;
    options.mean = 1024;
    options.apart = true;
    return options;
}

// So many stacks, each with a block that stays, and a mark in between.
void fill(hak_ctx *ctx, hak_profile_mode mode, uintptr_t stacks, std::vector<void *> &blocks)
{
    for (uintptr_t n = 1; n <= stacks; n++) {
        if (n == stacks / 2) hak_profile_mark(ctx, "half");
        if (mode != HAK_PROFILE_COUNTED) {
            if (void *p = hak_alloc_cs(ctx, 2000, 0, n)) blocks.push_back(p);
            continue;
        }
        const uintptr_t frames[] = {n, n / 3};
        hak_profile_counts *counts = hak_profile_counts_of(ctx, frames, unsigned(n % 3), 0);
        if (counts) hak_profile_count_alloc(hak_profile_tally_of(ctx), counts, 100);
    }
}

size_t visited(const hak_ctx *ctx)
{
    uint32_t last = 0;
    REQUIRE(hak_profile_visit(
                ctx,
                [](void *user, const hak_profile_stack *s) {
                    uint32_t *id = static_cast<uint32_t *>(user);
                    if (s->id == *id + 1) *id = s->id; // in their order, without gaps
                    return true;
                },
                &last) == 0);
    return last;
}

} // namespace

TEST_CASE("profile apart: a context under a limit has as much room as without a profile")
{
    const auto mode = GENERATE(HAK_PROFILE_SAMPLED, HAK_PROFILE_EXACT, HAK_PROFILE_COUNTED);
    size_t blocks[2];
    for (const bool profiled : {false, true}) {
        TestSpace s;
        TestCtx ctx(s.space);
        hak_profile_options options = apart_options(mode);
        options.one_by_one = true; // batches of blocks are the context's
        const hak_stats before = stats_of(ctx);
        REQUIRE(hak_limit(ctx, 0, before.committed_bytes + 4 * MiB, nullptr, nullptr) == 0);
        if (profiled) REQUIRE(hak_profile_start(ctx, &options) == 0);
        CHECK(stats_of(ctx).committed_bytes == before.committed_bytes);
        CHECK(stats_of(ctx).metadata_bytes == before.metadata_bytes);
        if (profiled) CHECK(stats_of(ctx).reserved_bytes > before.reserved_bytes);
        std::vector<void *> made;
        if (mode == HAK_PROFILE_COUNTED && profiled) fill(ctx, mode, 60000, made);
        for (uintptr_t n = 1; void *p = hak_alloc_cs(ctx, 2000, 0, n); n++)
            made.push_back(p);
        blocks[profiled] = made.size();
        if (profiled) {
            CHECK(info_of(ctx).table_bytes > (mode == HAK_PROFILE_SAMPLED ? 256 * KiB : 64 * KiB));
            CHECK(info_of(ctx).dropped_stacks + info_of(ctx).dropped_samples == 0);
            require_sound(ctx);
        }
    }
    CHECK(blocks[1] == blocks[0]);
}

TEST_CASE("profile apart: the table goes back by reset, with the context and with the space")
{
    const auto mode = GENERATE(HAK_PROFILE_SAMPLED, HAK_PROFILE_EXACT, HAK_PROFILE_COUNTED);
    const bool shared = GENERATE(false, true);
    const int end = GENERATE(0, 1, 2);
    if (shared && mode == HAK_PROFILE_COUNTED) return;
    TestSpace s;
    Options o = ctx_options();
    o.shared = shared;
    hak_ctx *ctx = hak_ctx_new(s.space, &o);
    REQUIRE(ctx != nullptr);
    std::vector<void *> blocks;
    hak_profile_options options = apart_options(mode);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    fill(ctx, mode, 5000, blocks);
    const size_t stacks = info_of(ctx).stacks;
    CHECK(stacks > 1000);
    CHECK(visited(ctx) == stacks);
    CHECK(info_of(ctx).table_bytes > 200 * KiB);
    CHECK(s.os.reserved() > info_of(ctx).table_bytes);
    const size_t before = stats_of(ctx).reserved_bytes, table = info_of(ctx).table_bytes;
    if (end == 0) {
        REQUIRE(hak_profile_stop(ctx) == 0);
        REQUIRE(hak_profile_reset(ctx) == 0);
        CHECK(before - stats_of(ctx).reserved_bytes >= table - 32 * KiB);
        // once more, in the context: which is charged again
        options.apart = false;
        const size_t metadata = stats_of(ctx).metadata_bytes;
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        fill(ctx, mode, 5000, blocks);
        CHECK(stats_of(ctx).metadata_bytes > metadata + 200 * KiB);
        require_sound(ctx);
    }
    if (end < 2) hak_ctx_destroy(ctx);
}

TEST_CASE("profile apart: the table's pages are the space's, and the profile says how many bytes lie apart")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    hak_profile_options options = apart_options(HAK_PROFILE_EXACT);
    for (const bool apart : {true, false}) {
        options.apart = apart;
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        fill(ctx, options.mode, 5000, blocks);
        CHECK(info_of(ctx).table_bytes > 200 * KiB);
        CHECK(info_of(ctx).apart_bytes == (apart ? info_of(ctx).table_bytes : 0));
        CHECK(hak_space_bytes_within(s.space, nullptr, SIZE_MAX) == stats_of(ctx).reserved_bytes);
        REQUIRE(hak_profile_stop(ctx) == 0);
    }
    for (void *p : blocks)
        hak_free(ctx, p);
}

TEST_CASE("profile apart: a profile begins again elsewhere than the one before")
{
    const auto mode = GENERATE(HAK_PROFILE_SAMPLED, HAK_PROFILE_EXACT, HAK_PROFILE_COUNTED);
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    hak_profile_options options = apart_options(mode);
    for (int turn = 0; turn < 4; turn++) {
        options.apart = turn % 2 == 0;
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        CHECK(info_of(ctx).stacks == 0);
        fill(ctx, mode, 3000, blocks);
        CHECK(visited(ctx) == info_of(ctx).stacks);
        REQUIRE(hak_profile_stop(ctx) == 0);
        require_sound(ctx);
    }
    for (void *p : blocks)
        hak_free(ctx, p);
    require_sound(ctx);
}

TEST_CASE("profile apart: any request for pages may fail, and a buffer has none apart")
{
    for (const auto mode : {HAK_PROFILE_SAMPLED, HAK_PROFILE_EXACT, HAK_PROFILE_COUNTED})
        for (uint64_t n = 1; n <= 30; n++) {
            TestSpace s;
            TestCtx ctx(s.space);
            std::vector<void *> blocks;
            s.os.fail_nth(n);
            const hak_profile_options options = apart_options(mode);
            const int rc = hak_profile_start(ctx, &options);
            CHECK((rc == 0 || rc == -2));
            if (rc == 0) {
                fill(ctx, mode, 3000, blocks);
                CHECK(visited(ctx) == info_of(ctx).stacks);
                CHECK(info_of(ctx).dropped_stacks <= 100);
            }
            require_sound(ctx);
        }
    static char buffer[4 * MiB];
    SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
    options.buffer = buffer;
    options.buffer_size = sizeof buffer;
    options.buffer_only = true;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    hak_ctx *ctx = hak_ctx_new(space, nullptr);
    REQUIRE(ctx != nullptr);
    const size_t before = stats_of(ctx).metadata_bytes;
    const hak_profile_options apart = apart_options(HAK_PROFILE_COUNTED);
    REQUIRE(hak_profile_start(ctx, &apart) == 0);
    CHECK(stats_of(ctx).metadata_bytes > before);
    hak_space_delete(space);
}

TEST_CASE("profile counted: a stack of a frame takes 120 bytes of the table, marks and values beside")
{
    for (const bool apart : {false, true}) {
        TestSpace s;
        TestCtx ctx(s.space);
        hak_profile_options options = apart_options(HAK_PROFILE_COUNTED);
        options.apart = apart;
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        const size_t first = info_of(ctx).table_bytes;
        const uintptr_t most = 40000;
        std::vector<hak_profile_counts *> counts;
        for (uintptr_t n = 1; n <= most; n++) {
            counts.push_back(hak_profile_counts_of(ctx, &n, 1, 0));
            REQUIRE(counts.back() != nullptr);
            hak_profile_count_alloc(hak_profile_tally_of(ctx), counts.back(), n);
            if (n % 10000 == 0) CHECK(double(info_of(ctx).table_bytes - first) / double(n) < 120);
        }
        REQUIRE(hak_profile_mark(ctx, "all") == 1);
        CHECK(double(info_of(ctx).table_bytes - first) / double(most) > 170); // and the values at the mark
        hak_profile_count_alloc(hak_profile_tally_of(ctx), counts[7], 1000);
        std::map<uintptr_t, double> changed, live;
        const auto note = [](void *user, const hak_profile_stack *stack) {
            (*static_cast<std::map<uintptr_t, double> *>(user))[stack->frames[0]] = stack->live_bytes;
            return true;
        };
        REQUIRE(hak_profile_diff(ctx, 1, 2, note, &changed) == 0);
        CHECK(changed == std::map<uintptr_t, double>{{8, 1000}});
        REQUIRE(hak_profile_visit(ctx, note, &live) == 0);
        CHECK(live.size() == most);
        for (uintptr_t n = 1; n <= most; n += 997)
            CHECK(live[n] == double(n));
    }
}
