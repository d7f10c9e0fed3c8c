// Small heaps: how many pages they touch for a byte that is live, and how much of a limit can be live.
#include "heap.h"

#include <sys/mman.h>

using namespace test;

namespace
{

struct Sizes {
    const char *name;
    size_t (*of)(Random &);
};

const Sizes UNIFORM{"uniform 16..515", [](Random &r) { return 16 + r.below(500); }};
const Sizes MIXED_SIZES{"16..215, one in 100 to 20,000",
                        [](Random &r) { return r.below(100) ? 16 + r.below(200) : 216 + r.below(19785); }};
const Sizes TINY{"16..56", [](Random &r) { return 16 + 8 * r.below(6); }};

struct Live {
    std::vector<std::pair<void *, size_t>> blocks;
    size_t bytes = 0;

    bool add(hak_ctx *ctx, size_t n, hak_label label)
    {
        void *p = hak_alloc_cs(ctx, n, label, 0);
        if (!p) return false;
        std::memset(p, 1, n);
        blocks.emplace_back(p, n);
        bytes += n;
        return true;
    }
    void drop(hak_ctx *ctx, size_t i)
    {
        hak_free_sized(ctx, blocks[i].first, blocks[i].second);
        bytes -= blocks[i].second;
        blocks[i] = blocks.back();
        blocks.pop_back();
    }
};

// Pages of the space that were touched: all reservations of a table that remembers them.
struct Touched {
    hak_os os, real;
    std::vector<std::pair<char *, size_t>> mappings;

    Touched()
    {
        hak_os_default(&real);
        os = real;
        os.user = this;
        os.reserve = [](void *user, size_t n, size_t align, uintptr_t below) {
            Touched *t = static_cast<Touched *>(user);
            void *p = t->real.reserve(t->real.user, n, align, below);
            if (p) t->mappings.emplace_back(static_cast<char *>(p), n);
            return p;
        };
        os.populate = nullptr;
        os.huge = nullptr;
    }
    size_t bytes() const
    {
        size_t pages = 0;
        for (const auto &m : mappings) {
            std::vector<unsigned char> in(m.second / PAGE);
            REQUIRE(mincore(m.first, m.second, in.data()) == 0);
            for (unsigned char c : in)
                pages += c & 1;
        }
        return pages * PAGE;
    }
};

[[maybe_unused]] double density(const Sizes &sizes, size_t live_bytes, bool labelled)
{
    Touched touched;
    hak_space_options space_options = HAK_SPACE_OPTIONS_INIT;
    space_options.os = &touched.os;
    space_options.reserve = 64 * MiB;
    hak_space *space = hak_space_new(&space_options);
    REQUIRE(space != nullptr);
    const size_t before = touched.bytes(); // of the space itself
    static const char *const names[] = {"a"};
    Options options = ctx_options();
    if (labelled) options.labels = names;
    options.label_count = labelled;
    hak_ctx *ctx = hak_ctx_new(space, &options);
    REQUIRE(ctx != nullptr);
    const hak_label label = labelled;
    Live live;
    Random random(7);
    while (live.bytes < live_bytes)
        REQUIRE(live.add(ctx, sizes.of(random), label));
    double ratio = (double)(touched.bytes() - before) / (double)live.bytes;
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
    return ratio;
}

// Live bytes over the limit at the first NULL. churn: of three steps one frees a random block.
double usable(const Sizes &sizes, size_t limit, bool churn, bool labelled, uint64_t seed = 11)
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_label label = labelled ? hak_label_define(ctx, "a") : (hak_label)0;
    REQUIRE(hak_limit(ctx, 0, limit, nullptr, nullptr) == 0);
    Live live;
    Random random(seed);
    for (;;) {
        if (churn && live.blocks.size() > 50 && random.below(3) == 0)
            live.drop(ctx, random.below(live.blocks.size()));
        else if (!live.add(ctx, sizes.of(random), label)) break;
    }
    CHECK(committed_of(ctx) <= limit);
    require_sound(ctx);
    return (double)live.bytes / (double)limit;
}

} // namespace

