// Limits: the hard one to the byte, the soft one's callback, quota trees.
#include "heap.h"

#include <hakmem/profile.h>

#include <algorithm>

using namespace test;

namespace
{

const size_t MIXED[] = {8, 16, 40, 100, 300, 512, 700, 2000, 5000, 9000, 40000, 100000};

struct Pressure {
    int calls = 0;
    size_t committed = 0, limit = 0;
    std::function<void(hak_ctx *)> action;
    static void fn(hak_ctx *ctx, void *user, size_t committed, size_t limit)
    {
        Pressure *self = static_cast<Pressure *>(user);
        self->calls++;
        self->committed = committed;
        self->limit = limit;
        if (self->action) self->action(ctx);
    }
};

// Allocates until most requests are NULL; every step within the limit. Returns the blocks.
std::vector<void *> fill_up(hak_ctx *ctx, Random &random, size_t hard)
{
    std::vector<void *> blocks;
    for (int refused = 0; refused < 30;) {
        void *p = hak_alloc(ctx, MIXED[random.below(sizeof MIXED / sizeof *MIXED)]);
        size_t committed = committed_of(ctx);
        if (committed > hard) FAIL("committed " << committed << " of " << hard);
        if (p) blocks.push_back(p);
        else refused++;
    }
    return blocks;
}

} // namespace

TEST_CASE("hak_limit: arguments and what stats show")
{
    TestSpace s;
    TestCtx ctx(s.space);
    CHECK(stats_of(ctx).hard_limit == 0);
    CHECK(hak_limit(ctx, 3 * MiB, 5 * MiB, nullptr, nullptr) == 0);
    CHECK(stats_of(ctx).soft_limit == 3 * MiB);
    CHECK(stats_of(ctx).hard_limit == 5 * MiB);
    CHECK(hak_limit(ctx, 6 * MiB, 5 * MiB, nullptr, nullptr) == -1);
    CHECK(stats_of(ctx).soft_limit == 3 * MiB);
    CHECK(stats_of(ctx).hard_limit == 5 * MiB);
    CHECK(hak_limit(ctx, 5 * MiB, 5 * MiB, nullptr, nullptr) == 0);
    CHECK(hak_limit(ctx, 6 * MiB, 0, nullptr, nullptr) == 0);
    CHECK(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    CHECK(stats_of(ctx).soft_limit == 0);
    CHECK(hak_alloc(ctx, 20 * MiB) != nullptr);
}

TEST_CASE("the hard limit is never passed, and the context stays usable")
{
    size_t hard = GENERATE(64 * KiB, 100 * KiB, 777777, MiB, 3 * MiB + 1, 20 * MiB);
    size_t packed = GENERATE((size_t)0, HAK_NONE);
    CAPTURE(hard, packed);
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = packed;
    TestCtx ctx(s.space, &options);
    REQUIRE(committed_of(ctx) <= hard);
    REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
    Random random(hard);
    for (int round = 0; round < 4; round++) {
        std::vector<void *> blocks = fill_up(ctx, random, hard);
        CHECK(blocks.size() > 0);
        CHECK(stats_of(ctx).failures > 0);
        CHECK(hak_alloc(ctx, hard) == nullptr);
        CHECK(hak_calloc(ctx, 4, hard) == nullptr);
        CHECK(hak_aligned_alloc(ctx, 64 * KiB, hard) == nullptr);
        CHECK(committed_of(ctx) <= hard);
        // Growing at the limit fails cleanly or succeeds within it.
        for (size_t i = 0; i < blocks.size(); i += 50) {
            if (void *q = hak_realloc(ctx, blocks[i], 120000)) blocks[i] = q;
            REQUIRE(committed_of(ctx) <= hard);
        }
        require_sound(ctx);
        for (size_t i = 0; i < blocks.size(); i++) {
            hak_free(ctx, blocks[round % 2 ? i : blocks.size() - 1 - i]);
            if (i % 100 == 0) REQUIRE(committed_of(ctx) <= hard);
        }
        CHECK(stats_of(ctx).live_bytes == 0);
        void *p = hak_alloc(ctx, 1000);
        REQUIRE(p != nullptr);
        hak_free(ctx, p);
    }
}

TEST_CASE("freeing one block at the limit makes room for one of its size")
{
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_limit(ctx, 0, 2 * MiB, nullptr, nullptr) == 0);
    for (size_t n : {(size_t)24, (size_t)100, (size_t)1000, (size_t)5000, (size_t)20000, (size_t)200000}) {
        CAPTURE(n);
        std::vector<void *> blocks;
        while (void *p = hak_alloc(ctx, n))
            blocks.push_back(p);
        REQUIRE(blocks.size() > 2);
        for (int i = 0; i < 10; i++) {
            size_t victim = (size_t)i % blocks.size();
            hak_free(ctx, blocks[victim]);
            blocks[victim] = hak_alloc(ctx, n);
            REQUIRE(blocks[victim] != nullptr);
        }
        for (void *p : blocks)
            hak_free(ctx, p);
    }
}

