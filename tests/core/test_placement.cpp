// HAK_DEBUG_RANDOM: which place a block gets is drawn, by a seed.
#include "shared.h"

#include <set>

using namespace test;

namespace
{

// Where blocks of n bytes begin, relative to the first one, in the order in which they are handed out.
std::vector<ptrdiff_t> places(hak_ctx *ctx, size_t n, size_t count)
{
    std::vector<ptrdiff_t> at;
    char *first = nullptr;
    for (size_t i = 0; i < count; i++) {
        char *p = static_cast<char *>(hak_alloc(ctx, n));
        REQUIRE(p);
        if (!first) first = p;
        at.push_back(p - first);
    }
    return at;
}

std::vector<ptrdiff_t> places_by(uint64_t seed, bool shared, size_t n, unsigned debug = HAK_DEBUG_RANDOM)
{
    Debugged d(debug, [=](Options &o) {
        o.seed = seed;
        o.shared = shared;
    });
    return places(d, n, 200);
}

// In how many steps of 100 the next block is the neighbour of the last one, on either side.
size_t neighbours(const std::vector<ptrdiff_t> &at, size_t size)
{
    size_t count = 0;
    for (size_t i = 1; i < at.size(); i++)
        count += (size_t)std::abs(at[i] - at[i - 1]) == size;
    return count * 100 / (at.size() - 1);
}

} // namespace

TEST_CASE("places are drawn: the same with one seed, others with another")
{
    bool shared = GENERATE(false, true);
    for (size_t n : {(size_t)16, (size_t)48, (size_t)512, KiB}) {
        INFO(n << " " << shared);
        std::vector<ptrdiff_t> one = places_by(1, shared, n);
        CHECK(one == places_by(1, shared, n));
        CHECK(one != places_by(2, shared, n));
        CHECK(neighbours(places_by(1, shared, n, HAK_DEBUG_CHECK), n) > 90);
        CHECK(neighbours(one, n) < 30);
        CHECK(std::set<ptrdiff_t>(one.begin(), one.end()).size() == one.size());
        CHECK(places_by(1, shared, n, HAK_DEBUG_CHECK) == places_by(2, shared, n, HAK_DEBUG_CHECK));
    }
}

TEST_CASE("heaps of threads, and contexts without a seed, have draws of their own")
{
    Debugged d(HAK_DEBUG_RANDOM, [](Options &o) {
        o.seed = 7;
        o.shared = true;
    });
    std::vector<ptrdiff_t> mine = places(d, 48, 200), other;
    Crew crew;
    crew.add([&] { other = places(d, 48, 200); });
    REQUIRE(crew.join() == "");
    CHECK(mine != other);

    TestSpace space;
    Options options = ctx_options();
    options.debug = HAK_DEBUG_RANDOM;
    TestCtx a(space.space, &options), b(space.space, &options);
    CHECK(places(a, 48, 200) != places(b, 48, 200));
}

TEST_CASE("a freed block is seldom the next one")
{
    auto again = [](unsigned debug) {
        Debugged d(debug, [](Options &o) { o.seed = 3; });
        places(d, 48, 100);
        size_t count = 0;
        for (int i = 0; i < 100; i++) {
            void *p = hak_alloc(d, 48);
            hak_free(d, p);
            void *q = hak_alloc(d, 48);
            count += p == q;
            hak_free(d, q);
        }
        return count;
    };
    CHECK(again(HAK_DEBUG_CHECK) == 100);
    CHECK(again(HAK_DEBUG_RANDOM) < 10); // one of 241 free places
}

TEST_CASE("drawn places live with any schedule and any option")
{
    unsigned more =
        GENERATE(0u, (unsigned)HAK_DEBUG_POISON, (unsigned)HAK_DEBUG_GUARD,
                 (unsigned)(HAK_DEBUG_CANARY | HAK_DEBUG_QUARANTINE | HAK_DEBUG_TRACE | HAK_DEBUG_GUARD));
    bool shared = GENERATE(false, true);
    INFO(more << " " << shared);
    Debugged d(HAK_DEBUG_RANDOM | more, [=](Options &o) {
        o.shared = shared;
        o.guard_every = 7;
        o.seed = 11;
    });
    Random random(more + shared);
    std::vector<Block> live;
    for (unsigned i = 0; i < 3000; i++) {
        size_t k = live.empty() ? 0 : random.below(live.size());
        if (live.empty() || random.below(10) < (i < 2000 ? 6u : 3u)) {
            live.push_back(make(d, some_size(random), i));
            REQUIRE(live.back().p);
        } else {
            check(live[k]);
            hak_free_sized(d, live[k].p, live[k].n);
            live[k] = live.back();
            live.pop_back();
        }
        if (i % 1000 == 999) hak_ctx_trim(d);
        if (i % 500 == 0) REQUIRE(hak_ctx_check(d, nullptr, nullptr));
    }
    for (const Block &b : live)
        hak_free(d, b.p);
    CHECK(d.errors.take() == "");
    require_empty(d);
}

TEST_CASE("a write to a freed block, or to one that was never handed out, is found where places are drawn")
{
    Debugged d(HAK_DEBUG_RANDOM | HAK_DEBUG_POISON);
    char *p = static_cast<char *>(hak_alloc(d, 48));
    char *beside = p + (addr(p) % PAGE < PAGE / 2 ? 48 : -48);
    beside[5] = 1;
    std::vector<void *> all;
    while (d.errors.list.empty() && all.size() < 2000)
        all.push_back(hak_alloc(d, 48));
    REQUIRE(d.errors.list.size() == 1);
    CHECK(d.errors.list[0].p == beside);
    CHECK(d.errors.take() == "HAK_E_USE_AFTER_FREE");
}

TEST_CASE("any request of pages may fail where places are drawn")
{
    for (uint64_t nth = 1, made = 0; made == 0; nth++) {
        INFO(nth);
        TestSpace s;
        Options options = ctx_options();
        options.debug = HAK_DEBUG_RANDOM;
        options.shared = nth % 2;
        s.os.fail_nth(nth);
        hak_ctx *ctx = hak_ctx_new(s.space, &options);
        for (size_t n = 0; ctx && n < 32 * KiB; n += 997)
            hak_free(ctx, hak_alloc(ctx, n));
        if (s.os.failed == 0) made++;
        s.os.fail_nth(0);
        if (ctx) require_empty(ctx);
        hak_ctx_destroy(ctx);
    }
}
