// Windows of profiles, differences between them, and verdicts on what grows: programs with a planted leak,
// and clean ones.
#include "profiled.h"

#include <deque>
#include <unordered_map>

using namespace test;

namespace
{

std::map<hak_site, hak_profile_stack> diff_of(const hak_ctx *ctx, unsigned from, unsigned to)
{
    std::map<hak_site, hak_profile_stack> stacks;
    int rc = hak_profile_diff(
        ctx, from, to,
        [](void *user, const hak_profile_stack *s) {
            (*static_cast<std::map<hak_site, hak_profile_stack> *>(user))[s->site] = *s;
            return true;
        },
        &stacks);
    REQUIRE(rc == 0);
    return stacks;
}

std::vector<hak_profile_growth> grown_of(const hak_ctx *ctx)
{
    std::vector<hak_profile_growth> all;
    int rc = hak_profile_grown(
        ctx,
        [](void *user, const hak_profile_growth *g) {
            static_cast<std::vector<hak_profile_growth> *>(user)->push_back(*g);
            return true;
        },
        &all);
    REQUIRE(rc == 0);
    return all;
}

// A host that leaves the counting to the context, and one that counts itself.
struct Plain {
    hak_ctx *ctx;
    void *alloc(size_t n, hak_site site)
    {
        return hak_alloc_cs(ctx, n, 0, site);
    }
    void free(void *p)
    {
        hak_free(ctx, p);
    }
};

struct Counting {
    hak_ctx *ctx;
    std::unordered_map<void *, std::pair<hak_profile_counts *, size_t>> blocks;
    void *alloc(size_t n, hak_site site)
    {
        void *p = hak_alloc(ctx, n);
        const uintptr_t frame = site;
        hak_profile_counts *counts = hak_profile_counts_of(ctx, &frame, 1, 0);
        if (!p || !counts) FAIL("no memory");
        hak_profile_count_alloc(hak_profile_tally_of(ctx), counts, n);
        blocks[p] = {counts, n};
        return p;
    }
    void free(void *p)
    {
        const auto [counts, n] = blocks[p];
        hak_profile_count_free(hak_profile_tally_of(ctx), counts, n);
        blocks.erase(p);
        hak_free(ctx, p);
    }
};

// Requests: most memory is gone with its request; sessions live for a while; a cache fills up and is full;
// tables are made at the beginning. A leak of one in a hundred allocations, at site 99.
template <class Host>
void serve(Host &host, uint64_t seed, bool leaks, unsigned windows, size_t requests)
{
    Random random(seed);
    std::deque<void *> sessions;
    std::vector<void *> cache;
    for (int i = 0; i < 200; i++)
        if (!host.alloc(4000, 1)) FAIL("no memory");
    size_t session_most = 500 + random.below(3000), cache_most = 1000 + random.below(4000);
    for (unsigned w = 1; w <= windows; w++) {
        REQUIRE(hak_profile_mark(host.ctx, ("window " + std::to_string(w)).c_str()) == (int)w);
        for (size_t i = 0; i < requests; i++) {
            void *now[97];
            for (size_t j = 0; j < 97; j++)
                now[j] = host.alloc(20 + random.below(300), 10 + j % 5);
            sessions.push_back(host.alloc(100 + random.below(400), 2));
            if (cache.size() < cache_most) cache.push_back(host.alloc(200, 3));
            if (random.below(4) == 0 && !cache.empty()) {
                void *&old = cache[random.below(cache.size())];
                host.free(old);
                old = host.alloc(200, 3);
            }
            if (leaks && !host.alloc(50 + random.below(200), 99)) FAIL("no memory");
            while (sessions.size() > session_most) {
                host.free(sessions.front());
                sessions.pop_front();
            }
            for (void *p : now)
                host.free(p);
        }
    }
}

hak_profile_options sampled_options(uint64_t seed)
{
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mean = 4 * KiB;
    options.table_bytes = 8 * MiB;
    options.seed = seed;
    return options;
}

/* Twenty programs with a leak, twenty without. */
void find_leaks(bool counted)
{
    size_t found = 0, others = 0, alarms = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (bool leaks : {true, false}) {
            TestSpace s;
            TestCtx ctx(s.space);
            hak_profile_options options = sampled_options(seed);
            if (counted) options.mode = HAK_PROFILE_COUNTED;
            REQUIRE(hak_profile_start(ctx, &options) == 0);
            Plain plain{ctx};
            Counting counting{ctx, {}};
            if (counted) serve(counting, seed, leaks, 20, 500);
            else serve(plain, seed, leaks, 20, 500);
            uint32_t leak = 0;
            hak_profile_visit(
                ctx,
                [](void *user, const hak_profile_stack *stack) {
                    const hak_site site = stack->depth ? stack->frames[0] : stack->site;
                    if (site == 99) *static_cast<uint32_t *>(user) = stack->id;
                    return true;
                },
                &leak);
            for (const hak_profile_growth &g : grown_of(ctx)) {
                CHECK(g.low > 0);
                CHECK(g.bytes_a_window >= g.low);
                CHECK(g.high >= g.bytes_a_window);
                if (!g.leak) continue;
                CHECK(std::string(g.evidence).find("grew by") == 0);
                if (!leaks) alarms++;
                else if (g.stack != leak) others++;
                else found++;
            }
        }
    }
    INFO((counted ? "counted: " : "sampled: ") << "found " << found << " of 20, others blamed beside them "
                                               << others << ", in clean programs " << alarms);
    CHECK(found == 20);
    CHECK(others == 0);
    CHECK(alarms == 0);
}

} // namespace

