// Frees in the order of addresses, as a collector's: past the magazines, by rows of bitmaps. What was freed
// is counted at any moment that somebody looks, wrong frees are noticed, and blocks come out in order again.
#include "heap.h"

#include "hakmem/profile.h"

#include <algorithm>
#include <set>

using namespace test;

namespace
{

struct Sweeper {
    Errors errors;
    Options options;
    hak_ctx *ctx;

    explicit Sweeper(hak_space *space, bool labelled = false) : options(ctx_options(&errors))
    {
        options.packed_bytes = HAK_NONE;
        ctx = hak_ctx_new(space, &options);
        REQUIRE(ctx != nullptr);
        if (labelled) REQUIRE(hak_label_define(ctx, "swept") != 0);
    }
    ~Sweeper()
    {
        hak_ctx_destroy(ctx);
    }
    std::vector<void *> fill(size_t n, size_t count)
    {
        std::vector<void *> blocks;
        for (size_t i = 0; i < count; i++)
            blocks.push_back(hak_alloc(ctx, n));
        std::sort(blocks.begin(), blocks.end());
        return blocks;
    }
    void require_one(hak_error error, const void *p)
    {
        REQUIRE(errors.list.size() == 1);
        CHECK(errors.list[0].error == error);
        CHECK(errors.list[0].p == p);
        errors.list.clear();
    }
};

} // namespace

TEST_CASE("sweep: the counts are right after each free")
{
    const size_t n = GENERATE((size_t)8, (size_t)40, (size_t)64, (size_t)488, (size_t)1024, (size_t)3000);
    const bool down = GENERATE(false, true);
    CAPTURE(n, down);
    TestSpace s;
    Sweeper w(s.space, n % 16 == 0);
    std::vector<void *> blocks = w.fill(n, 700);
    if (down) std::reverse(blocks.begin(), blocks.end());
    const size_t size = hak_usable_size(w.ctx, blocks[0]);
    for (size_t i = 0; i < blocks.size(); i++) {
        hak_free(w.ctx, blocks[i]);
        hak_stats now = stats_of(w.ctx);
        REQUIRE(now.live_blocks == blocks.size() - i - 1);
        REQUIRE(now.live_bytes == (blocks.size() - i - 1) * size);
    }
    require_sound(w.ctx);
    CHECK(w.errors.list.empty());
}

TEST_CASE("sweep: the counts are right for whoever looks first at the end")
{
    TestSpace s;
    for (int look = 0; look < 6; look++) {
        CAPTURE(look);
        Sweeper w(s.space, look % 2);
        std::vector<void *> blocks = w.fill(64, 3000);
        const size_t left = 333;
        for (size_t i = 0; i + left < blocks.size(); i++)
            hak_free_sized(w.ctx, blocks[i], 64);
        if (look == 0) CHECK(stats_of(w.ctx).live_blocks == left);
        if (look == 1) CHECK(label_totals(w.ctx).blocks == left);
        if (look == 2) CHECK(label_totals(w.ctx).bytes == left * 64);
        if (look == 3) CHECK(visit_totals(w.ctx).blocks == left);
        if (look == 4) hak_ctx_trim(w.ctx);
        if (look == 5) {
            hak_ctx_peak_reset(w.ctx);
            CHECK(stats_of(w.ctx).peak_bytes <= (left + 128) * 64);
        }
        require_sound(w.ctx);
        CHECK(stats_of(w.ctx).live_blocks == left);
        CHECK(w.errors.list.empty());
    }
}

TEST_CASE("sweep: a second free, and one within a block, are noticed")
{
    TestSpace s;
    Sweeper w(s.space);
    std::vector<void *> blocks = w.fill(80, 2000);
    // While the magazine is closed for the first time: an open one takes what it is given.
    for (size_t i = 0; i < 1500; i++) {
        hak_free(w.ctx, blocks[i]);
        if (i < 60 || i >= 240) continue;
        char *next = static_cast<char *>(blocks[i + 1]);
        if (i % 7 == 0) {
            hak_free(w.ctx, next + 8 + i % 64);
            w.require_one(HAK_E_POINTER, next + 8 + i % 64);
        }
        if (i % 5 == 0) {
            hak_free(w.ctx, blocks[i]);
            // Of a slab that went back with its last block nothing is known.
            REQUIRE(w.errors.list.size() == 1);
            CHECK((w.errors.list[0].error == HAK_E_DOUBLE_FREE || w.errors.list[0].error == HAK_E_FOREIGN));
            w.errors.list.clear();
        }
    }
    CHECK(stats_of(w.ctx).live_blocks == 500);
    require_sound(w.ctx);
}

TEST_CASE("sweep: blocks come out in the order of addresses, and none twice")
{
    TestSpace s;
    Sweeper w(s.space);
    std::vector<void *> blocks = w.fill(48, 4000), again;
    Random random(5);
    for (void *p : blocks) {
        if (random.below(4)) hak_free(w.ctx, p);
        else again.push_back(p);
    }
    std::set<void *> live(again.begin(), again.end());
    size_t ascending = 0, count = 2000;
    void *last = nullptr;
    for (size_t i = 0; i < count; i++) {
        void *p = hak_alloc(w.ctx, 48);
        REQUIRE(live.insert(p).second);
        ascending += p > last;
        last = p;
    }
    CHECK(ascending > count * 95 / 100);
    require_sound(w.ctx);
}

