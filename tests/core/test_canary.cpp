// HAK_DEBUG_CANARY and HAK_DEBUG_QUARANTINE: what is written behind a block, and to a freed one.
#define HAK_NO_ATTRIBUTES // It reads and writes behind blocks.
#include "shared.h"

#include <map>

using namespace test;

namespace
{

const size_t SIZES[] = {
    0,        1,        7,          8,    15,      16,     48,           100,      504,
    512,      1000,     1024,       1025, 4000,    8192,   32 * KiB - 8, 32 * KiB, 32 * KiB + 1,
    48 * KiB, 64 * KiB, 1000 * KiB, MiB,  MiB + 1, 3 * MiB};

std::string check_of(hak_ctx *ctx)
{
    Errors found;
    bool sound = hak_ctx_check(ctx, Errors::record, &found);
    std::string names = found.take();
    REQUIRE(sound == names.empty());
    return names;
}

} // namespace

TEST_CASE("a byte behind a block is found by check, free and realloc")
{
    shared_too([](bool shared) {
        Debugged d(HAK_DEBUG_CANARY, [=](Options &o) { o.shared = shared; });
        for (size_t n : SIZES)
            for (size_t align : {8, 64, 4096}) {
                INFO(n << " " << align);
                size_t usable = std::max<size_t>(n, 1);
                auto make = [&] {
                    char *p =
                        static_cast<char *>(align == 8 ? hak_alloc(d, n) : hak_aligned_alloc(d, align, n));
                    REQUIRE(p);
                    REQUIRE(addr(p) % (n && n % 16 == 0 ? std::max<size_t>(align, 16) : align) == 0);
                    REQUIRE(hak_usable_size(d, p) == usable);
                    std::memset(p, 0xee, usable);
                    REQUIRE(check_of(d) == "");
                    return p;
                };
                for (size_t behind : {0, 7}) {
                    char *p = make();
                    p[usable + behind] ^= 1;
                    CHECK(check_of(d) == "HAK_E_BOUNDS");
                    hak_free(d, p);
                    CHECK(d.errors.take() == "HAK_E_BOUNDS");
                }
                char *p = make();
                p[usable]++;
                char *q = static_cast<char *>(hak_realloc(d, p, n + 200));
                CHECK(d.errors.take() == "HAK_E_BOUNDS");
                REQUIRE(hak_usable_size(d, q) == n + 200);
                CHECK(all_bytes(q, usable, 0xee));
                REQUIRE(check_of(d) == "");
                hak_free(d, q);
                CHECK(d.errors.take() == "");
            }
        hak_ctx_flush(d);
        CHECK(stats_of(d).live_blocks == 0);
    });
}

TEST_CASE("without the flag the bytes behind a block are the block's")
{
    Debugged d(HAK_DEBUG_CHECK);
    char *p = static_cast<char *>(hak_alloc(d, 41));
    REQUIRE(hak_usable_size(d, p) == 48);
    p[47] ^= 1;
    CHECK(check_of(d) == "");
    hak_free(d, p);
    CHECK(d.errors.take() == "");
}

TEST_CASE("contexts have canaries of their own")
{
    Debugged a(HAK_DEBUG_CANARY), b(HAK_DEBUG_CANARY);
    char *p = static_cast<char *>(hak_alloc(a, 40)), *q = static_cast<char *>(hak_alloc(b, 40));
    CHECK(std::memcmp(p + 40, q + 40, 8) != 0);
    CHECK(hak_good_size(a, 41) == 41);
    CHECK(hak_good_size(a, 0) == 1);
    hak_free(a, p);
    hak_free(b, q);
}

