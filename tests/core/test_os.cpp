// The table of the operating system (hak_os_default), the fake one of the tests, and how a space copes
// with tables that lack optional entries.
#include "crew.h"
#include "heap.h"
#include "system.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

using namespace test;

namespace
{

// Whether running `f` in a child process ends it by a fault (or a sanitizer's report of one).
template <typename F>
bool dies(F f)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        for (int signal_number : {SIGSEGV, SIGBUS, SIGABRT})
            std::signal(signal_number, SIG_DFL);
        f();
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

hak_os default_os()
{
    hak_os os;
    std::memset(&os, 0xEE, sizeof os);
    hak_os_default(&os);
    return os;
}

// Usable pages by the table.
char *pages_of(const hak_os &os, size_t n, uintptr_t below = 0)
{
    void *p = os.reserve(os.user, n, PAGE, below);
    REQUIRE(p != nullptr);
    REQUIRE(os.commit(os.user, p, n) == 0);
    return static_cast<char *>(p);
}

} // namespace

TEST_CASE("the default table is complete")
{
    hak_os os = default_os();
    REQUIRE(os.size == sizeof(hak_os));
    REQUIRE(os.reserve != nullptr);
    REQUIRE(os.decommit != nullptr);
    REQUIRE(os.release != nullptr);
    REQUIRE(os.clock != nullptr);
}

TEST_CASE("default reserve: alignment and upper bound")
{
    hak_os os = default_os();
    const size_t n = 4 * MiB;
    for (size_t align : {PAGE, 64 * KiB, 2 * MiB, 64 * MiB})
        for (uintptr_t below : {(uintptr_t)0, (uintptr_t)1 << 47, (uintptr_t)1 << 31}) {
            CAPTURE(align, below);
            void *p = os.reserve(os.user, n, align, below);
            REQUIRE(p != nullptr);
            CHECK(addr(p) % align == 0);
            if (below) CHECK(addr(p) + n <= below);
            if (os.commit) REQUIRE(os.commit(os.user, p, n) == 0);
            CHECK(all_bytes(p, n, 0));
            os.release(os.user, p, n);
        }
    CHECK(os.reserve(os.user, (size_t)1 << 60, PAGE, 0) == nullptr);
    CHECK(os.reserve(os.user, 64 * MiB, PAGE, 32 * MiB) == nullptr);
}

TEST_CASE("default commit keeps pages in use, decommit clears them")
{
    hak_os os = default_os();
    const size_t n = MiB;
    char *p = static_cast<char *>(os.reserve(os.user, n, PAGE, 0));
    REQUIRE(p != nullptr);
    auto commit = [&](void *at, size_t size) { return os.commit ? os.commit(os.user, at, size) : 0; };
    REQUIRE(commit(p, n) == 0);
    fill(p, n, 1);
    REQUIRE(commit(p, n) == 0);
    CHECK(filled(p, n, 1));
    os.decommit(os.user, p + 64 * KiB, 64 * KiB);
    REQUIRE(commit(p + 64 * KiB, 64 * KiB) == 0);
    CHECK(all_bytes(p + 64 * KiB, 64 * KiB, 0));
    CHECK(filled(p, 64 * KiB, 1));
    os.release(os.user, p, n);
}

