// Labels of the compiler's tokens: each token has one, in every kind of context, whatever its bits are.
#include "heap.h"

#include <hakmem/token.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace test;

TEST_CASE("token: each token has a label of its own, with its name")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = GENERATE(false, true);
    TestCtx ctx(s.space, &options);
    auto t = std::make_unique<hak_tokens>();
    CHECK(hak_token_known(t.get(), 0) == 0);
    CHECK(hak_token_label(t.get(), ctx, 0) == 0);
    CHECK(hak_label_name(ctx, 1) == nullptr); // nothing is defined for it
    CHECK(hak_token_known(t.get(), 77) == -1);
    const hak_label label = hak_token_label(t.get(), ctx, 0x0123456789ABCDEF);
    CHECK(label == 1);
    CHECK(hak_label_name(ctx, label) == std::string("token 0123456789abcdef"));
    CHECK(hak_token_known(t.get(), 0x0123456789ABCDEF) == label);
    // In one slot, and around the end of the table.
    std::set<hak_label> labels{label};
    for (uint64_t i = 1; i < 100; i++)
        labels.insert(hak_token_label(t.get(), ctx, i << 32 | 1023));
    CHECK(labels.size() == 100);
    for (uint64_t i = 1; i < 100; i++)
        labels.insert(hak_token_label(t.get(), ctx, i << 32 | 1023));
    CHECK(labels.size() == 100);
    void *p = hak_alloc_cs(ctx, 40, hak_token_label(t.get(), ctx, 5ull << 32 | 1023), HAK_CALLSITE());
    CHECK(hak_label_name(ctx, hak_label_of(ctx, p)) == std::string("token 00000005000003ff"));
    hak_free(ctx, p);
}

TEST_CASE("token: more of them than labels share one")
{
    TestSpace s;
    TestCtx ctx(s.space);
    auto t = std::make_unique<hak_tokens>();
    std::set<hak_label> labels;
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t i = 1; i <= 5000; i++)
            labels.insert(hak_token_label(t.get(), ctx, i * 0x9E3779B97F4A7C15u));
    CHECK(labels.size() == HAK_TOKEN_LABELS + 1);
    CHECK(labels.count(0) == 0);
    CHECK(hak_label_name(ctx, hak_token_label(t.get(), ctx, 5001 * 0x9E3779B97F4A7C15u)) ==
          std::string("token other"));
}

TEST_CASE("token: a context without memory or labels gives label 0, and a label later")
{
    TestSpace s;
    Options options = ctx_options();
    TestCtx ctx(s.space, &options);
    auto t = std::make_unique<hak_tokens>();
    for (int i = 0; i < HAK_LABELS_MAX; i++)
        REQUIRE(hak_label_define(ctx, ("own " + std::to_string(i)).c_str()) != 0);
    CHECK(hak_token_label(t.get(), ctx, 3) == 0);
    CHECK(hak_token_known(t.get(), 3) == -1);
}

TEST_CASE("token: threads that meet the same tokens agree")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = true;
    TestCtx ctx(s.space, &options);
    auto t = std::make_unique<hak_tokens>();
    std::vector<std::vector<hak_label>> found(4);
    std::vector<std::thread> threads;
    for (auto &mine : found)
        threads.emplace_back([&] {
            for (int pass = 0; pass < 3; pass++)
                for (uint64_t i = 1; i <= 150; i++)
                    mine.push_back(hak_token_label(t.get(), ctx, i % 5 + (i << 20)));
        });
    for (std::thread &thread : threads)
        thread.join();
    for (const auto &mine : found)
        CHECK(mine == found[0]);
    CHECK(std::set<hak_label>(found[0].begin(), found[0].end()).size() == 150);
}

TEST_CASE("token: a thread that meets the last one with a label while another gives it the label")
{
    TestSpace s;
    Options options = ctx_options();
    options.shared = true;
    TestCtx ctx(s.space, &options);
    hak_tokens before = {}, t;
    for (uint64_t i = 1; i < HAK_TOKEN_LABELS; i++)
        REQUIRE(hak_token_label(&before, ctx, i) != 0);
    const uint64_t last = HAK_TOKEN_LABELS;
    constexpr int ROUNDS = 20000;
    std::atomic<int> begun{0}, ended{0};
    std::set<hak_label> labels[2];
    const auto meet = [&](int thread, int round) {
        // The second thread comes a little later than the first, and later from round to round.
        if (thread == 1)
            for (volatile int i = 0; i < round % 200; i = i + 1) {
            }
        labels[thread].insert(hak_token_label(&t, ctx, last));
    };
    std::thread other([&] {
        for (int round = 1; round <= ROUNDS; round++) {
            while (begun < round)
                std::this_thread::yield();
            meet(round % 2, round);
            ended = round;
        }
    });
    for (int round = 1; round <= ROUNDS; round++) {
        t = before;
        begun = round;
        meet(1 - round % 2, round);
        while (ended < round)
            std::this_thread::yield();
    }
    other.join();
    CHECK(labels[0] == labels[1]);
    CHECK(labels[0].size() == 1);
}
