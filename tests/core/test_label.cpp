// Labels: names, exact accounts at any moment, labels that come late, relabelling, visits.
#include "heap.h"

#include <map>
#include <set>

using namespace test;

namespace
{

struct Account {
    std::map<hak_label, Totals> labels;
    void add(hak_label label, size_t bytes)
    {
        labels[label].bytes += bytes;
        labels[label].blocks++;
    }
    void sub(hak_label label, size_t bytes)
    {
        labels[label].bytes -= bytes;
        labels[label].blocks--;
    }
    Totals of(hak_label label) const
    {
        auto it = labels.find(label);
        return it == labels.end() ? Totals{} : it->second;
    }
};

// Compares all three ways to ask with the account kept by the test.
void require_accounts(const hak_ctx *ctx, const Account &account, int labels)
{
    std::vector<hak_label_info> infos((size_t)labels + 8);
    REQUIRE(hak_labels_stats(ctx, infos.data(), infos.size()) == labels + 1);
    for (int i = 0; i <= labels; i++) {
        const hak_label_info &info = infos[(size_t)i];
        Totals expected = account.of(info.label);
        CAPTURE(info.label);
        REQUIRE(info.live_bytes == expected.bytes);
        REQUIRE(info.live_blocks == expected.blocks);
        REQUIRE(std::string(info.name) == hak_label_name(ctx, info.label));
        hak_label_info one;
        REQUIRE(hak_label_stats(ctx, info.label, &one) == 0);
        REQUIRE(one.live_bytes == expected.bytes);
        REQUIRE(one.live_blocks == expected.blocks);
        REQUIRE(one.label == info.label);
        REQUIRE(std::string(one.name) == info.name);
    }
    Account visited;
    hak_ctx_visit(
        ctx,
        [](void *user, const hak_block *block) {
            static_cast<Account *>(user)->add(block->label, block->size);
            return true;
        },
        &visited);
    for (int i = 0; i <= labels; i++)
        REQUIRE(visited.of(infos[(size_t)i].label) == account.of(infos[(size_t)i].label));
    require_sound(ctx);
}

const size_t MIXED[] = {0,    8,    16,   24,   40,   64,   100,  200,   256,   500,    512,    600,
                        1000, 1500, 2048, 3000, 5000, 8192, 9000, 30000, 70000, 300000, 1500000};

} // namespace

TEST_CASE("a name has one label, and is copied")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(s.space, &options);
    char name[] = "string";
    hak_label string = hak_label_define(ctx, name);
    REQUIRE(string != 0);
    name[0] = 'X';
    CHECK(std::string(hak_label_name(ctx, string)) == "string");
    CHECK(hak_label_define(ctx, "string") == string);
    hak_label table = hak_label_define(ctx, "table");
    CHECK(table != string);
    CHECK(table != 0);
    CHECK(std::string(hak_label_name(ctx, 0)) == "");
    CHECK(hak_label_name(ctx, (hak_label)(std::max(string, table) + 1)) == nullptr);
    CHECK(hak_label_name(ctx, 65535) == nullptr);
    CHECK(errors.take() == "");

    CHECK(hak_label_define(ctx, nullptr) == 0);
    CHECK(errors.take() == "HAK_E_LABEL");
    CHECK(hak_label_define(ctx, "") == 0);
    CHECK(errors.take() == "HAK_E_LABEL");
    CHECK(hak_label_define(ctx, std::string(64, 'a').c_str()) == 0);
    CHECK(errors.take() == "HAK_E_LABEL");
    CHECK(hak_label_define(ctx, std::string(63, 'a').c_str()) != 0);
    CHECK(errors.take() == "");

    // Labels are a context's own.
    TestCtx other(s.space);
    CHECK(hak_label_name(other, string) == nullptr);
    hak_label_info info;
    CHECK(hak_label_stats(other, string, &info) == -1);
    CHECK(hak_label_stats(ctx, 65535, &info) == -1);
    CHECK(hak_label_stats(ctx, string, &info) == 0);
}

