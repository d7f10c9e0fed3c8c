// Giving back: flush, trim down to holes of one page, retained pages by the clock of the test.
#include "crew.h"
#include "heap.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

using namespace test;

namespace
{

std::vector<void *> records(hak_ctx *ctx, size_t count, size_t n)
{
    std::vector<void *> blocks(count);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hak_alloc(ctx, n);
        if (!blocks[i]) FAIL("no block");
        fill(blocks[i], n, (unsigned)i);
    }
    return blocks;
}

// Frees all but each `keep`-th.
void thin_out(hak_ctx *ctx, std::vector<void *> &blocks, size_t keep)
{
    for (size_t i = 0; i < blocks.size(); i++)
        if (i % keep) {
            hak_free(ctx, blocks[i]);
            blocks[i] = nullptr;
        }
}

} // namespace

TEST_CASE("1 in 1000 survives: holes of single pages go back")
{
    size_t n = GENERATE((size_t)48, (size_t)200, (size_t)700, (size_t)3000);
    bool labelled = GENERATE(false, true);
    CAPTURE(n, labelled);
    TestSpace s;
    TestCtx ctx(s.space);
    if (labelled) hak_label_define(ctx, "x");
    size_t count = (EFFORT > 1 ? 40 : 10) * MiB / n;
    std::vector<void *> blocks = records(ctx, count, n);
    size_t full = s.os.resident();
    thin_out(ctx, blocks, 1000);
    hak_stats before = stats_of(ctx);
    size_t before_os = s.os.committed();
    size_t back = hak_ctx_trim(ctx);
    hak_stats after = stats_of(ctx);
    size_t after_os = s.os.resident();
    CHECK(back > 0);
    CHECK(back == before_os - s.os.committed());
    CHECK(after.live_bytes == before.live_bytes);
    // A survivor holds its page (a block of 3000 may lie on two); maps and bitmaps are within 5 % of the
    // heap.
    size_t survivors = (count + 999) / 1000;
    CHECK(after_os <= survivors * 2 * PAGE + full / 20 + 128 * KiB);
    // Resident memory is explained, but for the maps and bitmaps of units that the context had before.
    CHECK(after_os <= after.committed_bytes - after.released_bytes + full / 30 + 256 * KiB);
    CHECK(after.retained_bytes == 0);
    for (size_t i = 0; i < count; i += 1000)
        REQUIRE(filled(blocks[i], n, (unsigned)i));
    require_sound(ctx);
    // There is nothing left for a second trim.
    uint64_t calls = s.os.counts.calls();
    CHECK(hak_ctx_trim(ctx) == 0);
    CHECK(s.os.counts.calls() == calls);
    // The holes are used again, and read as memory that may be touched.
    std::vector<void *> again = records(ctx, count, n);
    CHECK(s.os.resident() <= full + full / 50);
    for (size_t i = 0; i < count; i++)
        REQUIRE(filled(again[i], n, (unsigned)i));
    for (size_t i = 0; i < count; i += 1000)
        REQUIRE(filled(blocks[i], n, (unsigned)i));
    CHECK(stats_of(ctx).released_bytes <= 64 * PAGE + full / 50);
    require_sound(ctx);
}

TEST_CASE("trim after everything was freed gives nearly all back")
{
    TestSpace s;
    TestCtx ctx(s.space);
    size_t fresh = s.os.committed();
    for (int round = 0; round < 3; round++) {
        std::vector<void *> blocks;
        for (size_t n : {(size_t)30, (size_t)500, (size_t)5000, (size_t)50000, 2 * MiB})
            for (size_t total = 0; total < 4 * MiB; total += n)
                blocks.push_back(hak_alloc(ctx, n));
        CHECK(s.os.committed() >= 19 * MiB);
        for (void *p : blocks)
            hak_free(ctx, p);
        size_t before = s.os.committed();
        size_t back = hak_ctx_trim(ctx);
        CHECK(back == before - s.os.committed());
        CHECK(s.os.committed() <= fresh + 512 * KiB);
        CHECK(stats_of(ctx).cached_bytes - stats_of(ctx).released_bytes <= 256 * KiB);
        CHECK(hak_ctx_trim(ctx) == 0);
        require_sound(ctx);
    }
}

