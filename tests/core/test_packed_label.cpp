// Labels of small packed blocks, which have half a byte for each 16 bytes: blocks of 16 and 24 bytes have
// room for labels up to 15 only, and neighbours share bytes.
#include "heap.h"

#include <hakmem/profile.h>

#include <map>

using namespace test;

namespace
{

constexpr hak_label LABELS = 253, HALF_MOST = 15;

const char *const *names()
{
    static const std::vector<std::string> texts = [] {
        std::vector<std::string> t;
        for (size_t i = 1; i <= LABELS; i++)
            t.push_back("label " + std::to_string(i));
        return t;
    }();
    static const std::vector<const char *> list = [] {
        std::vector<const char *> l;
        for (const std::string &text : texts)
            l.push_back(text.c_str());
        return l;
    }();
    return list.data();
}

Options labelled(uint32_t debug = 0)
{
    Options options = ctx_options();
    options.labels = names();
    options.label_count = LABELS;
    options.debug = debug;
    return options;
}

struct Held {
    unsigned char *p;
    size_t n;
    hak_label label;
    unsigned id;
};

// Blocks of one context, and what their labels are.
struct Held_blocks {
    hak_ctx *ctx;
    Random random;
    std::vector<Held> blocks;
    unsigned next = 0;
    size_t labels; // 0 = not yet

    Held_blocks(hak_ctx *of, uint64_t seed, size_t count) : ctx(of), random(seed), labels(count)
    {
    }
    size_t size()
    {
        return random.below(10) ? random.below(72) : 72 + random.below(600);
    }
    hak_label label()
    {
        return (hak_label)(labels && random.below(4) ? random.below(labels + 1) : 0);
    }
    static bool whole(const Held &b, size_t n)
    {
        for (size_t i = 0; i < n; i++)
            if (b.p[i] != content(i, b.id)) return false;
        return true;
    }
    static void fill(const Held &b)
    {
        for (size_t i = 0; i < b.n; i++)
            b.p[i] = content(i, b.id);
    }
    void add()
    {
        Held b{nullptr, size(), label(), next++};
        b.p = static_cast<unsigned char *>(random.below(8) ? hak_alloc_cs(ctx, b.n, b.label, 0)
                                                           : hak_calloc_cs(ctx, 1, b.n, b.label, 0));
        REQUIRE(b.p != nullptr);
        fill(b);
        blocks.push_back(b);
    }
    void drop(size_t i)
    {
        verify(blocks[i]);
        if (random.below(2)) hak_free(ctx, blocks[i].p);
        else hak_free_sized(ctx, blocks[i].p, blocks[i].n);
        blocks[i] = blocks.back();
        blocks.pop_back();
    }
    void change(size_t i)
    {
        Held &b = blocks[i];
        const size_t n = random.below(2) ? b.n : size();
        const bool keeps = random.below(3) == 0;
        if (!keeps) b.label = label();
        void *p = keeps ? hak_realloc(ctx, b.p, n) : hak_realloc_cs(ctx, b.p, n, b.label, 0);
        REQUIRE(p != nullptr);
        b.p = static_cast<unsigned char *>(p);
        const size_t kept = std::min(n, b.n);
        b.n = n;
        REQUIRE(whole(b, kept));
        fill(b);
    }
    void verify(const Held &b) const
    {
        INFO("block " << b.id << " of " << b.n << " bytes");
        REQUIRE(hak_label_of(ctx, b.p) == b.label);
        REQUIRE(whole(b, b.n));
    }
    // Each block, the sums, and what a visit tells.
    void verify() const
    {
        std::map<hak_label, Totals> expected, visited;
        for (const Held &b : blocks) {
            verify(b);
            expected[b.label].bytes += hak_usable_size(ctx, b.p);
            expected[b.label].blocks++;
        }
        std::vector<hak_label_info> infos(LABELS + 1u);
        const int count = hak_labels_stats(ctx, infos.data(), infos.size());
        REQUIRE((size_t)count == labels + 1);
        hak_ctx_visit(
            ctx,
            [](void *user, const hak_block *block) {
                Totals &t = (*static_cast<std::map<hak_label, Totals> *>(user))[block->label];
                t.bytes += block->size;
                t.blocks++;
                return true;
            },
            &visited);
        for (size_t i = 0; i <= labels; i++) {
            CAPTURE(i);
            REQUIRE(infos[i].live_bytes == expected[(hak_label)i].bytes);
            REQUIRE(infos[i].live_blocks == expected[(hak_label)i].blocks);
            REQUIRE(visited[(hak_label)i] == expected[(hak_label)i]);
        }
        require_sound(ctx);
    }
    void steps(size_t count, size_t most)
    {
        for (size_t i = 0; i < count; i++) {
            const size_t what = random.below(8);
            if (blocks.size() < most / 2 || (what < 3 && blocks.size() < most)) add();
            else if (what < 6) drop(random.below(blocks.size()));
            else change(random.below(blocks.size()));
        }
    }
    void clear()
    {
        while (!blocks.empty())
            drop(blocks.size() - 1);
    }
};

// Packed, and so near together that neighbours share bytes of labels.
bool packs(const hak_ctx *ctx)
{
    return committed_of(ctx) < 40 * KiB;
}

} // namespace

