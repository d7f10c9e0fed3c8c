// Windows that the clock begins: when, how many, what they say, and within which memory.
#include "profiled.h"

#include <hakmem/tuning.h>

#include <thread>

using namespace test;

namespace
{

constexpr uint64_t SECOND = 1000000000;

std::vector<hak_profile_window> windows_of(const hak_ctx *ctx)
{
    std::vector<hak_profile_window> all((size_t)hak_profile_marks(ctx, nullptr, 0));
    CHECK(hak_profile_marks(ctx, all.data(), all.size()) == (int)all.size());
    return all;
}

// Live bytes of a site when window `number` began.
double live_at(const hak_ctx *ctx, unsigned number, hak_site site)
{
    std::pair<hak_site, double> wanted{site, 0};
    hak_profile_diff(
        ctx, 0, number,
        [](void *user, const hak_profile_stack *s) {
            auto *w = static_cast<std::pair<hak_site, double> *>(user);
            if (s->site == w->first) w->second = s->live_bytes;
            return true;
        },
        &wanted);
    return wanted.second;
}

using Kept = std::map<std::pair<uint32_t, unsigned>, double>;

Kept kept_of(const hak_ctx *ctx)
{
    Kept kept;
    REQUIRE(hak_profile_kept(
                ctx,
                [](void *user, uint32_t stack, unsigned window, double bytes) {
                    (*static_cast<Kept *>(user))[{stack, window}] += bytes;
                    return true;
                },
                &kept) == 0);
    return kept;
}

hak_profile_options timed(hak_profile_options options, uint64_t window_ns)
{
    options.window_ns = window_ns;
    return options;
}

} // namespace

TEST_CASE("profile by time: none unless asked for, and within its range")
{
    TestSpace s;
    TestCtx ctx(s.space);
    CHECK(hak_profile_kept(ctx, nullptr, nullptr) == -1);
    hak_profile_options options = exact_options();
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    for (int i = 0; i < 200; i++) {
        s.os.now += 100 * SECOND;
        hak_free(ctx, hak_alloc(ctx, 100));
        hak_ctx_tick(ctx, 0);
    }
    CHECK(info_of(ctx).marks == 0);
    CHECK(info_of(ctx).window_ns == 0);
    for (uint64_t wrong : {(uint64_t)1, (uint64_t)999999, UINT64_MAX}) {
        const hak_profile_options broken = timed(exact_options(), wrong);
        CHECK(std::string(hak_profile_options_error(&broken)).find("window_ns") == 0);
    }
}

TEST_CASE("profile by time: 32 windows of one length over all the time, with what was live")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const hak_profile_options options = timed(exact_options(), SECOND);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    const uint64_t start = info_of(ctx).started_ns;
    std::map<uint64_t, double> truth; // live bytes of site 1 by the second at which a window may begin
    std::map<uint64_t, double> grown; // bytes of site 1 by the second of their birth
    double live = 0;
    REQUIRE(hak_alloc_cs(ctx, 5000, 0, 2) != nullptr); // and never again
    for (uint64_t second = 1; second <= 1000; second++) {
        for (size_t i = 0; i < second % 3; i++) {
            void *p = hak_alloc_cs(ctx, 64, 0, 1);
            live += (double)hak_usable_size(ctx, p);
            grown[second] += (double)hak_usable_size(ctx, p);
        }
        hak_free(ctx, hak_alloc_cs(ctx, 64, 0, 1));
        s.os.now = start + second * SECOND;
        truth[second] = live;
        hak_ctx_tick(ctx, 0);
    }
    const auto windows = windows_of(ctx);
    CHECK(windows.size() > 15);
    CHECK(windows.size() <= 32);
    CHECK(info_of(ctx).window_ns == 32 * SECOND);
    const Kept kept = kept_of(ctx);
    uint64_t from = 0;
    for (unsigned i = 0; i <= windows.size(); i++) {
        const uint64_t second = i < windows.size() ? (windows[i].at_ns - start) / SECOND : 1000;
        INFO("window " << i + 1 << " at " << second);
        if (i < windows.size()) {
            CHECK(windows[i].at_ns == start + (i + 1) * 32 * SECOND);
            CHECK(std::string(windows[i].name).empty());
            CHECK(live_at(ctx, i + 1, 1) == truth[second]);
            CHECK(live_at(ctx, i + 1, 2) > 0);
        }
        double born = 0;
        for (uint64_t at = from + 1; at <= second; at++)
            born += grown.count(at) ? grown[at] : 0;
        const uint32_t stack = stacks_of(ctx)[{1, 0}].id;
        CHECK((kept.count({stack, i}) ? kept.at({stack, i}) : 0) == born);
        from = second;
    }
    require_sound(ctx);
}

TEST_CASE("profile by time: a sample begins the window, and a profile that has stopped begins none")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mean = 1024;
    options.window_ns = 60 * SECOND;
    static int looked;
    looked = 0;
    options.resident = []() -> size_t { return (size_t)++looked * MiB; };
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    void *p = hak_alloc_cs(ctx, 100 * KiB, 0, 1);
    s.os.now += 61 * SECOND;
    CHECK(info_of(ctx).marks == 0);
    void *q = hak_alloc_cs(ctx, 100 * KiB, 0, 2);
    REQUIRE(info_of(ctx).marks == 1);
    CHECK(windows_of(ctx)[0].resident_bytes == 1 * MiB);
    CHECK(windows_of(ctx)[0].live_bytes >= 100 * KiB);
    CHECK(windows_of(ctx)[0].committed_bytes >= windows_of(ctx)[0].live_bytes);
    CHECK(live_at(ctx, 1, 1) > 0);
    CHECK(live_at(ctx, 1, 2) == 0);
    const Kept kept = kept_of(ctx);
    CHECK(kept.count({1, 0}) == 1);
    CHECK(kept.count({2, 1}) == 1);
    REQUIRE(hak_profile_stop(ctx) == 0);
    s.os.now += 1000 * SECOND;
    hak_ctx_tick(ctx, 0);
    CHECK(info_of(ctx).marks == 1);
    CHECK(looked == 1);
    hak_free(ctx, p);
    hak_free(ctx, q);
}

