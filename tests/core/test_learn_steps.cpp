// Learners, in simulated time: which mode and how many retained bytes they choose, and when they change
// nothing.
#include "learned.h"
#include "system.h"

using namespace test;

TEST_CASE("learn: waves are kept resident, in at most 60 windows, and what was learned serves the next start")
{
    Learned l;
    CHECK(l.waves(100) >= 4 * 60);
    CHECK(l.until_frozen(100, 60) <= 60);
    CAPTURE(l.log.text());
    CHECK(l.info().mode == HAK_MODE_FAST);
    CHECK(l.tuning().big_cache == 256 * MiB);
    CHECK(l.waves(100) == 0);
    CHECK(l.log.count(HAK_DECISION_KEEP) == 1);
    CHECK(l.log.count(HAK_DECISION_FREEZE) == 1);
    for (const hak_decision &d : l.log.list)
        if (d.kind == HAK_DECISION_KEEP) {
            CHECK(std::string(d.number) == "mode");
            CHECK(d.from == HAK_MODE_BALANCED);
            CHECK(d.to == HAK_MODE_FAST);
            CHECK(std::string(d.text).find("keeps mode fast instead of balanced") == 0);
        }
    std::string text = printed(hak_learner_policy(l.learner));
    CHECK(without_undone(text) == "hakmem-policy 1\nmode fast\nexpected_bytes 100M\n");
    hak_policy *policy = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    Learned next(policy);
    CHECK(next.info().mode == HAK_MODE_FAST);
    next.waves(100);
    CHECK(next.waves(100) == 0);
    next.until_frozen(100, 40);
    CHECK(next.info().mode == HAK_MODE_FAST);
    CHECK(next.log.count(HAK_DECISION_KEEP) == 0);
    CHECK(without_undone(printed(hak_learner_policy(next.learner))) == without_undone(text));
    hak_policy_unref(policy);
}

TEST_CASE("learn: retained bytes go up by steps where the mode does not give them")
{
    // What the policy itself says goes before the mode.
    hak_policy *policy = parsed("retained_bytes 32M\nretained_percent none\n");
    Learned l(policy);
    CHECK(l.until_frozen(100, 60) <= 60);
    CAPTURE(l.log.text());
    CHECK(l.info().mode == HAK_MODE_BALANCED);
    CHECK(l.info().retained_bytes == 128 * MiB);
    CHECK(l.retained() == 128 * MiB);
    CHECK(l.waves(100) == 0);
    CHECK(l.log.count(HAK_DECISION_KEEP) == 2);
    CHECK(without_undone(printed(hak_learner_policy(l.learner))) ==
          "hakmem-policy 1\nretained_bytes 128M\nretained_percent none\nexpected_bytes 100M\n");
    hak_policy_unref(policy);
}

TEST_CASE("learn: the host's price for bytes held decides which mode wins")
{
    const double price = GENERATE(0.0, 0.00032, 0.002);
    const bool begins_fast = GENERATE(false, true);
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.price = price;
    o.cool_ns = SECOND; // no wait between a step and one back
    hak_policy *policy = begins_fast ? parsed("mode fast\n") : nullptr;
    Learned l(policy, o);
    l.until_frozen(100, 60);
    CAPTURE(price, begins_fast, l.log.text());
    CHECK(l.info().mode == (price == 0.0    ? HAK_MODE_FAST
                            : price < 0.001 ? HAK_MODE_BALANCED
                                            : HAK_MODE_LEAN));
    const std::string text = without_undone(printed(hak_learner_policy(l.learner)));
    CHECK((text.find("mode") != std::string::npos) == (begins_fast || price != 0.00032));
    for (int i = 0; i < 3; i++)
        l.waves(100);
    if (price == 0.0) CHECK(stats_of(l.ctx).retained_bytes >= 90 * MiB);
    if (price == 0.002) CHECK(stats_of(l.ctx).retained_bytes <= 4 * MiB);
    hak_policy_unref(policy);
}

