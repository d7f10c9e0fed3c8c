// Sizes that the caller tells: hak_realloc_sized, hak_free_sized. A right one must not be taken for the size
// of the block, which is larger, and of packed blocks no class's; a wrong one must do no harm.
#include "heap.h"

#include <algorithm>
#include <array>

using namespace test;

namespace
{

struct Slot {
    char *p = nullptr;
    size_t n = 0;
    unsigned id = 0;
};

// How a random program is run. What is told is right, or any size whatever.
struct Program {
    bool shared = false, labelled = false, trims = false, by_thread = false, lies = false;
    int which = 0;
};

std::string name_of(const Program &program)
{
    return std::string(program.shared ? "shared " : "local ") +
           (program.by_thread ? "by a thread's heap " : "") + (program.labelled ? "labelled " : "") +
           (program.trims ? "trims " : "") + (program.lies ? "wrong sizes " : "") + "variant " +
           std::to_string(program.which);
}

// Small blocks that mostly grow by small steps. After each call the block has the room asked for, and every
// block in the two pages around it has its contents.
std::string fault_of(hak_space *space, const Program &program, uint64_t seed, unsigned steps)
{
    Random random(seed);
    Options options = variant(program.which);
    options.shared = program.shared;
    TestCtx root(space, &options);
    hak_ctx *ctx = program.by_thread ? hak_ctx_thread(root) : root.ctx;
    const hak_label label = program.labelled ? hak_label_define(root, "label") : (hak_label)0;
    std::array<Slot, 60> slots;
    for (unsigned step = 0; step < steps; step++) {
        Slot &s = slots[random.below(slots.size())];
        const char *at = s.p;
        size_t told = program.lies ? random.below(random.below(4) ? 1200 : 40000) : s.n;
        if (program.trims && random.below(100) == 0) hak_ctx_trim(ctx);
        if (!s.p) {
            s.n = random.below(1000);
            s.p = static_cast<char *>(hak_alloc_cs(ctx, s.n, label, 0));
            if (!s.p) return "no memory";
        } else if (random.below(4) == 0) {
            if (!filled(s.p, s.n, s.id)) return "contents of a block that is freed";
            hak_free_sized(ctx, s.p, told);
            s.p = nullptr;
        } else {
            size_t by = 1 + random.below(14), n = random.below(4) ? s.n + by : s.n - std::min(s.n, by);
            s.p = static_cast<char *>(program.labelled ? hak_realloc_sized_cs(ctx, s.p, told, n, label, 0)
                                                       : hak_realloc_sized(ctx, s.p, told, n));
            if (!s.p) return "no memory";
            if (!filled(s.p, std::min(n, s.n), s.id)) return "contents of a block that was resized";
            s.n = n;
        }
        if (s.p) {
            if (hak_usable_size(ctx, s.p) < s.n) return "a block smaller than asked for";
            fill(s.p, s.n, s.id = step);
            at = s.p;
        }
        for (const Slot &other : slots)
            if (other.p && addr(other.p) - addr(at) + PAGE < 2 * PAGE && !filled(other.p, other.n, other.id))
                return "contents of a neighbour";
    }
    require_sound(root);
    return "";
}

} // namespace

TEST_CASE("a packed block that is larger than its class does not grow into its neighbour")
{
    const int form = GENERATE(0, 1);
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    TestCtx ctx(s.space, &options);
    auto resize = [&](void *p, size_t old, size_t n) {
        return form ? hak_realloc_sized_cs(ctx, p, old, n, 0, 0) : hak_realloc_sized(ctx, p, old, n);
    };
    void *a = hak_alloc(ctx, 256), *b = hak_alloc(ctx, 280), *next = hak_alloc(ctx, 200);
    fill(next, 200, 1);
    hak_free(ctx, a);
    hak_free(ctx, b);
    hak_ctx_trim(ctx);
    void *p = hak_alloc(ctx, 520);
    REQUIRE(p == a);
    REQUIRE(hak_usable_size(ctx, p) == 536); // where a and b were
    fill(p, 520, 2);
    size_t old = 520;
    for (size_t n : {(size_t)532, (size_t)536, (size_t)544}) {
        p = resize(p, old, n);
        REQUIRE(hak_usable_size(ctx, p) >= n);
        REQUIRE(filled(p, 520, 2));
        old = n;
    }
    std::memset(p, 0xEE, 544);
    CHECK(filled(next, 200, 1));
    CHECK(errors.take() == "");
    require_sound(ctx);
}