TEST_CASE("small heaps: pages touched for a live byte")
{
#if defined(TEST_SLOW_BUILD)
    WARN("a sanitizer touches pages of its own: not measured");
#else
    const bool labelled = GENERATE(false, true);
    const double more = labelled ? 0.07 : 0; // at 64 KiB a page is 0.06
    CAPTURE(labelled);
    for (size_t kib : {64, 128, 256, 512, 1024, 2048, 4096}) {
        CAPTURE(kib);
        CHECK(density(UNIFORM, kib * KiB, labelled) < 1.16 + more);
        CHECK(density(MIXED_SIZES, kib * KiB, labelled) < (kib < 128 ? 1.35 : 1.20) + more);
        CHECK(density(TINY, kib * KiB, labelled) < 1.20 + more);
    }
    CHECK(density(UNIFORM, 32 * KiB, labelled) < (labelled ? 1.42 : 1.30));
#endif
}

TEST_CASE("small heaps: what can be live within a limit")
{
    const bool churn = GENERATE(false, true), labelled = GENERATE(false, true);
    const double least = (churn ? 0.80 : 0.90) - (labelled ? 0.08 : 0); // a unit for its name, too
    CAPTURE(churn, labelled);
    for (size_t kib : {256, 512, 1024, 2048, 4096}) {
        CAPTURE(kib);
        CHECK(usable(UNIFORM, kib * KiB, churn, labelled) > least);
        CHECK(usable(TINY, kib * KiB, churn, labelled) > least);
        /* The first that is refused is mostly one of the largest, 20,000 bytes. */
        double sum = 0;
        for (uint64_t seed = 1; seed <= 16; seed++) {
            const double share = usable(MIXED_SIZES, kib * KiB, churn, labelled, seed);
            CHECK(share > (kib == 256 ? 0.55 : 0.70));
            sum += share;
        }
        CHECK(sum / 16 > least - 0.02);
    }
}

TEST_CASE("small heaps: packed blocks above 1 KiB have the size that was asked for")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (size_t n = 1025; n <= 16 * KiB; n += 497) {
        blocks.push_back(hak_alloc(ctx, n));
        REQUIRE(blocks.back() != nullptr);
        CHECK((uintptr_t)blocks.back() % 16 == 0);
        CHECK(hak_usable_size(ctx, blocks.back()) < n + 24);
        CHECK(hak_usable_size(ctx, blocks.back()) >= hak_good_size(ctx, n));
        std::memset(blocks.back(), 1, n);
    }
    require_sound(ctx);
    for (void *p : blocks)
        hak_free(ctx, p);
    require_sound(ctx);
    CHECK(stats_of(ctx).live_bytes == 0);
}

TEST_CASE(
    "small heaps: a freed packed block above 1 KiB serves another one of its size, and its end a smaller one")
{
    TestSpace s;
    TestCtx ctx(s.space);
    void *p = hak_alloc(ctx, 5000), *behind = hak_alloc(ctx, 6000);
    hak_free(ctx, p);
    CHECK(hak_alloc(ctx, 5000) == p);
    hak_free(ctx, p);
    char *end = static_cast<char *>(hak_alloc(ctx, 3000));
    CHECK(end == static_cast<char *>(p) + 5008 - 3008);
    CHECK(hak_alloc(ctx, 2000) == p);
    hak_free(ctx, behind);
    require_sound(ctx);
}

TEST_CASE("small heaps: packed blocks above 1 KiB lie apart from small ones, and leave their room as one")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const size_t before = committed_of(ctx);
    std::vector<void *> large;
    for (int i = 0; i < 8; i++) {
        REQUIRE(hak_alloc(ctx, 64) != nullptr);
        large.push_back(hak_alloc(ctx, 1500));
    }
    for (void *p : large)
        hak_free(ctx, p);
    REQUIRE(hak_limit(ctx, 0, before, nullptr, nullptr) == 0);
    CHECK(hak_alloc(ctx, 8 * 1500) != nullptr);
    require_sound(ctx);
}

TEST_CASE("small heaps: who writes to a freed block above 1 KiB is told, and the heap goes on")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(s.space, &options);
    void *p = hak_alloc(ctx, 5000), *q = hak_alloc(ctx, 5050);
    hak_free(ctx, p);
    hak_free(ctx, q);
    std::memset(q, 0xA5, 8);
    void *r = hak_alloc(ctx, 5020);
    REQUIRE(r != nullptr);
    CHECK(errors.take() == "HAK_E_USE_AFTER_FREE");
    require_sound(ctx);
}

