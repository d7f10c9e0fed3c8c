// Structs with their size first, of programs that were compiled with another version of the header.
#include "heap.h"
#include "system.h"

#include <hakmem/learn.h>
#include <hakmem/policy.h>
#include <hakmem/profile.h>

#include <cstddef>

using namespace test;

namespace
{

const char *const ONE_LABEL[] = {"first"};

// A struct of a program that was compiled with a later header: more members behind those known here.
template <class Struct>
struct Later {
    Struct known;
    uint64_t more[4];
};

template <class Struct>
Later<Struct> later_of(const Struct &known)
{
    Later<Struct> later = {known, {0, 0, 0, 0}};
    later.known.size = sizeof later;
    return later;
}

} // namespace

TEST_CASE("options of another version: what is missing is default, what is unknown must be zero")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.name = "old";
    options.user = &options;
    options.labels = ONE_LABEL;
    options.label_count = 1;
    SECTION("smaller")
    {
        // Not read: it may not even exist.
        options.size = offsetof(hak_options, user);
        std::memset(&options.mode, 0xEE, sizeof options.mode);
        REQUIRE(hak_options_error(&options) == nullptr);
        TestCtx ctx(s.space, &options);
        CHECK(std::string(hak_ctx_name(ctx)) == "old");
        CHECK(hak_ctx_user(ctx) == nullptr);
        int outside = 0;
        hak_free(ctx, &outside);
        CHECK(errors.take() == "HAK_E_FOREIGN");
        CHECK(std::string(hak_label_name(ctx, 1)) == "first");
    }
    SECTION("nothing but a size")
    {
        size_t size = sizeof size;
        const hak_options *none = reinterpret_cast<const hak_options *>(&size);
        REQUIRE(hak_options_error(none) == nullptr);
        TestCtx ctx(s.space, none);
        CHECK(hak_alloc(ctx, 100) != nullptr);
        CHECK(std::string(hak_ctx_name(ctx)) == "");
    }
    SECTION("larger")
    {
        Later<hak_options> later = later_of<hak_options>(options);
        REQUIRE(hak_options_error(&later.known) == nullptr);
        TestCtx ctx(s.space, &later.known);
        CHECK(hak_ctx_user(ctx) == &options);
        for (uint64_t &more : later.more) {
            more = 1;
            const char *why = hak_options_error(&later.known);
            REQUIRE(why != nullptr);
            CHECK(std::string(why).find("hak_options.size") == 0);
            CHECK(hak_ctx_new(s.space, &later.known) == nullptr);
            more = 0;
        }
    }
    SECTION("shared")
    {
        options.shared = true;
        Later<hak_options> later = later_of<hak_options>(options);
        TestCtx ctx(s.space, &later.known);
        REQUIRE(hak_alloc(ctx, 100) != nullptr);
        CHECK(hak_ctx_user(ctx) == &options);
        CHECK(hak_ctx_user(hak_ctx_thread(ctx)) == &options);
    }
}

TEST_CASE("hak_options_init gives what HAK_OPTIONS_INIT gives, for any size")
{
    Later<hak_options> later;
    std::memset(&later, 0xEE, sizeof later);
    hak_options_init(&later.known, sizeof later);
    CHECK(later.known.size == sizeof later);
    CHECK(all_bytes(reinterpret_cast<char *>(&later) + sizeof(size_t), sizeof later - sizeof(size_t), 0));
    REQUIRE(hak_options_error(&later.known) == nullptr);
    later.more[0] = 7;
    later.known.user = &later;
    hak_options_init(&later.known, sizeof later.known);
    CHECK(later.known.size == sizeof(hak_options));
    CHECK(later.known.user == nullptr);
    CHECK(later.more[0] == 7); // behind its size nothing is touched
}

