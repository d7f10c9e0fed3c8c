// Counts by line, and the table beside the heap, on addresses that nothing lies at.
#include "lua_test.h"

extern "C" {
#include "profile/lines.h"
}

#include <random>
#include <unordered_map>
#include <vector>

#include <sys/resource.h>

using namespace test;

namespace
{

struct Lines {
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    hkl_lines *lines = nullptr;
    Lines()
    {
        hak_profile_options o = HAK_PROFILE_OPTIONS_INIT;
        o.mode = HAK_PROFILE_COUNTED;
        o.table_bytes = 1 << 28;
        o.user = this;
        o.gone = [](void *user) {
            auto *self = static_cast<Lines *>(user);
            if (self->lines) hkl_lines_forget(self->lines);
        };
        REQUIRE(hak_profile_start(ctx, &o) == 0);
        lines = hkl_lines_new(ctx);
        REQUIRE(lines);
    }
    Lines(const Lines &) = delete;
    Lines &operator=(const Lines &) = delete;
    ~Lines()
    {
        hkl_lines_delete(lines);
        hak_ctx_destroy(ctx);
    }
    hkl_lines *get() const
    {
        return lines;
    }
    hkl_lines *operator->() const
    {
        return lines;
    }
    uint64_t live() const
    {
        return lines->all->live_bytes;
    }
    uint64_t missed() const
    {
        return lines->all->missed;
    }
};

const void *at(uintptr_t address)
{
    return reinterpret_cast<const void *>(address);
}

unsigned number(const Lines &lines, uintptr_t frame, hak_label label = 0)
{
    return hkl_lines_number(lines.get(), &frame, 1, label);
}

hak_profile_stack stack_of(const Lines &lines, unsigned number)
{
    struct Search {
        unsigned number;
        hak_profile_stack found;
    } search = {number, {}};
    hak_profile_visit(
        lines.ctx,
        [](void *user, const hak_profile_stack *s) {
            auto *to = static_cast<Search *>(user);
            if (s->id == to->number) to->found = *s;
            return s->id != to->number;
        },
        &search);
    return search.found;
}

} // namespace

TEST_CASE("lines: blocks of 8 bytes beside each other, and of 16, are told apart")
{
    Lines lines;
    const unsigned a = number(lines, 1), b = number(lines, 2);
    const uintptr_t base = UINT64_C(0x7f0000000000);
    for (int i = 0; i < 100; i++)
        hkl_lines_made(lines.get(), at(base + 8 * i), i % 8 + 1, i % 2 ? a : b);
    for (int i = 0; i < 100; i++)
        hkl_lines_made(lines.get(), at(base + 16 * i), 16, i % 2 ? b : a);
    CHECK(stack_of(lines, a).live_blocks == 100);
    for (int i = 0; i < 100; i += 2)
        hkl_lines_freed(lines.get(), at(base + 8 * i), i % 8 + 1);
    CHECK(stack_of(lines, a).live_blocks == 100);
    CHECK(stack_of(lines, b).live_blocks == 50);
    for (int i = 1; i < 100; i += 2)
        hkl_lines_resized(lines.get(), at(base + 8 * i), i % 8 + 1, at(base + (1 << 20) + 16 * i), 24, b);
    CHECK(stack_of(lines, a).live_blocks == 50);
    CHECK(stack_of(lines, a).grown_blocks == 50);
    CHECK(stack_of(lines, b).live_bytes == 50 * 16 + 50 * 24);
}

