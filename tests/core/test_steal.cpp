// Slabs that change heaps: a thread that frees what a sleeping or dead one made goes on with its slabs.
#include "shared.h"

#include <condition_variable>
#include <deque>
#include <mutex>

using namespace test;

constexpr uint64_t STEP = 1000; // nanoseconds of the clock for each block

TEST_CASE("steal: who frees the blocks of a sleeping thread gets its slabs, and the sleeper wakes up sound")
{
    enum { COUNT = 20000, SIZE = 200 };
    Shared ctx;
    std::vector<Block> blocks;
    for (unsigned i = 0; i < COUNT; i++)
        blocks.push_back(make(ctx, SIZE, i));
    // Magazines of the sleeper that hold blocks of its slabs.
    for (unsigned i = 0; i < 20; i++)
        hak_free(ctx, blocks[i * 900].p), blocks[i * 900] = make(ctx, SIZE, i * 900);
    const size_t full = stats_of(ctx).committed_bytes;
    std::vector<void *> spare;
    for (unsigned i = 0; i < 20; i++)
        spare.push_back(hak_alloc(ctx, SIZE));
    for (void *p : spare)
        hak_free(ctx, p);
    Random random(1);
    run_thread([&] {
        for (unsigned i = 0; i < 3 * COUNT; i++) {
            Block &b = blocks[random.below(COUNT)];
            check(b);
            hak_free(ctx, b.p);
            b = make(ctx, SIZE, b.id + COUNT);
            ctx.space.os.now += STEP;
        }
        expect(stats_of(ctx).committed_bytes < full + full / 2, "the sleeper's slabs were not used");
        hak_ctx_thread_done(ctx);
    });
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == COUNT);
    for (Block &b : blocks) {
        check(b);
        Block fresh = make(ctx, SIZE, b.id + 1);
        hak_free(ctx, b.p);
        b = fresh;
    }
    for (const Block &b : blocks) {
        check(b);
        hak_free(ctx, b.p);
    }
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("steal: a clock that goes back takes nobody for a sleeper")
{
    enum { COUNT = 20000, SIZE = 200 };
    auto committed = [](uint64_t step) {
        Shared ctx;
        ctx.space.os.now = 3600000000000;
        std::vector<Block> blocks;
        for (unsigned i = 0; i < COUNT; i++)
            blocks.push_back(make(ctx, SIZE, i));
        Random random(1);
        size_t bytes = 0;
        run_thread([&] {
            for (unsigned i = 0; i < 3 * COUNT; i++) {
                Block &b = blocks[random.below(COUNT)];
                check(b);
                hak_free(ctx, b.p);
                b = make(ctx, SIZE, b.id + COUNT);
                ctx.space.os.now += step;
            }
            bytes = stats_of(ctx).committed_bytes;
        });
        for (const Block &b : blocks)
            hak_free(ctx, b.p);
        require_empty(ctx);
        return bytes;
    };
    const size_t still = committed(0);
    CHECK(committed(-STEP) == still);
    CHECK(committed(STEP) < still); // or the step decides nothing
}

namespace
{

// Blocks of the calling thread, of which most are freed; half of these are then made anew by another one.
struct Thinned {
    enum { COUNT = 20000, SIZE = 200, KEPT = 8 };
    Shared ctx;
    std::vector<Block> blocks;
    size_t full;

    Thinned()
    {
        for (unsigned i = 0; i < COUNT; i++)
            blocks.push_back(make(ctx, SIZE, i));
        full = stats_of(ctx).committed_bytes;
    }
    void thin()
    {
        for (unsigned i = 0; i < COUNT; i++)
            if (i % KEPT) hak_free(ctx, blocks[i].p);
    }
    void refill(uint64_t step, const char *otherwise)
    {
        for (unsigned i = 0; i < COUNT / 2; i++) {
            if (i % KEPT) blocks[i] = make(ctx, SIZE, i);
            ctx.space.os.now += step;
        }
        expect(stats_of(ctx).committed_bytes < full + full / 8, otherwise);
    }
    void end()
    {
        require_sound(ctx);
        for (unsigned i = 0; i < COUNT; i++) {
            if (i >= COUNT / 2 && i % KEPT) continue;
            check(blocks[i]);
            hak_free(ctx, blocks[i].p);
        }
        require_empty(ctx);
        CHECK(ctx.errors.take() == "");
    }
};

} // namespace

TEST_CASE("steal: a thread that frees nothing goes on with the slabs of a sleeper, too")
{
    Thinned heap;
    run_thread([&] {
        heap.thin();
        run_thread([&] { heap.refill(STEP, "the sleeper's slabs were not used"); });
    });
    heap.end();
}

TEST_CASE("steal: a thread that is at work lends what it has to spare")
{
    Thinned heap;
    heap.thin();
    // No time passes: nobody can be taken for a sleeper.
    run_thread([&] { heap.refill(0, "what is to spare was not used"); });
    heap.end();
}

