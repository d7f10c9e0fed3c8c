// The parser of sizes beside what tests/support/sizes.py holds of it through each binding.

extern "C" {
#include "common/size.h"
}

#include "catch.h"

#include <cstdint>
#include <string>

static bool is_none(const std::string &text)
{
    size_t out = 12345;
    const char *why = hkc_size_parse(text.c_str(), &out);
    return why && std::string(why).find("is no size") == 0 && out == 12345;
}

static size_t size_of(const std::string &text)
{
    size_t out = 0;
    INFO(text);
    const char *why = hkc_size_parse(text.c_str(), &out);
    REQUIRE(why == nullptr);
    return out;
}

TEST_CASE("every unit in every spelling")
{
    const char units[] = "kmgt";
    for (int i = 0; i < 4; i++)
        for (const char *rest : {"", "b", "B", "i", "I", "ib", "iB", "Ib", "IB"}) {
            char lower = units[i], upper = (char)(lower - 'a' + 'A');
            CHECK(size_of("3" + std::string(1, lower) + rest) == (size_t)3 << (10 * (i + 1)));
            CHECK(size_of("3" + std::string(1, upper) + rest) == (size_t)3 << (10 * (i + 1)));
        }
    CHECK(size_of("0") == 0);
    CHECK(size_of("0T") == 0);
    CHECK(size_of("007K") == 7 << 10);
}

TEST_CASE("fractions are rounded down")
{
    CHECK(size_of("1.5K") == 1536);
    CHECK(size_of("0.999999999K") == 1023);
    CHECK(size_of("0.000000001T") == 1099);
    CHECK(is_none("0.0000000001T"));
    CHECK(size_of("0.001K") == 1);
    CHECK(is_none("0.0009K")); /* not even a byte: 0 would be no limit at all */
    CHECK(size_of("0.0K") == 0);
    CHECK(is_none("1.5"));
    CHECK(is_none("1.K"));
}

TEST_CASE("the largest sizes, and what is above them")
{
    CHECK(size_of("18446744073709551615") == SIZE_MAX);
    CHECK(size_of("16777215.999999999T") > SIZE_MAX - ((size_t)1 << 12));
    for (const char *text : {"18446744073709551616", "16777216T", "99999999999999999999T"}) {
        size_t out = 12345;
        const char *why = hkc_size_parse(text, &out);
        REQUIRE(why != nullptr);
        CHECK(std::string(why) == "is more than addresses reach");
        CHECK(out == 12345);
    }
}

TEST_CASE("a byte other than those of a size makes it none")
{
    for (int c = 1; c < 256; c++) {
        const std::string byte(1, (char)c);
        INFO(c);
        if (c < '0' || c > '9') CHECK(is_none(byte + "5"));
        if (std::string("0123456789kmgtKMGT").find(byte) == std::string::npos) CHECK(is_none("5" + byte));
        if (std::string("bBiI").find(byte) == std::string::npos) CHECK(is_none("5K" + byte));
        if (std::string("bB").find(byte) == std::string::npos) CHECK(is_none("5Ki" + byte));
        CHECK(is_none("5KiB" + byte));
    }
}
