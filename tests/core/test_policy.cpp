// How contexts and spaces go by policies.
#include "policy.h"

#include <atomic>
#include <thread>

using namespace test;

namespace
{

hak_tuning numbers_of(const hak_ctx *ctx)
{
    hak_tuning t = HAK_TUNING_INIT;
    REQUIRE(hak_ctx_tuning(ctx, &t) == 0);
    return t;
}

} // namespace

TEST_CASE("policy: its pages go back with the last reference, whoever has it")
{
    FakeOs os;
    {
        TestSpace s;
        hak_policy *policy;
        {
            Policy p("magazine 8\n", os.table());
            policy = hak_policy_ref(p);
        }
        CHECK(os.reserved() == 4096);
        hak_options options = HAK_OPTIONS_INIT;
        options.policy = policy;
        TestCtx local(s.space, &options);
        options.shared = true;
        TestCtx shared(s.space, &options);
        options = HAK_OPTIONS_INIT;
        options.policy = policy;
        TestCtx own(nullptr, &options); // its space has one, too
        hak_space_policy_set(s.space, policy);
        hak_policy_unref(policy);
        CHECK(os.reserved() == 4096);
        hak_policy *got = hak_ctx_policy(local);
        CHECK(got == policy);
        hak_policy_unref(got);
        got = hak_space_policy(s.space);
        CHECK(got == policy);
        hak_policy_unref(got);
        hak_space_policy_set(s.space, nullptr);
        CHECK(hak_space_policy(s.space) == nullptr);
        REQUIRE(hak_ctx_policy_set(local, nullptr) == 0);
        CHECK(hak_ctx_policy(local) == nullptr);
        CHECK(os.reserved() == 4096);
    }
    CHECK(os.reserved() == 0);
    CHECK(os.close() == "");
}

TEST_CASE("policy: contexts that end with their space give theirs back")
{
    FakeOs os;
    {
        TestSpace s;
        Policy p("magazine 8\n", os.table());
        hak_options options = HAK_OPTIONS_INIT;
        options.policy = p;
        hak_ctx *ctx[4];
        for (hak_ctx *&c : ctx) {
            REQUIRE((c = hak_ctx_new(s.space, &options)) != nullptr);
            options.shared = !options.shared;
        }
        REQUIRE(hak_ctx_policy_set(ctx[1], nullptr) == 0);
        hak_ctx_destroy(ctx[2]);
    }
    CHECK(os.reserved() == 0);
    CHECK(os.close() == "");
}

TEST_CASE("policy: no memory for it changes nothing")
{
    FakeOs os;
    hak_policy_error error;
    const std::string text = "hakmem-policy 1\nmagazine 8\n";
    for (uint64_t n = 1; n <= 4; n++) {
        os.fail_nth(n);
        CHECK(hak_policy_parse(os.table(), text.data(), text.size(), &error) == nullptr);
        CHECK(error.line == 0);
        CHECK(std::string(error.text) == "no memory");
        CHECK(os.reserved() == 0);
    }
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_limit(ctx, 0, committed_of(ctx), nullptr, nullptr) == 0);
    Policy p("magazine 8\n");
    CHECK(hak_ctx_policy_set(ctx, p) == -1);
    CHECK(hak_site_define(ctx, 1, "x") == -1);
    CHECK(numbers_of(ctx).magazine == 32);
    CHECK(hak_ctx_policy(ctx) == nullptr);
    require_sound(ctx);
    REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    CHECK(hak_ctx_policy_set(ctx, p) == 0);
    CHECK(numbers_of(ctx).magazine == 8);
    // A context that cannot have one is not made.
    hak_quota *quota = hak_quota_new(nullptr, 17 * KiB);
    hak_options options = HAK_OPTIONS_INIT;
    options.quota = quota;
    options.policy = p;
    CHECK(hak_ctx_new(s.space, &options) == nullptr);
    CHECK(hak_ctx_new(nullptr, &options) == nullptr);
    CHECK(hak_quota_used(quota) == 0);
    options.policy = nullptr;
    hak_ctx *without = hak_ctx_new(s.space, &options);
    CHECK(without != nullptr);
    hak_ctx_destroy(without);
    hak_quota_delete(quota);
}

