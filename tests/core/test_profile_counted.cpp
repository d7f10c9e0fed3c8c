// Profiles that the host counts: its numbers come out as they went in, and records go when it is told so.
#include "profiled.h"

#include <algorithm>
#include <string>
#include <vector>

using namespace test;

namespace
{

hak_profile_options counted_options(size_t table_bytes = 16 * MiB)
{
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_COUNTED;
    options.table_bytes = table_bytes;
    return options;
}

hak_profile_counts *counts_of(hak_ctx *ctx, uintptr_t frame, hak_label label = 0)
{
    return hak_profile_counts_of(ctx, &frame, 1, label);
}

std::map<uint32_t, hak_profile_stack> by_id(const hak_ctx *ctx)
{
    std::map<uint32_t, hak_profile_stack> stacks;
    REQUIRE(hak_profile_visit(
                ctx,
                [](void *user, const hak_profile_stack *s) {
                    (*static_cast<std::map<uint32_t, hak_profile_stack> *>(user))[s->id] = *s;
                    return true;
                },
                &stacks) == 0);
    return stacks;
}

} // namespace

TEST_CASE("profile counted: what a host counts is what it reads, the peak included")
{
    TestSpace s;
    TestCtx ctx(s.space);
    const hak_label label = hak_label_define(ctx, "mine");
    const hak_profile_options options = counted_options();
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    struct Model {
        hak_profile_counts *counts;
        double alloc_blocks = 0, alloc_bytes = 0, live_blocks = 0, live_bytes = 0, peak_blocks = 0,
               peak_bytes = 0, grown_blocks = 0, grown_bytes = 0;
        size_t largest = 0;
    };
    std::vector<Model> models;
    for (uintptr_t frame = 1; frame <= 20; frame++)
        models.push_back({counts_of(ctx, frame / 2, frame % 2 ? label : hak_label(0))});
    hak_profile_tally *all = hak_profile_tally_of(ctx);
    REQUIRE(all != nullptr);
    Random random(7);
    std::vector<std::pair<size_t, size_t>> blocks; // which model, size
    double live = 0, peak = 0;
    for (int i = 0; i < 100000; i++) {
        const size_t m = random.below(models.size()), n = random.below(1000);
        Model &model = models[m];
        const size_t what = random.below(i % 20000 < 12000 ? 3 : 6);
        if (what < 2) {
            hak_profile_count_alloc(all, model.counts, n);
            blocks.push_back({m, n});
            model.alloc_blocks++, model.live_blocks++;
            model.alloc_bytes += double(n), model.live_bytes += double(n), live += double(n);
            model.largest = std::max(model.largest, n);
        } else if (!blocks.empty()) {
            const size_t at = random.below(blocks.size());
            auto &[of, size] = blocks[at];
            Model &old = models[of];
            if (what == 2) {
                hak_profile_count_resize(all, old.counts, size, n);
                if (n > size) {
                    old.grown_blocks++, old.grown_bytes += double(n - size),
                        old.alloc_bytes += double(n - size);
                    old.largest = std::max(old.largest, n);
                }
                old.live_bytes += double(n) - double(size), live += double(n) - double(size);
                size = n;
            } else {
                hak_profile_count_free(all, old.counts, size);
                old.live_blocks--, old.live_bytes -= double(size), live -= double(size);
                blocks[at] = blocks.back();
                blocks.pop_back();
            }
        }
        if (live > peak) {
            peak = live;
            for (Model &each : models)
                each.peak_blocks = each.live_blocks, each.peak_bytes = each.live_bytes;
        }
    }
    CHECK(double(all->live_bytes) == live);
    CHECK(double(all->peak_bytes) == peak);
    CHECK(live < peak);
    auto stacks = by_id(ctx);
    CHECK(stacks.size() == 20);
    double sum = 0;
    for (const Model &model : models) {
        const hak_profile_stack &stack = stacks[model.counts->id];
        CHECK(stack.alloc_blocks == model.alloc_blocks);
        CHECK(stack.alloc_bytes == model.alloc_bytes);
        CHECK(stack.live_blocks == model.live_blocks);
        CHECK(stack.live_bytes == model.live_bytes);
        CHECK(stack.peak_blocks == model.peak_blocks);
        CHECK(stack.peak_bytes == model.peak_bytes);
        CHECK(stack.grown_blocks == model.grown_blocks);
        CHECK(stack.grown_bytes == model.grown_bytes);
        CHECK(stack.largest_bytes == model.largest);
        CHECK(stack.mean_bytes == model.alloc_bytes / model.alloc_blocks);
        CHECK(stack.samples == uint64_t(model.alloc_blocks));
        CHECK(stack.live_samples == uint64_t(model.live_blocks));
        CHECK(stack.alloc_bytes_error + stack.live_bytes_error + stack.peak_bytes_error + stack.age_ns == 0);
        CHECK(std::all_of(stack.lifetime, stack.lifetime + HAK_PROFILE_LIFETIMES,
                          [](double n) { return n == 0; }));
        sum += model.alloc_blocks;
    }
    CHECK(double(info_of(ctx).samples) == sum);
    CHECK(info_of(ctx).mode == HAK_PROFILE_COUNTED);
    CHECK(info_of(ctx).dropped_samples == 0);
    all->missed = 3;
    CHECK(info_of(ctx).dropped_samples == 3);
}

