// hak_aligned_calloc, hak_aligned_realloc, hak_good_size.
#define HAK_NO_ATTRIBUTES // It asks for more than there can be.
#include "shared.h"

#include "policy.h"

#include <hakmem/profile.h>

#include <cstddef>

using namespace test;

namespace
{

const size_t SIZES[] = {0,    1,    24,   100,   520,   1000,   1500,    4000,
                        4096, 8200, 9000, 40000, 70000, 600000, 1100000, 3 * MiB};

void with_context(int which, const std::function<void(hak_ctx *, Errors &)> &fn)
{
    TestSpace s;
    Errors errors;
    Options options = variant(which % 5);
    options.shared = which >= 5;
    options.on_error = Errors::record;
    options.error_user = &errors;
    TestCtx ctx(s.space, &options);
    fn(ctx, errors);
    hak_ctx_flush(ctx);
    require_sound(ctx);
    CHECK(errors.take() == "");
}

} // namespace

TEST_CASE("aligned calloc gives zeros, fresh and used again")
{
    int which = GENERATE(0, 1, 2, 4, 5);
    CAPTURE(which);
    with_context(which, [](hak_ctx *ctx, Errors &) {
        for (int round = 0; round < 3; round++) {
            std::vector<std::pair<void *, size_t>> blocks;
            for (size_t align = 1; align <= 64 * KiB; align *= 2)
                for (size_t n : SIZES) {
                    void *p = round % 2 ? hak_aligned_calloc(ctx, align, 1, n)
                                        : hak_aligned_calloc_cs(ctx, align, n, 1, 0, 77);
                    REQUIRE(p != nullptr);
                    REQUIRE(addr(p) % align == 0);
                    REQUIRE(hak_usable_size(ctx, p) >= n);
                    REQUIRE(all_bytes(p, n, 0));
                    std::memset(p, 0xA5, n);
                    blocks.push_back({p, n});
                }
            for (auto &b : blocks)
                hak_free(ctx, b.first);
        }
    });
}

TEST_CASE("aligned realloc keeps contents and label, and gives the alignment")
{
    int which = GENERATE(0, 1, 2, 3, 4, 5, 7);
    CAPTURE(which);
    with_context(which, [](hak_ctx *ctx, Errors &) {
        hak_label red = hak_label_define(ctx, "red"), blue = hak_label_define(ctx, "blue");
        Random random(4);
        struct Live {
            void *p;
            size_t n;
            unsigned id;
            hak_label label;
        };
        std::vector<Live> blocks;
        unsigned id = 0;
        for (int step = 0; step < 1500 * (int)EFFORT; step++) {
            size_t align = (size_t)1 << random.below(random.below(20) ? 13 : 18), n = some_size(random);
            if (blocks.size() < 40) {
                void *p = hak_aligned_realloc_cs(ctx, nullptr, align, n, red, 5);
                REQUIRE(p != nullptr);
                REQUIRE(addr(p) % align == 0);
                REQUIRE(hak_label_of(ctx, p) == red);
                fill(p, n, ++id);
                blocks.push_back({p, n, id, red});
                continue;
            }
            Live &b = blocks[random.below(blocks.size())];
            if (random.below(2)) n = b.n + random.below(20) - (b.n > 20 ? 10 : 0);
            bool relabel = random.below(3) == 0;
            void *p = relabel ? hak_aligned_realloc_cs(ctx, b.p, align, n, blue, 5)
                              : hak_aligned_realloc(ctx, b.p, align, n);
            CAPTURE(step, align, n, b.n);
            REQUIRE(p != nullptr);
            REQUIRE(addr(p) % align == 0);
            REQUIRE(hak_usable_size(ctx, p) >= n);
            REQUIRE(filled(p, std::min(n, b.n), b.id));
            if (relabel) b.label = blue;
            REQUIRE(hak_label_of(ctx, p) == b.label);
            fill(p, n, ++id);
            b = {p, n, id, b.label};
            for (size_t i = 0; i < 3; i++) {
                const Live &other = blocks[random.below(blocks.size())];
                REQUIRE(filled(other.p, other.n, other.id));
            }
        }
        for (const Live &b : blocks)
            hak_free(ctx, b.p);
        CHECK(stats_of(ctx).live_blocks == 0);
    });
}

