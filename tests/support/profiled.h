// What the tests of profiles share: an exact shadow of a program's blocks, and programs that come by every
// path.
#pragma once

#include "heap.h"

#include <hakmem/inline.h>
#include <hakmem/profile.h>

#include <cmath>
#include <map>

namespace test
{

struct Truth {
    double alloc_blocks = 0, alloc_bytes = 0, live_blocks = 0, live_bytes = 0;
    size_t largest = 0;
};

using Stacks = std::map<std::pair<hak_site, hak_label>, hak_profile_stack>;

inline Stacks stacks_of(const hak_ctx *ctx)
{
    Stacks stacks;
    int rc = hak_profile_visit(
        ctx,
        [](void *user, const hak_profile_stack *s) {
            (*static_cast<Stacks *>(user))[{s->site, s->label}] = *s;
            return true;
        },
        &stacks);
    REQUIRE(rc == 0);
    return stacks;
}

inline hak_profile_info info_of(const hak_ctx *ctx)
{
    hak_profile_info info;
    info.size = sizeof info;
    REQUIRE(hak_profile_stats(ctx, &info) == 0);
    return info;
}

inline hak_profile_options exact_options(size_t table_bytes = 16 * MiB)
{
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    options.table_bytes = table_bytes;
    return options;
}

// Allocates, resizes and frees by every function, and knows what lives. A site is a number from 1 on.
struct Program {
    struct Block {
        void *p;
        size_t asked, usable;
        hak_site site;
        hak_label label;
    };
    hak_ctx *ctx;
    Random random;
    std::vector<Block> blocks;
    std::map<std::pair<hak_site, hak_label>, Truth> truth;
    std::vector<hak_label> labels{0};
    size_t biggest = 3 * MiB;

    Program(hak_ctx *of, uint64_t seed) : ctx(of), random(seed)
    {
    }

    size_t size()
    {
        size_t kind = random.below(100);
        if (kind < 70) return random.below(600);
        if (kind < 90) return random.below(5000);
        if (kind < 98) return random.below(100000);
        return kind < 99 ? random.below(biggest / 4) : random.below(biggest);
    }

    void made(Block b)
    {
        if (!b.p) FAIL("no memory");
        b.usable = hak_usable_size(ctx, b.p);
        Truth &t = truth[{b.site, b.label}];
        t.alloc_blocks++;
        t.alloc_bytes += (double)b.usable;
        t.live_blocks++;
        t.live_bytes += (double)b.usable;
        t.largest = std::max(t.largest, b.usable);
        blocks.push_back(b);
    }

    void gone(size_t i)
    {
        Truth &t = truth[{blocks[i].site, blocks[i].label}];
        t.live_blocks--;
        t.live_bytes -= (double)blocks[i].usable;
        blocks[i] = blocks.back();
        blocks.pop_back();
    }

    void allocate()
    {
        hak_site site = 1 + random.below(7);
        hak_label label = labels[random.below(labels.size())];
        size_t n = size();
        switch (random.below(8)) {
        case 0:
            return made({hak_calloc_cs(ctx, 1, n, label, site), n, 0, site, label});
        case 1:
            return made({hak_aligned_alloc_cs(ctx, (size_t)8 << random.below(11), n, label, site), n, 0, site,
                         label});
        case 2:
            return made({hak_alloc_inline(ctx, n, label), n, 0, 0, label});
        case 3:
            return made({hak_realloc_cs(ctx, nullptr, n, label, site), n, 0, site, label});
        case 4:
            return made({hak_alloc(ctx, n), n, 0, 0, 0});
        default:
            return made({hak_alloc_cs(ctx, n, label, site), n, 0, site, label});
        }
    }

    // A block that stays in place goes on under its stack, whatever site is told.
    void resize()
    {
        if (blocks.empty()) return;
        size_t i = random.below(blocks.size()), n = size();
        Block b = blocks[i];
        bool sized = random.below(2);
        hak_site site = 1 + random.below(7);
        hak_label label = b.label;
        bool big = b.usable > 1 * MiB && n > 1 * MiB;
        void *q = sized ? hak_realloc_sized_cs(ctx, b.p, b.asked, n, label, site)
                        : hak_realloc_cs(ctx, b.p, n, label, site);
        if (!q) FAIL("no memory");
        if (q == b.p || big) {
            Truth &t = truth[{b.site, b.label}];
            size_t usable = hak_usable_size(ctx, q);
            t.live_bytes += (double)usable - (double)b.usable;
            if (usable > b.usable) t.alloc_bytes += (double)(usable - b.usable);
            t.largest = std::max(t.largest, usable);
            blocks[i].p = q;
            blocks[i].usable = usable;
            blocks[i].asked = n;
            return;
        }
        gone(i);
        made({q, n, 0, site, label});
    }

    void release()
    {
        if (blocks.empty()) return;
        size_t i = random.below(blocks.size());
        Block b = blocks[i];
        gone(i);
        switch (random.below(3)) {
        case 0:
            return hak_free(ctx, b.p);
        case 1:
            return hak_free_sized(ctx, b.p, b.asked);
        default:
            return hak_free_inline(ctx, b.p);
        }
    }

    void run(size_t steps, size_t live = 400)
    {
        for (; steps; steps--) {
            if (blocks.size() < random.below(2 * live)) allocate();
            else if (random.below(6) == 0) resize();
            else release();
        }
    }

    void release_all()
    {
        while (!blocks.empty())
            release();
    }
};

// Estimates beside the truth, in their own standard errors: of many the mean of squares is 1.
struct Deviations {
    double alloc_sum = 0, live_sum = 0, alloc_bias = 0;
    size_t n = 0, alloc_beyond = 0, live_beyond = 0;

    void add(const hak_profile_stack &stack, const Truth &t)
    {
        double a = (stack.alloc_bytes - t.alloc_bytes) / stack.alloc_bytes_error;
        double l = stack.live_samples ? (stack.live_bytes - t.live_bytes) / stack.live_bytes_error : 0;
        alloc_sum += a * a;
        alloc_bias += a;
        live_sum += l * l;
        alloc_beyond += std::fabs(a) > 3;
        live_beyond += std::fabs(l) > 3;
        n++;
    }

    // 0.3 % would be beyond 3 if the errors were known; with few live samples they are estimates themselves.
    // Where threads draw in an order of their own each run is another experiment, and the bounds are twice as
    // wide.
    void require_fair(double wide = 1) const
    {
        CHECK(alloc_sum / (double)n == Approx(1).margin(0.3 * wide));
        CHECK(live_sum / (double)n == Approx(1).margin(0.3 * wide));
        CHECK(std::fabs(alloc_bias) / std::sqrt((double)n) < 3 * wide);
        CHECK((double)alloc_beyond <= wide * wide * (double)n / 80);
        CHECK((double)live_beyond <= wide * wide * (double)n / 40);
    }
};

} // namespace test