TEST_CASE("caches are given up before an allocation fails")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const size_t hard = 16 * MiB;
    REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
    for (size_t n : {(size_t)40, (size_t)640, (size_t)6144, 64 * KiB, 2 * MiB, 5 * MiB}) {
        CAPTURE(n);
        std::vector<void *> blocks;
        while (void *p = hak_alloc(ctx, n))
            blocks.push_back(p);
        // Most of the limit is for blocks: nothing that an earlier size left behind stands in the way.
        CHECK(blocks.size() * n >= (n >= 2 * MiB ? hard / 2 : hard * 9 / 10));
        for (void *p : blocks)
            hak_free(ctx, p);
    }
    CHECK(stats_of(ctx).live_bytes == 0);
}

TEST_CASE("300 blocks of 512 KiB do not pass an 8 MiB limit")
{
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_limit(ctx, 0, 8 * MiB, nullptr, nullptr) == 0);
    int got = 0;
    for (int i = 0; i < 300; i++)
        got += hak_alloc(ctx, 512 * KiB) != nullptr;
    CHECK(got >= 14);
    CHECK(got <= 15);
    CHECK(committed_of(ctx) <= 8 * MiB);
    CHECK(s.os.committed() <= 8 * MiB + 2 * MiB);
}

namespace
{

// Frees what lies in the first half of the heap, first unit apart.
void free_half(hak_ctx *ctx, std::vector<void *> &blocks)
{
    std::sort(blocks.begin(), blocks.end());
    uintptr_t own = reinterpret_cast<uintptr_t>(ctx) >> 14;
    size_t to = 0, half = blocks.size() / 2;
    for (size_t i = 0; i < blocks.size(); i++) {
        if (i < half && reinterpret_cast<uintptr_t>(blocks[i]) >> 14 != own) hak_free(ctx, blocks[i]);
        else blocks[to++] = blocks[i];
    }
    blocks.resize(to);
}

} // namespace

// What is refused again and again is not searched for again and again, see core_costs. A free ends that.
TEST_CASE("packed units that became empty since the last refusal are found, joined or not")
{
    bool joined = GENERATE(false, true);
    CAPTURE(joined);
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = 16 * MiB;
    TestCtx ctx(s.space, &options);
    REQUIRE(hak_limit(ctx, 0, MiB, nullptr, nullptr) == 0);
    for (int round = 0; round < 3; round++) {
        std::vector<void *> blocks;
        for (size_t size = 0, failed = 0; failed < 64; size = (size + 1) % 64) {
            void *p = hak_alloc(ctx, 16 + size * 16);
            if (p) blocks.push_back(p);
            failed = p ? 0 : failed + 1;
        }
        for (int i = 0; i < 10; i++) {
            REQUIRE(hak_alloc(ctx, 1000) == nullptr);
            REQUIRE(hak_alloc(ctx, 100000) == nullptr);
        }
        free_half(ctx, blocks);
        // No block of this size was freed: what is free is joined for it, and no unit goes back.
        void *p = joined ? hak_alloc(ctx, 3000) : nullptr;
        CHECK((p != nullptr) == joined);
        void *q = hak_alloc(ctx, 100000);
        CHECK(q != nullptr);
        require_sound(ctx);
        blocks.push_back(p);
        blocks.push_back(q);
        for (void *block : blocks)
            hak_free(ctx, block);
    }
    CHECK(stats_of(ctx).live_bytes == 0);
}

