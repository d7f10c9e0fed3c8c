// Modes, workloads and the numbers behind them: each acts, in each mode.
#include "heap.h"

#include <hakmem/policy.h>

#include <algorithm>
#include <cstddef>

using namespace test;

namespace
{

const hak_mode MODES[] = {HAK_MODE_BALANCED, HAK_MODE_MINIMAL,  HAK_MODE_FAST,
                          HAK_MODE_LEAN,     HAK_MODE_LEARNING, HAK_MODE_RESEARCH};
const hak_workload WORKLOADS[] = {HAK_WORKLOAD_TRACED, HAK_WORKLOAD_COUNTED, HAK_WORKLOAD_MALLOC};

// By mode, as MODES has them: what the header and docs/guide/modes.md say. Learning ones begin as balanced.
struct Said {
    size_t hak_tuning::*field;
    size_t traced[4], counted[4];
};
const size_t NONE = HAK_NONE;
const Said SAID[] = {
    {&hak_tuning::magazine, {32, NONE, 128, 32}, {128, NONE, 128, 128}},
    {&hak_tuning::magazine_most, {MiB, NONE, MiB, 4 * KiB}, {4 * KiB, NONE, MiB, 4 * KiB}},
    {&hak_tuning::packed_bytes, {2 * MiB, NONE, 256 * KiB, 2 * MiB}, {2 * MiB, NONE, 256 * KiB, 2 * MiB}},
    {&hak_tuning::first_offset, {0, 0, 0, 0}, {0, 0, 0, 0}},
    {&hak_tuning::big_cache, {16 * MiB, NONE, 256 * MiB, 2 * MiB}, {16 * MiB, NONE, 256 * MiB, 2 * MiB}},
    {&hak_tuning::units_ahead, {16, NONE, 64, NONE}, {16, NONE, 64, NONE}},
    {&hak_tuning::populate_from, {16, NONE, 2, 16}, {16, NONE, 2, 16}},
    {&hak_tuning::retained_bytes, {32 * MiB, NONE, 256 * MiB, 4 * MiB}, {32 * MiB, NONE, 256 * MiB, 4 * MiB}},
    {&hak_tuning::retained_percent, {50, NONE, 100, NONE}, {50, NONE, 100, NONE}},
    {&hak_tuning::huge_from, {64 * MiB, NONE, 1 * MiB, NONE}, {64 * MiB, NONE, 1 * MiB, NONE}},
    {&hak_tuning::retained_yields, {NONE, NONE, NONE, 1}, {NONE, NONE, NONE, 1}},
    {&hak_tuning::expected_bytes, {NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE}},
    {&hak_tuning::guard_every, {5000, 5000, 5000, 5000}, {5000, 5000, 5000, 5000}},
    {&hak_tuning::guard_slots, {64, 64, 64, 64}, {64, 64, 64, 64}},
    {&hak_tuning::slab_sizes, {NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE}},
};

hak_tuning numbers(hak_mode mode, hak_workload workload)
{
    hak_tuning t = HAK_TUNING_INIT;
    REQUIRE(hak_tuning_complete(&t, mode, workload) == 0);
    return t;
}

// How a context and its space come to a mode's numbers: by its name; the one number that a test is of, by
// tuning or by a policy that was text, in balanced mode; all, by the mode's policy, from the beginning or
// after both were made in another mode.
enum Way { MODE, NUMBER, POLICY_NUMBER, POLICY, POLICY_LATER };

bool is_balanced(hak_mode mode)
{
    return mode == HAK_MODE_BALANCED || mode == HAK_MODE_LEARNING || mode == HAK_MODE_RESEARCH;
}

// Parsed from its own text.
hak_policy *policy_of(const hak_tuning &t)
{
    hak_policy_options options = HAK_POLICY_OPTIONS_INIT;
    options.tuning = &t;
    hak_policy *policy = hak_policy_new(nullptr, &options);
    REQUIRE(policy != nullptr);
    char text[1000];
    size_t n = hak_policy_print(policy, text, sizeof text);
    hak_policy_unref(policy);
    REQUIRE(n < sizeof text);
    policy = hak_policy_parse(nullptr, text, n, nullptr);
    REQUIRE(policy != nullptr);
    return policy;
}

struct InMode {
    FakeOs os;
    hak_space *space;
    hak_ctx *ctx;

