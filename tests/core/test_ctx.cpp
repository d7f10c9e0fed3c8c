// Contexts: options and their effects, destroy, retire, ownership, many small ones.
#include "heap.h"

#include <map>
#include <unistd.h>

#include <cstdio>

using namespace test;

namespace
{

const size_t MIXED[] = {1, 16, 24, 40, 100, 300, 512, 700, 2000, 5000, 9000, 40000, 100000};

void require_rejected(const Options &options)
{
    const char *why = hak_options_error(&options);
    REQUIRE(why != nullptr);
    CHECK(*why != 0);
    CHECK(std::strchr(why, '\n') == nullptr);
    TestSpace s;
    CHECK(hak_ctx_new(s.space, &options) == nullptr);
    CHECK(hak_ctx_new(nullptr, &options) == nullptr);
}

// Blocks of many classes, `total` bytes in all.
std::vector<void *> assorted(hak_ctx *ctx, size_t total)
{
    std::vector<void *> blocks;
    Random random(11);
    for (size_t sum = 0; sum < total;) {
        size_t n = 8 + random.below(500);
        blocks.push_back(hak_alloc(ctx, n));
        if (!blocks.back()) FAIL("no block");
        sum += n;
    }
    return blocks;
}

size_t vm_size()
{
    size_t pages = 0;
    FILE *file = std::fopen("/proc/self/statm", "r");
    if (!file || std::fscanf(file, "%zu", &pages) != 1) pages = 0;
    if (file) std::fclose(file);
    return pages * PAGE;
}

} // namespace

TEST_CASE("context options: what is refused, with a reason in one line")
{
    Options options = ctx_options();
    SECTION("size")
    {
        options.size =
            GENERATE((size_t)0, (size_t)4, sizeof(hak_options) - 1, sizeof(hak_options) + 8192, SIZE_MAX);
    }
    SECTION("magazine")
    {
        options.magazine = GENERATE((size_t)1, (size_t)129, SIZE_MAX - 1);
    }
    SECTION("magazine_most")
    {
        options.magazine_most = GENERATE((size_t)7, MiB + 1, SIZE_MAX - 1);
    }
    SECTION("packed_bytes")
    {
        options.packed_bytes = GENERATE(16 * MiB + 1, SIZE_MAX - 1);
    }
    SECTION("debug")
    {
        options.debug = GENERATE(128u, 512u, 0x80000000u);
    }
    SECTION("first_offset")
    {
        options.first_offset = GENERATE(1u, 8u, 40u, 64u, 0x10000u);
    }
    SECTION("labels")
    {
        static const char *names[HAK_LABELS_MAX + 1];
        static const std::string most(63, 'x'), over(64, 'x');
        std::memset(names, 0, sizeof names);
        names[0] = "a";
        options.label_count = 1;
        SECTION("missing")
        {
        }
        SECTION("a name is missing")
        {
            options.labels = names;
            options.label_count = 2;
        }
        SECTION("too many")
        {
            options.labels = names;
            options.label_count = HAK_LABELS_MAX + 1;
        }
        SECTION("what hak_label_define refuses")
        {
            options.labels = names;
            options.label_count = 3;
            names[1] = most.c_str();
            names[2] = GENERATE(as<const char *>{}, "", "a", nullptr, over.c_str(), most.c_str());
        }
        SECTION("too many, far too many")
        {
            options.labels = names;
            options.label_count = SIZE_MAX;
        }
    }
    require_rejected(options);
}

TEST_CASE("context options: what is accepted")
{
    Options options = ctx_options();
    SECTION("defaults")
    {
    }
    SECTION("magazine")
    {
        options.magazine = GENERATE(HAK_NONE, (size_t)2, (size_t)32, (size_t)128);
    }
    SECTION("labels")
    {
        // Of one length and many with the same letters at their ends.
        static std::vector<std::string> texts;
        static std::vector<const char *> names;
        texts.clear();
        names.clear();
        for (int i = 0; i < HAK_LABELS_MAX; i++)
            texts.push_back("a" + std::to_string(1000 + i) + "b");
        for (const std::string &text : texts)
            names.push_back(text.c_str());
        options.labels = names.data();
        options.label_count = HAK_LABELS_MAX;
    }
    SECTION("packed_bytes")
    {
        options.packed_bytes = GENERATE(512 * KiB, HAK_NONE, (size_t)1000);
    }
    SECTION("debug")
    {
        options.debug = GENERATE(1u, 2u, 3u, 4u, 7u, 8u, 15u, 16u, 32u, 63u);
    }
    SECTION("first_offset")
    {
        options.first_offset = GENERATE(16u, 32u, 48u);
        options.debug = GENERATE(0u, 1u);
    }
    CHECK(hak_options_error(&options) == nullptr);
    CHECK(hak_options_error(nullptr) == nullptr);
    TestSpace s;
    TestCtx ctx(s.space, &options);
    std::vector<void *> blocks = assorted(ctx, 300000);
    require_sound(ctx);
    for (void *p : blocks)
        hak_free(ctx, p);
    if (options.debug & HAK_DEBUG_QUARANTINE) hak_ctx_flush(ctx); // what is held back counts as live
    CHECK(stats_of(ctx).live_bytes == 0);
    require_sound(ctx);
}

