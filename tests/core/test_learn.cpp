// Learners, in simulated time: forecasts, what is kept to be read, contexts and threads that come and go.
#include "learned.h"

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace test;

TEST_CASE("learn: a heap that grows fast gets huge pages before it is large, and loses them if it stops")
{
    const bool goes_on = GENERATE(true, false);
    Learned l;
    size_t bytes = 0;
    for (int i = 0; i < 10 && (goes_on || l.log.count(HAK_DECISION_FORECAST) == 0); i++) {
        for (size_t grow = bytes ? bytes / 2 : 4 * MiB, end = bytes + grow; bytes < end; bytes += 512 * KiB)
            REQUIRE(hak_alloc(l.ctx, 512 * KiB) != nullptr);
        if (bytes < 60 * MiB && l.log.count(HAK_DECISION_FORECAST) == 0) CHECK(l.s.os.counts.huge == 0);
        l.tick();
    }
    CAPTURE(l.log.text());
    REQUIRE(l.log.count(HAK_DECISION_FORECAST) == 1);
    for (const hak_decision &d : l.log.list)
        if (d.kind == HAK_DECISION_FORECAST) CHECK(d.observed < 60.0 * MiB);
    hak_tuning t = HAK_TUNING_INIT;
    for (int i = 0; i < 6; i++)
        l.tick();
    REQUIRE(hak_ctx_tuning(l.ctx, &t) == 0);
    if (goes_on) {
        CHECK(l.s.os.counts.huge > 0);
        CHECK(l.log.count(HAK_DECISION_MET) == 1);
        CHECK(t.expected_bytes >= 64 * MiB);
    } else {
        CHECK(l.log.count(HAK_DECISION_MISSED) == 1);
        CHECK(t.expected_bytes == HAK_NONE);
    }
}

TEST_CASE("learn: a policy that expects a large heap expects it no more after a small one")
{
    const std::string text =
        "hakmem-policy 1\nname n\nmode fast\nhuge_from 8M\nexpected_bytes 390M\nroom 5 label a\n";
    hak_policy *policy = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    Learned l(policy);
    l.waves(1);
    CHECK(printed(hak_learner_policy(l.learner)) ==
          "hakmem-policy 1\nname n\nmode fast\nhuge_from 8M\nexpected_bytes none\nroom 5 label a\n");
    hak_policy_unref(policy);
}

TEST_CASE("learn: what a start of a twentieth of a window takes is seen, and serves the next")
{
    Learned l;
    for (int i = 0; i < 100; i++) {
        REQUIRE(hak_alloc(l.ctx, 1 * MiB) != nullptr);
        if (i == 0 || i == 99) hak_ctx_tick(l.ctx, l.now += SECOND / 40);
    }
    CHECK(printed(hak_learner_policy(l.learner)).find("expected_bytes 1") != std::string::npos);
}

TEST_CASE("learn: dry, it says what it would do, and does nothing")
{
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.dry = o.windows = true;
    Learned l(nullptr, o);
    for (int i = 0; i < 30; i++) {
        l.waves(100);
        REQUIRE(l.retained() == 32 * MiB);
        CHECK(hak_ctx_policy(l.ctx) == nullptr);
    }
    CHECK(l.log.text().find("would try retained_bytes") != std::string::npos);
    CHECK(l.log.count(HAK_DECISION_WINDOW) == 30);
}

TEST_CASE("learn: the same windows give the same decisions")
{
    std::string first;
    for (int run = 0; run < 2; run++) {
        Learned l;
        Random random(5);
        for (int i = 0; i < 100; i++)
            l.waves(random.below(120));
        if (run == 0) first = l.log.text();
        else CHECK(l.log.text() == first);
    }
    CHECK(!first.empty());
}