    explicit InMode(hak_mode mode, hak_workload workload = HAK_WORKLOAD_TRACED, Way way = MODE,
                    size_t hak_tuning::*field = nullptr)
    {
        const hak_policy *policy = nullptr;
        hak_policy *made = nullptr;
        hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
        hak_options options = HAK_OPTIONS_INIT;
        hak_tuning tuning = HAK_TUNING_INIT;
        pages.os = os.table();
        pages.reserve = 1024 * MiB;
        options.workload = workload;
        if (way == NUMBER || way == POLICY_NUMBER) tuning.*field = numbers(mode, workload).*field;
        if (way == NUMBER) pages.tuning = options.tuning = &tuning;
        if (way == POLICY_NUMBER) policy = made = policy_of(tuning);
        if (way == POLICY || way == POLICY_LATER) policy = hak_policy_of_mode(mode);
        if (way == MODE) pages.mode = options.mode = mode;
        if (way == POLICY_LATER)
            pages.mode = options.mode = is_balanced(mode) ? HAK_MODE_LEAN : HAK_MODE_BALANCED;
        if (way == POLICY_NUMBER || way == POLICY) pages.policy = options.policy = policy;
        space = hak_space_new(&pages);
        REQUIRE(space != nullptr);
        ctx = hak_ctx_new(space, &options);
        REQUIRE(ctx != nullptr);
        // Copied: what becomes of it does not matter.
        std::memset(&tuning, 0xEE, sizeof tuning);
        if (way == POLICY_LATER) {
            REQUIRE(hak_ctx_policy_set(ctx, policy) == 0);
            hak_space_policy_set(space, policy);
        }
        hak_policy_unref(made);
    }
    ~InMode()
    {
        hak_ctx_destroy(ctx);
        hak_space_delete(space);
        CHECK(os.close() == "");
        CHECK(os.reserved() == 0);
    }
    size_t held() const
    {
        return hak_ctx_live_bytes(ctx) - stats_of(ctx).live_bytes;
    }
    // Bytes that stay committed after n blocks of `size` bytes came and went, so often.
    size_t kept(size_t size, unsigned n, unsigned rounds = 40)
    {
        size_t before = committed_of(ctx);
        std::vector<void *> p(n);
        for (unsigned round = 0; round < rounds; round++) {
            for (void *&block : p)
                REQUIRE((block = hak_alloc(ctx, size)) != nullptr);
            // Not in the order of addresses, which would be a sweep.
            for (unsigned i = 0; i < n; i++)
                hak_free(ctx, p[i * 7919 % n]);
        }
        require_sound(ctx);
        return committed_of(ctx) - before;
    }
};

} // namespace

TEST_CASE("a mode and a workload give the numbers that the header says")
{
    for (size_t m = 0; m < 6; m++)
        for (hak_workload workload : WORKLOADS) {
            hak_tuning t = numbers(MODES[m], workload);
            for (const Said &said : SAID) {
                CAPTURE(m, (int)workload, &said - SAID);
                const size_t at = m < 4 ? m : 0;
                CHECK(t.*said.field ==
                      (workload == HAK_WORKLOAD_COUNTED ? said.counted[at] : said.traced[at]));
            }
            CHECK(t.purge_ns == (MODES[m] == HAK_MODE_FAST ? UINT64_C(10000000000) : UINT64_C(1000000000)));
        }
}

TEST_CASE("hak_tuning_complete leaves what is given, and what the size does not cover")
{
    hak_tuning t;
    std::memset(&t, 0, sizeof t);
    t.size = offsetof(hak_tuning, big_cache);
    t.magazine = 8;
    REQUIRE(hak_tuning_complete(&t, HAK_MODE_FAST, HAK_WORKLOAD_MALLOC) == 0);
    CHECK(t.magazine == 8);
    CHECK(t.magazine_most == MiB);
    CHECK(t.big_cache == 0);
    t.size = 7;
    CHECK(hak_tuning_complete(&t, HAK_MODE_FAST, HAK_WORKLOAD_MALLOC) == -1);
    t.size = 0;
    CHECK(hak_tuning_complete(&t, HAK_MODE_FAST, HAK_WORKLOAD_MALLOC) == -1);
    hak_tuning_init(&t, sizeof t);
    CHECK(t.size == sizeof t);
    CHECK(all_bytes(reinterpret_cast<char *>(&t) + sizeof t.size, sizeof t - sizeof t.size, 0));
}