TEST_CASE("option name: kept, or empty")
{
    TestSpace s;
    Options options = ctx_options();
    options.name = "worker 3";
    TestCtx named(s.space, &options), plain(s.space);
    CHECK(hak_ctx_name(named) == options.name);
    REQUIRE(hak_ctx_name(plain) != nullptr);
    CHECK(std::string(hak_ctx_name(plain)) == "");
}

TEST_CASE("option first_offset: where blocks begin modulo a cache line")
{
    const unsigned offset = GENERATE(0u, 16u, 48u);
    const size_t n = GENERATE((size_t)64, (size_t)128, (size_t)512, (size_t)1024, (size_t)48, (size_t)8,
                              (size_t)16, (size_t)32);
    CAPTURE(offset, n);
    TestSpace s;
    Options options = ctx_options();
    options.first_offset = offset;
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    hak_label label = hak_label_define(ctx, "x");
    std::vector<void *> blocks;
    size_t at_offset = 0;
    for (unsigned i = 0; i < 3 * 16384 / n; i++) {
        blocks.push_back(hak_alloc_cs(ctx, n, label, 0));
        REQUIRE(blocks.back() != nullptr);
        at_offset += addr(blocks.back()) % 64 == offset;
        // Slabs of small blocks are one unit, and what follows may be anybody's.
        if (n < 64) REQUIRE(addr(blocks.back()) / (16 * KiB) == (addr(blocks.back()) + n - 1) / (16 * KiB));
        fill(blocks.back(), n, i);
    }
    // The steps between blocks of other sizes lead away from the offset.
    if (n % 64 == 0) CHECK(at_offset == blocks.size());
    else CHECK(at_offset < blocks.size());
    for (unsigned i = 0; i < blocks.size(); i++)
        if (!filled(blocks[i], n, i)) FAIL("block " << i << " lies over another");
    require_sound(ctx);
    for (size_t i = 0; i < blocks.size(); i++)
        if (i % 64 != 3) hak_free(ctx, blocks[i]);
    hak_ctx_trim(ctx);
    for (size_t i = 3; i < blocks.size(); i += 64)
        if (!filled(blocks[i], n, (unsigned)i)) FAIL("trim took block " << i);
    require_sound(ctx);
    // Larger alignments do not depend on the slabs.
    void *p = hak_aligned_alloc(ctx, 256, 100);
    CHECK(addr(p) % 256 == 0);
    hak_free(ctx, p);
    require_sound(ctx);
}

TEST_CASE("option packed_bytes: small contexts stay small")
{
    auto committed = [](size_t packed, size_t total) {
        TestSpace s;
        Options options = ctx_options();
        options.packed_bytes = packed;
        TestCtx ctx(s.space, &options);
        assorted(ctx, total);
        return committed_of(ctx);
    };
    size_t none = committed(HAK_NONE, 20000), standard = committed(0, 20000);
    CHECK(standard <= 48 * KiB);
    CHECK(none >= 2 * standard);
    CHECK(committed(0, 200000) < committed(32 * KiB, 200000));
}

TEST_CASE("options labels, label_count: names from the start")
{
    TestSpace s;
    static const char *const names[] = {"string", "table", "array"};
    Options options = ctx_options();
    options.labels = names;
    options.label_count = 3;
    options.packed_bytes = GENERATE((size_t)0, HAK_NONE);
    TestCtx ctx(s.space, &options);
    hak_label_info infos[8];
    CHECK(hak_labels_stats(ctx, infos, 8) == 4);
    for (hak_label i = 1; i <= 3; i++) {
        CHECK(hak_label_name(ctx, i) == names[i - 1]);
        CHECK(hak_label_define(ctx, names[i - 1]) == i);
    }
    CHECK(hak_label_name(ctx, 4) == nullptr);
    CHECK(hak_label_define(ctx, "closure") == 4);
    std::vector<void *> blocks;
    for (size_t i = 0; i < 3000; i++) {
        blocks.push_back(hak_alloc_cs(ctx, 16 + i % 900, (hak_label)(i % 5), 0));
        REQUIRE(hak_label_of(ctx, blocks.back()) == i % 5);
    }
    REQUIRE(hak_label_stats(ctx, 2, infos) == 0);
    CHECK(infos->live_blocks == 600);
    CHECK(std::string(infos->name) == "table");
    require_sound(ctx);
}

