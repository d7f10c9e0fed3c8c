// Profiles: exact ones against a shadow, sampled ones against the truth, and what they do to the heap.
#include "profiled.h"

using namespace test;

static void require_exact(const Program &program)
{
    Stacks stacks = stacks_of(program.ctx);
    for (const auto &[key, t] : program.truth) {
        CAPTURE(key.first, key.second);
        REQUIRE(stacks.count(key) == 1);
        const hak_profile_stack &s = stacks[key];
        REQUIRE(s.alloc_blocks == t.alloc_blocks);
        REQUIRE(s.alloc_bytes == t.alloc_bytes);
        REQUIRE(s.live_blocks == t.live_blocks);
        REQUIRE(s.live_bytes == t.live_bytes);
        REQUIRE(s.largest_bytes == t.largest);
        REQUIRE(s.live_samples == (uint64_t)t.live_blocks);
        REQUIRE(s.alloc_bytes_error == 0);
        REQUIRE(s.live_bytes_error == 0);
        REQUIRE(s.peak_bytes_error == 0);
    }
    double live = 0;
    for (const auto &[key, s] : stacks)
        live += s.live_bytes;
    REQUIRE(live == (double)stats_of(program.ctx).live_bytes);
    REQUIRE(stacks.size() == program.truth.size());
}

TEST_CASE("profile: an exact one is the truth, by every path")
{
    TestSpace s;
    Options options = variant(GENERATE(0, 1, 2, 3, 4));
    TestCtx ctx(s.space, &options);
    Program program(ctx, 7);
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    if (GENERATE(false, true))
        for (const char *name : {"a", "b", "c"})
            program.labels.push_back(hak_label_define(ctx, name));
    for (size_t i = 0; i < 5; i++) {
        program.run(800 * EFFORT);
        require_exact(program);
        require_sound(ctx);
        if (i == 2) hak_ctx_trim(ctx);
        if (i == 3) hak_ctx_flush(ctx);
        s.os.now += 1000000000;
        hak_ctx_tick(ctx, s.os.now);
        require_exact(program);
    }
    CHECK(info_of(ctx).dropped_stacks == 0);
    CHECK(info_of(ctx).dropped_samples == 0);
    program.release_all();
    require_exact(program);
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == 0);
}

TEST_CASE("profile: estimates are within their errors, over many seeds")
{
    Deviations deviations;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        TestSpace s;
        Options options = variant((int)(seed % 2));
        TestCtx ctx(s.space, &options);
        Program program(ctx, seed);
        program.biggest = 64 * KiB;
        hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
        sampled.mean = 16 * KiB;
        sampled.seed = seed * 1000;
        REQUIRE(hak_profile_start(ctx, &sampled) == 0);
        program.run(8000, 3000);
        require_sound(ctx);
        for (const auto &[key, stack] : stacks_of(ctx))
            deviations.add(stack, program.truth[key]);
        program.release_all();
        for (const auto &[key, stack] : stacks_of(ctx)) {
            CHECK(stack.live_samples == 0);
            CHECK(stack.live_bytes == 0);
        }
    }
    REQUIRE(deviations.n == 20 * 8);
    deviations.require_fair();
}

TEST_CASE("profile: blocks that shrink and grow in place again and again stand for what is live")
{
    constexpr int BLOCKS = 60, SEEDS = 60, ROUNDS = 16;
    double sum = 0, squares = 0, truth = 0;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        TestSpace s;
        TestCtx ctx(s.space);
        hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
        options.seed = seed;
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        std::vector<void *> blocks;
        for (int i = 0; i < BLOCKS; i++)
            blocks.push_back(hak_alloc_cs(ctx, 128 * KiB, 0, 7));
        for (int round = 0; round < ROUNDS; round++)
            for (void *&p : blocks)
                for (size_t n : {64 * KiB, 128 * KiB}) {
                    void *q = hak_realloc_cs(ctx, p, n, 0, 7);
                    REQUIRE(q == p);
                }
        truth = (double)stats_of(ctx).live_bytes;
        double live = 0;
        for (const auto &stack : stacks_of(ctx))
            live += stack.second.live_bytes;
        sum += live;
        squares += live * live;
    }
    const double mean = sum / SEEDS, error = std::sqrt((squares / SEEDS - mean * mean) / SEEDS);
    CAPTURE(truth, mean, error);
    CHECK(std::abs(mean - truth) < 4 * error);
    CHECK(error < truth / 10);
}

