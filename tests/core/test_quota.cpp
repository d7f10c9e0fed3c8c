// Quotas under threads: a group that is refused takes nothing from its neighbours, for no moment.
#include "crew.h"
#include "heap.h"

#include <algorithm>
#include <array>
#include <memory>

using namespace test;

// base/quota.h
extern "C" bool hk_quota_charge(hak_quota *q, size_t n, size_t *before);
extern "C" void hk_quota_uncharge(hak_quota *q, size_t n);

namespace
{

// How a hak_quota begins.
struct Beginning {
    hak_quota *parent;
    std::atomic<size_t> used, hard, taken;
};

struct Tree {
    std::vector<hak_quota *> all;
    hak_quota *add(hak_quota *parent, size_t hard)
    {
        all.push_back(hak_quota_new(parent, hard));
        REQUIRE(all.back() != nullptr);
        return all.back();
    }
    ~Tree()
    {
        for (auto q = all.rbegin(); q != all.rend(); ++q) {
            CHECK(hak_quota_used(*q) == 0);
            hak_quota_delete(*q);
        }
    }
};

// A context of its own space, so that threads meet in their quotas alone.
struct Tenant {
    hak_space *space = nullptr;
    hak_ctx *ctx = nullptr;
    explicit Tenant(hak_quota *quota)
    {
        hak_space_options small = HAK_SPACE_OPTIONS_INIT;
        small.reserve = 64 * MiB;
        Options options = ctx_options();
        options.quota = quota;
        options.big_cache = HAK_NONE;
        space = hak_space_new(&small);
        ctx = hak_ctx_new(space, &options);
        REQUIRE(ctx != nullptr);
    }
    ~Tenant()
    {
        hak_ctx_destroy(ctx);
        hak_space_delete(space);
    }
};

constexpr int ROUNDS = 4000 * (int)EFFORT;

// One tenant asks for 10 MiB again and again and is refused each time; the other allocates and frees n bytes
// meanwhile, is never refused, and sees no more than `most` in the groups.
void storm(const Tenant &greedy, const Tenant &other, size_t n, const std::vector<hak_quota *> &groups,
           size_t most)
{
    std::atomic<bool> done{false};
    size_t refused = 0, granted = 0, seen = 0;
    Crew crew;
    crew.add([&] {
        while (!done)
            if (hak_alloc(greedy.ctx, 10 * MiB)) granted++;
    });
    crew.add([&] {
        for (int i = 0; i < ROUNDS; i++) {
            void *p = hak_alloc(other.ctx, n);
            refused += !p;
            for (hak_quota *q : groups)
                seen = std::max(seen, hak_quota_used(q));
            hak_free(other.ctx, p);
        }
        done = true;
    });
    CHECK(crew.join() == "");
    CHECK(granted == 0);
    CHECK(refused == 0);
    CHECK(seen <= most + 64 * KiB);
    CHECK(hak_quota_peak(groups[0]) <= most + 64 * KiB);
}

} // namespace

TEST_CASE("a tenant over its own limit is refused alone")
{
    Tree tree;
    hak_quota *top = tree.add(nullptr, 20 * MiB);
    std::array<hak_quota *, 4> way;
    for (size_t i = 0; i < way.size(); i++)
        way[i] = tree.add(i ? way[i - 1] : top, i + 1 < way.size() ? 0 : MiB);
    {
        Tenant greedy(way.back()), other(top);
        const size_t base = hak_quota_used(top);
        storm(greedy, other, 12 * MiB, {top, way[0]}, base + 12 * MiB);
        for (hak_quota *q : way)
            CHECK(hak_quota_peak(q) <= base);
    }
}

// The refusal comes from above: what lies between must not show it, nor refuse what fits.
TEST_CASE("what the top refuses its groups neither show nor hold against each other")
{
    Tree tree;
    hak_quota *top = tree.add(nullptr, 9 * MiB), *group = tree.add(top, 12 * MiB);
    {
        Tenant greedy(group), other(group);
        storm(greedy, other, 4 * MiB, {group}, hak_quota_used(group) + 4 * MiB);
    }
}

// Of two requests that the group has room for, the top grants one. While neither knows, both are taken from the
// group, and a third one that fits beside either does not fit beside both.
TEST_CASE("what a group takes for a moment refuses nobody")
{
    Tree tree;
    hak_quota *top = tree.add(nullptr, 100), *group = tree.add(top, 52);
    size_t ignored;
    REQUIRE(hk_quota_charge(top, 60, &ignored));
    std::atomic<bool> done{false};
    size_t refused = 0;
    const auto charge = [&](size_t n) {
        size_t before;
        const bool taken = hk_quota_charge(group, n, &before);
        if (taken) hk_quota_uncharge(group, n);
        return taken;
    };
    Crew crew;
    for (int i = 0; i < 2; i++)
        crew.add([&] {
            while (!done)
                charge(24);
        });
    crew.add([&] {
        for (int i = 0; i < 100 * ROUNDS; i++)
            refused += !charge(10);
        done = true;
    });
    CHECK(crew.join() == "");
    CHECK(refused == 0);
    hk_quota_uncharge(top, 60);
}

// A fork leaves a group behind whose other threads had taken bytes and not shown them.
TEST_CASE("the wait for what nobody gives back has an end")
{
    Tree tree;
    hak_quota *group = tree.add(nullptr, 100);
    size_t ignored;
    reinterpret_cast<Beginning *>(group)->taken += 60;
    CHECK_FALSE(hk_quota_charge(group, 50, &ignored));
    REQUIRE(hk_quota_charge(group, 40, &ignored));
    hk_quota_uncharge(group, 40);
}

