// Big blocks (above 1 MiB): own mappings, the cache keyed by call site, remap, budget, visits.
#include "heap.h"

#include <algorithm>
#include <map>

using namespace test;

namespace
{

// The cache follows the heap, up to big_cache: something to follow, of which no page is touched.
void ballast(hak_ctx *ctx, size_t bytes)
{
    for (; bytes > 0; bytes -= MiB)
        if (!hak_alloc(ctx, MiB)) FAIL("no ballast");
}

std::map<const void *, hak_block> visited(const hak_ctx *ctx)
{
    std::map<const void *, hak_block> seen;
    hak_ctx_visit(
        ctx,
        [](void *user, const hak_block *block) {
            (*static_cast<std::map<const void *, hak_block> *>(user))[block->p] = *block;
            return true;
        },
        &seen);
    return seen;
}

} // namespace

TEST_CASE("big blocks are counted, and shown with their site")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_label buffer = hak_label_define(ctx, "buffer");
    void *small = hak_alloc_cs(ctx, 1000, buffer, 0x111);
    void *run = hak_alloc_cs(ctx, 500 * KiB, buffer, 0x222);
    void *big = hak_alloc_cs(ctx, 3 * MiB, buffer, 0x333);
    void *aligned = hak_aligned_alloc_cs(ctx, 64 * KiB, 2 * MiB, 0, 0x444);
    void *plain = hak_alloc(ctx, 5 * MiB);
    hak_stats stats = stats_of(ctx);
    CHECK(stats.big_blocks == 3);
    CHECK(stats.big_bytes ==
          hak_usable_size(ctx, big) + hak_usable_size(ctx, aligned) + hak_usable_size(ctx, plain));
    CHECK(addr(aligned) % (64 * KiB) == 0);
    auto seen = visited(ctx);
    REQUIRE(seen.size() == 5);
    CHECK(seen[small].site == 0);
    CHECK(seen[run].site == 0);
    CHECK(seen[big].site == 0x333);
    CHECK(seen[big].label == buffer);
    CHECK(seen[big].size == hak_usable_size(ctx, big));
    CHECK(seen[aligned].site == 0x444);
    CHECK(seen[plain].site == 0);
    CHECK(seen[plain].label == 0);
    big = hak_realloc_cs(ctx, big, 9 * MiB, 0, 0x555);
    seen = visited(ctx);
    CHECK(seen[big].label == 0);
    CHECK(hak_owns(ctx, big));
    CHECK(hak_owns(ctx, static_cast<char *>(big) + 8 * MiB));
    CHECK(hak_ctx_of(s.space, static_cast<char *>(big) + 8 * MiB) == ctx.ctx);
    for (void *p : {small, run, big, aligned, plain})
        hak_free(ctx, p);
    CHECK(stats_of(ctx).big_blocks == 0);
    CHECK(stats_of(ctx).big_bytes == 0);
    require_sound(ctx);
}

TEST_CASE("a site that frees and asks again gets its block back, without the OS")
{
    TestSpace s;
    TestCtx ctx(s.space);
    void *p = hak_alloc_cs(ctx, 2 * MiB, 0, 0xA);
    std::memset(p, 1, 2 * MiB);
    hak_free_cs(ctx, p, 0xF);
    uint64_t calls = s.os.counts.calls();
    for (int i = 0; i < 1000; i++) {
        void *q = hak_alloc_cs(ctx, 2 * MiB, 0, 0xA);
        REQUIRE(q == p);
        static_cast<char *>(q)[i * 2000] = 1;
        hak_free_cs(ctx, q, 0xF);
    }
    CHECK(s.os.counts.calls() == calls);
    CHECK(resident_pages(p, 2 * MiB) == 512);
}

TEST_CASE("each site gets its own block, in whatever order they were freed")
{
    TestSpace s;
    TestCtx ctx(s.space);
    ballast(ctx, 40 * MiB);
    for (int round = 0; round < 8; round++) {
        void *a = hak_alloc_cs(ctx, 2 * MiB, 0, 0x1000), *b = hak_alloc_cs(ctx, 2 * MiB, 0, 0x2000);
        void *c = hak_alloc_cs(ctx, 2 * MiB, 0, 0x3000);
        REQUIRE((a && b && c));
        void *order[] = {a, b, c};
        std::rotate(order, order + round % 3, order + 3);
        if (round & 4) std::swap(order[0], order[1]);
        for (void *p : order)
            hak_free(ctx, p);
        uint64_t calls = s.os.counts.calls();
        CHECK(hak_alloc_cs(ctx, 2 * MiB, 0, 0x2000) == b);
        CHECK(hak_alloc_cs(ctx, 2 * MiB, 0, 0x1000) == a);
        CHECK(hak_alloc_cs(ctx, 2 * MiB, 0, 0x3000) == c);
        CHECK(s.os.counts.calls() == calls);
        for (void *p : {a, b, c})
            hak_free(ctx, p);
    }
    require_sound(ctx);
}

