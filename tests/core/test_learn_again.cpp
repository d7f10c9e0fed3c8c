// Learners: what one run tried in vain is known to the next, what time and memory cost is the host's, and looks
// that change nothing.
#include "learned.h"

using namespace test;

namespace
{

unsigned tries(const Learned &l)
{
    return (unsigned)l.log.count(HAK_DECISION_TRY);
}

// The policy that a run of waves leaves, and how many steps it tried.
std::string learned_of(const std::string &text, hak_learner_options o, unsigned *tried)
{
    hak_policy *policy =
        text.empty() ? nullptr : hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    Learned l(policy, o);
    l.until_frozen(100, 80);
    INFO(l.log.text());
    *tried = tries(l);
    hak_policy_unref(policy);
    return printed(hak_learner_policy(l.learner));
}

uint64_t cpu;

} // namespace

TEST_CASE("learn: a step that was undone is written with what was seen, and the next run does not repeat it")
{
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    unsigned tried = 0, first = 0;
    const std::string text = learned_of("", o, &first);
    CHECK(first > 1);
    const size_t at = text.find("undone retained_bytes 128M from 256M cost ");
    REQUIRE(at != std::string::npos);
    CHECK(text.find(" price 50 fault 250\n", at) != std::string::npos);
    const std::string again = learned_of(text, o, &tried);
    CHECK(tried == 0);
    CHECK(again == text); // the evidence goes on to the third
    // Where a fault costs nearly as much it holds, too; elsewhere, and at another price, it is tried anew.
    o.fault_ns = 400;
    learned_of(text, o, &tried);
    CHECK(tried == 0);
    o.fault_ns = 600;
    learned_of(text, o, &tried);
    CHECK(tried > 0);
    o.fault_ns = 0;
    o.price = 0.0001;
    learned_of(text, o, &tried);
    CHECK(tried > 0);
}

TEST_CASE("learn: a canary tries again what an earlier run undid")
{
    unsigned tried;
    const std::string text = learned_of("", HAK_LEARNER_OPTIONS_INIT, &tried);
    hak_policy *policy = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    Learned l(policy);
    l.until_frozen(100, 40);
    CHECK(tries(l) == 0);
    for (int i = 0; i < 50; i++)
        l.waves(100);
    CHECK(tries(l) == 1);
    hak_policy_unref(policy);
}

TEST_CASE("learn: a learner that keeps speed does not go below balanced, whatever memory is worth")
{
    const bool keeps = GENERATE(false, true);
    hak_policy *policy = parsed("mode fast\n");
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.price = 0.002;
    o.cool_ns = SECOND;
    o.keeps_speed = keeps;
    Learned l(policy, o);
    l.until_frozen(100, 80);
    CAPTURE(keeps, l.log.text());
    CHECK(l.info().mode == (keeps ? HAK_MODE_BALANCED : HAK_MODE_LEAN));
    bool lean = false;
    for (const hak_decision &d : l.log.list)
        lean |= d.number && std::string(d.number) == "mode" && d.to == HAK_MODE_LEAN;
    CHECK(lean == !keeps);
    if (keeps) CHECK(l.retained() >= 32 * MiB);
    hak_policy_unref(policy);
}

TEST_CASE("learn: a policy's price decides where the options give none")
{
    hak_policy *policy = parsed("mode fast\nprice 2000\n");
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.cool_ns = SECOND;
    o.price = GENERATE(0.0, 0.00005);
    Learned l(policy, o);
    l.until_frozen(100, 80);
    CAPTURE(o.price, l.log.text());
    CHECK(l.info().mode == (o.price == 0 ? HAK_MODE_LEAN : HAK_MODE_FAST));
    CHECK(printed(hak_learner_policy(l.learner)).find("price 2000\n") != std::string::npos);
    hak_policy_unref(policy);
}

TEST_CASE("learn: a policy's budget is not passed")
{
    hak_policy *policy = parsed("retained_bytes 32M\nretained_percent none\nmemory 64M\n");
    Learned l(policy);
    l.until_frozen(100, 60);
    CAPTURE(l.log.text());
    CHECK(l.info().retained_bytes <= 64 * MiB);
    for (const hak_decision &d : l.log.list)
        if (d.number && std::string(d.number) == "retained_bytes") CHECK(d.to <= 64 * MiB);
    hak_policy_unref(policy);
}