TEST_CASE("options quota, on_error, error_user, big_cache, debug are used")
{
    // Their effects in detail: test_limit, test_check, test_big.
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.quota = hak_quota_new(nullptr, 4 * MiB);
    options.big_cache = HAK_NONE;
    options.debug = HAK_DEBUG_POISON;
    {
        TestCtx ctx(s.space, &options);
        CHECK(hak_quota_used(options.quota) == committed_of(ctx));
        CHECK(hak_alloc(ctx, 5 * MiB) == nullptr);
        CHECK(all_bytes(hak_alloc(ctx, 100), 100, 0xCD));
        hak_free(ctx, &errors);
        CHECK(errors.take() == "HAK_E_FOREIGN");
        size_t cached = stats_of(ctx).cached_bytes;
        hak_free(ctx, hak_alloc(ctx, 2 * MiB));
        CHECK(stats_of(ctx).cached_bytes <= cached);
    }
    hak_quota_delete(options.quota);
}

TEST_CASE("destroy with everything live returns all pages")
{
    bool labelled = GENERATE(false, true);
    TestSpace s;
    TestCtx observer(s.space);
    hak_ctx_trim(observer);
    const size_t observer_committed = committed_of(observer);
    size_t committed = 0, reserved = 0;
    for (int round = 0; round < 6; round++) {
        hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
        hak_label label = labelled ? hak_label_define(ctx, "x") : (hak_label)0;
        Random random((uint64_t)round + 1);
        for (int i = 0; i < 20000; i++) {
            void *p = hak_alloc_cs(ctx, MIXED[random.below(i % 20 ? 8 : 13)], label, 1);
            REQUIRE(p != nullptr);
            if (i % 4 == 0) hak_free(ctx, p);
        }
        REQUIRE(hak_alloc(ctx, 3 * MiB) != nullptr);
        hak_free(ctx, hak_alloc(ctx, 2 * MiB));
        if (round % 2) hak_ctx_trim(ctx);
        size_t of_ctx = committed_of(ctx);
        CHECK(of_ctx > 6 * MiB);
        hak_ctx_destroy(ctx);
        // The pages are the space's now, retained within its bound.
        CHECK(stats_of(observer).retained_bytes > MiB);
        hak_ctx_trim(observer);
        CHECK(stats_of(observer).retained_bytes == 0);
        CHECK(committed_of(observer) == observer_committed);
        if (round == 0) {
            committed = s.os.committed();
            reserved = s.os.reserved();
            CHECK(committed <= 2 * MiB);
        } else {
            CHECK(s.os.committed() <= committed + 8 * KiB); // records of a chunk more
            CHECK(s.os.reserved() <= reserved);
        }
        require_sound(observer);
    }
}

TEST_CASE("retire: no new blocks, gone with the last one")
{
    TestSpace s;
    TestCtx observer(s.space);
    hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
    std::vector<void *> blocks;
    for (int i = 0; i < 500; i++) {
        blocks.push_back(hak_alloc(ctx, MIXED[i % 13]));
        fill(blocks.back(), MIXED[i % 13], (unsigned)i);
    }
    hak_ctx_retire(ctx);
    CHECK(hak_alloc(ctx, 10) == nullptr);
    CHECK(hak_alloc(ctx, 100000) == nullptr);
    CHECK(hak_calloc(ctx, 1, 10) == nullptr);
    CHECK(hak_aligned_alloc(ctx, 64, 10) == nullptr);
    CHECK(hak_realloc(ctx, nullptr, 10) == nullptr);
    CHECK(stats_of(ctx).live_blocks == 500);
    require_sound(ctx);
    for (size_t i = 0; i < 500; i++) {
        REQUIRE(hak_ctx_of(s.space, blocks[i]) == ctx);
        REQUIRE(filled(blocks[i], MIXED[i % 13], (unsigned)i));
        if (i == 498) hak_space_free(s.space, blocks[i]);
        else hak_free(ctx, blocks[i]);
    }
    for (void *p : blocks)
        REQUIRE(hak_ctx_of(s.space, p) == nullptr);
    hak_ctx_retire(nullptr);
    // Without blocks it goes at once.
    hak_ctx_trim(observer);
    size_t committed = s.os.committed();
    for (int i = 0; i < 50; i++) {
        ctx = hak_ctx_new(s.space, nullptr);
        hak_free(ctx, hak_alloc(ctx, 100));
        hak_ctx_retire(ctx);
    }
    hak_ctx_trim(observer);
    CHECK(s.os.committed() <= committed);
}

