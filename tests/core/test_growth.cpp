// Large blocks that grow by realloc: into freed blocks that are kept, in mappings of their own, and what
// stays resident meanwhile.
#include "heap.h"

#include <algorithm>

using namespace test;

namespace
{

// A run with another one behind it.
struct Held {
    hak_ctx *ctx;
    size_t n;
    void *p, *behind;

    Held(hak_ctx *in, size_t bytes) : ctx(in), n(bytes), p(hak_alloc(ctx, n)), behind(hak_alloc(ctx, n))
    {
        REQUIRE((p && behind));
        fill(p, n, 3);
    }
};

void *freed(hak_ctx *ctx, size_t n)
{
    void *p = hak_alloc_cs(ctx, n, 0, 0x1);
    REQUIRE(p != nullptr);
    std::memset(p, 1, n);
    hak_free(ctx, p);
    return p;
}

} // namespace

TEST_CASE("a large block that grows moves into a freed one, and grows there without the OS")
{
    const bool shared = GENERATE(false, true);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    Held run(ctx, 280 * KiB);
    void *big = freed(ctx, 2 * MiB);
    hak_stats before = stats_of(ctx);
    uint64_t calls = s.os.counts.calls();
    void *p = hak_realloc_cs(ctx, run.p, 300 * KiB, 0, 0x2);
    CHECK(p == big);
    CHECK(filled(p, run.n, 3));
    CHECK(hak_usable_size(ctx, p) == 300 * KiB);
    hak_stats after = stats_of(ctx);
    CHECK(after.committed_bytes < before.committed_bytes);
    CHECK(after.live_bytes - before.live_bytes == 300 * KiB - hak_usable_size(ctx, run.behind));
    CHECK(after.big_bytes == 300 * KiB);
    CHECK_FALSE(hak_owns(ctx, static_cast<char *>(p) + 300 * KiB));
    for (size_t n = 320 * KiB; n <= 2 * MiB; n += 20 * KiB) {
        REQUIRE(hak_realloc(ctx, p, n) == big);
        REQUIRE(hak_usable_size(ctx, p) == n);
    }
    CHECK(filled(p, run.n, 3));
    CHECK(s.os.counts.calls() == calls);
    require_sound(ctx);
    hak_free(ctx, p);
    CHECK(hak_alloc(ctx, 2 * MiB) == big);
    require_sound(ctx);
}

TEST_CASE("blocks do not move into a freed one of more than eight times their size")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Held run(ctx, 100 * KiB);
    void *big = freed(ctx, 2 * MiB);
    void *p = hak_realloc(ctx, run.p, 200 * KiB);
    REQUIRE(p != nullptr);
    CHECK(p != big);
    p = hak_realloc(ctx, p, 300 * KiB);
    CHECK(p == big);
    CHECK(filled(p, run.n, 3));
}

TEST_CASE("from 256 KiB on a block moves into a freed one of any size, if that grew")
{
    TestSpace s;
    Options options = ctx_options();
    options.big_cache = 64 * MiB;
    TestCtx ctx(s.space, &options);
    void *list = hak_alloc(ctx, 1 * MiB + 1);
    for (size_t n = 2 * MiB; n <= 10 * MiB; n += MiB)
        REQUIRE((list = hak_realloc(ctx, list, n)) != nullptr);
    std::memset(list, 1, 10 * MiB);
    hak_free(ctx, list);
    Held run(ctx, 200 * KiB);
    void *p = hak_realloc(ctx, run.p, 256 * KiB);
    REQUIRE(p != nullptr);
    CHECK(p != list);
    p = hak_realloc(ctx, p, 300 * KiB);
    CHECK(p == list);
    CHECK(filled(p, run.n, 3));
    require_sound(ctx);
}

TEST_CASE("a block with room shrinks like others")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Held run(ctx, 280 * KiB);
    void *big = freed(ctx, 4 * MiB);
    void *p = hak_realloc(ctx, run.p, 600 * KiB);
    REQUIRE(p == big);
    SECTION("to a run: the mapping is free again")
    {
        p = hak_realloc(ctx, p, 200 * KiB);
        CHECK(p != big);
        CHECK(hak_alloc(ctx, 4 * MiB) == big);
    }
    SECTION("above a megabyte: the rest goes back")
    {
        p = hak_realloc(ctx, p, 3 * MiB);
        p = hak_realloc(ctx, p, 2 * MiB);
        CHECK(hak_usable_size(ctx, p) == 2 * MiB);
        CHECK(stats_of(ctx).cached_bytes < MiB);
    }
    CHECK(filled(p, 200 * KiB, 3));
    require_sound(ctx);
}

