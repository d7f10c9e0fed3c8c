// Policies: as objects, as text, and how contexts and spaces go by them.
#include "policy.h"

#include <atomic>
#include <thread>

using namespace test;

namespace
{

std::string printed(const hak_policy *policy)
{
    std::string text(hak_policy_print(policy, nullptr, 0) + 1, 'x');
    CHECK(hak_policy_print(policy, &text[0], text.size()) == text.size() - 1);
    CHECK(text.back() == '\0');
    text.pop_back();
    return text;
}

std::vector<std::string> differences(const hak_policy *a, const hak_policy *b)
{
    std::vector<std::string> all;
    size_t n = hak_policy_diff(
        a, b,
        [](void *user, const char *what, const char *from, const char *to) {
            static_cast<std::vector<std::string> *>(user)->push_back(
                std::string(what) + ": " + (from ? from : "-") + " -> " + (to ? to : "-"));
        },
        &all);
    CHECK(n == all.size());
    return all;
}

hak_tuning numbers_of(const hak_ctx *ctx)
{
    hak_tuning t = HAK_TUNING_INIT;
    REQUIRE(hak_ctx_tuning(ctx, &t) == 0);
    return t;
}

} // namespace

TEST_CASE("policy: its text says what it was made of, and gives an equal one")
{
    const std::string text = "hakmem-policy 1\nname web server\nmode lean\nmagazine 64\nbig_cache none\n"
                             "retained_bytes 64M\npurge_ns 10000000000\nexpected_bytes 390M\n"
                             "room 100 label buf fer\nroom 7 site src/a b.c:120\n";
    hak_tuning t = HAK_TUNING_INIT;
    t.magazine = 64;
    t.big_cache = HAK_NONE;
    t.retained_bytes = 64 * MiB;
    t.purge_ns = UINT64_C(10000000000);
    t.expected_bytes = 390 * MiB;
    const hak_hint hints[] = {{"buf fer", nullptr, 100}, {nullptr, "src/a b.c:120", 7}};
    hak_policy_options options = HAK_POLICY_OPTIONS_INIT;
    options.name = "web server";
    options.mode = HAK_MODE_LEAN;
    options.tuning = &t;
    options.hints = hints;
    options.hint_count = 2;
    REQUIRE(hak_policy_options_error(&options) == nullptr);
    hak_policy *made = hak_policy_new(nullptr, &options);
    REQUIRE(made != nullptr);
    CHECK(printed(made) == text);
    hak_policy *read = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    REQUIRE(read != nullptr);
    CHECK(differences(made, read).empty());
    CHECK(std::string(hak_policy_name(read)) == "web server");
    CHECK(hak_policy_mode(read) == HAK_MODE_LEAN);
    hak_tuning back = HAK_TUNING_INIT;
    REQUIRE(hak_policy_tuning(read, &back) == 0);
    CHECK(std::memcmp(&back, &t, sizeof t) == 0);
    hak_hint out[2];
    REQUIRE(hak_policy_hints(read, out, 2) == 2);
    CHECK(std::string(out[0].label) == "buf fer");
    CHECK(out[0].site == nullptr);
    CHECK(std::string(out[1].site) == "src/a b.c:120");
    CHECK(out[1].room == 7);
    // Shorter than its room: what fits, with an end.
    char few[20];
    CHECK(hak_policy_print(read, few, sizeof few) == text.size());
    CHECK(std::string(few) == text.substr(0, 19));
    hak_policy_unref(made);
    hak_policy_unref(read);
}

