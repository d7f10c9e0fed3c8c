// Every page request may fail: each scenario runs with the n-th one refused, for n = 1, 2, ... until
// none is left to refuse. Afterwards the heap is sound, everything can be freed, and nothing leaked.
#include "heap.h"
#include "system.h"

#include <cerrno>
#include <map>
#include <sys/mman.h>

using namespace test;

// The linker puts it before libc's.
extern "C" {
void *__real_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
}

namespace
{

int refused = -1; // mappings; -1 = none is refused

struct Run {
    FakeOs os;
    hak_space *space = nullptr;
    hak_ctx *ctx = nullptr;
    bool complete = true; // no call failed

    void require(bool ok)
    {
        complete = complete && ok;
    }
};

struct Block {
    void *p;
    size_t n;
    unsigned id;
};

using Scenario = std::function<void(Run &)>;

// `exact`: how every n-th failure must end: with the heap as the scenario's calls say.
void fail_everywhere(const Scenario &scenario, const std::function<void(SpaceOptions &)> &change = {},
                     Options ctx_opts = ctx_options())
{
    uint64_t n = 1;
    for (;; n++) {
        CAPTURE(n);
        Run run;
        run.os.fail_nth(n);
        SpaceOptions options = space_options(run.os, 16 * MiB);
        if (change) change(options);
        run.space = hak_space_new(&options);
        // A refused extent is asked for again at half its size, so that the creation may still succeed.
        if (run.space) {
            run.ctx = hak_ctx_new(run.space, &ctx_opts);
            if (run.ctx) {
                scenario(run);
                run.os.fail_nth(0);
                require_sound(run.ctx);
                // The context is usable after whatever failed.
                void *p = hak_alloc(run.ctx, 3000);
                REQUIRE(p != nullptr);
                fill(p, 3000, 1);
                hak_free(run.ctx, p);
                p = hak_alloc(run.ctx, 2 * MiB);
                REQUIRE(p != nullptr);
                hak_free(run.ctx, p);
                hak_ctx_destroy(run.ctx);
            }
        }
        uint64_t failed = run.os.failed;
        hak_space_delete(run.space);
        REQUIRE(run.os.close() == "");
        REQUIRE(run.os.committed() == 0);
        if (failed == 0) {
            REQUIRE(run.ctx != nullptr);
            REQUIRE(run.complete);
            break;
        }
        REQUIRE(n < 5000);
    }
    // The scenario did ask for pages: otherwise it tested nothing.
    REQUIRE(n > 1);
}

Options unpacked()
{
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    return options;
}

void mixed(Run &run)
{
    const size_t sizes[] = {10,   16,   40,   100,   200,   512,    600,    1500,
                            3000, 8000, 9000, 20000, 66000, 300000, 1500000};
    std::vector<Block> blocks;
    unsigned id = 0;
    for (int round = 0; round < 12; round++) {
        for (size_t n : sizes) {
            size_t before = stats_of(run.ctx).live_blocks;
            void *p = round % 3 ? hak_alloc(run.ctx, n) : hak_calloc(run.ctx, 1, n);
            run.require(p != nullptr);
            if (!p) {
                REQUIRE(stats_of(run.ctx).live_blocks == before);
                REQUIRE(stats_of(run.ctx).failures > 0);
                continue;
            }
            fill(p, n, ++id);
            blocks.push_back({p, n, id});
        }
        for (size_t i = (size_t)round % 2; i < blocks.size(); i += 3) {
            hak_free(run.ctx, blocks[i].p);
            blocks[i] = blocks.back();
            blocks.pop_back();
        }
        if (round == 7) hak_ctx_trim(run.ctx);
    }
    for (const Block &b : blocks)
        if (!filled(b.p, b.n, b.id)) FAIL("contents of a block of " << b.n);
    require_sound(run.ctx);
    for (const Block &b : blocks)
        hak_free(run.ctx, b.p);
    REQUIRE(stats_of(run.ctx).live_blocks == 0);
}

} // namespace

void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
    if (refused < 0) return __real_mmap(p, n, prot, flags, fd, at);
    refused++;
    errno = ENOMEM;
    return MAP_FAILED;
}

TEST_CASE("a process that may have no more addresses is told so at once")
{
    hak_os os;
    hak_os_default(&os);
    for (uintptr_t below : {(uintptr_t)0, (uintptr_t)1 << 33, (uintptr_t)1 << 47}) {
        refused = 0;
        void *p = os.reserve(os.user, 2 * MiB, 2 * MiB, below);
        const int calls = refused;
        refused = -1;
        CHECK(p == nullptr);
        // Windows limits no addresses: each free place below the bound is tried.
        if (!system_is("windows")) CHECK(calls <= 2);
    }
}