TEST_CASE("steal: threads hand on what they made, and some sleep")
{
    enum { THREADS = 4, COUNT = 1500, ROUNDS = 12 };
    Shared ctx;
    std::vector<Block> of[THREADS];
    Meeting meeting(THREADS);
    Crew crew(THREADS, [&](size_t t) {
        Random random(t);
        for (unsigned i = 0; i < COUNT; i++)
            of[t].push_back(make(ctx, 1 + random.below(600), i));
        for (size_t round = 1; round <= ROUNDS; round++) {
            meeting.meet();
            if (random.below(3) == 0) continue;
            std::vector<Block> &mine = of[(t + round) % THREADS];
            for (unsigned i = 0; i < 2 * COUNT; i++) {
                Block &b = mine[random.below(COUNT)];
                check(b);
                hak_free(ctx, b.p);
                b = make(ctx, 1 + random.below(600), b.id + 1);
                ctx.space.os.now += STEP;
            }
        }
    });
    REQUIRE(crew.join() == "");
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == THREADS * COUNT);
    for (auto &list : of)
        for (const Block &b : list) {
            check(b);
            hak_free(ctx, b.p);
        }
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

// The transfer cache of a sleeper, which is emptied when its slabs go over, holds the last blocks of some of
// them.
TEST_CASE("steal: a chain of threads, each of which replaces half of what comes")
{
    enum { THREADS = 4, BATCHES = 16, COUNT = 1024, ROUNDS = 300 };
    Shared ctx;
    std::vector<Block> batches[BATCHES];
    std::mutex lock;
    std::condition_variable filled;
    std::deque<size_t> queues[THREADS];
    for (size_t i = 0; i < BATCHES; i++)
        queues[0].push_back(i);
    Crew crew(THREADS, [&](size_t t) {
        Random random(t);
        const bool first = t == 0, last = t + 1 == THREADS;
        for (size_t round = 0; round < ROUNDS; round++) {
            std::unique_lock<std::mutex> hold(lock);
            filled.wait(hold, [&] { return !queues[t].empty(); });
            const size_t at = queues[t].front();
            queues[t].pop_front();
            hold.unlock();
            std::vector<Block> &batch = batches[at];
            ctx.space.os.now += COUNT * STEP;
            batch.resize(COUNT);
            for (size_t i = 0; !first && i < COUNT; i += last ? 1 : 2) {
                check(batch[i]);
                hak_free(ctx, batch[i].p);
            }
            for (size_t i = 0; !last && i < COUNT; i += first ? 1 : 2)
                batch[i] = make(ctx, (size_t)8 << random.below(9), (unsigned)i);
            hold.lock();
            queues[(t + 1) % THREADS].push_back(at);
            filled.notify_all();
        }
    });
    REQUIRE(crew.join() == "");
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("steal: a slab of one block that was emptied behind its cursor leaves the lists of its heap")
{
    enum { SIZE = 32 * KiB, NARROWER = 28 * KiB, RUN = 40 * KiB };
    Shared ctx;
    auto get = [&](size_t n, unsigned count) {
        std::vector<void *> blocks;
        while (blocks.size() < count)
            blocks.push_back(hak_alloc(ctx, n));
        return blocks;
    };
    auto free_all = [&](const std::vector<void *> &blocks) {
        for (void *p : blocks)
            hak_free(ctx, p);
    };
    // By another thread. The runs at the end make it send the blocks and take them home: they pass by the
    // magazine.
    auto free_elsewhere = [&](const std::vector<void *> &blocks) { run_thread([&] { free_all(blocks); }); };
    for (unsigned i = 0; i < 8; i++) /* a magazine of several, so that two blocks are wanted at once */
        free_all(get(SIZE, 8));
    hak_ctx_flush(ctx);
    // In a large heap a slab has four of them, in a small one it has one.
    const std::vector<void *> many = get(RUN, 400), four = get(SIZE, 4);
    free_all(many);
    std::vector<void *> runs = get(RUN, 42);
    hak_ctx_flush(ctx);
    void *one = hak_alloc(ctx, SIZE);
    free_elsewhere({one, runs[40]});
    REQUIRE(hak_alloc(ctx, SIZE) == one);
    free_elsewhere({four[0], one, runs[41]});
    REQUIRE(hak_alloc(ctx, SIZE) != nullptr);
    // A thread that takes over slabs of this one, which sleeps; it gives them back and takes their units for
    // others.
    runs.resize(40);
    std::vector<void *> theirs;
    run_thread([&] {
        free_all(runs);
        for (unsigned i = 0; i < 6; i++) {
            theirs.push_back(hak_alloc(ctx, SIZE));
            ctx.space.os.now += 1000000;
        }
        free_all(theirs);
        hak_ctx_flush(ctx);
        theirs = get(NARROWER, 12);
    });
    require_sound(ctx);
    std::vector<void *> ours = get(SIZE, 12);
    for (void *p : ours)
        CHECK(hak_usable_size(ctx, p) >= SIZE);
    require_sound(ctx);
    free_all(ours);
    free_all(theirs);
    require_sound(ctx);
}