TEST_CASE("policy: its numbers go before those of tuning, its mode before the mode, tuning between them")
{
    hak_tuning t = HAK_TUNING_INIT;
    t.magazine = 16;
    t.retained_bytes = 3 * MiB;
    Options options(HAK_OPTIONS_INIT);
    options.hak_options::tuning = &t;
    options.mode = HAK_MODE_LEAN;
    const bool later = GENERATE(false, true), own = GENERATE(false, true);
    TestSpace s([&](SpaceOptions &o) { o.retained_bytes = 3 * MiB; });
    Policy p("mode fast\nbig_cache 5M\n");
    if (!later) options.policy = p;
    TestCtx ctx(own ? nullptr : s.space, &options);
    if (later) {
        CHECK(numbers_of(ctx).big_cache == 2 * MiB);
        REQUIRE(hak_ctx_policy_set(ctx, p) == 0);
    }
    hak_tuning n = numbers_of(ctx);
    CHECK(n.big_cache == 5 * MiB);      // the policy's
    CHECK(n.magazine == 16);            // the tuning's
    CHECK(n.units_ahead == 64);         // of the policy's mode
    CHECK(n.retained_bytes == 3 * MiB); // the space's, or its own space's tuning
    CHECK(n.retained_percent == (own ? 100 : 50));
    // By its options again.
    REQUIRE(hak_ctx_policy_set(ctx, nullptr) == 0);
    n = numbers_of(ctx);
    CHECK(n.big_cache == 2 * MiB);
    CHECK(n.magazine == 16);
    CHECK(n.units_ahead == HAK_NONE);
    CHECK(n.retained_percent == (own ? HAK_NONE : 50));
}

TEST_CASE("policy: magazines and caches that are open shrink at once, and grow again")
{
    TestSpace s;
    TestCtx ctx(s.space);
    auto held = [&] { return hak_ctx_live_bytes(ctx) - stats_of(ctx).live_bytes; };
    auto work = [&](size_t size) {
        std::vector<void *> p(512);
        for (int round = 0; round < 100; round++) {
            for (void *&block : p)
                block = hak_alloc(ctx, size);
            for (size_t i = 0; i < p.size(); i++)
                hak_free(ctx, p[i * 7919 % p.size()]);
        }
    };
    for (size_t size : {(size_t)2000, 20 * KiB, (size_t)640})
        work(size);
    hak_free(ctx, hak_alloc(ctx, 3 * MiB));
    CHECK(held() > 640 * 8);
    CHECK(stats_of(ctx).cached_bytes > 3 * MiB);
    Policy none("magazine none\nbig_cache none\n"), four("magazine 4\n");
    REQUIRE(hak_ctx_policy_set(ctx, none) == 0);
    CHECK(held() == 0);
    CHECK(stats_of(ctx).cached_bytes < 2 * MiB);
    for (size_t size : {(size_t)640, (size_t)2000, 20 * KiB})
        work(size);
    CHECK(held() == 0);
    REQUIRE(hak_ctx_policy_set(ctx, four) == 0);
    work(640);
    CHECK(held() > 0);
    CHECK(held() <= 4 * 640);
    size_t metadata = stats_of(ctx).metadata_bytes;
    for (int i = 0; i < 100; i++) {
        REQUIRE(hak_ctx_policy_set(ctx, i % 2 ? static_cast<const hak_policy *>(four) : nullptr) == 0);
        work(640);
    }
    // Slots that a class has had are used again.
    CHECK(stats_of(ctx).metadata_bytes <= metadata + 32 * KiB);
    REQUIRE(hak_ctx_policy_set(ctx, nullptr) == 0);
    work(640);
    CHECK(held() > 640 * 8);
    hak_free(ctx, hak_alloc(ctx, 3 * MiB));
    CHECK(stats_of(ctx).cached_bytes > 3 * MiB);
    require_sound(ctx);
}

