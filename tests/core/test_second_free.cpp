// Second frees whose first one empties what the block lay in: the memory has gone back to the space, perhaps
// to another context, when the second one leaves its magazine.
#include "heap.h"

#include <algorithm>

using namespace test;

namespace
{

struct Second {
    TestSpace s;
    Errors errors;
    hak_ctx *ctx, *other;

    explicit Second(size_t packed, hak_workload workload = HAK_WORKLOAD_MALLOC)
    {
        Options options = ctx_options(&errors);
        options.packed_bytes = packed;
        options.workload = workload;
        ctx = hak_ctx_new(s.space, &options);
        options.on_error = nullptr;
        other = hak_ctx_new(s.space, &options);
        REQUIRE((ctx && other));
    }
    ~Second()
    {
        hak_ctx_destroy(other);
        hak_ctx_destroy(ctx);
    }
    // Another context takes what is free by now, and the magazines give back theirs.
    void flush_beside_other()
    {
        std::vector<void *> theirs;
        for (int i = 0; i < 600; i++)
            theirs.push_back(hak_alloc(other, 48));
        hak_ctx_flush(ctx);
        for (void *p : theirs)
            CHECK(hak_usable_size(other, p) == 48);
        require_sound(other);
    }
    // Nothing but one error was told, and nobody's blocks overlap.
    void require_told(size_t live)
    {
        CHECK(errors.list.size() == 1);
        CHECK(stats_of(ctx).live_blocks == live);
        require_sound(ctx);
        std::vector<void *> blocks[2];
        for (unsigned i = 0; i < 2000; i++)
            for (hak_ctx *c : {ctx, other}) {
                void *p = hak_alloc(c, 64);
                fill(p, 64, i * 2 + (c == ctx));
                blocks[c == ctx].push_back(p);
            }
        for (unsigned i = 0; i < 2000; i++)
            for (unsigned k : {0u, 1u})
                REQUIRE(filled(blocks[k][i], 64, i * 2 + k));
        require_sound(ctx);
        require_sound(other);
    }
};

// Three slabs of 64 bytes of which the first has one block.
void *alone_in_slab(hak_ctx *ctx, std::vector<void *> &rest)
{
    std::vector<void *> all;
    for (int i = 0; i < 768; i++)
        all.push_back(hak_alloc(ctx, 64));
    uintptr_t unit = addr(all[0]) / (16 * KiB);
    void *kept = nullptr;
    for (void *p : all)
        if (addr(p) / (16 * KiB) != unit) rest.push_back(p);
        else if (!kept) kept = p;
        else hak_free(ctx, p);
    hak_ctx_flush(ctx);
    return kept;
}

} // namespace

TEST_CASE("second free: both leave the magazine at once")
{
    Second t(HAK_NONE);
    std::vector<void *> rest;
    void *p = alone_in_slab(t.ctx, rest);
    hak_free(t.ctx, p);
    hak_free(t.ctx, p);
    hak_ctx_flush(t.ctx);
    t.require_told(rest.size());
}

TEST_CASE(
    "second free: the magazine gives the block back in two parts, and another context has the slab by then")
{
    Second t(HAK_NONE);
    std::vector<void *> rest;
    void *p = alone_in_slab(t.ctx, rest);
    hak_free(t.ctx, p);
    for (size_t i = 0; i < 20; i++)
        hak_free(t.ctx, rest[i * 7]);
    hak_free(t.ctx, p);
    // An overflow gives the lower half back.
    size_t freed = 20;
    for (size_t i = 0; t.errors.list.empty() && i < 11; i++, freed++)
        hak_free(t.ctx, rest[i * 7 + 1]);
    t.flush_beside_other();
    t.require_told(rest.size() - freed);
}

TEST_CASE("second free: a sweep empties the magazine that has the first one")
{
    Second t(HAK_NONE, HAK_WORKLOAD_TRACED);
    std::vector<void *> rest;
    void *p = alone_in_slab(t.ctx, rest);
    std::sort(rest.begin(), rest.end());
    hak_free(t.ctx, p);
    const size_t freed = 200;
    for (size_t i = 0; i < freed; i++)
        hak_free(t.ctx, rest[i]);
    hak_free(t.ctx, p);
    t.flush_beside_other();
    t.require_told(rest.size() - freed);
}

TEST_CASE("second free: of a run whose units are another size's by then")
{
    Second t(HAK_NONE);
    std::vector<void *> runs;
    for (int round = 0; round < 40; round++) {
        runs = {hak_alloc(t.ctx, 48 * KiB), hak_alloc(t.ctx, 48 * KiB)};
        for (void *p : runs)
            hak_free(t.ctx, p);
    }
    hak_ctx_flush(t.ctx);
    void *p = hak_alloc(t.ctx, 48 * KiB), *q = hak_alloc(t.ctx, 48 * KiB);
    hak_free(t.ctx, p);
    hak_free(t.ctx, p);
    hak_free(t.ctx, q);
    hak_ctx_flush(t.ctx);
    t.require_told(0);
}

TEST_CASE("second free: of the last block of packed units")
{
    Second t(2 * MiB);
    std::vector<void *> blocks;
    // Blocks that come and go get magazines, which are what a second free can wait in.
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 3000; i++)
            blocks.push_back(hak_alloc(t.ctx, 64 + (size_t)(i % 8) * 16));
        for (void *p : blocks)
            hak_free(t.ctx, p);
        blocks.clear();
        if (round % 20 == 0) hak_ctx_trim(t.ctx);
    }
    void *p = hak_alloc(t.ctx, 96);
    hak_free(t.ctx, p);
    hak_free(t.ctx, p);
    hak_ctx_trim(t.ctx);
    t.require_told(0);
}
