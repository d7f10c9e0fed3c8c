// Batches of one class that other threads freed: kept at home for the next allocations, counted as free all
// the while, and given up where memory is wanted. Random histories are in test_shared_stress.cpp.
#include "shared.h"

#include <set>

using namespace test;

namespace
{

// Without packed blocks, and without misuse.
struct Stocked : Shared {
    Stocked() : Shared([](Options &o) { o.packed_bytes = HAK_NONE; })
    {
    }
    ~Stocked()
    {
        CHECK(errors.take() == "");
    }
};

std::vector<void *> allocate(hak_ctx *ctx, size_t n, size_t count)
{
    std::vector<void *> blocks(count);
    for (void *&p : blocks) {
        p = hak_alloc_cs(ctx, n, 1, 0);
        expect(p != nullptr, "no memory");
        fill(p, std::min<size_t>(n, 64), (unsigned)(addr(p) >> 4));
    }
    return blocks;
}

void release(hak_ctx *ctx, const std::vector<void *> &blocks, size_t n)
{
    for (void *p : blocks) {
        expect(filled(p, std::min<size_t>(n, 64), (unsigned)(addr(p) >> 4)), "a block lost its contents");
        hak_free(ctx, p);
    }
}

// What one thread allocates another one frees, until the class is known to need a transfer cache.
void teach(hak_ctx *ctx, size_t n, size_t count)
{
    for (int i = 0; i < 10; i++) {
        std::vector<void *> blocks = allocate(ctx, n, count);
        run_thread([&] {
            release(ctx, blocks, n);
            hak_ctx_thread_done(ctx);
        });
    }
}

void require_nothing_live(hak_ctx *ctx)
{
    CHECK(stats_of(ctx).live_blocks == 0);
    CHECK(hak_ctx_live_bytes(ctx) <= stats_of(ctx).cached_bytes);
    CHECK(label_totals(ctx).blocks == 0);
}

} // namespace

TEST_CASE("transfer cache: what another thread freed is handed out again, and counts as free before")
{
    Stocked ctx;
    const size_t n = GENERATE((size_t)24, (size_t)1000, (size_t)2048), count = 300;
    CAPTURE(n);
    teach(ctx, n, count);
    std::vector<void *> first = allocate(ctx, n, count);
    run_thread([&] {
        release(ctx, first, n);
        hak_ctx_thread_done(ctx);
    });
    require_nothing_live(ctx);
    const size_t committed = committed_of(ctx);
    std::vector<void *> again = allocate(ctx, n, 1);
    // No slab is empty for the owner, who has looked.
    CHECK(committed_of(ctx) == committed);
    for (void *p : allocate(ctx, n, count - 1))
        again.push_back(p);
    CHECK(committed_of(ctx) <= committed + 64 * KiB); // the first few went to bitmaps
    const std::set<void *> before(first.begin(), first.end());
    // All but what was in the magazine.
    CHECK(std::count_if(again.begin(), again.end(), [&](void *p) { return before.count(p); }) >
          (int)count * 3 / 4);
    CHECK(stats_of(ctx).live_blocks == count);
    release(ctx, again, n);
    hak_ctx_flush(ctx);
    require_nothing_live(ctx);
    CHECK(committed_of(ctx) + count * n / 2 < committed);
    require_sound(ctx);
}

TEST_CASE("transfer cache: labels, visits and checks see what is freed as free, flush takes it")
{
    Stocked ctx;
    teach(ctx, 100, 1000);
    std::vector<void *> mine = allocate(ctx, 100, 1000), kept = allocate(ctx, 100, 10);
    run_thread([&] {
        release(ctx, mine, 100);
        hak_ctx_thread_done(ctx);
    });
    kept.push_back(hak_alloc_cs(ctx, 40, 2, 0)); // looks into the queue
    hak_label_info infos[4];
    REQUIRE(hak_labels_stats(ctx, infos, 4) == 4);
    CHECK(infos[1].live_blocks == 10);
    CHECK(infos[2].live_blocks == 1);
    const size_t committed = committed_of(ctx);
    CHECK(visit_totals(ctx).blocks == 11);
    require_sound(ctx);
    hak_ctx_flush(ctx);
    CHECK(committed_of(ctx) < committed);
    for (void *p : kept)
        hak_free(ctx, p);
    require_nothing_live(ctx);
}

