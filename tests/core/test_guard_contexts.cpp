// Drawn blocks of several contexts and threads, when contexts end, and the text of a report.
#include "guarded.h"

#include <set>

using namespace test;

TEST_CASE("a quota gets back what drawn blocks took, when their context is destroyed")
{
    hak_quota *quota = hak_quota_new(nullptr, 0);
    {
        Guarded c([&](Options &o) { o.quota = quota; });
        for (int i = 0; i < 10; i++)
            REQUIRE(drawn(c, hak_alloc(c, 100)));
        CHECK(hak_quota_used(quota) == committed_of(c));
        CHECK(hak_quota_used(quota) >= 10 * PAGE);
    }
    CHECK(hak_quota_used(quota) == 0);
    hak_quota_delete(quota);
}

TEST_CASE(
    "blocks of a context that was destroyed cannot be touched, and are told by another one of the space")
{
    TestSpace s;
    Options options = ctx_options();
    every(options);
    options.labels = LABELS;
    options.label_count = 3;
    bool shared = GENERATE(false, true);
    options.shared = shared;
    TestCtx other(s.space);
    hak_ctx *ctx = hak_ctx_new(s.space, &options);
    char *p = static_cast<char *>(hak_alloc_cs(ctx, 100, 3, 0));
    REQUIRE(drawn(ctx, p));
    hak_ctx_destroy(ctx);
    CHECK(hak_ctx_of(s.space, p) == nullptr);
    Fault f = fault_of(other, [&] { touch(p, 5); });
    CHECK(f.report.error == HAK_E_USE_AFTER_FREE);
    CHECK(std::string(f.report.label_name) == "blue");
    CHECK(f.text.find("freed with its context") != std::string::npos);
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    CHECK(hak_space_guard_explain(s.space, p, &r));
    // The place is somebody else's; the old context's address may be, too.
    ctx = hak_ctx_new(s.space, &options);
    hak_free(ctx, p);
    void *all[64];
    for (void *&q : all)
        q = hak_alloc(ctx, 100);
    require_sound(ctx);
    CHECK(drawn(ctx, all[63]));
    hak_ctx_retire(ctx);
    for (void *q : all)
        hak_free(ctx, q);
}

TEST_CASE("a space of its own, profiles, trims and the end of a thread go with drawn blocks")
{
    Options options = ctx_options();
    every(options);
    options.guard_every = 3;
    options.shared = GENERATE(false, true);
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    REQUIRE(ctx != nullptr);
    hak_profile_options exact = HAK_PROFILE_OPTIONS_INIT;
    exact.mode = HAK_PROFILE_EXACT;
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    std::vector<void *> p;
    size_t seen = 0;
    for (int i = 0; i < 150; i++) {
        p.push_back(hak_alloc(ctx, 50));
        seen += drawn(ctx, p.back());
    }
    CHECK(seen > 20);
    double live = 0;
    hak_profile_visit(
        ctx,
        [](void *user, const hak_profile_stack *stack) {
            *static_cast<double *>(user) += stack->live_bytes;
            return true;
        },
        &live);
    CHECK(live == (double)stats_of(ctx).live_bytes);
    REQUIRE(hak_profile_stop(ctx) == 0);
    for (int i = 0; i < 150; i++) {
        void *q = hak_alloc(ctx, 50);
        seen += drawn(ctx, q);
        hak_free(ctx, q);
    }
    CHECK(seen > 60);
    hak_ctx_trim(ctx);
    hak_ctx_thread_done(ctx);
    require_sound(ctx);
    for (void *q : p)
        hak_free(ctx, q);
    CHECK(stats_of(ctx).live_bytes == 0);
    hak_ctx_destroy(ctx);
}

TEST_CASE("a free by another context leaves no name in the record of a drawn block")
{
    Guarded a;
    Options options = a.options;
    Errors ignored;
    options.error_user = &ignored;
    options.tuning = &options;
    TestCtx b(a.space.space, &options);
    char *p = static_cast<char *>(hak_alloc(b, 100));
    REQUIRE(drawn(b, p));
    hak_free_cs(a, p, 4711);
    CHECK(a.errors.take() == "HAK_E_FOREIGN");
    hak_free(b, p);
    Fault f = fault_of(b, [&] { touch(p, 5); });
    CHECK(f.report.error == HAK_E_USE_AFTER_FREE);
    CHECK(f.report.released.site == 0);
}

TEST_CASE("drawn blocks freed by other threads are gone at once")
{
    Guarded c([](Options &o) { o.shared = true; });
    for (int round = 0; round < 20; round++) {
        char *p = static_cast<char *>(hak_alloc_cs(c, 100, 1, 0x77));
        REQUIRE(drawn(c, p));
        std::thread([&] { hak_free_cs(c, p, 0x88); }).join();
        CHECK_FALSE(c.space.os.usable(p, 1));
        hak_guard_report r = HAK_GUARD_REPORT_INIT;
        REQUIRE(hak_guard_explain(c, p, &r));
        CHECK(r.freed);
        CHECK(r.released.site == 0x88);
    }
    require_sound(c);
}

TEST_CASE("threads draw from one pool")
{
    Guarded c([](Options &o) {
        o.shared = true;
        o.guard_every = 2;
    });
    std::atomic<size_t> seen{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            Random random(t);
            std::vector<Block> live;
            for (unsigned i = 0; i < 2000 * EFFORT; i++) {
                if (live.size() > 20 || (live.size() && random.below(2))) {
                    size_t at = random.below(live.size());
                    if (!filled(live[at].p, live[at].n, live[at].id)) abort();
                    hak_free(c, live[at].p);
                    live[at] = live.back();
                    live.pop_back();
                } else {
                    size_t n = 1 + random.below(2000);
                    void *p = hak_alloc_cs(c, n, (hak_label)(i % 4), 0);
                    fill(p, n, i);
                    seen += drawn(c, p);
                    live.push_back({p, n, i});
                }
            }
            for (Block &b : live)
                hak_free(c, b.p);
            hak_ctx_thread_done(c);
        });
    for (std::thread &t : threads)
        t.join();
    CHECK(seen > 100);
    require_sound(c);
    CHECK(stats_of(c).live_bytes == 0);
    CHECK(c.errors.take() == "");
}

TEST_CASE("the text of a report fits the room that there is")
{
    Guarded c;
    char *p = static_cast<char *>(hak_alloc_cs(c, 10, 1, 5));
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    REQUIRE(hak_guard_explain(c, p + 3, &r));
    char whole[1024];
    size_t n = hak_guard_text(&r, whole, sizeof whole);
    CHECK(std::string(whole).find("access at 0x") != std::string::npos);
    CHECK(std::string(whole).find(", 3 bytes into a block of 10 bytes") != std::string::npos);
    REQUIRE(n == std::strlen(whole));
    for (size_t room = 1; room <= n; room++) {
        char part[1024];
        std::memset(part, 'x', sizeof part);
        REQUIRE(hak_guard_text(&r, part, room) == room - 1);
        REQUIRE(part[room] == 'x');
        REQUIRE(std::string(part) == std::string(whole, room - 1));
    }
    r.size = 7;
    CHECK_FALSE(hak_guard_explain(c, p, &r));
}