TEST_CASE("packed: neighbours of all small sizes keep their labels, whatever is done to one of them")
{
    TestSpace s;
    const Options options = labelled();
    for (size_t n : {16u, 24u, 32u, 40u, 48u, 56u, 64u, 72u})
        for (size_t beside : {16u, 24u, 32u, 40u, 56u, 64u, 200u}) {
            CAPTURE(n, beside);
            TestCtx ctx(s.space, &options);
            std::vector<std::pair<void *, hak_label>> blocks;
            for (hak_label i = 0; i < 60; i++) {
                // All bits of the label are of the one or of the other block's.
                const hak_label label =
                    i % 2 ? (hak_label)(i % 4 == 1 ? 15 : 0) : (hak_label)(i % 4 ? 0xF0 : 0);
                blocks.emplace_back(hak_alloc_cs(ctx, i % 2 ? n : beside, label, 0), label);
            }
            REQUIRE(packs(ctx));
            for (auto &changed : blocks) {
                for (const hak_label other : {(hak_label)5, (hak_label)0}) {
                    REQUIRE(hak_realloc_cs(ctx, changed.first, hak_usable_size(ctx, changed.first), other,
                                           0) == changed.first);
                    bool same = true;
                    for (const auto &b : blocks)
                        same &= hak_label_of(ctx, b.first) == (&b == &changed ? other : b.second);
                    REQUIRE(same);
                }
                changed.second = 0;
            }
        }
}

TEST_CASE("packed: a block of 16 or 24 bytes has labels up to 15; with a larger one it has 32 bytes")
{
    TestSpace s;
    const Options options = labelled();
    TestCtx ctx(s.space, &options);
    for (size_t n : {0u, 1u, 8u, 16u, 17u, 24u})
        for (const hak_label label : std::initializer_list<hak_label>{0, 1, 15, 16, 17, 240, 253}) {
            CAPTURE(n, label);
            void *p = hak_alloc_cs(ctx, n, label, 0);
            REQUIRE(hak_label_of(ctx, p) == label);
            const size_t size = hak_usable_size(ctx, p);
            if (label <= HALF_MOST) CHECK(size == (n <= 16 ? 16 : 24));
            else CHECK(size == 32);
        }
    REQUIRE(packs(ctx));
    require_sound(ctx);
}

TEST_CASE("packed: a realloc to a label for which a block has no room moves it")
{
    TestSpace s;
    const Options options = labelled();
    TestCtx ctx(s.space, &options);
    void *before = hak_alloc_cs(ctx, 16, 15, 0), *p = hak_alloc_cs(ctx, 16, 1, 0),
         *behind = hak_alloc_cs(ctx, 16, 15, 0);
    std::memset(p, 7, 16);
    REQUIRE(hak_realloc_cs(ctx, p, 16, 15, 0) == p);
    REQUIRE(hak_label_of(ctx, p) == 15);
    // The other forms, and smaller sizes, take the label as well.
    const int form = GENERATE(0, 1, 2, 3);
    CAPTURE(form);
    void *q = form == 0   ? hak_realloc_cs(ctx, p, 16, 200, 0)
              : form == 1 ? hak_realloc_sized_cs(ctx, p, 16, 16, 200, 0)
              : form == 2 ? hak_realloc_cs(ctx, p, 9, 200, 0)
                          : hak_aligned_realloc_cs(ctx, p, 16, 16, 200, 0);
    REQUIRE(q != nullptr);
    CHECK(q != p);
    CHECK(hak_label_of(ctx, q) == 200);
    for (int i = 0; i < (form == 2 ? 9 : 16); i++)
        REQUIRE(static_cast<unsigned char *>(q)[i] == 7);
    CHECK(hak_label_of(ctx, before) == 15);
    CHECK(hak_label_of(ctx, behind) == 15);
    // It has room by now.
    CHECK(hak_realloc_cs(ctx, q, 32, 253, 0) == q);
    CHECK(hak_label_of(ctx, q) == 253);
    require_sound(ctx);
}

TEST_CASE("packed: where there is no memory to move it a block keeps the label that it has")
{
    TestSpace s;
    const Options options = labelled();
    TestCtx ctx(s.space, &options);
    std::vector<void *> blocks;
    REQUIRE(hak_limit(ctx, 0, 64 * KiB, nullptr, nullptr) == 0);
    while (void *p = hak_alloc_cs(ctx, 16, 3, 0))
        blocks.push_back(p);
    const uint64_t failures = stats_of(ctx).failures;
    const size_t live = stats_of(ctx).live_bytes;
    for (void *p : blocks) {
        REQUIRE(hak_realloc_cs(ctx, p, 12, 200, 0) == p);
        REQUIRE(hak_label_of(ctx, p) == 3);
        REQUIRE(hak_aligned_realloc_cs(ctx, p, 16, 12, 200, 0) == p);
    }
    CHECK(stats_of(ctx).failures == failures);
    CHECK(stats_of(ctx).live_bytes == live);
    hak_label_info info;
    REQUIRE(hak_label_stats(ctx, 3, &info) == 0);
    CHECK(info.live_blocks == blocks.size());
    require_sound(ctx);
    // A small label needs no memory.
    REQUIRE(hak_realloc_cs(ctx, blocks[0], 16, 15, 0) == blocks[0]);
    CHECK(hak_label_of(ctx, blocks[0]) == 15);
}

