// Ticks: what was unused for a period goes back, by the clock of the test, and what was wanted again stays
// longer.
#include "crew.h"
#include "heap.h"

#include <algorithm>

using namespace test;

namespace
{

constexpr uint64_t MS = 1000000, PERIOD = 1000 * MS;

// Blocks of a run each, written as a whole and freed.
void use(hak_ctx *ctx, size_t bytes)
{
    std::vector<void *> blocks;
    for (size_t n = 0; n < bytes; n += 32 * KiB) {
        blocks.push_back(hak_alloc(ctx, 32 * KiB));
        if (!blocks.back()) FAIL("no block");
        std::memset(blocks.back(), 1, 32 * KiB);
    }
    for (void *p : blocks)
        hak_free(ctx, p);
    hak_ctx_flush(ctx);
}

void pass(hak_ctx *ctx, uint64_t &now, unsigned periods)
{
    for (unsigned i = 0; i < periods; i++)
        hak_ctx_tick(ctx, now += PERIOD);
}

// Of 24 MiB an eighth is wanted in each period, the rest each fifth time.
void phases(hak_ctx *ctx, uint64_t &now, unsigned periods)
{
    for (unsigned i = 0; i < periods; i++) {
        use(ctx, i % 5 ? 3 * MiB : 24 * MiB);
        pass(ctx, now, 1);
    }
}

} // namespace

TEST_CASE("retained pages stay until purge_ns have passed, then go")
{
    uint64_t purge_ns = GENERATE((uint64_t)0, 50 * MS);
    bool own_clock = GENERATE(false, true);
    CAPTURE(purge_ns, own_clock);
    TestSpace s([&](SpaceOptions &options) { options.purge_ns = purge_ns; });
    const uint64_t period = purge_ns ? purge_ns : 1000 * MS;
    TestCtx ctx(s.space);
    s.os.now = 3600 * 1000 * MS;
    auto tick = [&](uint64_t forward) {
        s.os.now += forward;
        hak_ctx_tick(ctx, own_clock ? 0 : s.os.now.load());
    };
    tick(0);
    hak_ctx *heavy = hak_ctx_new(s.space, nullptr);
    for (size_t total = 0; total < 16 * MiB; total += 20000)
        std::memset(hak_alloc(heavy, 20000), 1, 20000);
    hak_ctx_destroy(heavy);
    size_t retained = stats_of(ctx).retained_bytes;
    REQUIRE(retained >= 15 * MiB);
    tick(MS);
    // Within the period they stay, however often the host ticks.
    for (int i = 0; i < 9; i++)
        tick(period / 12);
    CHECK(stats_of(ctx).retained_bytes == retained);
    size_t committed = s.os.committed();
    // Bounded batches: several ticks at a time, a period is over at each fifth step.
    uint64_t gone_by = s.os.now + 2 * period + period / 4;
    for (int i = 0; i < 200 && stats_of(ctx).retained_bytes; i++) {
        tick(period / 8);
        for (int j = 0; j < 4; j++)
            tick(0);
    }
    CHECK(stats_of(ctx).retained_bytes == 0);
    CHECK(s.os.committed() <= committed - 15 * MiB);
    // Idle for one to two periods, no longer.
    CHECK(s.os.now <= gone_by);
    // Nothing left: a tick makes no call but that of the clock.
    uint64_t calls = s.os.counts.calls() - s.os.counts.clock;
    tick(10 * period);
    CHECK(s.os.counts.calls() - s.os.counts.clock == calls);
}

