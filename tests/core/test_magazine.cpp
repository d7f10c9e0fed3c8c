// Magazines: what they keep at hand, how deep they get, and what a sweep does to them.
#include "heap.h"

#include <algorithm>
#include <random>
#include <utility>

using namespace test;

TEST_CASE("option magazine: how many frees later a double free is noticed")
{
    // Without debug checks a second free shows when the block leaves the magazine.
    auto frees_until_noticed = [](size_t magazine) {
        TestSpace s;
        Errors errors;
        Options options = ctx_options(&errors);
        options.magazine = magazine;
        options.packed_bytes = HAK_NONE;
        TestCtx ctx(s.space, &options);
        std::vector<void *> blocks;
        for (int i = 0; i < 200; i++)
            blocks.push_back(hak_alloc(ctx, 64));
        void *p = blocks[100];
        hak_free(ctx, p);
        hak_free(ctx, p);
        int frees = 0;
        for (; frees < 200 && errors.list.empty(); frees++)
            if (blocks[(size_t)frees] != p) hak_free(ctx, blocks[(size_t)frees]);
        return frees;
    };
    CHECK(frees_until_noticed(HAK_NONE) == 0);
    CHECK(frees_until_noticed(2) <= 4);
    int standard = frees_until_noticed(0);
    CHECK(standard > 4);
    CHECK(standard <= 40);
    CHECK(frees_until_noticed(32) == standard);
}

TEST_CASE("option counted: frees in the order of addresses are no sweep")
{
    for (bool counted : {false, true}) {
        TestSpace s;
        Options options = ctx_options();
        options.workload = counted ? HAK_WORKLOAD_COUNTED : HAK_WORKLOAD_TRACED;
        options.packed_bytes = HAK_NONE;
        TestCtx ctx(s.space, &options);
        std::vector<void *> blocks;
        for (int i = 0; i < 200; i++)
            blocks.push_back(hak_alloc(ctx, 64));
        std::sort(blocks.begin(), blocks.end());
        for (void *p : blocks)
            hak_free(ctx, p);
        // A sweep hands out in the order of addresses again; counted, the last one comes first.
        CHECK((hak_alloc(ctx, 64) == blocks.back()) == counted);
        CHECK((hak_alloc(ctx, 64) == blocks[198]) == counted);
        require_sound(ctx);
    }
}

TEST_CASE("option magazine_most: larger blocks are not kept at hand")
{
    const size_t n = GENERATE((size_t)4160, (size_t)9000, (size_t)32768, (size_t)200000);
    CAPTURE(n);
    for (size_t most : {(size_t)0, (size_t)4096}) {
        TestSpace s;
        Options options = ctx_options();
        options.magazine_most = most;
        options.packed_bytes = HAK_NONE;
        TestCtx ctx(s.space, &options);
        void *kept = hak_alloc(ctx, 4096);
        hak_free(ctx, kept);
        const size_t committed = stats_of(ctx).committed_bytes;
        for (int i = 0; i < 50; i++) {
            void *p[3];
            for (void *&block : p)
                block = hak_alloc(ctx, n);
            require_sound(ctx);
            for (void *block : p)
                hak_free(ctx, block);
        }
        if (most) CHECK(stats_of(ctx).committed_bytes == committed);
        else CHECK(stats_of(ctx).committed_bytes > committed + n - 1);
        CHECK(hak_alloc(ctx, 4096) == kept);
        require_sound(ctx);
    }
}

TEST_CASE("magazines of larger blocks grow where they swing between empty and full")
{
    const size_t n = GENERATE((size_t)600, (size_t)9000, (size_t)30000, (size_t)200000);
    const unsigned limit = GENERATE(2u, 0u);
    CAPTURE(n, limit);
    TestSpace s;
    Options options = ctx_options();
    options.magazine = limit;
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    // Blocks in magazines are live for the context, and not for its statistics.
    auto held = [&] { return (hak_ctx_live_bytes(ctx) - stats_of(ctx).live_bytes) / n; };
    auto swing = [&](size_t blocks) {
        std::vector<void *> p;
        for (size_t i = 0; i < blocks; i++)
            p.push_back(hak_alloc(ctx, n));
        for (size_t i = 0; i < blocks; i += 2)
            hak_free(ctx, p[i]);
        for (size_t i = 1; i < blocks; i += 2)
            hak_free(ctx, p[i]);
    };
    swing(64);
    size_t before = held(), most = before;
    for (int i = 0; i < 200; i++) {
        swing(64);
        most = std::max(most, held());
    }
    if (limit == 2) CHECK(most <= 2);
    else CHECK(most > before);
    CHECK(most * n <= 2 * MiB + 64 * n);
    require_sound(ctx);
    // A tick after a period gives them back.
    hak_ctx_tick(ctx, 1);
    swing(64);
    hak_ctx_tick(ctx, UINT64_C(1) << 40);
    if (n > 1024) CHECK(held() == 0);
    require_sound(ctx);
}

