// What the shim has of jemalloc's interface, for programs that are linked with it.
#include "catch.h"

#include <dlfcn.h>
#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace
{

// By name, as glibc has none of them.
template <typename function>
function *get(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    REQUIRE(found != nullptr);
    return reinterpret_cast<function *>(found);
}

using mallocx_fn = void *(size_t, int);
using rallocx_fn = void *(void *, size_t, int);
using mallctl_fn = int(const char *, void *, size_t *, void *, size_t);
using tomib_fn = int(const char *, size_t *, size_t *);
using bymib_fn = int(const size_t *, size_t, void *, size_t *, void *, size_t);

const int ZERO = 64, TCACHE = 5 << 8, ARENA = 3 << 20;

bool all(const unsigned char *p, size_t from, size_t to, unsigned char byte)
{
    for (size_t i = from; i < to; i++)
        if (p[i] != byte) return false;
    return true;
}

template <typename number>
number read(const char *name)
{
    number value = 0;
    size_t size = sizeof value;
    INFO(name);
    REQUIRE(get<mallctl_fn>("mallctl")(name, &value, &size, nullptr, 0) == 0);
    return value;
}

} // namespace

TEST_CASE("blocks of mallocx and of malloc are the same kind", "[shim]")
{
    auto *mallocx = get<mallocx_fn>("mallocx");
    auto *sallocx = get<size_t(const void *, int)>("sallocx");
    auto *nallocx = get<size_t(size_t, int)>("nallocx");
    auto *dallocx = get<void(void *, int)>("dallocx");
    auto *sdallocx = get<void(void *, size_t, int)>("sdallocx");
    auto *xallocx = get<size_t(void *, size_t, size_t, int)>("xallocx");
    for (size_t n : {1ul, 8ul, 100ul, 5000ul, 100000ul, 3ul << 20})
        for (int lg : {0, 3, 4, 6, 12, 16})
            for (int flags : {lg, lg | ZERO, lg | TCACHE | ARENA, lg | ZERO | ARENA}) {
                auto *p = static_cast<unsigned char *>(mallocx(n, flags));
                REQUIRE(p != nullptr);
                REQUIRE(reinterpret_cast<uintptr_t>(p) % (size_t(1) << lg) == 0);
                REQUIRE(malloc_usable_size(p) >= n);
                REQUIRE(sallocx(p, flags) == malloc_usable_size(p));
                REQUIRE(nallocx(n, flags) >= n);
                if (flags & ZERO) REQUIRE(all(p, 0, n, 0));
                std::memset(p, 0x5A, n);
                const size_t usable = sallocx(p, 0);
                REQUIRE(xallocx(p, 2 * usable, 0, flags) == usable);
                REQUIRE(all(p, 0, n, 0x5A));
                if (flags & ARENA) sdallocx(p, n, flags);
                else if (flags & ZERO) dallocx(p, flags);
                else free(p);
            }
    void *p = malloc(100);
    dallocx(p, TCACHE);
    REQUIRE(mallocx(SIZE_MAX / 2, 0) == nullptr);
    REQUIRE(mallocx(SIZE_MAX / 2, 12 | ZERO) == nullptr);
    REQUIRE(nallocx(SIZE_MAX, 0) == 0);
}

TEST_CASE("rallocx keeps what is in a block, the alignment and zeros behind", "[shim]")
{
    auto *rallocx = get<rallocx_fn>("rallocx");
    for (int lg : {0, 4, 6, 12})
        for (size_t from : {10ul, 700ul, 40000ul})
            for (size_t to : {1ul, 600ul, 50000ul, 2ul << 20}) {
                auto *p = static_cast<unsigned char *>(get<mallocx_fn>("mallocx")(from, lg));
                const size_t old = malloc_usable_size(p);
                std::memset(p, 0x5A, old);
                p = static_cast<unsigned char *>(rallocx(p, to, lg | ZERO | TCACHE));
                REQUIRE(p != nullptr);
                REQUIRE(reinterpret_cast<uintptr_t>(p) % (size_t(1) << lg) == 0);
                const size_t now = malloc_usable_size(p), kept = old < to ? old : to;
                REQUIRE(now >= to);
                REQUIRE(all(p, 0, kept, 0x5A));
                if (now > old) REQUIRE(all(p, old, now, 0));
                free(p);
            }
    void *p = malloc(100);
    REQUIRE(rallocx(p, SIZE_MAX / 2, 0) == nullptr);
    REQUIRE(rallocx(p, SIZE_MAX / 2, 6) == nullptr);
    free(p);
}

