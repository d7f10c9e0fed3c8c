// Allocation: sizes, usable sizes, alignment, disjoint blocks, calloc, aligned_alloc, the free functions.
#include "heap.h"

#include <algorithm>

using namespace test;

namespace
{

// Every size up to 70000 that is interesting: all small ones, then around steps.
std::vector<size_t> many_sizes()
{
    std::vector<size_t> sizes;
    for (size_t n = 0; n <= 70000; n += n < 2100 || EFFORT > 1 ? 1 : 13)
        sizes.push_back(n);
    for (size_t bit = 11; bit <= 25; bit++)
        for (size_t d = 0; d <= 17; d += d < 2 ? 1 : 15) {
            sizes.push_back(((size_t)1 << bit) - d);
            sizes.push_back(((size_t)1 << bit) + d);
        }
    return sizes;
}

// The most that a block of n bytes may hold: 8-byte classes to 512, 8 classes a doubling, then units;
// a packed block may be a free one that is somewhat larger.
size_t usable_bound(size_t n, bool packed)
{
    if (packed) return n + n / 4 + (n <= 8 * KiB ? 64 : 16 * KiB);
    if (n <= 512) return std::max<size_t>(8, (n + 7) & ~(size_t)7);
    return n + n / 8 + (n <= 8 * KiB ? 64 : 16 * KiB);
}

bool aligned_as_promised(const void *p, size_t n)
{
    if (n > 32 * KiB) return addr(p) % 4096 == 0;
    if (n >= 16 && n % 16 == 0) return addr(p) % 16 == 0;
    return addr(p) % 8 == 0;
}

void check_block(hak_ctx *ctx, void *p, size_t n, bool packed)
{
    if (!p) FAIL("no block of " << n);
    size_t usable = hak_usable_size(ctx, p);
    if (usable < n || usable == 0 || usable > usable_bound(n, packed))
        FAIL("block of " << n << ": usable " << usable);
    if (!aligned_as_promised(p, n)) FAIL("block of " << n << " (usable " << usable << ") at " << p);
}

} // namespace

TEST_CASE("every size: usable size, alignment, contents")
{
    int which = GENERATE(0, 1, 2, 3);
    CAPTURE(which);
    TestSpace s;
    Options options = variant(which);
    TestCtx ctx(s.space, &options);
    for (size_t n : many_sizes()) {
        void *p = hak_alloc(ctx, n);
        check_block(ctx, p, n, which == 0 || which == 3);
        // All of the usable size may be written; mapped pages are what the fake OS checks.
        size_t usable = hak_usable_size(ctx, p);
        if (n < 20000) std::memset(p, 0x5A, usable);
        else
            for (size_t i = 0; i < usable; i += PAGE)
                static_cast<char *>(p)[i] = 1;
        static_cast<char *>(p)[usable - 1] = 1;
        if (n % 3 == 0) hak_free(ctx, p);
        else hak_free_sized(ctx, p, n);
    }
    CHECK(stats_of(ctx).live_blocks == 0);
    CHECK(stats_of(ctx).live_bytes == 0);
    require_sound(ctx);
}

TEST_CASE("live blocks never overlap, and keep their contents")
{
    int which = GENERATE(0, 1, 2, 3);
    CAPTURE(which);
    TestSpace s;
    Errors errors;
    Options options = variant(which);
    options.on_error = Errors::record;
    options.error_user = &errors;
    TestCtx ctx(s.space, &options);
    struct Block {
        uintptr_t p;
        size_t n, usable;
        unsigned id;
    };
    std::vector<Block> blocks;
    Random random(17);
    size_t live_bytes = 0;
    for (unsigned i = 0; i < 20000; i++) {
        size_t n = i % 200 == 0 ? random.below(100000) : random.below(i % 7 == 0 ? 3000 : 300);
        void *p = hak_alloc(ctx, n);
        check_block(ctx, p, n, which == 0 || which == 3);
        fill(p, n, i);
        blocks.push_back({addr(p), n, hak_usable_size(ctx, p), i});
        live_bytes += blocks.back().usable;
        if (i % 3 == 2) {
            size_t victim = random.below(blocks.size());
            Block b = blocks[victim];
            blocks[victim] = blocks.back();
            blocks.pop_back();
            REQUIRE(filled(reinterpret_cast<void *>(b.p), b.n, b.id));
            live_bytes -= b.usable;
            hak_free(ctx, reinterpret_cast<void *>(b.p));
            if (!errors.list.empty())
                FAIL("free of " << b.n << " (usable " << b.usable << "): " << errors.list[0].what);
        }
    }
    CHECK(stats_of(ctx).live_bytes == live_bytes);
    CHECK(stats_of(ctx).live_blocks == blocks.size());
    CHECK(stats_of(ctx).peak_bytes >= live_bytes);
    std::sort(blocks.begin(), blocks.end(), [](const Block &a, const Block &b) { return a.p < b.p; });
    for (size_t i = 0; i + 1 < blocks.size(); i++)
        REQUIRE(blocks[i].p + blocks[i].usable <= blocks[i + 1].p);
    for (const Block &b : blocks)
        REQUIRE(filled(reinterpret_cast<void *>(b.p), b.n, b.id));
    require_sound(ctx);
}