TEST_CASE("statistics for another version")
{
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_alloc(ctx, 1000) != nullptr);
    hak_stats whole = stats_of(ctx);
    Later<hak_stats> later;
    std::memset(&later, 0xEE, sizeof later);
    later.known.size = sizeof later;
    REQUIRE(hak_ctx_stats(ctx, &later.known) == 0);
    CHECK(later.known.size == sizeof later);
    CHECK(later.known.live_bytes == whole.live_bytes);
    CHECK(later.known.os_calls == whole.os_calls);
    CHECK(all_bytes(later.more, sizeof later.more, 0));
    later.known.size = offsetof(hak_stats, peak_bytes);
    later.known.peak_bytes = 12345;
    REQUIRE(hak_ctx_stats(ctx, &later.known) == 0);
    CHECK(later.known.live_blocks == 1);
    CHECK(later.known.peak_bytes == 12345);
    for (size_t broken : {(size_t)0, (size_t)7, SIZE_MAX}) {
        later.known.size = broken;
        CHECK(hak_ctx_stats(ctx, &later.known) == -1);
    }
}

TEST_CASE("HAK_STATS_INIT sets the size and nothing else")
{
    hak_stats stats = HAK_STATS_INIT, zero;
    CHECK(stats.size == sizeof stats);
    std::memset(&zero, 0, sizeof zero);
    zero.size = sizeof zero;
    CHECK(std::memcmp(&stats, &zero, sizeof stats) == 0);
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_alloc(ctx, 1000) != nullptr);
    REQUIRE(hak_ctx_stats(ctx, &stats) == 0);
    CHECK(stats.live_blocks == 1);
}

TEST_CASE("names in options are the caller's, as the header says")
{
    TestSpace s;
    std::string name = "before";
    std::string label = "first";
    const char *labels[] = {label.c_str()};
    Options options = ctx_options();
    options.name = name.c_str();
    options.labels = labels;
    options.label_count = 1;
    TestCtx ctx(s.space, &options);
    CHECK(hak_ctx_name(ctx) == name.c_str());
    CHECK(hak_label_name(ctx, 1) == label.c_str());
}

TEST_CASE("what profiles and learners tell is told within the size of another version")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options exact = HAK_PROFILE_OPTIONS_INIT;
    exact.mode = HAK_PROFILE_EXACT;
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    REQUIRE(hak_alloc(ctx, 100) != nullptr);
    hak_learner *learner = hak_learner_new(nullptr, nullptr);
    REQUIRE(learner != nullptr);
    auto tells = [](auto *later, auto tell) {
        std::memset(later, 0xEE, sizeof *later);
        later->known.size = sizeof *later;
        REQUIRE(tell(&later->known) == 0);
        CHECK(later->known.size == sizeof *later);
        CHECK(all_bytes(later->more, sizeof later->more, 0));
        char *bytes = reinterpret_cast<char *>(later);
        std::memset(bytes, 0xEE, sizeof *later);
        later->known.size = 16;
        REQUIRE(tell(&later->known) == 0);
        CHECK(later->known.size == 16);
        CHECK(all_bytes(bytes + 16, sizeof *later - 16, 0xEE));
        for (size_t broken : {(size_t)0, (size_t)7, SIZE_MAX}) {
            later->known.size = broken;
            CHECK(tell(&later->known) == -1);
        }
    };
    Later<hak_profile_info> profile;
    tells(&profile, [&](hak_profile_info *out) { return hak_profile_stats(ctx, out); });
    Later<hak_learner_info> learned;
    tells(&learned, [&](hak_learner_info *out) { return hak_learner_stats(learner, out); });
    Later<hak_tuning> tuning;
    tells(&tuning, [&](hak_tuning *out) { return hak_ctx_tuning(ctx, out); });
    hak_learner_delete(learner);
}

TEST_CASE("the user pointer of a context")
{
    TestSpace s;
    int mine = 0;
    Options options = ctx_options();
    options.user = &mine;
    TestCtx with(s.space, &options), without(s.space);
    CHECK(hak_ctx_user(with) == &mine);
    CHECK(hak_ctx_user(without) == nullptr);
    void *p = hak_alloc(with, 10);
    CHECK(hak_ctx_user(hak_ctx_of(s.space, p)) == &mine);
}

