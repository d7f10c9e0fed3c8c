// Profiles that begin, end and are forgotten beside threads at work: what ThreadSanitizer is for.
#include "profiled.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace test;

namespace
{

Options shared_options()
{
    Options options = ctx_options();
    options.shared = true;
    return options;
}

// Starts, stops and forgets profiles of both kinds `times` times.
void profile_again_and_again(hak_ctx *ctx, int times)
{
    for (int i = 0; i < times; i++) {
        hak_profile_options o = exact_options();
        if (i % 2 == 0) o.mode = HAK_PROFILE_SAMPLED;
        o.mean = 1 * KiB;
        REQUIRE(hak_profile_start(ctx, &o) == 0);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        if (i % 3 == 0) REQUIRE(hak_profile_reset(ctx) == 0);
        REQUIRE(hak_profile_stop(ctx) == 0);
    }
}

} // namespace

TEST_CASE(
    "profile threads: begun and forgotten, and labels summed, beside threads that free each other's samples")
{
    TestSpace s;
    Options options = shared_options();
    TestCtx ctx(s.space, &options);
    hak_label labels[] = {hak_label_define(ctx, "a"), hak_label_define(ctx, "b")};
    std::atomic<bool> over{false};
    std::vector<std::atomic<void *>> table(512);
    std::vector<std::thread> crew;
    for (unsigned t = 0; t < 3; t++)
        crew.emplace_back([&, t] {
            Random random(t);
            std::vector<void *> mine(200);
            while (!over) {
                // Waves, so that units go back and are used for other sizes.
                size_t n = 100 + random.below(6000);
                for (void *&p : mine)
                    p = hak_alloc_cs(ctx, n, labels[t % 2], 1 + t);
                for (void *p : mine)
                    hak_free(ctx, table[random.below(table.size())].exchange(p));
            }
        });
    std::thread reader([&] {
        hak_label_info infos[3];
        while (!over)
            if (hak_labels_stats(ctx, infos, 3) != 3) std::abort();
    });
    profile_again_and_again(ctx, 300);
    over = true;
    reader.join();
    for (std::thread &t : crew)
        t.join();
    for (auto &p : table)
        hak_free(ctx, p);
    require_sound(ctx);
}
