// Reallocation: every transition between packed, small, run and big blocks; shrinks that never fail;
// failures that leave the block as it was.
#include "heap.h"

#include <algorithm>

using namespace test;

namespace
{

const size_t SIZES[] = {0,       1,    7,       8,       16,          24,     80,    88,     100,
                        104,     504,  512,     513,     640,         1024,   2000,  2048,   5000,
                        8191,    8192, 8193,    12000,   16384,       20000,  65664, 131072, 300000,
                        MiB - 1, MiB,  MiB + 1, 2 * MiB, 3 * MiB + 5, 5 * MiB};

enum Form { PLAIN, SIZED, CS, SIZED_CS };

void *resize(hak_ctx *ctx, void *p, size_t old, size_t n, int form)
{
    switch (form) {
    case PLAIN:
        return hak_realloc(ctx, p, n);
    case SIZED:
        return hak_realloc_sized(ctx, p, old, n);
    case CS:
        return hak_realloc_cs(ctx, p, n, 0, 5);
    default:
        return hak_realloc_sized_cs(ctx, p, old, n, 0, 5);
    }
}

} // namespace

TEST_CASE("every transition keeps the contents")
{
    int which = GENERATE(0, 1, 2, 4), form = GENERATE(0, 1, 2, 3);
    // Poison fills every byte: one form of it shows as much as four.
    if (which == 4 && form != SIZED) return;
    CAPTURE(which, form);
    TestSpace s;
    Options options = variant(which);
    Errors errors;
    options.on_error = Errors::record;
    options.error_user = &errors;
    unsigned id = 0;
    for (size_t from : SIZES) {
        TestCtx ctx(s.space, &options);
        for (size_t to : SIZES) {
            CAPTURE(from, to);
            void *p = hak_alloc(ctx, from);
            REQUIRE(p != nullptr);
            fill(p, from, ++id);
            void *q = resize(ctx, p, from, to, form);
            REQUIRE(q != nullptr);
            REQUIRE(filled(q, std::min(from, to), id));
            REQUIRE(hak_usable_size(ctx, q) >= to);
            if (to >= 16) REQUIRE(addr(q) % (to > 32 * KiB ? 4096 : to % 16 == 0 ? 16 : 8) == 0);
            std::memset(q, 0x11, to);
            REQUIRE(stats_of(ctx).live_blocks == 1);
            REQUIRE(stats_of(ctx).live_bytes == hak_usable_size(ctx, q));
            hak_free_sized(ctx, q, to);
        }
        REQUIRE(stats_of(ctx).live_blocks == 0);
        require_sound(ctx);
    }
    CHECK(errors.take() == "");
}

TEST_CASE("NULL and 0")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (int form = 0; form < 4; form++) {
        void *p = resize(ctx, nullptr, 0, 100, form);
        REQUIRE(p != nullptr);
        CHECK(hak_usable_size(ctx, p) >= 100);
        void *q = resize(ctx, p, 100, 0, form);
        REQUIRE(q != nullptr);
        CHECK(hak_usable_size(ctx, q) <= 16);
        CHECK(stats_of(ctx).live_blocks == 1);
        hak_free(ctx, q);
        void *r = resize(ctx, nullptr, 0, 0, form);
        REQUIRE(r != nullptr);
        hak_free(ctx, r);
        CHECK(stats_of(ctx).live_blocks == 0);
    }
}

TEST_CASE("a block grows in place within its usable size, and keeps its place at the same size")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (size_t n :
         {(size_t)1, (size_t)40, (size_t)500, (size_t)2000, (size_t)7000, (size_t)60000, 2 * MiB}) {
        void *p = hak_alloc(ctx, n);
        size_t usable = hak_usable_size(ctx, p);
        CHECK(hak_realloc(ctx, p, usable) == p);
        CHECK(hak_realloc_sized(ctx, p, usable, usable) == p);
        CHECK(hak_realloc_sized_cs(ctx, p, usable, usable, 0, 1) == p);
        CHECK(hak_usable_size(ctx, p) == usable);
        hak_free(ctx, p);
    }
}

