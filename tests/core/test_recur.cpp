// Big blocks that a program frees and allocates again and again: kept beyond big_cache, without calls of the
// OS once that is known; given back by ticks, by trims, to a limit and to a heap that grows; and nothing is
// kept of what does not come again.
#include "shared.h"

#include <thread>

using namespace test;

namespace
{

// The budget of the Python binding.
Options small_budget(size_t budget = 2 * MiB + 4096)
{
    Options options = ctx_options();
    options.big_cache = budget;
    return options;
}

constexpr uint64_t SECOND = 1000000000;

// Calls of one round, once that many went before.
uint64_t calls_after(FakeOs &os, int rounds, const std::function<void()> &round)
{
    for (int i = 0; i < rounds; i++)
        round();
    uint64_t before = os.counts.calls();
    for (int i = 0; i < 20; i++)
        round();
    return os.counts.calls() - before;
}

void use(hak_ctx *ctx, size_t n)
{
    void *p = hak_alloc(ctx, n);
    REQUIRE(p != nullptr);
    std::memset(p, 1, 4096);
    hak_free(ctx, p);
}

} // namespace

TEST_CASE("sizes that come again stay warm, above the budget too")
{
    const size_t budget = GENERATE(MiB, 2 * MiB + 4096, (size_t)0);
    CAPTURE(budget);
    TestSpace s;
    Options options = small_budget(budget);
    TestCtx ctx(s.space, &options);
    SECTION("one size")
    {
        const size_t n = GENERATE(as<size_t>{}, 2400000, 16000000, 20 * MiB, 31 * MiB);
        CAPTURE(n);
        CHECK(calls_after(s.os, 2, [&] { use(ctx, n); }) == 0);
    }
    SECTION("sizes in turn")
    {
        auto round = [&] {
            for (size_t n : {(size_t)2400000, (size_t)16000000, 5 * MiB})
                use(ctx, n);
        };
        CHECK(calls_after(s.os, 5, round) == 0);
    }
    SECTION("sizes that differ a little")
    {
        size_t i = 0;
        auto round = [&] { use(ctx, 5000000 + i++ * 70000 % 500000); };
        CHECK(calls_after(s.os, 60, round) == 0);
    }
    SECTION("several at once")
    {
        auto round = [&] {
            void *p[6];
            for (void *&q : p)
                REQUIRE((q = hak_alloc(ctx, 2400000)) != nullptr);
            for (void *q : p)
                hak_free(ctx, q);
        };
        CHECK(calls_after(s.os, 8, round) == 0);
    }
    SECTION("an array and what is computed of it")
    {
        void *array = hak_alloc(ctx, 2400000), *result = nullptr;
        auto round = [&] {
            void *twice = hak_alloc(ctx, 2400000), *more = hak_alloc(ctx, 2400000);
            REQUIRE((twice && more));
            hak_free(ctx, twice);
            hak_free(ctx, result);
            result = more;
        };
        CHECK(calls_after(s.os, 5, round) == 0);
        hak_free(ctx, array);
        hak_free(ctx, result);
    }
    SECTION("zeros")
    {
        bool zeros = true;
        auto round = [&] {
            char *p = static_cast<char *>(hak_calloc(ctx, 1, 3000000));
            REQUIRE(p != nullptr);
            for (size_t i = 0; i < 3000000; i += 1000)
                zeros = zeros && p[i] == 0;
            std::memset(p, 7, 3000000);
            hak_free(ctx, p);
        };
        CHECK(calls_after(s.os, 3, round) == 0);
        CHECK(zeros);
    }
    SECTION("lists that grow")
    {
        auto round = [&] {
            size_t n = 1000;
            void *p = hak_alloc(ctx, n);
            for (; n < 16000000; n += n / 8)
                REQUIRE((p = hak_realloc(ctx, p, n)) != nullptr);
            hak_free(ctx, p);
        };
        CHECK(calls_after(s.os, 8, round) == 0);
    }
    require_sound(ctx);
}