TEST_CASE("a mode, a workload or a tuning that is none is refused with a reason")
{
    Options options = ctx_options();
    SpaceOptions pages(HAK_SPACE_OPTIONS_INIT);
    std::string begins;
    SECTION("mode")
    {
        std::memset(&options.mode, 0xEE, sizeof options.mode);
        std::memset(&pages.mode, 0xEE, sizeof pages.mode);
        begins = "mode";
    }
    SECTION("size")
    {
        options.hak_tuning::size = pages.hak_tuning::size =
            GENERATE((size_t)0, (size_t)4, (size_t)12, SIZE_MAX);
        begins = "tuning.size";
    }
    SECTION("units_ahead")
    {
        options.units_ahead = pages.units_ahead = GENERATE((size_t)1, (size_t)65);
        begins = "tuning.units_ahead";
    }
    SECTION("populate_from")
    {
        options.populate_from = pages.populate_from = GENERATE((size_t)255, SIZE_MAX - 1);
        begins = "tuning.populate_from";
    }
    SECTION("retained_percent")
    {
        options.retained_percent = pages.retained_percent = 1001;
        begins = "tuning.retained_percent";
    }
    SECTION("retained_yields")
    {
        options.retained_yields = pages.retained_yields = 2;
        begins = "tuning.retained_yields";
    }
    const char *why = hak_options_error(&options), *why_space = hak_space_options_error(&pages);
    REQUIRE((why && why_space));
    CHECK(std::string(why).find(begins) == 0);
    CHECK(std::string(why_space).find(begins) == 0);
    CHECK(hak_ctx_new(nullptr, &options) == nullptr);
    CHECK(hak_space_new(&pages) == nullptr);
}

TEST_CASE("a smaller tuning lacks what is default")
{
    hak_tuning t = HAK_TUNING_INIT;
    t.size = offsetof(hak_tuning, magazine_most);
    t.magazine = HAK_NONE;
    t.magazine_most = 7; // not read
    hak_options options = HAK_OPTIONS_INIT;
    options.tuning = &t;
    REQUIRE(hak_options_error(&options) == nullptr);
    TestSpace s;
    TestCtx ctx(s.space, &options);
    hak_free(ctx, hak_alloc(ctx, 100));
    require_sound(ctx);
}

// Each of these runs with each mode, by each way.
#define FOR_EACH_MODE(field) FOR_EACH_MODE_BY(field, MODE, NUMBER, POLICY_NUMBER, POLICY, POLICY_LATER)
#define FOR_EACH_MODE_BY(field, ...)                                                                         \
    const hak_mode mode = MODES[(size_t)GENERATE(range(0, 6))];                                              \
    const Way way = GENERATE(__VA_ARGS__);                                                                   \
    const bool whole = way != NUMBER && way != POLICY_NUMBER;                                                \
    CAPTURE((int)mode, (int)way, whole);                                                                     \
    InMode m(mode, HAK_WORKLOAD_TRACED, way, &hak_tuning::field)

TEST_CASE("magazine: how many blocks are at hand, in each mode")
{
    FOR_EACH_MODE(magazine);
    m.kept(640, 512, 200); // beyond what is packed
    size_t most = numbers(mode, HAK_WORKLOAD_TRACED).magazine;
    CHECK(m.held() <= (most == NONE ? 0 : most) * 640);
    if (most != NONE) CHECK(m.held() > most / 4 * 640);
}

TEST_CASE("magazine_most: up to which size blocks are at hand, in each mode")
{
    FOR_EACH_MODE(magazine_most);
    m.kept(2048, 64); // the class, and those of this test, are open
    m.kept(40000, 8);
    size_t most = numbers(mode, HAK_WORKLOAD_TRACED).magazine_most;
    hak_ctx_flush(m.ctx);
    CHECK((m.kept(2048, 64) > 0) == (most != NONE));
    CHECK((m.kept(40000, 8) > 0) == (most == MiB));
}

