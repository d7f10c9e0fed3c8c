// The inline paths do what the functions of the library do, for every kind of context.
#include "heap.h"

#include <hakmem/inline.h>

#include <cstring>

using namespace test;

TEST_CASE("inline: the layout is the library's, and so are the classes")
{
    CHECK(hak_inline_layout() == HAK_INLINE_LAYOUT);
    TestSpace s;
    hak_options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    for (size_t n = 0; n <= 1100; n++) {
        void *p = hak_alloc(ctx, n);
        size_t usable = hak_usable_size(ctx, p);
        hak_free_inline(ctx, p);
        // The class has blocks at hand now: this one comes from the magazine that the inline path chose.
        void *q = hak_alloc_inline(ctx, n, 0);
        if (q != p || hak_usable_size(ctx, q) != usable) FAIL("size " << n);
        hak_free_inline(ctx, q);
    }
    require_sound(ctx);
}

TEST_CASE("inline: contexts of every kind")
{
    const int kind = GENERATE(0, 1, 2, 3, 4, 5);
    CAPTURE(kind);
    TestSpace s;
    Errors errors;
    hak_options options = ctx_options(&errors);
    static const char *const names[] = {"a", "b"};
    options.labels = names;
    options.label_count = kind == 1 ? 0 : 2;
    if (kind == 2) options.debug = HAK_DEBUG_CHECK;
    if (kind == 3) options.debug = HAK_DEBUG_POISON;
    if (kind == 4) options.shared = true;
    if (kind == 5) options.phase = 48;
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
