// Heaps of threads: how small one is, who gets it next, what it keeps when its thread has ended.
#include "shared.h"

using namespace test;

TEST_CASE("heaps: a thread with few blocks has one unit")
{
    Shared ctx;
    hak_free(ctx, hak_alloc(ctx, 16));
    const size_t before = stats_of(ctx).committed_bytes;
    run_thread([&] {
        for (size_t n = 16; n <= 256; n += 16)
            expect(hak_alloc(ctx, n) != nullptr, "no memory");
    });
    CHECK(stats_of(ctx).committed_bytes - before < 17 * KiB);
}

TEST_CASE("heaps: a thread gets the heap that was left on its stack, or else any")
{
    Shared ctx;
    hak_ctx *mine = hak_ctx_thread(ctx), *newer = nullptr;
    run_thread([&] {
        newer = hak_ctx_thread(ctx);
        hak_ctx_thread_done(ctx);
    });
    REQUIRE(newer != mine);
    hak_ctx_thread_done(ctx);
    CHECK(hak_ctx_thread(ctx) == mine);
    hak_ctx_thread_done(ctx);
    run_thread([&] {
        hak_ctx *theirs = hak_ctx_thread(ctx);
        expect(theirs == newer || theirs == mine, "a new heap beside two that are nobody's");
        hak_ctx_thread_done(ctx);
    });
    require_empty(ctx);
}

TEST_CASE("heaps: ticks empty what a thread that ended had at hand, once")
{
    const bool ended = GENERATE(false, true);
    CAPTURE(ended);
    enum { BLOCKS = 30 };
    Shared ctx([](hak_options &options) { options.packed_bytes = HAK_NONE; });
    hak_free(ctx, hak_alloc(ctx, 16));
    const size_t before = stats_of(ctx).committed_bytes;
    const auto work = [&] {
        std::vector<void *> blocks;
        for (size_t n = 16; n <= 1024; n += 64)
            for (unsigned i = 0; i < BLOCKS; i++)
                blocks.push_back(hak_alloc(ctx, n));
        for (void *p : blocks)
            hak_free(ctx, p);
        if (ended) hak_ctx_thread_done(ctx);
    };
    run_thread(work);
    const size_t kept = stats_of(ctx).committed_bytes;
    REQUIRE(kept > before + 200 * KiB);
    for (uint64_t s = 1; s <= 3; s++)
        hak_ctx_tick(ctx, s * 1000000000);
    if (ended) CHECK(stats_of(ctx).committed_bytes < before + 70 * KiB);
    else CHECK(stats_of(ctx).committed_bytes == kept);
    // The next one may have it again, and leave as much.
    run_thread(work);
    hak_ctx_tick(ctx, 10000000000);
    if (ended) CHECK(stats_of(ctx).committed_bytes < before + 70 * KiB);
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}