TEST_CASE("small heaps: a block of any size that a limit has room for takes the units that it needs")
{
    for (size_t n = 8000; n <= 32 * KiB; n += n % 1000 == 0 ? 184 : 16) {
        TestSpace s;
        TestCtx ctx(s.space);
        REQUIRE(hak_alloc(ctx, 8000) != nullptr);
        const size_t before = committed_of(ctx);
        REQUIRE(hak_limit(ctx, 0, before + 52 * KiB, nullptr, nullptr) == 0);
        CAPTURE(n);
        REQUIRE(hak_alloc(ctx, n) != nullptr);
        CHECK(committed_of(ctx) - before < n + 20 * KiB);
    }
}

TEST_CASE("small heaps: pages that are less than two units hold a block for which one unit is too few")
{
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_alloc(ctx, 16) != nullptr);
    // A quarter of the limit is left, and less than two units of it.
    REQUIRE(hak_limit(ctx, 0, 200 * KiB, nullptr, nullptr) == 0);
    while (200 * KiB - committed_of(ctx) > 30 * KiB)
        REQUIRE(hak_alloc(ctx, 600) != nullptr);
    const size_t before = committed_of(ctx);
    REQUIRE(hak_limit(ctx, 0, before + 24 * KiB, nullptr, nullptr) == 0);
    unsigned char *p = static_cast<unsigned char *>(hak_alloc(ctx, 18 * KiB));
    REQUIRE(p != nullptr);
    std::memset(p, 1, 18 * KiB);
    CHECK(committed_of(ctx) <= 200 * KiB);
    CHECK(committed_of(ctx) - before < 24 * KiB);
    require_sound(ctx);
    hak_free(ctx, p);
    hak_ctx_trim(ctx);
    CHECK(committed_of(ctx) <= before);
    require_sound(ctx);
    // The pages that were not charged are no block.
    REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    REQUIRE((p = static_cast<unsigned char *>(hak_alloc(ctx, 18 * KiB))) != nullptr);
    std::memset(p, 1, 18 * KiB);
    require_sound(ctx);
}

TEST_CASE("small heaps: one whose few blocks come and go all the time gets magazines")
{
    TestSpace s;
    TestCtx ctx(s.space);
    size_t young = 0;
    for (int round = 0; round < 1000; round++) {
        void *blocks[100];
        for (size_t i = 0; i < 100; i++)
            REQUIRE((blocks[i] = hak_alloc(ctx, 16 + i)) != nullptr);
        for (size_t i = 100; i--;) {
            hak_free(ctx, blocks[i]);
            if (round == 0 && i == 40) young = committed_of(ctx);
        }
    }
    CHECK(young < 20 * KiB);
    // Its bins take a unit, and slabs of the classes further ones.
    CHECK(committed_of(ctx) > young + 32 * KiB);
}

TEST_CASE("small heaps: few blocks of many sizes that come and go keep their classes out of slabs")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Random r(3);
    void *blocks[20] = {};
    for (int i = 0; i < 100000; i++) {
        void *&p = blocks[r.below(20)];
        hak_free(ctx, p);
        REQUIRE((p = hak_alloc(ctx, 16 + r.below(500))) != nullptr);
    }
    CHECK(committed_of(ctx) < 256 * KiB);
    require_sound(ctx);
}

TEST_CASE("small heaps: a free finds the size of a packed block wherever the block begins")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(s.space, &options);
    // From so many frees on magazines keep what is freed; before, lists.
    const size_t frees = GENERATE(0, 100);
    for (size_t i = 0; i < frees; i++)
        hak_free(ctx, hak_alloc(ctx, 40));
    for (size_t n = 16; n <= 1024; n += 8) {
        for (size_t place = 0; place < 9; place++) {
            char *p = static_cast<char *>(hak_alloc(ctx, n));
            REQUIRE(hak_alloc(ctx, 24) != nullptr); // what comes next begins elsewhere, and is no neighbour
            REQUIRE(p != nullptr);
            const size_t size = hak_usable_size(ctx, p);
            CAPTURE(n, place, size, (uintptr_t)p % 64);
            hak_free(ctx, p + 4);
            CHECK(errors.take() == "HAK_E_POINTER");
            hak_free(ctx, p + 8);
            CHECK(errors.take() == "HAK_E_POINTER");
            CHECK(hak_realloc(ctx, p, n) == p);
            hak_free(ctx, p);
            REQUIRE(hak_alloc(ctx, n) == p);
            REQUIRE(hak_usable_size(ctx, p) == size);
        }
    }
    require_sound(ctx);
}