TEST_CASE("packed: labels stay exact while blocks come, go, grow and change labels")
{
    // A limit keeps them packed, with magazines; a small one without.
    const size_t limit = GENERATE(0, 256 * KiB, 600 * KiB), most = limit == 600 * KiB ? 4000 : 1500;
    CAPTURE(limit);
    TestSpace s;
    const Options options = labelled();
    TestCtx ctx(s.space, &options);
    REQUIRE(hak_limit(ctx, 0, limit, nullptr, nullptr) == 0);
    Held_blocks held(ctx, limit + 1, LABELS);
    for (size_t round = 0; round < 10 * EFFORT; round++) {
        held.steps(3000, most);
        held.verify();
        if (round % 4 == 1) hak_ctx_trim(ctx);
        if (round % 8 == 3) held.clear();
        if (round % 8 == 3) hak_ctx_trim(ctx);
    }
    held.clear();
    held.verify();
}

TEST_CASE("packed: labels come when there are packed blocks, and magazines of them")
{
    const size_t limit = GENERATE(0, 600 * KiB);
    const bool profiled = GENERATE(false, true);
    CAPTURE(limit, profiled);
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_limit(ctx, 0, limit, nullptr, nullptr) == 0);
    Held_blocks held(ctx, 3, 0);
    held.steps(20000, 3000);
    held.verify();
    if (profiled) REQUIRE(hak_profile_start(ctx, nullptr) == 0);
    for (size_t i = 0; i < 40; i++)
        REQUIRE(hak_label_define(ctx, names()[i]) == i + 1);
    held.labels = 40;
    held.verify();
    held.steps(20000, 3000);
    held.verify();
    if (profiled) hak_profile_stop(ctx);
    held.steps(20000, 3000);
    held.verify();
    held.clear();
    held.verify();
}

TEST_CASE("packed: labels are exact under a profile that begins and ends")
{
    TestSpace s;
    const Options options = labelled();
    TestCtx ctx(s.space, &options);
    REQUIRE(hak_limit(ctx, 0, 600 * KiB, nullptr, nullptr) == 0);
    Held_blocks held(ctx, 5, LABELS);
    for (int round = 0; round < 6; round++) {
        hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
        profile.mode = round % 3 == 1 ? HAK_PROFILE_EXACT : HAK_PROFILE_SAMPLED;
        profile.mean = 4 * KiB;
        if (round) REQUIRE(hak_profile_start(ctx, &profile) == 0);
        held.steps(6000, 3000);
        held.verify();
        if (round) hak_profile_stop(ctx);
        held.steps(3000, 3000);
        held.verify();
    }
    held.clear();
}

TEST_CASE("packed: labels are exact in each debug mode")
{
    const uint32_t debug =
        GENERATE(as<uint32_t>(), HAK_DEBUG_CHECK, HAK_DEBUG_POISON, HAK_DEBUG_GUARD, HAK_DEBUG_CANARY,
                 HAK_DEBUG_QUARANTINE, HAK_DEBUG_TRACE, HAK_DEBUG_RANDOM);
    CAPTURE(debug);
    TestSpace s;
    Options options = labelled(debug);
    options.guard_every = 50;
    TestCtx ctx(s.space, &options);
    REQUIRE(hak_limit(ctx, 0, 3 * MiB, nullptr, nullptr) == 0);
    Held_blocks held(ctx, debug, LABELS);
    for (int round = 0; round < 4; round++) {
        held.steps(6000, 2000);
        for (const Held &b : held.blocks)
            held.verify(b);
    }
    held.clear();
}

TEST_CASE(
    "packed: where guard pages shut all magazines and a profile runs, blocks have their labels, or none")
{
    const bool has_labels = GENERATE(false, true);
    TestSpace s;
    Options options = has_labels ? labelled(HAK_DEBUG_GUARD) : ctx_options();
    options.debug = HAK_DEBUG_GUARD;
    options.guard_every = 1000000;
    TestCtx ctx(s.space, &options);
    REQUIRE(hak_limit(ctx, 0, 400 * KiB, nullptr, nullptr) == 0);
    Random random(3);
    std::vector<std::pair<void *, hak_label>> blocks(700);
    for (int turn = 0; turn < 60000; turn++) {
        if (turn == 30000) REQUIRE(hak_profile_start(ctx, nullptr) == 0);
        auto &[p, label] = blocks[random.below(blocks.size())];
        if (p && has_labels) REQUIRE(hak_label_of(ctx, p) == label);
        hak_free(ctx, p);
        label = has_labels ? (hak_label)(1 + random.below(LABELS)) : 0;
        p = hak_alloc_cs(ctx, 64 + random.below(300), label, 0);
        REQUIRE(p);
    }
    REQUIRE(hak_ctx_check(ctx, nullptr, nullptr));
}
