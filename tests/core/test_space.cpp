// Spaces: options, address ranges, buffers of the caller, extents, refused reservations, threads.
#include "crew.h"
#include "heap.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

using namespace test;

namespace
{

SpaceOptions plain()
{
    SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
    return options;
}

void require_rejected(const SpaceOptions &options)
{
    const char *why = hak_space_options_error(&options);
    REQUIRE(why != nullptr);
    CHECK(*why != 0);
    CHECK(std::strchr(why, '\n') == nullptr);
    CHECK(hak_space_new(&options) == nullptr);
}

void require_accepted(const SpaceOptions &options)
{
    const char *why = hak_space_options_error(&options);
    INFO((why ? why : "no error"));
    REQUIRE(why == nullptr);
    hak_space *space = hak_space_new(&options);
    CHECK(space != nullptr);
    hak_space_delete(space);
}

struct Buffer {
    size_t size;
    std::unique_ptr<char[]> bytes;
    explicit Buffer(size_t n) : size(n), bytes(new char[n]())
    {
    }
    bool contains(const void *p, size_t n) const
    {
        return addr(p) >= addr(bytes.get()) && addr(p) + n <= addr(bytes.get()) + size;
    }
};

const size_t MIXED[] = {1, 16, 40, 100, 511, 513, 3000, 9000, 70000, 300000, 3000000};

size_t vm_size()
{
    size_t pages = 0;
    FILE *file = std::fopen("/proc/self/statm", "r");
    if (!file || std::fscanf(file, "%zu", &pages) != 1) pages = 0;
    if (file) std::fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

} // namespace

TEST_CASE("space options: what is refused, with a reason in one line")
{
    SpaceOptions options(plain());
    SECTION("size")
    {
        for (size_t size : {(size_t)0, (size_t)4, sizeof options - 1, sizeof options + 8192, SIZE_MAX}) {
            options.size = size;
            require_rejected(options);
        }
    }
    SECTION("max_address")
    {
        for (uintptr_t max : {(uintptr_t)1, ((uintptr_t)1 << 24) - 1}) {
            options.max_address = max;
            require_rejected(options);
        }
    }
    SECTION("reserve")
    {
        for (size_t n : {(size_t)1, 4 * MiB - 1, 1024 * GiB + 1}) {
            options.reserve = n;
            require_rejected(options);
        }
    }
    SECTION("buffer too small")
    {
        Buffer buffer(128 * KiB);
        options.buffer = buffer.bytes.get();
        options.buffer_size = 128 * KiB - 1;
        require_rejected(options);
    }
    SECTION("buffer that cannot be so large")
    {
        Buffer buffer(128 * KiB);
        options.buffer = buffer.bytes.get();
        for (size_t n : {SIZE_MAX, SIZE_MAX - addr(options.buffer), SIZE_MAX / 2, 1024 * GiB + 1}) {
            options.buffer_size = n;
            require_rejected(options);
        }
    }
    SECTION("buffer that ends above max_address")
    {
        Buffer buffer(256 * KiB);
        options.buffer = buffer.bytes.get();
        options.buffer_size = buffer.size;
        for (uintptr_t max :
             {addr(options.buffer) + buffer.size - 1, addr(options.buffer), addr(options.buffer) - 1}) {
            options.max_address = max;
            require_rejected(options);
        }
        options.max_address = addr(options.buffer) + buffer.size;
        require_accepted(options);
    }
    SECTION("buffer_size without a buffer")
    {
        options.buffer_size = MiB;
        require_rejected(options);
    }
    SECTION("buffer_only without a buffer")
    {
        options.buffer_only = true;
        require_rejected(options);
    }
    SECTION("the table of the OS")
    {
        FakeOs os;
        hak_os table = *os.table();
        options.os = &table;
        SECTION("size")
        {
            table.size = GENERATE((size_t)0, sizeof table - 1, SIZE_MAX);
        }
        SECTION("too old to have all that is needed")
        {
            table.size = offsetof(hak_os, clock);
        }
        SECTION("reserve")
        {
            table.reserve = nullptr;
        }
        SECTION("decommit")
        {
            table.decommit = nullptr;
        }
        SECTION("release")
        {
            table.release = nullptr;
        }
        SECTION("clock")
        {
            table.clock = nullptr;
        }
        require_rejected(options);
        CHECK(os.counts.calls() == 0);
    }
}

TEST_CASE("space options: what is accepted")
{
    SpaceOptions options(plain());
    require_accepted(options);
    options.reserve = 4 * MiB;
    require_accepted(options);
    options.max_address = (uintptr_t)1 << 31;
    require_accepted(options);
    options.retained_bytes = HAK_NONE;
    options.purge_ns = 1;
    options.huge_from = HAK_NONE;
    options.retained_percent = 1000;
    require_accepted(options);
    CHECK(hak_space_options_error(nullptr) == nullptr);
    hak_space_delete(hak_space_new(nullptr));
    hak_space_delete(nullptr);
}

TEST_CASE("no block at or above max_address")
{
    TestSpace s;
    uintptr_t max = (uintptr_t)1 << 47;
    SpaceOptions options = space_options(s.os, 64 * MiB);
    SECTION("2^31")
    {
        max = options.max_address = (uintptr_t)1 << 31;
    }
    SECTION("2^47")
    {
        options.max_address = max;
    }
    SECTION("default")
    {
    }
    SECTION("2^31 on the OS itself")
    {
        max = options.max_address = (uintptr_t)1 << 31;
        options.os = nullptr;
    }
    SECTION("default on the OS itself")
    {
        options.os = nullptr;
    }
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    {
        TestCtx ctx(space);
        for (int round = 0; round < 20; round++)
            for (size_t n : MIXED) {
                void *p = hak_alloc(ctx, n);
                REQUIRE(p != nullptr);
                if (n == 3000000 && round < 3) p = hak_realloc(ctx, p, 4 * n);
                REQUIRE(p != nullptr);
                REQUIRE(addr(p) + hak_usable_size(ctx, p) <= max);
            }
        require_sound(ctx);
    }
    hak_space_delete(space);
}

TEST_CASE("buffer_only: the buffer is all there is")
{
    TestSpace outer;
    Buffer buffer(512 * KiB + 333);
    SpaceOptions options = space_options(outer.os);
    options.buffer = buffer.bytes.get();
    options.buffer_size = buffer.size;
    options.buffer_only = true;
    SECTION("aligned as it happens")
    {
    }
    SECTION("unaligned")
    {
        options.buffer = buffer.bytes.get() + 333;
        options.buffer_size = 512 * KiB;
    }
    SECTION("of the smallest size")
    {
        options.buffer_size = 128 * KiB;
    }
    uint64_t calls = outer.os.counts.calls();
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    std::vector<size_t> rounds;
    for (int round = 0; round < 3; round++) {
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        REQUIRE(ctx != nullptr);
        std::vector<void *> blocks;
        void *p;
        while ((p = hak_calloc(ctx, 1, 200)) != nullptr) {
            REQUIRE(buffer.contains(p, 200));
            REQUIRE(all_bytes(p, 200, 0));
            std::memset(p, 0xAB, 200);
            blocks.push_back(p);
        }
        rounds.push_back(blocks.size());
        CHECK(hak_alloc(ctx, 4 * MiB) == nullptr);
        require_sound(ctx);
        for (void *block : blocks)
            hak_free(ctx, block);
        CHECK(hak_alloc(ctx, 200) != nullptr);
        hak_ctx_trim(ctx);
        require_sound(ctx);
        hak_ctx_destroy(ctx);
    }
    // At least half of the buffer is for blocks (a fifth of the smallest one), and a destroyed context gives
    // back all of it.
    CHECK(rounds[0] * 200 >= options.buffer_size / (options.buffer_size > 128 * KiB ? 2 : 5));
    CHECK(rounds[1] == rounds[0]);
    CHECK(rounds[2] == rounds[0]);
    hak_space_delete(space);
    CHECK(outer.os.counts.calls() == calls);
    // The buffer stays the caller's: it may be written now.
    std::memset(buffer.bytes.get(), 1, buffer.size);
}

namespace
{

size_t fill_up(hak_ctx *ctx, hak_label label, size_t n)
{
    size_t bytes = 0;
    while (void *p = hak_alloc_cs(ctx, n, label, 0)) {
        std::memset(p, 0x5A, n);
        bytes += hak_usable_size(ctx, p);
    }
    return bytes;
}

} // namespace

TEST_CASE("a buffer is for blocks where nobody has labels, and for label bytes as they are needed")
{
    const size_t size = GENERATE(256 * KiB, MiB, 5 * MiB + 12345, 64 * MiB);
    const bool shared = GENERATE(false, true);
    CAPTURE(size, shared);
    Buffer buffer(size);
    SpaceOptions options(plain());
    options.buffer = buffer.bytes.get();
    options.buffer_size = size;
    options.buffer_only = true;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    static const char *const names[] = {"red"};
    Options without = ctx_options(), with = without;
    without.shared = with.shared = shared;
    with.labels = names;
    with.label_count = 1;
    size_t first = 0;
    for (int round = 0; round < 3; round++) {
        CAPTURE(round);
        {
            TestCtx ctx(space, &without);
            fill_up(ctx, 0, 1000);
            size_t committed = committed_of(ctx);
            // All but what the records of the units, and ends of pages, take.
            CHECK(committed + (size > MiB ? size / 40 : 48 * KiB) >= size);
            if (round == 0) first = committed;
            CHECK(committed == first);
            // Full: label bytes are not to be had, and nothing has changed.
            CHECK(hak_label_define(ctx, "late") == 0);
            require_sound(ctx);
        }
        {
            TestCtx ctx(space, &with);
            hak_label red = 1;
            std::vector<void *> blocks;
            for (size_t n = 8; n <= 20000; n += n / 2) {
                void *p = hak_alloc_cs(ctx, n, red, 0);
                if (p) blocks.push_back(p);
            }
            fill_up(ctx, red, size > MiB ? 300 : 40);
            require_sound(ctx);
            // In a smaller one a unit for each of the classes above is most of it.
            if (size >= MiB) CHECK(stats_of(ctx).live_bytes * 2 > size);
            hak_label_info info;
            REQUIRE(hak_label_stats(ctx, red, &info) == 0);
            CHECK(info.live_bytes == stats_of(ctx).live_bytes);
            // What was freed can be had again, in other sizes too.
            for (void *p : blocks)
                hak_free(ctx, p);
            for (size_t n : {(size_t)16, (size_t)200, (size_t)3000})
                fill_up(ctx, red, n);
            require_sound(ctx);
        }
        {
            // A label that comes late, beside a context without.
            TestCtx other(space, &without), ctx(space, &without);
            void *p = hak_alloc(ctx, 5000), *q = hak_alloc(ctx, 40);
            REQUIRE((p && q && hak_alloc(other, 5000)));
            hak_label late = hak_label_define(ctx, "late");
            REQUIRE(late == 1);
            CHECK((hak_label_of(ctx, p) == 0 && hak_label_of(ctx, q) == 0));
            fill_up(other, 0, 500);
            fill_up(ctx, late, 500);
            require_sound(ctx);
            require_sound(other);
        }
    }
    hak_space_delete(space);
}

TEST_CASE("a space that begins in a buffer asks the OS only when that is full")
{
    Buffer buffer(MiB);
    TestSpace s([&](SpaceOptions &options) {
        options.buffer = buffer.bytes.get();
        options.buffer_size = buffer.size;
    });
    TestCtx ctx(s.space);
    void *first = hak_alloc(ctx, 100);
    REQUIRE(buffer.contains(first, 100));
    CHECK(s.os.counts.requests() == 0);
    size_t inside = 0, outside = 0;
    for (size_t total = 0; total < 4 * MiB; total += 1000) {
        void *p = hak_alloc(ctx, 1000);
        REQUIRE(p != nullptr);
        fill(p, 1000, 1);
        (buffer.contains(p, 1000) ? inside : outside)++;
        if (outside == 0) REQUIRE(s.os.counts.requests() == 0);
    }
    CHECK(inside * 1000 >= MiB / 2);
    CHECK(outside > 0);
    CHECK(s.os.counts.requests() > 0);
    CHECK(hak_alloc(ctx, 3 * MiB) != nullptr);
    require_sound(ctx);
}

TEST_CASE("labels find pages of the OS where blocks of others have the label bytes of a buffer")
{
    const bool shared = GENERATE(false, true);
    CAPTURE(shared);
    Buffer buffer(2 * MiB);
    TestSpace s([&](SpaceOptions &options) {
        options.buffer = buffer.bytes.get();
        options.buffer_size = buffer.size;
    });
    TestCtx without(s.space);
    std::vector<void *> inside;
    for (void *p = hak_alloc(without, 16000); buffer.contains(p, 1); p = hak_alloc(without, 16000))
        inside.push_back(p);
    REQUIRE(inside.size() > 100);
    // Some units of the buffer are free again, but those of its label bytes are not.
    for (size_t i = 0; i < 20; i++)
        hak_free(without, inside[i]);
    hak_ctx_trim(without);
    static const char *const names[] = {"red"};
    Options options = ctx_options();
    options.shared = shared;
    options.labels = names;
    options.label_count = 1;
    TestCtx with(s.space, &options);
    for (size_t n = 8, i = 0; i < 1000; i++, n = n < 1100000 ? n + n / 5 : 8) {
        void *p = hak_alloc_cs(with, n, 1, 0);
        CAPTURE(n);
        REQUIRE(p != nullptr);
        fill(p, n, (unsigned)i);
        REQUIRE(hak_label_of(with, p) == 1);
        if (i % 2) hak_free(with, p);
    }
    require_sound(with);
    require_sound(without);
}

TEST_CASE("a small reserve grows by extents")
{
    TestSpace s([](SpaceOptions &options) { options.reserve = 4 * MiB; });
    uint64_t before = s.os.counts.reserve;
    TestCtx a(s.space), b(s.space);
    std::vector<void *> blocks;
    for (size_t i = 0; i < 40000; i++) {
        void *p = hak_alloc(i % 2 ? a : b, 1000);
        REQUIRE(p != nullptr);
        fill(p, 1000, (unsigned)i);
        blocks.push_back(p);
    }
    CHECK(s.os.counts.reserve >= before + 2);
    CHECK(stats_of(a).reserved_bytes == s.os.reserved());
    for (size_t i = 0; i < blocks.size(); i++) {
        REQUIRE(filled(blocks[i], 1000, (unsigned)i));
        REQUIRE(hak_ctx_of(s.space, blocks[i]) == (i % 2 ? a.ctx : b.ctx));
    }
    require_sound(a);
    require_sound(b);
}

TEST_CASE("the reserve option sets the size of an extent; refused ones are halved down to 4 MiB")
{
    FakeOs os;
    SpaceOptions options = space_options(os, 1024 * MiB);
    SECTION("granted")
    {
        hak_space *space = hak_space_new(&options);
        REQUIRE(space != nullptr);
        TestCtx ctx(space);
        REQUIRE(hak_alloc(ctx, 100) != nullptr);
        CHECK(os.largest_reserve >= 1024 * MiB);
        CHECK(os.largest_reserve <= 1100 * MiB);
        hak_space_delete(space);
        ctx.ctx = nullptr;
    }
    SECTION("refused")
    {
        os.refuse_reserve_above(40 * MiB);
        hak_space *space = hak_space_new(&options);
        REQUIRE(space != nullptr);
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        REQUIRE(ctx != nullptr);
        for (size_t total = 0; total < 100 * MiB; total += 100000)
            REQUIRE(hak_alloc(ctx, 100000) != nullptr);
        require_sound(ctx);
        // Deleting the space gives back a context that still lives in it.
        hak_space_delete(space);
    }
    SECTION("refused altogether")
    {
        os.refuse_reserve_above(1 * MiB);
        CHECK(hak_space_new(&options) == nullptr);
    }
    CHECK(os.close() == "");
}

TEST_CASE("the default reserve is 64 GiB, or what there is")
{
    TestSpace s([](SpaceOptions &options) { options.reserve = 0; });
    TestCtx ctx(s.space);
    REQUIRE(hak_alloc(ctx, 1) != nullptr);
    CHECK(s.os.largest_reserve >= 64 * GiB);
    CHECK(s.os.largest_reserve <= 65 * GiB);
}

TEST_CASE("deleting a space empties the quotas of its contexts")
{
    FakeOs os;
    SpaceOptions options = space_options(os);
    hak_space *space = hak_space_new(&options);
    Options of_ctx = ctx_options();
    of_ctx.quota = hak_quota_new(nullptr, 0);
    hak_ctx *ctx = hak_ctx_new(space, &of_ctx);
    REQUIRE(hak_alloc(ctx, 100000) != nullptr);
    REQUIRE(hak_alloc(ctx, 2 * MiB) != nullptr);
    hak_space_delete(space);
    CHECK(hak_quota_used(of_ctx.quota) == 0);
    hak_quota_delete(of_ctx.quota);
    CHECK(os.close() == "");
}

TEST_CASE("a process with little address space")
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit;
        limit.rlim_cur = limit.rlim_max = vm_size() + 200 * MiB;
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
        hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
        if (!ctx) _exit(3);
        size_t total = 0, n = 50000;
        for (void *p; total < 400 * MiB && (p = hak_alloc(ctx, n)) != nullptr; total += n)
            std::memset(p, 1, n);
        if (total < 50 * MiB) _exit(4);
        if (total > 200 * MiB) _exit(5);
        if (!hak_ctx_check(ctx, nullptr, nullptr)) _exit(6);
        hak_ctx_destroy(ctx);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("fresh slabs of a class that has many are made resident by one call each")
{
    std::vector<char> buffer(4 * MiB);
    bool in_buffer = GENERATE(false, true);
    TestSpace s([&](SpaceOptions &options) {
        if (!in_buffer) return;
        options.buffer = buffer.data();
        options.buffer_size = buffer.size();
    });
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    auto make = [&](size_t total) {
        for (size_t i = 0; i < total / 512; i++) {
            blocks.push_back(hak_alloc(ctx, 512));
            if (!blocks.back()) FAIL("no block");
        }
    };
    auto drop = [&] {
        for (void *p : blocks)
            hak_free(ctx, p);
        blocks.clear();
    };
    make(250 * KiB); // packed, or in slabs
    CHECK(s.os.counts.populate == 0);
    make(MiB);
    const uint64_t calls = s.os.counts.populate;
    CHECK(calls >= (in_buffer ? 0 : 32));
    CHECK(calls <= (in_buffer ? 0 : 64));
    CHECK(stats_of(ctx).os_calls == s.os.counts.calls() - s.os.counts.clock);
    drop();
    make(MiB); // these are resident
    CHECK(s.os.counts.populate == calls);
    drop();
    hak_ctx_trim(ctx);
    make(100 * KiB);
    CHECK(s.os.counts.populate == calls);
}

TEST_CASE("those of larger blocks are not, where threads share a context")
{
    const size_t size = GENERATE(512, 2048, 20480);
    const bool shared = GENERATE(false, true);
    CAPTURE(size, shared);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    for (size_t i = 0; i < 2 * MiB / size; i++)
        REQUIRE(hak_alloc(ctx, size) != nullptr);
    CHECK((s.os.counts.populate == 0) == (shared && size > KiB));
}

TEST_CASE("a single unit comes from where no other is free beside it, so that rows are kept")
{
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(nullptr, &options);
    auto run = [&ctx](size_t units) { return static_cast<char *>(hak_alloc(ctx, units << 14)); };
    REQUIRE(hak_alloc(ctx, 16384) != nullptr); // one unit; later ones are retained
    std::vector<char *> blocks;
    for (size_t units : std::initializer_list<size_t>{8, 3, 4, 3, 5, 3})
        blocks.push_back(run(units));
    char *single = blocks[4] + (4 << 14);
    CHECK(hak_realloc(ctx, blocks[4], 4 << 14) == blocks[4]);
    hak_free(ctx, blocks[0]);
    hak_free(ctx, blocks[2]);
    CHECK(hak_alloc(ctx, 16384) == single);
    CHECK(run(8) == blocks[0]);
}

TEST_CASE("a space serves contexts of several threads")
{
    TestSpace s([](SpaceOptions &options) { options.reserve = 16 * MiB; });
    std::atomic<bool> stop{false};
    TestCtx watched(s.space);
    std::thread watcher([&] {
        while (!stop) {
            (void)hak_ctx_live_bytes(watched);
            (void)hak_ctx_name(watched);
            (void)hak_ctx_of(s.space, &stop);
        }
    });
    auto work = [&](unsigned id) {
        for (unsigned round = 0; round < 10 * EFFORT; round++) {
            hak_ctx *ctx = hak_ctx_new(s.space, nullptr);
            std::vector<void *> blocks;
            Random random(id * 1000 + round);
            for (unsigned i = 0; ctx && i < 2000; i++) {
                size_t n = i % 100 == 0 ? random.below(200000) : random.below(500);
                void *p = hak_alloc(ctx, n);
                if (p) std::memset(p, (int)id, n);
                if (i % 3 == 0) hak_free(ctx, p);
            }
            if (round % 4 == 0 && ctx) hak_ctx_trim(ctx);
            hak_ctx_destroy(ctx);
        }
    };
    std::thread one(work, 1u), two(work, 2u);
    for (int i = 0; i < 20000; i++)
        REQUIRE(hak_alloc(watched, 64) != nullptr);
    one.join();
    two.join();
    stop = true;
    watcher.join();
    require_sound(watched);
    CHECK(hak_ctx_live_bytes(watched) <= stats_of(watched).live_bytes + 64 * 64);
}

TEST_CASE("two shared contexts of one space are made ready for a fork, one after the other")
{
    Options options = ctx_options();
    options.shared = true;
    hak_space *space = hak_space_new(nullptr);
    REQUIRE(space != nullptr);
    hak_ctx *a = hak_ctx_new(space, &options), *b = hak_ctx_new(space, &options);
    hak_ctx *local = hak_ctx_new(space, nullptr);
    REQUIRE((a && b && local));
    std::atomic<bool> stop{false};
    Crew crew(2, [&](size_t t) {
        while (!stop) {
            // Units of the space, with the lock of a heap held.
            hak_ctx *ctx = t ? b : a;
            hak_free(ctx, hak_alloc(ctx, 300 * KiB));
            hak_ctx_flush(ctx);
        }
    });
    for (int i = 0; i < 50; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        hak_ctx_fork_prepare(a);
        // Now the other threads come to the space, with their heaps' locks.
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        hak_ctx_fork_prepare(local);
        hak_ctx_fork_prepare(b);
        hak_ctx_fork_parent(b);
        hak_ctx_fork_parent(local);
        hak_ctx_fork_parent(a);
    }
    stop = true;
    REQUIRE(crew.join() == "");
    CHECK(stats_of(a).live_blocks == 0);
    CHECK(stats_of(b).live_blocks == 0);
    hak_space_delete(space);
}