TEST_CASE(
    "policy: packed_bytes that falls sends classes to slabs at once, and packed units back with their blocks")
{
    const size_t limit = GENERATE((size_t)0, 3 * MiB);
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_limit(ctx, 0, limit, nullptr, nullptr) == 0);
    // 640 KiB of 20 sizes.
    std::vector<void *> live;
    auto fill = [&] {
        for (size_t n = 16; n <= 320; n += 16)
            for (size_t i = 0; i < 32 * KiB; i += n) {
                live.push_back(hak_alloc(ctx, n));
                REQUIRE(live.back() != nullptr);
            }
        return (double)committed_of(ctx) / (double)stats_of(ctx).live_bytes;
    };
    auto clear = [&] {
        for (void *p : live)
            hak_free(ctx, p);
        live.clear();
        hak_ctx_flush(ctx);
        hak_ctx_trim(ctx);
    };
    CHECK(fill() < 1.2);
    clear();
    Policy few("packed_bytes 64K\n"), none("packed_bytes none\n"), more("packed_bytes 4M\n");
    REQUIRE(fill() < 1.2);
    REQUIRE(hak_ctx_policy_set(ctx, few) == 0);
    CHECK(numbers_of(ctx).packed_bytes == 64 * KiB);
    require_sound(ctx);
    clear();
    CHECK(committed_of(ctx) <= 128 * KiB);
    // A sixteenth of a limit may be first slabs of classes that left for speed; the others stay as they are.
    const double ratio = fill();
    if (limit) CHECK(ratio < 1.5);
    else CHECK(ratio > 1.25);
    require_sound(ctx);
    clear();
    REQUIRE(hak_ctx_policy_set(ctx, none) == 0);
    CHECK(numbers_of(ctx).packed_bytes == HAK_NONE);
    fill();
    require_sound(ctx);
    // Classes that took a slab keep to slabs; the others are packed again.
    REQUIRE(hak_ctx_policy_set(ctx, more) == 0);
    CHECK(numbers_of(ctx).packed_bytes == 4 * MiB);
    const size_t before = committed_of(ctx);
    for (size_t n = 330; n <= 1000; n += 10)
        live.push_back(hak_alloc(ctx, n));
    CHECK(committed_of(ctx) - before <= 128 * KiB);
    require_sound(ctx);
    clear();
    REQUIRE(hak_ctx_policy_set(ctx, nullptr) == 0);
    CHECK(numbers_of(ctx).packed_bytes == 2 * MiB);
    CHECK(stats_of(ctx).live_bytes == 0);
}

TEST_CASE("policy: magazine_most that changes moves whole classes between both ways")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Policy small("magazine_most 1K\n");
    Random random(3);
    std::vector<void *> live(400);
    for (int round = 0; round < 60; round++) {
        REQUIRE(hak_ctx_policy_set(ctx, round % 2 ? static_cast<const hak_policy *>(small) : nullptr) == 0);
        for (int i = 0; i < 2000; i++) {
            void *&p = live[random.below(live.size())];
            hak_free(ctx, p);
            REQUIRE((p = hak_alloc(ctx, 1 + random.below(40 * KiB))) != nullptr);
        }
        require_sound(ctx);
    }
    for (void *p : live)
        hak_free(ctx, p);
    hak_ctx_flush(ctx);
    CHECK(stats_of(ctx).live_bytes == 0);
    require_sound(ctx);
}