TEST_CASE("hak_sized_copy: older and newer structs are read")
{
    struct Known {
        size_t size;
        uint64_t a, b;
    } to;
    uint64_t from[8] = {24, 1, 2, 0, 0, 0, 0, 0};
    REQUIRE(hak_sized_copy(&to, sizeof to, from));
    CHECK((to.size == 24 && to.a == 1 && to.b == 2));
    from[0] = 16;
    REQUIRE(hak_sized_copy(&to, sizeof to, from));
    CHECK((to.size == 24 && to.a == 1 && to.b == 0));
    from[0] = 64;
    REQUIRE(hak_sized_copy(&to, sizeof to, from));
    CHECK((to.size == 24 && to.b == 2));
    from[7] = 1;
    CHECK_FALSE(hak_sized_copy(&to, sizeof to, from));
    from[0] = 56;
    CHECK(hak_sized_copy(&to, sizeof to, from));
    for (uint64_t size : {(uint64_t)0, (uint64_t)12, (uint64_t)(24 + 4096 + 8), (uint64_t)SIZE_MAX}) {
        from[0] = size;
        CHECK_FALSE(hak_sized_copy(&to, sizeof to, from));
    }
}

TEST_CASE("space options and tables of another version")
{
    FakeOs os;
    SpaceOptions options = space_options(os);
    hak_os table = *os.table();
    options.os = &table;
    auto works = [&](const hak_space_options *o) {
        REQUIRE(hak_space_options_error(o) == nullptr);
        hak_space *space = hak_space_new(o);
        REQUIRE(space != nullptr);
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        CHECK((hak_alloc(ctx, 100) && hak_alloc(ctx, 3 * MiB) && hak_alloc(ctx, 500 * KiB)));
        hak_ctx_tick(ctx, 0);
        hak_space_delete(space);
        CHECK(os.reserved() == 0);
    };
    SECTION("smaller options")
    {
        options.size = offsetof(hak_space_options, tuning);
        std::memset(&options.tuning, 0xEE, sizeof options.tuning); // not read
        works(&options);
    }
    SECTION("larger options")
    {
        Later<hak_space_options> later = later_of<hak_space_options>(options);
        works(&later.known);
        later.more[3] = 1;
        CHECK(hak_space_options_error(&later.known) != nullptr);
        CHECK(hak_space_new(&later.known) == nullptr);
    }
    SECTION("a smaller table lacks what may be missing")
    {
        table.size = offsetof(hak_os, thread_id);
        table.thread_id = nullptr;
        table.populate = [](void *, void *, size_t) { FAIL("the table ends before"); };
        options.os = &table;
        works(&options);
        CHECK(os.counts.populate == 0);
    }
    SECTION("a larger table")
    {
        Later<hak_os> later = later_of(table);
        options.os = &later.known;
        works(&options);
        later.more[0] = 1;
        CHECK(hak_space_options_error(&options) != nullptr);
        CHECK(hak_space_new(&options) == nullptr);
    }
    CHECK(os.close() == "");
}

namespace
{

// Options of this type may be smaller and larger; sizes that are broken, and what is unknown, are refused by
// `error`.
template <class Struct, class Error>
void any_size(const Struct &options, Error error)
{
    REQUIRE(error(&options) == nullptr);
    Later<Struct> later = later_of(options);
    CHECK(error(&later.known) == nullptr);
    for (uint64_t &more : later.more) {
        more = 1;
        CHECK(error(&later.known) != nullptr);
        more = 0;
    }
    size_t size = sizeof size;
    CHECK(error(reinterpret_cast<const Struct *>(&size)) == nullptr);
    for (size_t broken : {(size_t)0, (size_t)4, sizeof(Struct) + 1, sizeof(Struct) + 8 * KiB}) {
        later.known.size = broken;
        CHECK(error(&later.known) != nullptr);
    }
}

} // namespace