TEST_CASE("near the limit a class takes no slab for a few blocks")
{
    TestSpace s;
    size_t hard = 512 * KiB;
    // As many of 16 bytes as packed units take of a class; then others, up to where memory is scarce, or not.
    auto growth_by_one = [&](size_t fill) {
        TestCtx ctx(s.space);
        REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
        for (size_t i = 0; i < 48 * KiB / 16; i++)
            REQUIRE(hak_alloc(ctx, 16));
        for (size_t i = 0; committed_of(ctx) < fill; i++)
            REQUIRE(hak_alloc(ctx, 40 + i % 20 * 16));
        size_t before = committed_of(ctx);
        REQUIRE(hak_alloc(ctx, 16));
        require_sound(ctx);
        return committed_of(ctx) - before;
    };
    CHECK(growth_by_one(hard / 2) >= 16 * KiB);
    CHECK(growth_by_one(hard - hard / 5) == 0);
    // Bins and a slab would be an eighth of it.
    hard = 256 * KiB;
    CHECK(growth_by_one(hard / 2) == 0);
    CHECK(growth_by_one(hard - hard / 5) == 0);
}

TEST_CASE("below a limit of 384 KiB a class with many blocks takes neither bins nor slabs")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const size_t hard = 300 * KiB;
    REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
    std::vector<void *> blocks;
    auto fill_up = [&] {
        while (void *p = hak_alloc(ctx, 48))
            blocks.push_back(p);
        CHECK(blocks.size() * 48 > hard / 100 * 93);
        CHECK(stats_of(ctx).metadata_bytes < 14 * KiB);
    };
    fill_up();
    // They come and go.
    for (int round = 0; round < 5; round++) {
        free_half(ctx, blocks);
        fill_up();
    }
    require_sound(ctx);
}

TEST_CASE("below a small limit a class with slabs uses the holes of packed units first")
{
    TestSpace s;
    TestCtx ctx(s.space);
    REQUIRE(hak_limit(ctx, 0, 1 * MiB, nullptr, nullptr) == 0);
    std::vector<void *> holes;
    for (size_t i = 0; i < 500; i++) {
        holes.push_back(hak_alloc(ctx, 300 + i % 25 * 8));
        REQUIRE(holes.back());
    }
    // The class has slabs, which are full at the end.
    size_t before;
    do {
        before = committed_of(ctx);
        REQUIRE(hak_alloc(ctx, 64));
    } while (stats_of(ctx).live_bytes < 400 * KiB || committed_of(ctx) == before);
    for (size_t i = 0; i < 300; i++)
        REQUIRE(hak_alloc(ctx, 64)); // most of one slab
    for (size_t i = 0; i < holes.size(); i++)
        if (i % 4) hak_free(ctx, holes[i]);
    before = committed_of(ctx);
    for (size_t bytes = 0; bytes < 56 * KiB; bytes += 64)
        REQUIRE(hak_alloc(ctx, 64));
    CHECK(committed_of(ctx) - before <= 20 * KiB);
    require_sound(ctx);
}

TEST_CASE("the last pages below a limit are used, of a unit that is not charged as a whole")
{
    bool labelled = GENERATE(false, true), by_quota = GENERATE(false, true);
    size_t hard = GENERATE(128 * KiB, 150 * KiB, 256 * KiB, 300 * KiB + 5, 1 * MiB);
    CAPTURE(labelled, by_quota, hard);
    TestSpace s;
    hak_quota *group = by_quota ? hak_quota_new(nullptr, hard) : nullptr;
    Options options = ctx_options();
    options.quota = group;
    {
        TestCtx ctx(s.space, &options);
        if (!by_quota) REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
        hak_label label = labelled ? hak_label_define(ctx, "a") : 0;
        for (int round = 0; round < 3; round++) {
            std::vector<void *> blocks;
            for (void *p; (p = hak_alloc_cs(ctx, 100 + blocks.size() % 7 * 50, label, 0));)
                blocks.push_back(memset(p, 1, 100 + blocks.size() % 7 * 50));
            CHECK(committed_of(ctx) <= hard);
            // A page, what a unit costs beside itself, and what the tables of a group take.
            CHECK(committed_of(ctx) > hard - 4 * KiB - 2 * KiB);
            if (by_quota) CHECK(hak_quota_used(group) == committed_of(ctx));
            require_sound(ctx);
            for (size_t i = 0; i < blocks.size(); i += 2)
                hak_free(ctx, blocks[i]);
            require_sound(ctx);
            for (size_t i = 0; i < blocks.size(); i += 2)
                blocks[i] = hak_alloc_cs(ctx, 60, label, 0);
            require_sound(ctx);
            for (void *p : blocks)
                hak_free(ctx, p);
            CHECK(stats_of(ctx).live_bytes == 0);
            hak_ctx_trim(ctx);
            CHECK(committed_of(ctx) < 80 * KiB);
            if (by_quota) CHECK(hak_quota_used(group) == committed_of(ctx));
        }
    }
    if (by_quota) CHECK(hak_quota_used(group) == 0);
    hak_quota_delete(group);
}