TEST_CASE("profile: options and states that are refused")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options o = HAK_PROFILE_OPTIONS_INIT;
    CHECK(hak_profile_options_error(&o) == nullptr);
    CHECK(hak_profile_options_error(nullptr) == nullptr);
    auto refused = [&](const hak_profile_options &options, const char *word) {
        const char *error = hak_profile_options_error(&options);
        REQUIRE(error != nullptr);
        CHECK(std::string(error).find(word) != std::string::npos);
        CHECK(hak_profile_start(ctx, &options) == -1);
    };
    hak_profile_options x = o;
    x.size = 3;
    refused(x, "size");
    int three = 3;
    x = o, std::memcpy(&x.mode, &three, sizeof three);
    refused(x, "mode");
    x = o, x.mean = 1023;
    refused(x, "mean");
    x = o, x.depth = 129;
    refused(x, "depth");
    x = o, x.table_bytes = 65535;
    refused(x, "table_bytes");
    hak_profile_info info;
    info.size = sizeof info;
    CHECK(hak_profile_stats(ctx, &info) == -1);
    CHECK(hak_profile_stop(ctx) == -1);
    CHECK(hak_profile_reset(ctx) == -1);
    CHECK(hak_profile_visit(
              ctx, [](void *, const hak_profile_stack *) { return true; }, nullptr) == -1);
    REQUIRE(hak_profile_start(ctx, nullptr) == 0);
    CHECK(hak_profile_start(ctx, nullptr) == -1);
    CHECK(info_of(ctx).running);
    CHECK(info_of(ctx).mean == 512 * KiB);
    CHECK(info_of(ctx).table_bytes == 32 * KiB);
    REQUIRE(hak_profile_stop(ctx) == 0);
    CHECK(hak_profile_stop(ctx) == -1);
    CHECK_FALSE(info_of(ctx).running);
}

TEST_CASE("profile: stopped, started anew, reset; memory comes back")
{
    TestSpace s;
    Options options = variant(GENERATE(0, 1));
    TestCtx ctx(s.space, &options);
    std::vector<void *> old;
    for (int i = 0; i < 2000; i++)
        old.push_back(hak_alloc_cs(ctx, 64, 0, 9));
    for (int i = 0; i < 20; i++)
        hak_free(ctx, old[(size_t)i]);
    size_t before = stats_of(ctx).metadata_bytes;
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    CHECK(stats_of(ctx).metadata_bytes > before);
    std::vector<void *> blocks;
    for (int i = 0; i < 100; i++)
        blocks.push_back(hak_alloc_cs(ctx, 64, 0, 1));
    REQUIRE(hak_profile_stop(ctx) == 0);
    for (int i = 0; i < 100; i++)
        blocks.push_back(hak_alloc_cs(ctx, 64, 0, 2));
    require_sound(ctx);
    for (int i = 0; i < 50; i++)
        hak_free(ctx, blocks[(size_t)i]);
    Stacks stacks = stacks_of(ctx);
    REQUIRE(stacks.size() == 1); // neither what was live before nor what came after the stop
    CHECK(stacks[{1, 0}].alloc_blocks == 100);
    CHECK(stacks[{1, 0}].live_blocks == 50);
    REQUIRE(hak_profile_start(ctx, &exact) == 0); // forgets the first
    blocks.push_back(hak_alloc_cs(ctx, 64, 0, 3));
    for (int i = 50; i < 100; i++)
        hak_free(ctx, blocks[(size_t)i]);
    stacks = stacks_of(ctx);
    REQUIRE(stacks.size() == 1);
    CHECK(stacks[{3, 0}].live_blocks == 1);
    REQUIRE(hak_profile_reset(ctx) == 0);
    CHECK(stacks_of(ctx).empty());
    CHECK(info_of(ctx).running);
    blocks.push_back(hak_alloc_cs(ctx, 64, 0, 4));
    CHECK(stacks_of(ctx)[{4, 0}].live_blocks == 1);
    REQUIRE(hak_profile_stop(ctx) == 0);
    REQUIRE(hak_profile_reset(ctx) == 0);
    for (size_t i = 100; i < blocks.size(); i++)
        hak_free(ctx, blocks[i]);
    for (size_t i = 20; i < old.size(); i++)
        hak_free(ctx, old[i]);
    hak_ctx_flush(ctx);
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == 0);
}