TEST_CASE("growth by small steps moves rarely, by large ones takes no more than it needs")
{
    TestSpace s;
    TestCtx ctx(s.space);
    int form = GENERATE(0, 1, 2, 3);
    size_t n = 1024, moves = 0;
    void *p = hak_alloc(ctx, n);
    for (; n < 32000; n += 64) {
        void *q = resize(ctx, p, n, n + 64, form);
        REQUIRE(q != nullptr);
        moves += q != p;
        p = q;
        REQUIRE(hak_usable_size(ctx, p) <= (n + 64) * 3 / 2);
    }
    CHECK(moves < 16);
    size_t exact = hak_usable_size(ctx, hak_alloc(ctx, 20000));
    p = resize(ctx, p, n, 1500, form);
    p = resize(ctx, p, 1500, 20000, form);
    CHECK(hak_usable_size(ctx, p) == exact);
    require_sound(ctx);
}

TEST_CASE("growth by small steps stops at powers of two, where buffers with a limit end")
{
    TestSpace s;
    TestCtx ctx(s.space);
    size_t step = GENERATE(16, 64, 100), most = 4096;
    void *p = hak_alloc(ctx, 2048);
    for (size_t n = 2048 + step; n <= 32000; n += step) {
        while (most < n)
            most *= 2;
        size_t old = hak_usable_size(ctx, p);
        p = hak_realloc(ctx, p, n);
        REQUIRE(p != nullptr);
        /* A block that has room stays. */
        if (hak_usable_size(ctx, p) != old) REQUIRE(hak_usable_size(ctx, p) <= most);
    }
    require_sound(ctx);
}

TEST_CASE("what a large block leaves behind when it moves is for blocks of any size")
{
    bool shared = GENERATE(false, true);
    TestSpace s;
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    for (unsigned i = 0; i < 40; i++) // runs of this size are kept at hand from now on
        hak_free(ctx, hak_alloc(ctx, 64 * KiB));
    void *p = hak_alloc(ctx, 64 * KiB), *next = hak_alloc(ctx, 64 * KiB);
    void *moved = hak_realloc(ctx, p, 200 * KiB);
    REQUIRE(next != nullptr);
    REQUIRE(moved != p);
    CHECK(hak_alloc(ctx, 48 * KiB) == p);
    require_sound(ctx);
}

TEST_CASE("a small block moves to one that is at hand, and nothing moves that is no block")
{
    const bool shared = GENERATE(false, true);
    CAPTURE(shared);
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.shared = shared;
    options.packed_bytes = HAK_NONE;
    TestCtx root(s.space, &options);
    hak_ctx *ctx = shared ? hak_ctx_thread(root) : root;
    const hak_label a = hak_label_define(root, "a");
    char *p = static_cast<char *>(hak_alloc_cs(ctx, 64, a, 0));
    void *hand = hak_alloc(ctx, 200);
    hak_free(ctx, hand);
    fill(p, 64, 7);
    SECTION("it grows, and shrinks again")
    {
        CHECK(hak_realloc(ctx, p, 200) == hand);
        CHECK(filled(hand, 64, 7));
        CHECK(hak_label_of(ctx, hand) == a);
        CHECK(hak_alloc(ctx, 64) == p);
        hak_free(ctx, p);
        CHECK(hak_realloc(ctx, hand, 40) != hand);
        CHECK(hak_alloc(ctx, 200) == hand);
    }
    SECTION("not from its middle")
    {
        CHECK(hak_realloc(ctx, p + 8, 200) == nullptr);
        CHECK(errors.count(HAK_E_POINTER) == 1);
        CHECK(hak_alloc(ctx, 200) == hand);
    }
    SECTION("not where it is free already")
    {
        std::vector<void *> blocks(300);
        for (void *&block : blocks)
            block = hak_alloc(ctx, 64);
        for (void *block : blocks)
            hak_free(ctx, block);
        CHECK(hak_realloc(ctx, blocks[0], 200) == nullptr);
        CHECK(errors.count(HAK_E_DOUBLE_FREE) == 1);
        CHECK(hak_alloc(ctx, 200) == hand);
    }
    require_sound(root);
}

