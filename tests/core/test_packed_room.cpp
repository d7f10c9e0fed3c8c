// Room among packed blocks: what a context gives up, or makes of its free bytes, before a limit refuses.
#include "heap.h"

#include <algorithm>

using namespace test;

namespace
{

struct Block {
    unsigned char *p;
    size_t n;
    unsigned char fill;
};

Block block_of(void *p, size_t n, size_t i)
{
    const Block b = {static_cast<unsigned char *>(p), n, static_cast<unsigned char>(i * 7 + 1)};
    std::memset(b.p, b.fill, n);
    return b;
}

bool whole(const Block &b)
{
    return std::all_of(b.p, b.p + b.n, [&](unsigned char c) { return c == b.fill; });
}

// Blocks of sizes from `from` on, `step` apart, `kinds` of them in turn, until one is refused; by address.
std::vector<Block> fill_up(hak_ctx *ctx, size_t from, size_t step, size_t kinds, hak_label label = 0)
{
    std::vector<Block> blocks;
    for (size_t i = 0;; i++) {
        const size_t n = from + i % kinds * step;
        void *p = hak_alloc_cs(ctx, n, label, 0);
        if (!p) break;
        blocks.push_back(block_of(p, n, i));
    }
    std::sort(blocks.begin(), blocks.end(), [](const Block &a, const Block &b) { return a.p < b.p; });
    return blocks;
}

size_t live(const std::vector<Block> &blocks)
{
    size_t sum = 0;
    for (const Block &b : blocks)
        sum += b.n;
    return sum;
}

Options labelled(bool labels)
{
    static const char *const names[] = {"a", "b"};
    Options options = ctx_options();
    options.labels = names;
    options.label_count = labels ? 2 : 0;
    return options;
}

// Frees all but each `nth` one.
std::vector<Block> thin_out(hak_ctx *ctx, const std::vector<Block> &blocks, size_t nth)
{
    std::vector<Block> left;
    for (size_t i = 0; i < blocks.size(); i++) {
        if (i % nth == 0) left.push_back(blocks[i]);
        else hak_free(ctx, blocks[i].p);
    }
    return left;
}

} // namespace

TEST_CASE("pages between packed blocks serve blocks of any size before a limit refuses")
{
    const bool labels = GENERATE(false, true);
    const size_t hard = GENERATE(400 * KiB, 512 * KiB, MiB);
    CAPTURE(labels, hard);
    TestSpace s;
    Options options = labelled(labels);
    TestCtx ctx(s.space, &options);
    REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
    // In the larger context classes whose blocks came and went have slabs by the second round.
    for (int round = 0; round < (hard < MiB ? 3 : 1); round++) {
        CAPTURE(round);
        std::vector<Block> left = thin_out(ctx, fill_up(ctx, 520, 32, 16, labels), 20);
        REQUIRE(left.size() > 10);
        // Hardly a unit is without a block.
        for (size_t n : {hard / 2, hard / 8, (size_t)20000}) {
            CAPTURE(n);
            void *p = hak_alloc(ctx, n);
            REQUIRE(p != nullptr);
            std::memset(p, 0xAA, n);
            CHECK(committed_of(ctx) <= hard);
            require_sound(ctx);
            hak_free(ctx, p);
        }
        CHECK(std::all_of(left.begin(), left.end(), whole));
        // The pages come back for small blocks.
        const std::vector<Block> again = fill_up(ctx, 520, 32, 16, labels);
        CHECK(live(left) + live(again) > hard / 10 * 8);
        CHECK(committed_of(ctx) <= hard);
        CHECK(std::all_of(left.begin(), left.end(), whole));
        CHECK(std::all_of(again.begin(), again.end(), whole));
        require_sound(ctx);
        for (const std::vector<Block> &blocks : {left, again})
            for (const Block &b : blocks)
                hak_free(ctx, b.p);
        CHECK(stats_of(ctx).live_bytes == 0);
    }
    require_sound(ctx);
}

TEST_CASE("pages that packed units gave up are there again when a limit is lifted")
{
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_limit(ctx, 0, 512 * KiB, nullptr, nullptr) == 0);
    std::vector<Block> left = thin_out(ctx, fill_up(ctx, 520, 32, 16), 20);
    void *p = hak_alloc(ctx, 300 * KiB);
    REQUIRE(p != nullptr);
    REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    const size_t before = committed_of(ctx);
    for (size_t i = 0; i < 300; i++) {
        const size_t n = 500 + i % 100;
        void *q = hak_alloc(ctx, n);
        REQUIRE(q != nullptr);
        left.push_back(block_of(q, n, i));
    }
    // No new unit for what 160 KiB of holes can hold.
    CHECK(committed_of(ctx) < before + 200 * KiB);
    CHECK(std::all_of(left.begin(), left.end(), whole));
    require_sound(ctx);
}

