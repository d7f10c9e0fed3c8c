// Learners, in simulated time: what they decide, by its effect, and what they leave alone.
#include "heap.h"

#include <hakmem/learn.h>

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace test;

namespace
{

const uint64_t SECOND = 1000000000;

struct Log {
    std::vector<hak_decision> list;
    static void note(void *user, const hak_decision *decision)
    {
        static_cast<Log *>(user)->list.push_back(*decision);
    }
    size_t count(hak_decision_kind kind) const
    {
        size_t n = 0;
        for (const hak_decision &d : list)
            n += d.kind == kind;
        return n;
    }
    std::string text() const
    {
        std::string all;
        for (const hak_decision &d : list)
            all += std::to_string(d.window) + ": " + d.text + "\n";
        return all;
    }
};

// A context that is learned from, and a clock moved by hand.
struct Learned {
    TestSpace s;
    Log log;
    hak_learner *learner;
    hak_ctx *ctx;
    uint64_t now = 1;

    explicit Learned(const hak_policy *policy = nullptr, hak_learner_options o = HAK_LEARNER_OPTIONS_INIT)
        : s([](SpaceOptions &options) { options.reserve = 4096 * MiB; })
    {
        o.log = Log::note;
        o.user = &log;
        REQUIRE(hak_learner_options_error(&o) == nullptr);
        learner = hak_learner_new(s.os.table(), &o);
        REQUIRE(learner != nullptr);
        hak_options options = HAK_OPTIONS_INIT;
        options.policy = policy;
        ctx = hak_ctx_new(s.space, &options);
        REQUIRE(ctx != nullptr);
        if (policy) hak_space_policy_set(s.space, policy);
        REQUIRE(hak_learner_add(learner, ctx) == 0);
        tick();
    }
    ~Learned()
    {
        hak_ctx_destroy(ctx);
        hak_learner_delete(learner);
    }
    void tick(uint64_t by = SECOND)
    {
        hak_ctx_tick(ctx, now += by);
    }
    hak_learner_info info() const
    {
        hak_learner_info info;
        info.size = sizeof info;
        REQUIRE(hak_learner_stats(learner, &info) == 0);
        return info;
    }
    size_t retained() const
    {
        hak_tuning t = HAK_TUNING_INIT;
        REQUIRE(hak_ctx_tuning(ctx, &t) == 0);
        return t.retained_bytes;
    }
    // Heaps that rise to n MiB and fall, so often; then a window ends. Returns fresh MiB.
    size_t waves(size_t n, unsigned count = 4, size_t size = 512 * KiB)
    {
        uint64_t before = stats_of(ctx).fresh_bytes;
        for (unsigned k = 0; k < count; k++) {
            std::vector<void *> p;
            for (size_t bytes = 0; bytes < n * MiB; bytes += size)
                p.push_back(hak_alloc(ctx, size));
            for (void *block : p)
                hak_free(ctx, block);
            hak_ctx_flush(ctx);
        }
        size_t fresh = (size_t)(stats_of(ctx).fresh_bytes - before) / MiB;
        tick();
        return fresh;
    }
    unsigned until_frozen(size_t n, unsigned most, size_t size = 512 * KiB)
    {
        unsigned windows = 0;
        while (info().phase != HAK_PHASE_FROZEN && windows < most) {
            waves(n, 4, size);
            windows++;
        }
        INFO(log.text());
        CHECK(info().phase == HAK_PHASE_FROZEN);
        return windows;
    }
};

std::string printed(hak_policy *policy)
{
    REQUIRE(policy != nullptr);
    std::string text(hak_policy_print(policy, nullptr, 0) + 1, 'x');
    hak_policy_print(policy, &text[0], text.size());
    hak_policy_unref(policy);
    text.pop_back();
    return text;
}

} // namespace

TEST_CASE("learn: waves are kept resident, in at most 60 windows, and what was learned serves the next start")
{
    Learned l;
    CHECK(l.waves(100) >= 4 * 60);
    CHECK(l.until_frozen(100, 60) <= 60);
    CAPTURE(l.log.text());
    CHECK(l.info().retained_bytes == 128 * MiB);
    CHECK(l.retained() == 128 * MiB);
    CHECK(l.waves(100) == 0);
    CHECK(l.log.count(HAK_DECISION_KEEP) == 2);
    CHECK(l.log.count(HAK_DECISION_FREEZE) == 1);
    std::string text = printed(hak_learner_policy(l.learner));
    CHECK(text == "hakmem-policy 1\nretained_bytes 128M\nexpected_bytes 100M\n");
    hak_policy *policy = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    Learned next(policy);
    next.waves(100);
    CHECK(next.waves(100) == 0);
    next.until_frozen(100, 40);
    CHECK(next.info().retained_bytes == 128 * MiB);
    CHECK(next.log.count(HAK_DECISION_KEEP) == 0);
    CHECK(printed(hak_learner_policy(next.learner)) == text);
    hak_policy_unref(policy);
}

TEST_CASE("learn: where nothing is to be had, nothing changes, and it freezes")
{
    Learned l;
    l.until_frozen(8, 40);
    CHECK(l.info().retained_bytes == 32 * MiB);
    CHECK(l.retained() == 32 * MiB);
    CHECK(l.log.count(HAK_DECISION_KEEP) == 0);
    CHECK(printed(hak_learner_policy(l.learner)) == "hakmem-policy 1\n");
}