TEST_CASE("a shrink gives memory back")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (size_t n : {(size_t)4000, (size_t)60000, 900 * KiB, 6 * MiB})
        for (size_t to : {(size_t)8, n / 4}) {
            CAPTURE(n, to);
            void *p = hak_alloc(ctx, n);
            p = hak_realloc(ctx, p, to);
            REQUIRE(p != nullptr);
            CHECK(hak_usable_size(ctx, p) < n);
            CHECK(hak_usable_size(ctx, p) <= to + to / 2 + 16 * KiB);
            CHECK(stats_of(ctx).live_bytes == hak_usable_size(ctx, p));
            hak_free(ctx, p);
        }
}

TEST_CASE("a shrink never fails, even when the OS refuses everything and the limit is reached")
{
    bool limited = GENERATE(false, true);
    int form = GENERATE(1, 3), which = GENERATE(0, 1, 2);
    CAPTURE(limited, form, which);
    TestSpace s;
    Options options = variant(which);
    for (size_t from : SIZES)
        for (size_t to : SIZES) {
            if (to > from) break;
            CAPTURE(from, to);
            TestCtx ctx(s.space, &options);
            // Neighbours, so that the block cannot simply give back the end of its page.
            void *before = hak_alloc(ctx, from), *p = hak_alloc(ctx, from), *after = hak_alloc(ctx, from);
            REQUIRE((before && p && after));
            // What lies next to it; all of them would be most of the test's time.
            const size_t edge = std::min(from, 64 * KiB);
            char *end = static_cast<char *>(before) + from - edge;
            fill(end, edge, 1);
            fill(p, from, 2);
            fill(after, edge, 3);
            if (limited) REQUIRE(hak_limit(ctx, 0, committed_of(ctx), nullptr, nullptr) == 0);
            s.os.refuse_all(true);
            void *q = resize(ctx, p, from, to, form);
            s.os.refuse_all(false);
            REQUIRE(q != nullptr);
            REQUIRE(filled(q, to, 2));
            REQUIRE(hak_usable_size(ctx, q) >= to);
            REQUIRE(filled(end, edge, 1));
            REQUIRE(filled(after, edge, 3));
            if (limited) REQUIRE(committed_of(ctx) <= stats_of(ctx).hard_limit);
            hak_free_sized(ctx, q, to);
            hak_free(ctx, before);
            hak_free(ctx, after);
            REQUIRE(stats_of(ctx).live_blocks == 0);
        }
}