TEST_CASE("learn: a context that is minimal stays so, and other modes are those of their numbers")
{
    const char *mode = GENERATE("minimal", "learning", "research", "lean");
    hak_policy *policy = parsed(std::string("mode ") + mode + "\n");
    Learned l(policy);
    l.until_frozen(100, 60);
    CAPTURE(mode, l.log.text());
    const bool minimal = std::string(mode) == "minimal";
    CHECK(l.info().mode == (minimal ? HAK_MODE_MINIMAL : HAK_MODE_FAST));
    CHECK(printed(hak_learner_policy(l.learner)).find(minimal ? "mode minimal" : "mode fast") !=
          std::string::npos);
    for (const hak_decision &d : l.log.list)
        if (minimal && d.number) CHECK(std::string(d.number) != "mode");
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
    for (int i = 0; i < 60; i++) {
        l.waves(200);
        REQUIRE(l.retained() <= 64 * MiB);
    }
    CAPTURE(l.log.text());
    CHECK(l.info().retained_bytes == 64 * MiB);
    for (const hak_decision &d : l.log.list)
        if (d.number && std::string(d.number) == "retained_bytes") CHECK(d.to <= 64 * MiB);
}

TEST_CASE("learn: frozen, it tries nothing but a canary, which costs two windows")
{
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.cool_ns = SECOND;
    Learned l(nullptr, o);
    l.until_frozen(100, 60);
    size_t tried = l.log.count(HAK_DECISION_TRY), changed = 0;
    for (int i = 0; i < 190; i++) {
        l.waves(100);
        changed += l.retained() != 256 * MiB;
    }
    CAPTURE(l.log.text());
    size_t canaries = l.log.count(HAK_DECISION_TRY) - tried;
    CHECK(canaries >= 3);
    CHECK(canaries <= 5);
    CHECK(changed == 2 * canaries);
    CHECK(l.info().phase == HAK_PHASE_FROZEN);
    CHECK(l.info().mode == HAK_MODE_FAST);
    CHECK(l.log.count(HAK_DECISION_THAW) == 0);
    // Both are tried in turn: the mode below, and fewer retained bytes.
    size_t modes = 0;
    for (const hak_decision &d : l.log.list)
        modes += d.kind == HAK_DECISION_TRY && std::string(d.number) == "mode" && d.from == HAK_MODE_FAST;
    CHECK(modes >= 2);
}

TEST_CASE("learn: where no step could save anything there is no canary")
{
    Learned l;
    l.until_frozen(4, 40);
    for (int i = 0; i < 100; i++)
        l.waves(4);
    CAPTURE(l.log.text());
    CHECK(l.log.count(HAK_DECISION_TRY) == 0);
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
    CHECK(l.info().mode == HAK_MODE_FAST);
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
    // The more is retained, the more the host does in a second.
    hak_policy *policy = parsed("retained_bytes 32M\n");
    Learned l(policy);
    for (int i = 0; i < 60; i++) {
        hak_learner_progress(l.learner, l.retained() >= 64 * MiB ? 2000 : 1000);
        l.tick();
    }
    CAPTURE(l.log.text());
    CHECK(l.info().mode == HAK_MODE_BALANCED);
    CHECK(l.info().retained_bytes == 64 * MiB);
    CHECK(l.info().phase == HAK_PHASE_FROZEN);
    hak_policy_unref(policy);
}

TEST_CASE("learn: memory that costs otherwise thaws it, though sizes are the same")
{
    Learned l;
    l.until_frozen(20, 40);
    CHECK(l.info().mode == HAK_MODE_BALANCED);
    int windows = 0;
    while (l.log.count(HAK_DECISION_THAW) == 0 && windows < 10)
        l.waves(200, 8), windows++;
    CAPTURE(l.log.text());
    CHECK(windows <= 2);
    l.until_frozen(200, 60);
    CHECK(l.info().mode == HAK_MODE_FAST);
    // Waves that end leave nothing behind, and nothing to learn.
    for (int i = 0; i < 60; i++)
        l.waves(4);
    CHECK(stats_of(l.ctx).retained_bytes <= 8 * MiB);
}

TEST_CASE("learn: where progress is counted, other work thaws it, and what a unit takes is measured anew")
{
    Learned l;
    unsigned i = 0;
    for (; l.info().phase != HAK_PHASE_FROZEN && i < 60; i++) {
        hak_learner_progress(l.learner, 1000);
        l.tick();
    }
    CHECK(l.info().mode == HAK_MODE_BALANCED);
    // A unit takes twice as long, and the mode makes a difference.
    for (i = 0; l.log.count(HAK_DECISION_THAW) == 0 && i < 10; i++) {
        hak_learner_progress(l.learner, 500);
        l.tick();
    }
    CHECK(i <= 3);
    for (i = 0; i < 60; i++) {
        hak_learner_progress(l.learner, l.tuning().big_cache == 256 * MiB ? 600 : 500);
        l.tick();
    }
    CAPTURE(l.log.text());
    CHECK(l.info().mode == HAK_MODE_FAST);
    CHECK(l.info().phase == HAK_PHASE_FROZEN);
}