TEST_CASE("policy: a context that is retired stays sound with other numbers")
{
    const bool shared = GENERATE(false, true);
    CAPTURE(shared);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    hak_ctx *ctx = hak_ctx_new(s.space, &options);
    REQUIRE(ctx != nullptr);
    std::vector<void *> blocks;
    for (size_t i = 0; i < 3000; i++)
        blocks.push_back(hak_alloc(ctx, 64 + i % 3 * 2000));
    hak_ctx_retire(ctx);
    require_sound(ctx);
    for (hak_mode mode : {HAK_MODE_MINIMAL, HAK_MODE_FAST, HAK_MODE_LEAN, HAK_MODE_BALANCED}) {
        REQUIRE(hak_ctx_policy_set(ctx, hak_policy_of_mode(mode)) == 0);
        require_sound(ctx);
        for (size_t i = 0; i < 500; i++, blocks.pop_back())
            hak_free(ctx, blocks.back());
        require_sound(ctx);
    }
    CHECK(hak_alloc(ctx, 64) == nullptr);
    for (void *p : blocks)
        hak_free(ctx, p); // the last one ends the context, which the fake OS sees
}

TEST_CASE("policy: other threads of a shared context follow")
{
    TestSpace s;
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    options.tuning = nullptr;
    TestCtx ctx(s.space, &options);
    Policy none("magazine none\n");
    std::atomic<int> step{0};
    size_t held_before = 0, held_after = 1;
    auto work = [&] {
        std::vector<void *> p(512);
        for (int round = 0; round < 50; round++) {
            for (void *&block : p)
                block = hak_alloc(ctx, 640);
            for (size_t i = 0; i < p.size(); i++)
                hak_free(ctx, p[i * 7919 % p.size()]);
        }
    };
    auto held = [&] { return hak_ctx_live_bytes(hak_ctx_thread(ctx)) - stats_of(ctx).live_bytes; };
    std::thread other([&] {
        work();
        held_before = held();
        step = 1;
        while (step == 1)
            std::this_thread::yield();
        work();
        held_after = held();
    });
    while (step == 0)
        std::this_thread::yield();
    REQUIRE(hak_ctx_policy_set(ctx, none) == 0);
    CHECK(numbers_of(ctx).magazine == HAK_NONE);
    step = 2;
    other.join();
    CHECK(held_before > 0);
    CHECK(held_after == 0);
    // A thread that comes later has them from the beginning.
    std::thread later([&] { work(), held_after = held(); });
    later.join();
    CHECK(held_after == 0);
    require_sound(ctx);
}

TEST_CASE("policy: what it does not say stays as the options of a shared context said")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = true;
    options.packed_bytes = 1 * MiB;
    options.slab_sizes = 2;
    TestCtx ctx(s.space, &options);
    auto numbers = [&] {
        hak_tuning t = HAK_TUNING_INIT;
        REQUIRE(hak_ctx_tuning(ctx, &t) == 0);
        return t;
    };
    CHECK(numbers().packed_bytes == 1 * MiB);
    CHECK(numbers().slab_sizes == 2);
    Policy retained("retained_bytes 64M\n"), packs("packed_bytes 2M\n");
    REQUIRE(hak_ctx_policy_set(ctx, retained) == 0);
    CHECK(numbers().packed_bytes == 1 * MiB);
    CHECK(numbers().slab_sizes == 2);
    REQUIRE(hak_ctx_policy_set(ctx, packs) == 0);
    CHECK(numbers().packed_bytes == 2 * MiB);
    REQUIRE(hak_ctx_policy_set(ctx, nullptr) == 0);
    CHECK(numbers().packed_bytes == 1 * MiB);
    // A thread that comes later packs, too: its blocks share a unit.
    std::thread([&] {
        void *a = hak_alloc(ctx, 40), *b = hak_alloc(ctx, 600);
        if ((addr(a) ^ addr(b)) / (16 * KiB) != 0) std::abort();
        hak_free(ctx, a);
        hak_free(ctx, b);
    }).join();
}

