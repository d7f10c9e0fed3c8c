// The inline paths do what the functions of the library do, for every kind of context.
#include "heap.h"
#include <hakmem/profile.h>

#include <hakmem/inline.h>

#include <cstring>

#include <cmath>
#include <set>
#include <vector>

using namespace test;

TEST_CASE("inline: the layout is the library's, and so are the classes")
{
    CHECK(hak_inline_layout() == HAK_INLINE_LAYOUT);
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    options.shared = GENERATE(false, true);
    TestCtx ctx(s.space, &options);
    hak_ctx *heap = hak_ctx_thread(ctx);
    unsigned step = options.shared ? 16 : 8, known = 0;
    for (size_t n = 0; n <= 1100; n++) {
        void *p = hak_alloc(heap, n);
        size_t usable = hak_usable_size(heap, p);
        hak_free_inline(heap, p);
        // The class has blocks at hand now: this one comes from the magazine that the inline path chose.
        void *q = hak_alloc_inline(heap, n, 0);
        if (q != p || hak_usable_size(heap, q) != usable) FAIL("size " << n);
        const uint32_t kind = hak_inline_kind(heap, q);
        known += kind < HAK_INLINE_BINS;
        if (kind < HAK_INLINE_BINS && hak_inline_size(kind) != usable) FAIL("size of the bin for " << n);
        hak_free_inline(heap, q);
        if (n >= step && n <= HAK_INLINE_EIGHTS && n % step == 0 &&
            hak_inline_class_of_eights(n / 8) != hak_inline_class(heap, n))
            FAIL("class of " << n / 8 << " eighths");
    }
    CHECK(known > 1000);
    require_sound(ctx);
}

TEST_CASE("inline: at hand or not, whose block it is")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options), other(s.space, &options);
    int foreign = 0;
    void *small = hak_alloc(ctx, 40), *run = hak_alloc(ctx, 100000), *big = hak_alloc(ctx, 3 << 20);
    CHECK(hak_inline_kind(ctx, small) == hak_inline_class(ctx, 40));
    CHECK(hak_inline_kind(ctx, run) > hak_inline_class(ctx, HAK_INLINE_MOST));
    CHECK(hak_inline_kind(ctx, run) < HAK_INLINE_BINS);
    const void *const others[] = {big, &foreign, nullptr, (void *)(hak_ctx *)ctx};
    for (const void *p : others) {
        CAPTURE(p);
        CHECK(hak_inline_kind(ctx, p) >= HAK_INLINE_BINS);
        CHECK_FALSE(hak_free_at_hand(ctx, const_cast<void *>(p)));
    }
    CHECK(hak_inline_kind(other, small) >= HAK_INLINE_BINS);
    CHECK_FALSE(hak_free_at_hand(other, small));
    REQUIRE(hak_free_at_hand(ctx, small));
    CHECK(hak_alloc_inline(ctx, 40, 0) == small);
    std::vector<void *> blocks;
    for (int i = 0; i < 100; i++)
        blocks.push_back(hak_alloc(ctx, 40));
    size_t left = stats_of(ctx).live_blocks, freed = 0;
    while (freed < blocks.size() && hak_free_at_hand(ctx, blocks[freed]))
        freed++;
    // A full magazine takes no more, and nothing has happened to the block that it did not take.
    CHECK(freed < blocks.size());
    CHECK(stats_of(ctx).live_blocks == left - freed);
    CHECK(hak_usable_size(ctx, blocks[freed]) == 40);
    CHECK(errors.take() == "");
    require_sound(ctx);
}