TEST_CASE("a limit below what is committed only stops growth")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (int i = 0; i < 5000; i++)
        blocks.push_back(hak_alloc(ctx, 1000));
    size_t committed = committed_of(ctx);
    REQUIRE(hak_limit(ctx, 0, MiB, nullptr, nullptr) == 0);
    CHECK(hak_alloc(ctx, 50000) == nullptr);
    CHECK(committed_of(ctx) <= committed);
    for (void *p : blocks)
        REQUIRE(hak_usable_size(ctx, p) >= 1000);
    for (size_t i = 100; i < blocks.size(); i++) {
        hak_free(ctx, blocks[i]);
        REQUIRE(committed_of(ctx) <= committed);
    }
    hak_ctx_trim(ctx);
    CHECK(hak_alloc(ctx, 50000) != nullptr);
    CHECK(committed_of(ctx) <= MiB);
    REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    CHECK(hak_alloc(ctx, 5 * MiB) != nullptr);
}

TEST_CASE("the soft limit calls once per crossing")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Pressure pressure;
    const size_t soft = 2 * MiB;
    REQUIRE(hak_limit(ctx, soft, 0, Pressure::fn, &pressure) == 0);
    for (int round = 1; round <= 3; round++) {
        std::vector<void *> blocks;
        while (committed_of(ctx) < soft / 2)
            blocks.push_back(hak_alloc(ctx, 1000));
        CHECK(pressure.calls == round - 1);
        while (committed_of(ctx) < 2 * soft)
            blocks.push_back(hak_alloc(ctx, 1000));
        CHECK(pressure.calls == round);
        CHECK(pressure.limit == soft);
        CHECK(pressure.committed >= soft);
        CHECK(pressure.committed < 2 * soft);
        for (void *p : blocks)
            hak_free(ctx, p);
        hak_ctx_trim(ctx);
        REQUIRE(committed_of(ctx) < soft / 2);
    }
    // Big blocks cross it too.
    void *p = hak_alloc(ctx, 4 * MiB);
    void *q = hak_alloc(ctx, 100);
    CHECK(pressure.calls == 4);
    hak_free(ctx, p);
    hak_free(ctx, q);
    hak_ctx_trim(ctx);
    // Without a callback nothing is called.
    REQUIRE(hak_limit(ctx, soft, 0, nullptr, nullptr) == 0);
    p = hak_alloc(ctx, 4 * MiB);
    q = hak_alloc(ctx, 100);
    CHECK((p && q));
    CHECK(pressure.calls == 4);
}

TEST_CASE(
    "a soft limit that the context's own data crosses is told, one that a refused block would cross is not")
{
    TestSpace s;
    Pressure pressure;
    Options options = ctx_options();
    options.shared = true;
    TestCtx ctx(s.space, &options);
    hak_free(ctx, hak_alloc(ctx, 100));
    REQUIRE(hak_limit(ctx, committed_of(ctx) + 1, 0, Pressure::fn, &pressure) == 0);
    REQUIRE(hak_profile_start(ctx, nullptr) == 0);
    for (int i = 0; i < 2000; i++)
        REQUIRE(hak_alloc(ctx, 300) != nullptr);
    CHECK(pressure.calls == 1);

    TestCtx local(s.space);
    Pressure none;
    REQUIRE(hak_limit(local, 64 * MiB, 0, Pressure::fn, &none) == 0);
    CHECK(hak_alloc(local, (size_t)1 << 60) == nullptr);
    for (int i = 0; i < 2000; i++)
        REQUIRE(hak_alloc(local, 300) != nullptr);
    CHECK(none.calls == 0);
}

TEST_CASE("a crossing that nobody was told of yet outlives a new hard limit, and no new soft one")
{
    const bool shared = GENERATE(false, true);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    Pressure pressure;
    REQUIRE(hak_limit(ctx, 2 * MiB, 0, Pressure::fn, &pressure) == 0);
    void *p = hak_alloc(ctx, 3 * MiB);
    REQUIRE(hak_limit(ctx, 2 * MiB, 64 * MiB, Pressure::fn, &pressure) == 0);
    CHECK(pressure.calls == 0);
    hak_free(ctx, hak_alloc(ctx, 5000));
    CHECK(pressure.calls == 1);
    hak_free(ctx, p);
    hak_ctx_trim(ctx);
    p = hak_alloc(ctx, 3 * MiB);
    REQUIRE(hak_limit(ctx, 8 * MiB, 64 * MiB, Pressure::fn, &pressure) == 0);
    hak_free(ctx, hak_alloc(ctx, 5000));
    CHECK(pressure.calls == 1);
    hak_free(ctx, p);
}