TEST_CASE("a context with a space of its own gives it back")
{
    size_t before = 0;
    for (int i = 0; i < 40; i++) {
        hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
        REQUIRE(ctx != nullptr);
        void *p = hak_alloc(ctx, 1000);
        std::memset(p, 1, 1000);
        CHECK(addr(p) < (uintptr_t)1 << 47);
        require_sound(ctx);
        if (i % 2) {
            hak_ctx_destroy(ctx);
        } else {
            hak_ctx_retire(ctx);
            hak_free(ctx, p);
        }
        if (i == 5) before = vm_size();
    }
    CHECK(vm_size() <= before + 16 * MiB);
    hak_ctx_destroy(nullptr);
}

TEST_CASE("two contexts never share a page")
{
    TestSpace s;
    const size_t contexts = 5;
    std::vector<hak_ctx *> ctx(contexts);
    for (hak_ctx *&c : ctx)
        REQUIRE((c = hak_ctx_new(s.space, nullptr)) != nullptr);
    std::map<uintptr_t, size_t> owner;
    Random random(5);
    std::vector<std::pair<void *, size_t>> blocks;
    for (int i = 0; i < 30000; i++) {
        size_t c = random.below(contexts), n = MIXED[random.below(i % 10 ? 9 : 13)];
        void *p = hak_alloc(ctx[c], n);
        REQUIRE(p != nullptr);
        blocks.push_back({p, c});
        if (i % 5000 == 4999) {
            // A context dies, and its pages may serve another one.
            size_t dead = random.below(contexts);
            hak_ctx_destroy(ctx[dead]);
            ctx[dead] = hak_ctx_new(s.space, nullptr);
            blocks.erase(
                std::remove_if(blocks.begin(), blocks.end(), [&](auto &b) { return b.second == dead; }),
                blocks.end());
        }
    }
    for (auto &block : blocks) {
        size_t usable = hak_usable_size(ctx[block.second], block.first);
        for (uintptr_t page = addr(block.first) / PAGE; page <= (addr(block.first) + usable - 1) / PAGE;
             page++) {
            auto entry = owner.insert({page, block.second}).first;
            if (entry->second != block.second) FAIL("page shared at " << block.first);
        }
        for (size_t c = 0; c < contexts; c++)
            if (hak_owns(ctx[c], block.first) != (c == block.second)) FAIL("owner of " << block.first);
        if (hak_ctx_of(s.space, block.first) != ctx[block.second]) FAIL("hak_ctx_of " << block.first);
    }
    for (hak_ctx *c : ctx) {
        require_sound(c);
        hak_ctx_destroy(c);
    }
}

TEST_CASE("10,000 small contexts")
{
    TestSpace s;
    const size_t count = EFFORT > 1 ? 10000 : 2000;
    std::vector<hak_ctx *> ctx(count);
    std::vector<void *> first(count);
    for (size_t i = 0; i < count; i++) {
        REQUIRE((ctx[i] = hak_ctx_new(s.space, nullptr)) != nullptr);
        hak_label label = i % 2 ? hak_label_define(ctx[i], "x") : (hak_label)0;
        for (size_t b = 0; b < 20; b++) {
            void *p = hak_alloc_cs(ctx[i], 16 + b * 24, label, 0);
            REQUIRE(p != nullptr);
            fill(p, 16 + b * 24, (unsigned)i);
            if (b == 0) first[i] = p;
        }
    }
    // What a context takes is a unit or two; what it touches is less.
    CHECK(s.os.committed() <= count * 48 * KiB + 4 * MiB);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(filled(first[i], 16, (unsigned)i));
        REQUIRE(hak_ctx_of(s.space, first[i]) == ctx[i]);
        REQUIRE(stats_of(ctx[i]).live_blocks == 20);
        if (i % 100 == 0) require_sound(ctx[i]);
    }
    for (size_t i = 0; i < count; i += 2)
        hak_ctx_destroy(ctx[i]);
    hak_ctx_trim(ctx[1]);
    for (size_t i = 0; i < count; i += 2)
        REQUIRE((ctx[i] = hak_ctx_new(s.space, nullptr)) != nullptr);
    for (size_t i = 1; i < count; i += 2)
        REQUIRE(filled(first[i], 16, (unsigned)i));
    for (size_t i = 0; i < count; i++)
        hak_ctx_destroy(ctx[i]);
}

