// JSON as a stream.

extern "C" {
#include "common/json.h"
}

#include "catch.h"

#include <cerrno>
#include <climits>
#include <clocale>
#include <cmath>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace
{
struct sink {
    std::string text;
    size_t calls = 0, fails_at = SIZE_MAX;
};

int append(void *to, const char *bytes, size_t n)
{
    sink *s = static_cast<sink *>(to);
    if (s->calls++ == s->fails_at) return ENOSPC;
    s->text.append(bytes, n);
    return 0;
}

// The text of one value.
template <class Write>
std::string written(Write write)
{
    sink s;
    hkc_json w;
    hkc_json_open(&w, append, &s);
    write(&w);
    REQUIRE(hkc_json_close(&w) == 0);
    return s.text;
}

std::string quoted(const std::string &text)
{
    return written([&](hkc_json *w) { hkc_json_text_n(w, nullptr, text.data(), text.size()); });
}

std::string number(double n)
{
    return written([&](hkc_json *w) { hkc_json_number(w, nullptr, n); });
}
} // namespace

TEST_CASE("objects and arrays have their commas, keys and ends")
{
    CHECK(written([](hkc_json *w) {
              hkc_json_object(w, nullptr);
              hkc_json_array(w, "none");
              hkc_json_end(w);
              hkc_json_array(w, "two");
              hkc_json_size(w, nullptr, 1);
              hkc_json_object(w, nullptr);
              hkc_json_text(w, "a", "b");
              hkc_json_bool(w, "yes", true);
              hkc_json_bool(w, "no", false);
              hkc_json_end(w);
              hkc_json_end(w);
              hkc_json_integer(w, "last", -7);
              hkc_json_end(w);
          }) == "{\"none\":[],\"two\":[1,{\"a\":\"b\",\"yes\":true,\"no\":false}],\"last\":-7}\n");
}

TEST_CASE("text is escaped, and what is no UTF-8 is replaced")
{
    const std::string bad = "\xEF\xBF\xBD";
    CHECK(quoted("plain") == "\"plain\"");
    CHECK(quoted("a\"b\\c\n\x01\x7f") == "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\"");
    CHECK(quoted(std::string("a\0b", 3)) == "\"a\\u0000b\"");
    CHECK(quoted("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80") == "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"");
    CHECK(quoted("\xFFx") == "\"" + bad + "x\"");
    CHECK(quoted("\xC3") == "\"" + bad + "\"");                               // cut
    CHECK(quoted("\xC0\x80") == "\"" + bad + bad + "\"");                     // too long
    CHECK(quoted("\xED\xA0\x80") == "\"" + bad + bad + bad + "\"");           // surrogate
    CHECK(quoted("\xF4\x90\x80\x80") == "\"" + bad + bad + bad + bad + "\""); // above U+10FFFF
    CHECK(written([](hkc_json *w) { hkc_json_text(w, nullptr, nullptr); }) == "\"\"");
}

TEST_CASE("numbers of all sizes")
{
    CHECK(written([](hkc_json *w) { hkc_json_size(w, nullptr, UINT64_MAX); }) == "18446744073709551615");
    CHECK(written([](hkc_json *w) { hkc_json_integer(w, nullptr, INT64_MIN); }) == "-9223372036854775808");
    CHECK(number(0) == "0");
    CHECK(number(-0.0001) == "0");
    CHECK(number(1.5) == "1.5");
    CHECK(number(-2.25) == "-2.25");
    CHECK(number(0.1234) == "0.123");
    CHECK(number(3.9996) == "4");
    CHECK(number(1.005) == "1.005");
    CHECK(number(9007199254740993.0) == "9007199254740992");
    CHECK(number(1e300) == "0");
    CHECK(number(INFINITY) == "0");
    CHECK(number(NAN) == "0");
}

TEST_CASE("more than the buffer holds comes whole")
{
    const std::string text(3 * HKC_JSON_BUFFER + 17, 'x');
    CHECK(quoted(text) == "\"" + text + "\"");
}

TEST_CASE("the first failure is told, and nothing more is put")
{
    sink s;
    s.fails_at = 1;
    hkc_json w;
    hkc_json_open(&w, append, &s);
    const std::string text(5 * HKC_JSON_BUFFER, 'x');
    hkc_json_text(&w, nullptr, text.c_str());
    CHECK(hkc_json_close(&w) == ENOSPC);
    CHECK(s.calls == 2);
    CHECK(s.text.size() == HKC_JSON_BUFFER);
}

TEST_CASE("a full device and a closed descriptor are errors")
{
    hkc_json w;
    int fd = open("/dev/full", O_WRONLY);
    if (fd >= 0) {
        hkc_json_open_fd(&w, fd);
        hkc_json_text(&w, nullptr, "text");
        CHECK(hkc_json_close(&w) == ENOSPC);
        close(fd);
    }
    hkc_json_open_fd(&w, -1);
    hkc_json_text(&w, nullptr, "text");
    CHECK(hkc_json_close(&w) == EBADF);
}

TEST_CASE("nesting has an end, which is an error and no overflow")
{
    sink s;
    hkc_json w;
    hkc_json_open(&w, append, &s);
    for (int i = 0; i < HKC_JSON_DEPTH; i++)
        hkc_json_array(&w, nullptr);
    CHECK(w.error == 0);
    hkc_json_array(&w, nullptr);
    for (int i = 0; i < HKC_JSON_DEPTH + 5; i++)
        hkc_json_end(&w);
    CHECK(hkc_json_close(&w) == EOVERFLOW);
}
