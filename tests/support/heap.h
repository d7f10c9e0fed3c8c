// What the Catch2 tests share: a space over a fake OS that checks itself at the end, a recorder of misuse
// reports, and the invariants of the header that hold at any moment.
#pragma once

#include "fake_os.h"

#include "catch.h"
#include "slow_build.h"

#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace test
{

// How much of the long loops to run: all in a release build, part of it under sanitizers, emulators and in debug.
#if defined(TEST_SLOW_BUILD) || defined(TEST_EMULATED) || !defined(NDEBUG)
constexpr size_t EFFORT = 1;
#else
constexpr size_t EFFORT = 8;
#endif

// Options with numbers of their own beside them, which their `tuning` points to.
template <class Base>
struct Tuned : Base, hak_tuning {
    using Base::size;

    explicit Tuned(const Base &base) : Base(base), hak_tuning(HAK_TUNING_INIT)
    {
        this->tuning = this;
    }
    Tuned(const Tuned &other) : Base(other), hak_tuning(other)
    {
        this->tuning = this;
    }
    Tuned &operator=(const Tuned &other)
    {
        Base::operator=(other);
        hak_tuning::operator=(other);
        this->tuning = this;
        return *this;
    }
};
using Options = Tuned<hak_options>;
using SpaceOptions = Tuned<hak_space_options>;

inline SpaceOptions space_options(FakeOs &os, size_t reserve = 256 * MiB)
{
    SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
    options.os = os.table();
    options.reserve = reserve;
    return options;
}

// A space over a fake OS; at its end the fake OS must have got everything back.
struct TestSpace {
    FakeOs os;
    hak_space *space = nullptr;

    explicit TestSpace(const std::function<void(SpaceOptions &)> &change = {})
    {
        SpaceOptions options = space_options(os);
        if (change) change(options);
        space = hak_space_new(&options);
        REQUIRE(space != nullptr);
    }
    ~TestSpace()
    {
        hak_space_delete(space);
        CHECK(os.close() == "");
        CHECK(os.reserved() == 0);
        CHECK(os.committed() == 0);
    }
};

// Collects what on_error and hak_ctx_check report.
struct Errors {
    struct Entry {
        hak_error error;
        const void *p;
        std::string what;
    };
    std::vector<Entry> list;

    static void record(void *user, hak_error error, const void *p, const char *what)
    {
        static_cast<Errors *>(user)->list.push_back({error, p, what ? what : ""});
    }
    size_t count(hak_error error) const
    {
        size_t n = 0;
        for (const Entry &entry : list)
            n += entry.error == error;
        return n;
    }
    // The names of all errors so far, which are forgotten; "" = none.
    std::string take()
    {
        std::string names;
        for (const Entry &entry : list)
            names += (names.empty() ? "" : " ") + std::string(hak_error_name(entry.error));
        list.clear();
        return names;
    }
};

inline Options ctx_options(Errors *errors = nullptr)
{
    Options options(HAK_OPTIONS_INIT);
    if (errors) {
        options.on_error = Errors::record;
        options.error_user = errors;
    }
    return options;
}

// Options of a context as it comes (0), one that packs nothing (1), one that checks everything (2), one that
// packs far more (3), one that poisons (4).
inline Options variant(int which)
{
    Options options = ctx_options();
    if (which == 1) options.packed_bytes = HAK_NONE;
    else if (which == 2) options.debug = HAK_DEBUG_CHECK;
    else if (which == 3) options.packed_bytes = 512 * KiB;
    else if (which == 4) options.debug = HAK_DEBUG_POISON;
    return options;
}

inline hak_stats stats_of(const hak_ctx *ctx)
{
    hak_stats stats;
    std::memset(&stats, 0xEE, sizeof stats);
    stats.size = sizeof stats;
    if (hak_ctx_stats(ctx, &stats) != 0) FAIL("hak_ctx_stats failed");
    return stats;
}

inline size_t committed_of(const hak_ctx *ctx)
{
    return stats_of(ctx).committed_bytes;
}

struct Totals {
    size_t bytes = 0, blocks = 0;
    bool operator==(const Totals &other) const
    {
        return bytes == other.bytes && blocks == other.blocks;
    }
};

inline Totals visit_totals(const hak_ctx *ctx)
{
    Totals totals;
    int rc = hak_ctx_visit(
        ctx,
        [](void *user, const hak_block *block) {
            Totals *sum = static_cast<Totals *>(user);
            sum->bytes += block->size;
            sum->blocks++;
            return true;
        },
        &totals);
    REQUIRE(rc == 0);
    return totals;
}

inline Totals label_totals(const hak_ctx *ctx)
{
    std::vector<hak_label_info> infos(HAK_LABELS_MAX + 1);
    int n = hak_labels_stats(ctx, infos.data(), infos.size());
    REQUIRE(n >= 1);
    REQUIRE(n <= HAK_LABELS_MAX + 1);
    Totals totals;
    for (int i = 0; i < n; i++) {
        totals.bytes += infos[(size_t)i].live_bytes;
        totals.blocks += infos[(size_t)i].live_blocks;
    }
    return totals;
}

// Everything that the header promises of a context at any moment.
inline void require_sound(const hak_ctx *ctx)
{
    Errors errors;
    bool sound = hak_ctx_check(ctx, Errors::record, &errors);
    for (const Errors::Entry &entry : errors.list)
        UNSCOPED_INFO(hak_error_name(entry.error) << " " << entry.p << " " << entry.what);
    REQUIRE(sound);
    REQUIRE(errors.list.empty());
    hak_stats s = stats_of(ctx);
    REQUIRE(s.committed_bytes == s.live_bytes + s.cached_bytes + s.metadata_bytes);
    REQUIRE(s.released_bytes <= s.cached_bytes);
    REQUIRE(s.big_bytes <= s.live_bytes);
    REQUIRE(s.committed_bytes <= s.reserved_bytes);
    Totals visited = visit_totals(ctx), labelled = label_totals(ctx);
    REQUIRE(visited.bytes == s.live_bytes);
    REQUIRE(visited.blocks == s.live_blocks);
    REQUIRE(labelled.bytes == s.live_bytes);
    REQUIRE(labelled.blocks == s.live_blocks);
}

// A context in a space, destroyed at the end of the test.
struct TestCtx {
    hak_ctx *ctx;

    explicit TestCtx(hak_space *space, const hak_options *options = nullptr)
        : ctx(hak_ctx_new(space, options))
    {
        REQUIRE(ctx != nullptr);
    }
    TestCtx(const TestCtx &) = delete;
    TestCtx &operator=(const TestCtx &) = delete;
    ~TestCtx()
    {
        hak_ctx_destroy(ctx);
    }
    operator hak_ctx *() const
    {
        return ctx;
    }
};

// Small, repeatable pseudo-random numbers (splitmix64).
struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed)
    {
    }
    uint64_t next()
    {
        uint64_t z = (state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    size_t below(size_t n)
    {
        return (size_t)(next() % n);
    }
};

// Contents that tell one block from another and one place in it from the next: every byte of the first page,
// of large blocks a sample behind it.
inline unsigned char content(size_t i, unsigned id)
{
    return (unsigned char)(id * 31 + i * 7 + (i >> 8));
}

inline size_t next_sample(size_t i)
{
    return i + 1 < PAGE ? i + 1 : i + 97 - i % 97;
}

inline void fill(void *p, size_t n, unsigned id)
{
    for (size_t i = 0; i < n; i = next_sample(i))
        static_cast<unsigned char *>(p)[i] = content(i, id);
}

inline bool filled(const void *p, size_t n, unsigned id)
{
    for (size_t i = 0; i < n; i = next_sample(i))
        if (static_cast<const unsigned char *>(p)[i] != content(i, id)) return false;
    return true;
}

inline bool all_bytes(const void *p, size_t n, unsigned char value)
{
    const unsigned char *bytes = static_cast<const unsigned char *>(p);
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != value) return false;
    return true;
}

inline uintptr_t addr(const void *p)
{
    return reinterpret_cast<uintptr_t>(p);
}

// Pages of the range that are resident: touched by anyone since they were committed.
inline size_t resident_pages(const void *p, size_t n)
{
    uintptr_t first = addr(p) & ~(uintptr_t)(PAGE - 1);
    std::vector<unsigned char> map((addr(p) + n - first + PAGE - 1) / PAGE);
    // What is not mapped is not resident: mincore tells of a whole range at once that some of it is not.
    if (mincore(reinterpret_cast<void *>(first), map.size() * PAGE, map.data()) != 0)
        for (size_t i = 0; i < map.size(); i++)
            if (mincore(reinterpret_cast<void *>(first + i * PAGE), PAGE, &map[i]) != 0) map[i] = 0;
    size_t pages = 0;
    for (unsigned char c : map)
        pages += c & 1;
    return pages;
}

} // namespace test