TEST_CASE("canaries and quarantine live with any schedule")
{
    for (unsigned debug : {(unsigned)HAK_DEBUG_CANARY, (unsigned)HAK_DEBUG_QUARANTINE,
                           (unsigned)(HAK_DEBUG_CANARY | HAK_DEBUG_QUARANTINE | HAK_DEBUG_POISON),
                           (unsigned)(HAK_DEBUG_CANARY | HAK_DEBUG_QUARANTINE | HAK_DEBUG_GUARD)})
        for (bool shared : {false, true}) {
            INFO(debug << " " << shared);
            Debugged d(debug, [=](Options &o) {
                o.shared = shared;
                o.guard_every = 7;
                o.max_align = debug == HAK_DEBUG_CANARY;
            });
            Random random(debug + shared);
            std::vector<Block> live;
            for (unsigned i = 0; i < 3000; i++) {
                size_t k = live.empty() ? 0 : random.below(live.size());
                size_t what = random.below(10), n = some_size(random);
                if (what < 5 || live.empty()) {
                    live.push_back(make(d, n, i));
                    REQUIRE(live.back().p);
                } else if (what < 7) {
                    Block &b = live[k];
                    check(b);
                    void *q = hak_realloc_sized(d, b.p, b.n, n);
                    REQUIRE(q);
                    REQUIRE(filled(q, std::min({b.n, n, FILLED}), b.id));
                    b = {q, n, b.id};
                    fill(q, std::min(n, FILLED), b.id);
                } else {
                    check(live[k]);
                    hak_free_sized(d, live[k].p, live[k].n);
                    live[k] = live.back();
                    live.pop_back();
                }
                if (i % 500 == 0) REQUIRE(check_of(d) == "");
            }
            REQUIRE(d.errors.take() == "");
            for (const Block &b : live)
                hak_free(d, b.p);
            hak_ctx_flush(d);
            CHECK(d.errors.take() == "");
            CHECK(stats_of(d).live_blocks == 0);
            CHECK(stats_of(d).live_bytes == 0);
        }
}

TEST_CASE("a freed block is held back, and what is done to it is found")
{
    shared_too([](bool shared) {
        Debugged d(HAK_DEBUG_QUARANTINE, [=](Options &o) { o.shared = shared; });
        for (size_t n : {1, 40, 1000, 20000}) {
            INFO(n);
            char *p = static_cast<char *>(hak_alloc_cs(d, n, 1, 0));
            hak_free(d, p);
            CHECK(all_bytes(p, n, 0xDD));
            CHECK(hak_usable_size(d, p) == 0);
            CHECK(stats_of(d).live_blocks == 1);
            std::vector<void *> others;
            for (int i = 0; i < 300; i++) {
                others.push_back(hak_alloc(d, n));
                CHECK(others.back() != p); // the next one, otherwise
            }
            hak_free(d, p);
            CHECK(d.errors.take() == "HAK_E_DOUBLE_FREE");
            CHECK(hak_realloc(d, p, 2 * n) == nullptr);
            CHECK(d.errors.take() == "HAK_E_DOUBLE_FREE");
            p[n / 2] = 0;
            CHECK(check_of(d) == "HAK_E_USE_AFTER_FREE");
            // It leaves when 256 others came, no earlier.
            for (int i = 0; i < 255; i++)
                hak_free(d, others[(size_t)i]);
            CHECK(d.errors.take() == "");
            hak_free(d, others[255]);
            CHECK(d.errors.take() == "HAK_E_USE_AFTER_FREE");
            for (int i = 256; i < 300; i++)
                hak_free(d, others[(size_t)i]);
            hak_ctx_flush(d);
            CHECK(d.errors.take() == "");
            CHECK(stats_of(d).live_blocks == 0);
        }
    });
}

TEST_CASE("a block in a run that is held back is a free one, too")
{
    shared_too([](bool shared) {
        Debugged d(HAK_DEBUG_QUARANTINE, [=](Options &o) { o.shared = shared; });
        for (size_t n : {10, 20000}) {
            INFO(n);
            char *p = static_cast<char *>(hak_aligned_alloc(d, 16 * KiB, n));
            hak_free(d, p);
            REQUIRE(stats_of(d).live_blocks == 1);
            hak_free(d, p);
            CHECK(d.errors.take() == "HAK_E_DOUBLE_FREE");
            CHECK(hak_realloc(d, p, 2 * n) == nullptr);
            CHECK(d.errors.take() == "HAK_E_DOUBLE_FREE");
            hak_free(d, p + 8);
            CHECK(d.errors.take() == "HAK_E_POINTER");
            hak_ctx_flush(d);
            CHECK(d.errors.take() == "");
            CHECK(stats_of(d).live_blocks == 0);
        }
    });
}

TEST_CASE("the size of a block of any kind counts the pattern")
{
    shared_too([](bool shared) {
        Debugged d(HAK_DEBUG_CANARY, [=](Options &o) { o.shared = shared; });
        for (size_t n : {40, 1000, 20000, 100000, 3000000})
            for (size_t align : {8, 16384}) {
                INFO(n << " " << align);
                const size_t before = stats_of(d).live_bytes;
                void *p = hak_aligned_alloc(d, align, n);
                CHECK(hak_usable_size(d, p) == n);
                CHECK(hak_block_size(d, p) >= n + 8);
                CHECK(stats_of(d).live_bytes - before == hak_block_size(d, p));
                hak_free(d, p);
                CHECK(hak_block_size(d, nullptr) == 0);
            }
    });
}

