// The contract of tables (contract.h): what tables here fulfil, and that each broken promise is seen.
#include "contract.h"
#include "heap.h"
#include "system.h"

#include <map>

using namespace test;

namespace
{

struct Result {
    std::map<std::string, std::string> wrong;
    std::vector<std::string> left_out;
    unsigned failed = 0;
};

Result try_table(const hak_os &os, unsigned flags = 0)
{
    Result result;
    auto say = [](void *user, const char *point, const char *wrong, bool left_out) {
        auto *r = static_cast<Result *>(user);
        if (wrong) r->wrong[point] = wrong;
        if (left_out) r->left_out.push_back(point);
    };
    result.failed = contract_try(&os, flags, say, &result);
    CHECK(result.failed == result.wrong.size());
    return result;
}

std::string points(const Result &result)
{
    std::string text;
    for (const auto &[point, wrong] : result.wrong)
        text += point + ": " + wrong + "\n";
    return text;
}

hak_os table()
{
    hak_os os;
    hak_os_default(&os);
    return os;
}

// What broken tables are made of.
hak_os good;

} // namespace

TEST_CASE("contract: the table of the system")
{
    const Result result = try_table(table());
    CHECK(points(result) == "");
    using Names = std::vector<std::string>;
    if (system_is("linux")) CHECK(result.left_out == Names{});
    else CHECK(result.left_out == Names{"remap", "huge", "populate"});
}

TEST_CASE("contract: the table where each page counts")
{
    hak_os os = table();
    const bool can = hak_os_counted(&os);
    CHECK(can == !system_is("darwin"));
    if (can) CHECK(points(try_table(os)) == "");
}

TEST_CASE("contract: the fake OS")
{
    FakeOs os;
    const Result result = try_table(*os.table(), CONTRACT_CLOCK_STANDS);
    CHECK(points(result) == "");
    CHECK(os.close() == "");
}

TEST_CASE("contract: a table with what must be there, and no more")
{
    hak_os os = table();
    os.remap = nullptr;
    os.huge = nullptr;
    os.populate = nullptr;
    os.thread_id = nullptr;
    os.thread_alive = nullptr;
    os.protect = nullptr;
    const Result result = try_table(os);
    CHECK(points(result) == "");
    CHECK(result.left_out == std::vector<std::string>{"remap", "huge", "populate", "threads", "protect"});
}

TEST_CASE("contract: each broken promise is seen")
{
    hak_os os = good = table();
    std::string point;
    SECTION("reserve: alignment")
    {
        point = "reserve";
        os.reserve = [](void *u, size_t n, size_t, uintptr_t below) {
            char *p = static_cast<char *>(good.reserve(u, n + 64 * KiB, 64 * KiB, below));
            return static_cast<void *>(p ? p + PAGE : p);
        };
        os.release = [](void *u, void *p, size_t n) {
            good.release(u, static_cast<char *>(p) - PAGE, n + 64 * KiB);
        };
    }
    SECTION("reserve: the bound")
    {
        point = "failure";
        os.reserve = [](void *u, size_t n, size_t align, uintptr_t) { return good.reserve(u, n, align, 0); };
    }
    SECTION("reserve: what is not there is promised")
    {
        point = "failure";
        os.reserve = [](void *u, size_t n, size_t align, uintptr_t below) {
            return good.reserve(u, n > GiB ? PAGE : n, align, below);
        };
    }
    SECTION("commit: pages in use are cleared")
    {
        point = "commit";
        os.commit = [](void *u, void *p, size_t n) {
            if (good.commit(u, p, n) != 0) return -1;
            std::memset(p, 0, n);
            return 0;
        };
    }
    SECTION("decommit: pages keep what they hold")
    {
        point = "decommit";
        os.decommit = [](void *, void *, size_t) {};
    }
    SECTION("decommit: more than was said")
    {
        point = "decommit";
        os.decommit = [](void *u, void *p, size_t n) {
            good.decommit(u, p, n);
            if (good.commit(u, p, n) == 0) std::memset(static_cast<char *>(p) - 8, 0, 8);
        };
    }
    SECTION("decommit: errno")
    {
        point = "decommit";
        os.decommit = [](void *u, void *p, size_t n) {
            good.decommit(u, p, n);
            errno = EINVAL;
        };
    }
    SECTION("release: nothing goes back")
    {
        point = "release";
        os.release = [](void *, void *, size_t) {};
    }
    SECTION("remap: contents are lost")
    {
        point = "remap";
        os.remap = [](void *u, void *p, size_t old_n, size_t n, uintptr_t below) -> void * {
            void *q = n < 64 * MiB ? good.reserve(u, n, PAGE, below) : nullptr;
            if (!q || good.commit(u, q, n) != 0) return nullptr;
            good.release(u, p, old_n);
            return q;
        };
    }
    SECTION("huge: contents are lost")
    {
        point = "huge";
        os.huge = [](void *, void *p, size_t n) { std::memset(p, 0, n); };
    }
    SECTION("populate: pages are not zero")
    {
        point = "populate";
        os.populate = [](void *, void *p, size_t n) {
            for (size_t i = 0; i < n; i += PAGE)
                static_cast<char *>(p)[i] = 2;
        };
    }
    SECTION("clock: it goes back")
    {
        point = "clock";
        static uint64_t n;
        n = 0;
        os.clock = [](void *u) { return good.clock(u) - (++n % 100 ? 0 : 1000000000); };
    }
    SECTION("clock: microseconds")
    {
        point = "clock";
        os.clock = [](void *u) { return good.clock(u) / 1000; };
    }
    SECTION("threads: all have one number")
    {
        point = "threads";
        os.thread_id = [](void *) -> uint64_t { return 1; };
    }
    SECTION("threads: they live for ever")
    {
        point = "threads";
        os.thread_alive = [](void *, uint64_t) { return true; };
    }
    SECTION("protect: nothing is closed")
    {
        point = "protect";
        os.protect = [](void *, void *, size_t, bool) { return 0; };
    }
    SECTION("protect: more is closed")
    {
        point = "protect";
        os.protect = [](void *u, void *p, size_t n, bool access) {
            const size_t more = access ? 0 : 64 * KiB;
            return good.protect(u, p, n < 64 * KiB ? n : n + more, access);
        };
    }
    const Result result = try_table(os);
    CAPTURE(points(result));
    CHECK(result.wrong.count(point) == 1);
}