TEST_CASE("learn: memory costs a share of the CPU time, where the host tells that; a program that waits is "
          "not judged")
{
    const unsigned percent = GENERATE(0u, 5u, 100u); // of the wall time
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.dry = true;
    o.cpu_ns = [] { return cpu; };
    cpu = 1;
    Learned l(nullptr, o);
    for (int i = 0; i < 20; i++) {
        cpu += SECOND / 100 * percent;
        l.waves(100, 1);
    }
    hak_window w = {};
    w.size = sizeof w;
    if (percent == 0) {
        CHECK(l.info().windows == 0);
        return;
    }
    size_t n = 0;
    double cost = 0;
    for (; hak_learner_window(l.learner, n, &w) == 0; n++)
        if (n) cost += w.cost - 1;
    REQUIRE(n >= 18);
    cost /= (double)(n - 1);
    static double share; // at 5 %
    if (percent == 5) share = cost;
    else CHECK(share / cost > 5);
    CHECK(cost > 0);
}

TEST_CASE("learn: what faults and calls cost is the host's")
{
    double cost[2] = {};
    for (int run = 0; run < 2; run++) {
        hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
        o.dry = true;
        o.price = 1e-9;
        if (run) o.fault_ns = 2500, o.huge_ns = 650, o.call_ns = 10000;
        Learned l(nullptr, o);
        for (int i = 0; i < 8; i++)
            l.waves(100);
        hak_window w = {};
        w.size = sizeof w;
        REQUIRE(hak_learner_window(l.learner, 6, &w) == 0);
        cost[run] = w.cost - 1;
    }
    CHECK(cost[0] > 0);
    CHECK(cost[1] / cost[0] > 9.9);
    CHECK(cost[1] / cost[0] < 10.1);
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.call_ns = 1000001;
    CHECK(std::string(hak_learner_options_error(&o)) == "fault_ns, huge_ns, call_ns: at most 1 ms");
}

TEST_CASE("learn: a look ends windows as a tick does, and gives nothing back")
{
    const bool looks = GENERATE(false, true);
    hak_learner_options o = HAK_LEARNER_OPTIONS_INIT;
    o.dry = true;
    Learned l(nullptr, o);
    std::vector<void *> p;
    for (int i = 0; i < 40; i++)
        p.push_back(hak_alloc(l.ctx, 512 * KiB));
    for (void *block : p)
        hak_free(l.ctx, block);
    hak_ctx_flush(l.ctx);
    const size_t before = stats_of(l.ctx).retained_bytes;
    CHECK(before >= 16 * MiB);
    for (int i = 0; i < 10; i++) {
        l.now += SECOND;
        if (looks) hak_learner_look(l.ctx, l.now);
        else hak_ctx_tick(l.ctx, l.now);
    }
    CHECK(l.info().windows >= 9);
    if (looks) CHECK(stats_of(l.ctx).retained_bytes == before);
    else CHECK(stats_of(l.ctx).retained_bytes < before);
    // Where there is no learner, a look does nothing.
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    hak_learner_look(ctx, 0);
    hak_ctx_destroy(ctx);
}

TEST_CASE("learn: how large the heap was is known at its end, whenever the last look was")
{
    const bool threads = GENERATE(false, true);
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = threads;
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    hak_learner *learner = hak_learner_new(nullptr, nullptr);
    REQUIRE(hak_learner_add(learner, ctx) == 0);
    const uint64_t now = 1000 * SECOND;
    hak_learner_look(ctx, now - SECOND);
    hak_learner_look(ctx, now);
    for (int turn = 0; turn < 3; turn++) {
        std::vector<void *> p;
        for (int i = 0; i < 40 * turn; i++)
            p.push_back(hak_alloc(ctx, MiB));
        for (void *block : p)
            hak_free(ctx, block);
        hak_ctx_trim(ctx);
        hak_learner_look(ctx, now + 1); // too soon for what costs microseconds
    }
    hak_learner_info info = {};
    info.size = sizeof info;
    REQUIRE(hak_learner_stats(learner, &info) == 0);
    CHECK(info.peak_bytes >= 80 * MiB);
    CHECK(info.peak_bytes < 90 * MiB);
    hak_ctx_destroy(ctx);
    hak_learner_delete(learner);
}