TEST_CASE("the cached block serves another site rather than the OS")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_free(ctx, hak_alloc_cs(ctx, 3 * MiB, 0, 0x1));
    uint64_t calls = s.os.counts.calls();
    CHECK(hak_alloc_cs(ctx, 3 * MiB, 0, 0x2) != nullptr);
    CHECK(s.os.counts.calls() == calls);
}

TEST_CASE("big_cache bounds what is kept")
{
    auto kept = [](size_t budget, size_t *os_kept) {
        TestSpace s;
        Options options = ctx_options();
        options.big_cache = budget;
        TestCtx ctx(s.space, &options);
        ballast(ctx, 200 * MiB);
        size_t start = stats_of(ctx).cached_bytes, os_start = s.os.committed();
        std::vector<void *> blocks;
        for (unsigned i = 0; i < 30; i++) {
            blocks.push_back(hak_alloc_cs(ctx, 2 * MiB, 0, i + 1));
            if (!blocks.back()) FAIL("no block");
        }
        for (void *p : blocks) {
            hak_free(ctx, p);
            size_t bound = budget == HAK_NONE ? 0 : budget ? budget : 16 * MiB;
            REQUIRE(stats_of(ctx).cached_bytes <= start + bound);
        }
        *os_kept = s.os.committed() - os_start;
        require_sound(ctx);
        return stats_of(ctx).cached_bytes - start;
    };
    size_t os_kept = 0;
    CHECK(kept(HAK_NONE, &os_kept) == 0);
    CHECK(os_kept <= MiB);
    CHECK(kept(5 * MiB, &os_kept) >= 2 * MiB);
    CHECK(os_kept <= 6 * MiB);
    size_t standard = kept(0, &os_kept);
    CHECK(standard >= 10 * MiB);
    CHECK(os_kept <= 17 * MiB);
    CHECK(kept(40 * MiB, &os_kept) > standard);
}

TEST_CASE("a block is kept once it is asked for again")
{
    TestSpace s;
    Options options = ctx_options();
    options.big_cache = 4 * MiB;
    TestCtx ctx(s.space, &options);
    const size_t n = 2 * MiB + 64 * KiB;
    auto calls = [&] {
        uint64_t before = s.os.counts.calls();
        void *p = hak_alloc(ctx, n);
        REQUIRE(p != nullptr);
        hak_free(ctx, p);
        return s.os.counts.calls() - before;
    };
    CHECK(calls() > 0);
    CHECK(calls() > 0);
    for (int i = 0; i < 5; i++)
        CHECK(calls() == 0);
}

TEST_CASE("a growing heap takes from the cache first, but not what is asked for again")
{
    TestSpace s;
    TestCtx ctx(s.space);
    auto fill_up = [&](size_t bytes, size_t n) {
        for (; bytes > n; bytes -= n)
            if (!hak_alloc(ctx, n)) FAIL("no block");
    };
    const size_t n = GENERATE((size_t)200, 40 * KiB, 5 * MiB);
    CAPTURE(n);
    auto use = [&] { hak_free(ctx, hak_alloc_cs(ctx, 3 * MiB, 0, 0x7)); };
    use();
    CHECK(stats_of(ctx).cached_bytes >= 3 * MiB);
    fill_up(16 * MiB, n);
    CHECK(stats_of(ctx).cached_bytes < 3 * MiB);
    for (int i = 0; i < 3; i++)
        use();
    fill_up(16 * MiB, n);
    uint64_t calls = s.os.counts.calls();
    use();
    CHECK(s.os.counts.calls() == calls);
    require_sound(ctx);
}

TEST_CASE("freed runs that are kept at hand serve before fresh pages do")
{
    TestSpace s;
    TestCtx ctx(s.space);
    void *big = hak_alloc(ctx, 2 * MiB);
    void *held = hak_alloc(ctx, 400 * KiB);
    for (unsigned i = 0; i < 64; i++) // hot: the next one freed is kept
        hak_free(ctx, hak_alloc(ctx, 300 * KiB));
    CHECK(stats_of(ctx).cached_bytes >= 300 * KiB);
    size_t kept = stats_of(ctx).committed_bytes, grew = 0;
    SECTION("a new big block")
    {
        void *p = hak_alloc(ctx, 3 * MiB);
        grew = hak_usable_size(ctx, p);
    }
    SECTION("a big block that grows")
    {
        grew = hak_usable_size(ctx, big);
        big = hak_realloc(ctx, big, 4 * MiB);
        grew = hak_usable_size(ctx, big) - grew;
    }
    SECTION("a run of another length")
    {
        void *p = hak_alloc(ctx, 700 * KiB);
        grew = hak_usable_size(ctx, p);
    }
    REQUIRE(big);
    REQUIRE(held);
    CHECK(stats_of(ctx).cached_bytes < 300 * KiB);
    CHECK(stats_of(ctx).committed_bytes < kept + grew - 290 * KiB);
}