TEST_CASE("a clock that stands still, jumps or goes back keeps nothing for ever, and takes nothing at once")
{
    const bool shared = GENERATE(false, true);
    const uint64_t from = GENERATE((uint64_t)0, 1 * MS, 3600 * 1000 * MS, UINT64_MAX - 10 * 1000 * MS);
    const uint64_t to =
        GENERATE((uint64_t)1, 1 * MS, 5 * 1000 * MS, 9000 * 1000 * MS, UINT64_MAX - 100 * 1000 * MS);
    CAPTURE(shared, from, to);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    s.os.now = from; // what a tick with 0 reads
    auto tick = [&](uint64_t now) {
        s.os.now = now;
        hak_ctx_tick(ctx, now);
    };
    tick(from);
    hak_ctx *heavy = hak_ctx_new(s.space, nullptr);
    for (size_t total = 0; total < 16 * MiB; total += 20000)
        std::memset(hak_alloc(heavy, 20000), 1, 20000);
    hak_ctx_destroy(heavy);
    void *big = hak_alloc_cs(ctx, 4 * MiB, 0, 42);
    std::memset(big, 1, 4 * MiB);
    hak_free(ctx, big);
    const size_t retained = stats_of(ctx).retained_bytes;
    REQUIRE(retained >= 13 * MiB);
    for (int i = 0; i < 100; i++)
        tick(from);
    CHECK(stats_of(ctx).retained_bytes == retained);
    tick(to);
    // A leap is at most one period: one batch may go, or one begins.
    CHECK(stats_of(ctx).retained_bytes + 16 * MiB >= retained);
    for (uint64_t i = 1; i <= 200 && i * 100 * MS < UINT64_MAX - to; i++)
        tick(to + i * 100 * MS);
    CHECK(stats_of(ctx).retained_bytes == 0);
    CHECK(stats_of(ctx).cached_bytes < MiB);
    require_sound(ctx);
}

TEST_CASE("cached big blocks go with time, too")
{
    TestSpace s;
    TestCtx ctx(s.space);
    s.os.now = 1000 * MS;
    hak_ctx_tick(ctx, s.os.now);
    void *p = hak_alloc_cs(ctx, 4 * MiB, 0, 42);
    std::memset(p, 1, 4 * MiB);
    hak_free(ctx, p);
    REQUIRE(stats_of(ctx).cached_bytes >= 4 * MiB);
    size_t before = s.os.committed();
    for (int i = 0; i < 20; i++)
        hak_ctx_tick(ctx, s.os.now += 500 * MS);
    CHECK(stats_of(ctx).cached_bytes < MiB);
    CHECK(s.os.committed() <= before - 4 * MiB);
    require_sound(ctx);
}

TEST_CASE("a steady load makes hardly an OS call, ticks included")
{
    TestSpace s;
    TestCtx ctx(s.space);
    auto work = [&](unsigned round) {
        std::vector<std::pair<void *, size_t>> blocks;
        for (size_t n : {(size_t)24, (size_t)200, (size_t)1000, (size_t)7000, (size_t)66000, 300 * KiB})
            for (size_t total = 0; total < MiB; total += n)
                blocks.push_back({hak_alloc(ctx, n), n});
        for (int i = 0; i < 2; i++)
            blocks.push_back({hak_alloc_cs(ctx, 2 * MiB, 0, 7), 2 * MiB});
        if (round % 2) std::reverse(blocks.begin(), blocks.end());
        for (auto &block : blocks) {
            if (!block.first) FAIL("no block");
            std::memset(block.first, 1, std::min<size_t>(block.second, 5000));
            hak_free(ctx, block.first);
        }
        hak_ctx_tick(ctx, s.os.now += 100 * MS);
    };
    // 100 ms a round, purge_ns is a second: whatever is not needed goes within the first rounds. A round is
    // 75,000 allocations, so that this is fewer than one call in a million operations.
    for (unsigned round = 0; round < 60; round++)
        work(round);
    OsCounts before = s.os.counts;
    for (unsigned round = 0; round < 60 * EFFORT; round++)
        work(round);
    CHECK(s.os.counts.calls() - before.calls() <= 3 * EFFORT);
}

TEST_CASE("units that are wanted again stay for more and more periods, those that are not go")
{
    TestSpace s;
    TestCtx ctx(s.space);
    uint64_t now = 3600 * PERIOD;
    phases(ctx, now, 100);
    uint64_t before = stats_of(ctx).fresh_bytes;
    phases(ctx, now, 500);
    CHECK(stats_of(ctx).fresh_bytes - before < MiB);
    // Work that ends is no reason to wait for ever.
    pass(ctx, now, 140);
    CHECK(stats_of(ctx).retained_bytes == 0);
}