TEST_CASE("names that the limit refuses take no memory")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (size_t i = 0; i < 8 * MiB / 64; i++)
        REQUIRE(hak_alloc(ctx, 64) != nullptr);
    // Room for thousands of names, but not for a label byte a block.
    REQUIRE(hak_limit(ctx, 0, stats_of(ctx).committed_bytes + 96 * KiB, nullptr, nullptr) == 0);
    REQUIRE(hak_label_define(ctx, "first") == 0);
    const size_t before = stats_of(ctx).metadata_bytes;
    for (int i = 0; i < 3000; i++)
        REQUIRE(hak_label_define(ctx, ("a name " + std::to_string(i)).c_str()) == 0);
    CHECK(stats_of(ctx).metadata_bytes == before);
    REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
    CHECK(hak_label_define(ctx, "first") == 1);
    require_sound(ctx);
}

TEST_CASE("253 labels, all exact")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(s.space, &options);
    Account account;
    std::vector<hak_label> labels;
    for (int i = 0; i < HAK_LABELS_MAX; i++) {
        labels.push_back(hak_label_define(ctx, ("label " + std::to_string(i)).c_str()));
        REQUIRE(labels.back() != 0);
    }
    CHECK(errors.take() == "");
    CHECK(hak_label_define(ctx, "one too many") == 0);
    CHECK(errors.take() == "HAK_E_LABEL");
    CHECK(hak_label_define(ctx, "label 100") == labels[100]);
    for (size_t i = 0; i < 20000; i++) {
        hak_label label = labels[i % labels.size()];
        void *p = hak_alloc_cs(ctx, i % 300, label, 0);
        REQUIRE(hak_label_of(ctx, p) == label);
        account.add(label, hak_usable_size(ctx, p));
    }
    require_accounts(ctx, account, HAK_LABELS_MAX);
    // A short array gets as many as it holds, and the count of all.
    hak_label_info two[2];
    CHECK(hak_labels_stats(ctx, two, 2) == HAK_LABELS_MAX + 1);
    CHECK(hak_labels_stats(ctx, nullptr, 0) == HAK_LABELS_MAX + 1);
}

TEST_CASE("the sum of the labels is the total, at random moments")
{
    int which = GENERATE(0, 1, 2, 3);
    CAPTURE(which);
    TestSpace s;
    Options options = variant(which);
    TestCtx ctx(s.space, &options);
    Account account;
    struct Block {
        void *p;
        size_t n;
        hak_label label;
    };
    std::vector<Block> blocks;
    Random random(99 + (unsigned)which);
    const int labels = 12;
    for (int i = 0; i < labels; i++)
        REQUIRE(hak_label_define(ctx, ("part" + std::to_string(i)).c_str()) == i + 1);
    for (size_t step = 0; step < 6000 * EFFORT; step++) {
        size_t n = MIXED[random.below(random.below(20) ? 15 : sizeof MIXED / sizeof *MIXED)];
        hak_label label = (hak_label)random.below(labels + 1);
        size_t what = random.below(blocks.size() < 3000 ? 10 : 6);
        if (blocks.empty() || what >= 4) {
            void *p = what == 4   ? hak_calloc_cs(ctx, 1, n, label, 1)
                      : what == 5 ? hak_aligned_alloc_cs(ctx, 64, n, label, 1)
                                  : hak_alloc_cs(ctx, n, label, 1);
            REQUIRE(p != nullptr);
            account.add(label, hak_usable_size(ctx, p));
            blocks.push_back({p, n, label});
        } else {
            size_t i = random.below(blocks.size());
            Block &b = blocks[i];
            account.sub(b.label, hak_usable_size(ctx, b.p));
            if (what < 3) {
                hak_free(ctx, b.p);
                b = blocks.back();
                blocks.pop_back();
            } else {
                if (random.below(2)) {
                    b.p = hak_realloc_cs(ctx, b.p, n, label, 1);
                    b.label = label;
                } else {
                    b.p = hak_realloc(ctx, b.p, n);
                }
                REQUIRE(b.p != nullptr);
                REQUIRE(hak_label_of(ctx, b.p) == b.label);
                account.add(b.label, hak_usable_size(ctx, b.p));
            }
        }
        if (step % 1777 == 0) {
            if (random.below(3) == 0) hak_ctx_flush(ctx);
            if (random.below(3) == 0) hak_ctx_trim(ctx);
            require_accounts(ctx, account, labels);
        }
    }
    for (const Block &b : blocks)
        REQUIRE(hak_label_of(ctx, b.p) == b.label);
    for (const Block &b : blocks)
        hak_free(ctx, b.p);
    require_accounts(ctx, Account{}, labels);
}