TEST_CASE("a failing growth leaves the block as it was")
{
    int form = GENERATE(0, 1, 2, 3);
    CAPTURE(form);
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(s.space, &options);
    for (size_t from : SIZES) {
        CAPTURE(from);
        void *p = hak_alloc(ctx, from);
        REQUIRE(p != nullptr);
        fill(p, from, 9);
        hak_stats before = stats_of(ctx);
        s.os.refuse_all(true);
        CHECK(resize(ctx, p, from, 900 * MiB, form) == nullptr);
        s.os.refuse_all(false);
        CHECK(resize(ctx, p, from, SIZE_MAX, form) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(resize(ctx, p, from, (size_t)PTRDIFF_MAX + 1, form) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        hak_stats after = stats_of(ctx);
        CHECK(after.live_bytes == before.live_bytes);
        CHECK(after.live_blocks == before.live_blocks);
        CHECK(after.failures > before.failures);
        CHECK(filled(p, from, 9));
        CHECK(hak_usable_size(ctx, p) >= from);
        hak_free_sized(ctx, p, from);
    }
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == 0);
}

TEST_CASE("a block grows in place into what its context has at hand, at the limit")
{
    const size_t n = GENERATE(4 * MiB, 256 * KiB);
    TestSpace s;
    TestCtx ctx(s.space);
    void *p = hak_alloc(ctx, n);
    std::vector<void *> runs;
    for (int round = 0; round < 30; round++) {
        runs = {hak_alloc(ctx, 64 * KiB), hak_alloc(ctx, 64 * KiB)};
        for (void *q : runs)
            hak_free(ctx, q);
    }
    hak_stats before = stats_of(ctx);
    REQUIRE(before.cached_bytes >= 128 * KiB);
    REQUIRE(hak_limit(ctx, 0, before.committed_bytes + 64 * KiB, nullptr, nullptr) == 0);
    fill(p, 4096, 1);
    void *grown = hak_realloc(ctx, p, n + 128 * KiB);
    if (n >= MiB || grown) {
        REQUIRE(grown);
        CHECK(filled(grown, 4096, 1));
        CHECK(stats_of(ctx).failures == before.failures);
    }
    require_sound(ctx);
}

TEST_CASE("many blocks grow side by side")
{
    TestSpace s;
    TestCtx ctx(s.space);
    struct Block {
        void *p;
        size_t n;
    };
    std::vector<Block> blocks(40);
    Random random(4);
    for (unsigned i = 0; i < blocks.size(); i++) {
        blocks[i] = {hak_alloc(ctx, 1), 1};
        fill(blocks[i].p, 1, i);
    }
    for (size_t step = 0; step < 1000 * EFFORT; step++) {
        unsigned i = (unsigned)random.below(blocks.size());
        Block &b = blocks[i];
        size_t n = b.n > 400000 ? 1 : random.below(3) ? b.n + 1 + random.below(64) : b.n + b.n / 2;
        void *q = step % 2 ? hak_realloc(ctx, b.p, n) : hak_realloc_sized(ctx, b.p, b.n, n);
        REQUIRE(q != nullptr);
        REQUIRE(filled(q, std::min(b.n, n), i));
        fill(q, n, i);
        b = {q, n};
    }
    require_sound(ctx);
}

TEST_CASE("realloc without memory counts one failure, and none where the block stays")
{
    TestSpace space;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(space.space, &options);
    void *p = hak_alloc(ctx, 2000), *large = hak_alloc(ctx, 300 * KiB);
    REQUIRE((p && large));
    space.os.refuse_all(true);
    while (hak_alloc(ctx, 2100)) {
    }
    while (hak_alloc(ctx, 2300)) {
    }
    while (hak_alloc(ctx, 100)) {
    }
    const uint64_t before = stats_of(ctx).failures;
    CHECK(hak_realloc(ctx, p, 2100) == nullptr);
    CHECK(stats_of(ctx).failures == before + 1);
    CHECK(hak_realloc(ctx, p, 100) == p);
    CHECK(stats_of(ctx).failures == before + 1);
    space.os.refuse_all(false);
}

TEST_CASE("a block that grows in small steps is over-allocated by up to half of what is asked for")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    double most = 0;
    for (size_t from = 1024; from < 32 * KiB; from += 64) {
        void *p = hak_alloc(ctx, from);
        size_t size = hak_usable_size(ctx, p), n = std::min(size + 1 + from % 1000 * size / 16000, 32 * KiB);
        p = hak_realloc(ctx, p, n);
        most = std::max(most, (double)hak_usable_size(ctx, p) / (double)n);
        hak_free(ctx, p);
    }
    CHECK(most <= 1.5);
    CHECK(most > 1.4);
}

// Blocks A and B of 24 bytes, B behind A, and A at half of a step of 16. At the limit, when B is free, A grows to 40 bytes
// where it is, and the 8 bytes between A and the next block are too few for a block of their own: with them A would have
// 48, which only a block at a multiple of 16 may have, for whoever gets its place next.
TEST_CASE("a packed block that grows at the limit keeps the alignment of its size")
{
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    REQUIRE(ctx != nullptr);
    REQUIRE(hak_limit(ctx, 0, 64 << 10, nullptr, nullptr) == 0);
    char *before = nullptr, *middle = nullptr;
    bool met = false;
    for (char *p; (p = (char *)hak_alloc(ctx, 24)) != nullptr;) {
        if (!met && before && (uintptr_t)before % 16 != 0 && middle == before + 24 && p == middle + 24) {
            met = true;
            continue;
        }
        if (met) continue;
        before = middle;
        middle = p;
    }
    REQUIRE(met);
    hak_free(ctx, middle);
    auto *grown = (char *)hak_realloc(ctx, before, 40);
    if (grown) CHECK((hak_usable_size(ctx, grown) % 16 != 0 || (uintptr_t)grown % 16 == 0));
    CHECK(hak_ctx_check(ctx, nullptr, nullptr));
    hak_ctx_destroy(ctx);
}