TEST_CASE("sweep: allocations in between, of many classes, with looks at any moment")
{
    const uint64_t seed = GENERATE(range(1, 9));
    CAPTURE(seed);
    TestSpace s;
    Sweeper w(s.space, seed % 2);
    Random random(seed);
    const size_t sizes[] = {16, 32, 40, 64, 96, 200, 520, 1024};
    std::vector<std::pair<void *, size_t>> live;
    size_t checks = 0;
    for (int round = 0; round < 30; round++) {
        while (live.size() < 3000) {
            size_t n = sizes[random.below(8)];
            live.emplace_back(hak_alloc(w.ctx, n), n);
        }
        std::sort(live.begin(), live.end());
        if (random.below(2)) std::reverse(live.begin(), live.end());
        std::vector<std::pair<void *, size_t>> kept;
        const uint64_t dead = 1 + random.below(9);
        for (auto &block : live) {
            if (random.below(10) < dead) hak_free_sized(w.ctx, block.first, block.second);
            else kept.push_back(block);
            if (random.below(8) == 0) {
                size_t n = sizes[random.below(8)];
                kept.emplace_back(hak_alloc(w.ctx, n), n);
            }
            if (random.below(400)) continue;
            switch (checks++ % 4) {
            case 0:
                hak_ctx_flush(w.ctx);
                break;
            case 1:
                hak_ctx_trim(w.ctx);
                break;
            case 2:
                hak_ctx_tick(w.ctx, 1000000000ull * checks);
                break;
            default:
                require_sound(w.ctx);
            }
        }
        live.swap(kept);
        REQUIRE(stats_of(w.ctx).live_blocks == live.size());
    }
    require_sound(w.ctx);
    CHECK(w.errors.list.empty());
}

TEST_CASE("sweep: the deepest magazines stay as they are, and serve again afterwards")
{
    TestSpace s;
    Options options = ctx_options();
    options.mode = HAK_MODE_FAST;
    hak_ctx *ctx = hak_ctx_new(s.space, &options);
    REQUIRE(ctx != nullptr);
    std::vector<void *> blocks(100000);
    Random random(3);
    for (int round = 0; round < 8; round++) {
        for (void *&p : blocks)
            p = hak_alloc(ctx, 16);
        std::sort(blocks.begin(), blocks.end());
        if (round == 7) // not a sweep: the magazine opens
            for (size_t i = blocks.size() - 1; i; i--)
                std::swap(blocks[i], blocks[random.below(i + 1)]);
        for (size_t i = round < 7 ? 0 : 100; i < blocks.size(); i++)
            hak_free(ctx, blocks[i]);
    }
    for (size_t i = 0; i < 100; i++) {
        hak_free(ctx, blocks[i]);
        REQUIRE(hak_alloc(ctx, 16) == blocks[i]);
    }
    require_sound(ctx);
    hak_ctx_destroy(ctx);
}

TEST_CASE("sweep: what a context leaves in bitmaps is gone for the next one")
{
    TestSpace s;
    for (int round = 0; round < 3; round++) {
        Sweeper w(s.space);
        std::vector<void *> blocks = w.fill(64, 256 * 4);
        for (size_t i = 0; i < 256 * 3 / 2; i++)
            hak_free(w.ctx, blocks[i]);
    }
    Sweeper w(s.space);
    std::vector<void *> blocks = w.fill(64, 256 * 8);
    CHECK(std::set<void *>(blocks.begin(), blocks.end()).size() == blocks.size());
    for (void *p : blocks)
        hak_free(w.ctx, p);
    CHECK(w.errors.list.empty());
    CHECK(stats_of(w.ctx).live_blocks == 0);
    require_sound(w.ctx);
}

TEST_CASE("sweep: a context that is retired in the midst of one ends with its last block")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    hak_ctx *ctx = hak_ctx_new(s.space, &options);
    REQUIRE(ctx != nullptr);
    std::vector<void *> blocks;
    for (int i = 0; i < 1000; i++)
        blocks.push_back(hak_alloc(ctx, 64));
    std::sort(blocks.begin(), blocks.end());
    for (int i = 0; i < 500; i++)
        hak_free(ctx, blocks[(size_t)i]);
    hak_ctx_retire(ctx);
    for (int i = 500; i < 999; i++)
        hak_free(ctx, blocks[(size_t)i]);
    CHECK(hak_ctx_of(s.space, blocks[999]) == ctx);
    hak_free(ctx, blocks[999]);
    CHECK(hak_ctx_of(s.space, blocks[999]) == nullptr);
}

TEST_CASE("sweep: under a profile, with samples in the units that are swept")
{
    const size_t n = GENERATE((size_t)16, (size_t)64, (size_t)488);
    TestSpace s;
    Sweeper w(s.space);
    hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
    sampled.mean = std::max(8 * n, (size_t)1024); // one in a row or more
    sampled.seed = n;
    REQUIRE(hak_profile_start(w.ctx, &sampled) == 0);
    Random random(n);
    std::set<void *> live;
    for (size_t round = 0; round < 40; round++) {
        while (live.size() < 1500)
            REQUIRE(live.insert(hak_alloc(w.ctx, n)).second);
        // The sweep stops anywhere, and goes on when some blocks of the same units are live again.
        for (auto it = live.begin(); it != live.end();) {
            if (random.below(4) == 0) {
                ++it;
                continue;
            }
            hak_free(w.ctx, *it);
            it = live.erase(it);
            if (random.below(200) == 0) REQUIRE(live.insert(hak_alloc(w.ctx, n)).second);
        }
        hak_stats now = stats_of(w.ctx);
        REQUIRE(now.live_blocks == live.size());
        REQUIRE(now.live_bytes == live.size() * hak_usable_size(w.ctx, *live.begin()));
        REQUIRE(hak_ctx_check(w.ctx, nullptr, nullptr));
    }
    for (void *p : live)
        hak_free(w.ctx, p);
    CHECK(stats_of(w.ctx).live_blocks == 0);
    CHECK(w.errors.list.empty());
}
