// HAK_DEBUG_GUARD: drawn blocks before guard pages. What touches them where it must not is a fault, told
// apart in a forked child whose handler asks hak_guard_explain; everything else about them is as of any
// block.
#include "guarded.h"

#include <set>

using namespace test;

TEST_CASE("a drawn block ends before a page that is no one's, and has what was asked for")
{
    bool shared = GENERATE(false, true), max_align = GENERATE(false, true);
    CAPTURE(shared, max_align);
    Guarded c([&](Options &o) {
        o.shared = shared;
        o.max_align = max_align;
    });
    size_t live = 0;
    std::vector<void *> blocks;
    for (size_t n : {0, 1, 7, 8, 9, 16, 24, 40, 1000, 1024, 1025, 4095, 4096, 4097, 20000, 32767, 32768}) {
        char *p = static_cast<char *>(hak_alloc(c, n));
        CAPTURE(n, (void *)p);
        REQUIRE(drawn(c, p));
        size_t size = std::max<size_t>(n, 1), align = max_align || (n && n % 16 == 0) ? 16 : 8;
        CHECK(addr(p) % align == 0);
        CHECK(at_end(p, n, align));
        CHECK(hak_usable_size(c, p) == size);
        CHECK(hak_block_size(c, p) == size);
        CHECK(hak_owns(c, p));
        CHECK(hak_owns(c, p + size - 1));
        CHECK_FALSE(hak_owns(c, p + size));
        CHECK(hak_ctx_of(c.space.space, p) == c.ctx);
        fill(p, size, 1);
        char *end = (char *)((addr(p) + size + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
        CHECK(c.space.os.usable(p, size));
        CHECK_FALSE(c.space.os.usable(end, 1));
        live += size;
        blocks.push_back(p);
        CHECK(stats_of(c).live_bytes == live);
        CHECK(stats_of(c).live_blocks == blocks.size());
        require_sound(c);
    }
    for (void *p : blocks)
        hak_free(c, p);
    CHECK(stats_of(c).live_bytes == 0);
    CHECK(c.errors.take() == "");
    require_sound(c);
}

TEST_CASE("an access past a drawn block is a fault, and its place, label and call site are told")
{
    bool shared = GENERATE(false, true);
    Guarded c([&](Options &o) { o.shared = shared; });
    char *p = static_cast<char *>(hak_alloc_cs(c, 48, 2, 0xABC0));
    REQUIRE(drawn(c, p));
    CHECK(fault_of(c, [&] { touch(p, 47); }).none);
    Fault f = fault_of(c, [&] { touch(p, 48); });
    CHECK(f.report.error == HAK_E_BOUNDS);
    CHECK(f.report.p == p);
    CHECK(f.report.bytes == 48);
    CHECK(f.report.offset == 48);
    CHECK_FALSE(f.report.freed);
    CHECK(f.report.label == 2);
    CHECK(std::string(f.report.label_name) == "green");
    CHECK(f.report.allocated.site == 0xABC0);
    CHECK(f.text.find("access out of bounds") != std::string::npos);
    CHECK(f.text.find("0 bytes behind the end of a block of 48 bytes") != std::string::npos);
    CHECK(f.text.find("label green") != std::string::npos);
    CHECK(f.text.find("site 0xabc0") != std::string::npos);
    // Far behind, in the guard page still; and before the page that it begins in.
    CHECK(fault_of(c, [&] { touch(p, 48 + 4000); }).report.p == p);
    f = fault_of(c, [&] { touch(p, -(ptrdiff_t)PAGE); });
    CHECK(f.report.p == p);
    CHECK(f.report.offset == -(ptrdiff_t)PAGE);
    CHECK(f.text.find("4096 bytes before a block") != std::string::npos);
}

TEST_CASE("a freed drawn block cannot be touched, and who freed it is told")
{
    bool shared = GENERATE(false, true);
    Guarded c([&](Options &o) { o.shared = shared; });
    size_t depth = 3;
    hak_guard_frames(c, frames_of, &depth);
    char *p = static_cast<char *>(hak_alloc_cs(c, 5000, 1, 0x10));
    size_t before = committed_of(c);
    hak_free_cs(c, p, 0x20);
    CHECK(committed_of(c) == before - 2 * PAGE);
    CHECK_FALSE(c.space.os.usable(p, 1));
    CHECK(hak_usable_size(c, p) == 0);
    CHECK_FALSE(hak_owns(c, p));
    for (ptrdiff_t offset : {0, 2500, 4999}) {
        Fault f = fault_of(c, [&] { touch(p, offset); });
        CHECK(f.report.error == HAK_E_USE_AFTER_FREE);
        CHECK(f.report.offset == offset);
        CHECK(f.report.freed);
        CHECK(f.report.allocated.site == 0x10);
        CHECK(f.report.released.site == 0x20);
        REQUIRE(f.report.released.depth == 3);
        CHECK(f.report.allocated.frames[2] == 0x1012);
        CHECK(f.report.released.frames[0] == 0x1020);
        CHECK(f.text.find("use after free") != std::string::npos);
        CHECK(f.text.find("freed") != std::string::npos);
        CHECK(f.text.find("frames 0x1020 0x1021 0x1022\n") != std::string::npos);
    }
    // A frame more than there is room for.
    depth = HAK_GUARD_DEPTH + 1;
    p = static_cast<char *>(hak_alloc(c, 10));
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    REQUIRE(hak_guard_explain(c, p, &r));
    CHECK(r.error == HAK_OK);
    CHECK(r.allocated.depth == HAK_GUARD_DEPTH);
    hak_guard_frames(c, nullptr, nullptr);
    p = static_cast<char *>(hak_alloc(c, 10));
    REQUIRE(hak_guard_explain(c, p, &r));
    CHECK(r.allocated.depth == 0);
    CHECK(c.errors.take() == "");
}

TEST_CASE("reports of guard pages of another version are filled in, and written as text, within their size")
{
    Guarded c;
    void *p = hak_alloc_cs(c, 10, 2, 0x10);
    REQUIRE(drawn(c, p));
    hak_free_cs(c, p, 0x20);
    struct {
        hak_guard_report known;
        uint64_t more[4];
    } later;
    char text[1000];
    std::memset(&later, 0xEE, sizeof later);
    later.known.size = sizeof later;
    REQUIRE(hak_guard_explain(c, p, &later.known));
    CHECK(later.known.size == sizeof later);
    for (uint64_t more : later.more)
        CHECK(more == 0);
    hak_guard_text(&later.known, text, sizeof text);
    CHECK(std::string(text).find("site 0x20") != std::string::npos);
    // What lies behind an older struct is the program's.
    std::memset(&later, 0xEE, sizeof later);
    later.known.size = offsetof(hak_guard_report, released);
    REQUIRE(hak_guard_explain(c, p, &later.known));
    CHECK(later.known.released.site == UINT64_C(0xEEEEEEEEEEEEEEEE));
    size_t n = hak_guard_text(&later.known, text, sizeof text);
    CHECK(n == std::strlen(text));
    CHECK(std::string(text).find("use after free") != std::string::npos);
    CHECK(std::string(text).find("site 0x10") != std::string::npos);
    CHECK(std::string(text).find("0xee") == std::string::npos);
    for (size_t broken : {(size_t)0, (size_t)7, SIZE_MAX}) {
        later.known.size = broken;
        CHECK_FALSE(hak_guard_explain(c, p, &later.known));
        CHECK(hak_guard_text(&later.known, text, sizeof text) == 0);
        CHECK(text[0] == '\0');
    }
}

TEST_CASE("what was written beside a drawn block, within its page, is found at its end")
{
    bool by_realloc = GENERATE(false, true);
    Guarded c;
    for (ptrdiff_t at : {-64, -1, 41, 47}) {
        CAPTURE(at, by_realloc);
        char *p = static_cast<char *>(hak_alloc(c, 41));
        p[at] = 0;
        if (by_realloc) p = static_cast<char *>(hak_realloc(c, p, 100));
        else hak_free(c, p);
        REQUIRE(c.errors.list.size() == 1);
        CHECK((c.errors.list[0].what.find("before") != std::string::npos) == (at < 0));
        CHECK(c.errors.take() == "HAK_E_BOUNDS");
        if (by_realloc) hak_free(c, p);
    }
    char *p = static_cast<char *>(hak_alloc(c, 41));
    p[0] = p[40] = 0;
    hak_free(c, p);
    CHECK(c.errors.take() == "");
    require_sound(c);
}

TEST_CASE("misuse of a drawn block is reported at once")
{
    bool shared = GENERATE(false, true);
    Guarded c([&](Options &o) { o.shared = shared; });
    char *p = static_cast<char *>(hak_alloc(c, 100));
    hak_free(c, p + 8);
    CHECK(c.errors.take() == "HAK_E_POINTER");
    hak_free(c, p);
    CHECK(c.errors.take() == "");
    hak_free(c, p);
    CHECK(c.errors.take() == "HAK_E_DOUBLE_FREE");
    CHECK(hak_realloc(c, p, 10) == nullptr);
    CHECK(c.errors.take() == "HAK_E_DOUBLE_FREE");
    hak_free(c, p + 4096);
    CHECK(c.errors.take() == "HAK_E_FOREIGN");
    require_sound(c);
}

TEST_CASE("a drawn block is reallocated, with its contents and label")
{
    bool shared = GENERATE(false, true), debug = GENERATE(false, true);
    CAPTURE(shared, debug);
    Guarded c([&](Options &o) {
        o.shared = shared;
        if (debug) o.debug |= HAK_DEBUG_POISON;
    });
    void *p = hak_alloc_cs(c, 100, 3, 0);
    fill(p, 100, 5);
    size_t size = 100;
    for (size_t n : {101, 5000, 40000, 3000000, 32000, 31999, 50, 0, 1}) {
        CAPTURE(n);
        void *q = hak_realloc_sized(c, p, size, n);
        REQUIRE(q != nullptr);
        CHECK(filled(q, std::min({size, n, (size_t)100}), 5));
        CHECK(hak_label_of(c, q) == 3);
        CHECK(hak_usable_size(c, q) >= n);
        if (n > size && n <= 32 * KiB) CHECK(drawn(c, q));
        p = q;
        size = n;
        require_sound(c);
        if (n >= 100) fill(q, 100, 5);
    }
    void *q = hak_realloc_cs(c, p, 1, 1, 0);
    CHECK(hak_label_of(c, q) == 1);
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    REQUIRE(hak_guard_explain(c, q, &r));
    CHECK(std::string(r.label_name) == "red");
    hak_free_sized(c, q, 1);
    CHECK(c.errors.take() == "");
}

TEST_CASE("drawn blocks: alignment, zeros, sized frees, and what checks know")
{
    bool shared = GENERATE(false, true), debug = GENERATE(false, true);
    CAPTURE(shared, debug);
    Guarded c([&](Options &o) {
        o.shared = shared;
        if (debug) o.debug |= HAK_DEBUG_CHECK;
    });
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t n : {1, 100, 4096, 5000}) {
            char *p = static_cast<char *>(hak_aligned_calloc(c, align, 1, n));
            CAPTURE(align, n, (void *)p);
            REQUIRE(p != nullptr);
            CHECK(addr(p) % align == 0);
            CHECK(all_bytes(p, n, 0));
            CHECK(hak_usable_size(c, p) >= n);
            // Up to 16 the size is rounded up, for the classes.
            if (align > 16) CHECK((drawn(c, p) && at_end(p, n, align)));
            p = static_cast<char *>(hak_aligned_realloc(c, p, align, n + 1));
            CHECK(addr(p) % align == 0);
            hak_free_sized(c, p, n + 1);
        }
    }
    CHECK(c.errors.take() == "");
    // Past what a slot takes.
    for (size_t align : {(size_t)8192, (size_t)64 * KiB})
        CHECK_FALSE(drawn(c, hak_aligned_alloc(c, align, 100)));
    CHECK_FALSE(drawn(c, hak_alloc(c, 32769)));
    char *p = static_cast<char *>(hak_calloc(c, 100, 10));
    CHECK((drawn(c, p) && all_bytes(p, 1000, 0)));
    hak_free_sized(c, p, 999);
    CHECK(c.errors.take() == (debug ? "HAK_E_SIZE" : ""));
    require_sound(c);
}