TEST_CASE("default decommit clears what the kernel does not take back, and nothing else")
{
    hak_os os = default_os();
    const size_t n = 64 * KiB;
    char *p = pages_of(os, n);
    fill(p, n, 1);
    // As with mlockall() in the host: MADV_DONTNEED is refused.
    const bool locked = mlock(p + 4 * PAGE, PAGE) == 0;
    if (!locked) WARN("no page may be locked here");
    os.decommit(os.user, p + 2 * PAGE, 4 * PAGE);
    // On Windows the pages are gone until they are committed again. They have 4 KiB there, and no parts.
    if (system_is("windows")) REQUIRE(os.commit(os.user, p + 2 * PAGE, 4 * PAGE) == 0);
    CHECK(all_bytes(p + 2 * PAGE, 4 * PAGE, 0));
    if (locked) munlock(p + 4 * PAGE, PAGE);
    if (system_is("windows")) {
        os.release(os.user, p, n);
        return;
    }
    // Parts of a page, as where pages of the machine are larger than those of hakmem.
    fill(p, n, 1);
    std::vector<char> before(p, p + n);
    os.decommit(os.user, p + 100, 3 * PAGE);
    CHECK(all_bytes(p + 100, 3 * PAGE, 0));
    CHECK(std::memcmp(p, before.data(), 100) == 0);
    CHECK(std::memcmp(p + 100 + 3 * PAGE, before.data() + 100 + 3 * PAGE, n - 100 - 3 * PAGE) == 0);
    os.decommit(os.user, p + 8 * PAGE + 8, 16);
    CHECK(all_bytes(p + 8 * PAGE + 8, 16, 0));
    CHECK(std::memcmp(p + 8 * PAGE, before.data() + 8 * PAGE, 8) == 0);
    CHECK(std::memcmp(p + 8 * PAGE + 24, before.data() + 8 * PAGE + 24, PAGE - 24) == 0);
    os.release(os.user, p, n);
}

TEST_CASE("default remap stays below its bound, where there is room behind the block, too")
{
    hak_os os = default_os();
    if (lacks(os.remap)) return;
    const size_t n = MiB;
    const uintptr_t low = (uintptr_t)1 << 31;
    char *p = pages_of(os, 4 * n, low);
    os.release(os.user, p + n, 3 * n);
    fill(p, n, 3);
    const uintptr_t below = addr(p) + n + n / 2;
    char *q = static_cast<char *>(os.remap(os.user, p, n, 2 * n, below));
    if (q) CHECK(addr(q) + 2 * n <= below);
    CHECK(filled(q ? q : p, n, 3));
    os.release(os.user, q ? q : p, q ? 2 * n : n);
}

TEST_CASE("default remap keeps the contents")
{
    hak_os os = default_os();
    if (lacks(os.remap)) return;
    size_t n = 2 * MiB;
    void *p = pages_of(os, n, (uintptr_t)1 << 47);
    fill(p, n, 2);
    void *q = os.remap(os.user, p, n, 8 * MiB, (uintptr_t)1 << 47);
    REQUIRE(q != nullptr);
    CHECK(addr(q) + 8 * MiB <= (uintptr_t)1 << 47);
    CHECK(filled(q, n, 2));
    if (os.commit) REQUIRE(os.commit(os.user, q, 8 * MiB) == 0);
    CHECK(all_bytes(static_cast<char *>(q) + n, 8 * MiB - n, 0));
    CHECK(os.remap(os.user, q, 8 * MiB, (size_t)1 << 60, 0) == nullptr);
    CHECK(filled(q, n, 2));
    void *r = os.remap(os.user, q, 8 * MiB, MiB, 0);
    REQUIRE(r != nullptr);
    CHECK(filled(r, MiB, 2));
    os.release(os.user, r, MiB);
}

TEST_CASE("default remap: what a shrink leaves of a larger page is 0 when the block grows again")
{
    hak_os os = default_os();
    if (lacks(os.remap)) return;
    const size_t n = 256 * KiB;
    char *p = pages_of(os, n);
    fill(p, n, 2);
    p = static_cast<char *>(os.remap(os.user, p, n, 5 * PAGE, 0));
    REQUIRE(p != nullptr);
    CHECK(filled(p, 5 * PAGE, 2));
    p = static_cast<char *>(os.remap(os.user, p, 5 * PAGE, 20 * PAGE, 0));
    REQUIRE(p != nullptr);
    CHECK(all_bytes(p + 5 * PAGE, 15 * PAGE, 0));
    os.release(os.user, p, 20 * PAGE);
}