TEST_CASE("profile: no memory for it, at the limit or by the n-th page, leaves all as it was")
{
    TestSpace s;
    TestCtx ctx(s.space);
    void *p = hak_alloc(ctx, 64);
    hak_stats before = stats_of(ctx);
    REQUIRE(hak_limit(ctx, 0, before.committed_bytes + 20 * KiB, nullptr, nullptr) == 0);
    CHECK(hak_profile_start(ctx, nullptr) == -2);
    CHECK(stats_of(ctx).committed_bytes == before.committed_bytes);
    hak_profile_info info;
    info.size = sizeof info;
    CHECK(hak_profile_stats(ctx, &info) == -1);
    REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    s.os.fail_each(1);
    int rc = hak_profile_start(ctx, nullptr);
    s.os.fail_each(0);
    CHECK((rc == 0 || rc == -2));
    if (rc == -2) CHECK(stats_of(ctx).committed_bytes == before.committed_bytes);
    hak_free(ctx, p);
    require_sound(ctx);
}

TEST_CASE("profile: near a limit and a full table samples are dropped and counted, blocks are not refused")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options exact = exact_options(64 * KiB);
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    std::vector<void *> blocks;
    for (size_t i = 0; i < 3000; i++) {
        blocks.push_back(hak_alloc_cs(ctx, 40, 0, 1 + i % 10));
        REQUIRE(blocks.back() != nullptr);
    }
    hak_profile_info info = info_of(ctx);
    CHECK(info.table_bytes == 64 * KiB);
    CHECK(info.dropped_samples > 1000);
    CHECK(info.samples + info.dropped_samples == 3000);
    CHECK(info.dropped_stacks == 0);
    CHECK(hak_alloc_cs(ctx, 40, 0, 99) != nullptr);
    CHECK(info_of(ctx).dropped_stacks == 1);
    // What dies makes room for others.
    for (size_t i = 0; i < 100; i++)
        hak_free(ctx, blocks[i]);
    for (size_t i = 0; i < 100; i++)
        CHECK(hak_alloc_cs(ctx, 40, 0, 1) != nullptr);
    CHECK(info_of(ctx).samples == info.samples + 100);
    require_sound(ctx);
}

TEST_CASE("profile: frames of the host, its stacks and depth")
{
    struct Host {
        hak_ctx *ctx;
        size_t depth;
        unsigned calls = 0;
        static size_t frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *out, size_t room)
        {
            Host *h = static_cast<Host *>(user);
            h->calls++;
            CHECK(ctx == h->ctx);
            CHECK(room == 5);
            for (size_t i = 0; i < room; i++)
                out[i] = site * 100 + i;
            return h->depth;
        }
    };
    TestSpace s;
    TestCtx ctx(s.space);
    Host host{ctx, 3};
    hak_profile_options exact = exact_options();
    exact.frames = Host::frames;
    exact.user = &host;
    exact.depth = 5;
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    void *a = hak_alloc_cs(ctx, 100, 0, 1), *b = hak_alloc_cs(ctx, 100, 0, 1),
         *c = hak_alloc_cs(ctx, 100, 0, 2);
    host.depth = 77; // more than there is room for
    void *d = hak_alloc_cs(ctx, 100, 0, 2);
    CHECK(host.calls == 4);
    std::vector<hak_profile_stack> all;
    hak_profile_visit(
        ctx,
        [](void *user, const hak_profile_stack *stack) {
            static_cast<std::vector<hak_profile_stack> *>(user)->push_back(*stack);
            return true;
        },
        &all);
    REQUIRE(all.size() == 3);
    CHECK(all[0].id == 1);
    CHECK(all[0].live_blocks == 2);
    CHECK(all[0].depth == 3);
    CHECK(all[0].frames[2] == 102);
    CHECK(all[1].frames[0] == 200);
    CHECK(all[2].depth == 5);
    CHECK(all[2].frames[4] == 204);
    int seen = 0;
    CHECK(hak_profile_visit(
              ctx, [](void *user, const hak_profile_stack *) { return ++*static_cast<int *>(user) < 2; },
              &seen) == 1);
    CHECK(seen == 2);
    for (void *p : {a, b, c, d})
        hak_free(ctx, p);
}