TEST_CASE("learn: windows tell what the process holds if the host tells it")
{
    static size_t told;
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.resident = [] { return ++told * MiB; };
    told = 0;
    Learned l(nullptr, o);
    for (int i = 0; i < 10; i++)
        l.waves(10);
    hak_window w = {};
    w.size = sizeof w;
    size_t n = 0;
    for (; hak_learner_window(l.learner, n, &w) == 0; n++)
        CHECK(w.resident_bytes == (n + 2) * MiB); // the first window is none yet
    CHECK(n + 1 == told);
    CHECK(n > 5);
}

TEST_CASE("learn: its last decisions and windows of all the time can be read")
{
    Learned l;
    hak_window w = {};
    hak_decision d = {};
    CHECK(hak_learner_window(l.learner, 0, &w) == -1);
    w.size = sizeof w;
    d.size = sizeof d;
    CHECK(hak_learner_window(l.learner, 0, &w) == -1);
    CHECK(hak_learner_decision(l.learner, 0, &d) == -1);
    void *p = hak_alloc(l.ctx, 3 * MiB);
    for (int i = 0; i < 40; i++)
        l.waves(100);
    size_t n = 0;
    for (; hak_learner_decision(l.learner, n, &d) == 0; n++) {
        REQUIRE(n < l.log.list.size());
        CHECK(d.window == l.log.list[n].window);
        CHECK(d.kind == l.log.list[n].kind);
        CHECK(std::string(d.text) == l.log.list[n].text);
    }
    CHECK(n == l.log.list.size());
    for (n = 0; hak_learner_window(l.learner, n, &w) == 0; n++) {
        CHECK(w.window == n + 1);
        CHECK(w.at_ns == 1 + (n + 2) * SECOND);
        CHECK(w.live_bytes >= 3 * MiB);
        CHECK(w.committed_bytes >= w.live_bytes);
        CHECK(w.cost >= 1);
    }
    CHECK(n == 40);
    CHECK(w.retained_bytes > 90 * MiB);
    // More windows than are kept: they thin out, and more decisions: the last ones stay.
    for (int i = 0; i < 4 * HAK_LEARNER_WINDOWS; i++)
        l.waves(i / 8 % 2 ? 1 : 40, 1);
    uint64_t before = 0, step = 0;
    for (n = 0; hak_learner_window(l.learner, n, &w) == 0; n++) {
        if (n) CHECK((step == 0 || w.window - before == step));
        if (n) step = w.window - before;
        before = w.window;
    }
    CHECK(n > HAK_LEARNER_WINDOWS / 2 - 1);
    CHECK(n <= HAK_LEARNER_WINDOWS);
    CHECK(before + step > l.info().windows);
    for (n = 0; hak_learner_decision(l.learner, n, &d) == 0;)
        n++;
    REQUIRE(n > 0);
    CHECK(n <= HAK_LEARNER_DECISIONS);
    REQUIRE(hak_learner_decision(l.learner, n - 1, &d) == 0);
    CHECK(std::string(d.text) == l.log.list.back().text);
    // An older caller's struct gets what it knows; a size that is none, nothing.
    size_t known = offsetof(hak_window, cost);
    hak_window old = {};
    old.size = known;
    old.cost = -1;
    REQUIRE(hak_learner_window(l.learner, 0, &old) == 0);
    CHECK(old.window > 0);
    CHECK(old.cost == -1);
    d.size = 4;
    CHECK(hak_learner_decision(l.learner, 0, &d) == -1);
    hak_free(l.ctx, p);
}