TEST_CASE("profile by time: the program's own marks take the place of the clock's; a reset begins anew")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const hak_profile_options options = timed(exact_options(), SECOND);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    void *first = hak_alloc_cs(ctx, 100, 0, 1);
    const double one = (double)hak_usable_size(ctx, first);
    const auto pass = [&](int seconds) {
        for (int i = 0; i < seconds; i++) {
            s.os.now += SECOND;
            REQUIRE(hak_alloc_cs(ctx, 100, 0, 1) != nullptr);
            hak_ctx_tick(ctx, 0);
        }
    };
    pass(20);
    CHECK(info_of(ctx).marks == 20);
    CHECK(hak_profile_mark(ctx, "deploy") == 1);
    pass(20);
    CHECK(hak_profile_mark(ctx, "second") == 2);
    CHECK(info_of(ctx).window_ns == 0);
    CHECK(std::string(windows_of(ctx)[0].name) == "deploy");
    CHECK(live_at(ctx, 1, 1) == 21 * one);
    CHECK(live_at(ctx, 2, 1) == 41 * one);
    REQUIRE(hak_profile_reset(ctx) == 0);
    CHECK(info_of(ctx).marks == 0);
    CHECK(info_of(ctx).window_ns == SECOND);
    pass(1);
    CHECK(info_of(ctx).marks == 1);
}

TEST_CASE("profile by time: a clock that jumps to its end and back begins few windows")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const hak_profile_options options = timed(exact_options(), SECOND);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    for (uint64_t now :
         {(uint64_t)5 * SECOND, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX, (uint64_t)1, (uint64_t)9 * SECOND}) {
        s.os.now = now;
        for (int i = 0; i < 200; i++)
            REQUIRE(hak_alloc_cs(ctx, 64, 0, 1) != nullptr);
        hak_ctx_tick(ctx, 0);
        CHECK(info_of(ctx).marks <= 32);
        CHECK(hak_profile_grown(
                  ctx, [](void *, const hak_profile_growth *) { return true; }, nullptr) == 0);
    }
    require_sound(ctx);
}

TEST_CASE("profile by time: in a small table windows become fewer, and no stack is lost to them")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const hak_profile_options options = timed(exact_options(128 * KiB), SECOND);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    std::vector<void *> blocks(100);
    for (int i = 0; i < 500; i++) {
        for (size_t site = 0; site < blocks.size(); site++) {
            hak_free(ctx, blocks[site]);
            blocks[site] = hak_alloc_cs(ctx, 64 + 8 * (i % 4), 0, 1 + site);
        }
        s.os.now += SECOND;
        hak_ctx_tick(ctx, 0);
    }
    CHECK(stacks_of(ctx).size() == blocks.size());
    CHECK(info_of(ctx).dropped_stacks + info_of(ctx).dropped_samples == 0);
    CHECK(info_of(ctx).table_bytes <= 128 * KiB);
    const auto windows = windows_of(ctx);
    CHECK(windows.size() >= 2);
    CHECK(windows.back().at_ns >= s.os.now - info_of(ctx).window_ns);
    for (unsigned i = 1; i <= windows.size(); i++)
        CHECK(live_at(ctx, i, 7) > 0);
    require_sound(ctx);
}

TEST_CASE("profile by time: what does not change takes no room")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const hak_profile_options options = timed(exact_options(), SECOND);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    for (hak_site site = 1; site <= 2000; site++)
        REQUIRE(hak_alloc_cs(ctx, 64, 0, site) != nullptr);
    s.os.now += SECOND;
    hak_ctx_tick(ctx, 0);
    const size_t once = info_of(ctx).table_bytes;
    for (int i = 0; i < 1000; i++) {
        s.os.now += SECOND;
        hak_ctx_tick(ctx, 0);
    }
    CHECK(info_of(ctx).marks > 15);
    CHECK(info_of(ctx).table_bytes <= once + 64 * KiB);
}

TEST_CASE("profile by time: threads of a shared context begin each window once")
{
    hak_options shared = HAK_OPTIONS_INIT;
    shared.shared = true;
    hak_ctx *ctx = hak_ctx_new(nullptr, &shared);
    REQUIRE(ctx != nullptr);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mean = 1024;
    options.window_ns = 1000000;
    options.table_bytes = 4 * MiB;
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    std::vector<std::thread> threads;
    for (hak_site t = 1; t <= 4; t++)
        threads.emplace_back([ctx, t] {
            std::vector<void *> live(64);
            for (size_t i = 0; i < 30000; i++) {
                void *&p = live[i % live.size()];
                hak_free(ctx, p);
                p = hak_alloc_cs(ctx, 1000, 0, 100 * t + i % 50);
            }
            for (void *p : live)
                hak_free(ctx, p);
            hak_ctx_thread_done(ctx);
        });
    for (std::thread &t : threads)
        t.join();
    const auto windows = windows_of(ctx);
    CHECK(windows.size() <= 32);
    for (size_t i = 1; i < windows.size(); i++)
        CHECK(windows[i].at_ns > windows[i - 1].at_ns);
    CHECK(kept_of(ctx).empty());
    hak_ctx_destroy(ctx);
}