TEST_CASE("transfer cache: a tick of any thread empties it after a period")
{
    const bool other = GENERATE(false, true);
    CAPTURE(other);
    Stocked ctx;
    const auto tick = [&](uint64_t now) {
        if (other) run_thread([&] { hak_ctx_tick(ctx, now); });
        else hak_ctx_tick(ctx, now);
    };
    teach(ctx, 500, 300);
    std::vector<void *> mine = allocate(ctx, 500, 300);
    run_thread([&] {
        release(ctx, mine, 500);
        hak_ctx_thread_done(ctx);
    });
    const size_t before = committed_of(ctx);
    tick(10000000000u); // the first one to look
    tick(10000000001u);
    CHECK(committed_of(ctx) >= before);
    tick(20000000000u);
    CHECK(committed_of(ctx) + 48 * KiB < before);
    require_nothing_live(ctx);
}

TEST_CASE("transfer cache: a heap that grows gets what others keep")
{
    Stocked ctx;
    teach(ctx, 1000, 1500);
    const std::vector<void *> mine = allocate(ctx, 1000, 1500);
    const size_t full = committed_of(ctx);
    run_thread([&] {
        release(ctx, mine, 1000);
        hak_ctx_thread_done(ctx);
    });
    hak_ctx_tick(ctx, 10000000000u); // the first one to look
    const size_t kept = committed_of(ctx);
    REQUIRE(kept > full / 2);
    run_thread([&] {
        std::vector<void *> theirs = allocate(ctx, 128, full / 128);
        expect(committed_of(ctx) < kept + full * 3 / 4, "what another heap keeps was not used");
        release(ctx, theirs, 128);
    });
    hak_ctx_flush(ctx);
    require_nothing_live(ctx);
    require_sound(ctx);
}

TEST_CASE("transfer cache: blocks of many owners and classes, by turns")
{
    Stocked ctx;
    enum { OWNERS = 4, CLASSES = 100, EACH = 60 };
    std::vector<std::vector<void *>> made[OWNERS];
    Meeting meeting(OWNERS + 1);
    Crew crew(OWNERS, [&](size_t t) {
        for (size_t c = 0; c < CLASSES; c++)
            made[t].push_back(allocate(ctx, 20 * (c + 1), EACH));
        meeting.meet();
        meeting.meet();
        for (size_t c = 0; c < CLASSES; c++)
            release(ctx, allocate(ctx, 20 * (c + 1), EACH), 20 * (c + 1));
        hak_ctx_thread_done(ctx);
    });
    meeting.meet();
    for (size_t i = 0; i < EACH; i++)
        for (size_t c = 0; c < CLASSES; c++)
            for (auto &owner : made)
                hak_free(ctx, owner[c][i]);
    CHECK(stats_of(ctx).live_blocks == 0);
    CHECK(label_totals(ctx).blocks == 0);
    meeting.meet();
    REQUIRE(crew.join() == "");
    hak_ctx_flush(ctx);
    require_nothing_live(ctx);
    require_sound(ctx);
}

TEST_CASE("transfer cache: blocks of a dead thread, kept there or under way, follow its slabs")
{
    Stocked ctx;
    std::vector<void *> early, late;
    // With stacks of their own, so that no thread gets the register of the dead one.
    Meeting meeting(2);
    Crew holder;
    holder.add([&] {
        early = allocate(ctx, 64, 400), late = allocate(ctx, 64, 30);
        meeting.meet();
        meeting.meet();
    });
    meeting.meet();
    release(ctx, early, 64);
    release(ctx, late, 64);
    meeting.meet();
    REQUIRE(holder.join() == "");
    for (int i = 0; i < 3; i++)
        run_thread([&] { release(ctx, allocate(ctx, 64, 500), 64); });
    hak_ctx_flush(ctx);
    require_nothing_live(ctx);
    require_sound(ctx);
}

TEST_CASE("transfer cache: HAK_DEBUG_ABORT alone, which has no magazines")
{
    TestSpace space;
    Options options = ctx_options();
    options.shared = true;
    options.packed_bytes = HAK_NONE;
    options.debug = HAK_DEBUG_ABORT;
    TestCtx ctx(space.space, &options);
    for (int i = 0; i < 100; i++)
        teach(ctx, 64, 300);
    // What is written for a magazine without room must not be in the next record.
    void *big = hak_alloc(ctx, 2 * MiB), *small = hak_alloc(ctx, 64);
    CHECK(hak_usable_size(ctx, big) == 2 * MiB);
    hak_free(ctx, small);
    hak_free(ctx, big);
    require_sound(ctx);
}