TEST_CASE("small heaps: a heap of a few chunks never asks for the time")
{
    static size_t asked;
    asked = 0;
    hak_os os;
    hak_os_default(&os);
    os.clock = [](void *) { return (uint64_t)++asked * 1000000; };
    hak_space_options space_options = HAK_SPACE_OPTIONS_INIT;
    space_options.os = &os;
    hak_space *space = hak_space_new(&space_options);
    REQUIRE(space != nullptr);
    hak_ctx *ctx = hak_ctx_new(space, nullptr);
    REQUIRE(ctx != nullptr);
    for (size_t bytes = 0; bytes < 7 * MiB; bytes += 1000)
        REQUIRE(hak_alloc(ctx, 1000) != nullptr);
    CHECK(asked == 0);
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
}

TEST_CASE("small heaps: a context may begin in any unit of what was a run")
{
    TestSpace s;
    {
        TestCtx before(s.space);
        for (int i = 0; i < 8; i++)
            fill(hak_alloc(before, 1000 * KiB), 1000 * KiB, 0xff);
    }
    std::vector<hak_ctx *> all;
    for (int i = 0; i < 400; i++) {
        hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
        REQUIRE(ctx != nullptr);
        void *p = hak_alloc(ctx, 100);
        REQUIRE((p = hak_realloc(ctx, p, 98)) != nullptr);
        hak_free(ctx, p);
        require_sound(ctx);
        CHECK(stats_of(ctx).live_blocks == 0);
        all.push_back(ctx);
    }
    for (hak_ctx *ctx : all)
        hak_ctx_destroy(ctx);
}

TEST_CASE("small heaps: packed units of which much is free get no further ones")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Random r(1);
    // Classes that outgrow packed units and leave few blocks there.
    std::vector<void *> left;
    for (size_t n = 16; n <= 104; n += 8)
        for (size_t i = 0; i < 60000 / n; i++)
            left.push_back(hak_alloc(ctx, n));
    for (size_t i = 0; i < left.size(); i++)
        if (i % 64) hak_free(ctx, left[i]);
    // Buffers that grow and go, texts that stay for a while, and small blocks that stay.
    void *texts[6] = {};
    for (size_t round = 0; round < 150; round++) {
        void *buffer = nullptr, **text = &texts[round % 6];
        hak_free(ctx, *text);
        for (size_t n = 1024; n <= 32 * KiB; n *= 2)
            REQUIRE((buffer = hak_realloc(ctx, buffer, n)) != nullptr);
        REQUIRE((*text = hak_alloc(ctx, 20000 + r.below(10000))) != nullptr);
        hak_free(ctx, buffer);
        for (size_t i = 0; i < 16; i++)
            REQUIRE(hak_alloc(ctx, 16 + 8 * r.below(60)) != nullptr);
    }
    const hak_stats now = stats_of(ctx);
    CHECK(now.cached_bytes < now.live_bytes * 9 / 10);
    require_sound(ctx);
}

TEST_CASE("small heaps: ticks give back packed units without blocks")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (size_t n = 16; n <= 512; n += 16)
        for (size_t i = 0; i < 10 * KiB / n; i++)
            blocks.push_back(hak_alloc(ctx, n));
    const size_t full = committed_of(ctx), kept = 20;
    while (blocks.size() > kept) {
        hak_free(ctx, blocks.back());
        blocks.pop_back();
    }
    CHECK(committed_of(ctx) > full - 64 * KiB);
    const uint64_t second = 1000000000;
    hak_ctx_tick(ctx, 1 * second);
    hak_ctx_tick(ctx, 3 * second);
    CHECK(committed_of(ctx) < full / 2);
    require_sound(ctx);
}

TEST_CASE("small heaps: ticks give back packed units that the last few blocks held")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (size_t n = 352; n <= 1024; n += 32) // too few of each for magazines
        for (size_t i = 0; i < 20 * KiB / n; i++)
            blocks.push_back(hak_alloc(ctx, n));
    const size_t full = committed_of(ctx), second = 1000000000, every = 16;
    std::vector<void *> few;
    for (size_t i = 0; i < blocks.size(); i++)
        if (i % every) hak_free(ctx, blocks[i]);
        else few.push_back(blocks[i]);
    hak_ctx_tick(ctx, 1 * second);
    hak_ctx_tick(ctx, 3 * second);
    CHECK(committed_of(ctx) > full / 2); // nearly each unit has one of them
    for (void *p : few)
        hak_free(ctx, p);
    hak_ctx_tick(ctx, 5 * second);
    CHECK(committed_of(ctx) < 4 * 16 * KiB);
    require_sound(ctx);
}