TEST_CASE("profile counted: records by frames and label, cut to the depth")
{
    TestSpace s;
    TestCtx ctx(s.space);
    CHECK(hak_profile_tally_of(ctx) == nullptr);
    CHECK(counts_of(ctx, 1) == nullptr);
    hak_profile_options options = counted_options();
    options.depth = 3;
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    const hak_label label = hak_label_define(ctx, "mine");
    const uintptr_t frames[] = {1, 2, 3, 4}, other[] = {1, 2, 3, 5};
    hak_profile_counts *a = hak_profile_counts_of(ctx, frames, 4, label);
    REQUIRE(a != nullptr);
    CHECK(hak_profile_counts_of(ctx, other, 4, label) == a);
    CHECK(hak_profile_counts_of(ctx, frames, 2, label) != a);
    CHECK(hak_profile_counts_of(ctx, frames, 4, 0) != a);
    hak_profile_counts *none = hak_profile_counts_of(ctx, nullptr, 0, 77); // no such label: none
    CHECK(hak_profile_counts_of(ctx, nullptr, 5, 0) == none);
    auto stacks = by_id(ctx);
    CHECK(stacks[a->id].depth == 3);
    CHECK(stacks[a->id].label == label);
    CHECK(stacks[none->id].depth == 0);
    CHECK(stacks[none->id].site == 0);
}

TEST_CASE("profile counted: allocations of the context go on as without a profile")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (int i = 0; i < 1000; i++) // magazines
        hak_free(ctx, hak_alloc(ctx, 64));
    const hak_profile_options options = counted_options();
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    void *p = hak_alloc_cs(ctx, 64, 0, 5), *large = hak_alloc_cs(ctx, 4 * MiB, 0, 6);
    REQUIRE((p = hak_realloc(ctx, p, 100 * KiB)) != nullptr);
    REQUIRE((large = hak_realloc(ctx, large, 8 * MiB)) != nullptr);
    hak_free(ctx, p);
    hak_free(ctx, large);
    CHECK(by_id(ctx).empty());
    CHECK(info_of(ctx).samples == 0);
    require_sound(ctx);
}

TEST_CASE("profile counted: evidence says how much is left at most, unless that is all")
{
    for (const bool sinks : {false, true}) {
        TestSpace s;
        TestCtx ctx(s.space);
        const hak_profile_options options = counted_options();
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        hak_profile_counts *counts = counts_of(ctx, 7);
        hak_profile_tally *all = hak_profile_tally_of(ctx);
        for (int w = 0; w < 10; w++) {
            for (int i = 0; i < 20; i++)
                hak_profile_count_alloc(all, counts, 1000);
            for (int i = 0; sinks && w == 7 && i < 50; i++)
                hak_profile_count_free(all, counts, 1000);
            REQUIRE(hak_profile_mark(ctx, nullptr) > 0);
        }
        std::string evidence;
        REQUIRE(hak_profile_grown(
                    ctx,
                    [](void *user, const hak_profile_growth *g) {
                        *static_cast<std::string *>(user) = g->evidence;
                        return true;
                    },
                    &evidence) == 0);
        INFO(evidence);
        CHECK(evidence.rfind("grew by ", 0) == 0);
        CHECK((evidence.find("; at most ") != std::string::npos) == sinks);
        CHECK((evidence.find("lives now") != std::string::npos) == sinks);
    }
}

