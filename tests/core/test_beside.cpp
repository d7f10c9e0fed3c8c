// Metadata lie away from blocks: who writes up to 64 bytes before or behind a block reaches other blocks, or
// bytes that mean nothing. All pages come from one arena without gaps, so that what can lie side by side
// does.
#include "shared.h"

#include <hakmem/learn.h>
#include <hakmem/policy.h>
#include <hakmem/profile.h>

#include <map>
#include <set>

using namespace test;

namespace
{

constexpr size_t BESIDE = 64;

// Reservations one behind the other, everything in it usable; nothing comes back.
struct Arena {
    static constexpr size_t BYTES = 2 * GiB;
    char *start = static_cast<char *>(
        mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    char *at = start + PAGE;
    hak_os os;

    Arena()
    {
        REQUIRE(start != MAP_FAILED);
        hak_os_default(&os);
        os.user = this;
        os.reserve = [](void *user, size_t n, size_t align, uintptr_t) -> void * {
            Arena *a = static_cast<Arena *>(user);
            uintptr_t p = (addr(a->at) + align - 1) & ~(uintptr_t)(align - 1);
            if (p + n > addr(a->start) + BYTES - PAGE) return nullptr;
            a->at = reinterpret_cast<char *>(p + n);
            return reinterpret_cast<void *>(p);
        };
        os.decommit = [](void *, void *p, size_t n) { madvise(p, n, MADV_DONTNEED); };
        os.release = [](void *, void *p, size_t n) { madvise(p, n, MADV_DONTNEED); };
        os.commit = nullptr; // what it reserves may be used
        os.remap = nullptr;
        os.huge = nullptr;
        os.populate = nullptr;
    }
    ~Arena()
    {
        munmap(start, BYTES);
    }
    bool has(const char *p, size_t n) const
    {
        return p >= start && p + n <= start + BYTES;
    }
};

// Everything that a context tells of itself.
struct Told {
    hak_stats stats;
    std::vector<hak_label_info> labels;
    explicit Told(const hak_ctx *ctx) : stats(stats_of(ctx)), labels(HAK_LABELS_MAX + 1)
    {
        labels.resize((size_t)hak_labels_stats(ctx, labels.data(), labels.size()));
    }
    void require_same(const Told &other) const
    {
        REQUIRE(std::memcmp(&stats, &other.stats, sizeof stats) == 0);
        REQUIRE(labels.size() == other.labels.size());
        for (size_t i = 0; i < labels.size(); i++) {
            REQUIRE(std::string(labels[i].name) == other.labels[i].name);
            REQUIRE(labels[i].live_bytes == other.labels[i].live_bytes);
            REQUIRE(labels[i].live_blocks == other.labels[i].live_blocks);
        }
    }
};

struct Mine {
    char *p;
    size_t n;
    hak_label label;
};

struct Tenant {
    hak_ctx *ctx;
    Errors errors;
    std::vector<Mine> blocks;

    void add(void *p, hak_label label)
    {
        REQUIRE(p);
        size_t n = hak_usable_size(ctx, p);
        REQUIRE(n > 0);
        INFO(p << " " << n);
        REQUIRE(hak_label_of(ctx, p) == label);
        blocks.push_back({static_cast<char *>(p), n, label});
    }
    // A few blocks of each class, run and kind.
    void grow(unsigned round)
    {
        for (size_t n = 0; n <= 32 * KiB; n = n < 1024 ? n + 8 : n + n / 8) {
            hak_label label = (hak_label)(n / 8 % 4);
            size_t want = n + (round & 1 && n < 1024 ? 1 : 0);
            for (int i = 0; i < (n < 256 ? 12 : 2); i++)
                add(hak_alloc_cs(ctx, want, label, 0), label);
        }
        for (size_t n : {40 * KiB, 100 * KiB, 250 * KiB, 900 * KiB, MiB + 1, 2 * MiB})
            add(hak_alloc_cs(ctx, n, 1, 0), 1);
        for (size_t align = 32; align <= 64 * KiB; align *= 2)
            add(hak_aligned_alloc_cs(ctx, align, align + 24, 2, 0), 2);
    }
};

void write_beside(const Arena &arena, const Mine &b, unsigned char value)
{
    if (arena.has(b.p - BESIDE, BESIDE)) std::memset(b.p - BESIDE, value, BESIDE);
    if (arena.has(b.p + b.n, BESIDE)) std::memset(b.p + b.n, value, BESIDE);
}

// Three tenants of one space that grow in turns, beside whatever else takes pages.
struct House {
    Arena arena;
    std::vector<char> buffer;
    hak_space *space;
    std::vector<Tenant> tenants{3};
    hak_quota *quota;
    hak_policy *policy;

