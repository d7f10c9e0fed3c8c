// Shared contexts: what each function promises when blocks change threads, when threads come and go, at
// limits. Heaps of threads are in test_heaps.cpp, forks in test_fork.cpp, random histories in
// test_shared_stress.cpp.
#include "shared.h"

#include <set>

using namespace test;

TEST_CASE("shared: a block may change threads in every way")
{
    Shared ctx;
    const size_t n = GENERATE((size_t)0, (size_t)24, (size_t)1000, 20 * KiB, 200 * KiB, 3 * MiB);
    CAPTURE(n);
    Block mine = make(ctx, n, 2), theirs{};
    run_thread([&] {
        expect(hak_owns(ctx, mine.p), "owns");
        expect(hak_usable_size(ctx, mine.p) >= n, "usable size");
        expect(hak_label_of(ctx, mine.p) == 2, "label");
        expect(hak_ctx_of(ctx.space.space, mine.p) == ctx.ctx, "the owner is not the shared context");
        check(mine);
        mine.p = hak_realloc(ctx, mine.p, n * 2 + 100);
        expect(mine.p != nullptr, "realloc");
        check(mine);
        expect(hak_label_of(ctx, mine.p) == 2, "realloc keeps the label");
        mine.p = hak_realloc_cs(ctx, mine.p, n, 3, 0);
        expect(hak_label_of(ctx, mine.p) == 3, "realloc_cs sets the label");
        theirs = make(ctx, n, 5);
    });
    check(mine);
    check(theirs);
    require_sound(ctx);
    hak_free(ctx, mine.p);
    hak_free_sized(ctx, theirs.p, n);
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("shared: misuse is told from any thread")
{
    Shared ctx([](Options &options) { options.debug = HAK_DEBUG_CHECK; });
    Shared other;
    char outside[16];
    const size_t n = GENERATE((size_t)40, 20 * KiB, 2 * MiB);
    CAPTURE(n);
    void *p = hak_alloc(ctx, n), *q = hak_alloc(other, n);
    run_thread([&] {
        hak_free(ctx, outside);
        hak_free(ctx, q);
    });
    CHECK(ctx.errors.take() == "HAK_E_FOREIGN HAK_E_FOREIGN");
    run_thread([&] { hak_free(ctx, (char *)p + 8); });
    CHECK(ctx.errors.count(HAK_E_POINTER) + ctx.errors.count(HAK_E_FOREIGN) == 1);
    ctx.errors.take();
    hak_free(ctx, p);
    run_thread([&] { hak_free(ctx, p); });
    CHECK(ctx.errors.list.size() == 1);
    hak_free(other, q);
    CHECK(other.errors.take() == "");
    require_sound(ctx);
}

TEST_CASE("shared: a thread's heap")
{
    SECTION("a local context gives itself")
    {
        TestSpace s;
        TestCtx ctx(s.space);
        CHECK(hak_ctx_thread(ctx) == ctx.ctx);
        hak_ctx_thread_done(ctx);
        void *p = hak_alloc(ctx, 10);
        CHECK(p != nullptr);
        hak_free(ctx, p);
    }
    SECTION("of a shared one: blocks of both are the same")
    {
        Shared ctx;
        hak_ctx *mine = hak_ctx_thread(ctx);
        REQUIRE(mine != nullptr);
        CHECK(hak_ctx_thread(ctx) == mine);
        Block a = make(mine, 100, 1), b = make(ctx, 100, 2), c{};
        run_thread([&] {
            hak_ctx *theirs = hak_ctx_thread(ctx);
            expect(theirs != nullptr && theirs != mine, "a heap of its own");
            check(a);
            expect(hak_usable_size(theirs, a.p) >= 100 && hak_owns(theirs, a.p), "by another's heap");
            hak_free(theirs, a.p);
            hak_free(ctx, b.p);
            c = make(theirs, 5000, 3);
            hak_ctx_thread_done(ctx);
        });
        c.p = hak_realloc(mine, c.p, 9000);
        REQUIRE(c.p != nullptr);
        c.n = 5000;
        check(c);
        hak_free(mine, c.p);
        require_empty(ctx);
        CHECK(ctx.errors.take() == "");
    }
    SECTION("goodbye, again and again, and without a heap")
    {
        Shared ctx;
        run_thread([&] {
            hak_ctx_thread_done(ctx);
            for (unsigned i = 0; i < 100; i++) {
                Block b = make(hak_ctx_thread(ctx), 50 + i, i);
                hak_ctx_thread_done(ctx);
                hak_ctx_thread_done(ctx);
                check(b);
                hak_free(ctx, b.p);
            }
        });
        require_empty(ctx);
    }
}

TEST_CASE("shared: same name, same label, whoever defines it")
{
    Shared ctx;
    hak_label seen[4][20];
    Crew crew(4, [&](size_t t) {
        for (int i = 0; i < 20; i++) {
            seen[t][i] = hak_label_define(ctx, ("name" + std::to_string(i)).c_str());
            hak_free(ctx, hak_alloc_cs(ctx, 32, seen[t][i], 0));
        }
    });
    REQUIRE(crew.join() == "");
    std::set<hak_label> distinct;
    for (int i = 0; i < 20; i++) {
        for (int t = 1; t < 4; t++)
            CHECK(seen[t][i] == seen[0][i]);
        CHECK(std::string(hak_label_name(ctx, seen[0][i])) == "name" + std::to_string(i));
        distinct.insert(seen[0][i]);
    }
    CHECK(distinct.size() == 20);
    CHECK(distinct.count(0) == 0);
}

TEST_CASE("shared: a thread dies with full caches, and everything comes back")
{
    const bool goodbye = GENERATE(true, false);
    CAPTURE(goodbye);
    Shared ctx;
    std::vector<Block> kept[4];
    Crew crew(4, [&](size_t t) {
        Random random(t);
        std::vector<Block> blocks;
        for (unsigned i = 0; i < 6000; i++) {
            blocks.push_back(make(ctx, some_size(random) % (64 * KiB), i));
            expect(blocks.back().p != nullptr, "no memory");
        }
        for (unsigned i = 0; i < blocks.size(); i++)
            if (i % 10) hak_free(ctx, blocks[i].p);
            else kept[t].push_back(blocks[i]);
        if (goodbye) hak_ctx_thread_done(ctx);
    });
    REQUIRE(crew.join() == "");
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == 4 * 600);
    for (auto &list : kept)
        for (Block &b : list) {
            check(b);
            hak_free(ctx, b.p);
        }
    hak_ctx_trim(ctx);
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == 0);
    if (goodbye) CHECK(stats_of(ctx).committed_bytes < 2 * MiB);
    // What a thread left without goodbye may wait for the next one.
    run_thread([&] {
        hak_free(ctx, hak_alloc(ctx, 100));
        hak_ctx_trim(ctx);
    });
    CHECK(stats_of(ctx).live_blocks == 0);
    CHECK(ctx.space.os.resident() < 4 * MiB);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("shared: threads without goodbye do not leak heaps")
{
    const bool goodbye = GENERATE(false, true);
    CAPTURE(goodbye);
    Shared ctx;
    auto churn = [&](unsigned rounds) {
        for (unsigned r = 0; r < rounds; r++) {
            Crew crew(4, [&](size_t t) {
                Random random(r * 4 + t);
                std::vector<Block> blocks;
                for (unsigned i = 0; i < 200; i++)
                    blocks.push_back(make(ctx, 1 + random.below(2000), i));
                for (Block &b : blocks) {
                    check(b);
                    hak_free(ctx, b.p);
                }
                if (goodbye) hak_ctx_thread_done(ctx);
            });
            REQUIRE(crew.join() == "");
        }
    };
    churn(100 + 100 * (unsigned)EFFORT);
    const hak_stats after = stats_of(ctx);
    require_sound(ctx);
    CHECK(after.live_blocks == 0);
    // What a few heaps keep; each of the threads had up to 400 KiB.
    CHECK(after.metadata_bytes < MiB);
    CHECK(after.committed_bytes < 16 * MiB);
}

