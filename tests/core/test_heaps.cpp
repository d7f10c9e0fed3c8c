// Heaps of threads: how small one is, its classes and what they borrow, what it keeps at hand, who gets it
// next, what it keeps when its thread has ended.
#include "shared.h"

#include <memory>

using namespace test;

// Each round has one or two threads whose heaps would be found late, and so heaps that move.
TEST_CASE("heaps: a thread keeps its heap while others get theirs")
{
    enum { ROUNDS = 12, THREADS = 20 };
    std::vector<std::unique_ptr<char[]>> between; // until the end: malloc maps them as long as none is freed
    for (int round = 0; round < ROUNDS; round++) {
        Shared ctx;
        std::atomic<bool> over{false};
        std::atomic<int> begun{0};
        hak_ctx *heaps[THREADS] = {};
        std::vector<std::thread> threads;
        for (int i = 0; i < THREADS; i++) {
            // The registers of threads differ by multiples of one number, unless memory is mapped between their stacks.
            between.emplace_back(new char[size_t((i + round) * i % 7 + 4) << 16]);
            threads.emplace_back([&, i] {
                heaps[i] = hak_ctx_thread(ctx);
                begun++;
                while (!over) {
                    expect(hak_ctx_thread(ctx) == heaps[i], "a thread has another heap than before");
                    hak_free(ctx, hak_alloc(ctx, 40));
                }
            });
        }
        while (begun < THREADS)
            std::this_thread::yield();
        over = true;
        for (std::thread &t : threads)
            t.join();
        for (int i = 0; i < THREADS; i++)
            CHECK(std::count(heaps, heaps + THREADS, heaps[i]) == 1);
        require_sound(ctx);
    }
}

TEST_CASE("heaps: a thread with few blocks has one unit")
{
    Shared ctx;
    hak_free(ctx, hak_alloc(ctx, 16));
    const size_t before = stats_of(ctx).committed_bytes;
    run_thread([&] {
        for (size_t n = 16; n <= 256; n += 16)
            expect(hak_alloc(ctx, n) != nullptr, "no memory");
    });
    CHECK(stats_of(ctx).committed_bytes - before < 17 * KiB + 64);
}