TEST_CASE("runs of all sizes come and go: those at hand are a small part of the heap")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (int i = 0; i < 16; i++)
        REQUIRE(hak_alloc(ctx, 1000000) != nullptr);
    std::vector<size_t> sizes;
    for (size_t n = 40 * KiB; n <= 1 * MiB; n += n / 12)
        sizes.push_back(n);
    std::vector<void *> held(sizes.size() * 3);
    std::mt19937 random(1);
    for (int i = 0; i < 50000; i++) {
        size_t at = random() % held.size();
        if (held[at]) hak_free(ctx, std::exchange(held[at], nullptr));
        else held[at] = hak_alloc(ctx, sizes[at / 3]);
    }
    for (void *p : held)
        hak_free(ctx, p);
    hak_stats stats = stats_of(ctx);
    CHECK(stats.cached_bytes > 1 * MiB);
    CHECK(stats.cached_bytes < 2 * MiB + stats.peak_bytes / 32 + 256 * KiB);
    require_sound(ctx);
}

TEST_CASE("option magazine: how many small blocks are kept at hand by a class that swings")
{
    const unsigned most = GENERATE(8u, 32u, 64u, 128u);
    const bool shared = GENERATE(false, true);
    CAPTURE(most, shared);
    TestSpace s;
    Options options = ctx_options();
    options.magazine = most;
    options.shared = shared;
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    std::vector<void *> p(512);
    size_t kept = 0;
    for (int i = 0; i < 200; i++) {
        for (void *&block : p)
            block = hak_alloc(ctx, 64);
        // Not in the order of addresses, which would be a sweep.
        for (size_t k = 0; k < p.size(); k++)
            hak_free(ctx, p[k * 211 % p.size()]);
        kept = std::max(kept, hak_ctx_live_bytes(ctx) / 64);
    }
    CHECK(kept > most / 2);
    CHECK(kept <= (shared ? most : std::min(4 * most, 128u))); // two slabs: the class grew
    require_sound(ctx);
}

TEST_CASE("a small class that takes further slabs keeps more blocks at hand, as far as they come to a unit")
{
    struct Row {
        size_t n, slabs, kept;
        bool shared;
    };
    const Row row = GENERATE(Row{64, 1, 32, false}, Row{64, 2, 64, false}, Row{64, 8, 128, false},
                             Row{64, 8, 32, true}, Row{240, 16, 64, false}, Row{480, 16, 32, false});
    CAPTURE(row.n, row.slabs, row.shared);
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    options.shared = row.shared;
    TestCtx ctx(s.space, &options);
    for (int i = 0; i < 1000; i++) // others: the heap is large enough
        REQUIRE(hak_alloc(ctx, 8 * KiB));
    std::vector<void *> blocks(row.slabs * 16 * KiB / (row.n + 4));
    for (void *&p : blocks)
        p = hak_alloc(ctx, row.n);
    // Not in the order of addresses. What was freed last comes back first, as far as it is at hand.
    std::vector<void *> freed;
    Random random(1);
    for (size_t k = 0; k < 200; k++) {
        std::swap(blocks[k], blocks[k + random.below(blocks.size() - k)]);
        freed.push_back(blocks[k]);
    }
    for (void *p : freed)
        hak_free(ctx, p);
    size_t same = 0;
    while (same < freed.size() && hak_alloc(ctx, row.n) == freed[freed.size() - 1 - same])
        same++;
    CHECK(same >= row.kept / 2);
    CHECK(same <= row.kept);
    require_sound(ctx);
}