TEST_CASE("trim gives back the pages of the middle of a run that shrank")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (int i = 0; i < 40; i++) {
        blocks.push_back(hak_alloc(ctx, 200000));
        std::memset(blocks.back(), 1, 200000);
    }
    for (void *&p : blocks)
        p = hak_realloc(ctx, p, 10000);
    hak_ctx_trim(ctx);
    CHECK(s.os.committed() <= 40 * 32 * KiB + MiB / 2);
    require_sound(ctx);
}

TEST_CASE("flush returns what it took off the committed bytes")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (size_t n : {(size_t)64, (size_t)600, (size_t)6000, (size_t)60000, 3 * MiB})
        for (size_t total = 0; total < 4 * MiB; total += n)
            blocks.push_back(hak_alloc(ctx, n));
    for (size_t i = 0; i < blocks.size(); i++)
        hak_free(ctx, blocks[i]);
    size_t before = committed_of(ctx);
    size_t back = hak_ctx_flush(ctx);
    size_t after = committed_of(ctx);
    CHECK(back == before - after);
    CHECK(after <= 512 * KiB);
    CHECK(hak_ctx_flush(ctx) == 0);
    require_sound(ctx);
    // A flush leaves magazines empty, so the O(1) count is exact.
    CHECK(hak_ctx_live_bytes(ctx) == stats_of(ctx).live_bytes);
}

TEST_CASE("flush and trim keep what is live")
{
    TestSpace s;
    TestCtx ctx(s.space);
    CHECK(hak_ctx_trim(ctx) == hak_ctx_trim(ctx));
    Random random(1);
    std::vector<std::pair<void *, size_t>> blocks;
    for (unsigned i = 0; i < 3000; i++) {
        size_t n = i % 50 ? random.below(600) : random.below(100000);
        blocks.push_back({hak_alloc(ctx, n), n});
        fill(blocks.back().first, n, i);
    }
    for (int round = 0; round < 5; round++) {
        for (unsigned i = (unsigned)round; i < blocks.size(); i += 6) {
            hak_free(ctx, blocks[i].first);
            blocks[i] = {nullptr, 0};
        }
        hak_stats before = stats_of(ctx);
        round % 2 ? hak_ctx_flush(ctx) : hak_ctx_trim(ctx);
        CHECK(stats_of(ctx).live_bytes == before.live_bytes);
        CHECK(stats_of(ctx).live_blocks == before.live_blocks);
        for (unsigned i = 0; i < blocks.size(); i++)
            REQUIRE(filled(blocks[i].first, blocks[i].second, i));
        require_sound(ctx);
    }
}

TEST_CASE("retained_bytes bounds what is retained")
{
    auto kept = [](size_t retained_bytes, size_t used = 0) {
        TestSpace s([&](SpaceOptions &options) {
            options.retained_bytes = retained_bytes;
            if (retained_bytes) options.retained_percent = HAK_NONE;
        });
        TestCtx observer(s.space);
        for (size_t total = 0; total < used; total += MiB)
            if (!hak_alloc(observer, MiB)) FAIL("no block");
        const size_t before = s.os.committed();
        hak_ctx *heavy = hak_ctx_new(s.space, nullptr);
        for (size_t total = 0; total < 64 * MiB; total += 20000)
            if (!hak_alloc(heavy, 20000)) FAIL("no block");
        hak_ctx_destroy(heavy);
        size_t retained = stats_of(observer).retained_bytes;
        CHECK(s.os.committed() >= retained);
        CHECK(s.os.committed() <= before + retained + 2 * MiB);
        return retained;
    };
    // By default half of what is in use, where that is more; what the option says is a limit.
    CHECK(kept(0, 100 * MiB) > 40 * MiB);
    CHECK(kept(8 * MiB, 100 * MiB) <= 8 * MiB + 256 * KiB);
    CHECK(kept(HAK_NONE) <= 256 * KiB);
    size_t little = kept(8 * MiB), standard = kept(0), much = kept(100 * MiB);
    CHECK(little <= 8 * MiB + 256 * KiB);
    CHECK(little > 4 * MiB);
    CHECK(standard <= 32 * MiB + 256 * KiB);
    CHECK(standard > 16 * MiB);
    CHECK(much >= 60 * MiB);
}