TEST_CASE("space and context creation")
{
    fail_everywhere([](Run &run) {
        for (int i = 0; i < 300; i++) {
            hak_ctx *ctx = hak_ctx_new(run.space, nullptr);
            run.require(ctx != nullptr);
            if (ctx) run.require(hak_alloc(ctx, 100) != nullptr);
            if (i % 2) hak_ctx_destroy(ctx);
        }
    });
}

TEST_CASE("mixed allocation in a context as it comes")
{
    fail_everywhere(mixed);
}

TEST_CASE("mixed allocation without packing")
{
    fail_everywhere(mixed, {}, unpacked());
}

TEST_CASE("mixed allocation with checks and poison")
{
    Options options = ctx_options();
    options.debug = HAK_DEBUG_CHECK | HAK_DEBUG_POISON;
    fail_everywhere(mixed, {}, options);
}

TEST_CASE("mixed allocation in small extents without caches")
{
    Options options = ctx_options();
    options.big_cache = HAK_NONE;
    fail_everywhere(
        mixed,
        [](SpaceOptions &o) {
            o.reserve = 4 * MiB;
            o.retained_bytes = o.retained_percent = HAK_NONE;
        },
        options);
}

TEST_CASE("labels, early and late")
{
    bool packed = GENERATE(true, false);
    fail_everywhere(
        [](Run &run) {
            std::vector<Block> blocks;
            std::map<hak_label, size_t> count;
            for (unsigned i = 0; i < 120; i++) {
                // A label every third round, when blocks exist already.
                hak_label label = 0;
                if (i % 3 == 0) {
                    label = hak_label_define(run.ctx, ("label" + std::to_string(i)).c_str());
                    run.require(label != 0);
                }
                for (size_t n : {(size_t)24, (size_t)100, (size_t)600, (size_t)5000, (size_t)30000}) {
                    void *p = hak_alloc_cs(run.ctx, n, label, 0);
                    run.require(p != nullptr);
                    if (!p) continue;
                    REQUIRE(hak_label_of(run.ctx, p) == label);
                    fill(p, n, i);
                    blocks.push_back({p, n, i});
                    count[label]++;
                }
            }
            for (auto &entry : count) {
                hak_label_info info;
                REQUIRE(hak_label_stats(run.ctx, entry.first, &info) == 0);
                REQUIRE(info.live_blocks == entry.second);
            }
            for (const Block &b : blocks)
                REQUIRE(filled(b.p, b.n, b.id));
        },
        {}, packed ? ctx_options() : unpacked());
}

TEST_CASE("growth by realloc")
{
    fail_everywhere([](Run &run) {
        hak_label label = hak_label_define(run.ctx, "growing");
        for (size_t step : {(size_t)8, (size_t)1000, (size_t)70000}) {
            void *p = hak_alloc_cs(run.ctx, 8, label, 3);
            run.require(p != nullptr);
            if (!p) continue;
            size_t have = 8;
            hak_label own = hak_label_of(run.ctx, p);
            fill(p, have, 5);
            for (size_t n = 16; n < 40 * step; n += n / 2 + step) {
                void *q = n % 2 ? hak_realloc(run.ctx, p, n) : hak_realloc_sized(run.ctx, p, have, n);
                run.require(q != nullptr);
                if (q) {
                    REQUIRE(filled(q, have, 5));
                    p = q;
                    have = n;
                    fill(p, have, 5);
                }
                // A failure leaves p as it was.
                REQUIRE(hak_label_of(run.ctx, p) == own);
                REQUIRE(filled(p, have, 5));
                REQUIRE(hak_usable_size(run.ctx, p) >= have);
            }
            // And a shrink never fails.
            while (have > 10) {
                void *q = hak_realloc_sized(run.ctx, p, have, have / 2);
                REQUIRE(q != nullptr);
                p = q;
                have /= 2;
                REQUIRE(filled(p, have, 5));
            }
            hak_free_sized(run.ctx, p, have);
        }
        REQUIRE(stats_of(run.ctx).live_blocks == 0);
    });
}

TEST_CASE("big blocks: allocation, growth, alignment, cache")
{
    fail_everywhere([](Run &run) {
        std::vector<Block> blocks;
        for (unsigned i = 0; i < 6; i++) {
            size_t n = (2 + i) * MiB;
            void *p =
                i % 3 == 2 ? hak_aligned_alloc_cs(run.ctx, MiB, n, 0, i) : hak_alloc_cs(run.ctx, n, 0, i);
            run.require(p != nullptr);
            if (!p) continue;
            fill(p, 10000, i);
            void *q = hak_realloc(run.ctx, p, 3 * n);
            run.require(q != nullptr);
            p = q ? q : p;
            REQUIRE(filled(p, 10000, i));
            std::memset(static_cast<char *>(p) + n - 100, 1, 100);
            if (i % 2) hak_free(run.ctx, p);
            else blocks.push_back({p, n, i});
        }
        for (const Block &b : blocks) {
            REQUIRE(filled(b.p, 10000, b.id));
            hak_free(run.ctx, b.p);
        }
        REQUIRE(stats_of(run.ctx).big_blocks == 0);
    });
}

