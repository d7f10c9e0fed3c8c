// Profiles of shared contexts: heaps of threads that come, free each other's blocks, and go.
#include "profiled.h"

#include <atomic>
#include <mutex>
#include <thread>

using namespace test;

namespace
{

Options shared_options()
{
    Options options = ctx_options();
    options.shared = true;
    return options;
}

struct Sums {
    double alloc_blocks = 0, alloc_bytes = 0, live_blocks = 0, live_bytes = 0, error = 0;
};

Sums sums_of(const hak_ctx *ctx)
{
    Sums sums;
    for (const auto &[key, s] : stacks_of(ctx)) {
        sums.alloc_blocks += s.alloc_blocks;
        sums.alloc_bytes += s.alloc_bytes;
        sums.live_blocks += s.live_blocks;
        sums.live_bytes += s.live_bytes;
        sums.error += s.live_bytes_error * s.live_bytes_error;
    }
    sums.error = std::sqrt(sums.error);
    return sums;
}

// Threads that leave half of what they make to the others.
struct Crowd {
    hak_ctx *ctx;
    std::mutex lock;
    std::vector<void *> left;
    std::atomic<size_t> made{0};

    explicit Crowd(hak_ctx *of) : ctx(of)
    {
    }

    void work(uint64_t seed, size_t steps)
    {
        Random random(seed);
        std::vector<void *> mine;
        for (; steps; steps--) {
            if (random.below(3)) {
                size_t n = random.below(100) ? random.below(2000) : random.below(2 * MiB);
                void *p = hak_alloc_cs(ctx, n, 0, 1 + seed % 5);
                if (!p) abort();
                made++;
                mine.push_back(p);
            } else if (!mine.empty()) {
                size_t i = random.below(mine.size());
                hak_free(ctx, mine[i]);
                mine[i] = mine.back();
                mine.pop_back();
            }
            if (mine.size() > 100) {
                std::vector<void *> others;
                {
                    std::lock_guard<std::mutex> guard(lock);
                    left.insert(left.end(), mine.begin() + 50, mine.end());
                    mine.resize(50);
                    while (left.size() > 200 && others.size() < 60) {
                        others.push_back(left.front());
                        left.front() = left.back();
                        left.pop_back();
                    }
                }
                for (void *p : others)
                    hak_free(ctx, p);
            }
        }
        std::lock_guard<std::mutex> guard(lock);
        left.insert(left.end(), mine.begin(), mine.end());
    }

    void run(unsigned threads, size_t steps, uint64_t seed, bool done)
    {
        std::vector<std::thread> all;
        for (unsigned i = 0; i < threads; i++)
            all.emplace_back([=] {
                work(seed + i, steps);
                if (done) hak_ctx_thread_done(ctx);
            });
        for (std::thread &t : all)
            t.join();
    }

    void free_all()
    {
        for (void *p : left)
            hak_free(ctx, p);
        left.clear();
    }
};

} // namespace

TEST_CASE("profile shared: an exact one is the truth when threads are at rest")
{
    TestSpace s;
    Options options = shared_options();
    bool checks = GENERATE(false, true);
    if (checks) options.debug = HAK_DEBUG_CHECK;
    TestCtx ctx(s.space, &options);
    hak_profile_options exact = exact_options(64 * MiB);
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    CHECK(hak_profile_start(ctx, &exact) == -1);
    Crowd crowd(ctx);
    for (uint64_t round = 0; round < 2; round++) {
        crowd.run(checks ? 1 : 4, 2000, 10 * round, round);
        Sums sums = sums_of(ctx);
        require_sound(ctx);
        hak_stats stats = stats_of(ctx);
        CHECK(sums.alloc_blocks == (double)crowd.made);
        CHECK(sums.live_blocks == (double)stats.live_blocks);
        CHECK(sums.live_bytes == (double)stats.live_bytes);
        CHECK(info_of(ctx).dropped_samples == 0);
    }
    crowd.free_all();
    CHECK(sums_of(ctx).live_blocks == 0);
    REQUIRE(hak_profile_stop(ctx) == 0);
    CHECK(hak_profile_stop(ctx) == -1);
    hak_free(ctx, hak_alloc(ctx, 10));
    REQUIRE(hak_profile_reset(ctx) == 0);
    CHECK(stacks_of(ctx).empty());
    CHECK(info_of(ctx).table_bytes == 32 * KiB);
    require_sound(ctx);
}