TEST_CASE("what is retained stays below retained_bytes, in whichever chunks it is")
{
    TestSpace s([](SpaceOptions &options) {
        options.retained_bytes = 2 * MiB;
        options.retained_percent = HAK_NONE;
    });
    TestCtx ctx(s.space);
    std::map<uintptr_t, std::vector<void *>> small, large; // by chunk
    auto take = [&](auto &blocks, size_t size, unsigned n) {
        for (; n > 0; n--) {
            void *p = hak_alloc(ctx, size);
            blocks[(uintptr_t)p / (2 * MiB)].push_back(p);
        }
    };
    take(small, 64 * KiB, 1);
    take(large, MiB / 2, 12);
    take(small, 64 * KiB, 3 * MiB / (64 * KiB));
    auto whole = std::find_if(large.begin(), large.end(), [&](auto &chunk) {
        return chunk.second.size() == 4 && chunk.first > small.begin()->first &&
               chunk.first < small.rbegin()->first;
    });
    REQUIRE(whole != large.end());
    hak_free(ctx, small.begin()->second[0]);
    hak_free(ctx, small.rbegin()->second[0]);
    for (void *p : whole->second)
        hak_free(ctx, p);
    CHECK(stats_of(ctx).retained_bytes > MiB);
    CHECK(stats_of(ctx).retained_bytes <= 2 * MiB);
}

TEST_CASE("units_ahead: none, single units are taken as they are used")
{
    auto taken = [](size_t ahead) {
        TestSpace s;
        Options options = ctx_options();
        options.units_ahead = ahead;
        TestCtx ctx(s.space, &options);
        std::vector<void *> runs;
        for (unsigned i = 0; i < 8; i++)
            runs.push_back(hak_alloc(ctx, 512 * KiB));
        for (unsigned i = 0; i < 100; i++)
            if (!hak_alloc(ctx, 1000)) FAIL("no block");
        hak_free(ctx, runs[3]);
        size_t retained = stats_of(ctx).retained_bytes;
        REQUIRE(retained >= 512 * KiB);
        while (stats_of(ctx).retained_bytes == retained)
            if (!hak_alloc(ctx, 1000)) FAIL("no block");
        return retained - stats_of(ctx).retained_bytes;
    };
    CHECK(taken(HAK_NONE) == 16 * KiB);
    CHECK(taken(2) == 32 * KiB);
    CHECK(taken(0) > 32 * KiB);
}

TEST_CASE("retained_yields: fresh pages take the place of retained ones while more is in use than ever")
{
    auto peak = [](bool lean, unsigned rounds, OsCounts *counts) {
        TestSpace s([&](SpaceOptions &options) { options.retained_yields = lean ? 1 : HAK_NONE; });
        TestCtx ctx(s.space);
        size_t most = 0;
        for (unsigned round = 0; round < rounds; round++) {
            // Holes between small runs are of no use for large ones.
            std::vector<void *> small, large;
            for (unsigned i = 0; i < 256; i++)
                small.push_back(hak_alloc(ctx, 48 * KiB));
            for (unsigned i = 0; i < 256; i += 2)
                hak_free(ctx, small[i]);
            for (unsigned i = 0; i < 24; i++) {
                large.push_back(hak_alloc(ctx, 512 * KiB));
                most = std::max(most, stats_of(ctx).committed_bytes + stats_of(ctx).retained_bytes);
            }
            for (void *p : large)
                hak_free(ctx, p);
            for (unsigned i = 1; i < 256; i += 2)
                hak_free(ctx, small[i]);
        }
        *counts = s.os.counts;
        return most;
    };
    OsCounts once, often, not_lean;
    size_t low = peak(true, 1, &once), high = peak(false, 1, &not_lean);
    CHECK(low < 19 * MiB);
    CHECK(high > 22 * MiB);
    CHECK(once.decommit > not_lean.decommit);
    // What is in use soon is not more than ever.
    peak(true, 8 * EFFORT, &often);
    CHECK(often.decommit <= 2 * once.decommit);
}