TEST_CASE("mallctl tells the figures of the context", "[shim]")
{
    const size_t before = read<size_t>("stats.allocated");
    void *p = get<mallocx_fn>("mallocx")(5 << 20, 0);
    const size_t with = read<size_t>("stats.allocated");
    CHECK(with >= before + (5 << 20));
    CHECK(with < before + (6 << 20));
    CHECK(read<size_t>("stats.arenas.4096.small.allocated") +
              read<size_t>("stats.arenas.4096.large.allocated") >=
          with);
    CHECK(read<size_t>("stats.arenas.7.small.allocated") == 0);
    CHECK(read<size_t>("stats.resident") >= with);
    CHECK(read<size_t>("stats.arenas.0.pactive") * read<size_t>("arenas.page") + 4096 >
          read<size_t>("stats.active"));
    free(p);
    CHECK(read<size_t>("stats.allocated") < with);
    CHECK(read<unsigned>("arenas.narenas") == 1);
    CHECK(read<unsigned>("arenas.nbins") == 0);
    CHECK(read<uint64_t>("epoch") == 1);
    const unsigned first = read<unsigned>("tcache.create");
    CHECK(read<unsigned>("arenas.create") != first);

    auto *mallctl = get<mallctl_fn>("mallctl");
    CHECK(mallctl("arena.0.purge", nullptr, nullptr, nullptr, 0) == 0);
    CHECK(mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0) == 0);
    unsigned number = first;
    CHECK(mallctl("tcache.destroy", nullptr, nullptr, &number, sizeof number) == 0);
    CHECK(mallctl("tcache.destroy", nullptr, nullptr, nullptr, 0) == EINVAL);
}

TEST_CASE("mallctl refuses what it does not have", "[shim]")
{
    auto *mallctl = get<mallctl_fn>("mallctl");
    char value[16] = "before";
    size_t size = 3;
    CHECK(mallctl("stats.allocated", value, &size, nullptr, 0) == EINVAL);
    size = sizeof(size_t);
    for (const char *name :
         {"", "stats", "stats.allocated.", "stats.allocatedx", "stats.arenas.x.pactive", "thread.allocatedp",
          "stats.arenas..pactive", "background_thread", "version", "arena.0.destroy"})
        CHECK(mallctl(name, value, &size, nullptr, 0) == ENOENT);
    CHECK(mallctl("stats.allocated", nullptr, nullptr, value, sizeof(size_t)) == EPERM);
    CHECK(std::string(value) == "before");
}

TEST_CASE("a name of mallctl as numbers", "[shim]")
{
    auto *to_mib = get<tomib_fn>("mallctlnametomib");
    auto *by_mib = get<bymib_fn>("mallctlbymib");
    size_t mib[8], parts = 8, value = 0, size = sizeof value;
    REQUIRE(to_mib("stats.arenas.7.small.allocated", mib, &parts) == 0);
    REQUIRE(parts == 5);
    CHECK(by_mib(mib, parts, &value, &size, nullptr, 0) == 0);
    CHECK(value == 0);
    mib[2] = 0;
    CHECK(by_mib(mib, parts, &value, &size, nullptr, 0) == 0);
    CHECK(value > 0);
    CHECK(by_mib(mib, 2, &value, &size, nullptr, 0) == ENOENT);
    mib[0] = 1000;
    CHECK(by_mib(mib, parts, &value, &size, nullptr, 0) == ENOENT);
    parts = 2;
    CHECK(to_mib("stats.arenas.7.small.allocated", mib, &parts) == EINVAL);
    CHECK(to_mib("nothing", mib, &parts) == ENOENT);
}

TEST_CASE("malloc_stats_print prints the report", "[shim]")
{
    std::string text;
    auto *print = get<void(void (*)(void *, const char *), void *, const char *)>("malloc_stats_print");
    print([](void *to, const char *part) { *static_cast<std::string *>(to) += part; }, &text, nullptr);
    CHECK(text.find("of blocks in use\n") != std::string::npos);
}