TEST_CASE("learn: what the policy of a space says stays, with what was learned on top")
{
    TestSpace s;
    hak_policy *pages = parsed("retained_percent 70\npurge_ns 2000000000\n");
    hak_space_policy_set(s.space, pages);
    hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    hak_learner *learner = hak_learner_new(nullptr, &o);
    CHECK(hak_ctx_learner(ctx) == nullptr);
    REQUIRE((learner && hak_learner_add(learner, ctx) == 0));
    CHECK(hak_ctx_learner(ctx) == learner);
    unsigned changes = 0;
    for (uint64_t now = 1; now < 60 * UINT64_C(1000000000); now += 1000000000) {
        std::vector<void *> wave;
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 200; i++)
                wave.push_back(hak_alloc(ctx, 512 * KiB));
            for (void *p : wave)
                hak_free(ctx, p);
            wave.clear();
            hak_ctx_flush(ctx);
        }
        s.os.now = now;
        hak_ctx_tick(ctx, now);
        hak_learner_info info{};
        info.size = sizeof info;
        REQUIRE(hak_learner_stats(learner, &info) == 0);
        changes += info.mode != HAK_MODE_BALANCED;
        hak_tuning t = HAK_TUNING_INIT;
        REQUIRE(hak_ctx_tuning(ctx, &t) == 0);
        REQUIRE(t.retained_percent == 70);
        REQUIRE(t.purge_ns == 2000000000);
    }
    CHECK(changes > 0);
    // What comes later begins where this one began.
    hak_ctx_destroy(ctx);
    hak_policy *left = hak_space_policy(s.space);
    CHECK(left == pages);
    hak_policy_unref(left);
    hak_learner_delete(learner);
    hak_policy_unref(pages);
}

TEST_CASE("learn: contexts of one learner are made ready for a fork, one after the other")
{
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    hak_space *space = hak_space_new(nullptr);
    hak_learner *learner = hak_learner_new(nullptr, nullptr);
    REQUIRE((space && learner));
    hak_ctx *contexts[] = {hak_ctx_new(space, &options), hak_ctx_new(space, nullptr),
                           hak_ctx_new(nullptr, &options)};
    for (hak_ctx *ctx : contexts)
        REQUIRE((ctx && hak_learner_add(learner, ctx) == 0));
    alarm(60); // a hang ends by a signal
    std::atomic<bool> done{false};
    std::thread ticker([&] {
        for (uint64_t now = 1; !done; now += 10000000)
            for (hak_ctx *ctx : {contexts[0], contexts[2]})
                hak_ctx_tick(ctx, now);
    });
    for (int i = 0; i < 100; i++) {
        for (hak_ctx *ctx : contexts)
            hak_ctx_fork_prepare(ctx);
        for (int k = 2; k >= 0; k--)
            hak_ctx_fork_parent(contexts[k]);
        std::this_thread::yield();
    }
    done = true;
    ticker.join();
    alarm(0);
    for (hak_ctx *ctx : contexts)
        hak_ctx_destroy(ctx);
    hak_learner_delete(learner);
    hak_space_delete(space);
}