TEST_CASE("learn: a page in a huge page costs a quarter")
{
    double cost[2];
    for (int huge = 0; huge < 2; huge++) {
        // Pages of the operating system: chunks are huge pages only where pages need not be committed.
        hak_policy *policy = parsed(huge ? "mode minimal\nhuge_from 1\n" : "mode minimal\n");
        hak_options options = HAK_OPTIONS_INIT;
        options.policy = policy;
        hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
        o.price = 1e-9;
        hak_ctx *ctx = hak_ctx_new(nullptr, &options);
        hak_learner *learner = hak_learner_new(nullptr, &o);
        REQUIRE((ctx && learner && hak_learner_add(learner, ctx) == 0));
        hak_ctx_tick(ctx, 1);
        for (int i = 0; i < 1000; i++)
            REQUIRE(hak_alloc(ctx, 100 * KiB) != nullptr);
        hak_ctx_tick(ctx, 1 + SECOND);
        hak_window w = {};
        w.size = sizeof w;
        REQUIRE(hak_learner_window(learner, 0, &w) == 0);
        cost[huge] = w.cost - 1;
        hak_ctx_destroy(ctx);
        hak_learner_delete(learner);
        hak_policy_unref(policy);
    }
    CAPTURE(cost[0], cost[1]);
    CHECK(cost[0] > 0.006);
    hak_os os;
    hak_os_default(&os);
    if (lacks(os.huge)) {
        CHECK(cost[1] == cost[0]);
        return;
    }
    CHECK(cost[1] < cost[0] * 0.35);
    CHECK(cost[1] > cost[0] * 0.2);
}

TEST_CASE("learn: a mode whose magazines are filled and flushed less is kept where it costs no more")
{
    const bool busy = GENERATE(true, false);
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.window_ns = SECOND / 100;
    Learned l(nullptr, o);
    // Blocks of many sizes go by the thousand, in no order, and as many come.
    std::vector<void *> live(30000);
    Random random(3);
    auto work = [&](unsigned rounds) {
        for (size_t first = random.below(live.size()); rounds; rounds--) {
            for (size_t i = 0; i < 3000; i++)
                hak_free(l.ctx, live[(first + i * 7919) % live.size()]),
                    live[(first + i * 7919) % live.size()] = nullptr;
            for (size_t i = 0; i < 3000; i++) {
                void *&p = live[(first + i * 7919) % live.size()];
                REQUIRE((p = hak_alloc(l.ctx, 24 + random.below(200))) != nullptr);
            }
        }
    };
    for (void *&p : live)
        p = hak_alloc(l.ctx, 24 + random.below(200));
    for (int i = 0; i < 60; i++) {
        if (busy) work(10);
        l.tick(SECOND / 100);
    }
    CAPTURE(busy, l.log.text());
    CHECK(l.info().mode == (busy ? HAK_MODE_FAST : HAK_MODE_BALANCED));
    CHECK(l.info().phase == HAK_PHASE_FROZEN);
    CHECK(l.log.count(HAK_DECISION_KEEP) == busy);
    if (!busy) CHECK(l.log.count(HAK_DECISION_TRY) == 0);
    for (void *p : live)
        hak_free(l.ctx, p);
}

TEST_CASE("learn: where costs vary, means decide, by the error of their difference")
{
    // One window of eight takes longer, but not in the mode fast; or none does, but one of the trial itself.
    const bool bursts = GENERATE(true, false);
    Learned l;
    for (unsigned i = 0; i < 60; i++) {
        const bool fast = l.tuning().big_cache == 256 * MiB, eighth = i % 8 == 6;
        if (bursts) hak_learner_progress(l.learner, !fast && eighth ? 550 : 1000);
        else hak_learner_progress(l.learner, !fast ? 1000 : eighth ? 800 : 1500);
        l.tick();
    }
    CAPTURE(bursts, l.log.text());
    CHECK(l.info().mode == HAK_MODE_FAST);
    // A wrong step would cost a trial at most: two windows, or eight where costs vary, or sixteen that seem
    // better.
    uint64_t began = 0;
    for (const hak_decision &d : l.log.list) {
        if (d.kind == HAK_DECISION_TRY) began = d.window;
        if (d.kind == HAK_DECISION_UNDO || d.kind == HAK_DECISION_KEEP) CHECK(d.window - began <= 17);
    }
}