TEST_CASE("what goes back and is not wanted again shortens the wait")
{
    TestSpace s;
    TestCtx ctx(s.space);
    uint64_t now = 3600 * PERIOD;
    phases(ctx, now, 100);
    std::vector<void *> live;
    for (size_t n = 0; n < 48 * MiB; n += 32 * KiB)
        live.push_back(hak_alloc(ctx, 32 * KiB));
    auto periods_until_gone = [&] {
        for (unsigned i = 0; i < 64; i++, live.pop_back())
            hak_free(ctx, live.back());
        hak_ctx_flush(ctx);
        unsigned n = 0;
        for (; stats_of(ctx).retained_bytes && n < 200; n++)
            pass(ctx, now, 1);
        return n;
    };
    unsigned first = periods_until_gone(), last = first;
    for (unsigned i = 0; i < 20; i++)
        last = periods_until_gone();
    CAPTURE(first, last);
    CHECK(first > 32);
    CHECK(last <= 2);
}

TEST_CASE("a few scattered units of a heap at work are not worth calls, those of one at rest are")
{
    TestSpace s;
    TestCtx ctx(s.space);
    uint64_t now = 3600 * PERIOD;
    std::vector<void *> live;
    for (size_t n = 0; n < 32 * MiB; n += 32 * KiB)
        live.push_back(hak_alloc(ctx, 32 * KiB));
    use(ctx, 512 * KiB);
    pass(ctx, now, 3);
    // 2 MiB are free, and 128 KiB of them are never wanted: a 256th of what is live.
    use(ctx, 2 * MiB);
    size_t calls = stats_of(ctx).os_calls;
    for (unsigned i = 0; i < 20; i++) {
        use(ctx, 2 * MiB - 128 * KiB);
        hak_ctx_tick(ctx, now += PERIOD / 2);
        use(ctx, 1 * MiB);
        hak_ctx_tick(ctx, now += PERIOD / 2);
    }
    CHECK(stats_of(ctx).os_calls == calls);
    CHECK(stats_of(ctx).retained_bytes >= 2 * MiB - 64 * KiB);
    pass(ctx, now, 5);
    CHECK(stats_of(ctx).retained_bytes == 0);
}

TEST_CASE("cached big blocks that are asked for again after they went stay for more periods")
{
    const bool shared = GENERATE(false, true);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    uint64_t now = 3600 * PERIOD;
    auto run = [&](unsigned rounds, unsigned pause) {
        uint64_t before = s.os.counts.calls();
        for (unsigned i = 0; i < rounds; i++) {
            void *p = hak_alloc_cs(ctx, 3 * MiB, 0, 7);
            REQUIRE(p != nullptr);
            std::memset(p, 1, 3 * MiB);
            hak_free(ctx, p);
            pass(ctx, now, pause);
        }
        return s.os.counts.calls() - before;
    };
    run(10, 5);
    CHECK(run(100, 5) == 0);
    CHECK(stats_of(ctx).cached_bytes >= 3 * MiB);
    pass(ctx, now, 70);
    CHECK(stats_of(ctx).cached_bytes < MiB);
    // Larger ones each time: nothing is asked for again, and the wait gets shorter.
    for (size_t n = MiB + 64 * KiB; n < 4 * MiB; n += 192 * KiB) {
        hak_free(ctx, hak_alloc(ctx, n));
        for (unsigned j = 0; stats_of(ctx).cached_bytes >= MiB && j < 70; j++)
            pass(ctx, now, 1);
    }
    hak_free(ctx, hak_alloc(ctx, 3 * MiB));
    pass(ctx, now, 4);
    CHECK(stats_of(ctx).cached_bytes < MiB);
}

TEST_CASE("the limit of retained pages rises by a half where pages above it are wanted again")
{
    TestSpace s;
    TestCtx ctx(s.space);
    use(ctx, 64 * MiB);
    CHECK(stats_of(ctx).retained_bytes <= 32 * MiB);
    for (int i = 0; i < 3; i++)
        use(ctx, 44 * MiB);
    uint64_t calls = s.os.counts.calls();
    for (int i = 0; i < 20; i++)
        use(ctx, 44 * MiB);
    CHECK(s.os.counts.calls() == calls);
    for (int i = 0; i < 10; i++)
        use(ctx, 64 * MiB);
    CHECK(stats_of(ctx).retained_bytes <= 48 * MiB);
}