TEST_CASE("policy: threads that come later lay out their blocks as the context was made to")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = true;
    const bool packs = GENERATE(false, true), moves = GENERATE(false, true);
    CAPTURE(packs, moves);
    if (!packs) options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    // Slabs for blocks of 40 bytes, and which ones are packed at all, are for contexts that are new.
    Policy offset(std::string(moves ? "first_offset 48\n" : "") + "slab_sizes 16\npacked_bytes 2M\n");
    hak_free(ctx, hak_alloc(ctx, 40));
    REQUIRE(hak_ctx_policy_set(ctx, offset) == 0);
    CHECK(numbers_of(ctx).first_offset == 0);
    CHECK(numbers_of(ctx).slab_sizes == HAK_NONE);
    CHECK(numbers_of(ctx).packed_bytes == (packs ? 2 * MiB : HAK_NONE));
    unsigned misaligned = 0, blocks = 0;
    bool one_unit = false;
    std::thread([&] {
        void *a = hak_alloc(ctx, 40), *b = hak_alloc(ctx, 600);
        one_unit = (addr(a) ^ addr(b)) / (16 * KiB) == 0;
        hak_free(ctx, a);
        hak_free(ctx, b);
        for (size_t align = 16; align <= 4096; align *= 2)
            for (size_t n = 1; n <= 2048; n += 97, blocks++)
                misaligned += addr(hak_aligned_alloc(ctx, align, n)) % align != 0;
    }).join();
    CHECK(blocks > 0);
    CHECK(misaligned == 0);
    CHECK(one_unit == packs);
    require_sound(ctx);
}

TEST_CASE("policy: threads at work while it changes")
{
    TestSpace s;
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    TestCtx ctx(s.space, &options);
    Policy a("magazine none\nroom 50 label grows\n"), b("mode fast\nroom 90 site here\n");
    hak_label label = hak_label_define(ctx, "grows");
    std::atomic<bool> over{false};
    std::vector<std::thread> crew;
    for (unsigned t = 0; t < 3; t++)
        crew.emplace_back([&, t] {
            Random random(t);
            std::vector<void *> live(100);
            while (!over) {
                void *&p = live[random.below(live.size())];
                p = hak_realloc_cs(ctx, p, 1 + random.below(3000), label, 77);
            }
            for (void *p : live)
                hak_free(ctx, p);
        });
    for (int i = 0; i < 300; i++) {
        REQUIRE(hak_ctx_policy_set(ctx, i % 3 == 0 ? nullptr : i % 3 == 1 ? a.policy : b.policy) == 0);
        hak_space_policy_set(s.space, i % 2 ? a.policy : b.policy);
        REQUIRE(hak_site_define(ctx, (hak_site)(70 + i % 10), "here") == 0);
        hak_ctx_tick(ctx, 0);
    }
    over = true;
    for (std::thread &t : crew)
        t.join();
    require_sound(ctx);
}

TEST_CASE("policy: a heap that will be large has huge pages from its first chunk on")
{
    const bool later = GENERATE(false, true), shared = GENERATE(false, true);
    Policy large("expected_bytes 64M\n"), small("expected_bytes 63M\n");
    for (const hak_policy *policy : {small.policy, large.policy}) {
        TestSpace s;
        hak_options options = HAK_OPTIONS_INIT;
        options.shared = shared;
        if (!later) options.policy = policy;
        TestCtx ctx(s.space, &options);
        if (later) REQUIRE(hak_ctx_policy_set(ctx, policy) == 0);
        uint64_t before = s.os.counts.huge;
        for (int i = 0; i < 4; i++)
            REQUIRE(hak_alloc(ctx, MiB) != nullptr);
        CHECK((s.os.counts.huge > before) == (policy == large.policy));
        before = s.os.counts.huge;
        REQUIRE(hak_alloc(ctx, 8 * MiB) != nullptr);
        CHECK((s.os.counts.huge > before) == (policy == large.policy));
    }
}