TEST_CASE("numbers of tuning of another version")
{
    TestSpace s;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.magazine = 8;
    any_size(tuning, [](const hak_tuning *t) {
        hak_options options = HAK_OPTIONS_INIT;
        options.tuning = t;
        return hak_options_error(&options);
    });
    auto magazine = [&](const hak_tuning *t) {
        hak_options options = HAK_OPTIONS_INIT;
        options.tuning = t;
        TestCtx ctx(s.space, &options);
        hak_tuning all = HAK_TUNING_INIT;
        REQUIRE(hak_ctx_tuning(ctx, &all) == 0);
        return all;
    };
    const auto later = later_of(tuning);
    CHECK(magazine(&later.known).magazine == 8);
    tuning.big_cache = 1; // not read
    tuning.size = offsetof(hak_tuning, big_cache);
    CHECK(magazine(&tuning).magazine == 8);
    CHECK(magazine(&tuning).big_cache == magazine(nullptr).big_cache);
}

TEST_CASE("options of policies of another version")
{
    hak_policy_options options = HAK_POLICY_OPTIONS_INIT;
    options.name = "old";
    any_size(options, hak_policy_options_error);
    const auto later = later_of(options);
    hak_policy *newer = hak_policy_new(nullptr, &later.known);
    REQUIRE(newer != nullptr);
    CHECK(hak_policy_mode(newer) == HAK_POLICY_MODE_NONE);
    hak_policy_unref(newer);
    options.size = offsetof(hak_policy_options, mode);
    hak_policy *older = hak_policy_new(nullptr, &options);
    REQUIRE(older != nullptr);
    CHECK(std::string(hak_policy_name(older)) == "old");
    CHECK(hak_policy_mode(older) == HAK_POLICY_MODE_NONE);
    hak_policy_unref(older);
}

TEST_CASE("options of profiles of another version")
{
    TestSpace s;
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    any_size(options, hak_profile_options_error);
    auto starts = [&](const hak_profile_options *o) {
        TestCtx ctx(s.space);
        REQUIRE(hak_profile_start(ctx, o) == 0);
        hak_profile_info info;
        info.size = sizeof info;
        REQUIRE(hak_profile_stats(ctx, &info) == 0);
        CHECK(info.mode == HAK_PROFILE_EXACT);
        REQUIRE(hak_alloc(ctx, 100) != nullptr);
    };
    const auto later = later_of(options);
    starts(&later.known);
    options.size = offsetof(hak_profile_options, frames);
    options.frames = [](void *, hak_ctx *, hak_site, uintptr_t *, size_t) -> size_t {
        FAIL("the options end before");
        return 0;
    };
    starts(&options);
}

TEST_CASE("options of learners of another version")
{
    hak_learner_options options = HAK_LEARNER_OPTIONS_INIT;
    options.window_ns = 5;
    any_size(options, hak_learner_options_error);
    for (bool smaller : {false, true}) {
        Later<hak_learner_options> later = later_of(options);
        if (smaller) later.known.size = offsetof(hak_learner_options, price);
        later.known.price = smaller ? -1 : 0; // not read
        hak_learner *learner = hak_learner_new(nullptr, &later.known);
        CHECK(learner != nullptr);
        hak_learner_delete(learner);
    }
}

TEST_CASE("hak_space_options_init and hak_os_init touch what the size says")
{
    hak_space_options options;
    std::memset(&options, 0xEE, sizeof options);
    hak_space_options_init(&options, offsetof(hak_space_options, tuning));
    CHECK(options.size == offsetof(hak_space_options, tuning));
    CHECK(all_bytes(&options.os, options.size - sizeof(size_t), 0));
    CHECK(all_bytes(&options.tuning, sizeof options.tuning, 0xEE));
    hak_space_options_init(&options, sizeof options);
    CHECK(hak_space_options_error(&options) == nullptr);

    Later<hak_os> os;
    std::memset(&os, 0xEE, sizeof os);
    hak_os_init(&os.known, offsetof(hak_os, populate));
    CHECK(os.known.clock(os.known.user) > 0);
    CHECK(all_bytes(&os.known.populate, sizeof os.known.populate, 0xEE));
    hak_os_init(&os.known, sizeof os);
    lacks(os.known.populate);
    CHECK(all_bytes(os.more, sizeof os.more, 0));
    options.os = &os.known;
    CHECK(hak_space_options_error(&options) == nullptr);
}