TEST_CASE("lines: what happens to blocks all over the addresses is what a map says")
{
    Lines lines;
    struct Block {
        size_t size;
        unsigned line;
    };
    std::unordered_map<uintptr_t, Block> live;
    std::vector<uintptr_t> places;
    std::mt19937 random(1);
    double bytes[10] = {0}, blocks[10] = {0}, total = 0, peak = 0, peak_bytes[10] = {0};
    for (int i = 0; i < 10; i++)
        REQUIRE(number(lines, 100 + i) == unsigned(i + 1));
    auto put = [&](uintptr_t p, size_t size, unsigned line) {
        live[p] = {size, line};
        bytes[line - 1] += double(size);
        blocks[line - 1]++;
        total += double(size);
    };
    auto drop = [&](uintptr_t p) {
        const Block b = live[p];
        live.erase(p);
        bytes[b.line - 1] -= double(b.size);
        blocks[b.line - 1]--;
        total -= double(b.size);
        return b;
    };
    // 3000 pages of the table: its directory grows twice
    auto place = [&] {
        return (uintptr_t(random() % 3000) << 20 | uintptr_t(random() % 60000 << 4)) + (UINT64_C(1) << 40);
    };
    for (int i = 0; i < 200000; i++) {
        const size_t at_random = live.empty() ? 0 : random() % places.size();
        const size_t size = 16 + random() % 500;
        const unsigned line = unsigned(random() % 10 + 1);
        const int what = int(random() % 4);
        const uintptr_t p = place();
        if (what < 2 && !live.count(p)) {
            hkl_lines_made(lines.get(), at(p), size, line);
            put(p, size, line);
            places.push_back(p);
        } else if (what == 2 && !live.empty()) {
            const Block b = drop(places[at_random]);
            hkl_lines_freed(lines.get(), at(places[at_random]), b.size);
            places[at_random] = places.back();
            places.pop_back();
        } else if (what == 3 && !live.empty()) {
            const Block b = drop(places[at_random]);
            const bool moves = random() % 2 && !live.count(p);
            hkl_lines_resized(lines.get(), at(places[at_random]), b.size, at(moves ? p : places[at_random]),
                              size, line);
            if (moves) places[at_random] = p;
            put(places[at_random], size, moves ? line : b.line);
        }
        if (total > peak) {
            peak = total;
            for (int k = 0; k < 10; k++)
                peak_bytes[k] = bytes[k];
        }
    }
    CHECK(lines->page_room > 64);
    CHECK(lines.missed() == 0);
    for (unsigned i = 1; i <= 10; i++) {
        CHECK(stack_of(lines, i).live_bytes == bytes[i - 1]);
        CHECK(stack_of(lines, i).live_blocks == blocks[i - 1]);
        CHECK(stack_of(lines, i).peak_bytes == peak_bytes[i - 1]);
    }
}

TEST_CASE("lines: stacks of one label and of another, and more than there are numbers for")
{
    Lines lines;
    const hak_label label = hak_label_define(lines.ctx, "mine");
    const uintptr_t stack[] = {1, 2, 3};
    const unsigned a = hkl_lines_number(lines.get(), stack, 3, label);
    CHECK(hkl_lines_number(lines.get(), stack, 3, label) == a);
    CHECK(hkl_lines_number(lines.get(), stack, 2, label) != a);
    CHECK(hkl_lines_number(lines.get(), stack, 3, 0) != a);
    unsigned last = 0;
    for (uintptr_t i = 0; i < 70000; i++) {
        const unsigned n = number(lines, 1000 + i);
        if (n != 0) last = n;
    }
    CHECK(last == HKL_LINES_MOST - 1);
    CHECK(number(lines, 1000) != 0);
    CHECK(number(lines, 99999999) == 0);
    hkl_lines_made(lines.get(), at(UINT64_C(1) << 32), 32, 0);
    CHECK(lines.missed() == 1);
    hkl_lines_freed(lines.get(), at(UINT64_C(1) << 32), 32);
    CHECK(lines.live() == 0);
}