TEST_CASE("an aligned block that fits stays in place, and a much smaller one does not keep its room")
{
    TestSpace s;
    Options options = variant(1);
    TestCtx ctx(s.space, &options);
    for (size_t align : {(size_t)64, (size_t)256, (size_t)4096, 64 * KiB})
        for (size_t n : {(size_t)100, (size_t)700, (size_t)5000}) {
            CAPTURE(align, n);
            void *p = hak_aligned_alloc(ctx, align, n);
            const size_t usable = hak_usable_size(ctx, p);
            CHECK(hak_aligned_realloc(ctx, p, align, n) == p);
            CHECK(hak_aligned_realloc(ctx, p, align, usable) == p);
            CHECK(hak_aligned_realloc(ctx, p, align, n) == p);
            p = hak_aligned_realloc(ctx, p, 32, 40);
            CHECK(hak_usable_size(ctx, p) == 64);
            hak_free(ctx, p);
        }
    // A block that nobody asked to be aligned moves only if it is not.
    void *p = hak_alloc(ctx, 40), *q = hak_alloc(ctx, 40);
    REQUIRE((addr(p) % 16 == 0) != (addr(q) % 16 == 0));
    if (addr(p) % 16 == 0) std::swap(p, q);
    CHECK(hak_aligned_realloc(ctx, q, 16, 40) == q);
    CHECK(hak_aligned_realloc(ctx, p, 16, 40) != p);
    require_sound(ctx);
}

TEST_CASE("aligned calloc and realloc: what is refused")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(s.space, &options);
    void *p = hak_aligned_alloc(ctx, 64, 100);
    fill(p, 100, 1);
    for (size_t align : {(size_t)0, (size_t)3, (size_t)48, 2 * GiB, SIZE_MAX}) {
        CHECK(hak_aligned_calloc(ctx, align, 1, 10) == nullptr);
        CHECK(hak_aligned_realloc(ctx, nullptr, align, 10) == nullptr);
        CHECK(hak_aligned_realloc(ctx, p, align, 10) == nullptr);
        CHECK(errors.take() == "HAK_E_ALIGNMENT HAK_E_ALIGNMENT HAK_E_ALIGNMENT");
    }
    for (size_t align : {(size_t)1, (size_t)16, (size_t)64, (size_t)4096, MiB}) {
        CAPTURE(align);
        CHECK(hak_aligned_calloc(ctx, align, SIZE_MAX / 2, 3) == nullptr);
        for (size_t n : {SIZE_MAX, SIZE_MAX - 15, (size_t)PTRDIFF_MAX}) {
            CHECK(hak_aligned_calloc(ctx, align, 1, n) == nullptr);
            CHECK(hak_aligned_realloc(ctx, nullptr, align, n) == nullptr);
            CHECK(hak_aligned_realloc(ctx, p, align, n) == nullptr);
        }
        CHECK(errors.count(HAK_E_OVERFLOW) == 10);
        CHECK(errors.list.size() == 10);
        errors.list.clear();
        int outside = 0;
        CHECK(hak_aligned_realloc(ctx, &outside, align, 10) == nullptr);
        CHECK(hak_aligned_realloc(ctx, static_cast<char *>(p) + 16, align, 10) == nullptr);
        CHECK(errors.count(HAK_E_FOREIGN) == 1);
        CHECK(errors.list.size() == 2);
        errors.list.clear();
    }
    CHECK(filled(p, 100, 1));
    hak_free(ctx, p);
    CHECK(stats_of(ctx).live_blocks == 0);
    require_sound(ctx);
}