TEST_CASE("default populate makes pages resident, and is silent where it cannot")
{
    hak_os os = default_os();
    if (lacks(os.populate)) return;
    char *p = pages_of(os, 16 * PAGE);
    errno = 0;
    os.populate(os.user, p + 4 * PAGE, 8 * PAGE);
    unsigned char resident[16];
    REQUIRE(mincore(p, 16 * PAGE, resident) == 0);
    for (size_t i = 0; i < 16; i++)
        CHECK((resident[i] & 1) == (i >= 4 && i < 12));
    os.release(os.user, p, 16 * PAGE);
    os.populate(os.user, p, 16 * PAGE);
    CHECK(errno == 0);
}

TEST_CASE("default clock runs forward")
{
    hak_os os = default_os();
    uint64_t before = os.clock(os.user);
    usleep(2000);
    uint64_t after = os.clock(os.user);
    CHECK(after - before >= 2000000);
    CHECK(after - before < 60ull * 1000000000);
}

TEST_CASE("the fake OS enforces its rules")
{
    FakeOs os;
    const hak_os *t = os.table();
    char *p = static_cast<char *>(t->reserve(t->user, MiB, 64 * KiB, 0));
    REQUIRE(p != nullptr);
    CHECK(dies([&] { *static_cast<volatile char *>(p) = 1; }));
    REQUIRE(t->commit(t->user, p, PAGE) == 0);
    CHECK_FALSE(dies([&] { *static_cast<volatile char *>(p) = 1; }));
    CHECK(dies([&] { *static_cast<volatile char *>(p + PAGE) = 1; }));
    CHECK(os.committed() == PAGE);
    CHECK(os.usable(p, PAGE));
    CHECK_FALSE(os.usable(p, PAGE + 1));
    os.fail_nth(2);
    CHECK(t->commit(t->user, p, PAGE) == 0);
    CHECK(t->commit(t->user, p, PAGE) != 0);
    CHECK(t->commit(t->user, p, PAGE) == 0);
    t->decommit(t->user, p, MiB);
    CHECK(dies([&] { *static_cast<volatile char *>(p) = 1; }));
    CHECK(os.committed() == 0);
    t->release(t->user, p, MiB - PAGE);
    CHECK(os.close() != "");
}

namespace
{

// A table whose functions count calls that overlap.
struct Alone {
    hak_os real = default_os();
    std::atomic<bool> inside{false};
    std::atomic<unsigned> overlaps{0};

    struct Call {
        Alone *a;
        explicit Call(void *user) : a(static_cast<Alone *>(user))
        {
            if (a->inside.exchange(true)) a->overlaps++;
            std::this_thread::yield();
        }
        ~Call()
        {
            a->inside = false;
        }
    };

    hak_os table()
    {
        hak_os os = real;
        os.user = this;
        os.reserve = [](void *u, size_t n, size_t align, uintptr_t below) {
            Call call(u);
            return call.a->real.reserve(nullptr, n, align, below);
        };
        os.release = [](void *u, void *p, size_t n) {
            Call call(u);
            call.a->real.release(nullptr, p, n);
        };
        os.huge = [](void *u, void *, size_t) { Call call(u); };
        os.decommit = [](void *u, void *p, size_t n) {
            Call call(u);
            call.a->real.decommit(nullptr, p, n);
        };
        return os;
    }
};

} // namespace

TEST_CASE("functions of the table that concern pages are called one at a time")
{
    Alone alone;
    hak_os os = alone.table();
    SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
    options.os = &os;
    options.huge_from = 1;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    Crew crew(3, [&](size_t) {
        Options ctx_opts = ctx_options();
        ctx_opts.big_cache = HAK_NONE;
        hak_ctx *ctx = hak_ctx_new(space, &ctx_opts);
        expect(ctx != nullptr, "no context");
        for (int i = 0; i < 300; i++)
            hak_free(ctx, hak_alloc(ctx, 8 * MiB));
        hak_ctx_destroy(ctx);
    });
    CHECK(crew.join() == "");
    CHECK(alone.overlaps == 0);
    hak_space_delete(space);
}