TEST_CASE("lines: a reset of the context's profile, while it runs and afterwards")
{
    Lines lines;
    const unsigned a = number(lines, 1);
    const uintptr_t base = UINT64_C(1) << 32;
    for (int i = 0; i < 100; i++)
        hkl_lines_made(lines.get(), at(base + 32 * i), 32, a);
    REQUIRE(hak_profile_reset(lines.ctx) == 0);
    for (int i = 0; i < 50; i++)
        hkl_lines_freed(lines.get(), at(base + 32 * i), 32); // of nobody by now
    CHECK(lines.live() == 0);
    const unsigned b = number(lines, 2);
    hkl_lines_made(lines.get(), at(base), 32, b);
    CHECK(stack_of(lines, b).live_blocks == 1);
    CHECK(stack_of(lines, b).frames[0] == 2);
    hkl_lines_stop(lines.get());
    REQUIRE(hak_profile_stop(lines.ctx) == 0);
    CHECK(number(lines, 3) == 0);
    REQUIRE(hak_profile_reset(lines.ctx) == 0);
    hkl_lines_freed(lines.get(), at(base), 32);
    hkl_lines_resized(lines.get(), at(base + 64), 32, at(base + 96), 64, 0);
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

TEST_CASE("lines: where the operating system gives no pages, blocks are not counted")
{
    rlimit before;
    REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 1; // less than there is: no more
    Lines lines;
    const unsigned a = number(lines, 1);
    hkl_lines_made(lines.get(), at(UINT64_C(1) << 32), 32, a);
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
    hkl_lines *refused = hkl_lines_new(lines.ctx);
    for (uintptr_t i = 0; i < 1000; i++) // pages of the table, and a wider directory
        hkl_lines_made(lines.get(), at((UINT64_C(2) << 32) + (i << 20)), 32, a);
    hkl_lines_resized(lines.get(), at(UINT64_C(1) << 32), 32, at(UINT64_C(1) << 36), 64, a);
    REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(refused == nullptr);
    CHECK(lines.missed() == 1001);
    CHECK(lines.live() == 0);
    for (uintptr_t i = 0; i < 1000; i++)
        hkl_lines_freed(lines.get(), at((UINT64_C(2) << 32) + (i << 20)), 32);
    CHECK(stack_of(lines, a).live_blocks == 0);
    CHECK(stack_of(lines, a).alloc_blocks == 1);
    hkl_lines_made(lines.get(), at(UINT64_C(2) << 32), 32, a);
    CHECK(lines.live() == 32);
}

#endif

TEST_CASE("lines: blocks from before, and none more after the end")
{
    Lines lines;
    const unsigned a = number(lines, 1), b = number(lines, 2);
    const uintptr_t base = UINT64_C(0x10000000);
    hkl_lines_freed(lines.get(), at(base), 64);
    hkl_lines_resized(lines.get(), at(base), 64, at(base), 128, a);
    hkl_lines_resized(lines.get(), at(base), 64, at(base + 512), 32,
                      0); // a foreign realloc that shrinks moves
    CHECK(lines.live() == 0);
    CHECK(lines.missed() == 0);
    hkl_lines_resized(lines.get(), at(base), 64, at(base + 1024), 128,
                      a); // it moved: a block of the profile's now
    CHECK(stack_of(lines, a).live_bytes == 128);
    hkl_lines_resized(lines.get(), at(base + 1024), 128, at(base + 1024), 100, b);
    CHECK(stack_of(lines, a).live_bytes == 100);
    CHECK(stack_of(lines, a).alloc_bytes == 128);
    hkl_lines_resized(lines.get(), at(base + 1024), 100, at(base + 2048), 90, 0); // a shrink that moved
    CHECK(stack_of(lines, a).live_bytes == 90);
    hkl_lines_stop(lines.get());
    hkl_lines_made(lines.get(), at(base + 4096), 64, 0);
    hkl_lines_made(lines.get(), at(UINT64_C(0x770000000)), 64, 0);
    hkl_lines_freed(lines.get(), at(base + 4096), 64);
    CHECK(lines.missed() == 0);
    hkl_lines_freed(lines.get(), at(base + 2048), 90);
    CHECK(stack_of(lines, a).live_blocks == 0);
    CHECK(stack_of(lines, b).alloc_blocks == 0);
    CHECK(lines.live() == 0);
}