TEST_CASE("profile shared: estimates, and heaps that were there before")
{
    TestSpace s;
    Options options = shared_options();
    TestCtx ctx(s.space, &options);
    Crowd crowd(ctx);
    crowd.run(3, 1000, 1, false);
    crowd.free_all();
    hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
    sampled.mean = 64 * KiB;
    sampled.table_bytes = 16 * MiB;
    REQUIRE(hak_profile_start(hak_ctx_thread(ctx), &sampled) == 0);
    crowd.run(3, 4000, 5, false);
    Sums sums = sums_of(ctx);
    double live = (double)stats_of(ctx).live_bytes;
    CHECK(info_of(ctx).samples > 100);
    // Threads that were there have a few blocks at hand that nobody counts.
    CHECK(std::fabs(sums.live_bytes - live) < 4 * sums.error + live / 50);
    crowd.free_all();
    CHECK(sums_of(ctx).live_blocks == 0);
    require_sound(ctx);
}

TEST_CASE("profile shared: started, read, stopped and reset beside threads at work")
{
    TestSpace s;
    Options options = shared_options();
    TestCtx ctx(s.space, &options);
    Crowd crowd(ctx);
    std::atomic<bool> over{false};
    std::thread other([&] {
        hak_profile_options o = exact_options();
        while (!over) {
            o.mode = o.mode == HAK_PROFILE_EXACT ? HAK_PROFILE_SAMPLED : HAK_PROFILE_EXACT;
            o.mean = 4 * KiB;
            hak_profile_start(ctx, &o);
            for (int i = 0; i < 3; i++) {
                hak_profile_visit(ctx, [](void *, const hak_profile_stack *) { return true; }, nullptr);
                std::this_thread::yield();
            }
            hak_profile_stop(ctx);
            if (o.mode == HAK_PROFILE_EXACT) hak_profile_reset(ctx);
        }
    });
    crowd.run(3, 3000 * EFFORT, 3, true);
    over = true;
    other.join();
    crowd.free_all();
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == 0);
}

TEST_CASE("profile shared: a thread that missed the stop counts as the next start says")
{
    TestSpace s;
    Options options = shared_options();
    TestCtx ctx(s.space, &options);
    auto allocate = [&](size_t n) {
        for (; n; n--)
            if (!hak_alloc_cs(ctx, 64, 0, 1)) FAIL("no memory");
    };
    REQUIRE(hak_profile_start(ctx, nullptr) == 0);
    allocate(20);
    REQUIRE(hak_profile_stop(ctx) == 0);
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    // At most a magazine passes by, and not half a MiB.
    allocate(600);
    CHECK(info_of(ctx).samples > 300);
}

TEST_CASE("profile shared: no memory for it")
{
    TestSpace s;
    Options options = shared_options();
    TestCtx ctx(s.space, &options);
    hak_free(ctx, hak_alloc(ctx, 10));
    hak_stats before = stats_of(ctx);
    REQUIRE(hak_limit(ctx, 0, before.committed_bytes + 20 * KiB, nullptr, nullptr) == 0);
    CHECK(hak_profile_start(ctx, nullptr) == -2);
    CHECK(stats_of(ctx).committed_bytes == before.committed_bytes);
    REQUIRE(hak_limit(ctx, 0, before.committed_bytes + 40 * KiB, nullptr, nullptr) == 0);
    REQUIRE(hak_profile_start(ctx, nullptr) == 0);
    CHECK(stats_of(ctx).metadata_bytes > before.metadata_bytes);
    CHECK(hak_alloc(ctx, 100) != nullptr);
    hak_ctx_retire(ctx);
    CHECK(hak_alloc(ctx, 100) == nullptr);
    require_sound(ctx);
}