TEST_CASE("optional entries may be missing")
{
    FakeOs os;
    hak_os table = *os.table();
    SpaceOptions options = space_options(os);
    options.os = &table;
    bool has_remap = true;
    SECTION("no remap: blocks are copied")
    {
        table.remap = nullptr;
        has_remap = false;
    }
    SECTION("no huge")
    {
        table.huge = nullptr;
        options.huge_from = PAGE;
    }
    SECTION("no populate")
    {
        table.populate = nullptr;
    }
    const bool populates = table.populate != nullptr;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    // The table was copied: what happens to ours does not matter any more.
    std::memset(&table, 0, sizeof table);
    {
        TestCtx ctx(space);
        void *p = hak_alloc(ctx, 3 * MiB);
        REQUIRE(p != nullptr);
        fill(p, 3 * MiB, 3);
        p = hak_realloc(ctx, p, 24 * MiB);
        REQUIRE(p != nullptr);
        CHECK(filled(p, 3 * MiB, 3));
        CHECK((os.counts.remap > 0) == has_remap);
        for (int i = 0; i < 100; i++)
            REQUIRE(hak_alloc(ctx, 100000) != nullptr);
        CHECK(os.counts.huge == 0);
        for (int i = 0; i < 1000; i++)
            REQUIRE(hak_alloc(ctx, 1000) != nullptr);
        CHECK((os.counts.populate > 0) == populates);
        require_sound(ctx);
    }
    hak_space_delete(space);
    CHECK(os.close() == "");
}

TEST_CASE("commit may be missing: reserve gives usable pages")
{
    hak_os table = default_os();
    hak_os real = table;
    static hak_os wrapped;
    wrapped = real;
    table.reserve = [](void *, size_t n, size_t align, uintptr_t below) -> void * {
        void *p = wrapped.reserve(wrapped.user, n, align, below);
        return p && wrapped.commit && wrapped.commit(wrapped.user, p, n) != 0 ? nullptr : p;
    };
    table.decommit = [](void *, void *p, size_t n) {
        wrapped.decommit(wrapped.user, p, n);
        if (wrapped.commit) wrapped.commit(wrapped.user, p, n);
    };
    table.remap = nullptr;
    table.commit = nullptr;
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.os = &table;
    options.reserve = 64 * MiB;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    {
        TestCtx ctx(space);
        for (size_t n : {(size_t)20, (size_t)5000, 100 * KiB, 3 * MiB, (size_t)40}) {
            void *p = hak_calloc(ctx, 1, n);
            REQUIRE(p != nullptr);
            CHECK(all_bytes(p, n, 0));
            fill(p, n, 4);
        }
        hak_ctx_trim(ctx);
        require_sound(ctx);
    }
    hak_space_delete(space);
}

TEST_CASE("os_calls counts the calls of the table")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (int i = 0; i < 50; i++)
        REQUIRE(hak_alloc(ctx, (size_t)i * 20000) != nullptr);
    hak_ctx_trim(ctx);
    CHECK(s.os.counts.calls() > 0);
    CHECK(stats_of(ctx).os_calls == s.os.counts.calls() - s.os.counts.clock);
}

