// The text of a report, of statistics that are given.

extern "C" {
#include "common/report.h"
}

#include "catch.h"

#include <string>
#include <unistd.h>

static void append(void *to, const char *text, size_t n)
{
    static_cast<std::string *>(to)->append(text, n);
}

static std::string text_of(const hkc_report &report)
{
    std::string text;
    hkc_report_put(&report, append, &text);
    return text;
}

static hkc_report example()
{
    hkc_report r = {};
    r.name = "name";
    r.note = "";
    r.stats.live_bytes = 3 << 20;
    r.stats.live_blocks = 7;
    r.stats.cached_bytes = 5;
    r.stats.metadata_bytes = 1 << 19;
    r.stats.committed_bytes = (3 << 20) + (1 << 19) + 5;
    r.stats.released_bytes = 10486; // the first that is rounded up to 0.01
    r.stats.retained_bytes = (size_t)1 << 50;
    r.stats.peak_bytes = (4 << 20) - 1;
    return r;
}

static const std::string rows =
    "  live                          3145728        3.00 MiB  of blocks in use\n"
    "  cached                              5        0.00 MiB  free, kept for the next blocks\n"
    "  metadata                       524288        0.50 MiB  bitmaps, labels, tables of hakmem\n"
    "  committed                     3670021        3.50 MiB  the sum of these three\n"
    "  released                        10486        0.01 MiB  part of cached that is back at the system\n"
    "  retained               1125899906842624 1073741824.00 MiB  recycled pages beside what is committed\n"
    "  peak live                     4194303        4.00 MiB  the highest so far\n";

static std::string head(const std::string &name, const std::string &note)
{
    return std::string("hakmem ") + hak_version() + ": " + name + "process " + std::to_string(getpid()) +
           ": 3145728 bytes in 7 blocks" + note + "\n";
}

TEST_CASE("names move no cursor and begin no line")
{
    const auto plain = [](std::string text) {
        hkc_report_plain(&text[0], text.size());
        return text;
    };
    CHECK(plain("a\x1b[2Jb\n\r\t\x7f") == "a?[2Jb????");
    CHECK(plain("\xc2\x9b"
                "2J\xc2\x80\xc2\x9f") == "??2J????");
    CHECK(plain("\xc3\xa9\xc2\xa0\xe2\x82\xac\xc2") == "\xc3\xa9\xc2\xa0\xe2\x82\xac\xc2");
    CHECK(plain("") == "");

    hak_label_info labels[] = {{"\x1b]0;x\x07\nlive 5", 1, 3 << 20, 7}};
    hkc_report r = example();
    r.name = "na\nme";
    r.labels = labels;
    r.label_count = 1;
    const std::string text = text_of(r);
    CHECK(text.find("\x1b") == std::string::npos);
    CHECK(text.find("\x07") == std::string::npos);
    CHECK(text.find("na?me, ") != std::string::npos);
    CHECK(text.find("  ?]0;x??live 5 ") != std::string::npos);
}

TEST_CASE("the rows of every report")
{
    hkc_report r = example();
    const std::string text = text_of(r);
    CHECK(text == head("name, ", "") + rows +
                      "  failures                            0                  allocations refused\n");
}

TEST_CASE("the parts of the resident memory come last, below their sum")
{
    hkc_report r = example();
    hkc_parts parts = {};
    parts.count = 2;
    parts.part[0] = {"live", "live: table", "what it is", 3 << 20};
    parts.part[1] = {"file", "a name that is longer than 24 bytes", "code", 1 << 19};
    parts.sum = (3 << 20) + (1 << 19);
    r.parts = &parts;
    CHECK(text_of(r) ==
          head("name, ", "") + rows +
              "  failures                            0                  allocations refused\n"
              "  process resident              3670016        3.50 MiB  the sum of these parts:\n"
              "    live: table                 3145728        3.00 MiB  what it is\n"
              "    a name that is longer than 24 bytes 524288        0.50 MiB  code\n");
    parts.count = 0;
    CHECK(text_of(r).find("resident") == std::string::npos);
}

TEST_CASE("limits, failures, threads and a note have rows where there are any")
{
    hkc_report r = example();
    r.name = "";
    r.note = "labels are off";
    r.stats.soft_limit = 1 << 20;
    r.stats.hard_limit = (size_t)-1;
    r.stats.failures = 12;
    r.threads = 5;
    r.threads_now = 2;
    CHECK(text_of(r) ==
          head("", ", labels are off") + rows +
              "  soft limit                    1048576        1.00 MiB  of committed bytes\n"
              "  hard limit             18446744073709551615 17592186044416.00 MiB  of committed bytes\n"
              "  failures                           12                  allocations refused\n"
              "  threads                             5                  that allocated, 2 of them now\n");
}

TEST_CASE("labels come with shares of the live bytes and bars of the largest")
{
    hkc_report r = example();
    hak_label_info labels[4] = {};
    labels[0].name = "half";
    labels[0].live_bytes = 3 << 19;
    labels[0].live_blocks = 4;
    labels[1].name = "a name that is longer than the column is wide";
    labels[1].live_bytes = 3 << 18;
    labels[1].live_blocks = 2;
    labels[2].name = "without blocks";
    labels[3].name = "small";
    labels[3].live_bytes = 8;
    labels[3].live_blocks = 1;
    r.labels = labels;
    r.label_count = 4;
    const std::string text = text_of(r);
    CHECK(text.find("\n  label                      live bytes      blocks   share\n"
                    "  half                          1572864           4  50.0 %  " +
                    std::string(36, '#') +
                    "\n"
                    "  a name that is longer          786432           2  25.0 %  " +
                    std::string(18, '#') +
                    "\n"
                    "  small                               8           1   0.0 %\n"
                    "\n"
                    "  live ") != std::string::npos);
}

TEST_CASE("a table of labels begins with the largest, and ends with a row for those beyond its length")
{
    hak_label_info labels[3] = {{"small", 1, 8, 1}, {"large", 2, 100, 2}, {"medium", 3, 50, 3}};
    std::string text;
    hkc_report_labels(labels, 3, 1, 158, append, &text);
    CHECK(text == "  label                      live bytes      blocks   share\n"
                  "  large                             100           2  63.3 %  " +
                      std::string(36, '#') +
                      "\n"
                      "  (2 others)                         58           4  36.7 %  " +
                      std::string(21, '#') + "\n\n");
    text = "";
    hkc_report_labels(labels, 3, 3, 158, append, &text);
    CHECK(text.find("others") == std::string::npos);
    CHECK(text.find("  medium ") < text.find("  small "));
}

TEST_CASE("a long name is cut, and its line has an end")
{
    hkc_report r = example();
    const std::string name(1000, 'x');
    r.name = name.c_str();
    const std::string text = text_of(r);
    CHECK(text.find('\n') < 256);
    CHECK(text == head(std::string(150, 'x') + ", ", "") + rows +
                      "  failures                            0                  allocations refused\n");
}
