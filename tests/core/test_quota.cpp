// Quotas under threads: a group that is refused takes nothing from its neighbours, for no moment.
#include "crew.h"
#include "heap.h"

#include <algorithm>
#include <array>
#include <memory>

using namespace test;

namespace
{

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
        std::atomic<bool> done{false};
        size_t refused = 0, granted = 0, most = 0;
        Crew crew;
        crew.add([&] {
            while (!done)
                if (hak_alloc(greedy.ctx, 10 * MiB)) granted++;
        });
        crew.add([&] {
            for (int i = 0; i < ROUNDS; i++) {
                void *p = hak_alloc(other.ctx, 12 * MiB);
                refused += !p;
                most = std::max({most, hak_quota_used(top), hak_quota_used(way[0])});
                hak_free(other.ctx, p);
            }
            done = true;
        });
        CHECK(crew.join() == "");
        CHECK(granted == 0);
        CHECK(refused == 0);
        CHECK(most <= base + 12 * MiB + 64 * KiB);
        CHECK(hak_quota_peak(top) <= base + 12 * MiB + 64 * KiB);
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
        const size_t base = hak_quota_used(group);
        std::atomic<bool> done{false};
        size_t refused = 0, granted = 0, most = 0;
        Crew crew;
        crew.add([&] {
            while (!done)
                if (hak_alloc(greedy.ctx, 10 * MiB)) granted++;
        });
        crew.add([&] {
            for (int i = 0; i < ROUNDS; i++) {
                void *p = hak_alloc(other.ctx, 4 * MiB);
                refused += !p;
                most = std::max(most, hak_quota_used(group));
                hak_free(other.ctx, p);
            }
            done = true;
        });
        CHECK(crew.join() == "");
        CHECK(granted == 0);
        CHECK(refused == 0);
        CHECK(most <= base + 4 * MiB + 64 * KiB);
        CHECK(hak_quota_peak(group) <= base + 4 * MiB + 64 * KiB);
    }
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