TEST_CASE("lean: half of the retained bytes are kept, and what is wanted again")
{
    const bool lean = GENERATE(true, false);
    CAPTURE(lean);
    TestSpace s([&](SpaceOptions &options) {
        options.retained_yields = lean ? 1 : HAK_NONE;
        options.retained_bytes = 8 * MiB;
        options.retained_percent = HAK_NONE;
    });
    TestCtx ctx(s.space);
    auto swing = [&] {
        std::vector<void *> runs;
        for (unsigned i = 0; i < 14; i++)
            runs.push_back(hak_alloc(ctx, 512 * KiB));
        for (void *p : runs)
            hak_free(ctx, p);
        hak_ctx_flush(ctx);
        return stats_of(ctx).retained_bytes;
    };
    const size_t first = swing();
    CHECK((lean ? first <= 4 * MiB : first >= 7 * MiB));
    CHECK(first >= 3 * MiB);
    swing();
    CHECK(swing() >= 7 * MiB);
    const uint64_t calls = s.os.counts.decommit;
    for (unsigned i = 0; i < 10; i++)
        swing();
    CHECK(s.os.counts.decommit == calls);
}

TEST_CASE("a context ends in a caller's buffer that retains more than retained_bytes")
{
    const size_t size = 40 * MiB;
    std::unique_ptr<char, void (*)(void *)> buffer(static_cast<char *>(std::calloc(1, size)), std::free);
    TestSpace s([&](SpaceOptions &options) {
        options.buffer = buffer.get();
        options.buffer_size = size;
        options.retained_bytes = MiB;
        options.retained_percent = HAK_NONE;
    });
    TestCtx observer(s.space);
    hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
    for (size_t total = 0; total < 30 * MiB; total += 20000)
        if (!hak_alloc(ctx, 20000)) FAIL("no block");
    hak_ctx_destroy(ctx);
    CHECK(stats_of(observer).retained_bytes > 28 * MiB);
}

TEST_CASE("trim gives back packed units without live blocks, and what is left serves larger ones")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const size_t empty = committed_of(ctx);
    Random random(5);
    std::vector<std::pair<void *, size_t>> blocks;
    for (size_t sum = 0; sum < 90 * KiB;) {
        size_t n = 1 + random.below(600);
        blocks.push_back({hak_alloc(ctx, n), n});
        sum += n;
    }
    const size_t full = committed_of(ctx);
    REQUIRE(full >= empty + 90 * KiB);
    fill(blocks[0].first, blocks[0].second, 1);
    for (size_t i = 1; i < blocks.size(); i++)
        hak_free(ctx, blocks[i].first);
    CHECK(hak_ctx_trim(ctx) > 0);
    require_sound(ctx);
    // The bins stay, a unit.
    CHECK(committed_of(ctx) <= empty + 40 * KiB);
    CHECK(filled(blocks[0].first, blocks[0].second, 1));
    // Small free blocks were joined: larger ones find room without another unit.
    const size_t before = committed_of(ctx);
    for (int i = 0; i < 4; i++)
        REQUIRE(hak_alloc(ctx, 2000) != nullptr);
    CHECK(committed_of(ctx) == before);
    hak_free(ctx, blocks[0].first);
    require_sound(ctx);
}

static size_t resident()
{
    size_t total = 0, pages = 0;
    FILE *file = std::fopen("/proc/self/statm", "r");
    if (!file || std::fscanf(file, "%zu %zu", &total, &pages) != 2) pages = 0;
    if (file) std::fclose(file);
    return pages * PAGE;
}

