// A context that is learned from, in simulated time.
#ifndef TESTS_LEARNED_H
#define TESTS_LEARNED_H

#include "heap.h"

#include <hakmem/learn.h>

namespace test
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
    hak_tuning tuning() const
    {
        hak_tuning t = HAK_TUNING_INIT;
        REQUIRE(hak_ctx_tuning(ctx, &t) == 0);
        return t;
    }
    size_t retained() const
    {
        return tuning().retained_bytes;
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

inline std::string printed(hak_policy *policy)
{
    REQUIRE(policy != nullptr);
    std::string text(hak_policy_print(policy, nullptr, 0) + 1, 'x');
    hak_policy_print(policy, &text[0], text.size());
    hak_policy_unref(policy);
    text.pop_back();
    return text;
}

// The text of a policy without the trials that were undone.
inline std::string without_undone(std::string text)
{
    for (size_t at; (at = text.find("\nundone ")) != std::string::npos;)
        text.erase(at + 1, text.find('\n', at + 1) - at);
    return text;
}

inline hak_policy *parsed(const std::string &statements)
{
    const std::string text = "hakmem-policy 1\n" + statements;
    hak_policy *policy = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    REQUIRE(policy != nullptr);
    return policy;
}

} // namespace test

#endif
