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
    // The variance is at most that many bytes times the mean; the error that the samples tell is 0 when few
    // live and none is drawn. Threads that were there have a few blocks at hand that nobody counts.
    CHECK(std::fabs(sums.live_bytes - live) < 5 * std::sqrt(live * (double)sampled.mean) + live / 50);
    crowd.free_all();
    CHECK(sums_of(ctx).live_blocks == 0);
    require_sound(ctx);
}

// Programs of threads, each with blocks of its own, and what all of them did.
struct Threads {
    hak_ctx *ctx;
    std::vector<Program> programs;

    Threads(hak_ctx *of, uint64_t seed, size_t count) : ctx(of)
    {
        for (size_t i = 0; i < count; i++) {
            programs.emplace_back(ctx, seed * 100 + i);
            programs.back().biggest = 64 * KiB;
        }
    }

    // Threads that come, work and end.
    void run(size_t steps, size_t live, bool done)
    {
        std::vector<std::thread> all;
        for (Program &program : programs)
            all.emplace_back([&, done] {
                // Calls go to the context or to the thread's heap.
                if (done) program.ctx = hak_ctx_thread(ctx);
                program.run(steps, live);
                program.ctx = ctx;
                if (done) hak_ctx_thread_done(ctx);
            });
        for (std::thread &t : all)
            t.join();
        // The next one gets the blocks.
        for (size_t i = 0; i + 1 < programs.size(); i++)
            std::swap(programs[i].blocks, programs[i + 1].blocks);
    }

    std::map<std::pair<hak_site, hak_label>, Truth> truth() const
    {
        std::map<std::pair<hak_site, hak_label>, Truth> sums;
        for (const Program &program : programs)
            for (const auto &[key, t] : program.truth) {
                sums[key].alloc_bytes += t.alloc_bytes;
                sums[key].live_bytes += t.live_bytes;
            }
        return sums;
    }
};

TEST_CASE("profile shared: estimates of threads are within their errors, over many seeds")
{
    Deviations deviations;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        TestSpace s;
        Options options = shared_options();
        TestCtx ctx(s.space, &options);
        Threads threads(ctx, seed, 3);
        hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
        sampled.mean = 16 * KiB;
        sampled.seed = seed * 1000;
        REQUIRE(hak_profile_start(ctx, &sampled) == 0);
        // Heaps of threads that are gone are used again, slabs go over, blocks are freed elsewhere.
        for (size_t round = 0; round < 3; round++)
            threads.run(1200, 1000, round != 1);
        require_sound(ctx);
        auto truth = threads.truth();
        for (const auto &[key, stack] : stacks_of(ctx))
            deviations.add(stack, truth[key]);
        for (Program &program : threads.programs)
            program.release_all();
        for (const auto &[key, stack] : stacks_of(ctx))
            CHECK(stack.live_samples == 0);
    }
    REQUIRE(deviations.n == 40 * 8);
    deviations.require_fair(2);
}

TEST_CASE("profile shared: each start counts anew in heaps that another profile sampled")
{
    TestSpace s;
    Options options = shared_options();
    TestCtx ctx(s.space, &options);
    hak_ctx *heap = hak_ctx_thread(ctx);
    Deviations deviations;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        // With other rates, modes and pauses between: what was set aside is not what the next one counts by.
        Program program(seed % 2 ? heap : (hak_ctx *)ctx, seed);
        program.biggest = 64 * KiB;
        hak_profile_options other = HAK_PROFILE_OPTIONS_INIT;
        other.mode = seed % 3 ? HAK_PROFILE_SAMPLED : HAK_PROFILE_EXACT;
        REQUIRE(hak_profile_start(ctx, &other) == 0);
        Program(program).run(300);
        REQUIRE(hak_profile_stop(ctx) == 0);
        if (seed % 4 == 0) Program(program).run(300);
        hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
        sampled.mean = 16 * KiB;
        sampled.seed = seed;
        REQUIRE(hak_profile_start(ctx, &sampled) == 0);
        // The thread takes part from its next slow path on: that of a block of its own pages.
        hak_free(heap, hak_alloc_cs(heap, 1 * MiB, 0, 100));
        program.run(8000, 3000);
        require_sound(ctx);
        for (const auto &[key, stack] : stacks_of(ctx))
            if (key.first != 100) deviations.add(stack, program.truth[key]);
        program.release_all();
        REQUIRE(hak_profile_stop(ctx) == 0);
    }
    REQUIRE(deviations.n == 40 * 8);
    deviations.require_fair();
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
                hak_profile_visit(
                    ctx, [](void *, const hak_profile_stack *) { return true; }, nullptr);
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