TEST_CASE("trim gives back bitmaps, slab records and label bytes of what is free")
{
    const bool labelled = GENERATE(false, true);
    hak_space *space = hak_space_new(nullptr);
    REQUIRE(space != nullptr);
    hak_ctx *ctx = hak_ctx_new(space, nullptr);
    hak_label label = labelled ? hak_label_define(ctx, "x") : 0;
    std::vector<void *> blocks(32 * MiB / 16, &space);
    auto fill_up = [&] {
        for (void *&p : blocks)
            p = hak_alloc_cs(ctx, 16, label, 0);
    };
    const size_t before = resident();
    fill_up();
    const char *reserved = reinterpret_cast<const char *>(addr(blocks.back()) & ~(uintptr_t)(2 * MiB - 1));
    for (void *p : blocks)
        hak_free(ctx, p);
    hak_ctx_trim(ctx);
    CHECK(stats_of(ctx).live_blocks == 0);
    CHECK(resident_pages(reserved, 2 * MiB) == 0);
#ifndef TEST_SLOW_BUILD
    // Bitmaps and slab records of 32 MiB are 576 KiB, label bytes 2 MiB.
    CHECK(resident() < before + 256 * KiB);
#else
    (void)before;
#endif
    // All of it comes back zeroed and is used again.
    fill_up();
    require_sound(ctx);
    size_t counted = 0;
    std::vector<hak_label_info> infos(2);
    int n = hak_labels_stats(ctx, infos.data(), infos.size());
    for (int i = 0; i < n; i++)
        if (infos[(size_t)i].label == label) counted = infos[(size_t)i].live_blocks;
    CHECK(counted == blocks.size());
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
}

TEST_CASE("what trim gives back is never absurd, whatever others do")
{
    hak_space *space = hak_space_new(nullptr);
    REQUIRE(space != nullptr);
    std::atomic<int> busy{2};
    Crew crew(3, [&](size_t t) {
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        expect(ctx != nullptr, "no context");
        // One has nothing to give.
        while (t == 0 && busy > 0)
            expect(hak_ctx_trim(ctx) < 1 * GiB, "an absurd number of bytes");
        for (int round = 0; t && round < 200; round++) {
            std::vector<void *> blocks;
            for (int i = 0; i < 400; i++)
                blocks.push_back(hak_alloc(ctx, 1000));
            for (size_t i = 0; i < blocks.size(); i++)
                if (i % 50) hak_free(ctx, blocks[i]);
            expect(hak_ctx_trim(ctx) < 1 * GiB, "an absurd number of bytes");
            for (size_t i = 0; i < blocks.size(); i += 50)
                hak_free(ctx, blocks[i]);
            expect(hak_ctx_trim(ctx) < 1 * GiB, "an absurd number of bytes");
        }
        if (t) busy--;
        hak_ctx_destroy(ctx);
    });
    CHECK(crew.join() == "");
    hak_space_delete(space);
}

// ---- The peak --------------------------------------------------------------------------------------

TEST_CASE("runs and big blocks of a few sizes make no calls once there was one of each kind")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Random random(3);
    void *held[4] = {};
    auto replace_some = [&](int n) {
        for (int i = 0; i < n; i++) {
            void *&p = held[random.below(4)];
            hak_free(ctx, p);
            const size_t sizes[] = {64 * KiB, 512 * KiB, 2 * MiB};
            p = hak_alloc(ctx, sizes[random.below(3)]);
            REQUIRE(p != nullptr);
        }
    };
    replace_some(1000);
    size_t calls = stats_of(ctx).os_calls;
    replace_some(20000);
    CHECK(stats_of(ctx).os_calls == calls);
}

TEST_CASE("a block that moves at the peak leaves no retained units behind")
{
    TestSpace s;
    TestCtx ctx(s.space);
    char *p = (char *)hak_alloc(ctx, 500 * KiB);
    REQUIRE(hak_alloc(ctx, 40 * KiB) != nullptr); // no room to grow in place
    fill(p, 500 * KiB, 1);
    size_t to = GENERATE((size_t)900 * KiB, 2 * MiB);
    p = (char *)hak_realloc(ctx, p, to);
    REQUIRE(p);
    CHECK(filled(p, 500 * KiB, 1));
    CHECK(stats_of(ctx).retained_bytes == 0);
}

