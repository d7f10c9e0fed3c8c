// Policies as objects and as text.
#include "policy.h"

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