TEST_CASE("default spaces take what is used, where the kernel counts what may be written to")
{
    const char *most = getenv("KERNEL_COMMIT"); // see kernel.h
    const size_t all = most ? std::stoull(most) : 128 * MiB;
    hak_space *first = hak_space_new(nullptr), *second = hak_space_new(nullptr);
    REQUIRE(first != nullptr);
    REQUIRE(second != nullptr);
    // Blocks of both kinds: in units, and with mappings of their own.
    auto fill_up = [&](hak_ctx *ctx) {
        std::vector<void *> blocks;
        size_t bytes = 0;
        for (size_t i = 0; bytes < all * 3 / 4; i++) {
            const size_t n = i % 8 ? 100000 : 2 * MiB;
            blocks.push_back(hak_calloc(ctx, 1, n));
            if (!blocks.back()) break;
            const char *c = static_cast<const char *>(blocks.back());
            if (std::any_of(c, c + n, [](char byte) { return byte; })) FAIL("not zero");
            std::memset(blocks.back(), 1, n);
            bytes += n;
        }
        return std::make_pair(blocks, bytes);
    };
    for (hak_space *space : {first, second, first}) {
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        REQUIRE(ctx != nullptr);
        auto [blocks, bytes] = fill_up(ctx);
        CHECK(bytes >= all * 3 / 4);
        hak_ctx *other = hak_ctx_new(space == first ? second : first, nullptr);
        REQUIRE(other != nullptr);
        if (most) CHECK(fill_up(other).second < all / 2);
        hak_ctx_destroy(other);
        void *grown = hak_realloc(ctx, blocks[0], 3 * MiB);
        CHECK(grown != nullptr);
        blocks[0] = grown;
        for (void *p : blocks)
            hak_free(ctx, p);
        hak_ctx_trim(ctx);
        CHECK(hak_alloc(ctx, 40000) != nullptr);
        require_sound(ctx);
        hak_ctx_destroy(ctx);
    }
    hak_space_delete(first);
    hak_space_delete(second);
}

TEST_CASE("a table that commits pages as they are used is made of the default one, and of no other")
{
    hak_os os;
    hak_os_default(&os);
    SECTION("changed before")
    {
        static void *(*const plain)(void *, size_t, size_t, uintptr_t) = os.reserve;
        os.reserve = [](void *user, size_t n, size_t align, uintptr_t below) {
            return plain(user, n, align, below);
        };
        const auto commit = os.commit;
        CHECK(!hak_os_counted(&os));
        CHECK(os.commit == commit);
        return;
    }
    if (system_is("darwin")) {
        CHECK(!hak_os_counted(&os));
        return;
    }
    REQUIRE(hak_os_counted(&os));
    CHECK(hak_os_counted(&os) == system_is("windows")); // where the table is such a one by itself
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.os = &os;
    options.reserve = 4 * GiB;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    for (int round = 0; round < 3; round++) {
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        REQUIRE(ctx != nullptr);
        std::vector<char *> blocks;
        for (size_t i = 0; i < 3000; i++) {
            const size_t n = i % 500 == 0 ? 3 * MiB : 1 + i * 37 % 40000;
            blocks.push_back(static_cast<char *>(hak_calloc(ctx, 1, n)));
            REQUIRE(blocks.back() != nullptr);
            if (blocks.back()[0] || blocks.back()[n - 1]) FAIL("not zero");
            std::memset(blocks.back(), 1, n);
        }
        for (size_t i = 0; i < blocks.size(); i += 2)
            hak_free(ctx, blocks[i]);
        hak_ctx_trim(ctx);
        for (size_t i = 1; i < blocks.size(); i += 2)
            blocks[i] = static_cast<char *>(hak_realloc(ctx, blocks[i], 30000));
        require_sound(ctx);
        hak_ctx_destroy(ctx);
    }
    hak_space_delete(space);
}

TEST_CASE("max_address: blocks with mappings of their own find room where there is any")
{
    // AddressSanitizer leaves 2 GiB below 2^33, of which the first extent takes a half.
    const std::pair<int, int> bounds[] = {{33, 300}, {46, 1000}};
    for (const auto &bound : bounds) {
        SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
        options.max_address = (uintptr_t)1 << bound.first;
        hak_space *space = hak_space_new(&options);
        REQUIRE(space != nullptr);
        {
            TestCtx ctx(space);
            for (int i = 0; i < bound.second; i++) {
                void *p = hak_alloc(ctx, 2000000);
                REQUIRE(p != nullptr);
                REQUIRE(addr(p) + 2000000 <= options.max_address);
            }
            TestSpace other;
        }
        hak_space_delete(space);
    }
}