TEST_CASE("profile shared: the first block that a heap makes after the start counts")
{
    unsigned debug = GENERATE(0u, unsigned{HAK_DEBUG_GUARD}, unsigned{HAK_DEBUG_TRACE});
    TestSpace s;
    Options options = shared_options();
    options.debug = debug;
    TestCtx ctx(s.space, &options);
    hak_free(ctx, hak_alloc(ctx, 400)); // the heap was there before
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    size_t n = GENERATE(size_t{0}, 8, 100, 512, 1024, 2000, 20 * KiB, 100 * KiB, 3 * MiB);
    CAPTURE(debug, n);
    SECTION("as any block")
    {
        void *p = hak_alloc_cs(ctx, n, 0, 7);
        REQUIRE(p);
        CHECK(sums_of(ctx).alloc_blocks == 1);
        CHECK(sums_of(ctx).live_bytes == (double)hak_usable_size(ctx, p));
        hak_free(ctx, p);
    }
    SECTION("aligned")
    {
        void *p = hak_aligned_alloc_cs(ctx, 64, n, 0, 7);
        REQUIRE(p);
        CHECK(sums_of(ctx).alloc_blocks == 1);
        hak_free(ctx, p);
    }
    SECTION("larger than before")
    {
        void *old = hak_alloc_cs(ctx, 16, 0, 7), *p = hak_realloc_cs(ctx, old, n + 600, 0, 7);
        REQUIRE(p);
        CHECK(sums_of(ctx).alloc_blocks == 2);
        hak_free(ctx, p);
    }
    CHECK(sums_of(ctx).live_blocks == 0);
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

// Each block has a stack of its own, as deep as stacks are, so that pages of the table are full again and again.
TEST_CASE("profile shared: threads that bring new stacks lose none while the table has room")
{
    TestSpace s;
    Options o = shared_options();
    TestCtx ctx(s.space, &o);
    hak_profile_options options = exact_options();
    options.table_bytes = 256 * MiB;
    options.depth = HAK_PROFILE_DEPTH_MOST;
    options.frames = [](void *, hak_ctx *, hak_site site, uintptr_t *out, size_t room) {
        for (size_t i = 0; i < room; i++)
            out[i] = site + i;
        return room;
    };
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    std::vector<std::thread> threads;
    constexpr uintptr_t THREADS = 4, EACH = 1500;
    for (uintptr_t t = 0; t < THREADS; t++)
        threads.emplace_back([&, t] {
            for (uintptr_t i = 1; i <= EACH; i++)
                hak_free(ctx, hak_alloc_cs(ctx, 64, 0, (t * EACH + i) * 1000));
            hak_ctx_thread_done(ctx);
        });
    for (std::thread &t : threads)
        t.join();
    CHECK(info_of(ctx).dropped_stacks == 0);
    CHECK(info_of(ctx).dropped_samples == 0);
    CHECK(info_of(ctx).stacks == THREADS * EACH);
}

// A mapping that moves leaves its old place to other threads, before the context has heard of the new one.
TEST_CASE("profile shared: a sample is not known at the place that its pages leave")
{
    struct Mover : FakeOs {
        hak_ctx *ctx = nullptr;
        int moves = 0, known = 0;
    } m;
    hak_os os = *m.table();
    os.user = static_cast<FakeOs *>(&m);
    os.remap = [](void *user, void *p, size_t old_n, size_t n, uintptr_t below) {
        Mover *mover = static_cast<Mover *>(static_cast<FakeOs *>(user));
        void *q = mover->table()->remap(user, p, old_n, n, below);
        if (q && q != p) {
            mover->moves++;
            mover->known += hak_profile_reuse(mover->ctx, p, 0, 99) != 0;
        }
        return q;
    };
    SpaceOptions so = space_options(m);
    so.os = &os;
    hak_space *space = hak_space_new(&so);
    REQUIRE(space != nullptr);
    {
        Options o = ctx_options();
        o.shared = GENERATE(false, true);
        TestCtx ctx(space, &o);
        m.ctx = ctx;
        hak_profile_options options = exact_options();
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        std::vector<void *> blocks;
        void *p = hak_alloc_cs(ctx, 3 * MiB, 0, 7);
        for (size_t n = 4; n < 40; n += 3) {
            blocks.push_back(hak_alloc_cs(ctx, 3 * MiB, 0, 8)); // lies in the way
            p = hak_realloc_cs(ctx, p, n * MiB, 0, 9);
            REQUIRE(p != nullptr);
        }
        CHECK(m.moves > 5);
        CHECK(m.known == 0);
        const auto stacks = stacks_of(ctx);
        double live[10] = {};
        for (const auto &[key, stack] : stacks)
            if (stack.site < 10) live[stack.site] += stack.live_blocks;
        CHECK(live[7] + live[9] == 1);
        CHECK(live[8] == double(blocks.size()));
        CHECK(sums_of(ctx).live_bytes == double(hak_ctx_live_bytes(ctx)));
        for (void *block : blocks)
            hak_free(ctx, block);
        hak_free(ctx, p);
        CHECK(sums_of(ctx).live_blocks == 0);
        require_sound(ctx);
    }
    hak_space_delete(space);
    CHECK(m.close() == "");
}