TEST_CASE("size 0 gives distinct blocks")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (int i = 0; i < 1000; i++)
        blocks.push_back(hak_alloc(ctx, 0));
    for (void *p : blocks)
        REQUIRE(p != nullptr);
    std::sort(blocks.begin(), blocks.end());
    CHECK(std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end());
    for (void *p : blocks)
        hak_free_sized(ctx, p, 0);
    CHECK(stats_of(ctx).live_blocks == 0);
    hak_free(ctx, nullptr);
    hak_free_sized(ctx, nullptr, 0);
    hak_free_cs(ctx, nullptr, 0);
    CHECK(hak_usable_size(ctx, nullptr) == 0);
    CHECK(hak_block_size(ctx, nullptr) == 0);
}

TEST_CASE("calloc is zero on fresh and on recycled memory")
{
    int which = GENERATE(0, 1, 2, 3);
    CAPTURE(which);
    TestSpace s;
    Options options = variant(which);
    TestCtx ctx(s.space, &options);
    const size_t sizes[] = {0,    1,    8,    24,    100,   512,    600,    2048,
                            5000, 8192, 9000, 40000, 66000, 700000, 3 * MiB};
    for (int round = 0; round < 6; round++) {
        std::vector<std::pair<void *, size_t>> blocks;
        for (size_t n : sizes)
            for (int i = 0; i < (n < 10000 ? 30 : 2); i++) {
                void *p = i % 2 ? hak_calloc(ctx, 1, n) : hak_calloc_cs(ctx, n, 1, 0, 0);
                REQUIRE(p != nullptr);
                if (!all_bytes(p, n, 0)) FAIL("calloc of " << n << " is not zero in round " << round);
                std::memset(p, 0xFF, hak_usable_size(ctx, p));
                blocks.push_back({p, n});
            }
        for (auto &block : blocks)
            hak_free(ctx, block.first);
        if (round == 2) hak_ctx_flush(ctx);
        if (round == 4) hak_ctx_trim(ctx);
    }
    void *p = hak_calloc(ctx, 7, 9);
    CHECK(hak_usable_size(ctx, p) >= 63);
    CHECK(all_bytes(p, 63, 0));
    require_sound(ctx);
}

TEST_CASE("calloc does not clear fresh pages again")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (size_t n : {600 * KiB, 4 * MiB}) {
        void *p = hak_calloc(ctx, 1, n);
        REQUIRE(p != nullptr);
        CAPTURE(n);
        CHECK(resident_pages(p, n) <= 2);
        CHECK(all_bytes(p, n, 0));
    }
}