TEST_CASE("profile: frames alone tell stacks apart, where there are any")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options exact = exact_options();
    size_t depth = 1;
    exact.user = &depth;
    exact.frames = [](void *user, hak_ctx *, hak_site, uintptr_t *out, size_t) {
        out[0] = 7;
        return *static_cast<size_t *>(user);
    };
    exact.frames_alone = true;
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    std::vector<void *> blocks = {hak_alloc_cs(ctx, 100, 0, 1), hak_alloc_cs(ctx, 100, 0, 2)};
    depth = 0;
    blocks.push_back(hak_alloc_cs(ctx, 100, 0, 1));
    blocks.push_back(hak_alloc_cs(ctx, 100, 0, 2));
    std::vector<std::pair<hak_site, double>> all;
    hak_profile_visit(
        ctx,
        [](void *user, const hak_profile_stack *stack) {
            static_cast<std::vector<std::pair<hak_site, double>> *>(user)->emplace_back(stack->site,
                                                                                        stack->live_blocks);
            return true;
        },
        &all);
    CHECK(all == std::vector<std::pair<hak_site, double>>{{0, 2}, {1, 1}, {2, 1}});
    for (void *p : blocks)
        hak_free(ctx, p);
}

TEST_CASE("profile: the peak, ages, lifetimes and kinds")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    void *a = hak_alloc_cs(ctx, 100000, 0, 1), *b = hak_alloc_cs(ctx, 200000, 0, 2);
    std::vector<void *> small;
    for (int i = 0; i < 100; i++)
        small.push_back(hak_alloc_cs(ctx, 64, 0, 3)); // the clock of an exact profile passes by
    double at_peak = (double)stats_of(ctx).live_bytes, b_size = (double)hak_usable_size(ctx, b);
    hak_free(ctx, b);
    s.os.now += (uint64_t)4 << 30;
    for (void *p : small)
        hak_free(ctx, p);
    void *c = hak_alloc_cs(ctx, 1000, 0, 2);
    Stacks stacks = stacks_of(ctx);
    CHECK(stacks[{2, 0}].peak_bytes == b_size);
    CHECK(stacks[{1, 0}].peak_bytes == stacks[{1, 0}].live_bytes);
    CHECK(stacks[{1, 0}].peak_bytes + stacks[{2, 0}].peak_bytes + stacks[{3, 0}].peak_bytes == at_peak);
    CHECK(stacks[{3, 0}].live_blocks == 0);
    CHECK(stacks[{1, 0}].age_ns == Approx((double)((uint64_t)4 << 30)));
    CHECK(stacks[{1, 0}].long_lived);
    CHECK_FALSE(stacks[{2, 0}].long_lived);
    double died = 0;
    for (double n : stacks[{3, 0}].lifetime)
        died += n;
    CHECK(died == 100);
    CHECK(stacks[{3, 0}].lifetime[32] >= 36);
    CHECK(stacks[{3, 0}].kind == HAK_PROFILE_SMALL_FREQUENT);
    CHECK(stacks[{2, 0}].kind == HAK_PROFILE_LARGE_INFREQUENT);
    CHECK(stacks[{1, 0}].kind == HAK_PROFILE_UNKNOWN);
    hak_free(ctx, a);
    hak_free(ctx, c);
}

TEST_CASE("profile: growth by realloc is told, in place and moved")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    void *p = hak_alloc_cs(ctx, 64, 0, 1);
    p = hak_realloc_cs(ctx, p, 1000, 0, 2);
    Stacks stacks = stacks_of(ctx);
    CHECK(stacks[{1, 0}].grown_blocks == 1);
    CHECK(stacks[{1, 0}].grown_bytes == (double)hak_usable_size(ctx, p) - 64);
    CHECK(stacks[{1, 0}].live_blocks == 0);
    CHECK(stacks[{2, 0}].live_bytes == (double)hak_usable_size(ctx, p));
    void *big = hak_alloc_cs(ctx, 2 * MiB, 0, 3);
    big = hak_realloc_cs(ctx, big, 6 * MiB, 0, 4);
    stacks = stacks_of(ctx);
    CHECK(stacks[{3, 0}].grown_bytes == 4.0 * MiB);
    CHECK(stacks[{3, 0}].live_bytes == 6.0 * MiB);
    CHECK(stacks.count({4, 0}) == 0);
    hak_free(ctx, big);
    CHECK(stacks_of(ctx)[{3, 0}].live_blocks == 0);
}

