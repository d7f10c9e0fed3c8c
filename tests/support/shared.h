// What the tests of shared contexts have in common: a context with labels, blocks that carry their contents,
// a piece of work on a thread of its own.
#pragma once

#include "crew.h"
#include "heap.h"

#include <algorithm>

namespace test
{

inline const char *const LABELS[] = {"red", "green", "blue"};

inline Options shared_options(Errors *errors = nullptr)
{
    Options options = ctx_options(errors);
    options.shared = true;
    options.labels = LABELS;
    options.label_count = 3;
    return options;
}

struct Shared {
    TestSpace space;
    Errors errors;
    Options options = shared_options(&errors);
    hak_ctx *ctx;
    explicit Shared(const std::function<void(Options &)> &change = {})
    {
        if (change) change(options);
        ctx = hak_ctx_new(space.space, &options);
        REQUIRE(ctx != nullptr);
    }
    ~Shared()
    {
        hak_ctx_destroy(ctx);
    }
    operator hak_ctx *() const
    {
        return ctx;
    }
};

// A size of each kind of block: packed or small, middle, run, with a mapping of its own.
inline size_t some_size(Random &random)
{
    size_t kind = random.below(1000);
    if (kind < 850) return 1 + random.below(1024);
    if (kind < 980) return 1 + random.below(32 * KiB);
    if (kind < 998) return 1 + random.below(300 * KiB);
    return MiB + random.below(2 * MiB);
}

struct Block {
    void *p;
    size_t n;
    unsigned id;
};

// So much of a block carries its contents: all of it but for the large.
inline constexpr size_t FILLED = 4 * KiB;

inline Block make(hak_ctx *ctx, size_t n, unsigned id)
{
    Block b{hak_alloc_cs(ctx, n, (hak_label)(id % 4), 0), n, id};
    if (b.p) fill(b.p, std::min(n, FILLED), id);
    return b;
}

inline void check(const Block &b)
{
    expect(filled(b.p, std::min(b.n, FILLED), b.id), "a block lost its contents");
}

// Every block was freed: when those under way are home, nothing is live.
inline void require_empty(hak_ctx *ctx)
{
    hak_ctx_flush(ctx);
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == 0);
}

inline void run_thread(const std::function<void()> &work)
{
    Crew crew;
    crew.add(work);
    REQUIRE(crew.join() == "");
}

// A labelled context with these HAK_DEBUG_*.
struct Debugged {
    TestSpace space;
    Errors errors;
    Options options = ctx_options(&errors);
    hak_ctx *ctx;
    explicit Debugged(unsigned debug, const std::function<void(Options &)> &change = {})
    {
        options.debug = debug;
        options.labels = LABELS;
        options.label_count = 3;
        if (change) change(options);
        ctx = hak_ctx_new(space.space, &options);
        REQUIRE(ctx != nullptr);
    }
    ~Debugged()
    {
        hak_ctx_destroy(ctx);
    }
    operator hak_ctx *() const
    {
        return ctx;
    }
};

// A body for a local context, and once more for a shared one.
inline void shared_too(const std::function<void(bool)> &body)
{
    SECTION("local")
    {
        body(false);
    }
    SECTION("shared")
    {
        body(true);
    }
}

} // namespace test