TEST_CASE("learn: memory that serves nothing is given up when it has a price")
{
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.price = 0.001;
    Learned l(nullptr, o);
    // 20 MiB lie idle, of which each wave wants 2.
    std::vector<void *> p;
    for (int i = 0; i < 40; i++)
        p.push_back(hak_alloc(l.ctx, 512 * KiB));
    for (void *block : p)
        hak_free(l.ctx, block);
    hak_ctx_flush(l.ctx);
    for (int i = 0; i < 60; i++) {
        l.waves(2);
        std::vector<void *> q;
        for (int k = 0; k < 40; k++)
            q.push_back(hak_alloc(l.ctx, 512 * KiB));
        for (void *block : q)
            hak_free(l.ctx, block);
        hak_ctx_flush(l.ctx);
    }
    CAPTURE(l.log.text());
    CHECK(l.info().retained_bytes < 32 * MiB);
    CHECK(stats_of(l.ctx).retained_bytes <= 16 * MiB);
}

TEST_CASE("learn: a budget is not passed")
{
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.retained_most = 64 * MiB;
    Learned l(nullptr, o);
    l.until_frozen(200, 60);
    CHECK(l.info().retained_bytes == 64 * MiB);
    for (const hak_decision &d : l.log.list)
        if (d.number) CHECK(d.to <= 64 * MiB);
}

TEST_CASE("learn: frozen, it tries nothing but a canary, which costs two windows")
{
    Learned l;
    l.until_frozen(100, 60);
    size_t tried = l.log.count(HAK_DECISION_TRY), changed = 0;
    for (int i = 0; i < 190; i++) {
        l.waves(100);
        changed += l.retained() != 128 * MiB;
    }
    CAPTURE(l.log.text());
    size_t canaries = l.log.count(HAK_DECISION_TRY) - tried;
    CHECK(canaries >= 3);
    CHECK(canaries <= 5);
    CHECK(changed == 2 * canaries);
    CHECK(l.info().phase == HAK_PHASE_FROZEN);
    CHECK(l.log.count(HAK_DECISION_THAW) == 0);
}

TEST_CASE("learn: each trial ends within four windows, kept or undone")
{
    Learned l;
    for (int i = 0; i < 100; i++)
        l.waves(i < 50 ? 100 : 10);
    uint64_t began = 0;
    for (const hak_decision &d : l.log.list) {
        if (d.kind == HAK_DECISION_TRY) began = d.window;
        if (d.kind == HAK_DECISION_UNDO || d.kind == HAK_DECISION_KEEP) CHECK(d.window - began <= 4);
    }
}

TEST_CASE("learn: other work thaws it soon, and it learns that")
{
    Learned l;
    std::vector<void *> live;
    for (int i = 0; i < 100; i++)
        live.push_back(hak_alloc(l.ctx, 100));
    l.until_frozen(4, 40);
    for (void *p : live)
        hak_free(l.ctx, p);
    live.clear();
    for (int i = 0; i < 100; i++)
        live.push_back(hak_alloc(l.ctx, 20000));
    int windows = 0;
    while (l.log.count(HAK_DECISION_THAW) == 0 && windows < 10)
        l.waves(200), windows++;
    CAPTURE(l.log.text());
    CHECK(windows <= 3);
    l.until_frozen(200, 60);
    CHECK(l.info().retained_bytes == 256 * MiB);
    for (void *p : live)
        hak_free(l.ctx, p);
}

TEST_CASE("learn: no step on noise, and none to and fro")
{
    Learned l;
    Random random(11);
    for (int i = 0; i < 300; i++)
        l.waves(4, 1 + (unsigned)random.below(30));
    CAPTURE(l.log.text());
    CHECK(l.log.count(HAK_DECISION_KEEP) == 0);
    // Waves that change their height each window: a step, perhaps, but none back before it cooled down.
    for (int i = 0; i < 300; i++)
        l.waves(random.below(2) ? 60 : 20);
    uint64_t stepped = 0;
    bool up = false;
    for (const hak_decision &d : l.log.list)
        if (d.kind == HAK_DECISION_KEEP) {
            if (stepped && up != (d.to > d.from)) CHECK(d.window - stepped >= 180);
            stepped = d.window;
            up = d.to > d.from;
        }
    CHECK(l.log.count(HAK_DECISION_KEEP) <= 4);
}

TEST_CASE("learn: a host's progress is what counts where it is told")
{
    Learned l;
    // The more is retained, the more the host does in a second.
    for (int i = 0; i < 60; i++) {
        hak_learner_progress(l.learner, l.retained() >= 64 * MiB ? 2000 : 1000);
        l.tick();
    }
    CAPTURE(l.log.text());
    CHECK(l.info().retained_bytes == 64 * MiB);
    CHECK(l.info().phase == HAK_PHASE_FROZEN);
}

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
    const std::string text = "hakmem-policy 1\nname n\nmode fast\nhuge_from 8M\nexpected_bytes 390M\nroom 5 label a\n";
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
                    hak_alloc(ctx, 100);
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