TEST_CASE("packed_bytes: how much a young context commits, in each mode")
{
    FOR_EACH_MODE(packed_bytes);
    // 640 KiB of 20 sizes.
    for (size_t n = 16; n <= 320; n += 16)
        for (size_t i = 0; i < 32 * KiB; i += n)
            REQUIRE(hak_alloc(m.ctx, n) != nullptr);
    double ratio = (double)committed_of(m.ctx) / (double)stats_of(m.ctx).live_bytes;
    if (numbers(mode, HAK_WORKLOAD_TRACED).packed_bytes == 2 * MiB) CHECK(ratio < 1.2);
    else CHECK(ratio > 1.25);
    require_sound(m.ctx);
}

TEST_CASE("slab_sizes: which classes are never packed, in each mode")
{
    const hak_mode mode = GENERATE(from_range(std::begin(MODES), std::end(MODES)));
    const size_t given = GENERATE((size_t)0, (size_t)1 << 3 /* 32 bytes */);
    hak_tuning t = HAK_TUNING_INIT;
    t.slab_sizes = given;
    hak_options options = HAK_OPTIONS_INIT;
    options.mode = mode;
    options.tuning = &t;
    TestCtx ctx(nullptr, &options);
    const size_t first = committed_of(ctx);
    const bool packs = mode != HAK_MODE_MINIMAL;
    REQUIRE(hak_alloc(ctx, 24) != nullptr);
    CHECK((committed_of(ctx) > first) == !packs);
    const size_t before = committed_of(ctx);
    REQUIRE(hak_alloc(ctx, 32) != nullptr);
    CHECK((committed_of(ctx) > before) == (!packs || given));
    REQUIRE(hak_ctx_tuning(ctx, &t) == 0);
    CHECK(t.slab_sizes == (packs && given ? given : NONE));
    require_sound(ctx);
}

TEST_CASE("big_cache: what is kept of freed big blocks, in each mode")
{
    FOR_EACH_MODE(big_cache);
    hak_free(m.ctx, hak_alloc(m.ctx, 32 * MiB));
    hak_free(m.ctx, hak_alloc(m.ctx, 2 * MiB));
    size_t cached = stats_of(m.ctx).cached_bytes;
    if (mode == HAK_MODE_FAST) CHECK(cached >= 32 * MiB);
    else if (is_balanced(mode)) CHECK((cached >= 2 * MiB && cached < 4 * MiB));
    else CHECK(cached < MiB);
    // A quarter of it at first; where sizes come again, all.
    for (int i = 0; i < 3; i++)
        hak_free(m.ctx, hak_alloc(m.ctx, 2 * MiB));
    CHECK((stats_of(m.ctx).cached_bytes >= 2 * MiB) == (mode != HAK_MODE_MINIMAL));
    require_sound(m.ctx);
}

TEST_CASE("units_ahead: what a growing context sets aside, in each mode")
{
    FOR_EACH_MODE(units_ahead);
    for (unsigned i = 0; i < 64; i++)
        REQUIRE(hak_alloc(m.ctx, 512 * KiB) != nullptr);
    // Units that were never used are set aside, too: how many are known by what is committed and in use.
    for (unsigned i = 0; i < 100; i++)
        REQUIRE(hak_alloc(m.ctx, 1000) != nullptr);
    void *run = hak_alloc(m.ctx, 1 * MiB);
    REQUIRE(hak_alloc(m.ctx, 512 * KiB) != nullptr);
    hak_free(m.ctx, run);
    size_t retained = stats_of(m.ctx).retained_bytes, taken = 0;
    size_t ahead = numbers(mode, HAK_WORKLOAD_TRACED).units_ahead;
    if (whole && mode == HAK_MODE_MINIMAL) return; // nothing is retained there
    REQUIRE(retained >= 512 * KiB);
    for (int i = 0; i < 10000 && taken == 0; i++) {
        REQUIRE(hak_alloc(m.ctx, 1000) != nullptr);
        taken = retained - stats_of(m.ctx).retained_bytes;
    }
    CHECK(taken == (ahead == NONE ? 1 : ahead) * 16 * KiB);
}