TEST_CASE("policy: prices, budgets and trials that were undone are a part of its text")
{
    const std::string text =
        "hakmem-policy 1\nmode fast\nprice 50\nmemory 64M\n"
        "undone mode balanced from fast cost 19600 without 5000 windows 3 price 50 "
        "fault 812\nundone retained_bytes none from 1M cost 1 without 0 windows 9 price 5 "
        "fault 100\n";
    const hak_undone undone[] = {{"mode", HAK_MODE_BALANCED, HAK_MODE_FAST, 19600, 5000, 3, 50, 812},
                                 {"retained_bytes", HAK_NONE, 1 * MiB, 1, 0, 9, 5, 100}};
    hak_policy_options options = HAK_POLICY_OPTIONS_INIT;
    options.mode = HAK_MODE_FAST;
    options.price = 50;
    options.budget = 64 * MiB;
    options.undone = undone;
    options.undone_count = 2;
    REQUIRE(hak_policy_options_error(&options) == nullptr);
    hak_policy *made = hak_policy_new(nullptr, &options);
    REQUIRE(made != nullptr);
    CHECK(printed(made) == text);
    hak_policy *read = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
    REQUIRE(read != nullptr);
    CHECK(differences(made, read).empty());
    CHECK(hak_policy_price(read) == 50);
    CHECK(hak_policy_budget(read) == 64 * MiB);
    hak_undone out[2];
    REQUIRE(hak_policy_undone(read, out, 2) == 2);
    CHECK(std::string(out[0].number) == "mode");
    CHECK(out[0].from == HAK_MODE_FAST);
    CHECK(out[1].to == HAK_NONE);
    CHECK(out[1].fault_ns == 100);
    CHECK(differences(nullptr, read) ==
          std::vector<std::string>{"mode: - -> fast", "price: - -> 50", "memory: - -> 64M",
                                   "undone mode balanced from fast: - -> known",
                                   "undone retained_bytes none from 1M: - -> known"});
    hak_policy_unref(made);
    hak_policy_unref(read);
    options.price = HAK_PRICE_MOST + 1;
    CHECK(hak_policy_options_error(&options) != nullptr);
    options.price = 0;
    options.budget = 4096;
    CHECK(std::string(hak_policy_options_error(&options)) == "budget: 1 MiB to 1 TiB");
    options.budget = 0;
    const hak_undone twice[] = {undone[0], undone[0]};
    options.undone = twice;
    CHECK(std::string(hak_policy_options_error(&options)) == "undone: two are for one step");
    options.undone = nullptr;
    CHECK(std::string(hak_policy_options_error(&options)) == "undone_count without undone");
}

TEST_CASE("policy: memory in words is a price")
{
    Policy cheap("memory cheap"), normal("memory normal"), dear("memory dear\nmemory 1T");
    CHECK(printed(cheap) == "hakmem-policy 1\nprice 5\n");
    CHECK(printed(normal) == "hakmem-policy 1\nprice 50\n");
    CHECK(printed(dear) == "hakmem-policy 1\nprice 1000\nmemory 1T\n");
}

TEST_CASE("policy: comments, blanks and ends of lines of other systems are fine")
{
    Policy p("\r\n  # a comment\n\tmagazine 8\r\n\n   name x y  \nroom 5 label a#b");
    CHECK(printed(p) == "hakmem-policy 1\nname x y\nmagazine 8\nroom 5 label a#b\n");
    Policy wide("name \t x  y\nmagazine   8\t\nroom\t5 \tlabel  a  b");
    CHECK(printed(wide) == "hakmem-policy 1\nname x  y\nmagazine 8\nroom 5 label a  b\n");
}