TEST_CASE("blocks that are not drawn have their labels, also the smallest beside slabs of the next class")
{
    bool shared = GENERATE(false, true), labels = GENERATE(false, true);
    CAPTURE(shared, labels);
    Guarded c([&](Options &o) {
        o.shared = shared;
        o.guard_every = 1 << 30;
        if (!labels) o.label_count = 0;
    });
    std::vector<void *> made;
    for (size_t i = 0; i < 6000; i++)
        made.push_back(hak_alloc_cs(c, 16, labels ? (hak_label)(i % 4) : (hak_label)0, 0));
    // Some of a class that has a slab are at hand.
    for (size_t i = 0; i < 10; i++) {
        hak_free(c, made.back());
        made.pop_back();
    }
    for (size_t i = 0; i < 20; i++) {
        hak_label label = labels ? (hak_label)(i % 3 + 1) : (hak_label)0;
        void *p = hak_alloc_cs(c, 1 + i % 8, label, 0);
        REQUIRE(p);
        REQUIRE(hak_label_of(c, p) == label);
    }
    require_sound(c);
    CHECK(c.errors.take() == "");
}

TEST_CASE("a drawn block that is to have the size that it has stays where memory is short, max_align or not")
{
    bool shared = GENERATE(false, true), max_align = GENERATE(false, true);
    CAPTURE(shared, max_align);
    Guarded c([&](Options &o) {
        o.shared = shared;
        o.max_align = max_align;
    });
    void *p = hak_alloc(c, 54);
    REQUIRE(drawn(c, p));
    REQUIRE(hak_limit(c, 0, committed_of(c) + 64 * KiB, nullptr, nullptr) == 0);
    while (hak_alloc(c, 64)) {
    }
    CHECK(hak_realloc(c, p, 54) == p);
    CHECK(hak_realloc(c, p, 50) == p);
    CHECK(hak_usable_size(c, p) >= 50);
    require_sound(c);
}