TEST_CASE("heaps: a thread's heap has fewer classes than a local context")
{
    Shared ctx([](Options &o) { o.packed_bytes = HAK_NONE; });
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx local(s.space, &options);
    for (size_t n = 1; n <= 1024; n++) {
        CAPTURE(n);
        void *p = hak_alloc(ctx, n), *q = hak_alloc(local, n);
        size_t step = n <= 128 ? 8 : n <= 512 ? 16 : 64;
        CHECK(hak_usable_size(ctx, p) == (n + step - 1) / step * step);
        CHECK(hak_usable_size(local, q) <= hak_usable_size(ctx, p));
        p = hak_realloc_sized(ctx, p, n, n + 1);
        hak_free_sized(ctx, p, n + 1);
        hak_free(local, q);
    }
    void *aligned = hak_aligned_alloc(ctx, 32, 530);
    CHECK(hak_usable_size(ctx, aligned) == 576);
    CHECK((uintptr_t)aligned % 32 == 0);
    require_sound(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("heaps: a class without free blocks borrows some of a wider one, but not for ever")
{
    enum { BORROWED = 32 };
    Shared ctx([](Options &o) { o.packed_bytes = HAK_NONE; });
    void *wide = hak_alloc(ctx, 512);
    const size_t one = stats_of(ctx).committed_bytes;
    std::vector<void *> blocks;
    for (unsigned i = 0; i < 20; i++)
        blocks.push_back(hak_alloc(ctx, 480));
    CHECK(hak_usable_size(ctx, blocks.front()) == 512);
    CHECK(hak_usable_size(ctx, blocks.back()) == 512);
    CHECK(stats_of(ctx).committed_bytes == one);
    void *too_small = hak_alloc(ctx, 448);
    CHECK(hak_usable_size(ctx, too_small) == 448);
    for (unsigned i = 0; i < BORROWED; i++) {
        hak_free(ctx, blocks.back());
        blocks.back() = hak_alloc(ctx, 480);
    }
    CHECK(hak_usable_size(ctx, blocks.back()) == 480);
    blocks.insert(blocks.end(), {wide, too_small});
    for (void *p : blocks)
        hak_free(ctx, p);
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("heaps: larger blocks that were used before are taken rather than fresh ones")
{
    enum { BORROWED = 32, WIDE = 4, ROUNDS = 12, SIZE = 20480, WIDER = 24576 };
    Shared ctx;
    std::vector<void *> blocks;
    const auto usable = [&](size_t n) {
        blocks.push_back(hak_alloc(ctx, n));
        return hak_usable_size(ctx, blocks.back());
    };
    const auto free_all = [&] {
        for (void *p : blocks)
            hak_free(ctx, p);
        blocks.clear();
    };
    // The classes have room for many at hand, of which there are none.
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 4 * WIDE; i++)
            CHECK(usable(round % 2 ? SIZE : WIDER) >= SIZE);
        free_all();
        hak_ctx_flush(ctx);
    }
    for (unsigned i = 0; i < WIDE; i++)
        CHECK(usable(WIDER) == WIDER);
    std::vector<void *> own;
    const auto keep_own = [&] {
        CHECK(usable(SIZE) == SIZE);
        own.push_back(blocks.back());
        blocks.pop_back();
        free_all();
    };
    keep_own();
    for (unsigned i = 0; i < WIDE; i++)
        CHECK(usable(SIZE) == WIDER);
    keep_own();
    const auto borrow = [&](unsigned times) {
        unsigned borrowed = 0;
        for (unsigned i = 0; i < times; i++) {
            borrowed += usable(SIZE) == WIDER;
            free_all();
        }
        return borrowed;
    };
    // Not for ever, but anew after a tick.
    CHECK(borrow(BORROWED - 1) == BORROWED - 1);
    hak_ctx_tick(ctx, 1);
    CHECK(borrow(BORROWED) == BORROWED);
    CHECK(usable(SIZE) == SIZE);
    blocks.insert(blocks.end(), own.begin(), own.end());
    free_all();
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("heaps: packed units of a thread go back with their last blocks")
{
    enum { SIZES = 25, EACH = 10 };
    Shared ctx;
    std::vector<void *> blocks;
    for (unsigned i = 0; i < SIZES * EACH; i++)
        blocks.push_back(hak_alloc(ctx, 16 * (1 + i % SIZES)));
    const size_t most = stats_of(ctx).committed_bytes, part = blocks.size() / 5;
    for (size_t i = 0; i < blocks.size() - part; i++)
        hak_free(ctx, blocks[i]);
    CHECK(stats_of(ctx).committed_bytes + 16 * KiB <= most);
    for (size_t i = blocks.size() - part; i < blocks.size(); i++)
        hak_free(ctx, blocks[i]);
    CHECK(stats_of(ctx).committed_bytes + 32 * KiB <= most);
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("heaps: a thread keeps packed blocks that come and go at hand, and no others")
{
    // Of one class so many would have slabs.
    enum { BLOCKS = 10, FREED = 60, PAIRS = 100 };
    Shared ctx;
    std::vector<void *> blocks;
    const auto size = [](unsigned i) { return (size_t)(160 + 16 * (i % BLOCKS)); };
    const auto at_hand = [&] { return hak_ctx_live_bytes(ctx) - stats_of(ctx).live_bytes; };
    for (unsigned i = 0; i < BLOCKS + FREED; i++)
        blocks.push_back(hak_alloc(ctx, size(i)));
    for (unsigned i = 0; i < FREED; i++, blocks.pop_back())
        hak_free(ctx, blocks.back());
    CHECK(at_hand() == 0);
    for (unsigned i = 0; i < PAIRS; i++) {
        hak_free(ctx, blocks[i % BLOCKS]);
        blocks[i % BLOCKS] = hak_alloc(ctx, size(i));
    }
    hak_free(ctx, blocks.back());
    CHECK(at_hand() == size(BLOCKS - 1));
    CHECK(hak_alloc(ctx, size(BLOCKS - 1)) == blocks.back());
    // What another thread frees goes home to the lists: the magazine is this thread's.
    run_thread([&] {
        for (void *p : blocks)
            hak_free(ctx, p);
        hak_ctx_thread_done(ctx);
    });
    CHECK(stats_of(ctx).live_blocks == 0);
    CHECK(at_hand() == 0);
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("heaps: a thread keeps larger blocks that come and go at hand")
{
    enum { BLOCKS = 8, SIZE = 20000, ROUNDS = 5 };
    Shared ctx;
    for (unsigned round = 0; round < ROUNDS; round++) {
        std::vector<void *> blocks;
        for (unsigned i = 0; i < BLOCKS; i++)
            blocks.push_back(hak_alloc(ctx, SIZE));
        for (void *p : blocks)
            hak_free(ctx, p);
    }
    CHECK(hak_ctx_live_bytes(ctx) >= (size_t)BLOCKS * SIZE);
    CHECK(stats_of(ctx).live_bytes == 0);
    require_empty(ctx);
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
    Shared ctx([](Options &options) { options.packed_bytes = HAK_NONE; });
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
