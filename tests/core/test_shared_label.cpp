// Labels that come to a shared context when it has blocks, heaps and threads at work.
#include "shared.h"

#include <map>

using namespace test;

namespace
{

void without_labels(Options &options)
{
    options.labels = nullptr;
    options.label_count = 0;
}

struct Labelled {
    Block block;
    hak_label label;
};

void allocate(hak_ctx *ctx, Random &random, std::vector<Labelled> &blocks, unsigned n, hak_label label)
{
    for (unsigned i = 0; i < n; i++) {
        size_t size = some_size(random);
        Block b{hak_alloc_cs(ctx, size, label, 0), size, i};
        expect(b.p != nullptr, "no memory");
        fill(b.p, std::min(size, FILLED), i);
        blocks.push_back({b, label});
    }
}

void free_all(hak_ctx *ctx, const std::vector<std::vector<Labelled>> &threads)
{
    for (const auto &blocks : threads)
        for (const Labelled &l : blocks)
            hak_free(ctx, l.block.p);
    require_empty(ctx);
}

// What the context says of all labels, beside what the test knows.
void require_labels(hak_ctx *ctx, const std::vector<std::vector<Labelled>> &threads, hak_label last)
{
    std::map<hak_label, Totals> expected;
    for (const auto &blocks : threads)
        for (const Labelled &l : blocks) {
            check(l.block);
            REQUIRE(hak_label_of(ctx, l.block.p) == l.label);
            expected[l.label].bytes += hak_usable_size(ctx, l.block.p);
            expected[l.label].blocks++;
        }
    for (hak_label label = 0; label <= last; label++) {
        hak_label_info info{};
        REQUIRE(hak_label_stats(ctx, label, &info) == 0);
        CAPTURE(label);
        CHECK(info.live_bytes == expected[label].bytes);
        CHECK(info.live_blocks == expected[label].blocks);
    }
    require_sound(ctx);
}

} // namespace

TEST_CASE("shared: labels may come when there are heaps with blocks")
{
    constexpr size_t THREADS = 3;
    Shared ctx(without_labels);
    std::vector<std::vector<Labelled>> all(THREADS);
    Meeting meeting(THREADS);
    hak_label late = 0;
    Crew crew(THREADS, [&](size_t t) {
        Random random(t + 1);
        auto &mine = all[t];
        auto keep_half = [&](std::vector<Labelled> &of) {
            for (size_t i = 0; i < of.size() / 2; i++) {
                hak_free(ctx, of.back().block.p);
                of.pop_back();
            }
        };
        allocate(ctx, random, mine, 3000, 0);
        // Magazines and remote caches have blocks of before.
        meeting.meet();
        keep_half(all[(t + 1) % THREADS]);
        meeting.meet([&] {
            require_labels(ctx, all, 0);
            late = hak_label_define(ctx, "late");
            REQUIRE(late == 1);
            require_labels(ctx, all, late);
        });
        allocate(ctx, random, mine, 1500, late);
        allocate(ctx, random, mine, 1500, 0);
        meeting.meet([&] { require_labels(ctx, all, late); });
        keep_half(all[(t + 1) % THREADS]);
        meeting.meet();
        // Blocks that had a label are handed out without one, and the other way round.
        allocate(ctx, random, mine, 1500, 0);
        allocate(ctx, random, mine, 1500, late);
        meeting.meet([&] { require_labels(ctx, all, late); });
    });
    REQUIRE(crew.join() == "");
    // A thread that comes later has labels, too.
    run_thread([&] {
        Random random(99);
        allocate(ctx, random, all[0], 100, late);
    });
    require_labels(ctx, all, late);
    free_all(ctx, all);
    CHECK(ctx.errors.take() == "");
}

