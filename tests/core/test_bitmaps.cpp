// Bitmaps of slabs: as long as a class needs, side by side in what a chunk has room for. Their bits are
// tested wherever blocks are freed.
#include "crew.h"
#include "heap.h"

#include <sys/mman.h>

#include <utility>
#include <vector>

using namespace test;

namespace
{

const size_t UNIT = 16 * KiB;

Options unpacked()
{
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    options.big_cache = HAK_NONE;
    return options;
}

// Blocks of n bytes until there is no more memory, or `most` bytes.
std::vector<void *> fill_up(hak_ctx *ctx, size_t n, size_t most = SIZE_MAX)
{
    std::vector<void *> blocks;
    for (void *p; most / n > blocks.size() && (p = hak_alloc(ctx, n)) != nullptr;)
        blocks.push_back(p);
    return blocks;
}

void free_all(hak_ctx *ctx, std::vector<void *> &blocks)
{
    for (void *p : blocks)
        hak_free(ctx, p);
    blocks.clear();
}

} // namespace

TEST_CASE("a slab is charged for the bitmap that its class needs, and for none when it is gone")
{
    TestSpace s;
    Options options = unpacked();
    TestCtx ctx(s.space, &options);
    for (auto [n, bytes] : std::initializer_list<std::pair<size_t, size_t>>{{8, 128},
                                                                            {16, 128},
                                                                            {24, 128},
                                                                            {32, 64},
                                                                            {56, 64},
                                                                            {64, 32},
                                                                            {120, 32},
                                                                            {128, 16},
                                                                            {256, 16},
                                                                            {1024, 16}}) {
        INFO("blocks of " << n);
        // The class has its magazine, as deep as it gets.
        std::vector<void *> blocks = fill_up(ctx, n, 2 * MiB);
        free_all(ctx, blocks);
        hak_ctx_flush(ctx);
        hak_stats before = stats_of(ctx);
        blocks = fill_up(ctx, n, 2 * MiB);
        hak_stats full = stats_of(ctx);
        size_t meta = full.metadata_bytes - before.metadata_bytes;
        size_t units = (full.committed_bytes - before.committed_bytes - meta) / UNIT;
        CHECK(units >= 2 * MiB / UNIT);
        CHECK(meta == units * (36 + bytes));
        require_sound(ctx);
        free_all(ctx, blocks);
        hak_ctx_flush(ctx);
        CHECK(stats_of(ctx).committed_bytes == before.committed_bytes);
        CHECK(stats_of(ctx).metadata_bytes == before.metadata_bytes);
    }
}

TEST_CASE("bitmaps of larger blocks share pages")
{
    const size_t size = 64 * MiB, heap = 32 * MiB, n = 128;
    void *buffer = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(buffer != MAP_FAILED);
    madvise(buffer, size, MADV_NOHUGEPAGE);
    hak_space_options space_options = HAK_SPACE_OPTIONS_INIT;
    space_options.buffer = buffer;
    space_options.buffer_size = size;
    space_options.buffer_only = true;
    hak_space *space = hak_space_new(&space_options);
    REQUIRE(space != nullptr);
    Options options = unpacked();
    hak_ctx *ctx = hak_ctx_new(space, &options);
    std::vector<void *> blocks = fill_up(ctx, n, heap);
    const size_t before = resident_pages(buffer, size);
    for (size_t i = 0; i < blocks.size(); i += 16)
        hak_free(ctx, blocks[i]);
    hak_ctx_flush(ctx);
    // 2,048 units, of which the bitmaps take 16 bytes each, in 16 chunks.
    CHECK(resident_pages(buffer, size) <= before + 2 * 16);
    require_sound(ctx);
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
    munmap(buffer, size);
}

TEST_CASE("each unit may have the longest bitmap, whatever others of its chunk had and have")
{
    // The last chunk is not whole.
    TestSpace outer;
    std::vector<char> buffer(2 * MiB + 700 * KiB);
    SpaceOptions space_options = test::space_options(outer.os);
    space_options.buffer = buffer.data();
    space_options.buffer_size = buffer.size();
    space_options.buffer_only = true;
    hak_space *space = hak_space_new(&space_options);
    REQUIRE(space != nullptr);
    Options options = unpacked();
    options.magazine = HAK_NONE;
    hak_ctx *ctx = hak_ctx_new(space, &options);
    std::vector<void *> blocks = fill_up(ctx, 8);
    const size_t most = blocks.size();
    CHECK(most / 1024 > 100);
    free_all(ctx, blocks);
    for (unsigned round = 0; round < 10 * EFFORT; round++) {
        Random random(round);
        for (void *p; (p = hak_alloc(ctx, 1 + random.below(300))) != nullptr;)
            blocks.push_back(p);
        require_sound(ctx);
        // Whole slabs go, here and there.
        std::vector<void *> kept;
        for (void *p : blocks) {
            if (addr(p) / UNIT % 3 == round % 3) kept.push_back(p);
            else hak_free(ctx, p);
        }
        std::vector<void *> small = fill_up(ctx, 8);
        CHECK(small.size() > most / 2);
        require_sound(ctx);
        free_all(ctx, kept);
        free_all(ctx, small);
        blocks = fill_up(ctx, 8);
        CHECK(blocks.size() >= most - 8 * 1024);
        require_sound(ctx);
        free_all(ctx, blocks);
    }
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
}

TEST_CASE("threads whose contexts have units of one chunk take bitmaps there at the same time")
{
    TestSpace s;
    Crew crew(3, [&](size_t id) {
        Options options = unpacked();
        hak_ctx *ctx = hak_ctx_new(s.space, &options);
        // With so much a context sets units aside.
        std::vector<void *> base = fill_up(ctx, 512, 2 * MiB);
        Random random((unsigned)id);
        for (unsigned round = 0; round < 20 * EFFORT; round++) {
            size_t n = 8 * (1 + random.below(40));
            std::vector<void *> blocks = fill_up(ctx, n, 700 * KiB);
            for (void *p : blocks)
                std::memset(p, (int)id, 8);
            expect(hak_ctx_check(ctx, nullptr, nullptr), "not sound");
            for (void *p : blocks)
                expect(*static_cast<char *>(p) == (char)id, "a block of two contexts");
            free_all(ctx, blocks);
            hak_ctx_flush(ctx);
        }
        free_all(ctx, base);
        expect(hak_ctx_check(ctx, nullptr, nullptr), "not sound at the end");
        hak_ctx_destroy(ctx);
    });
    CHECK(crew.join() == "");
}