#ifndef __SANITIZE_THREAD__ // the sanitizer's own runtime does not survive it
TEST_CASE("learn: a fork while another thread ticks finds the learner whole")
{
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.window_ns = 1;
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    hak_learner *learner = hak_learner_new(nullptr, &o);
    REQUIRE((ctx && learner && hak_learner_add(learner, ctx) == 0));
    std::atomic<bool> done{false};
    std::atomic<uint64_t> now{1};
    std::thread ticker([&] {
        while (!done)
            hak_ctx_tick(ctx, now += 10);
    });
    while (now < 1000)
        std::this_thread::yield();
    for (int i = 0; i < 30; i++) {
        hak_ctx_fork_prepare(ctx);
        pid_t child = fork();
        if (child == 0) {
            hak_ctx_fork_child(ctx);
            hak_ctx_tick(ctx, now += 10);
            _exit(0);
        }
        hak_ctx_fork_parent(ctx);
        int status = 1;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    done = true;
    ticker.join();
    hak_ctx_destroy(ctx);
    hak_learner_delete(learner);
}
#endif

TEST_CASE("learn: clocks that stand still, jump or run backwards do no harm")
{
    Learned l;
    for (int i = 0; i < 100; i++)
        l.tick(0);
    CHECK(l.info().windows == 0);
    l.waves(100);
    CHECK(l.info().windows == 1);
    l.tick(SECOND * 1000000);
    CHECK(l.info().windows == 2);
    l.now = 5;
    l.tick(0);
    CHECK(l.info().windows == 2);
    l.waves(100);
    CHECK(l.info().windows == 3);
    l.now = UINT64_MAX - 2 * SECOND;
    l.tick();
    l.tick();
    CHECK(l.until_frozen(100, 60) <= 60);
    require_sound(l.ctx);
}

TEST_CASE("learn: contexts come and go, and a learner may go first")
{
    TestSpace s;
    hak_learner *learner = hak_learner_new(s.os.table(), nullptr), *other = hak_learner_new(nullptr, nullptr);
    REQUIRE((learner && other));
    std::vector<hak_ctx *> all;
    for (int i = 0; i < HAK_LEARNER_CONTEXTS; i++) {
        all.push_back(hak_ctx_new(s.space, nullptr));
        REQUIRE(hak_learner_add(learner, all.back()) == 0);
        CHECK(hak_learner_add(other, all.back()) == -1);
    }
    TestCtx more(s.space);
    CHECK(hak_learner_add(learner, more) == -1);
    hak_ctx_destroy(all[7]);
    CHECK(hak_learner_add(learner, more) == 0);
    hak_learner_info info = {};
    info.size = sizeof info;
    REQUIRE(hak_learner_stats(learner, &info) == 0);
    CHECK(info.contexts == HAK_LEARNER_CONTEXTS);
    info.size = 4;
    CHECK(hak_learner_stats(learner, &info) == -1);
    hak_learner_delete(learner);
    hak_ctx_tick(more, 5 * SECOND);
    CHECK(hak_learner_add(other, more) == 0);
    for (size_t i = 0; i < all.size(); i++)
        if (i != 7) hak_ctx_destroy(all[i]);
    hak_learner_delete(other);
    hak_learner_delete(nullptr);
}

TEST_CASE(
    "learn: sizes that come and go in contexts that end soon have slabs from the first block on in the next")
{
    const int ended = GENERATE(20, 7), seconds = GENERATE(0, 60);
    TestSpace s;
    hak_learner *learner = hak_learner_new(s.os.table(), nullptr);
    REQUIRE(learner != nullptr);
    // Blocks of 32 and 56 bytes come and go; those of 40 stay, and a few of 100 do either.
    auto work = [](hak_ctx *ctx) {
        std::vector<void *> stay;
        for (int i = 0; i < 300; i++) {
            stay.push_back(hak_alloc(ctx, 40));
            for (size_t n : {32, 56})
                hak_free(ctx, hak_alloc(ctx, n));
            if (i % 10 == 0) hak_free(ctx, hak_alloc(ctx, 100));
            REQUIRE(stay.back() != nullptr);
        }
        require_sound(ctx);
    };
    for (int i = 0; i < ended; i++) {
        hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
        REQUIRE((ctx && hak_learner_add(learner, ctx) == 0));
        hak_ctx_tick(ctx, 1 + (uint64_t)i * 100 * SECOND);
        work(ctx);
        hak_ctx_tick(ctx, 1 + (uint64_t)(i * 100 + seconds) * SECOND);
        hak_ctx_destroy(ctx);
    }
    hak_policy *policy = hak_learner_policy(learner);
    const bool learned = ended >= 8 && seconds == 0;
    const size_t sizes = 1 << 3 | 1 << 6; // of 8 i + 8 bytes
    CHECK(printed(hak_policy_ref(policy)) ==
          (learned ? "hakmem-policy 1\nslab_sizes " + std::to_string(sizes) + "\n" : "hakmem-policy 1\n"));
    hak_options options = HAK_OPTIONS_INIT;
    options.policy = policy;
    TestCtx next(s.space, &options);
    hak_tuning t = HAK_TUNING_INIT;
    REQUIRE(hak_ctx_tuning(next, &t) == 0);
    CHECK(t.slab_sizes == (learned ? sizes : HAK_NONE));
    const size_t before = committed_of(next);
    CHECK(hak_alloc(next, 40) != nullptr);
    CHECK(committed_of(next) == before);
    CHECK(hak_alloc(next, 32) != nullptr);
    CHECK((committed_of(next) > before) == learned);
    work(next);
    hak_policy_unref(policy);
    hak_learner_delete(learner);
}

TEST_CASE("learn: contexts that end with their space leave their learner")
{
    hak_learner *learner = hak_learner_new(nullptr, nullptr);
    hak_learner_info info = {};
    info.size = sizeof info;
    {
        TestSpace s;
        hak_options options = HAK_OPTIONS_INIT;
        for (int i = 0; i < 4; i++) {
            options.shared = i % 2;
            hak_ctx *ctx = hak_ctx_new(s.space, &options);
            REQUIRE(hak_learner_add(learner, ctx) == 0);
        }
        TestCtx full(s.space);
        REQUIRE(hak_limit(full, 0, committed_of(full), nullptr, nullptr) == 0);
        CHECK(hak_learner_add(learner, full) == -1);
        hak_ctx *own = hak_ctx_new(nullptr, nullptr);
        REQUIRE(hak_learner_add(learner, own) == 0);
        hak_ctx_destroy(own);
        REQUIRE(hak_learner_stats(learner, &info) == 0);
        CHECK(info.contexts == 4);
    }
    REQUIRE(hak_learner_stats(learner, &info) == 0);
    CHECK(info.contexts == 0);
    hak_learner_delete(learner);
}

TEST_CASE("learn: threads with contexts of their own that die while they are learned from")
{
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.window_ns = 1000;
    TestSpace s;
    hak_learner *learner = hak_learner_new(nullptr, &o);
    std::atomic<uint64_t> now{1};
    std::vector<std::thread> crew;
    for (unsigned t = 0; t < 4; t++)
        crew.emplace_back([&, t] {
            for (unsigned life = 0; life < 20; life++) {
                hak_options options = HAK_OPTIONS_INIT;
                options.shared = (life + t) % 2;
                hak_ctx *ctx = hak_ctx_new(s.space, &options);
                if (hak_learner_add(learner, ctx) != 0) std::abort();
                for (unsigned i = 0; i < 60; i++) {
                    void *p = hak_alloc(ctx, 300 * KiB);
                    if (!hak_alloc(ctx, 100)) std::abort();
                    hak_learner_progress(learner, 1);
                    hak_ctx_tick(ctx, now += 400);
                    hak_free(ctx, p);
                }
                hak_policy_unref(hak_learner_policy(learner));
                hak_ctx_destroy(ctx);
            }
        });
    for (std::thread &t : crew)
        t.join();
    hak_learner_info info;
    info.size = sizeof info;
    REQUIRE(hak_learner_stats(learner, &info) == 0);
    CHECK(info.contexts == 0);
    CHECK(info.windows > 10);
    hak_learner_delete(learner);
}

TEST_CASE("learn: options that are none, and no memory")
{
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    std::string begins;
    SECTION("size") o.size = 12, begins = "hak_learner_options.size";
    SECTION("retained_most") o.retained_most = 100, begins = "retained_most";
    SECTION("price") o.price = -1, begins = "price";
    SECTION("price above") o.price = 2, begins = "price";
    if (!begins.empty()) {
        const char *why = hak_learner_options_error(&o);
        REQUIRE(why != nullptr);
        CHECK(std::string(why).find(begins) == 0);
        CHECK(hak_learner_new(nullptr, &o) == nullptr);
        return;
    }
    FakeOs os;
    for (uint64_t n = 1; n <= 2; n++) {
        os.fail_nth(n);
        CHECK(hak_learner_new(os.table(), nullptr) == nullptr);
        CHECK(os.reserved() == 0);
    }
    CHECK(os.close() == "");
}