TEST_CASE("one block in guard_every is drawn, of each size class alike, and of no others")
{
    size_t every = GENERATE(1, 2, 10, 100);
    bool shared = GENERATE(false, true), cycle = GENERATE(false, true);
    CAPTURE(every, shared, cycle);
    Guarded c([&](Options &o) {
        o.guard_every = every;
        o.shared = shared;
    });
    const size_t rounds = 400 * every;
    for (size_t size : {16, 200, 2000}) {
        size_t found = 0;
        std::vector<void *> live;
        for (size_t i = 0; i < rounds; i++) {
            void *p = hak_alloc(c, size);
            bool is = drawn(c, p);
            found += is;
            if (is || cycle) hak_free(c, p);
            else live.push_back(p);
        }
        CAPTURE(size, found);
        CHECK(found >= 400 * 8 / 10);
        CHECK(found <= 400 * 12 / 10);
        for (void *p : live)
            hak_free(c, p);
    }
    require_sound(c);
    CHECK(c.errors.take() == "");
}

TEST_CASE("without HAK_DEBUG_GUARD nothing is drawn and the space has no pool")
{
    TestSpace s;
    Options options = ctx_options();
    options.guard_every = 1;
    TestCtx ctx(s.space, &options);
    for (int i = 0; i < 1000; i++) {
        void *p = hak_alloc(ctx, 40);
        CHECK_FALSE(drawn(ctx, p));
        if (i % 2) hak_free(ctx, p);
    }
    CHECK(s.os.counts.protect == 0);
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    CHECK_FALSE(hak_guard_explain(ctx, &r, &r));
    CHECK_FALSE(hak_guard_explain(ctx, nullptr, &r));
}