TEST_CASE("magazines of blocks above 1 KiB are emptied before fresh pages make a peak")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    std::vector<void *> large = records(ctx, 9, 20 * KiB); // three slabs
    while (!large.empty()) {
        hak_free(ctx, large.back()); // the last one into the magazine
        large.pop_back();
    }
    REQUIRE(stats_of(ctx).cached_bytes > 120 * KiB); // its slab, and the current one
    records(ctx, 1000, 1000);
    CHECK(stats_of(ctx).cached_bytes < 100 * KiB);
}

// The classes of a context, summed up.
static hak_class_info sum_classes(const hak_ctx *ctx)
{
    hak_class_info all[130], sum = {};
    const int n = hak_classes_stats(ctx, all, 130);
    CHECK(n <= 126);
    CHECK(hak_classes_stats(ctx, nullptr, 0) == n);
    for (int i = 0; i < n; i++) {
        if (i > 0) CHECK(all[i].block_bytes > all[i - 1].block_bytes);
        CHECK(all[i].blocks > 0);
        CHECK(all[i].pinned_bytes <= all[i].free_bytes);
        sum.blocks += all[i].blocks;
        sum.free_bytes += all[i].free_bytes;
        sum.pinned_bytes += all[i].pinned_bytes;
    }
    return sum;
}

TEST_CASE("what is free between live blocks, and who pins it")
{
    const size_t n = GENERATE((size_t)48, (size_t)200, (size_t)700, (size_t)3000), count = 40'000;
    const bool shared = GENERATE(false, true);
    TestSpace space;
    Options options = ctx_options();
    options.shared = shared;
    options.packed_bytes = HAK_NONE;
    hak_ctx *ctx = hak_ctx_new(space.space, &options);
    CHECK(hak_ctx_space(ctx) == space.space);
    const size_t size = hak_good_size(ctx, n);
    std::vector<void *> blocks = records(ctx, count, n);
    hak_ctx_flush(ctx);
    const hak_class_info full = sum_classes(ctx);
    CHECK(full.blocks == count);
    CHECK(full.free_bytes <= 64 * KiB); // of the last slab
    CHECK(hak_block_pins(ctx, blocks[0]) == 0);
    thin_out(ctx, blocks, 3000);
    hak_ctx_flush(ctx);
    const hak_class_info thin = sum_classes(ctx);
    size_t kept = 0, pins = 0;
    for (void *p : blocks) {
        if (!p) continue;
        kept++;
        CHECK(hak_block_pins(ctx, p) < 2 * 4096 + size);
        pins += hak_block_pins(ctx, p);
    }
    CHECK(thin.blocks == kept);
    CHECK(thin.free_bytes > kept * (8 * KiB));
    // A block pins what else is on its one or two pages.
    CHECK(thin.pinned_bytes > kept * (4096 - size) * 9 / 10);
    CHECK(pins <= thin.pinned_bytes);
    CHECK(pins + kept >= thin.pinned_bytes);
    // What is not pinned, trim gives back, and then it is counted no more.
    CHECK(hak_ctx_trim(ctx) >= thin.free_bytes - thin.pinned_bytes);
    const hak_class_info trimmed = sum_classes(ctx);
    CHECK(trimmed.pinned_bytes == thin.pinned_bytes);
    CHECK(trimmed.free_bytes < trimmed.pinned_bytes + kept * size + 4096);
    CHECK(hak_block_pins(ctx, &options) == 0);
    CHECK(hak_block_pins(ctx, nullptr) == 0);
    for (void *p : blocks)
        hak_free(ctx, p);
    hak_ctx_flush(ctx);
    CHECK(sum_classes(ctx).free_bytes == 0);
    hak_ctx_destroy(ctx);
}