TEST_CASE("a packed block grows into free bytes on either side when a limit leaves no second one")
{
    const bool labels = GENERATE(false, true);
    const bool above = GENERATE(false, true);
    CAPTURE(labels, above);
    TestSpace s;
    Options options = labelled(labels);
    TestCtx ctx(s.space, &options);
    REQUIRE(hak_limit(ctx, 0, 400 * KiB, nullptr, nullptr) == 0);
    std::vector<Block> blocks = fill_up(ctx, 2000, 16, 1, labels ? 2 : 0);
    size_t grown = 0;
    for (size_t i = 5; i + 1 < blocks.size() && grown < 10; i += 4) {
        Block &b = blocks[above ? i : i + 1], &other = blocks[above ? i + 1 : i];
        if (blocks[i].p + 2000 != blocks[i + 1].p) continue;
        hak_free(ctx, other.p);
        other.n = 0;
        const uint64_t failures = stats_of(ctx).failures;
        void *q = hak_realloc(ctx, b.p, 3900);
        REQUIRE(q != nullptr);
        CHECK(stats_of(ctx).failures == failures);
        CHECK(q <= blocks[i].p);
        b.p = static_cast<unsigned char *>(q);
        CHECK(whole(b));
        CHECK(hak_usable_size(ctx, q) >= 3900);
        std::memset(b.p, b.fill, b.n = 3900);
        require_sound(ctx);
        grown++;
    }
    CHECK(grown > 4);
    for (const Block &b : blocks) {
        CHECK(whole(b));
        if (b.n) hak_free(ctx, b.p);
    }
    CHECK(stats_of(ctx).live_bytes == 0);
    if (labels) CHECK(label_totals(ctx) == visit_totals(ctx));
}

TEST_CASE("a run grows where a limit leaves what it grows by, and a unit")
{
    const bool labels = GENERATE(false, true);
    CAPTURE(labels);
    TestSpace s;
    Options options = labelled(labels);
    TestCtx ctx(s.space, &options);
    const size_t old = 256 * KiB, now = 448 * KiB, hard = 2 * MiB;
    REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
    Block b = block_of(hak_alloc_cs(ctx, old, labels ? 1 : 0, 0), old, 3);
    std::vector<Block> blocks = fill_up(ctx, 48 * KiB, 16, 1);
    // Some of the others go; the one behind the run stays.
    size_t freed = 0;
    for (size_t i = 0; i < blocks.size() && freed < now - old + 16 * KiB; i += 2) {
        if (blocks[i].p == b.p + old) continue;
        hak_free(ctx, blocks[i].p);
        blocks[i].n = 0;
        freed += 48 * KiB;
    }
    REQUIRE(freed < now);
    void *q = hak_realloc(ctx, b.p, now);
    REQUIRE(q != nullptr);
    b.p = static_cast<unsigned char *>(q);
    CHECK(whole(b));
    CHECK(hak_usable_size(ctx, q) >= now);
    std::memset(b.p, b.fill, b.n = now);
    CHECK(committed_of(ctx) <= hard);
    CHECK(std::all_of(blocks.begin(), blocks.end(), whole));
    require_sound(ctx);
    if (labels) {
        CHECK(hak_label_of(ctx, q) == 1);
        CHECK(label_totals(ctx) == visit_totals(ctx));
    }
    hak_free(ctx, q);
    require_sound(ctx);
}

TEST_CASE("a packed block of several pages becomes a run where a limit leaves less than that run")
{
    const bool labels = GENERATE(false, true);
    CAPTURE(labels);
    TestSpace s;
    Options options = labelled(labels);
    TestCtx ctx(s.space, &options);
    const size_t old = 30 * KiB, now = 64 * KiB, hard = 512 * KiB;
    REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
    // The context's first unit has no pages to give.
    std::vector<Block> blocks = {block_of(hak_alloc(ctx, 12000), 12000, 1)};
    Block b = block_of(hak_alloc_cs(ctx, old, labels ? 2 : 0, 0), old, 3);
    const std::vector<Block> others = fill_up(ctx, 2000, 16, 1);
    size_t freed = 0;
    for (const Block &other : others) {
        const bool apart = other.p + 2000 < b.p - 16 * KiB || other.p > b.p + old + 16 * KiB;
        if (apart && freed < 54 * KiB) {
            hak_free(ctx, other.p);
            freed += other.n;
        } else {
            blocks.push_back(other);
        }
    }
    REQUIRE(hak_alloc(ctx, now) == nullptr);
    void *q = hak_realloc(ctx, b.p, now);
    REQUIRE(q != nullptr);
    b.p = static_cast<unsigned char *>(q);
    CHECK(whole(b));
    CHECK(hak_usable_size(ctx, q) >= now);
    std::memset(b.p, b.fill, b.n = now);
    CHECK(committed_of(ctx) <= hard);
    CHECK(std::all_of(blocks.begin(), blocks.end(), whole));
    CHECK(hak_label_of(ctx, q) == (labels ? 2 : 0));
    require_sound(ctx);
    // What is left where the block was serves others.
    hak_free(ctx, q);
    CHECK(live(fill_up(ctx, 2000, 16, 1)) > 48 * KiB);
    require_sound(ctx);
}