TEST_CASE("a packed block stays where it is while it fits")
{
    const bool shared = GENERATE(false, true), labelled = GENERATE(false, true);
    TestSpace s;
    Options options = ctx_options();
    options.shared = shared;
    TestCtx ctx(s.space, &options);
    const hak_label a = labelled ? hak_label_define(ctx, "a") : (hak_label)0;
    void *p = hak_alloc(ctx, 500), *next = hak_alloc(ctx, 24);
    const size_t size = hak_usable_size(ctx, p); // heaps of threads have wider classes
    REQUIRE(addr(next) - addr(p) == size);
    for (size_t n = 480; n <= size; n++) {
        CHECK(hak_realloc_sized_cs(ctx, p, n - 1, n, a, 0) == p);
        CHECK(hak_label_of(ctx, p) == a);
        CHECK(hak_realloc_sized(ctx, p, n, n) == p);
        CHECK(hak_label_of(ctx, p) == a);
    }
    CHECK(hak_realloc_sized(ctx, p, size, size + 1) != p);
    require_sound(ctx);
}

TEST_CASE("random programs of small steps")
{
    Program program;
    program.shared = GENERATE(false, true);
    program.labelled = GENERATE(false, true);
    program.trims = GENERATE(false, true);
    program.lies = GENERATE(false, true);
    program.which = GENERATE(0, 1, 3);
    program.by_thread = program.shared && GENERATE(false, true);
    CAPTURE(name_of(program));
    TestSpace s;
    for (uint64_t seed = 1; seed <= 2 * EFFORT; seed++) {
        CAPTURE(seed);
        REQUIRE(fault_of(s.space, program, seed, 2000) == "");
    }
}

TEST_CASE("random programs of small steps tell right sizes with HAK_DEBUG_CHECK")
{
    Program program;
    program.shared = GENERATE(false, true);
    program.trims = GENERATE(false, true);
    program.which = GENERATE(2, 4);
    CAPTURE(name_of(program));
    TestSpace s;
    for (uint64_t seed = 1; seed <= EFFORT; seed++) {
        CAPTURE(seed);
        REQUIRE(fault_of(s.space, program, seed, 2000) == "");
    }
}

TEST_CASE("no told size makes a block of a pointer that is none")
{
    const bool shared = GENERATE(false, true);
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.shared = shared;
    TestCtx ctx(s.space, &options), other(s.space);
    char local[64];
    void *theirs = hak_alloc(other, 40);
    for (void *p : {(void *)local, theirs}) {
        CHECK(hak_realloc_sized(ctx, p, 40, 39) == nullptr);
        CHECK(errors.take() == "HAK_E_FOREIGN");
        CHECK(hak_realloc_sized_cs(ctx, p, 40, 40, 0, 0) == nullptr);
        CHECK(errors.take() == "HAK_E_FOREIGN");
    }
    CHECK(hak_realloc_sized(ctx, nullptr, 0, 40) != nullptr);
    CHECK(errors.take() == "");
}

TEST_CASE("with HAK_DEBUG_CHECK the size of an aligned block of no bytes is 0, whatever it lies in")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.debug = HAK_DEBUG_CHECK;
    TestCtx ctx(s.space, &options);
    for (size_t align = 1; align <= 4 * MiB; align *= 2) {
        INFO("align " << align);
        hak_free_sized(ctx, hak_aligned_alloc(ctx, align, 0), 0);
        CHECK(errors.take() == "");
        hak_free_sized(ctx, hak_aligned_alloc(ctx, align, 0), 1);
        CHECK(errors.take() == "HAK_E_SIZE");
        hak_free_sized(ctx, hak_aligned_alloc(ctx, align, 5), 5);
        CHECK(errors.take() == "");
    }
    require_sound(ctx);
}
