// Reports as streams: how much is read.
#include "catch.h"

extern "C" {
#include "report.h"
}

#include <cstdio>
#include <string>

TEST_CASE("a report of more bytes than may be is refused, with one line")
{
    std::string text =
        R"({"schema": "hakmem-report/1", "hakmem": "0", "process": {}, "memory": {}, "contexts": []})";
    text.resize(5000, ' ');
    char error[HKR_ERROR] = "";
    for (size_t most : {(size_t)4999, (size_t)5000, (size_t)1 << 30}) {
        FILE *in = fmemopen(text.data(), text.size(), "rb");
        REQUIRE(in != nullptr);
        hkr_report *report = hkr_load_stream(in, most, "a pipe", error);
        std::fclose(in);
        CHECK((report != nullptr) == (most >= text.size()));
        if (!report) CHECK(std::string(error) == "a pipe: more than 4999 bytes");
        hkr_free(report);
    }
}