TEST_CASE("realloc: with _cs the block takes the label, also in place; without it keeps its own")
{
    TestSpace s;
    TestCtx ctx(s.space);
    hak_label a = hak_label_define(ctx, "a"), b = hak_label_define(ctx, "b");
    for (size_t from : MIXED)
        for (size_t to : MIXED) {
            CAPTURE(from, to);
            void *p = hak_alloc_cs(ctx, from, a, 0);
            p = hak_realloc(ctx, p, to);
            REQUIRE(hak_label_of(ctx, p) == a);
            p = hak_realloc_sized(ctx, p, to, from);
            REQUIRE(hak_label_of(ctx, p) == a);
            p = hak_realloc_cs(ctx, p, from, b, 0);
            REQUIRE(hak_label_of(ctx, p) == b);
            p = hak_realloc_cs(ctx, p, to, a, 0);
            REQUIRE(hak_label_of(ctx, p) == a);
            p = hak_realloc_sized_cs(ctx, p, to, from, b, 0);
            REQUIRE(hak_label_of(ctx, p) == b);
            p = hak_realloc_sized_cs(ctx, p, from, from, 0, 0);
            REQUIRE(hak_label_of(ctx, p) == 0);
            hak_free(ctx, p);
        }
}

TEST_CASE("labels may come when blocks exist already")
{
    int which = GENERATE(0, 1, 2, 3);
    CAPTURE(which);
    TestSpace s;
    Options options = variant(which);
    TestCtx ctx(s.space, &options);
    Account account;
    std::vector<void *> early;
    auto grow = [&](hak_label label) {
        for (int round = 0; round < 60; round++)
            for (size_t n : MIXED)
                if (n < 10000 || round == 0) {
                    void *p = label ? hak_alloc_cs(ctx, n, label, 0) : hak_alloc(ctx, n);
                    REQUIRE(p != nullptr);
                    account.add(label, hak_usable_size(ctx, p));
                    early.push_back(p);
                }
    };
    grow(0);
    require_accounts(ctx, account, 0);
    hak_label late = hak_label_define(ctx, "late");
    REQUIRE(late != 0);
    require_accounts(ctx, account, 1);
    grow(late);
    grow(0);
    require_accounts(ctx, account, 1);
    // Blocks freed and handed out again take the label of the new owner.
    for (size_t i = 0; i < early.size(); i += 2) {
        account.sub(hak_label_of(ctx, early[i]), hak_usable_size(ctx, early[i]));
        hak_free(ctx, early[i]);
    }
    require_accounts(ctx, account, 1);
    hak_label later = hak_label_define(ctx, "later");
    grow(later);
    grow(0);
    require_accounts(ctx, account, 2);
}

TEST_CASE("blocks above 1 KiB that are at hand take a label, whether it came before their magazine or after")
{
    const bool before = GENERATE(true, false);
    TestSpace s;
    TestCtx ctx(s.space);
    hak_label a = before ? hak_label_define(ctx, "a") : hak_label(0);
    for (size_t n :
         {size_t(1025), size_t(5000), size_t(32768), size_t(32769), size_t(64 * 1024), size_t(MiB)}) {
        CAPTURE(before, n);
        // Its class gets a magazine.
        for (int i = 0; i < 40; i++)
            hak_free(ctx, hak_alloc(ctx, n));
    }
    if (!before) a = hak_label_define(ctx, "a");
    REQUIRE(a != 0);
    for (size_t n :
         {size_t(1025), size_t(5000), size_t(32768), size_t(32769), size_t(64 * 1024), size_t(MiB)}) {
        CAPTURE(before, n);
        void *p = hak_alloc_cs(ctx, n, a, 0);
        CHECK(hak_usable_size(ctx, p) >= n);
        CHECK(hak_label_of(ctx, p) == a);
        hak_free(ctx, p);
        void *q = hak_alloc(ctx, n);
        CHECK(q == p);
        CHECK(hak_label_of(ctx, q) == 0);
        hak_free(ctx, q);
    }
    hak_label_info info{};
    CHECK(hak_label_stats(ctx, a, &info) == 0);
    CHECK(info.live_bytes == 0);
}