TEST_CASE("policy: what is wrong with a text is told with its line, and there is no policy")
{
    const struct {
        const char *text;
        unsigned line;
        const char *what;
    } WRONG[] = {
        {"", 1, "'hakmem-policy 1' expected"},
        {"\n\n# nothing\n", 3, "'hakmem-policy 1' expected"},
        {"magazine 8\n", 1, "'hakmem-policy 1' expected"},
        {"hakmem-policy 2\n", 1, "version '2' is unknown, this is 1"},
        {"hakmem-policy \n", 1, "'hakmem-policy 1' expected"},
        {"hakmem-policy 1\nhakmem-policy 1\n", 2, "'hakmem-policy' is unknown"},
        {"hakmem-policy 1\nmagazines 8\n", 2, "'magazines' is unknown"},
        {"hakmem-policy 1\nsize 8\n", 2, "'size' is unknown"},
        {"hakmem-policy 1\nmagazine\n", 2, "magazine: '' is no number"},
        {"hakmem-policy 1\nmagazine 8x\n", 2, "magazine: '8x' is no number"},
        {"hakmem-policy 1\nmagazine 8KK\n", 2, "magazine: '8KK' is no number"},
        {"hakmem-policy 1\nmagazine -8\n", 2, "magazine: '-8' is no number"},
        {"hakmem-policy 1\nretained_bytes 18446744073709551616\n", 2,
         "retained_bytes: '18446744073709551616' is no number"},
        {"hakmem-policy 1\nretained_bytes 16777216T\n", 2, "retained_bytes: '16777216T' is no number"},
        {"hakmem-policy 1\nprice 0\n", 2, "price: '0' is not from 1 to 1000000"},
        {"hakmem-policy 1\nprice 1000001\n", 2, "price: '1000001' is not from 1 to 1000000"},
        {"hakmem-policy 1\nprice 50\nmemory dear\n", 3, "price: said twice"},
        {"hakmem-policy 1\nmemory\n", 2, "memory: '' is not cheap, normal, dear or a size"},
        {"hakmem-policy 1\nmemory costly\n", 2, "memory: 'costly' is not cheap, normal, dear or a size"},
        {"hakmem-policy 1\nmemory 4K\n", 2, "memory: '4K': 1 MiB to 1 TiB"},
        {"hakmem-policy 1\nmemory 1M\nmemory 2M\n", 3, "memory: said twice"},
        {"hakmem-policy 1\nundone magazine 8 from 4\n", 2,
         "undone: 'NUMBER TO from FROM cost N without N windows N price N fault N' expected"},
        {"hakmem-policy 1\nundone mode fast from fast cost 1 without 1 windows 1 price 1 fault 1\n", 2,
         "undone: 'NUMBER TO from FROM cost N without N windows N price N fault N' expected"},
        {"hakmem-policy 1\nundone mode lean from fast cost 1 without 1 windows 1 price 1 fault 1\n"
         "undone mode lean from fast cost 2 without 1 windows 1 price 1 fault 1\n",
         3, "undone: this step was said already"},
        {"hakmem-policy 1\nmagazine 0\n", 2, "magazine: 0 is no value; leave the line out"},
        {"hakmem-policy 1\nmagazine 129\n", 2, "magazine: 2 to 128, or none (HAK_NONE)"},
        {"hakmem-policy 1\nfirst_offset 8\n", 2, "first_offset: 0, 16, 32 or 48"},
        {"hakmem-policy 1\n\n# x\nmagazine 8\nmagazine 8\n", 5, "magazine: said twice"},
        {"hakmem-policy 1\nmode quick\n", 2, "mode: 'quick' is none"},
        {"hakmem-policy 1\nmode\n", 2, "mode: '' is none"},
        {"hakmem-policy 1\nmode lean\nmode fast\n", 3, "mode: said twice"},
        {"hakmem-policy 1\nname\n", 2, "name: 1 to 63 bytes without control characters expected"},
        {"hakmem-policy 1\nname a\nname b\n", 3, "name: said twice"},
        {"hakmem-policy 1\nroom 50 label a\nroom 50 label a\n", 3, "room of the label 'a': said twice"},
        {"hakmem-policy 1\nroom 0 label a\n", 2, "room: '0' is not from 1 to 100"},
        {"hakmem-policy 1\nroom 101 site a\n", 2, "room: '101' is not from 1 to 100"},
        {"hakmem-policy 1\nroom 5 labels a\n", 2, "room: 'label' or 'site' expected, not 'labels'"},
        {"hakmem-policy 1\nroom 5 site\n", 2, "site: 1 to 191 bytes without control characters expected"},
        {"hakmem-policy 1\nroom 5 label a\tb\n", 2,
         "label: 1 to 63 bytes without control characters expected"},
    };
    for (const auto &wrong : WRONG) {
        hak_policy_error error;
        CAPTURE(wrong.text);
        CHECK(hak_policy_parse(nullptr, wrong.text, std::strlen(wrong.text), &error) == nullptr);
        CHECK(error.line == wrong.line);
        CHECK(std::string(error.text) == wrong.what);
        CHECK(hak_policy_parse(nullptr, wrong.text, std::strlen(wrong.text), nullptr) == nullptr);
    }
    hak_policy_error error;
    const char zero[] = "hakmem-policy 1\nname a\0b\n";
    CHECK(hak_policy_parse(nullptr, zero, sizeof zero - 1, &error) == nullptr);
    CHECK(error.line == 2);
    CHECK(std::string(error.text) == "a byte of zero");
    std::string text(1025 * 1024, '\n');
    CHECK(hak_policy_parse(nullptr, text.data(), text.size(), &error) == nullptr);
    CHECK(std::string(error.text) == "longer than 1 MiB");
    text = "hakmem-policy 1\n";
    for (int i = 0; i <= HAK_HINTS_MOST; i++)
        text += "room 5 site " + std::to_string(i) + "\n";
    CHECK(hak_policy_parse(nullptr, text.data(), text.size(), &error) == nullptr);
    CHECK(error.line == HAK_HINTS_MOST + 2);
    CHECK(std::string(error.text) == "more than 1024 hints");
}

TEST_CASE("policy: any bytes as text are refused or give a text that gives the same policy")
{
    const std::string good =
        "hakmem-policy 1\nname n\nmode lean\nmagazine 64\nretained_bytes 64M\nroom 9 label b\n";
    Random random(7);
    unsigned accepted = 0;
    for (size_t i = 0; i < 4000 * EFFORT; i++) {
        std::string text = good;
        for (size_t k = random.below(4) + 1; k; k--)
            text[random.below(text.size())] = (char)random.below(random.below(4) ? 128 : 256);
        hak_policy *policy = hak_policy_parse(nullptr, text.data(), text.size(), nullptr);
        if (!policy) continue;
        accepted++;
        Policy again(printed(policy).substr(16));
        CHECK(differences(policy, again).empty());
        hak_policy_unref(policy);
    }
    CHECK(accepted > 10);
}