TEST_CASE("a block that grows to many megabytes is advised to be huge pages")
{
    TestSpace s([](SpaceOptions &options) { options.huge_from = 8 * MiB; });
    TestCtx ctx(s.space);
    void *p = hak_alloc(ctx, 2 * MiB);
    p = hak_realloc(ctx, p, 3 * MiB);
    REQUIRE(p != nullptr);
    CHECK(s.os.counts.huge == 0);
    ballast(ctx, 6 * MiB);
    uint64_t before = s.os.counts.huge;
    p = hak_realloc(ctx, p, 6 * MiB);
    REQUIRE(p != nullptr);
    CHECK(s.os.counts.huge == before + 1);
    p = hak_realloc(ctx, p, 5 * MiB);
    CHECK(s.os.counts.huge == before + 1);
    hak_free(ctx, p);
}

TEST_CASE("a block of a chunk is a huge page when these are wanted, and begins where one does")
{
    for (bool wanted : {true, false}) {
        TestSpace s([&](SpaceOptions &options) { options.huge_from = wanted ? 1 * MiB : 64 * MiB; });
        TestCtx ctx(s.space);
        void *p = hak_alloc(ctx, 2 * MiB);
        REQUIRE(p != nullptr);
        CHECK(s.os.counts.huge == wanted);
        if (wanted) CHECK((uintptr_t)p % (2 * MiB) == 0);
    }
}

TEST_CASE("without a cache a freed big block is unmapped, and freeing it again is noticed")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.big_cache = HAK_NONE;
    TestCtx ctx(s.space, &options);
    size_t before = s.os.reserved();
    void *p = hak_alloc(ctx, 64 * MiB);
    REQUIRE(p != nullptr);
    CHECK(s.os.reserved() >= before);
    hak_free(ctx, p);
    CHECK(s.os.reserved() <= before + 2 * MiB);
    CHECK_FALSE(hak_owns(ctx, p));
    CHECK(hak_ctx_of(s.space, p) == nullptr);
    CHECK(hak_usable_size(ctx, p) == 0);
    hak_free(ctx, p);
    CHECK(errors.list.size() == 1);
    require_sound(ctx);
}

TEST_CASE("growing a big block uses remap; when that is refused the block is copied or left as it was")
{
    TestSpace s;
    TestCtx ctx(s.space);
    void *p = hak_alloc(ctx, 3 * MiB);
    fill(p, 3 * MiB, 6);
    void *q = hak_realloc(ctx, p, 40 * MiB);
    REQUIRE(q != nullptr);
    CHECK(s.os.counts.remap >= 1);
    CHECK(filled(q, 3 * MiB, 6));
    std::memset(static_cast<char *>(q) + 3 * MiB, 1, 37 * MiB);
    require_sound(ctx);
    for (uint64_t n = 1; n <= 6; n++) {
        uint64_t failed = s.os.failed;
        void *r = hak_alloc(ctx, 3 * MiB);
        fill(r, 3 * MiB, 7);
        s.os.fail_nth(n);
        void *t = hak_realloc(ctx, r, 50 * MiB);
        s.os.fail_nth(0);
        CAPTURE(n, failed);
        REQUIRE(filled(t ? t : r, 3 * MiB, 7));
        if (!t) CHECK(hak_usable_size(ctx, r) < 50 * MiB);
        hak_free(ctx, t ? t : r);
        hak_ctx_trim(ctx);
        require_sound(ctx);
    }
}

TEST_CASE("repeated growth of a big block makes few OS calls")
{
    TestSpace s;
    TestCtx ctx(s.space);
    size_t n = 2 * MiB;
    void *p = hak_alloc(ctx, n);
    fill(p, MiB, 8);
    uint64_t calls = s.os.counts.calls();
    for (int i = 0; i < 2000; i++) {
        n += 64;
        p = hak_realloc_sized(ctx, p, n - 64, n);
        REQUIRE(p != nullptr);
        static_cast<char *>(p)[n - 1] = 1;
    }
    CHECK(filled(p, MiB, 8));
    CHECK(s.os.counts.calls() - calls <= 100);
}

TEST_CASE("destroy and retire give back big blocks, cached ones too")
{
    TestSpace s;
    TestCtx observer(s.space);
    size_t reserved = s.os.reserved();
    hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
    void *p = hak_alloc(ctx, 3 * MiB), *q = hak_alloc(ctx, 30 * MiB);
    REQUIRE((p && q));
    hak_free(ctx, p);
    hak_ctx_destroy(ctx);
    CHECK(hak_ctx_of(s.space, q) == nullptr);
    hak_ctx_trim(observer);
    CHECK(s.os.reserved() <= reserved);
    ctx = hak_ctx_new(s.space, nullptr);
    p = hak_alloc(ctx, 3 * MiB);
    hak_free(ctx, hak_alloc(ctx, 2 * MiB));
    hak_ctx_retire(ctx);
    CHECK(hak_ctx_of(s.space, p) == ctx);
    hak_free(ctx, p);
    CHECK(hak_ctx_of(s.space, p) == nullptr);
    hak_ctx_trim(observer);
    CHECK(s.os.reserved() <= reserved);
}
