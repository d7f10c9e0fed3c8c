// The mappings of a process taken apart: of a text that is given, and of this process.

extern "C" {
#include "common/parts.h"
}

#include "catch.h"

#include <hakmem/profile.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>

// The kernel's khugepaged makes pages resident while they are counted: 2 MiB where hakmem asked for huge pages.
static const int no_huge_pages = prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);

static std::string mapping(const std::string &head, size_t rss, size_t own, const char *flags = "rd wr")
{
    return head + "\nSize:  4 kB\nRss:  " + std::to_string(rss) +
           " kB\nPss:  1 kB\nAnonymous:  " + std::to_string(own) + " kB\nVmFlags: " + flags + " \n";
}

static hkc_smaps read_text(const std::string &text)
{
    char name[] = "/tmp/hakmem-smaps-XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    unlink(name);
    REQUIRE(write(fd, text.data(), text.size()) == (ssize_t)text.size());
    REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
    hkc_smaps maps = {};
    REQUIRE(hkc_smaps_read_fd(&maps, fd));
    close(fd);
    return maps;
}

TEST_CASE("kinds of mappings, by their names and by what lies beside them")
{
    const std::string anonymous = " 00000000 00:00 0 ";
    hkc_smaps maps = read_text(
        mapping("55550000-55551000 r-xp 00000000 fe:00 7                 /usr/bin/a b (deleted)", 4, 0) +
        mapping("55551000-55552000 rw-p 00001000 fe:00 7                 /usr/bin/a b (deleted)", 4, 4) +
        mapping("55552000-55554000 rw-p" + anonymous, 8, 8) + // its zeroed data
        mapping("66660000-66680000 rw-p" + anonymous + "                 [heap]", 100, 100) +
        mapping("7f0000000000-7f0000021000 rw-p" + anonymous, 64, 64) + // an arena of glibc
        mapping("7f0000021000-7f0004000000 ---p" + anonymous, 0, 0) +
        mapping("7f1000000000-7f1000001000 ---p" + anonymous, 0, 0) + // a guard, and a stack
        mapping("7f1000001000-7f1000801000 rw-p" + anonymous, 20, 20) +
        mapping("7f2000000000-7f2000100000 rw-p" + anonymous, 40, 40, "rd wr nh") +
        mapping("7f3000000000-7f3000100000 rw-p" + anonymous, 500, 500) +
        mapping("7f3100000000-7f3100100000 rwxp" + anonymous, 12, 12) +
        mapping("7f3200000000-7f3200100000 rw-s 00000000 00:01 5        /memfd:x (deleted)", 16, 0) +
        mapping("7f3300000000-7f3300100000 rw-p" + anonymous + "        [anon:pool of x]", 24, 24) +
        mapping("7ffd00000000-7ffd00021000 rw-p" + anonymous + "        [stack]", 28, 28) +
        mapping("7ffd10000000-7ffd10002000 r-xp" + anonymous + "        [vdso]", 4, 0));
    const std::vector<hkc_mapping_kind> expected = {
        HKC_MAPPING_FILE,   HKC_MAPPING_FILE,       HKC_MAPPING_FILE,      HKC_MAPPING_MALLOC,
        HKC_MAPPING_MALLOC, HKC_MAPPING_ANONYMOUS,  HKC_MAPPING_ANONYMOUS, HKC_MAPPING_STACK,
        HKC_MAPPING_STACK,  HKC_MAPPING_ANONYMOUS,  HKC_MAPPING_CODE,      HKC_MAPPING_SHARED,
        HKC_MAPPING_NAMED,  HKC_MAPPING_MAIN_STACK, HKC_MAPPING_SYSTEM};
    REQUIRE(maps.count == expected.size());
    for (size_t i = 0; i < maps.count; i++) {
        INFO(i);
        CHECK(maps.at[i].kind == expected[i]);
    }
    CHECK(maps.at[0].start == 0x55550000);
    CHECK(maps.at[0].end == 0x55551000);
    CHECK(maps.at[3].resident == 100 << 10);
    CHECK(maps.at[1].own == 4 << 10);
    CHECK(std::string(maps.names[maps.at[2].name]) == "a b");
    CHECK(maps.at[0].name == maps.at[2].name);
    CHECK(std::string(maps.names[maps.at[12].name]) == "pool of x");
    hkc_smaps_close(&maps);
}