TEST_CASE("shared: a hundred threads at once, each with a heap of its own")
{
    enum { THREADS = 100, ROUNDS = 6 };
    Shared ctx;
    size_t metadata = 0;
    for (unsigned r = 0; r < ROUNDS; r++) {
        std::vector<hak_ctx *> heaps(THREADS);
        std::vector<Block> blocks(THREADS);
        Meeting meeting(THREADS);
        Crew crew(THREADS, [&](size_t t) {
            blocks[t] = make(ctx, 100, (unsigned)t);
            heaps[t] = hak_ctx_thread(ctx);
            meeting.meet();
            expect(hak_ctx_thread(ctx) == heaps[t], "another heap than before");
            Block mine = make(ctx, 100, (unsigned)t);
            Block &theirs = blocks[(t + 1) % THREADS];
            check(theirs);
            hak_free(ctx, theirs.p);
            check(mine);
            hak_free(ctx, mine.p);
            meeting.meet();
            hak_ctx_thread_done(ctx);
        });
        REQUIRE(crew.join() == "");
        CHECK(std::set<hak_ctx *>(heaps.begin(), heaps.end()).size() == THREADS);
        require_sound(ctx);
        const hak_stats after = stats_of(ctx);
        CHECK(after.live_blocks == 0);
        // Threads that said goodbye leave their places in the table and their heaps to the next ones.
        if (r == 1) metadata = after.metadata_bytes;
        if (r > 1) CHECK(after.metadata_bytes <= metadata + metadata / 8);
    }
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("shared: destroy with a million blocks on their way home")
{
    TestSpace space;
    Options options = shared_options();
    hak_ctx *ctx = hak_ctx_new(space.space, &options);
    const size_t count = EFFORT > 1 ? 1000000 : 200000;
    std::vector<void *> blocks(count);
    Meeting meeting(2);
    Crew crew;
    crew.add([&] {
        for (size_t i = 0; i < count; i++)
            blocks[i] = hak_alloc(ctx, 16 + i % 48);
        meeting.meet();
        meeting.meet(); // alive, and not looking at what comes home
    });
    crew.add([&] {
        meeting.meet();
        for (void *p : blocks)
            hak_free(ctx, p);
        meeting.meet();
    });
    REQUIRE(crew.join() == "");
    CHECK(stats_of(ctx).live_blocks == 0);
    CHECK(label_totals(ctx).blocks == 0);
    hak_ctx_destroy(ctx);
    // The units that came back serve a shared context again.
    ctx = hak_ctx_new(space.space, &options);
    REQUIRE(ctx != nullptr);
    Block b = make(ctx, 100, 1);
    check(b);
    require_sound(ctx);
    hak_ctx_destroy(ctx);
}

TEST_CASE("shared: one allocates, another frees, and memory stays bounded")
{
    Shared ctx;
    const size_t total = 100000 * EFFORT, window = 1000;
    std::vector<std::atomic<void *>> ring(window);
    size_t most = 0;
    Crew crew;
    crew.add([&] {
        for (size_t i = 0; i < total; i++) {
            void *p = hak_alloc(ctx, 16 + i % 1000);
            expect(p != nullptr, "no memory");
            while (ring[i % window].load(std::memory_order_acquire))
                if (crew.failed) return;
                else std::this_thread::yield();
            ring[i % window].store(p, std::memory_order_release);
            if (i % 5000 == 0) most = std::max(most, committed_of(ctx));
        }
    });
    crew.add([&] {
        for (size_t i = 0; i < total; i++) {
            void *p;
            while (!(p = ring[i % window].exchange(nullptr, std::memory_order_acq_rel)))
                if (crew.failed) return;
                else std::this_thread::yield();
            hak_free(ctx, p);
        }
    });
    REQUIRE(crew.join() == "");
    CHECK(most < 16 * MiB);
    require_empty(ctx);
}

TEST_CASE("shared: the hard limit is never passed, by eight threads neither")
{
    const size_t hard = 8 * MiB;
    const bool by_quota = GENERATE(false, true);
    CAPTURE(by_quota);
    hak_quota *quota = hak_quota_new(nullptr, by_quota ? hard : 0);
    {
        Shared ctx([&](Options &options) { options.quota = quota; });
        if (!by_quota) REQUIRE(hak_limit(ctx, 0, hard, nullptr, nullptr) == 0);
        std::atomic<uint64_t> refused{0};
        Crew crew(8, [&](size_t t) {
            Random random(t);
            std::vector<Block> blocks;
            for (unsigned i = 0; i < 4000 * EFFORT; i++) {
                Block b = make(ctx, some_size(random), i);
                if (b.p) {
                    blocks.push_back(b);
                } else {
                    refused++;
                    for (size_t k = blocks.size() / 2; k; k--) {
                        check(blocks.back());
                        hak_free(ctx, blocks.back().p);
                        blocks.pop_back();
                    }
                }
                if (i % 64 == 0 && committed_of(ctx) > hard) wrong("over the limit");
            }
            for (Block &b : blocks) {
                check(b);
                hak_free(ctx, b.p);
            }
        });
        REQUIRE(crew.join() == "");
        CHECK(refused > 0);
        if (by_quota) CHECK(hak_quota_peak(quota) <= hard);
        CHECK(hak_quota_peak(quota) > hard * 3 / 4);
        CHECK(hak_quota_used(quota) == stats_of(ctx).committed_bytes);
        require_empty(ctx);
        // Nothing of the limit was lost.
        hak_ctx_trim(ctx);
        void *p = hak_alloc(ctx, hard / 2);
        CHECK(p != nullptr);
        hak_free(ctx, p);
    }
    CHECK(hak_quota_used(quota) == 0);
    hak_quota_delete(quota);
}

TEST_CASE("shared: the soft limit is told once a crossing")
{
    struct Seen {
        std::atomic<unsigned> calls{0};
        std::atomic<size_t> committed{0};
    } seen;
    Shared ctx;
    REQUIRE(hak_limit(
                ctx, 4 * MiB, 0,
                [](hak_ctx *c, void *user, size_t committed, size_t) {
                    Seen *s = static_cast<Seen *>(user);
                    s->calls++;
                    s->committed = committed;
                    hak_free(c, hak_alloc(c, 100)); // it may allocate and free
                },
                &seen) == 0);
    // The callback comes at the start of a next slow path: that of a thread which comes after this one.
    run_thread([&] {
        while (committed_of(ctx) < 4 * MiB)
            expect(hak_alloc(ctx, 700) != nullptr, "no memory");
    });
    CHECK(seen.calls <= 1);
    Crew crew(4, [&](size_t t) {
        for (unsigned i = 0; i < 3000; i++)
            expect(make(ctx, 700, (unsigned)t).p != nullptr, "no memory");
    });
    REQUIRE(crew.join() == "");
    CHECK(seen.calls == 1);
    CHECK(seen.committed >= 4 * MiB);
}

TEST_CASE("shared: any request for pages may fail, under threads")
{
    uint64_t failures = 0;
    for (uint64_t nth = 1; nth <= 40 * EFFORT; nth++) {
        CAPTURE(nth);
        Shared ctx;
        ctx.space.os.fail_nth(nth);
        Crew crew(3, [&](size_t t) {
            Random random(t + nth);
            std::vector<Block> blocks;
            for (unsigned i = 0; i < 600; i++) {
                Block b = make(ctx, some_size(random), i);
                if (b.p) blocks.push_back(b);
                if (blocks.size() > 300) {
                    check(blocks.back());
                    hak_free(ctx, blocks.back().p);
                    blocks.pop_back();
                }
            }
            for (Block &b : blocks) {
                check(b);
                hak_free(ctx, b.p);
            }
        });
        REQUIRE(crew.join() == "");
        failures += ctx.space.os.failed;
        ctx.space.os.fail_nth(0);
        require_empty(ctx);
        CHECK(ctx.errors.take() == "");
    }
    CHECK(failures > 10);
}

TEST_CASE("shared: no memory at all leaves frees working")
{
    Shared ctx;
    std::vector<Block> blocks;
    for (unsigned i = 0; i < 2000; i++)
        blocks.push_back(make(ctx, 100 + i % 400, i));
    ctx.space.os.refuse_all(true);
    Crew crew(3, [&](size_t t) {
        // Threads whose first call is a free, and that cannot get a heap.
        for (size_t i = t; i < blocks.size(); i += 3) {
            check(blocks[i]);
            hak_free(ctx, blocks[i].p);
        }
        expect(hak_alloc(ctx, 4 * MiB) == nullptr, "memory from nowhere");
    });
    REQUIRE(crew.join() == "");
    ctx.space.os.refuse_all(false);
    require_empty(ctx);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("shared: retire ends with the last block, whoever frees it")
{
    TestSpace space;
    Options options = shared_options();
    hak_ctx *ctx = hak_ctx_new(space.space, &options);
    std::vector<Block> blocks[3];
    Crew fillers(3, [&](size_t t) {
        for (unsigned i = 0; i < 3000; i++)
            blocks[t].push_back(make(ctx, 16 + i % 3000, i));
    });
    REQUIRE(fillers.join() == "");
    hak_ctx_retire(ctx);
    CHECK(hak_alloc(ctx, 10) == nullptr);
    run_thread([&] { expect(hak_alloc(ctx, 10) == nullptr, "a block of a retired context"); });
    void *kept = blocks[0][0].p;
    CHECK(hak_realloc_sized(ctx, kept, 16, 8) == kept);
    CHECK(hak_realloc(ctx, kept, 100000) == nullptr);
    for (size_t t = 0; t < 3; t++)
        run_thread([&, t] {
            for (const Block &b : blocks[(t + 1) % 3]) {
                expect(hak_ctx_of(space.space, b.p) == ctx, "gone before its last block");
                check(b);
                hak_free(ctx, b.p);
            }
        });
    CHECK(hak_ctx_of(space.space, blocks[0][0].p) == nullptr);
    // TestSpace sees that all went back.
}

TEST_CASE("shared: a heap for whose labels there is no memory leaves nothing behind")
{
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    REQUIRE(ctx != nullptr);
    hak_free(ctx, hak_alloc(ctx, 100));
    REQUIRE(hak_label_define(ctx, "x") != 0);
    for (size_t room = 16 * KiB; room < 18 * KiB; room += 64) {
        REQUIRE(hak_limit(ctx, 0, stats_of(ctx).committed_bytes + room, nullptr, nullptr) == 0);
        const uint64_t fresh = stats_of(ctx).fresh_bytes;
        run_thread([&] {
            for (int i = 0; i < 20; i++)
                hak_free(ctx, hak_alloc(ctx, 100));
            hak_ctx_thread_done(ctx);
        });
        CHECK(stats_of(ctx).fresh_bytes - fresh <= 64 * KiB);
    }
    hak_ctx_destroy(ctx);
}

TEST_CASE("shared: sums at a quiet point, and never absurd before")
{
    Shared ctx;
    const size_t bound = 256 * MiB;
    std::mutex looking; // figures are exact when nobody is inside a call
    Beside poll(std::chrono::microseconds(1000), [&] {
        std::lock_guard<std::mutex> hold(looking);
        hak_stats s{};
        s.size = sizeof s;
        expect(hak_ctx_stats(ctx, &s) == 0, "stats");
        for (size_t v : {s.live_bytes, s.live_blocks, s.committed_bytes, s.cached_bytes, s.metadata_bytes,
                         s.peak_bytes, s.released_bytes, s.big_bytes, s.big_blocks, hak_ctx_live_bytes(ctx)})
            expect(v < bound, "an absurd figure in the statistics");
        hak_label_info infos[4];
        expect(hak_labels_stats(ctx, infos, 4) == 4, "labels");
        for (const hak_label_info &info : infos)
            expect(info.live_bytes < bound && info.live_blocks < bound, "an absurd figure of a label");
        hak_label_info one;
        expect(hak_label_stats(ctx, 2, &one) == 0 && one.live_bytes < bound, "one label");
    });
    Meeting meeting(3);
    std::vector<Block> passed[3];
    Crew crew(3, [&](size_t t) {
        Random random(t);
        for (unsigned round = 0; round < 6; round++) {
            // Until somebody has looked at least twice.
            for (unsigned i = 0; i < 2000 * EFFORT || (poll.calls < 2 * (round + 1) && !poll.failed()); i++) {
                if (passed[t].size() < 400 || random.below(2)) {
                    passed[t].push_back(make(ctx, some_size(random), i));
                    expect(passed[t].back().p != nullptr, "no memory");
                }
                if (passed[t].size() > 600) {
                    std::swap(passed[t].back(), passed[t][random.below(passed[t].size())]);
                    check(passed[t].back());
                    hak_free(ctx, passed[t].back().p);
                    passed[t].pop_back();
                }
            }
            meeting.meet([&] {
                std::lock_guard<std::mutex> hold(looking);
                // Blocks in sight of the test, against the accounts.
                size_t bytes = 0, blocks = 0, colour[4] = {};
                for (auto &list : passed)
                    for (const Block &b : list) {
                        size_t usable = hak_usable_size(ctx, b.p);
                        bytes += usable;
                        blocks++;
                        colour[b.id % 4] += usable;
                    }
                hak_stats s{};
                s.size = sizeof s;
                hak_ctx_stats(ctx, &s);
                expect(s.live_bytes == bytes && s.live_blocks == blocks, "live bytes at a quiet point");
                expect(s.committed_bytes == s.live_bytes + s.cached_bytes + s.metadata_bytes, "committed");
                expect(s.peak_bytes + 3 * 64 * KiB >= bytes, "peak");
                hak_label_info infos[4];
                hak_labels_stats(ctx, infos, 4);
                for (int i = 0; i < 4; i++)
                    expect(infos[i].live_bytes == colour[i], "a label at a quiet point");
                std::swap(passed[0], passed[1]); // from now on others free them
                std::swap(passed[1], passed[2]);
            });
        }
        for (Block &b : passed[t])
            hak_free(ctx, b.p);
    });
    REQUIRE(crew.join() == "");
    REQUIRE(poll.stop() == "");
    CHECK(poll.calls >= 12);
    require_empty(ctx);
}

TEST_CASE("shared: every failed allocation is counted, that of a thread without a heap, too")
{
    Shared ctx;
    hak_free(ctx, hak_alloc(ctx, 100));
    const uint64_t before = stats_of(ctx).failures;
    ctx.space.os.refuse_all(true);
    std::atomic<size_t> expected{0};
    Crew crew(4, [&](size_t) {
        for (size_t i = 0; i < 2000; i++) {
            void *p = i % 3 == 0   ? hak_alloc(ctx, 4 * MiB)
                      : i % 3 == 1 ? hak_aligned_alloc(ctx, 2 * MiB, 100)
                                   : hak_calloc(ctx, 3, MiB);
            expect(p == nullptr, "memory from nowhere");
            expected++;
        }
    });
    REQUIRE(crew.join() == "");
    ctx.space.os.refuse_all(false);
    CHECK(stats_of(ctx).failures - before == expected);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("shared: a block that a shrink could not move is freed with its size by another thread")
{
    Shared shared([](Options &o) { o.debug = HAK_DEBUG_CHECK; });
    void *large = nullptr, *p = nullptr;
    Crew crew(1, [&](size_t) {
        large = hak_alloc(shared, 1000);
        hak_limit(shared, 0, committed_of(shared), nullptr, nullptr);
        shared.space.os.refuse_all(true);
        p = hak_realloc(shared, large, 40);
        shared.space.os.refuse_all(false);
    });
    REQUIRE(crew.join() == "");
    REQUIRE((large && p == large));
    REQUIRE(hak_usable_size(shared, p) >= 1000);
    hak_free_sized(shared, p, 40);
    CHECK(shared.errors.take() == "");
    CHECK(stats_of(shared).live_blocks == 0);
}

// Blocks of every size that a magazine keeps, freed: what is at hand is not live.
TEST_CASE("the peak of a shared context begins anew within 64 KiB a thread")
{
    Shared s;
    auto churn = [&] {
        for (size_t n :
             {(size_t)40, (size_t)200, 1000 * (size_t)1, 5000 * (size_t)1, 40 * KiB, 200 * KiB, 984 * KiB})
            for (int round = 0; round < 40; round++) {
                std::vector<void *> blocks;
                for (int i = 0; i < 8; i++)
                    blocks.push_back(hak_alloc(s.ctx, n));
                for (void *p : blocks)
                    hak_free(s.ctx, p);
            }
    };
    churn();
    run_thread(churn);
    run_thread([&] {
        churn();
        hak_ctx_thread_done(s.ctx);
    });
    CHECK(stats_of(s.ctx).live_bytes == 0);
    CHECK(stats_of(s.ctx).peak_bytes >= 8 * 984 * KiB);
    // The third thread ran on the stack of the second, whose heap it took, and left it with a word.
    hak_ctx_thread_done(s.ctx);
    const size_t threads = 3;
    hak_ctx_peak_reset(s.ctx);
    CHECK(stats_of(s.ctx).peak_bytes <= threads * 64 * KiB);
    void *p = hak_alloc(s.ctx, 3 * MiB), *q = hak_alloc(s.ctx, 700 * KiB);
    const size_t live = stats_of(s.ctx).live_bytes;
    hak_free(s.ctx, p);
    hak_free(s.ctx, q);
    CHECK(stats_of(s.ctx).peak_bytes + threads * 64 * KiB >= live);
    CHECK(stats_of(s.ctx).peak_bytes <= live + threads * 64 * KiB);
    require_empty(s.ctx);
}