TEST_CASE("an undefined label is booked somewhere, and the sums stay exact")
{
    int which = GENERATE(0, 1, 2);
    CAPTURE(which);
    TestSpace s;
    Options options = variant(which);
    TestCtx ctx(s.space, &options);
    hak_label a = hak_label_define(ctx, "a");
    std::vector<void *> blocks;
    for (int round = 0; round < 5; round++)
        for (size_t n : MIXED)
            for (int label : {2, 77, 253, 254, 255, 256, 257, 512, 65535}) {
                CAPTURE(n, label);
                void *p = hak_alloc_cs(ctx, n, (hak_label)label, 0);
                REQUIRE(hak_label_of(ctx, p) <= a);
                p = hak_realloc_cs(ctx, p, n, a, 0);
                REQUIRE(hak_label_of(ctx, p) == a);
                p = hak_realloc_cs(ctx, p, n, (hak_label)label, 0);
                REQUIRE(hak_label_of(ctx, p) <= a);
                blocks.push_back(p);
            }
    require_sound(ctx);
    CHECK(stats_of(ctx).live_blocks == blocks.size());
    for (int i = 2; i <= HAK_LABELS_MAX; i++)
        REQUIRE(hak_label_define(ctx, ("later" + std::to_string(i)).c_str()) != 0);
    require_sound(ctx);
    int local = 0;
    CHECK(hak_label_of(ctx, &local) == 0);
    CHECK(hak_label_of(ctx, nullptr) == 0);
}

TEST_CASE("a visit tells labels that nobody defined as 0")
{
    size_t packed = GENERATE((size_t)0, HAK_NONE);
    TestSpace space;
    Options options = ctx_options();
    options.packed_bytes = packed;
    TestCtx ctx(space.space, &options);
    REQUIRE(hak_label_define(ctx, "one") == 1);
    for (size_t n : {(size_t)24, (size_t)700, (size_t)40 * KiB, 2 * MiB})
        REQUIRE(hak_alloc_cs(ctx, n, 200, 0) != nullptr);
    hak_ctx_visit(
        ctx,
        [](void *, const hak_block *block) {
            CHECK(block->label == 0);
            return true;
        },
        nullptr);
}

TEST_CASE("a visit can be stopped")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (int i = 0; i < 100; i++)
        REQUIRE(hak_alloc(ctx, 10) != nullptr);
    int seen = 0;
    int rc = hak_ctx_visit(
        ctx, [](void *user, const hak_block *) { return ++*static_cast<int *>(user) < 7; }, &seen);
    CHECK(rc == 1);
    CHECK(seen == 7);
}

TEST_CASE("an unlabelled context pays nothing for labels")
{
    auto metadata = [](bool labelled) {
        TestSpace s;
        Options options = ctx_options();
        options.packed_bytes = HAK_NONE;
        TestCtx ctx(s.space, &options);
        hak_label label = labelled ? hak_label_define(ctx, "x") : (hak_label)0;
        for (int i = 0; i < 200000; i++)
            REQUIRE(hak_alloc_cs(ctx, 24, label, 0) != nullptr);
        return stats_of(ctx).metadata_bytes;
    };
    CHECK(metadata(false) < metadata(true));
}

TEST_CASE("slabs of like label bytes lie together, so that few pages of these are touched")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    hak_label label = hak_label_define(ctx, "x");
    // Size, and bytes of blocks whose label bytes share a page.
    const std::pair<size_t, size_t> sizes[] = {
        {24, 64 << 10}, {48, 128 << 10}, {96, 256 << 10}, {200, 512 << 10}};
    const size_t each = (size_t)4 << 20;
    std::map<size_t, std::set<uintptr_t>> pages;
    for (size_t done = 0; done < each; done += 4096) {
        for (auto [size, span] : sizes) {
            for (size_t n = 0; n < 4096; n += size) {
                void *p = hak_alloc_cs(ctx, size, label, 0);
                REQUIRE(p != nullptr);
                pages[size].insert((uintptr_t)p / span);
            }
        }
    }
    for (auto [size, span] : sizes) {
        CAPTURE(size);
        CHECK(pages[size].size() <= each / span * 5 / 4 + 4);
    }
    require_sound(ctx);
}