TEST_CASE("who changes a limit for a while can put the callback back")
{
    const bool shared = GENERATE(false, true);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    Pressure pressure;
    void *user = &user;
    CHECK(hak_limit_callback(ctx, &user) == nullptr);
    CHECK(user == nullptr);
    REQUIRE(hak_limit(ctx, 3 * MiB, 4 * MiB, Pressure::fn, &pressure) == 0);
    CHECK(hak_limit_callback(shared ? hak_ctx_thread(ctx) : ctx, &user) == Pressure::fn);
    CHECK(hak_limit_callback(ctx, nullptr) == Pressure::fn);
    CHECK(user == &pressure);
    hak_pressure_fn *fn = hak_limit_callback(ctx, &user);
    REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    hak_free(ctx, hak_alloc(ctx, 5 * MiB));
    CHECK(pressure.calls == 0);
    hak_ctx_trim(ctx);
    REQUIRE(hak_limit(ctx, 3 * MiB, 4 * MiB, fn, user) == 0);
    void *p = hak_alloc(ctx, 3 * MiB), *q = hak_alloc(ctx, 100);
    CHECK(pressure.calls == 1);
    hak_free(ctx, p);
    hak_free(ctx, q);
}

TEST_CASE("the callback may free and allocate in the context")
{
    TestSpace s;
    TestCtx ctx(s.space);
    Pressure pressure;
    std::vector<void *> garbage;
    int collected = 0;
    pressure.action = [&](hak_ctx *c) {
        for (void *p : garbage)
            hak_free(c, p);
        garbage.clear();
        hak_free(c, hak_alloc(c, 300));
        hak_ctx_trim(c);
        collected++;
    };
    REQUIRE(hak_limit(ctx, 3 * MiB, 4 * MiB, Pressure::fn, &pressure) == 0);
    for (size_t i = 0; i < 30000; i++) {
        void *p = hak_alloc(ctx, 500 + i % 300);
        // The collector always finds room, so that nothing fails.
        REQUIRE(p != nullptr);
        REQUIRE(committed_of(ctx) <= 4 * MiB);
        std::memset(p, 1, 500);
        garbage.push_back(p);
    }
    CHECK(collected >= 4);
    require_sound(ctx);
}

TEST_CASE("a quota counts exactly what its contexts committed")
{
    TestSpace s;
    hak_quota *group = hak_quota_new(nullptr, 0);
    REQUIRE(group != nullptr);
    Options options = ctx_options();
    options.quota = group;
    size_t peak = 0;
    {
        TestCtx a(s.space, &options), b(s.space, &options), outsider(s.space);
        CHECK(hak_quota_used(group) == committed_of(a) + committed_of(b));
        Random random(3);
        std::vector<void *> blocks;
        for (int i = 0; i < 3000; i++) {
            blocks.push_back(hak_alloc(i % 2 ? a : b, MIXED[random.below(12)]));
            REQUIRE(hak_alloc(outsider, 1000) != nullptr);
            size_t used = hak_quota_used(group);
            REQUIRE(used == committed_of(a) + committed_of(b));
            peak = std::max(peak, used);
        }
        CHECK(hak_alloc(a, 3 * MiB) != nullptr);
        CHECK(hak_quota_used(group) == committed_of(a) + committed_of(b));
        peak = std::max(peak, hak_quota_used(group));
        for (int i = 0; i < 3000; i++)
            hak_free(i % 2 ? a : b, blocks[(size_t)i]);
        hak_ctx_trim(a);
        hak_ctx_trim(b);
        CHECK(hak_quota_used(group) == committed_of(a) + committed_of(b));
    }
    CHECK(hak_quota_used(group) == 0);
    CHECK(hak_quota_peak(group) >= peak);
    hak_quota_delete(group);
    hak_quota_delete(nullptr);
}