TEST_CASE("guard_slots: so many blocks at once; a freed one is taken again as late as possible")
{
    size_t slots = GENERATE(1, 3, 64);
    Guarded c({}, [&](SpaceOptions &o) { o.guard_slots = slots == 64 ? 0 : slots; });
    std::vector<void *> p;
    for (size_t i = 0; i < slots; i++) {
        p.push_back(hak_alloc(c, 100));
        REQUIRE(drawn(c, p.back()));
    }
    void *past = hak_alloc(c, 100);
    CHECK_FALSE(drawn(c, past));
    for (void *block : p)
        hak_free(c, block);
    // In the order of their frees.
    for (void *block : p)
        CHECK(hak_alloc(c, 100) == block);
    CHECK_FALSE(drawn(c, hak_alloc(c, 100)));
    require_sound(c);
}

TEST_CASE("a table without protect and a space of a buffer alone have no guard pages")
{
    Options options = ctx_options();
    every(options);
    FakeOs os;
    hak_os table = *os.table();
    SpaceOptions pages = space_options(os);
    SECTION("without protect")
    {
        table.protect = nullptr;
        pages.os = &table;
        pages.guard_slots = 10;
        REQUIRE(hak_space_options_error(&pages) != nullptr);
        CHECK(std::string(hak_space_options_error(&pages)).find("protect") != std::string::npos);
        CHECK(hak_space_new(&pages) == nullptr);
        pages.guard_slots = 0;
    }
    SECTION("of an older header")
    {
        table.size = offsetof(hak_os, protect);
        pages.os = &table;
    }
    std::vector<char> buffer(4 * MiB);
    SECTION("a buffer alone")
    {
        pages.buffer = buffer.data();
        pages.buffer_size = buffer.size();
        pages.buffer_only = true;
    }
    REQUIRE(hak_space_options_error(&pages) == nullptr);
    hak_space *space = hak_space_new(&pages);
    REQUIRE(space != nullptr);
    CHECK(hak_ctx_new(space, &options) == nullptr);
    options.debug = 0;
    CHECK(hak_ctx_new(space, &options) != nullptr);
    hak_space_delete(space);
    CHECK(os.close() == "");
}