TEST_CASE("room behind a block goes back when it is unused, and is there again when it is wanted")
{
    TestSpace s;
    Options options = ctx_options();
    TestCtx ctx(s.space, &options);
    Held run(ctx, 280 * KiB);
    void *big = freed(ctx, 2 * MiB);
    void *p = hak_realloc(ctx, run.p, 300 * KiB);
    REQUIRE(p == big);
    const size_t committed = committed_of(ctx), os = s.os.committed();
    const int how = GENERATE(0, 1, 2, 3);
    CAPTURE(how);
    if (how == 0) CHECK(hak_ctx_trim(ctx) >= 1700 * KiB);
    if (how == 1) hak_ctx_flush(ctx);
    if (how == 2)
        for (uint64_t second = 1; second <= 3; second++)
            hak_ctx_tick(ctx, second * 1000000000u);
    if (how == 3) {
        hak_limit(ctx, 0, committed + MiB, nullptr, nullptr);
        CHECK(hak_alloc(ctx, 2 * MiB) != nullptr);
        hak_limit(ctx, 0, 0, nullptr, nullptr);
    }
    if (how != 3) {
        CHECK(committed - committed_of(ctx) >= 1700 * KiB);
        CHECK(os - s.os.committed() >= 1700 * KiB);
    }
    CHECK(filled(p, run.n, 3));
    require_sound(ctx);
    const size_t to = GENERATE((size_t)400, 2048, 3000) * KiB;
    CAPTURE(to);
    char *q = static_cast<char *>(hak_realloc(ctx, p, to));
    REQUIRE(q != nullptr);
    std::memset(q + run.n, 1, to - run.n);
    CHECK(filled(q, run.n, 3));
    require_sound(ctx);
    hak_free(ctx, q);
    require_sound(ctx);
}

TEST_CASE("growth in and beyond the room fails cleanly")
{
    for (uint64_t n = 1; n <= 6; n++) {
        const bool unused = n % 2;
        TestSpace s;
        TestCtx ctx(s.space);
        Held run(ctx, 280 * KiB);
        void *p = freed(ctx, 2 * MiB);
        REQUIRE(hak_realloc(ctx, run.p, 300 * KiB) == p);
        if (unused) hak_ctx_flush(ctx);
        for (size_t to : {400 * KiB, 3 * MiB}) {
            s.os.fail_nth((n + 1) / 2);
            void *q = hak_realloc(ctx, p, to);
            s.os.fail_nth(0);
            CHECK(filled(q ? q : p, run.n, 3));
            if (q) p = q;
            require_sound(ctx);
        }
        hak_limit(ctx, 0, committed_of(ctx) + 64 * KiB, nullptr, nullptr);
        CHECK(hak_realloc(ctx, p, 9 * MiB) == nullptr);
        CHECK(filled(p, run.n, 3));
        hak_free(ctx, p);
        require_sound(ctx);
    }
}

TEST_CASE("a run that cannot grow beyond half a megabyte becomes a mapping, which is not copied again")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Held run(ctx, 480 * KiB);
    void *p = hak_realloc_cs(ctx, run.p, 560 * KiB, 0, 0x3);
    REQUIRE(p != nullptr);
    CHECK(stats_of(ctx).big_blocks == 1);
    uint64_t remaps = s.os.counts.remap;
    for (size_t n = 600 * KiB; n <= 900 * KiB; n += 100 * KiB) {
        p = hak_realloc(ctx, p, n);
        REQUIRE(p != nullptr);
        CHECK(s.os.counts.remap == ++remaps);
    }
    CHECK(filled(p, run.n, 3));
    hak_free(ctx, p);
    require_sound(ctx);
}

TEST_CASE("a block that moves to fresh pages gives up its own on the way")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Held run(ctx, 480 * KiB);
    const size_t to = GENERATE((size_t)500, 700) * KiB;
    CAPTURE(to);
    uint64_t decommits = s.os.counts.decommit;
    void *p = hak_realloc(ctx, run.p, to);
    REQUIRE(p != nullptr);
    REQUIRE(p != run.p);
    CHECK(s.os.counts.decommit - decommits >= 3);
    CHECK(filled(p, run.n, 3));
    CHECK(stats_of(ctx).retained_bytes == 0);
    require_sound(ctx);
}
