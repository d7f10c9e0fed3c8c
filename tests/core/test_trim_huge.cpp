// Chunks that may be huge pages: which are, and what of them goes back to the system, by the real functions.
#include "heap.h"
#include "system.h"

#include <algorithm>
#include <vector>

using namespace test;

namespace
{

// A space by the real functions; how often memory went back, and how many bytes at most in one call.
struct Watched {
    hak_os real;
    hak_space *space = nullptr;
    size_t most = 0;
    unsigned calls = 0;

    explicit Watched(size_t huge_from, size_t retained_bytes = 0)
    {
        hak_os_default(&real);
        hak_os os = real;
        os.user = this;
        os.decommit = [](void *user, void *p, size_t n) {
            auto *w = static_cast<Watched *>(user);
            w->most = std::max(w->most, n);
            w->calls++;
            w->real.decommit(w->real.user, p, n);
        };
        SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
        options.os = &os;
        options.huge_from = huge_from;
        options.retained_bytes = retained_bytes;
        if (retained_bytes) options.retained_percent = HAK_NONE;
        space = hak_space_new(&options);
        REQUIRE(space != nullptr);
    }
    ~Watched()
    {
        hak_space_delete(space);
    }
    hak_ctx *context()
    {
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        REQUIRE(ctx != nullptr);
        return ctx;
    }
};

} // namespace

TEST_CASE("where a chunk may be a huge page, what of it nobody used goes back with the rest")
{
    auto most = [](size_t huge_from) {
        Watched watched(huge_from);
        hak_ctx *ctx = watched.context();
        void *kept = hak_alloc(ctx, 100);
        std::vector<void *> blocks;
        for (size_t i = 0; i < 3 * MiB / 64; i++)
            blocks.push_back(hak_alloc(ctx, 64));
        for (void *p : blocks)
            hak_free(ctx, p);
        size_t returned = hak_ctx_trim(ctx);
        CHECK(returned >= 2 * MiB);
        CHECK(returned <= 3 * MiB + 512 * KiB);
        CHECK(hak_usable_size(ctx, kept) >= 100);
        return watched.most;
    };
    if (system_is("linux")) CHECK(most(1) == 2 * MiB); // all of the second one, of which a half was used
    else CHECK(most(1) < 2 * MiB);
    CHECK(most(HAK_NONE) < 2 * MiB);
}

TEST_CASE("the end of a large context takes few calls; a chunk that may be a huge page goes as a whole")
{
    auto left = [](size_t huge_from) {
        Watched watched(huge_from, 3 * MiB);
        hak_ctx *observer = watched.context(), *ctx = watched.context();
        for (size_t total = 0; total < 128 * MiB; total += 20000)
            if (!hak_alloc(ctx, 20000)) FAIL("no block");
        size_t batches = (stats_of(ctx).committed_bytes + 16 * MiB - 1) / (16 * MiB);
        unsigned before = watched.calls;
        hak_ctx_destroy(ctx);
        CHECK(watched.calls - before <= batches + 4);
        return stats_of(observer).retained_bytes;
    };
    CHECK(left(HAK_NONE) > 2 * MiB + 512 * KiB);
    if (system_is("linux")) CHECK(left(1) < 2 * MiB); // of two chunks, the rest of the first
    else CHECK(left(1) == left(HAK_NONE));
}

TEST_CASE("huge_from: new chunks are advised when so much is in use")
{
    auto huge_calls = [](size_t from) {
        TestSpace s([&](SpaceOptions &options) { options.huge_from = from; });
        TestCtx ctx(s.space);
        for (size_t total = 0; total < 80 * MiB; total += 100000)
            REQUIRE(hak_alloc(ctx, 100000) != nullptr);
        return s.os.counts.huge;
    };
    uint64_t early = huge_calls(8 * MiB), standard = huge_calls(0);
    CHECK(huge_calls(HAK_NONE) == 0);
    CHECK(standard > 0);
    CHECK(early > standard);
}

TEST_CASE("huge_from: a heap whose chunks are filled fast has huge pages from a quarter of it on")
{
    // Committed bytes at the first advice, when filling a chunk of 2 MiB takes so long.
    auto first = [](uint64_t ns, size_t most, size_t from = 64 * MiB) {
        TestSpace s([&](SpaceOptions &options) { options.huge_from = from; });
        TestCtx ctx(s.space);
        while (s.os.counts.huge == 0 && committed_of(ctx) < most) {
            s.os.now += ns / 128;
            REQUIRE(hak_alloc(ctx, 16 * KiB) != nullptr);
        }
        return committed_of(ctx);
    };
    const uint64_t ms = 1000000;
    const size_t fast = first(3 * ms, 64 * MiB);
    CHECK(fast >= 16 * MiB);
    CHECK(fast <= 18 * MiB + 64 * KiB);
    CHECK(first(5 * ms, 63 * MiB) >= 63 * MiB);
    CHECK(first(0, 63 * MiB) >= 63 * MiB); // the clock stands still
    CHECK(first(3 * ms, 63 * MiB, HAK_NONE) >= 63 * MiB);
    CHECK(first(3 * ms, 64 * MiB, 32 * MiB) <= 10 * MiB + 64 * KiB);
}

TEST_CASE("huge_from: a heap that is filled fast by runs has huge pages from all of it on")
{
    // Committed bytes at the first advice, if one in `every` units' worth of blocks is a run.
    auto first = [](unsigned every) {
        TestSpace s;
        TestCtx ctx(s.space);
        for (unsigned i = 0; s.os.counts.huge == 0; i++) {
            s.os.now += 1000;
            const bool run = i % every == 0;
            for (int k = 0; k < (run ? 1 : 4); k++)
                REQUIRE(hak_alloc(ctx, run ? 64 * KiB : 16 * KiB) != nullptr);
        }
        return committed_of(ctx);
    };
    CHECK(first(1) >= 63 * MiB);
    CHECK(first(2) >= 63 * MiB);
    CHECK(first(8) <= 18 * MiB + 64 * KiB);
}