TEST_CASE("guard_every and guard_slots have ranges")
{
    Options options = ctx_options();
    for (size_t n : {(size_t)1 << 30, (size_t)1}) {
        options.guard_every = n;
        CHECK(hak_options_error(&options) == nullptr);
    }
    for (size_t n : {((size_t)1 << 30) + 1, (size_t)HAK_NONE}) {
        options.guard_every = n;
        REQUIRE(hak_options_error(&options) != nullptr);
        CHECK(std::string(hak_options_error(&options)).find("guard_every") != std::string::npos);
    }
    SpaceOptions pages(HAK_SPACE_OPTIONS_INIT);
    pages.guard_slots = 65536;
    CHECK(hak_space_options_error(&pages) == nullptr);
    pages.guard_slots = HAK_NONE;
    REQUIRE(hak_space_options_error(&pages) != nullptr);
    CHECK(std::string(hak_space_options_error(&pages)).find("guard_slots") != std::string::npos);
}

TEST_CASE("any request of pages for drawn blocks may fail: the block is another one, and nothing is lost")
{
    bool shared = GENERATE(false, true);
    for (uint64_t nth = 1; nth < 40; nth++) {
        TestSpace s;
        Options options = ctx_options();
        every(options);
        options.shared = shared;
        s.os.fail_nth(nth);
        hak_ctx *ctx = hak_ctx_new(s.space, &options);
        if (!ctx) continue;
        for (int i = 0; i < 20; i++) {
            void *p = hak_alloc(ctx, 100 + (size_t)i);
            if (p) fill(p, 100, 1);
            if (p && i % 3 == 0) hak_free(ctx, p);
        }
        require_sound(ctx);
        hak_ctx_destroy(ctx);
    }
}

TEST_CASE("drawn blocks count for the hard limit, which is never passed")
{
    bool shared = GENERATE(false, true);
    Guarded c([&](Options &o) { o.shared = shared; });
    REQUIRE(hak_alloc(c, 1) != nullptr);
    const size_t hard = committed_of(c) + 10 * PAGE;
    REQUIRE(hak_limit(c, 0, hard, nullptr, nullptr) == 0);
    size_t n = 0;
    for (; n < 100000; n++) {
        void *p = hak_alloc(c, 100);
        if (!p) break;
        REQUIRE(committed_of(c) <= hard);
    }
    CHECK(n >= 10);
    CHECK(n < 100000);
    require_sound(c);
}

TEST_CASE("the text of a report has what is known, and no more")
{
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    auto text = [&] {
        char out[1024];
        return std::string(out, hak_guard_text(&r, out, sizeof out));
    };
    r.p = reinterpret_cast<void *>(0x1000);
    r.at = reinterpret_cast<void *>(0x1007);
    r.bytes = 48;
    r.offset = 7;
    CHECK(text() == "hakmem: access at 0x1007, 7 bytes into a block of 48 bytes at 0x1000\n"
                    "  allocated: call site unknown\n");
    r.error = HAK_E_USE_AFTER_FREE;
    r.freed = true;
    std::strcpy(r.label_name, "table");
    r.allocated.thread = 4711;
    r.allocated.depth = 2;
    r.allocated.frames[0] = 0xA1;
    r.allocated.frames[1] = 0xA2;
    r.released.thread = 4712;
    r.released.site = 0xB1;
    CHECK(text() ==
          "hakmem: use after free at 0x1007, 7 bytes into a block of 48 bytes at 0x1000, label table\n"
          "  allocated by thread 4711: frames 0xa1 0xa2\n"
          "  freed by thread 4712: site 0xb1\n");
    r.released = {};
    CHECK(text().find("\n  freed with its context\n") != std::string::npos);
    // A guest may have chosen the name.
    std::strcpy(r.label_name, "\x1b[2J\nhak\xc2\x9b\x7f\xc3\xa9");
    CHECK(text().find(", label ?[2J?hak??\xc3\xa9\n") != std::string::npos);
}