    explicit House(const std::function<void(Options &, size_t)> &change, bool buffered = false)
    {
        SpaceOptions o(HAK_SPACE_OPTIONS_INIT);
        o.os = &arena.os;
        o.reserve = 8 * MiB;
        o.max_address = (uintptr_t)1 << 62;
        if (buffered) {
            o.buffer = arena.os.reserve(&arena, 24 * MiB, PAGE, 0);
            o.buffer_size = 24 * MiB;
        }
        space = hak_space_new(&o);
        REQUIRE(space);
        quota = hak_quota_new_os(&arena.os, nullptr, GiB);
        hak_policy_options p = HAK_POLICY_OPTIONS_INIT;
        policy = hak_policy_new(&arena.os, &p);
        REQUIRE(quota);
        REQUIRE(policy);
        for (size_t i = 0; i < tenants.size(); i++) {
            Options options = ctx_options(&tenants[i].errors);
            options.labels = LABELS;
            options.label_count = 3;
            options.quota = quota;
            if (change) change(options, i);
            tenants[i].ctx = hak_ctx_new(space, &options);
            REQUIRE(tenants[i].ctx);
        }
        for (unsigned round = 0; round < 3; round++)
            for (Tenant &t : tenants)
                t.grow(round);
    }
    ~House()
    {
        for (Tenant &t : tenants)
            hak_ctx_destroy(t.ctx);
        hak_space_delete(space);
        hak_quota_delete(quota);
        hak_policy_unref(policy);
    }
    void write_beside_all(unsigned char value)
    {
        for (Tenant &t : tenants)
            for (const Mine &b : t.blocks)
                write_beside(arena, b, value);
    }
    // No block of a tenant lies in another one's, none in memory that its context does not own.
    void require_apart()
    {
        std::map<uintptr_t, size_t> all;
        for (Tenant &t : tenants)
            for (const Mine &b : t.blocks) {
                REQUIRE(hak_ctx_of(space, b.p) == hak_ctx_of(space, b.p + b.n - 1));
                REQUIRE(hak_owns(t.ctx, b.p));
                auto next = all.lower_bound(addr(b.p));
                if (next != all.end()) REQUIRE(addr(b.p) + b.n <= next->first);
                if (next != all.begin()) {
                    --next;
                    REQUIRE(next->first + next->second <= addr(b.p));
                }
                all[addr(b.p)] = b.n;
            }
    }
};

void overflow_all(House &house)
{
    std::vector<Told> before;
    for (Tenant &t : house.tenants)
        before.emplace_back(t.ctx);
    size_t used = hak_quota_used(house.quota);
    for (int value : {0xff, 0x00, 0x5a}) {
        house.write_beside_all((unsigned char)value);
        for (size_t i = 0; i < house.tenants.size(); i++) {
            Tenant &t = house.tenants[i];
            require_sound(t.ctx);
            before[i].require_same(Told(t.ctx));
            for (const Mine &b : t.blocks) {
                REQUIRE(hak_usable_size(t.ctx, b.p) == b.n);
                REQUIRE(hak_label_of(t.ctx, b.p) == b.label);
            }
        }
        REQUIRE(hak_quota_used(house.quota) == used);
    }
    for (Tenant &t : house.tenants) {
        for (const Mine &b : t.blocks)
            hak_free(t.ctx, b.p);
        t.blocks.clear();
        REQUIRE(t.errors.take() == "");
        hak_ctx_trim(t.ctx);
        require_sound(t.ctx);
        REQUIRE(stats_of(t.ctx).live_blocks == 0);
    }
    for (Tenant &t : house.tenants) {
        t.grow(1);
        require_sound(t.ctx);
        REQUIRE(t.errors.take() == "");
    }
    house.require_apart();
}

} // namespace

TEST_CASE("overflows by 64 bytes of blocks of all kinds change no metadata")
{
    SECTION("packed and slabs")
    {
        House house({});
        overflow_all(house);
    }
    SECTION("no packed blocks")
    {
        House house([](Options &o, size_t) { o.packed_bytes = HAK_NONE; });
        overflow_all(house);
    }
    SECTION("a buffer of the caller, with extents behind it")
    {
        House house({}, true);
        overflow_all(house);
    }
    SECTION("checked")
    {
        House house([](Options &o, size_t i) { o.debug = i == 1 ? 0 : HAK_DEBUG_CHECK; });
        overflow_all(house);
    }
    SECTION("shared contexts")
    {
        House house([](Options &o, size_t i) { o.shared = i != 1; });
        overflow_all(house);
    }
    SECTION("max_align, and blocks that begin later in their slabs")
    {
        House house([](Options &o, size_t i) {
            o.max_align = i == 0;
            if (i == 1) o.first_offset = 48;
        });
        overflow_all(house);
    }
    SECTION("while they are profiled")
    {
        House house([](Options &, size_t) {});
        for (Tenant &t : house.tenants) {
            hak_profile_options p = HAK_PROFILE_OPTIONS_INIT;
            p.mean = 4 * KiB;
            REQUIRE(hak_profile_start(t.ctx, &p) == 0);
            t.grow(0);
        }
        overflow_all(house);
    }
}

TEST_CASE("overflows into free blocks hand out no memory of others")
{
    House house([](Options &o, size_t i) { o.shared = i == 2; });
    Random random(7);
    size_t noticed = 0;
    for (unsigned round = 0; round < 40; round++) {
        for (Tenant &t : house.tenants)
            for (size_t i = t.blocks.size(); i-- > 0;)
                if (random.below(2)) {
                    hak_free(t.ctx, t.blocks[i].p);
                    t.blocks[i] = t.blocks.back();
                    t.blocks.pop_back();
                }
        house.write_beside_all((unsigned char)random.next());
        for (Tenant &t : house.tenants) {
            for (int i = 0; i < 400; i++) {
                hak_label label = (hak_label)random.below(4);
                t.add(hak_alloc_cs(t.ctx, random.below(random.below(8) ? 600 : 9000), label, 0), label);
            }
            require_sound(t.ctx);
            noticed += t.errors.count(HAK_E_USE_AFTER_FREE);
            REQUIRE(t.errors.count(HAK_E_USE_AFTER_FREE) == t.errors.list.size());
            t.errors.list.clear();
        }
        house.require_apart();
    }
    REQUIRE(noticed > 0);
}

TEST_CASE("a forged link in a free packed block leads nowhere")
{
    TestSpace space;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(space.space, &options), other(space.space);
    std::vector<char *> mine;
    for (int i = 0; i < 64; i++)
        mine.push_back(static_cast<char *>(hak_alloc(ctx, 48)));
    char *victim = static_cast<char *>(hak_alloc(other, 48));
    std::memset(victim, 7, 48);

    // A link counts 8 bytes from the context, whose unit of 16 KiB begins where its first block does.
    char *own = reinterpret_cast<char *>(addr(mine[0]) & ~(uintptr_t)(16 * KiB - 1));
    auto forge = [&](char *at, char *target) {
        int32_t code = (int32_t)((target - own) / 8);
        std::memcpy(at, &code, sizeof code);
    };
    char *targets[] = {victim,        reinterpret_cast<char *>(addr(victim) & ~(uintptr_t)(16 * KiB - 1)),
                       own + 8,       own + 64,
                       mine[1],       mine[1] + 8,
                       own + 8 * GiB, own - 8 * GiB};
    for (char *target : targets) {
        hak_free(ctx, mine[10]);
        hak_free(ctx, mine[20]); // freed last, so handed out first: its link is followed
        forge(mine[20], target);
        std::set<void *> got{hak_alloc(ctx, 48), hak_alloc(ctx, 48)};
        CHECK(errors.take() == "HAK_E_USE_AFTER_FREE");
        CHECK(got.size() == 2);
        for (void *p : got) {
            REQUIRE(hak_owns(ctx, p));
            CHECK(hak_usable_size(ctx, p) >= 48);
            for (int i = 0; i < 64; i++)
                if (i != 10 && i != 20) CHECK(p != mine[(size_t)i]);
        }
        auto p = got.begin();
        mine[10] = static_cast<char *>(*p);
        mine[20] = static_cast<char *>(*++p);
        require_sound(ctx);
    }
    CHECK(all_bytes(victim, 48, 7));
    require_sound(other);
}
