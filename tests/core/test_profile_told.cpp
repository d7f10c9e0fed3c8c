// What a profile is told by its host, that blocks change hands, and what it tells of its samples.
#include "profiled.h"

using namespace test;

namespace
{

// The samples that live, by address, as the profile tells of them.
struct Told {
    std::map<const void *, std::pair<size_t, double>> live;
    size_t made = 0, gone = 0, wrong = 0;
    double bytes = 0;
};

void on_made(void *user, const void *p, size_t n, double bytes)
{
    Told &told = *static_cast<Told *>(user);
    told.wrong += !told.live.emplace(p, std::pair(n, bytes)).second;
    told.made++;
    told.bytes += bytes;
}

void on_gone(void *user, const void *p)
{
    Told &told = *static_cast<Told *>(user);
    told.wrong += told.live.erase(p) != 1;
    told.gone++;
}

hak_profile_options options_of(hak_profile_mode mode, Told *told)
{
    hak_profile_options options = exact_options();
    options.mode = mode;
    if (mode == HAK_PROFILE_SAMPLED) options.mean = 4 * KiB;
    options.user = told;
    options.sample_made = on_made;
    options.sample_gone = on_gone;
    return options;
}

double live_of(const Stacks &stacks, hak_site site)
{
    double bytes = 0;
    for (const auto &[key, s] : stacks)
        if (key.first == site) bytes += s.live_bytes;
    return bytes;
}

} // namespace

TEST_CASE("profile: each sample is told once, and once that it is gone")
{
    const hak_profile_mode mode = GENERATE(HAK_PROFILE_EXACT, HAK_PROFILE_SAMPLED);
    TestSpace s;
    Options options = variant(GENERATE(0, 1, 2));
    TestCtx ctx(s.space, &options);
    Told told;
    hak_profile_options profile = options_of(mode, &told);
    REQUIRE(hak_profile_start(ctx, &profile) == 0);
    Program program(ctx, 11);
    for (int i = 0; i < 4; i++) {
        program.run(700 * EFFORT);
        CHECK(told.wrong == 0);
        uint64_t samples = 0;
        double live = 0, sum = 0;
        for (const auto &[key, stack] : stacks_of(ctx)) {
            samples += stack.live_samples;
            live += stack.live_bytes;
        }
        for (const auto &[p, of] : told.live) {
            sum += of.second;
            REQUIRE(of.first > 0);
            REQUIRE(of.second >= (double)of.first);
        }
        CHECK(told.live.size() == samples);
        // A block that was resized in place is told with what it was.
        CHECK(sum > live / 2);
        CHECK(sum < live * 2);
    }
    CHECK(told.made > 0);
    program.release_all();
    CHECK(told.live.empty());
    CHECK(told.wrong == 0);
    CHECK(told.made == told.gone);
    require_sound(ctx);
}

TEST_CASE("profile: nothing is told of blocks of another profile, nor after it stopped")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Told told;
    hak_profile_options profile = options_of(HAK_PROFILE_EXACT, &told);
    REQUIRE(hak_profile_start(ctx, &profile) == 0);
    void *first = hak_alloc_cs(ctx, 100, 0, 1), *second = hak_alloc_cs(ctx, 100, 0, 1);
    CHECK(told.made == 2);
    REQUIRE(hak_profile_stop(ctx) == 0);
    void *third = hak_alloc_cs(ctx, 100, 0, 1);
    CHECK(told.made == 2);
    CHECK(hak_profile_reuse(ctx, first, 0, 2) == -1);
    hak_free(ctx, first);
    CHECK(told.gone == 1);
    hak_profile_options none = exact_options();
    REQUIRE(hak_profile_start(ctx, &none) == 0);
    hak_free(ctx, second);
    hak_free(ctx, third);
    hak_free(ctx, hak_alloc_cs(ctx, 100, 0, 1));
    CHECK(told.made == 2);
    CHECK(told.gone == 1);
}