TEST_CASE("quotas one above the other, a thousand of them: each counts the bytes of the lowest")
{
    Tree tree;
    std::vector<hak_quota *> way{tree.add(nullptr, MiB)};
    while (way.size() < 1000)
        way.push_back(tree.add(way.back(), 0));
    {
        Tenant tenant(way.back());
        while (hak_alloc(tenant.ctx, 1000)) {
        }
        const size_t used = hak_quota_used(way.front());
        CHECK(used <= MiB);
        CHECK(used > MiB / 2);
        for (hak_quota *q : way)
            REQUIRE(hak_quota_used(q) == used);
    }
    for (hak_quota *q : way)
        REQUIRE(hak_quota_used(q) == 0);
}

TEST_CASE("limits of a tree hold under threads, and all comes back")
{
    Tree tree;
    hak_quota *top = tree.add(nullptr, 10 * MiB);
    hak_quota *left = tree.add(top, 6 * MiB), *right = tree.add(top, 7 * MiB);
    {
        std::vector<std::unique_ptr<Tenant>> tenants;
        for (int i = 0; i < 4; i++)
            tenants.push_back(std::make_unique<Tenant>(i % 2 ? right : left));
        std::atomic<size_t> refused{0};
        Crew crew(4, [&](size_t i) {
            Random random(i);
            std::vector<void *> blocks;
            for (int k = 0; k < ROUNDS; k++) {
                void *p = hak_alloc(tenants[i]->ctx, MiB + random.below(2 * MiB));
                if (p) blocks.push_back(p);
                else refused++;
                // A group never shows more than its parent: read the group first.
                size_t of_left = hak_quota_used(left), of_top = hak_quota_used(top);
                expect(of_left <= 6 * MiB && of_top <= 10 * MiB, "a limit was passed");
                if (!p || random.below(2)) {
                    for (void *b : blocks)
                        hak_free(tenants[i]->ctx, b);
                    blocks.clear();
                }
            }
            for (void *b : blocks)
                hak_free(tenants[i]->ctx, b);
        });
        CHECK(crew.join() == "");
        CHECK(refused > 0);
        CHECK(hak_quota_peak(top) <= 10 * MiB);
        CHECK(hak_quota_peak(left) <= 6 * MiB);
        CHECK(hak_quota_peak(right) <= 7 * MiB);
    }
}

// What the system refused was charged for a moment; it is in no peak.
TEST_CASE("a context whose first page is refused leaves no peak")
{
    Tree tree;
    hak_quota *group = tree.add(nullptr, 0);
    TestSpace s;
    Options options = ctx_options();
    options.quota = group;
    s.os.refuse_all(true);
    CHECK(hak_ctx_new(s.space, &options) == nullptr);
    s.os.refuse_all(false);
    CHECK(hak_quota_used(group) == 0);
    CHECK(hak_quota_peak(group) == 0);
}

TEST_CASE("a group takes its page from the table given, and groups below it from there, too")
{
    FakeOs os;
    hak_quota *top = hak_quota_new_os(os.table(), nullptr, 4 * MiB);
    REQUIRE(top != nullptr);
    CHECK(os.committed() == PAGE);
    hak_quota *below = hak_quota_new(top, MiB), *again = hak_quota_new(below, 0);
    REQUIRE(again != nullptr);
    CHECK(os.committed() == 3 * PAGE);
    hak_quota *plain = hak_quota_new(nullptr, 0), *other = hak_quota_new_os(os.table(), plain, 0);
    REQUIRE(other != nullptr);
    CHECK(os.committed() == 4 * PAGE);
    {
        Tenant tenant(again);
        CHECK(hak_quota_used(top) == hak_quota_used(again));
        CHECK(hak_quota_used(top) > 0);
        CHECK(hak_alloc(tenant.ctx, 2 * MiB) == nullptr);
    }
    for (hak_quota *q : {other, plain, again, below, top})
        hak_quota_delete(q);
    hak_quota_delete(nullptr);
    CHECK(os.close() == "");
    CHECK(os.reserved() == 0);
}

TEST_CASE("whatever request for a group's page fails, there is no group and nothing is lost")
{
    FakeOs os;
    hak_quota *top = hak_quota_new_os(os.table(), nullptr, 0);
    REQUIRE(top != nullptr);
    const uint64_t before = os.counts.requests();
    hak_quota *probe = hak_quota_new(top, 0);
    const uint64_t requests = os.counts.requests() - before;
    REQUIRE(requests == 2); // reserve, commit
    hak_quota_delete(probe);
    for (uint64_t n = 1; n <= requests; n++) {
        INFO("request " << n);
        os.fail_nth(n);
        CHECK(hak_quota_new(top, 0) == nullptr);
        os.fail_nth(n);
        CHECK(hak_quota_new_os(os.table(), nullptr, 0) == nullptr);
        CHECK(os.committed() == PAGE);
        CHECK(os.reserved() == PAGE);
    }
    os.fail_nth(0);
    hak_quota *after = hak_quota_new(top, 0);
    CHECK(after != nullptr);
    hak_quota_delete(after);
    hak_quota_delete(top);
    CHECK(os.close() == "");
}

TEST_CASE("a broken table gives no group")
{
    FakeOs os;
    hak_os table = *os.table();
    table.size = 4;
    CHECK(hak_quota_new_os(&table, nullptr, 0) == nullptr);
    table = *os.table();
    table.reserve = nullptr;
    CHECK(hak_quota_new_os(&table, nullptr, 0) == nullptr);
    table = *os.table();
    table.release = nullptr;
    CHECK(hak_quota_new_os(&table, nullptr, 0) == nullptr);
    CHECK(os.counts.calls() == 0);
    // Without commit, reserve gives usable pages.
    hak_os_default(&table);
    hak_quota *q = hak_quota_new_os(&table, nullptr, 0);
    CHECK(q != nullptr);
    hak_quota_delete(q);
}