TEST_CASE("shared: small blocks that a thread has at hand have labels as soon as another thread defines one")
{
    constexpr hak_label LAST = 20; // a block of 16 bytes has no room for a label above 15
    Shared ctx(without_labels);
    std::vector<std::vector<Labelled>> all(1);
    auto &blocks = all[0];
    Random random(5);
    auto allocate_some = [&](unsigned n, hak_label most) {
        for (unsigned i = 0; i < n; i++) {
            auto label = (hak_label)(most ? random.below(most + 1u) : 0);
            size_t size = 1 + random.below(63);
            Block b{hak_alloc_cs(ctx, size, label, 0), size, i};
            REQUIRE(b.p);
            fill(b.p, size, i);
            blocks.push_back({b, label});
        }
    };
    auto free_some = [&](size_t left) {
        for (; blocks.size() > left; blocks.pop_back()) {
            std::swap(blocks[random.below(blocks.size())], blocks.back());
            hak_free(ctx, blocks.back().block.p);
        }
    };
    for (int round = 0; round < 20; round++) {
        allocate_some(40, 0);
        free_some(20);
    }
    allocate_some(100, 0);
    free_some(50);
    const size_t at_hand = stats_of(ctx).cached_bytes;
    CHECK(at_hand > 0);
    run_thread([&] {
        for (hak_label label = 1; label <= LAST; label++)
            if (hak_label_define(ctx, std::to_string(label).c_str()) != label) abort();
    });
    for (int round = 0; round < 20; round++) {
        allocate_some(40, LAST);
        require_labels(ctx, all, LAST);
        free_some(30);
    }
    free_all(ctx, all);
}

TEST_CASE("shared: labels may come while threads are at work")
{
    for (size_t round = 0; round < 4 * EFFORT; round++) {
        CAPTURE(round);
        Shared ctx(without_labels);
        std::atomic<size_t> busy{0};
        std::atomic<unsigned> last{0}; // label that is defined
        Crew crew(3, [&](size_t t) {
            Random random(t + 10 * round);
            std::vector<Labelled> blocks;
            for (unsigned i = 0; i < 4000; i++) {
                if (i == 300) busy++;
                if (blocks.size() < 200 || random.below(2)) {
                    allocate(ctx, random, blocks, 1, (hak_label)random.below(last + 1));
                    expect(hak_label_of(ctx, blocks.back().block.p) == blocks.back().label, "a label");
                } else {
                    std::swap(blocks[random.below(blocks.size())], blocks.back());
                    Labelled &l = blocks.back();
                    check(l.block);
                    size_t n = some_size(random);
                    void *p = hak_realloc(ctx, l.block.p, n);
                    expect(p != nullptr, "no memory");
                    expect(hak_label_of(ctx, p) == l.label, "the label after a realloc");
                    hak_free(ctx, p);
                    blocks.pop_back();
                }
            }
            for (Labelled &l : blocks) {
                check(l.block);
                expect(hak_label_of(ctx, l.block.p) == l.label, "the label at the end");
                hak_free(ctx, l.block.p);
            }
        });
        while (busy < 3 && !crew.failed)
            std::this_thread::yield();
        for (unsigned label = 1; label <= 2; label++) {
            CHECK(hak_label_define(ctx, std::to_string(label).c_str()) == label);
            last = label;
        }
        REQUIRE(crew.join() == "");
        require_empty(ctx);
        hak_label_info infos[3];
        REQUIRE(hak_labels_stats(ctx, infos, 3) == 3);
        for (const hak_label_info &info : infos)
            CHECK(info.live_blocks == 0);
    }
}

namespace
{

// Blocks without labels; then labels are refused: nothing changed, and another time they come.
// false = they were not refused.
bool refuse(const std::function<hak_label(Shared &)> &define)
{
    Shared ctx(without_labels);
    std::vector<std::vector<Labelled>> all(3);
    for (size_t t = 0; t < all.size(); t++)
        run_thread([&] {
            Random random(t);
            allocate(ctx, random, all[t], 500, 0);
        });
    const hak_stats before = stats_of(ctx);
    const bool refused = define(ctx) == 0;
    if (refused) {
        CHECK(hak_labels_stats(ctx, nullptr, 0) == 1);
        // The context's own data may have grown by the name.
        CHECK(stats_of(ctx).committed_bytes <= before.committed_bytes + 17 * KiB);
        require_labels(ctx, all, 0);
    }
    const hak_label label = hak_label_define(ctx, "late");
    REQUIRE(label == 1);
    run_thread([&] {
        Random random(7);
        allocate(ctx, random, all[0], 100, label);
    });
    require_labels(ctx, all, label);
    free_all(ctx, all);
    return refused;
}

} // namespace

TEST_CASE("shared: labels that are refused by the OS leave everything as it was")
{
    uint64_t nth = 0;
    bool refused;
    do {
        nth++;
        CAPTURE(nth);
        refused = refuse([&](Shared &ctx) {
            ctx.space.os.fail_nth(nth);
            hak_label label = hak_label_define(ctx, "late");
            ctx.space.os.fail_nth(0);
            return label;
        });
    } while (refused);
    CHECK(nth > 3);
}

