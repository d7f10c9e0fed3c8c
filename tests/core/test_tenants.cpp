// What one tenant wrote is not read by the next where zeros are promised: hak_calloc and its like, in a
// context that takes the pages of one that was destroyed, and in blocks that were freed before.
#include "shared.h"

using namespace test;

namespace
{

const size_t SIZES[] = {1,    8,     40,       200,      1000,      1024, 1500,
                        4096, 10000, 32 * KiB, 40 * KiB, 200 * KiB, MiB,  3 * MiB};

// Of each size some blocks, full of what the next tenant must not read.
std::vector<void *> write_all(hak_ctx *ctx)
{
    std::vector<void *> made;
    for (size_t n : SIZES)
        for (size_t i = 0; i < (n <= 4096 ? 40u : 3u); i++) {
            made.push_back(hak_alloc(ctx, n));
            REQUIRE(made.back());
            std::memset(made.back(), 0x5A, hak_usable_size(ctx, made.back()));
        }
    return made;
}

// All of them zero, by each function that says so; and whether blocks that promise nothing show the former
// tenant.
bool read_all(hak_ctx *ctx)
{
    bool shown = false;
    for (size_t n : SIZES) {
        INFO(n);
        for (size_t i = 0; i < (n <= 4096 ? 20u : 2u); i++) {
            REQUIRE(all_bytes(hak_calloc(ctx, 1, n), n, 0));
            REQUIRE(all_bytes(hak_aligned_calloc(ctx, 64, 1, n), n, 0));
            const unsigned char *plain = static_cast<const unsigned char *>(hak_alloc(ctx, n));
            REQUIRE(plain);
            shown |= plain[n - 1] == 0x5A;
        }
    }
    return shown;
}

} // namespace

TEST_CASE("zeros are zeros in a context that follows another one, whatever is retained")
{
    bool shared = GENERATE(false, true), retained = GENERATE(false, true);
    unsigned debug = GENERATE(0u, (unsigned)HAK_DEBUG_POISON, (unsigned)HAK_DEBUG_GUARD,
                              (unsigned)(HAK_DEBUG_RANDOM | HAK_DEBUG_CANARY | HAK_DEBUG_QUARANTINE));
    CAPTURE(shared, retained, debug);
    TestSpace space([=](SpaceOptions &o) {
        if (!retained) o.retained_bytes = o.retained_percent = HAK_NONE;
    });
    Options options = ctx_options();
    options.debug = debug;
    options.shared = shared;
    options.guard_every = 3;
    {
        TestCtx before(space.space, &options);
        write_all(before);
    }
    TestCtx after(space.space, &options);
    bool shown = read_all(after);
    // The header promises this of pages that are not retained, and nothing of those that are.
    if (!retained) CHECK(!shown);
    if (retained && !debug) CHECK(shown);
}

TEST_CASE("zeros are zeros in blocks that were freed in the same context")
{
    bool shared = GENERATE(false, true);
    unsigned debug =
        GENERATE(0u, (unsigned)HAK_DEBUG_POISON, (unsigned)HAK_DEBUG_GUARD, (unsigned)HAK_DEBUG_RANDOM);
    CAPTURE(shared, debug);
    Debugged d(debug, [=](Options &o) {
        o.shared = shared;
        o.guard_every = 3;
    });
    for (bool trim : {false, true}) {
        for (void *p : write_all(d))
            hak_free(d, p);
        if (trim) hak_ctx_trim(d);
        bool shown = read_all(d);
        if (!trim && !debug) CHECK(shown);
    }
}