TEST_CASE("without a budget recurring blocks are released each time")
{
    TestSpace s;
    Options options = small_budget(HAK_NONE);
    TestCtx ctx(s.space, &options);
    use(ctx, 16000000);
    const size_t reserved = s.os.reserved();
    for (int i = 0; i < 20; i++) {
        uint64_t releases = s.os.counts.release;
        use(ctx, 16000000);
        REQUIRE(s.os.counts.release == releases + 1);
        REQUIRE(s.os.reserved() == reserved);
    }
    CHECK(stats_of(ctx).cached_bytes < MiB);
}

TEST_CASE("what recurs is kept up to 64 MiB, or a quarter of what is live")
{
    TestSpace s;
    Options options = small_budget();
    TestCtx ctx(s.space, &options);
    auto kept = [&](size_t n) {
        for (int i = 0; i < 5; i++)
            use(ctx, n);
        return stats_of(ctx).cached_bytes;
    };
    CHECK(kept(60 * MiB) >= 60 * MiB);
    CHECK(kept(90 * MiB) <= 64 * MiB + MiB);
    void *live = hak_alloc(ctx, 400 * MiB);
    REQUIRE(live != nullptr);
    CHECK(kept(90 * MiB) >= 90 * MiB);
    CHECK(kept(90 * MiB) <= 100 * MiB);
    hak_free(ctx, live);
}

TEST_CASE("sizes that come once leave no more than the budget")
{
    // Of the same calls, bytes at most committed.
    auto peak = [](size_t budget, bool tail) {
        TestSpace s;
        Options options = small_budget(budget);
        TestCtx ctx(s.space, &options);
        size_t most = 0;
        void *before = nullptr;
        for (size_t n = 1200000; n < 40 * MiB; n += n / 4) {
            void *p = hak_alloc(ctx, n);
            REQUIRE(p != nullptr);
            most = std::max(most, s.os.committed());
            hak_free(ctx, before);
            before = p;
        }
        hak_free(ctx, before);
        if (budget != HAK_NONE) REQUIRE(stats_of(ctx).cached_bytes <= budget + MiB);
        for (int i = 0; tail && i < 60; i++)
            REQUIRE(hak_alloc(ctx, MiB) != nullptr);
        return std::max(most, s.os.committed());
    };
    const bool tail = GENERATE(false, true);
    CAPTURE(tail);
    CHECK(peak(2 * MiB, tail) <= peak(HAK_NONE, tail) + 2 * MiB);
}

TEST_CASE("ticks and trims give back what is kept, and it is kept no more until it recurs anew")
{
    TestSpace s;
    Options options = small_budget();
    TestCtx ctx(s.space, &options);
    for (int i = 0; i < 5; i++)
        use(ctx, 16000000);
    REQUIRE(stats_of(ctx).cached_bytes >= 16000000);
    SECTION("ticks")
    {
        hak_ctx_tick(ctx, SECOND);
        CHECK(stats_of(ctx).cached_bytes >= 16000000);
        hak_ctx_tick(ctx, 2 * SECOND + SECOND / 2);
    }
    SECTION("a trim")
    {
        CHECK(hak_ctx_trim(ctx) >= 16000000);
    }
    CHECK(stats_of(ctx).cached_bytes < MiB);
    use(ctx, 16000000);
    CHECK(stats_of(ctx).cached_bytes < 3 * MiB);
    CHECK(calls_after(s.os, 2, [&] { use(ctx, 16000000); }) == 0);
}

TEST_CASE("ticks leave what is in use again and again")
{
    TestSpace s;
    Options options = small_budget();
    TestCtx ctx(s.space, &options);
    uint64_t now = SECOND;
    auto round = [&] {
        use(ctx, 16000000);
        hak_ctx_tick(ctx, now += SECOND / 4);
    };
    for (int i = 0; i < 5; i++)
        round();
    uint64_t requests = s.os.counts.requests();
    for (int i = 0; i < 50; i++)
        round();
    CHECK(s.os.counts.requests() == requests);
}