TEST_CASE("profile windows: marks tell what the process holds if the host tells it")
{
    static size_t told;
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options options = exact_options();
    for (bool lent : {false, true}) {
        told = 0;
        options.resident = lent ? [] { return ++told * MiB; } : static_cast<size_t (*)()>(nullptr);
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        CHECK(told == 0);
        CHECK(hak_profile_mark(ctx, "a") == 1);
        CHECK(hak_profile_mark(ctx, "b") == 2);
        hak_profile_window windows[2] = {};
        CHECK(hak_profile_marks(ctx, windows, 2) == 2);
        CHECK(windows[0].resident_bytes == (lent ? 1 * MiB : 0));
        CHECK(windows[1].resident_bytes == (lent ? 2 * MiB : 0));
        REQUIRE(hak_profile_stop(ctx) == 0);
    }
}

TEST_CASE("profile windows: marks, names, differences")
{
    TestSpace s;
    TestCtx ctx(s.space);
    CHECK(hak_profile_mark(ctx, "x") == -1);
    CHECK(hak_profile_marks(ctx, nullptr, 0) == -1);
    CHECK(hak_profile_diff(ctx, 0, 1, nullptr, nullptr) == -1);
    CHECK(hak_profile_grown(ctx, nullptr, nullptr) == -1);
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    CHECK(hak_profile_marks(ctx, nullptr, 0) == 0);
    void *a = hak_alloc_cs(ctx, 1000, 0, 1);
    s.os.now = 500;
    size_t live = stats_of(ctx).live_bytes;
    CHECK(hak_profile_mark(ctx, "request 17") == 1);
    void *b = hak_alloc_cs(ctx, 64, 0, 2);
    hak_free(ctx, a);
    CHECK(hak_profile_mark(ctx, std::string(60, 'n').c_str()) == 2);
    void *c = hak_alloc_cs(ctx, 64, 0, 3);
    CHECK(hak_profile_mark(ctx, nullptr) == 3);
    hak_profile_window windows[4] = {};
    CHECK(hak_profile_marks(ctx, windows, 2) == 3);
    CHECK(std::string(windows[0].name) == "request 17");
    CHECK(windows[0].at_ns == 500);
    CHECK(windows[0].live_bytes == live);
    CHECK(windows[0].committed_bytes > live);
    CHECK(std::string(windows[1].name) == std::string(47, 'n'));
    CHECK(windows[2].name == nullptr);
    CHECK(info_of(ctx).marks == 3);

    auto first = diff_of(ctx, 0, 1), second = diff_of(ctx, 1, 2), now = diff_of(ctx, 3, 4);
    REQUIRE(first.size() == 1);
    CHECK(first[1].live_bytes == (double)live);
    REQUIRE(second.size() == 2);
    CHECK(second[1].live_bytes == -(double)live);
    CHECK(second[1].live_blocks == -1);
    CHECK(second[1].alloc_blocks == 0);
    CHECK(second[2].alloc_blocks == 1);
    CHECK(second[2].live_bytes_error == 0);
    CHECK(now.empty());
    CHECK(diff_of(ctx, 0, 4).size() == 3);
    for (auto [from, to] : {std::pair<unsigned, unsigned>{1, 1}, {2, 1}, {0, 5}})
        CHECK(hak_profile_diff(ctx, from, to, nullptr, nullptr) == -1);
    REQUIRE(hak_profile_reset(ctx) == 0);
    CHECK(hak_profile_marks(ctx, nullptr, 0) == 0);
    hak_free(ctx, b);
    hak_free(ctx, c);
}

TEST_CASE("profile windows: a full table refuses marks, and loses nothing")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options exact = exact_options(64 * KiB);
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    void *blocks[60] = {};
    const auto change = [&] {
        for (hak_site site = 1; site <= 60; site++) {
            hak_free(ctx, blocks[site - 1]);
            blocks[site - 1] = hak_alloc_cs(ctx, 16, 0, site);
            REQUIRE(blocks[site - 1] != nullptr);
        }
    };
    int marks = 0;
    for (change(); marks < 1000 && hak_profile_mark(ctx, "m") > 0; change())
        marks++;
    CHECK(marks >= 5);
    CHECK(marks < 20);
    CHECK(hak_profile_mark(ctx, "m") == -2);
    CHECK(info_of(ctx).marks == (unsigned)marks);
    CHECK(stacks_of(ctx).size() == 60);
    CHECK(info_of(ctx).table_bytes <= 64 * KiB);
    require_sound(ctx);
}

TEST_CASE("profile windows: planted leaks are found, clean programs are not blamed")
{
    find_leaks(false);
}

TEST_CASE("profile windows: the same, with every allocation counted")
{
    find_leaks(true);
}