TEST_CASE("what is refused is in no quota's peak")
{
    TestSpace s;
    hak_quota *host = hak_quota_new(nullptr, 0), *tenant = hak_quota_new(host, 64 * MiB);
    REQUIRE((host && tenant));
    Options options = ctx_options();
    options.quota = tenant;
    {
        TestCtx c(s.space, &options);
        void *p = hak_alloc(c, 2 * MiB);
        REQUIRE(p != nullptr);
        size_t most = hak_quota_used(host);
        auto unmoved = [&] {
            CHECK(hak_quota_used(host) <= most);
            CHECK(hak_quota_peak(tenant) <= most);
            CHECK(hak_quota_peak(host) <= most);
        };
        CHECK(hak_alloc(c, 100 * MiB) == nullptr); // by the limit of the child
        unmoved();
        s.os.refuse_all(true);
        CHECK(hak_alloc(c, 32 * MiB) == nullptr); // by the system
        CHECK(hak_realloc(c, p, 32 * MiB) == nullptr);
        CHECK(hak_alloc(c, 512 * KiB) == nullptr);
        s.os.refuse_all(false);
        unmoved();
        hak_free(c, p);
        CHECK(hak_quota_peak(host) == most);
    }
    hak_quota_delete(tenant);
    hak_quota_delete(host);
}

TEST_CASE("quota trees: every level holds")
{
    TestSpace s;
    hak_quota *host = hak_quota_new(nullptr, 6 * MiB);
    hak_quota *tenant = hak_quota_new(host, 4 * MiB), *other = hak_quota_new(host, 0);
    REQUIRE((host && tenant && other));
    Options in_tenant = ctx_options(), in_other = ctx_options();
    in_tenant.quota = tenant;
    in_other.quota = other;
    {
        TestCtx a(s.space, &in_tenant), b(s.space, &in_tenant), c(s.space, &in_other);
        auto within = [&] {
            REQUIRE(hak_quota_used(tenant) == committed_of(a) + committed_of(b));
            REQUIRE(hak_quota_used(other) == committed_of(c));
            REQUIRE(hak_quota_used(host) == hak_quota_used(tenant) + hak_quota_used(other));
            REQUIRE(hak_quota_used(tenant) <= 4 * MiB);
            REQUIRE(hak_quota_used(host) <= 6 * MiB);
        };
        std::vector<void *> blocks;
        for (void *p; (p = hak_alloc(blocks.size() % 2 ? a : b, 3000)) != nullptr;) {
            blocks.push_back(p);
            within();
        }
        CHECK(blocks.size() * 3000 > 3 * MiB);
        size_t of_c = 0;
        while (hak_alloc(c, 3000)) {
            of_c += 3000;
            within();
        }
        CHECK(of_c > MiB);
        // No slab, no unit fits any more, hence no context.
        for (size_t n : {(size_t)8, (size_t)16, (size_t)24})
            while (hak_alloc(c, n))
                within();
        CHECK(hak_ctx_new(s.space, &in_other) == nullptr);
        // The context's own limit counts beside them.
        for (size_t i = 0; i < blocks.size(); i++)
            hak_free(i % 2 ? a : b, blocks[i]);
        hak_ctx_trim(a);
        hak_ctx_trim(b);
        within();
        REQUIRE(hak_limit(a, 0, MiB, nullptr, nullptr) == 0);
        CHECK(hak_alloc(a, MiB) == nullptr);
        CHECK(hak_alloc(b, MiB) != nullptr);
        within();
    }
    CHECK(hak_quota_used(host) == 0);
    hak_quota_delete(other);
    hak_quota_delete(tenant);
    hak_quota_delete(host);
}

TEST_CASE("hak_quota_set: the limit of a quota may rise and fall")
{
    TestSpace s;
    hak_quota *group = hak_quota_new(nullptr, MiB);
    Options options = ctx_options();
    options.quota = group;
    {
        TestCtx ctx(s.space, &options);
        CHECK(hak_alloc(ctx, 2 * MiB) == nullptr);
        hak_quota_set(group, 8 * MiB);
        void *p = hak_alloc(ctx, 2 * MiB);
        CHECK(p != nullptr);
        hak_quota_set(group, MiB);
        size_t used = hak_quota_used(group);
        CHECK(used > 2 * MiB);
        CHECK(hak_alloc(ctx, 100000) == nullptr);
        CHECK(hak_quota_used(group) <= used);
        hak_free(ctx, p);
        CHECK(hak_alloc(ctx, 100000) != nullptr);
        CHECK(hak_quota_used(group) <= MiB);
        hak_quota_set(group, 0);
        CHECK(hak_alloc(ctx, 9 * MiB) != nullptr);
    }
    CHECK(hak_quota_used(group) == 0);
    // A quota too small for a context refuses it.
    hak_quota_set(group, 100);
    CHECK(hak_ctx_new(s.space, &options) == nullptr);
    CHECK(hak_quota_used(group) == 0);
    hak_quota_delete(group);
}