TEST_CASE("a quarantine ends with retirement, and yields to a limit")
{
    Debugged d(HAK_DEBUG_QUARANTINE);
    REQUIRE(hak_limit(d, 0, 2 * MiB, nullptr, nullptr) == 0);
    for (int i = 0; i < 20000; i++) {
        void *p = hak_alloc(d, 20000);
        REQUIRE(p); // 256 of them are 5 MiB
        hak_free(d, p);
    }
    CHECK(stats_of(d).failures == 0);
    CHECK(d.errors.take() == "");

    TestSpace space;
    Options options = ctx_options();
    options.debug = HAK_DEBUG_QUARANTINE;
    hak_ctx *gone = hak_ctx_new(space.space, &options);
    void *a = hak_alloc(gone, 100), *b = hak_alloc(gone, 100);
    hak_free(gone, a);
    hak_ctx_retire(gone);
    hak_free(gone, b); // the last one: the context is gone, and the space has all units back
    CHECK(hak_ctx_of(space.space, b) == nullptr);
}

TEST_CASE("a quarantine yields to an allocation that finds no memory")
{
    enum { LIMIT = 16 * MiB, HELD = 256 };
    shared_too([](bool shared) {
        size_t n = GENERATE((size_t)1000, 10 * MiB);
        CAPTURE(n);
        Debugged d(HAK_DEBUG_QUARANTINE, [=](Options &o) { o.shared = shared; });
        REQUIRE(hak_limit(d, 0, LIMIT, nullptr, nullptr) == 0);
        std::vector<void *> blocks;
        for (int i = 0; i < HELD; i++)
            blocks.push_back(hak_alloc(d, 30000));
        for (void *p : blocks)
            hak_free(d, p);
        size_t got = 0;
        while (got < LIMIT / 8 * 5 && hak_alloc(d, n))
            got += n;
        CHECK(got >= (n > MiB ? n : LIMIT / 8 * 5));
        CHECK(stats_of(d).failures <= 1);
        CHECK(d.errors.take() == "");
    });
}

TEST_CASE("another thread frees a large block that has poison and a canary")
{
    Debugged d(HAK_DEBUG_POISON | HAK_DEBUG_CANARY, [](Options &o) { o.shared = true; });
    for (size_t n : {(size_t)100, 20 * KiB, 100 * KiB, 2 * MiB}) {
        void *p = hak_alloc(d, n);
        run_thread([&] { hak_free(d, p); });
        CHECK(d.errors.take() == "");
    }
    CHECK(stats_of(d).live_blocks == 0);
}

TEST_CASE("threads empty one quarantine at once, and all of its blocks are freed")
{
    enum { ROUNDS = 200, HELD = 40 };
    std::atomic<int> told{0};
    Debugged d(HAK_DEBUG_QUARANTINE, [&](Options &o) {
        o.shared = true;
        o.error_user = &told;
        o.on_error = [](void *user, hak_error, const void *, const char *) {
            ++*static_cast<std::atomic<int> *>(user);
        };
    });
    Crew crew(3, [&](size_t t) {
        for (int round = 0; round < ROUNDS; round++) {
            void *blocks[HELD];
            for (void *&p : blocks)
                p = hak_alloc(d, 100 + t);
            for (void *p : blocks)
                hak_free(d, p);
            hak_ctx_flush(d);
        }
    });
    REQUIRE(crew.join() == "");
    hak_ctx_flush(d);
    CHECK(told == 0);
    CHECK(stats_of(d).live_blocks == 0);
}

TEST_CASE("threads free each other's blocks through one quarantine")
{
    Debugged d(HAK_DEBUG_QUARANTINE | HAK_DEBUG_CANARY, [](Options &o) { o.shared = true; });
    constexpr size_t N = 2000;
    std::vector<void *> made(N);
    std::thread([&] {
        for (size_t i = 0; i < N; i++)
            made[i] = hak_alloc(d, 16 + i % 500);
    }).join();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (size_t i = t; i < N; i += 4)
                hak_free(d, made[i]);
        });
    for (std::thread &t : threads)
        t.join();
    hak_ctx_flush(d);
    CHECK(d.errors.take() == "");
    CHECK(stats_of(d).live_blocks == 0);
}