TEST_CASE("populate_from: from which slab of a class on pages are asked for ahead, in each mode")
{
    FOR_EACH_MODE(populate_from);
    size_t from = numbers(mode, HAK_WORKLOAD_TRACED).populate_from;
    for (unsigned i = 0; i < 4 * MiB / 512 && m.os.counts.populate == 0; i++)
        REQUIRE(hak_alloc(m.ctx, 512) != nullptr);
    CHECK((m.os.counts.populate > 0) == (from != NONE));
    size_t slabs = stats_of(m.ctx).live_bytes / (16 * KiB);
    if (from == 2) CHECK(slabs < 16);
    if (from == 16) CHECK(slabs >= 16);
}

TEST_CASE("retained_bytes: which pages a space keeps, in each mode")
{
    FOR_EACH_MODE(retained_bytes);
    std::vector<void *> p;
    for (unsigned i = 0; i < 128; i++)
        p.push_back(hak_alloc(m.ctx, MiB));
    for (void *block : p)
        hak_free(m.ctx, block);
    hak_ctx_flush(m.ctx);
    size_t retained = stats_of(m.ctx).retained_bytes,
           said = numbers(mode, HAK_WORKLOAD_TRACED).retained_bytes;
    if (said == NONE) said = 0;
    CHECK(retained <= std::max(said, 128 * MiB));
    if (said >= 128 * MiB) CHECK(retained >= 120 * MiB);
    // In balanced mode a share of what is in use counts as well; nothing is, in the end.
    else CHECK(retained <= said + MiB);
}

TEST_CASE("retained_percent: a share of what is in use is kept, in each mode")
{
    FOR_EACH_MODE(retained_percent);
    std::vector<void *> p;
    for (unsigned i = 0; i < 700; i++)
        REQUIRE((p.push_back(hak_alloc(m.ctx, MiB)), p.back() != nullptr));
    for (unsigned i = 0; i < 320; i++)
        hak_free(m.ctx, p[i]);
    hak_ctx_flush(m.ctx);
    size_t retained = stats_of(m.ctx).retained_bytes,
           percent = numbers(mode, HAK_WORKLOAD_TRACED).retained_percent;
    // 380 MiB are in use.
    if (percent == 100) CHECK(retained >= 300 * MiB);
    else if (percent == 50) CHECK((retained >= 130 * MiB && retained <= 191 * MiB));
    else CHECK(retained <= 32 * MiB);
}

TEST_CASE("huge_from: from which heap on pages are advised to be huge, in each mode")
{
    FOR_EACH_MODE(huge_from);
    size_t from = numbers(mode, HAK_WORKLOAD_TRACED).huge_from;
    for (unsigned i = 0; i < 100 && m.os.counts.huge == 0; i++)
        REQUIRE(hak_alloc(m.ctx, MiB) != nullptr);
    if (from == NONE) {
        CHECK(m.os.counts.huge == 0);
        return;
    }
    CHECK(m.os.counts.huge == 1);
    CHECK(committed_of(m.ctx) >= from);
    CHECK(committed_of(m.ctx) < from + 4 * MiB);
}

TEST_CASE("retained_yields: at a new peak fresh pages purge retained ones, in each mode")
{
    FOR_EACH_MODE(retained_yields);
    std::vector<void *> small;
    for (unsigned i = 0; i < 128; i++)
        small.push_back(hak_alloc(m.ctx, 48 * KiB));
    for (unsigned i = 0; i < 128; i += 2)
        hak_free(m.ctx, small[i]);
    hak_ctx_flush(m.ctx);
    size_t retained = stats_of(m.ctx).retained_bytes;
    if (whole && mode == HAK_MODE_MINIMAL) CHECK(retained == 0);
    else CHECK(retained >= MiB);
    // Holes between runs are of no use for larger ones, which take fresh pages.
    for (unsigned i = 0; i < 24; i++)
        REQUIRE(hak_alloc(m.ctx, 512 * KiB) != nullptr);
    CHECK((stats_of(m.ctx).retained_bytes < retained) == (mode == HAK_MODE_LEAN));
}