TEST_CASE("profile counted: stop, reset, start, and the host is told when records go")
{
    static int gone;
    gone = 0;
    TestSpace s;
    TestCtx ctx(s.space);
    hak_profile_options options = counted_options();
    options.gone = [](void *user) { gone += *static_cast<int *>(user); };
    int one = 1;
    options.user = &one;
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    CHECK(hak_profile_start(ctx, &options) == -1);
    hak_profile_counts *a = counts_of(ctx, 1);
    hak_profile_count_alloc(hak_profile_tally_of(ctx), a, 100);
    REQUIRE(hak_profile_reset(ctx) == 0);
    CHECK(gone == 1);
    CHECK(by_id(ctx).empty());
    CHECK(hak_profile_tally_of(ctx)->live_bytes == 0);
    a = counts_of(ctx, 1);
    hak_profile_count_alloc(hak_profile_tally_of(ctx), a, 100);
    hak_profile_count_alloc(hak_profile_tally_of(ctx), a, 50);
    REQUIRE(hak_profile_stop(ctx) == 0);
    CHECK(counts_of(ctx, 1) == nullptr);
    hak_profile_count_free(hak_profile_tally_of(ctx), a, 100);
    CHECK(by_id(ctx)[a->id].live_bytes == 50);
    CHECK(by_id(ctx)[a->id].peak_bytes == 150);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    CHECK(gone == 2);
    CHECK(by_id(ctx).empty());
    REQUIRE(hak_profile_stop(ctx) == 0);
    REQUIRE(hak_profile_reset(ctx) == 0);
    CHECK(gone == 3);
    CHECK(hak_profile_tally_of(ctx) == nullptr);
    // another mode after it counts by itself, and no host
    hak_profile_options exact = exact_options();
    REQUIRE(hak_profile_start(ctx, &exact) == 0);
    CHECK(hak_profile_tally_of(ctx) == nullptr);
    CHECK(counts_of(ctx, 1) == nullptr);
    void *p = hak_alloc_cs(ctx, 64, 0, 9);
    CHECK(by_id(ctx).size() == 1);
    CHECK(gone == 3);
    hak_free(ctx, p);
}

TEST_CASE("profile counted: a full table, refused pages, shared contexts")
{
    {
        TestSpace s;
        TestCtx ctx(s.space);
        const hak_profile_options options = counted_options(64 * KiB);
        REQUIRE(hak_profile_start(ctx, &options) == 0);
        uintptr_t made = 0;
        while (made < 10000 && counts_of(ctx, made + 1))
            made++;
        CHECK(made > 400);
        CHECK(made < 700);
        CHECK(info_of(ctx).dropped_stacks == 1);
        CHECK(counts_of(ctx, 1) != nullptr);
        CHECK(info_of(ctx).table_bytes <= 64 * KiB);
        REQUIRE(hak_profile_reset(ctx) == 0);
        CHECK(counts_of(ctx, 5000) != nullptr);
        require_sound(ctx);
    }
    for (uint64_t n = 1; n <= 12; n++) {
        TestSpace s;
        TestCtx ctx(s.space);
        s.os.fail_nth(n);
        const hak_profile_options options = counted_options();
        if (hak_profile_start(ctx, &options) == 0) {
            for (uintptr_t frame = 1; frame <= 3000; frame++) {
                hak_profile_counts *counts = counts_of(ctx, frame);
                if (counts) hak_profile_count_alloc(hak_profile_tally_of(ctx), counts, frame);
            }
            CHECK(by_id(ctx).size() + info_of(ctx).dropped_stacks == 3000);
            CHECK(info_of(ctx).dropped_stacks <= 1);
        }
        require_sound(ctx);
    }
    TestSpace s;
    Options o = ctx_options();
    o.shared = true;
    hak_ctx *shared = hak_ctx_new(s.space, &o);
    REQUIRE(shared != nullptr);
    const hak_profile_options options = counted_options();
    CHECK(hak_profile_options_error(&options) == nullptr);
    CHECK(hak_profile_start(shared, &options) == -1);
    CHECK(hak_profile_tally_of(shared) == nullptr);
    CHECK(counts_of(shared, 1) == nullptr);
    hak_ctx_destroy(shared);
}
