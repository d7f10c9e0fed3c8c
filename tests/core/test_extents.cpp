// A space that gets no further extent: what it refuses, and what it hands out again.
#include "heap.h"

#include <vector>

using namespace test;

namespace
{

// Its extents have 4 MiB each, as the system refuses larger ones.
struct FullSpace {
    FakeOs os;
    hak_space *space = nullptr;
    hak_ctx *ctx = nullptr;
    std::vector<void *> blocks; // of n bytes, as many as there is room for

    explicit FullSpace(size_t n)
    {
        os.refuse_reserve_above(5 * MiB);
        SpaceOptions options = space_options(os, 4 * MiB);
        space = hak_space_new(&options);
        REQUIRE(space != nullptr);
        ctx = hak_ctx_new(space, nullptr);
        REQUIRE(ctx != nullptr);
        while (blocks.size() < 10000) {
            void *p = hak_alloc(ctx, n);
            if (!p) break;
            blocks.push_back(p);
        }
    }
    // Returns how many there were.
    size_t free_every_second() const
    {
        size_t freed = 0;
        for (size_t i = 0; i < blocks.size(); i += 2, freed++)
            hak_free(ctx, blocks[i]);
        return freed;
    }
    void close()
    {
        require_sound(ctx);
        hak_space_delete(space);
        CHECK(os.close() == "");
    }
};

} // namespace

TEST_CASE("a space has 32 extents: what would need another one is refused, and the space goes on")
{
    FullSpace s(60000);
    const size_t full = stats_of(s.ctx).reserved_bytes;
    CAPTURE(full, s.blocks.size());
    CHECK(full >= 32 * 4 * MiB);
    CHECK(full < 33 * 4 * MiB);
    // Of 4 MiB at any address a chunk of 2 MiB is left.
    CHECK(s.blocks.size() * 60000 >= full / 100 * 45);
    CHECK(hak_alloc(s.ctx, 60000) == nullptr);
    CHECK(stats_of(s.ctx).reserved_bytes == full);
    require_sound(s.ctx);
    for (size_t freed = s.free_every_second(); freed; freed--)
        REQUIRE(hak_alloc(s.ctx, 60000) != nullptr);
    // A block with a mapping of its own needs no extent.
    CHECK(hak_alloc(s.ctx, 3 * MiB) != nullptr);
    s.close();
}

TEST_CASE("a space without further addresses hands out again what was freed, unit by unit")
{
    const size_t n = GENERATE(15000, 30000);
    FullSpace s(n);
    const size_t freed = s.free_every_second();
    size_t again = 0;
    while (again <= freed && hak_alloc(s.ctx, n))
        again++;
    CAPTURE(n, s.blocks.size(), freed, again);
    CHECK(again >= freed - 2);
    s.close();
}