TEST_CASE("a shrink of an aligned block never fails, and counts no failure")
{
    TestSpace s;
    Options options = variant(1);
    TestCtx ctx(s.space, &options);
    void *p = hak_aligned_alloc(ctx, 128, 8000);
    fill(p, 8000, 1);
    s.os.refuse_all(true);
    while (hak_alloc(ctx, 128))
        ;
    const uint64_t failures = stats_of(ctx).failures;
    CHECK(hak_aligned_realloc(ctx, p, 128, 100) == p);
    CHECK(stats_of(ctx).failures == failures);
    CHECK(hak_aligned_realloc(ctx, p, 128, 9000) == nullptr);
    CHECK(stats_of(ctx).failures == failures + 1);
    CHECK(filled(p, 100, 1));
    s.os.refuse_all(false);
    require_sound(ctx);
}

TEST_CASE("hak_good_size is what a new block gets")
{
    const bool shared = GENERATE(false, true);
    int which = GENERATE(1, 2);
    CAPTURE(shared, which);
    TestSpace s;
    Options options = variant(which);
    options.shared = shared;
    options.max_align = GENERATE(false, true);
    options.big_cache = HAK_NONE;
    TestCtx ctx(s.space, &options);
    size_t last = 0;
    auto check = [&](size_t n) {
        CAPTURE(n);
        size_t good = hak_good_size(ctx, n);
        REQUIRE(good >= n);
        REQUIRE(good >= last);
        REQUIRE(hak_good_size(hak_ctx_thread(ctx), n) == good);
        REQUIRE(hak_good_size(ctx, good) == good);
        last = good;
        void *p = hak_alloc(ctx, n);
        REQUIRE(hak_usable_size(ctx, p) == good);
        return p;
    };
    std::vector<void *> blocks;
    for (size_t n = 0; n <= 33 * KiB; n++)
        blocks.push_back(check(n));
    for (void *p : blocks)
        hak_free(ctx, p);
    for (size_t n = 33 * KiB; n < 5 * MiB; n += 997)
        hak_free(ctx, check(n));
    const size_t most = (size_t)PTRDIFF_MAX - GiB;
    CHECK(hak_good_size(ctx, most) >= most);
    for (size_t n : {most + 1, SIZE_MAX / 2, SIZE_MAX - 8, SIZE_MAX})
        CHECK(hak_good_size(ctx, n) == 0);
}

TEST_CASE("a good size is no more than the block has after a policy took packing away")
{
    const size_t limit = GENERATE((size_t)0, 256 * KiB);
    TestSpace s;
    TestCtx ctx(s.space);
    if (limit) REQUIRE(hak_limit(ctx, 0, limit, nullptr, nullptr) == 0);
    void *first = hak_alloc(ctx, 100);
    REQUIRE(hak_ctx_policy_set(ctx, hak_policy_of_mode(HAK_MODE_MINIMAL)) == 0);
    if (!limit) REQUIRE(hak_limit(ctx, 0, committed_of(ctx) + 200 * KiB, nullptr, nullptr) == 0);
    for (size_t n = 1025; n <= 32 * KiB; n += 511) {
        void *p = hak_alloc(ctx, n);
        CAPTURE(n);
        if (p) REQUIRE(hak_usable_size(ctx, p) >= hak_good_size(ctx, n));
        hak_free(ctx, p);
    }
    hak_free(ctx, first);
}