TEST_CASE("inline: contexts of every kind")
{
    const int kind = GENERATE(0, 1, 2, 3, 4, 5);
    CAPTURE(kind);
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    static const char *const names[] = {"a", "b"};
    options.labels = names;
    options.label_count = kind == 1 ? 0 : 2;
    if (kind == 2) options.debug = HAK_DEBUG_CHECK;
    if (kind == 3) options.debug = HAK_DEBUG_POISON;
    if (kind == 4) options.shared = true;
    if (kind == 5) options.first_offset = 48;
    TestCtx ctx(s.space, &options);
    struct Block {
        void *p;
        size_t n;
        unsigned id;
    };
    std::vector<Block> blocks;
    Random random(3);
    size_t in_a = 0;
    for (unsigned i = 0; i < 40000; i++) {
        if (blocks.size() < 3000 && random.below(2)) {
            size_t n = random.below(i % 50 ? 1100 : 70000);
            Block b = {hak_alloc_inline(ctx, n, 1), n, i};
            if (!b.p || hak_usable_size(ctx, b.p) < n) FAIL("block of " << n);
            fill(b.p, n, i);
            blocks.push_back(b);
        } else if (!blocks.empty()) {
            std::swap(blocks[random.below(blocks.size())], blocks.back());
            Block b = blocks.back();
            blocks.pop_back();
            if (!filled(b.p, b.n, b.id)) FAIL("contents of a block of " << b.n);
            hak_free_inline(ctx, b.p);
        }
    }
    require_sound(ctx);
    hak_label_info info;
    if (kind != 1) {
        REQUIRE(hak_label_stats(ctx, 1, &info) == 0);
        in_a = info.live_blocks;
    } else {
        in_a = stats_of(ctx).live_blocks;
    }
    CHECK(in_a == blocks.size());
    CHECK(errors.take() == "");
    hak_free_inline(ctx, nullptr);
    int foreign = 0;
    hak_free_inline(ctx, &foreign);
    CHECK(errors.take() == "HAK_E_FOREIGN");
    if (kind == 2) {
        hak_free_inline(ctx, blocks[0].p);
        hak_free_inline(ctx, blocks[0].p);
        CHECK(errors.take() == "HAK_E_DOUBLE_FREE");
    }
}

TEST_CASE("inline: a retired context allocates nothing and ends with its last block")
{
    TestSpace s;
    hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
    void *p = hak_alloc_inline(ctx, 40, 0);
    REQUIRE(p != nullptr);
    hak_ctx_retire(ctx);
    CHECK(hak_alloc_inline(ctx, 40, 0) == nullptr);
    hak_free_inline(ctx, p);
    CHECK(hak_ctx_of(s.space, p) == nullptr);
}

TEST_CASE("inline: blocks at hand while a profile counts")
{
    TestSpace s;
    TestCtx ctx(s.space);
    auto *bins = reinterpret_cast<hak_inline_ctx *>(static_cast<hak_ctx *>(ctx))->bins;
    hak_free(ctx, hak_alloc(ctx, 64));
    auto at_hand = [&] {
        bins = reinterpret_cast<hak_inline_ctx *>(static_cast<hak_ctx *>(ctx))->bins;
        return hak_alloc_counted(ctx, bins + hak_inline_class(ctx, 64), 64, hak_inline_left_at);
    };
    CHECK(at_hand() == nullptr); // no profile
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mean = 4096;
    options.one_by_one = true;
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    std::vector<void *> blocks;
    size_t quick = 0;
    for (int i = 0; i < 40000; i++) {
        void *p = at_hand();
        quick += p != nullptr;
        blocks.push_back(p ? p : hak_alloc_cs(ctx, 64, 0, 7));
    }
    CHECK(quick > 20000);
    CHECK(std::set<void *>(blocks.begin(), blocks.end()).size() == blocks.size());
    struct Sum {
        double bytes = 0, variance = 0;
    } sum;
    hak_profile_visit(
        ctx,
        [](void *user, const hak_profile_stack *stack) {
            static_cast<Sum *>(user)->bytes += stack->live_bytes;
            static_cast<Sum *>(user)->variance += stack->live_bytes_error * stack->live_bytes_error;
            return true;
        },
        &sum);
    CHECK(std::abs(sum.bytes - 40000 * 64) < 4 * std::sqrt(sum.variance));
    CHECK(hak_profile_stop(ctx) == 0);
    for (void *p : blocks)
        hak_free(ctx, p);
}