TEST_CASE("a limit takes what is kept")
{
    TestSpace s;
    Options options = small_budget();
    TestCtx ctx(s.space, &options);
    for (int i = 0; i < 5; i++)
        use(ctx, 16 * MiB);
    REQUIRE(hak_limit(ctx, 0, 20 * MiB, nullptr, nullptr) == 0);
    void *p = hak_alloc(ctx, 18 * MiB);
    CHECK(p != nullptr);
    CHECK(committed_of(ctx) <= 20 * MiB);
    hak_free(ctx, p);
}

TEST_CASE("a heap that grows beyond its peak takes what is kept, and recurrence costs little meanwhile")
{
    TestSpace s;
    Options options = small_budget();
    TestCtx ctx(s.space, &options);
    const size_t n = GENERATE(as<size_t>{}, 200, 40 * KiB, 5 * MiB), big = 16 * MiB;
    CAPTURE(n);
    for (int i = 0; i < 5; i++)
        use(ctx, big);
    REQUIRE(stats_of(ctx).cached_bytes >= big);
    SECTION("it is not wanted again")
    {
        size_t bytes = 0;
        for (; bytes < 40 * MiB; bytes += n)
            REQUIRE(hak_alloc(ctx, n) != nullptr);
        CHECK(stats_of(ctx).cached_bytes < 4 * MiB);
    }
    SECTION("it is, all the time")
    {
        uint64_t maps = s.os.counts.reserve + s.os.counts.remap;
        size_t mapped = 0;
        for (size_t bytes = 0, since = 0; bytes < 64 * MiB; bytes += n, since += n) {
            REQUIRE(hak_alloc(ctx, n) != nullptr);
            mapped += n > MiB;
            if (since >= MiB) {
                use(ctx, big);
                since = 0;
            }
        }
        // The heap grew by four such blocks.
        CHECK(s.os.counts.reserve + s.os.counts.remap - maps <= mapped + 8);
    }
    require_sound(ctx);
}

TEST_CASE("at a new peak a kept block of another size lends its pages")
{
    TestSpace s;
    Options options = small_budget();
    TestCtx ctx(s.space, &options);
    for (int i = 0; i < 4; i++)
        use(ctx, 10 * MiB);
    const size_t committed = s.os.committed();
    OsCounts before = s.os.counts;
    SECTION("a larger one")
    {
        void *p = hak_alloc(ctx, 14 * MiB);
        CHECK(s.os.counts.remap == before.remap + 1);
        CHECK(s.os.committed() == committed + 4 * MiB);
        hak_free(ctx, p);
    }
    SECTION("a smaller one")
    {
        void *p = hak_alloc(ctx, 7 * MiB);
        CHECK(s.os.counts.calls() == before.calls());
        CHECK(hak_usable_size(ctx, p) == 7 * MiB);
        hak_free(ctx, p);
    }
    SECTION("a larger one, refused")
    {
        s.os.fail_nth(1);
        void *p = hak_alloc(ctx, 14 * MiB);
        CHECK(p != nullptr);
        CHECK(s.os.counts.reserve == before.reserve + 1);
        CHECK(s.os.committed() == committed + 4 * MiB);
        hak_free(ctx, p);
    }
    require_sound(ctx);
}

TEST_CASE("blocks of several threads recur without the OS")
{
    Shared ctx([](Options &options) { options.big_cache = 2 * MiB + 4096; });
    FakeOs &os = ctx.space.os;
    auto work = [&](int rounds) {
        for (int i = 0; i < rounds; i++) {
            void *p = hak_alloc(ctx, 2400000), *q = hak_alloc(ctx, 5 * MiB);
            if (!p || !q) std::abort();
            hak_free(ctx, p);
            hak_free(ctx, q);
        }
    };
    std::atomic<int> warm{0};
    std::atomic<bool> counted{false};
    std::atomic<uint64_t> before{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            work(5);
            if (++warm == 4) {
                before = os.counts.requests() + os.counts.release;
                counted = true;
            }
            while (!counted)
                std::this_thread::yield();
            work(100);
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(os.counts.requests() + os.counts.release == before);
}