TEST_CASE("a context in a space with retained pages costs no OS call")
{
    TestSpace s;
    TestCtx observer(s.space);
    auto use = [&] {
        hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
        for (size_t i = 0; i < 20; i++)
            REQUIRE(hak_alloc(ctx, 30 + i * 20) != nullptr);
        hak_ctx_destroy(ctx);
    };
    use();
    uint64_t calls = s.os.counts.calls();
    for (int i = 0; i < 1000; i++)
        use();
    CHECK(s.os.counts.calls() == calls);
}

TEST_CASE("hak_ctx_stats fills in what the caller's struct holds")
{
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_alloc(ctx, 1000) != nullptr);
    hak_stats stats;
    std::memset(&stats, 0xEE, sizeof stats);
    stats.size = offsetof(hak_stats, committed_bytes);
    REQUIRE(hak_ctx_stats(ctx, &stats) == 0);
    CHECK(stats.live_blocks == 1);
    CHECK(stats.live_bytes >= 1000);
    CHECK(all_bytes(&stats.committed_bytes, sizeof stats - offsetof(hak_stats, committed_bytes), 0xEE));
    stats.size = 0;
    CHECK(hak_ctx_stats(ctx, &stats) == -1);
}

TEST_CASE("peak and failures")
{
    TestSpace s;
    TestCtx ctx(s.space);
    CHECK(stats_of(ctx).peak_bytes == 0);
    std::vector<void *> blocks = assorted(ctx, 2 * MiB);
    size_t live = stats_of(ctx).live_bytes;
    CHECK(hak_ctx_live_bytes(ctx) <= live + 32 * 512 * 64);
    CHECK(hak_ctx_live_bytes(ctx) >= live);
    for (void *p : blocks)
        hak_free(ctx, p);
    hak_stats stats = stats_of(ctx);
    CHECK(stats.live_bytes == 0);
    CHECK(stats.peak_bytes >= live);
    CHECK(stats.peak_bytes <= live + 32 * 512 * 64);
    hak_ctx_peak_reset(ctx);
    CHECK(stats_of(ctx).peak_bytes <= 32 * 512 * 64);
    blocks = assorted(ctx, 1 * MiB);
    CHECK(stats_of(ctx).peak_bytes >= stats_of(ctx).live_bytes);
    CHECK(stats_of(ctx).peak_bytes < live);
    CHECK(stats.failures == 0);
    CHECK(hak_alloc(ctx, (size_t)1 << 50) == nullptr);
    CHECK(stats_of(ctx).failures == 1);
}

TEST_CASE("without retained pages nothing that a context wrote is read by the next one")
{
    // 0: nothing is retained; 1: it is, and trimmed between the two; 2: it is, which shows that the test sees
    // it.
    int how = GENERATE(0, 1, 2);
    bool shared = GENERATE(false, true), labelled = GENERATE(false, true);
    CAPTURE(how, shared, labelled);
    TestSpace s([&](SpaceOptions &options) {
        if (how == 0) options.retained_bytes = options.retained_percent = HAK_NONE;
    });
    TestCtx other(s.space);
    Options options = ctx_options();
    const char *const names[] = {"one"};
    options.shared = shared;
    options.labels = names;
    options.label_count = labelled;
    uint64_t secret[8];
    std::memset(secret, 0x5E, sizeof secret);
    size_t found = 0;
    for (int tenant = 0; tenant < 2; tenant++) {
        hak_ctx *ctx = hak_ctx_new(s.space, &options);
        for (size_t n : {64, 100, 500, 2000, 10000, 40000, 300000, 3000000})
            for (size_t i = 0; i < 8 + 200000 / n; i++) {
                char *p = static_cast<char *>(hak_alloc(ctx, n));
                REQUIRE(p != nullptr);
                for (size_t at = 0; tenant == 1 && at + sizeof secret <= n; at += sizeof secret)
                    found += std::memcmp(p + at, secret, sizeof secret) == 0;
                if (tenant == 0) std::memset(p, 0x5E, n);
            }
        hak_ctx_destroy(ctx);
        if (how == 1) hak_ctx_trim(other);
    }
    if (how == 2) CHECK(found > 0);
    else CHECK(found == 0);
}