TEST_CASE("aligned blocks begin where they are asked to")
{
    int which = GENERATE(0, 1, 2);
    CAPTURE(which);
    TestSpace s;
    Errors errors;
    Options options = variant(which);
    options.on_error = Errors::record;
    options.error_user = &errors;
    TestCtx ctx(s.space, &options);
    std::vector<std::pair<void *, size_t>> blocks;
    unsigned id = 0;
    for (size_t align = 1; align <= 2 * MiB; align *= 2)
        for (size_t n : {(size_t)0, (size_t)1, (size_t)24, (size_t)100, (size_t)1000, (size_t)4000,
                         (size_t)4096, (size_t)8200, (size_t)9000, (size_t)70000, (size_t)600000, 3 * MiB}) {
            CAPTURE(align, n);
            void *p = id % 2 ? hak_aligned_alloc(ctx, align, n) : hak_aligned_alloc_cs(ctx, align, n, 0, 77);
            REQUIRE(p != nullptr);
            REQUIRE(addr(p) % align == 0);
            REQUIRE(hak_usable_size(ctx, p) >= n);
            REQUIRE(hak_owns(ctx, p));
            fill(p, n, ++id);
            blocks.push_back({p, n});
        }
    require_sound(ctx);
    id = 0;
    for (auto &block : blocks) {
        REQUIRE(filled(block.first, block.second, ++id));
        hak_free(ctx, block.first);
    }
    CHECK(stats_of(ctx).live_blocks == 0);
    require_sound(ctx);
    void *p = hak_aligned_alloc(ctx, GiB, 1);
    REQUIRE(p != nullptr);
    CHECK(addr(p) % GiB == 0);
    std::memset(p, 1, hak_usable_size(ctx, p) < MiB ? hak_usable_size(ctx, p) : MiB);
    require_sound(ctx);
    // An alignment up to 16 may be freed with its size.
    for (size_t small_align : {(size_t)8, (size_t)16})
        for (size_t n : {(size_t)1, (size_t)24, (size_t)40, (size_t)2050, (size_t)20000}) {
            void *q = hak_aligned_alloc(ctx, small_align, n);
            CHECK(addr(q) % small_align == 0);
            hak_free_sized(ctx, q, n);
        }
    hak_free(ctx, p);
    CHECK(errors.take() == "");
    CHECK(stats_of(ctx).live_blocks == 0);
}

TEST_CASE("a freed block is used again: steady work needs no more memory")
{
    TestSpace s;
    TestCtx ctx(s.space);
    size_t committed = 0;
    for (int round = 0; round < 60; round++) {
        std::vector<void *> blocks;
        for (size_t i = 0; i < 3000; i++)
            blocks.push_back(hak_alloc(ctx, i % 400));
        for (size_t i = 0; i < blocks.size(); i++)
            hak_free(ctx, blocks[round % 2 ? i : blocks.size() - 1 - i]);
        // Until here classes may still move from packed units to slabs.
        if (round == 20) committed = committed_of(ctx);
        if (round > 20) REQUIRE(committed_of(ctx) <= committed + committed / 8);
    }
    CHECK(stats_of(ctx).live_bytes == 0);
}

TEST_CASE("small blocks cost little more than their bytes")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    for (size_t n :
         {(size_t)16, (size_t)24, (size_t)40, (size_t)56, (size_t)104, (size_t)512, (size_t)1000}) {
        TestCtx ctx(s.space, &options);
        for (size_t total = 0; total < 8 * MiB; total += n)
            REQUIRE(hak_alloc(ctx, n) != nullptr);
        CAPTURE(n);
        // Bitmaps, slab headers, the current slab: 4 % in all, and 8 % for classes of more than 512 bytes.
        CHECK((double)committed_of(ctx) <= 8.0 * MiB * (n <= 512 ? 1.04 : 1.08));
    }
}

TEST_CASE("many blocks of a little more than 8 KiB cost little more than their bytes")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (size_t total = 0; total < 64 * MiB; total += 8200)
        REQUIRE(hak_alloc(ctx, 8200) != nullptr);
    CHECK((double)committed_of(ctx) <= 64.0 * MiB * 1.11);
}

TEST_CASE("a class of one block holds little more than it")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    for (size_t n = 1280; n <= 32 * KiB; n += n / 8)
        REQUIRE(hak_alloc(ctx, n) != nullptr);
    hak_stats stats = stats_of(ctx);
    CHECK(stats.live_blocks > 20);
    CHECK(stats.committed_bytes - stats.metadata_bytes < 4 * stats.live_bytes);
}

TEST_CASE("the first slab of a class is of units that were not in use before")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    std::vector<void *> blocks;
    for (size_t i = 0; i < 2 * MiB / 64; i++)
        blocks.push_back(hak_alloc(ctx, 64));
    for (void *p : blocks)
        std::memset(p, 1, 64);
    for (void *p : blocks)
        hak_free(ctx, p);
    hak_ctx_flush(ctx);
    for (size_t n = 528; n <= 1024; n += 32) {
        void *p = hak_alloc(ctx, n);
        REQUIRE(p != nullptr);
        std::memset(p, 1, n);
        CHECK(resident_pages(reinterpret_cast<void *>(addr(p) & ~(uintptr_t)(16 * KiB - 1)), 16 * KiB) == 1);
    }
}