TEST_CASE("profile: a block that changes hands is its new owner's")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = GENERATE(false, true);
    TestCtx ctx(s.space, &options);
    Told told;
    hak_profile_options profile = options_of(HAK_PROFILE_EXACT, &told);
    CHECK(hak_profile_reuse(ctx, nullptr, 0, 1) == -1);
    REQUIRE(hak_profile_start(ctx, &profile) == 0);
    hak_ctx *heap = options.shared ? hak_ctx_thread(ctx) : static_cast<hak_ctx *>(ctx);
    const hak_label label = hak_label_define(ctx, "kept");
    std::vector<void *> blocks;
    for (int i = 0; i < 100; i++)
        blocks.push_back(hak_alloc_cs(heap, 48, label, 1));
    CHECK(live_of(stacks_of(ctx), 1) == 4800);
    for (int i = 0; i < 60; i++)
        CHECK(hak_profile_reuse(heap, blocks[i], label, 2) == 1);
    Stacks stacks = stacks_of(ctx);
    CHECK(live_of(stacks, 1) == 1920);
    CHECK(live_of(stacks, 2) == 2880);
    const hak_profile_stack &one = stacks.at({1, label}), &two = stacks.at({2, label});
    CHECK(one.alloc_blocks == 100);
    CHECK(one.live_samples == 40);
    CHECK(two.alloc_blocks == 60);
    CHECK(two.peak_bytes + one.peak_bytes <= 4848);
    CHECK(told.made == 160);
    CHECK(told.gone == 60);
    CHECK(told.wrong == 0);
    double dead = 0;
    for (double n : one.lifetime)
        dead += n;
    CHECK(dead == 60);
    // What is no sample changes nothing.
    int outside;
    CHECK(hak_profile_reuse(heap, &outside, label, 3) == 0);
    CHECK(hak_profile_reuse(heap, nullptr, label, 3) == 0);
    CHECK(stacks_of(ctx).size() == 2);
    // A label that there is not is none.
    CHECK(hak_profile_reuse(heap, blocks[0], 200, 3) == 1);
    CHECK(stacks_of(ctx).count({3, 0}) == 1);
    for (void *p : blocks)
        hak_free(heap, p);
    CHECK(told.live.empty());
    for (const auto &[key, stack] : stacks_of(ctx))
        CHECK(stack.live_bytes == 0);
    require_sound(ctx);
}

TEST_CASE("profile: estimates stay without bias where blocks change hands")
{
    constexpr int SEEDS = 200, BLOCKS = 400;
    double first = 0, second = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        TestSpace s;
        TestCtx ctx(s.space);
        hak_profile_options profile = options_of(HAK_PROFILE_SAMPLED, nullptr);
        profile.sample_made = nullptr;
        profile.sample_gone = nullptr;
        profile.seed = seed;
        REQUIRE(hak_profile_start(ctx, &profile) == 0);
        std::vector<void *> blocks;
        for (int i = 0; i < BLOCKS; i++)
            blocks.push_back(hak_alloc_cs(ctx, 64, 0, 1));
        // Half of them, three times over.
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < BLOCKS; i += 2)
                hak_profile_reuse(ctx, blocks[i], 0, 2);
        Stacks stacks = stacks_of(ctx);
        first += live_of(stacks, 1);
        second += live_of(stacks, 2);
    }
    // A sample stands for 4 KiB: of 12,800 bytes there are about three, so that 200 seeds err by 4 % on average.
    const double truth = 64.0 * BLOCKS / 2 * SEEDS;
    CHECK(std::abs(first - truth) < 0.17 * truth);
    CHECK(std::abs(second - truth) < 0.17 * truth);
}

TEST_CASE("profile: without room for the new owner's stack the block stays with the old one")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options profile = exact_options(64 * KiB);
    REQUIRE(hak_profile_start(ctx, &profile) == 0);
    void *p = hak_alloc_cs(ctx, 64, 0, 1);
    size_t taken = 0, refused = 0;
    for (hak_site site = 2; site < 5000; site++)
        (hak_profile_reuse(ctx, p, 0, site) == 1 ? taken : refused)++;
    CHECK(taken > 10);
    CHECK(refused > 10);
    double live = 0;
    for (const auto &[key, stack] : stacks_of(ctx))
        live += stack.live_bytes;
    CHECK(live == 64);
    CHECK(hak_profile_reuse(ctx, p, 0, 1) == 1); // a stack that there is
    CHECK(live_of(stacks_of(ctx), 1) == 64);
}