TEST_CASE("profile: an exact one adds up where blocks have canaries")
{
    TestSpace s;
    size_t resized = 0;
    for (size_t from = 1; from < 3 * MiB; from += from / 2 + 1)
        for (size_t to = 1; to < 3 * MiB; to += to / 2 + 1, resized++) {
            const bool aligned = resized % 2;
            Options options = ctx_options();
            options.debug = HAK_DEBUG_CANARY;
            TestCtx ctx(s.space, &options);
            hak_profile_options exact = exact_options();
            REQUIRE(hak_profile_start(ctx, &exact) == 0);
            void *p = hak_alloc(ctx, from);
            p = aligned ? hak_aligned_realloc(ctx, p, 64, to) : hak_realloc(ctx, p, to);
            REQUIRE(p != nullptr);
            CAPTURE(from, to, aligned);
            double sum = 0;
            for (const auto &[key, stack] : stacks_of(ctx))
                sum += stack.live_bytes;
            REQUIRE(sum == (double)stats_of(ctx).live_bytes);
            hak_free(ctx, p);
            REQUIRE(stacks_of(ctx).begin()->second.live_bytes == 0);
        }
    CHECK(resized > 500);
}

TEST_CASE("profile: a block from before an exact one is in it from when it moves, by a copy or by its pages")
{
    TestSpace s;
    TestCtx ctx(s.space);
    unsigned moved = 0;
    for (size_t n = 30000; n < 9 * MiB; n = n * 4 / 3) {
        void *p = hak_alloc_cs(ctx, n, 0, 1), *beside = hak_alloc_cs(ctx, n, 0, 1);
        hak_profile_options exact = exact_options();
        REQUIRE(hak_profile_start(ctx, &exact) == 0);
        void *q = hak_realloc_cs(ctx, p, n * 3, 0, 2);
        CAPTURE(n, p, q);
        Stacks stacks = stacks_of(ctx);
        moved += q != p;
        REQUIRE(stacks.size() == (q == p ? 0 : 1));
        if (q != p) {
            CHECK(stacks[{2, 0}].live_blocks == 1);
            CHECK(stacks[{2, 0}].live_bytes == (double)hak_usable_size(ctx, q));
        }
        hak_free(ctx, q);
        hak_free(ctx, beside);
        CHECK(stacks_of(ctx)[{2, 0}].live_bytes == 0);
        REQUIRE(hak_profile_stop(ctx) == 0);
        REQUIRE(hak_profile_reset(ctx) == 0);
    }
    CHECK(moved > 10);
}

TEST_CASE("profile: a context that is destroyed or retired meanwhile")
{
    TestSpace s;
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = GENERATE(HAK_PROFILE_SAMPLED, HAK_PROFILE_EXACT);
    options.mean = 4 * KiB;
    options.table_bytes = 16 * MiB;
    hak_ctx *ctx = hak_ctx_new(s.space, nullptr), *other = hak_ctx_new(s.space, nullptr);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    REQUIRE(hak_profile_start(other, &options) == 0);
    Program program(ctx, 1), second(other, 2);
    program.run(1000);
    second.run(1000);
    hak_ctx_destroy(ctx);
    second.run(1000);
    require_sound(other);
    hak_ctx_retire(other);
    CHECK(hak_alloc(other, 10) == nullptr);
    CHECK(hak_alloc(other, 100000) == nullptr);
    second.release_all();
}

TEST_CASE("profile: blocks set aside for the next allocations are not live")
{
    TestSpace s;
    Options options = variant(1);
    TestCtx ctx(s.space, &options);
    hak_label label = hak_label_define(ctx, "label");
    hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
    REQUIRE(hak_profile_start(ctx, &sampled) == 0);
    std::vector<void *> blocks;
    for (size_t i = 0; i < 200; i++) {
        size_t n = 8 + i % 50 * 16;
        blocks.push_back(hak_alloc_cs(ctx, n, label, 1));
        REQUIRE(hak_good_size(ctx, n) == hak_usable_size(ctx, blocks.back()));
        hak_label_info info;
        REQUIRE(stats_of(ctx).live_blocks == blocks.size());
        REQUIRE(hak_label_stats(ctx, label, &info) == 0);
        REQUIRE(info.live_blocks == blocks.size());
        REQUIRE(visit_totals(ctx).blocks == blocks.size());
        if (i % 3 == 0) {
            hak_free(ctx, blocks.back());
            blocks.pop_back();
        }
    }
    require_sound(ctx);
    SECTION("labels that come later are stored in them")
    {
        TestCtx late(s.space, &options);
        REQUIRE(hak_profile_start(late, &sampled) == 0);
        REQUIRE(hak_alloc(late, 64) != nullptr);
        hak_label mine = hak_label_define(late, "mine");
        REQUIRE(hak_alloc_cs(late, 64, mine, 1) != nullptr);
        hak_label_info info;
        REQUIRE(hak_label_stats(late, mine, &info) == 0);
        CHECK(info.live_blocks == 1);
    }
    SECTION("the end gives them back")
    {
        REQUIRE(hak_profile_stop(ctx) == 0);
        require_sound(ctx);
    }
}