TEST_CASE("shared: labels that are refused by the limit leave everything as it was")
{
    // So little room that one heap's label bytes fit in, or none's.
    for (size_t room : {size_t(0), 20 * KiB}) {
        CAPTURE(room);
        CHECK(refuse([&](Shared &ctx) {
            REQUIRE(hak_limit(ctx, 0, stats_of(ctx).committed_bytes + room, nullptr, nullptr) == 0);
            hak_label label = hak_label_define(ctx, "late");
            REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
            return label;
        }));
    }
}

TEST_CASE("small blocks of a large alignment that another thread freed are in no label's sum")
{
    Shared ctx;
    void *kept = hak_aligned_alloc_cs(ctx, 32 * KiB, 100, 2, 0);
    void *p = hak_aligned_alloc_cs(ctx, 32 * KiB, 100, 1, 0);
    REQUIRE((kept && p));
    CHECK(label_totals(ctx) == Totals{2 * PAGE, 2});
    Crew crew(1, [&](size_t) { hak_free(ctx, p); });
    REQUIRE(crew.join() == "");
    CHECK(stats_of(ctx).live_bytes == PAGE);
    hak_label_info info;
    REQUIRE(hak_label_stats(ctx, 1, &info) == 0);
    CHECK(info.live_blocks == 0);
    CHECK(label_totals(ctx) == Totals{PAGE, 1});
}

TEST_CASE("shared: neighbours in packed memory take labels from several threads at once")
{
    constexpr size_t BLOCKS = 12, ROUNDS = 12000 * EFFORT;
    // Halves of one label with those of the other would be a third and a fourth one, which no block ever has.
    constexpr hak_label ONE = 0x12, OTHER = 0x21, NEVER[] = {0x11, 0x22};
    Shared ctx(without_labels);
    for (hak_label label = 1; label <= 0x22; label++)
        REQUIRE(hak_label_define(ctx, std::to_string(label).c_str()) == label);
    std::vector<void *> blocks;
    std::atomic<size_t> ready{0}, busy{2};
    Crew crew;
    // Its heap has them all, and goes on to cut and to free others beside them.
    crew.add([&] {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks.push_back(hak_alloc_cs(ctx, i % 3 ? 32 + i % 2 * 8 : 16, i % 3 ? ONE : 1, 0));
            expect(blocks.back() != nullptr, "no memory");
        }
        void *packed = hak_alloc_cs(ctx, 16, 0x1F, 0);
        expect(hak_usable_size(ctx, packed) == 32, "they are packed");
        hak_free(ctx, packed);
        ready = 1;
        for (size_t i = 0; busy; i++) {
            void *p = hak_alloc_cs(ctx, 16 + i % 5 * 8, (hak_label)(i % 16 ? 3 : 0x1F), 0);
            expect(p && hak_label_of(ctx, p) == (i % 16 ? 3 : 0x1F), "the label of a new block");
            hak_free(ctx, p);
        }
    });
    for (size_t t = 0; t < 2; t++)
        crew.add([&, t] {
            while (!ready && !crew.failed)
                std::this_thread::yield();
            for (size_t round = 0; round < ROUNDS && !crew.failed; round++)
                for (size_t i = t; i < BLOCKS; i += 2) {
                    const hak_label label = i % 3 == 0  ? (hak_label)(1 + round % 15)
                                            : round % 2 ? ONE
                                                        : OTHER;
                    expect(hak_realloc_cs(ctx, blocks[i], hak_usable_size(ctx, blocks[i]), label, 0) ==
                               blocks[i],
                           "it stays");
                    expect(hak_label_of(ctx, blocks[i]) == label, "the label that it was given");
                }
            busy--;
        });
    while (busy && !crew.failed) {
        std::vector<hak_label_info> infos(0x23);
        REQUIRE(hak_labels_stats(ctx, infos.data(), infos.size()) == 0x23);
        for (hak_label label : NEVER)
            REQUIRE(infos[label].live_blocks == 0);
    }
    busy = 0;
    REQUIRE(crew.join() == "");
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t last = ROUNDS - 1;
        REQUIRE(hak_label_of(ctx, blocks[i]) == (i % 3 == 0 ? 1 + last % 15 : last % 2 ? ONE : OTHER));
        hak_free(ctx, blocks[i]);
    }
    require_empty(ctx);
}