TEST_CASE("inline: a bin that is kept has nothing at hand while it is not the one for its size")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = GENERATE(false, true);
    TestCtx ctx(s.space, &options);
    hak_ctx *heap = hak_ctx_thread(ctx);
    struct Kept {
        size_t n;
        hak_inline_bin *bin;
    };
    std::vector<Kept> kept;
    std::set<void *> live;
    size_t others = 0, taken = 0;
    auto keep = [&] {
        for (size_t n = 1; n <= HAK_INLINE_MOST; n += 15)
            kept.push_back({n, hak_inline_bin_of(heap, n)});
    };
    auto look = [&] {
        for (const Kept &k : kept) {
            const bool other = hak_inline_bin_of(heap, k.n) != k.bin, hand = hak_inline_at_hand(k.bin);
            others += other;
            if (other && hand) FAIL("blocks at hand in another bin for " << k.n);
            if (!hand) continue;
            taken++;
            void *p = hak_inline_pop(k.bin, 0);
            if (hak_usable_size(ctx, p) < k.n || !live.insert(p).second) FAIL("a block twice, or too small");
        }
    };
    auto work = [&] {
        std::vector<void *> blocks;
        for (size_t i = 0; i < 4000; i++)
            blocks.push_back(hak_alloc_cs(heap, 1 + i * 7 % 1200, 0, 7));
        for (void *p : blocks)
            hak_free(heap, p);
    };
    keep();
    look();
    for (int round = 0; round < 3; round++) {
        work();
        keep();
        look();
        hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
        profile.mean = 4096;
        profile.one_by_one = round == 1;
        REQUIRE(hak_profile_start(ctx, &profile) == 0);
        look();
        work();
        look();
        keep();
        if (round == 2) REQUIRE(hak_label_define(ctx, "late") == 1);
        look();
        REQUIRE(hak_profile_stop(ctx) == 0);
        hak_free(heap, hak_alloc(heap, 40)); // a thread's heap sees it when it comes by
        look();
        work();
        look();
        hak_ctx_trim(ctx);
        look();
        for (void *p : live)
            hak_free(heap, p);
        live.clear();
    }
    CHECK(others > 100);
    CHECK(taken > 100);
    require_sound(ctx);
}

namespace
{

// Counts one by one from the start.
void start_counting(hak_ctx *ctx)
{
    hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
    profile.mean = size_t(1) << 40; // no sample is due
    profile.one_by_one = true;
    REQUIRE(hak_profile_start(ctx, &profile) == 0);
}

} // namespace

TEST_CASE("inline: a bin from before the bins moved gives a profile nothing")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    std::set<void *> live;
    std::vector<void *> blocks;
    for (int i = 0; i < 20; i++)
        blocks.push_back(hak_alloc(ctx, 64));
    for (void *p : blocks)
        hak_free(ctx, p);
    hak_inline_bin *const kept = hak_inline_bin_of(ctx, 64);
    REQUIRE(kept->top > kept->lo);
    REQUIRE(hak_profile_start(ctx, nullptr) == 0); // in batches
    REQUIRE(hak_profile_stop(ctx) == 0);
    start_counting(ctx);
    hak_inline_bin *const now = hak_inline_bin_of(ctx, 64);
    CHECK(now != kept);
    CHECK(hak_alloc_counted(ctx, kept, 64, hak_inline_left_at) == nullptr);
    while (void *p = hak_alloc_counted(ctx, now, 64, hak_inline_left_at))
        if (!live.insert(p).second) FAIL("a block twice");
    CHECK(live.size() > 5);
    for (void *p : live)
        hak_free(ctx, p);
    require_sound(ctx);
}

TEST_CASE("inline: a magazine that is shut for good gives a profile nothing")
{
    // Small blocks that are packed, whose magazines write no labels.
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_label_define(ctx, "early") == 1);
    std::vector<void *> blocks;
    size_t shut = 0;
    for (size_t n = 8; n <= 64 && shut == 0; n += 8) {
        for (int i = 0; i < 3000; i++)
            blocks.push_back(hak_alloc_cs(ctx, n, 1, 0));
        const hak_inline_bin *bin = hak_inline_bin_of(ctx, n);
        for (int i = 0; i < 2000 && bin->top == bin->slots; i++) {
            hak_free(ctx, blocks.back());
            blocks.pop_back();
        }
        if (bin->top != bin->slots && !hak_inline_at_hand(bin)) shut = n;
    }
    REQUIRE(shut != 0);
    start_counting(ctx);
    CHECK(hak_alloc_counted(ctx, hak_inline_bin_of(ctx, shut), shut, hak_inline_left_at) == nullptr);
    for (void *p : blocks)
        hak_free(ctx, p);
    require_sound(ctx);
}