TEST_CASE("a packed block may have more than its good size")
{
    TestSpace s;
    Options options = variant(3);
    TestCtx ctx(s.space, &options);
    for (size_t n = 0; n <= 500; n++) {
        void *p = hak_alloc(ctx, n);
        size_t usable = hak_usable_size(ctx, p), good = hak_good_size(ctx, n);
        REQUIRE(usable >= good);
        REQUIRE(usable <= std::max(good, (size_t)16) + 8);
        if (n <= 8) REQUIRE(usable > good);
    }
    // Above 1 KiB they have what was asked for, or the size of their class.
    for (size_t n = 1025; n <= 32 * KiB; n += 111) {
        size_t good = hak_good_size(ctx, n);
        REQUIRE(good == (n + 15) / 16 * 16);
        REQUIRE(hak_usable_size(ctx, hak_alloc(ctx, n)) >= good);
    }
}

TEST_CASE("max_align: every block is aligned for any type")
{
    int which = GENERATE(0, 1, 2, 3, 4, 5, 6);
    const bool shared = GENERATE(false, true);
    CAPTURE(which, shared);
    TestSpace s;
    Errors errors;
    Options options = variant(which % 5);
    if (which >= 5) options.first_offset = which == 5 ? 16 : 48;
    options.shared = shared;
    options.max_align = true;
    options.on_error = Errors::record;
    options.error_user = &errors;
    TestCtx ctx(s.space, &options);
    std::vector<Block> blocks;
    unsigned id = 0;
    auto keep = [&](void *p, size_t n) {
        REQUIRE(p != nullptr);
        if (addr(p) % alignof(std::max_align_t) != 0 || addr(p) % 16 != 0) FAIL(n << " bytes at " << p);
        size_t usable = hak_usable_size(ctx, p);
        REQUIRE(usable >= n);
        fill(p, n, ++id);
        blocks.push_back({p, n, id});
    };
    for (size_t n = 0; n < 1200; n++) {
        keep(hak_alloc(ctx, n), n);
        keep(hak_alloc_cs(ctx, n, 0, 1), n);
        keep(hak_calloc(ctx, 1, n), n);
        keep(hak_aligned_alloc(ctx, 1, n), n);
        keep(hak_realloc(ctx, nullptr, n), n);
    }
    for (size_t n = 1200; n < 40000; n += 77)
        keep(hak_alloc(ctx, n), n);
    Random random(5);
    for (int i = 0; i < 4000 * (int)EFFORT; i++) {
        size_t at = random.below(blocks.size()), n = random.below(random.below(10) ? 300 : 3000);
        Block b = blocks[at];
        REQUIRE(filled(b.p, b.n, b.id));
        blocks[at] = blocks.back();
        blocks.pop_back();
        switch (random.below(4)) {
        case 0:
            keep(hak_realloc(ctx, b.p, n), n);
            break;
        case 1:
            n = b.n + random.below(16);
            keep(hak_realloc_sized(ctx, b.p, b.n, n), n);
            break;
        case 2:
            hak_free_sized(ctx, b.p, b.n);
            keep(hak_alloc(ctx, n), n);
            break;
        default:
            hak_free(ctx, b.p);
            keep(hak_alloc(ctx, n), n);
        }
    }
    CHECK(errors.take() == "");
    for (const Block &b : blocks) {
        REQUIRE(filled(b.p, b.n, b.id));
        hak_free(ctx, b.p);
    }
    require_empty(ctx);
}

TEST_CASE("max_align: a block that fits stays in place, also for sizes that are no multiple of 16")
{
    TestSpace s;
    Options options = variant(1);
    options.max_align = true;
    TestCtx ctx(s.space, &options);
    for (size_t n = 1; n <= 480; n += 16) {
        std::vector<void *> blocks; // others at hand
        for (int i = 0; i < 20; i++)
            blocks.push_back(hak_alloc(ctx, n));
        for (int i = 1; i < 20; i++)
            hak_free(ctx, blocks[(size_t)i]);
        for (size_t to = n; to < n + 16; to++) {
            CAPTURE(n, to);
            REQUIRE(hak_realloc(ctx, blocks[0], to) == blocks[0]);
        }
    }
}

