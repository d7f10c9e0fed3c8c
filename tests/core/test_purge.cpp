// Which retained units go back to the OS, and how many: space/purge.c, on a space without contexts.
#include "heap.h"
#include "inner.h"

#include <algorithm>
#include <vector>

using namespace test;

namespace
{

const size_t UNIT = 16 * KiB, CHUNK = 128;

// A space of which `units` units are retained, taken one by one. limit: retained_bytes.
struct Retained {
    TestSpace s;
    std::vector<uint32_t> ids;

    explicit Retained(size_t units, size_t limit = GiB)
        : s([limit](SpaceOptions &options) {
              options.retained_bytes = limit;
              options.retained_percent = HAK_NONE;
          })
    {
        for (size_t i = 0; i < units; i++) {
            ids.push_back(inner_units_take(s.space, 1));
            REQUIRE(ids.back() != 0);
        }
        for (uint32_t id : ids)
            inner_units_give(s.space, id, 1);
    }
    size_t units() const
    {
        return inner_retained(s.space);
    }
};

} // namespace

TEST_CASE("what is given is retained, and what is taken again comes from there")
{
    Retained r(10);
    CHECK(r.units() == 10);
    uint64_t commits = r.s.os.counts.commit;
    uint32_t id = inner_units_take(r.s.space, 4);
    CHECK(r.units() == 6);
    CHECK(r.s.os.counts.commit == commits);
    inner_units_give(r.s.space, id, 4);
    CHECK(r.units() == 10);
}

TEST_CASE("bytes are purged in whole units, and no more than are retained")
{
    Retained r(10);
    size_t committed = r.s.os.committed();
    inner_purge_bytes(r.s.space, 1);
    CHECK(r.units() == 9);
    CHECK(r.s.os.committed() <= committed - UNIT);
    inner_purge_bytes(r.s.space, 3 * UNIT);
    CHECK(r.units() == 6);
    inner_purge_bytes(r.s.space, GiB);
    CHECK(r.units() == 0);
    inner_purge_bytes(r.s.space, UNIT);
    CHECK(r.units() == 0);
}

TEST_CASE("the highest units of a chunk go first")
{
    Retained r(10);
    inner_purge_bytes(r.s.space, 4 * UNIT);
    std::vector<uint32_t> left;
    for (int i = 0; i < 6; i++)
        left.push_back(inner_units_take(r.s.space, 1));
    CHECK(r.units() == 0);
    std::sort(left.begin(), left.end());
    std::sort(r.ids.begin(), r.ids.end());
    r.ids.resize(6);
    CHECK(left == r.ids);
    for (uint32_t id : left)
        inner_units_give(r.s.space, id, 1);
}

TEST_CASE("units above the limit are due")
{
    Retained r(8, 8 * UNIT);
    CHECK(inner_purge_due(r.s.space) == 0);
    uint32_t id = inner_units_take(r.s.space, 1);
    CHECK(inner_purge_due(r.s.space) == 0);
    inner_units_give(r.s.space, id, 1);
    CHECK(r.units() == 8);
}

TEST_CASE("beyond the limit a quarter of it goes, too, so that the next unit calls nobody")
{
    Retained r(9, 8 * UNIT);
    CHECK(r.units() == 6);
    uint64_t decommits = r.s.os.counts.decommit;
    CHECK(decommits > 0);
    inner_purge_to_limit(r.s.space);
    CHECK(r.s.os.counts.decommit == decommits);
}

TEST_CASE("a batch has 1024 units at most, and tells how many are left")
{
    Retained r(2500);
    size_t left = inner_purge_batch(r.s.space, 2000);
    CHECK(left == 2000 - (2500 - r.units()));
    CHECK(left >= 2000 - 1024);
    CHECK(left < 2000 - 1024 + CHUNK);
    CHECK(inner_purge_batch(r.s.space, 900) == 0);
    CHECK(r.units() == 2500 - (2000 - left) - 900);
    CHECK(inner_purge_batch(r.s.space, 5000) == 0);
    CHECK(r.units() == 0);
}

TEST_CASE("a batch that others follow ends where a chunk begins, the last one anywhere")
{
    Retained r(2500);
    auto highest = [&r] {
        std::vector<uint32_t> taken;
        while (r.units() > 0)
            taken.push_back(inner_units_take(r.s.space, 1));
        uint32_t last = *std::max_element(taken.begin(), taken.end());
        for (uint32_t id : taken)
            inner_units_give(r.s.space, id, 1);
        return reinterpret_cast<uintptr_t>(inner_unit_address(r.s.space, last)) + UNIT;
    };
    CHECK(highest() % (CHUNK * UNIT) != 0);
    inner_purge_batch(r.s.space, 2000);
    uintptr_t end = highest();
    CHECK(end % (CHUNK * UNIT) == 0);
    inner_purge_batch(r.s.space, 10);
    CHECK(highest() == end - 10 * UNIT);
}