TEST_CASE("what is no text of mappings has none, and long lines are no fault")
{
    hkc_smaps maps = {};
    const int fd = memfd_create("empty", 0);
    CHECK_FALSE(hkc_smaps_read_fd(&maps, fd));
    close(fd);
    CHECK_FALSE(hkc_smaps_read(&maps, -5));
    CHECK(hkc_parts_begin(-5) == nullptr);
    maps = read_text(
        mapping("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 /" + std::string(9000, 'x'), 4, 4) +
        mapping("7f0000001000-7f0000002000 rw-p 00000000 00:00 0 /y", 8, 8));
    REQUIRE(maps.count >= 1);
    CHECK(maps.at[maps.count - 1].resident == 8 << 10);
    hkc_smaps_close(&maps);
}

static size_t resident()
{
    std::ifstream in("/proc/self/statm");
    size_t size = 0, pages = 0;
    in >> size >> pages;
    return pages * (size_t)getpagesize();
}

struct taken {
    hkc_parts *parts;
    explicit taken(std::vector<hak_ctx *> contexts) : parts(hkc_parts_of(0, contexts.data(), contexts.size()))
    {
        REQUIRE(parts);
    }
    taken(const taken &) = delete;
    taken &operator=(const taken &) = delete;
    ~taken()
    {
        hkc_parts_close(parts);
    }
    size_t of(const std::string &kind, const std::string &name = "") const
    {
        size_t sum = 0;
        for (size_t i = 0; i < parts->count; i++)
            if (parts->part[i].kind == kind && (name.empty() || parts->part[i].name == name))
                sum += parts->part[i].bytes;
        return sum;
    }
};

static void check_sum(const taken &t)
{
    size_t sum = 0;
    for (size_t i = 0; i < t.parts->count; i++) {
        CHECK(t.parts->part[i].bytes > 0);
        CHECK(t.parts->part[i].name[0] != 0);
        CHECK(t.parts->part[i].hint[0] != 0);
        sum += t.parts->part[i].bytes;
    }
    CHECK(sum == t.parts->sum);
    CHECK(std::abs((double)sum - (double)resident()) < 0.02 * (double)resident());
}

TEST_CASE("the parts of this process sum up to its resident memory")
{
    enum { BYTES = 24 << 20 };
    REQUIRE(no_huge_pages == 0);
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    const hak_label label = hak_label_define(ctx, "rows");
    std::vector<void *> blocks;
    for (size_t n = 0; n < BYTES; n += 1000) {
        void *p = hak_alloc_cs(ctx, 1000, label, 0);
        memset(p, 1, 1000);
        blocks.push_back(p);
    }
    const size_t others = 32 << 20;
    char *mapped = (char *)mmap(nullptr, others, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mapped, 1, others);
    {
        taken t({ctx});
        check_sum(t);
        CHECK(t.of("live", "live: rows") >= BYTES);
        CHECK(t.of("live") < BYTES + BYTES / 32);
        CHECK(t.of("mapped") >= others);
        CHECK(t.of("file") > 0);
        CHECK(t.of("metadata") > 0);
        CHECK(t.of("between") < 1 << 20);
    }
    // One block in 20 stays: what is free beside these cannot go back.
    for (size_t i = 0; i < blocks.size(); i++)
        if (i % 20 != 0) hak_free(ctx, blocks[i]);
    {
        taken t({ctx});
        check_sum(t);
        CHECK(t.of("live") < BYTES / 10);
        CHECK(t.of("between") > BYTES / 10);
        CHECK(t.of("between") + t.of("cached") > BYTES / 2);
    }
    hak_ctx_trim(ctx);
    {
        taken t({ctx});
        check_sum(t);
        CHECK(t.of("between") > BYTES / 10);
        CHECK(t.of("cached") < 1 << 20);
    }
    // Of a space that another context uses, the other's memory is named as such.
    hak_ctx *beside = hak_ctx_new(hak_ctx_space(ctx), nullptr);
    REQUIRE(hak_ctx_space(beside) == hak_ctx_space(ctx));
    memset(hak_alloc(beside, 8 << 20), 1, 8 << 20);
    {
        taken t({ctx}), both({ctx, beside});
        check_sum(t);
        check_sum(both);
        CHECK(t.of("unnamed") >= 8 << 20);
        CHECK(both.of("unnamed") < 4 << 20); // a sanitizer has 3
        CHECK(both.of("live") >= t.of("live") + (8 << 20));
    }
    hak_ctx_destroy(beside);
    hak_ctx_destroy(ctx);
    munmap(mapped, others);
}