TEST_CASE("without max_align small blocks are packed by 8 bytes")
{
    TestSpace s;
    Options options = variant(1);
    TestCtx ctx(s.space, &options);
    CHECK(hak_good_size(ctx, 24) == 24);
    options.max_align = true;
    TestCtx aligned(s.space, &options);
    CHECK(hak_good_size(aligned, 24) == 32);
    CHECK(hak_good_size(aligned, 0) == 16);
    CHECK(hak_good_size(aligned, 520) == 576);
}

namespace
{

// Contexts that look on or set numbers: each takes other ways to a block. 7 of them.
hak_ctx *odd_context(hak_space *space, int which, bool shared, const hak_policy *policy)
{
    static const unsigned DEBUG[] = {0, 0, HAK_DEBUG_CHECK, HAK_DEBUG_CANARY, HAK_DEBUG_GUARD, 0, 0};
    Options options = ctx_options();
    options.shared = shared;
    options.policy = policy;
    options.debug = DEBUG[which];
    if (which == 1) options.packed_bytes = HAK_NONE;
    if (which == 4) options.guard_every = 16;
    if (which == 6) options.first_offset = 16;
    hak_ctx *ctx = hak_ctx_new(space, &options);
    REQUIRE(ctx != nullptr);
    if (which == 5) {
        hak_profile_options exact = HAK_PROFILE_OPTIONS_INIT;
        exact.mode = HAK_PROFILE_EXACT;
        REQUIRE(hak_profile_start(ctx, &exact) == 0);
    }
    return ctx;
}

// A step of a program on one of its blocks; n is the new size.
void *step(hak_ctx *ctx, void *p, size_t old, size_t n, hak_label label, size_t how)
{
    switch (how) {
    case 0:
        hak_free(ctx, p);
        return hak_alloc_cs(ctx, n, label, 0);
    case 1:
        hak_free(ctx, p);
        return hak_calloc_cs(ctx, 1, n, label, 0);
    case 2:
        return p ? hak_realloc_sized(ctx, p, old, n) : hak_alloc_cs(ctx, n, label, 0);
    case 3:
        return hak_aligned_realloc_cs(ctx, p, 8, n, label, 0);
    case 4:
        return hak_realloc_cs(ctx, p, n, label, 0);
    default:
        return p ? hak_realloc(ctx, p, n) : hak_alloc_cs(ctx, n, label, 0);
    }
}

} // namespace

TEST_CASE("a block of a multiple of 16 bytes is 16-aligned, whichever way it came")
{
    const int which = GENERATE(range(0, 7));
    const bool shared = GENERATE(false, true);
    const char *hints = GENERATE("", "room 1 label x\n", "room 40 label x\n", "room 100 label x\n");
    CAPTURE(which, shared, hints);
    TestSpace s;
    Policy policy(hints);
    hak_ctx *ctx = odd_context(s.space, which, shared, policy);
    hak_label label = hak_label_define(ctx, "x");
    Random random((uint64_t)which);
    struct {
        void *p;
        size_t n;
    } blocks[64] = {};
    for (size_t i = 0; i < 400 * EFFORT; i++) {
        auto &b = blocks[random.below(64)];
        // Small sizes, sizes near the old one, and large ones.
        size_t n = i % 3 == 0   ? random.below(600)
                   : i % 3 == 1 ? b.n + random.below(b.n / 8 + 40)
                                : random.below(40000);
        if (n > 60000) n = 100;
        if (i % 2) n = n / 16 * 16 + 16;
        size_t how = random.below(6);
        const void *from = b.p;
        b.p = step(ctx, b.p, b.n, n, label, how);
        // By hand: checks of so many steps would take longer than the steps.
        if (!b.p || addr(b.p) % (n && n % 16 == 0 ? 16 : 8) != 0)
            FAIL("step " << how << " from " << from << ", " << b.n << " bytes, to " << n << ": " << b.p);
        b.n = n;
    }
    require_sound(ctx);
    hak_ctx_destroy(ctx);
}