TEST_CASE("purge_ns: after which time ticks release what is unused, in each mode")
{
    FOR_EACH_MODE(purge_ns);
    const uint64_t s = 1000000000;
    hak_free(m.ctx, hak_alloc(m.ctx, 2 * MiB));
    std::vector<void *> p;
    for (unsigned i = 0; i < 3; i++)
        p.push_back(hak_alloc(m.ctx, MiB));
    for (void *block : p)
        hak_free(m.ctx, block);
    hak_ctx_flush(m.ctx);
    size_t retained = stats_of(m.ctx).retained_bytes;
    for (uint64_t now = 1; now < 4 * s; now += s / 4)
        hak_ctx_tick(m.ctx, now);
    if (mode == HAK_MODE_FAST) CHECK(stats_of(m.ctx).retained_bytes == retained);
    else CHECK(stats_of(m.ctx).retained_bytes == 0);
    for (uint64_t now = 4 * s; now < 60 * s; now += s)
        hak_ctx_tick(m.ctx, now);
    CHECK(stats_of(m.ctx).retained_bytes == 0);
}

TEST_CASE("minimal: nothing is kept of what is freed, by a context or by its space")
{
    const hak_workload workload = GENERATE(HAK_WORKLOAD_TRACED, HAK_WORKLOAD_COUNTED, HAK_WORKLOAD_MALLOC);
    const size_t size = GENERATE((size_t)640, (size_t)3000, (size_t)20000, 300 * KiB, 3 * MiB);
    CAPTURE((int)workload, size);
    InMode m(HAK_MODE_MINIMAL, workload);
    m.kept(size, 64); // what is made once for the class
    uint64_t calls = m.os.counts.decommit + m.os.counts.release;
    CHECK(m.kept(size, 64, 4) == 0);
    CHECK(m.os.counts.decommit + m.os.counts.release >= calls + 4);
    CHECK(m.held() == 0);
    CHECK(stats_of(m.ctx).retained_bytes == 0);
}

TEST_CASE("workload: only a traced one takes frees in the order of addresses for a sweep")
{
    for (hak_workload workload : WORKLOADS) {
        TestSpace s;
        Options options = ctx_options();
        options.workload = workload;
        options.magazine = 32;
        options.packed_bytes = HAK_NONE;
        TestCtx ctx(s.space, &options);
        std::vector<void *> blocks;
        for (int i = 0; i < 200; i++)
            blocks.push_back(hak_alloc(ctx, 64));
        for (void *p : blocks)
            hak_free(ctx, p);
        CAPTURE((int)workload);
        CHECK((hak_alloc(ctx, 64) == blocks.back()) == (workload != HAK_WORKLOAD_TRACED));
    }
}

TEST_CASE("a context with a space of its own gives it its mode and tuning")
{
    hak_tuning t = HAK_TUNING_INIT;
    hak_options options = HAK_OPTIONS_INIT;
    bool kept = true;
    SECTION("balanced")
    {
    }
    SECTION("minimal")
    {
        options.mode = HAK_MODE_MINIMAL;
        kept = false;
    }
    SECTION("numbers")
    {
        t.retained_bytes = t.retained_percent = HAK_NONE;
        options.tuning = &t;
        kept = false;
    }
    TestCtx ctx(nullptr, &options);
    hak_free(ctx, hak_alloc(ctx, MiB));
    hak_ctx_flush(ctx);
    CHECK((stats_of(ctx).retained_bytes > 0) == kept);
}

TEST_CASE("the heaps of a shared context have its numbers")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = true;
    options.magazine = HAK_NONE;
    TestCtx ctx(s.space, &options);
    options.magazine = 128;
    hak_ctx *heap = hak_ctx_thread(ctx);
    REQUIRE(heap != nullptr);
    for (int i = 0; i < 100; i++)
        hak_free(heap, hak_alloc(heap, 640));
    CHECK(hak_ctx_live_bytes(ctx) == 0);
    CHECK(stats_of(ctx).live_bytes == 0);
    require_sound(ctx);
}