TEST_CASE("profile: blocks freed in units where samples were are fast again")
{
    TestSpace s;
    Options options = variant(1);
    TestCtx ctx(s.space, &options);
    hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
    sampled.mean = 4 * KiB;
    REQUIRE(hak_profile_start(ctx, &sampled) == 0);
    std::vector<void *> blocks;
    for (int i = 0; i < 4000; i++)
        blocks.push_back(hak_alloc(ctx, 64));
    auto slow = [&] {
        size_t n = 0;
        for (void *p : blocks)
            n += hak_inline_kind(ctx, p) >= HAK_INLINE_BINS;
        return n;
    };
    CHECK(slow() > 2000);
    CHECK(hak_alloc_inline(ctx, 64, 0) != nullptr);
    hak_profile_info info = info_of(ctx);
    CHECK(info.samples > 30);
    REQUIRE(hak_profile_stop(ctx) == 0);
    REQUIRE(hak_profile_reset(ctx) == 0);
    CHECK(slow() == 0);
    require_sound(ctx);
}

TEST_CASE("profile: every sample of a sweep is seen to go")
{
    const bool exact = GENERATE(true, false);
    TestSpace s;
    Options options = variant(1);
    TestCtx ctx(s.space, &options);
    hak_profile_options profile = exact ? exact_options() : hak_profile_options(HAK_PROFILE_OPTIONS_INIT);
    profile.mean = 16 * KiB;
    REQUIRE(hak_profile_start(ctx, &profile) == 0);
    for (int round = 0; round < 4; round++) {
        std::vector<void *> blocks;
        for (int i = 0; i < 6000; i++)
            blocks.push_back(hak_alloc(ctx, 64));
        for (void *p : blocks)
            hak_free(ctx, p);
        CHECK(stats_of(ctx).live_blocks == 0);
        double live = 0;
        uint64_t samples = 0;
        for (const auto &[key, stack] : stacks_of(ctx)) {
            live += stack.live_bytes;
            samples += stack.live_samples;
        }
        CHECK(live == 0);
        CHECK(samples == 0);
        require_sound(ctx);
    }
    CHECK(info_of(ctx).samples > 50);
}

TEST_CASE("profile: the stacks whose blocks pin free memory")
{
    const bool exact = GENERATE(true, false);
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    hak_profile_options profile = exact ? exact_options() : hak_profile_options(HAK_PROFILE_OPTIONS_INIT);
    profile.mean = 8 * KiB;
    profile.table_bytes = 64 << 20;
    REQUIRE(hak_profile_start(ctx, &profile) == 0);
    std::vector<void *> gone, kept;
    for (int i = 0; i < 60'000; i++) {
        const hak_site site = i % 16 == 0 ? 2 : 1;
        (site == 2 ? kept : gone).push_back(hak_alloc_cs(ctx, 200, 0, site));
    }
    for (void *p : gone)
        hak_free(ctx, p);
    hak_ctx_flush(ctx);
    hak_class_info classes[126];
    double all = 0, found[3] = {0, 0, 0};
    const int n = hak_classes_stats(ctx, classes, 126);
    for (int i = 0; i < n; i++)
        all += (double)classes[i].pinned_bytes;
    CHECK(all > 8 << 20);
    auto add = [](void *sums, const hak_profile_stack *stack) {
        static_cast<double *>(sums)[stack->site] += stack->pinned_bytes;
        return true;
    };
    REQUIRE(hak_profile_visit(ctx, add, found) == 0);
    CHECK(found[1] < all / 1000);
    CHECK(found[2] > all * (exact ? 0.999 : 0.75));
    CHECK(found[2] < all * (exact ? 1.001 : 1.25));
    for (void *p : kept)
        hak_free(ctx, p);
}