TEST_CASE("the table of a profile is hakmem's own, also where it lies apart from the context")
{
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    const size_t before = taken({ctx}).of("mapped");
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    options.table_bytes = 64 << 20;
    options.apart = true;
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    std::vector<void *> blocks;
    for (int i = 0; i < 100000; i++)
        blocks.push_back(hak_alloc(ctx, 16));
    hak_profile_info info = {};
    info.size = sizeof info;
    REQUIRE(hak_profile_stats(ctx, &info) == 0);
    REQUIRE(info.table_bytes > 4 << 20);
    {
        taken t({ctx});
        check_sum(t);
        CHECK(t.of("metadata") >= info.table_bytes);
        CHECK(t.of("unnamed") < 2 << 20);
        CHECK(t.of("mapped") < before + (2 << 20));
    }
    hak_ctx_destroy(ctx);
}

struct range {
    uintptr_t start, end;
};

static size_t within_range(void *of, uintptr_t start, uintptr_t end)
{
    const range &r = *(const range *)of;
    const uintptr_t from = std::max(r.start, start), to = std::min(r.end, end);
    return from < to ? to - from : 0;
}

TEST_CASE("a mapping that others share: hakmem's resident bytes are those of its own pages")
{
    const size_t size = 32 << 20, touched = 9 << 20, odd = 20480;
    void *const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    madvise(mapped, size, MADV_NOHUGEPAGE);
    const uintptr_t at = (uintptr_t)mapped;
    memset((void *)(at + size - touched), 1, touched);
    range untouched = {at + odd, at + size / 2}, half = {at + size / 2, at + size - odd};
    hkc_parts *const p = hkc_parts_begin(0);
    REQUIRE(p);
    hkc_parts_take(p, within_range, &untouched, 0);
    CHECK(p->ours == 0);
    hkc_parts_take(p, within_range, &half, 0);
    CHECK(p->ours == touched - odd);
    hkc_parts_close(p);
    munmap(mapped, size);
}

TEST_CASE("what a library mapped is neither malloc's nor a stack, wherever it lies")
{
    const size_t arena = 64 << 20, small = 4 << 20, page = (size_t)getpagesize(), reserved = 3 * arena,
                 touched = 2 << 20;
    void *const all = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    // One as large and as aligned as an arena of glibc; and one above a page that nobody may touch.
    const uintptr_t first = ((uintptr_t)all + arena) / arena * arena, second = first + arena + page;
    REQUIRE(mprotect((void *)first, arena, PROT_READ | PROT_WRITE) == 0);
    REQUIRE(mprotect((void *)second, small, PROT_READ | PROT_WRITE) == 0);
    memset((void *)first, 1, touched);
    memset((void *)second, 1, touched);
    const auto part = [&](const char *kind, bool told) {
        hkc_parts *const p = hkc_parts_begin(0);
        REQUIRE(p);
        if (told) {
            hkc_parts_past_malloc(p, first, first + arena);
            hkc_parts_past_malloc(p, second, second + small);
            hkc_parts_mapped(p, "libx", 2 * touched);
        }
        hkc_parts_end(p);
        size_t sum = 0;
        for (size_t i = 0; i < p->count; i++)
            if (p->part[i].kind == std::string(kind) || p->part[i].name == std::string(kind))
                sum += p->part[i].bytes;
        hkc_parts_close(p);
        return sum;
    };
    // Both grow a little by themselves from one look to the next.
    for (const char *kind : {"malloc", "stacks"}) {
        const size_t looks = part(kind, false), is = part(kind, true);
        CHECK(looks >= is + touched / 4 * 3);
    }
    CHECK(part("mapped by libx", true) == 2 * touched);
    munmap(all, reserved);
}

TEST_CASE("memory that nobody touched is in no part")
{
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    void *p = hak_calloc(ctx, 1, 256 << 20);
    REQUIRE(p);
    taken t({ctx});
    check_sum(t);
    CHECK(t.of("live") < 64 << 20);
    hak_ctx_destroy(ctx);
}