TEST_CASE("policy: differences name what is said on one side alone, or otherwise")
{
    Policy a("name a\nmagazine 8\nretained_bytes 1M\nroom 5 label x\nroom 6 site y\n"),
        b("mode fast\nmagazine 8\nretained_bytes none\nroom 7 label x\nroom 8 site z\n");
    CHECK(differences(a, b) == std::vector<std::string>{"name: a -> -", "mode: - -> fast",
                                                        "retained_bytes: 1M -> none", "room label x: 5 -> 7",
                                                        "room site y: 6 -> -", "room site z: - -> 8"});
    CHECK(hak_policy_diff(a, b, nullptr, nullptr) == 6);
    CHECK(hak_policy_diff(a, a, nullptr, nullptr) == 0);
    CHECK(hak_policy_diff(nullptr, b, nullptr, nullptr) == hak_policy_diff(b, nullptr, nullptr, nullptr));
    CHECK(hak_policy_diff(nullptr, b, nullptr, nullptr) > 0);
    CHECK(hak_policy_diff(nullptr, nullptr, nullptr, nullptr) == 0);
    CHECK(hak_policy_parse(nullptr, nullptr, 0, nullptr) == nullptr);
}

TEST_CASE("policy: options that are none are refused with a reason")
{
    hak_policy_options o = HAK_POLICY_OPTIONS_INIT;
    hak_tuning t = HAK_TUNING_INIT;
    hak_hint hint = {"a", nullptr, 5}, twice[] = {hint, hint};
    o.hints = &hint;
    std::string begins;
    SECTION("size") o.size = 12, begins = "hak_policy_options.size";
    SECTION("mode") o.mode = 6, begins = "mode";
    SECTION("a mode below") o.mode = -2, begins = "mode";
    SECTION("name") o.name = "a\n", begins = "name";
    SECTION("tuning") t.magazine = 1, o.tuning = &t, begins = "tuning.magazine";
    SECTION("no hints") o.hints = nullptr, o.hint_count = 1, begins = "hint_count without";
    SECTION("too many") o.hint_count = HAK_HINTS_MOST + 1, begins = "hint_count: at most";
    SECTION("both") hint.site = "b", o.hint_count = 1, begins = "hints: a label or a site";
    SECTION("neither") hint.label = nullptr, o.hint_count = 1, begins = "hints: a label or a site";
    SECTION("label") hint.label = "", o.hint_count = 1, begins = "hints: a label has 1 to 63";
    SECTION("site")
    hint.label = nullptr, hint.site = " a", o.hint_count = 1, begins = "hints: a site has 1 to 191";
    SECTION("room") hint.room = 101, o.hint_count = 1, begins = "room";
    SECTION("twice") o.hints = twice, o.hint_count = 2, begins = "hints: two are for one name";
    const char *why = hak_policy_options_error(&o);
    REQUIRE(why != nullptr);
    CHECK(std::string(why).find(begins) == 0);
    CHECK(hak_policy_new(nullptr, &o) == nullptr);
}

TEST_CASE("policy: modes have names, and policies that are built in")
{
    const char *names[] = {"balanced", "minimal", "fast", "lean", "learning", "research"};
    for (int mode = 0; mode < 6; mode++) {
        CHECK(std::string(hak_mode_name((hak_mode)mode)) == names[mode]);
        CHECK(hak_mode_by_name(names[mode]) == mode);
        const hak_policy *policy = hak_policy_of_mode((hak_mode)mode);
        REQUIRE(policy != nullptr);
        CHECK(hak_policy_mode(policy) == mode);
        CHECK(hak_policy_ref(policy) == policy);
        hak_policy_unref(policy);
        CHECK(printed(policy) ==
              std::string("hakmem-policy 1\nname ") + names[mode] + "\nmode " + names[mode] + "\n");
    }
    CHECK(hak_mode_by_name("") == -1);
    CHECK(hak_mode_by_name(nullptr) == -1);
    CHECK(hak_mode_by_name("Fast") == -1);
    const hak_mode none = (hak_mode)6;
    CHECK(hak_mode_name(none) == nullptr);
    CHECK(hak_policy_of_mode(none) == nullptr);
}

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