TEST_CASE("aligned blocks of all sizes")
{
    fail_everywhere([](Run &run) {
        std::vector<void *> blocks;
        for (size_t align = 8; align <= 2 * MiB; align *= 4)
            for (size_t n : {(size_t)10, (size_t)700, (size_t)40000}) {
                void *p = hak_aligned_alloc(run.ctx, align, n);
                run.require(p != nullptr);
                if (!p) continue;
                REQUIRE(addr(p) % align == 0);
                std::memset(p, 1, n);
                blocks.push_back(p);
            }
        for (void *p : blocks)
            hak_free(run.ctx, p);
        REQUIRE(stats_of(run.ctx).live_blocks == 0);
    });
}

TEST_CASE("aligned blocks of zeros that grow and shrink")
{
    Options options = GENERATE(0, 1) ? unpacked() : ctx_options();
    fail_everywhere(
        [](Run &run) {
            std::vector<Block> blocks;
            unsigned id = 0;
            for (size_t align = 8; align <= 64 * KiB; align *= 8)
                for (size_t n : {(size_t)10, (size_t)700, (size_t)40000, 3 * MiB / 2}) {
                    void *p = hak_aligned_calloc(run.ctx, align, 1, n);
                    run.require(p != nullptr);
                    if (!p) continue;
                    REQUIRE((addr(p) % align == 0 && all_bytes(p, n, 0)));
                    fill(p, n, ++id);
                    blocks.push_back({p, n, id});
                }
            for (size_t to : {(size_t)3000, (size_t)300, (size_t)90000, (size_t)20})
                for (Block &b : blocks) {
                    size_t align = to < 1000 ? 128 : 8192, usable = hak_usable_size(run.ctx, b.p);
                    bool shrinks = to <= usable && addr(b.p) % align == 0;
                    void *p = hak_aligned_realloc(run.ctx, b.p, align, to);
                    run.require(p != nullptr);
                    REQUIRE((p || !shrinks));
                    if (p) {
                        REQUIRE(addr(p) % align == 0);
                        b = {p, to, b.id};
                        fill(p, to, b.id);
                    }
                    REQUIRE(filled(b.p, b.n, b.id));
                }
            for (const Block &b : blocks)
                hak_free(run.ctx, b.p);
            REQUIRE(stats_of(run.ctx).live_blocks == 0);
        },
        {}, options);
}

TEST_CASE("everything refused for a while")
{
    TestSpace s;
    TestCtx ctx(s.space);
    std::vector<void *> blocks;
    for (int round = 0; round < 5; round++) {
        s.os.refuse_all(true);
        for (size_t n : {(size_t)20000, (size_t)600, (size_t)30})
            while (void *p = hak_alloc(ctx, n)) {
                std::memset(p, 1, n);
                blocks.push_back(p);
                REQUIRE(blocks.size() < 1000000);
            }
        CHECK(hak_alloc(ctx, 20 * MiB) == nullptr);
        CHECK(hak_ctx_new(s.space, nullptr) == nullptr);
        require_sound(ctx);
        // Freeing and trimming need no pages.
        for (size_t i = blocks.size() / 2; i < blocks.size(); i++)
            hak_free(ctx, blocks[i]);
        blocks.resize(blocks.size() / 2);
        hak_ctx_trim(ctx);
        require_sound(ctx);
        s.os.refuse_all(false);
        blocks.push_back(hak_alloc(ctx, 3 * MiB));
        REQUIRE(blocks.back() != nullptr);
    }
}

TEST_CASE("pages that are refused are no reason to reserve more")
{
    TestSpace s;
    const size_t reserved = s.os.reserved();
    for (int i = 0; i < 20; i++) {
        TestCtx ctx(s.space);
        void *p = hak_alloc(ctx, 100);
        s.os.refuse_all(true);
        CHECK(hak_alloc(ctx, 300 * KiB) == nullptr);
        s.os.refuse_all(false);
        s.os.fail_nth(1);
        hak_free(ctx, hak_alloc(ctx, 300 * KiB));
        s.os.fail_nth(0);
        hak_free(ctx, p);
        require_sound(ctx);
    }
    CHECK(s.os.reserved() == reserved);
}

TEST_CASE("quotas survive failures: what was refused is not counted")
{
    hak_quota *group = hak_quota_new(nullptr, 64 * MiB);
    Options options = ctx_options();
    options.quota = group;
    fail_everywhere(
        [group](Run &run) {
            mixed(run);
            REQUIRE(hak_quota_used(group) == committed_of(run.ctx));
        },
        {}, options);
    CHECK(hak_quota_used(group) == 0);
    hak_quota_delete(group);
}
