// Misuse: what is always noticed, what with HAK_DEBUG_CHECK and HAK_DEBUG_POISON, and what the error
// callback is told.
#define HAK_NO_ATTRIBUTES // It asks for more than there can be, and writes behind blocks.
#include "heap.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

using namespace test;

namespace
{

struct Checked {
    TestSpace s;
    Errors errors;
    Options options;
    hak_ctx *ctx;

    explicit Checked(unsigned debug = 0, size_t packed = HAK_NONE, bool shared = false)
        : options(ctx_options(&errors))
    {
        options.debug = debug;
        options.packed_bytes = packed;
        options.shared = shared;
        ctx = hak_ctx_new(s.space, &options);
        REQUIRE(ctx != nullptr);
    }
    ~Checked()
    {
        hak_ctx_destroy(ctx);
    }

    // The one error so far is this, about p.
    void require_one(hak_error error, const void *p)
    {
        REQUIRE(errors.list.size() == 1);
        CAPTURE(errors.list[0].what);
        CHECK(std::string(hak_error_name(errors.list[0].error)) == hak_error_name(error));
        CHECK(errors.list[0].p == p);
        CHECK(errors.list[0].what != "");
        errors.list.clear();
    }
};

} // namespace

TEST_CASE("names of the errors, and the version")
{
    CHECK(std::string(hak_error_name(HAK_OK)) == "HAK_OK");
    CHECK(std::string(hak_error_name(HAK_E_FOREIGN)) == "HAK_E_FOREIGN");
    CHECK(std::string(hak_error_name(HAK_E_DOUBLE_FREE)) == "HAK_E_DOUBLE_FREE");
    CHECK(std::string(hak_error_name(HAK_E_POINTER)) == "HAK_E_POINTER");
    CHECK(std::string(hak_error_name(HAK_E_SIZE)) == "HAK_E_SIZE");
    CHECK(std::string(hak_error_name(HAK_E_ALIGNMENT)) == "HAK_E_ALIGNMENT");
    CHECK(std::string(hak_error_name(HAK_E_OVERFLOW)) == "HAK_E_OVERFLOW");
    CHECK(std::string(hak_error_name(HAK_E_LABEL)) == "HAK_E_LABEL");
    CHECK(std::string(hak_error_name(HAK_E_USE_AFTER_FREE)) == "HAK_E_USE_AFTER_FREE");
    CHECK(std::string(hak_error_name(HAK_E_CORRUPT)) == "HAK_E_CORRUPT");
    CHECK(hak_error_name((hak_error)15) != nullptr);
    CHECK(std::string(hak_version()) == std::to_string(HAK_VERSION_MAJOR) + "." +
                                            std::to_string(HAK_VERSION_MINOR) + "." +
                                            std::to_string(HAK_VERSION_PATCH));
}

TEST_CASE("foreign pointers are reported and not touched")
{
    unsigned debug = GENERATE(0u, (unsigned)HAK_DEBUG_CHECK);
    Checked c(debug);
    TestCtx other(c.s.space);
    char local[64] = "local";
    static char data[64] = "static";
    void *theirs = hak_alloc(other, 100), *their_big = hak_alloc(other, 2 * MiB);
    fill(theirs, 100, 1);
    std::string heap(1000, 'h');
    void *wild = reinterpret_cast<void *>((uintptr_t)0x123456789AB0),
         *tiny = reinterpret_cast<void *>((uintptr_t)16);
    void *huge = reinterpret_cast<void *>(~(uintptr_t)15);
    for (void *p : {(void *)local, (void *)data, theirs, their_big, (void *)&heap[0], wild, tiny, huge}) {
        CAPTURE(p);
        hak_free(c.ctx, p);
        c.require_one(HAK_E_FOREIGN, p);
        hak_free_cs(c.ctx, p, 1);
        c.require_one(HAK_E_FOREIGN, p);
        CHECK(hak_realloc(c.ctx, p, 50) == nullptr);
        c.require_one(HAK_E_FOREIGN, p);
        CHECK(hak_realloc_cs(c.ctx, p, 5000, 0, 0) == nullptr);
        c.require_one(HAK_E_FOREIGN, p);
        CHECK(hak_usable_size(c.ctx, p) == 0);
        CHECK(hak_block_size(c.ctx, p) == 0);
        CHECK(hak_label_of(c.ctx, p) == 0);
        CHECK_FALSE(hak_owns(c.ctx, p));
    }
    CHECK(c.errors.take() == "");
    CHECK(std::string(local) == "local");
    CHECK(filled(theirs, 100, 1));
    CHECK(stats_of(other).live_blocks == 2);
    CHECK(stats_of(c.ctx).live_blocks == 0);
    require_sound(c.ctx);
    require_sound(other);
}

TEST_CASE("absurd sizes are told to a thread that has no heap, too")
{
    TestSpace s;
    Errors errors;
    Options options = ctx_options(&errors);
    options.shared = true;
    hak_ctx *ctx = hak_ctx_new(s.space, &options);
    REQUIRE(ctx != nullptr);
    void *p = hak_alloc(ctx, 100);
    fill(p, 100, 1);
    hak_ctx_retire(ctx); // from here on no thread has one
    for (size_t n : {(size_t)PTRDIFF_MAX, SIZE_MAX - 15, SIZE_MAX}) {
        CAPTURE(n);
        CHECK(hak_realloc(ctx, p, n) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_realloc_cs(ctx, p, n, 0, 1) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_realloc_sized(ctx, p, 100, n) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_aligned_realloc(ctx, p, 64, n) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_realloc(ctx, nullptr, n) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_alloc(ctx, n) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_calloc(ctx, n, 2) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_aligned_calloc(ctx, 64, 1, n) == nullptr);
        CHECK(errors.take() == "HAK_E_OVERFLOW");
    }
    CHECK(hak_realloc(ctx, p, 100000) == nullptr);
    CHECK(hak_realloc(ctx, static_cast<char *>(p) + 1, SIZE_MAX) == nullptr);
    CHECK(errors.take() == "HAK_E_POINTER");
    CHECK(filled(p, 100, 1));
    hak_free(ctx, p);
}

TEST_CASE("overflow and absurd sizes")
{
    Checked c(GENERATE(0u, (unsigned)HAK_DEBUG_CANARY, (unsigned)HAK_DEBUG_QUARANTINE));
    const size_t absurd = (size_t)PTRDIFF_MAX + 1;
    CHECK(hak_calloc(c.ctx, SIZE_MAX, 2) == nullptr);
    CHECK(c.errors.take() == "HAK_E_OVERFLOW");
    CHECK(hak_calloc(c.ctx, (size_t)1 << 33, (size_t)1 << 33) == nullptr);
    CHECK(c.errors.take() == "HAK_E_OVERFLOW");
    CHECK(hak_calloc_cs(c.ctx, SIZE_MAX / 2, 3, 0, 0) == nullptr);
    CHECK(c.errors.take() == "HAK_E_OVERFLOW");
    for (size_t n : {(size_t)PTRDIFF_MAX, absurd, SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX - 7, SIZE_MAX}) {
        CAPTURE(n);
        CHECK(hak_aligned_calloc(c.ctx, 64, 1, n) == nullptr);
        CHECK(c.errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_aligned_realloc(c.ctx, nullptr, 8, n) == nullptr);
        CHECK(c.errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_alloc(c.ctx, n) == nullptr);
        CHECK(c.errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_calloc(c.ctx, 1, n) == nullptr);
        CHECK(c.errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_aligned_alloc(c.ctx, 64, n) == nullptr);
        CHECK(c.errors.take() == "HAK_E_OVERFLOW");
        CHECK(hak_realloc(c.ctx, nullptr, n) == nullptr);
        CHECK(c.errors.take() == "HAK_E_OVERFLOW");
    }
    // No memory is no misuse.
    CHECK(hak_alloc(c.ctx, PTRDIFF_MAX - GiB) == nullptr);
    CHECK(hak_alloc(c.ctx, (size_t)1 << 50) == nullptr);
    CHECK(hak_aligned_alloc(c.ctx, GiB, PTRDIFF_MAX - GiB) == nullptr);
    CHECK(c.errors.take() == "");
    CHECK(hak_calloc(c.ctx, 0, SIZE_MAX) != nullptr);
    CHECK(hak_calloc(c.ctx, SIZE_MAX, 0) != nullptr);
    CHECK(c.errors.take() == "");
    require_sound(c.ctx);
}

TEST_CASE("alignments that are no power of two, or absurd")
{
    Checked c;
    for (size_t align :
         {(size_t)0, (size_t)3, (size_t)24, (size_t)4097, 2 * GiB, (size_t)1 << 63, SIZE_MAX}) {
        CAPTURE(align);
        CHECK(hak_aligned_alloc(c.ctx, align, 100) == nullptr);
        CHECK(c.errors.take() == "HAK_E_ALIGNMENT");
        CHECK(hak_aligned_alloc_cs(c.ctx, align, 100, 0, 0) == nullptr);
        CHECK(c.errors.take() == "HAK_E_ALIGNMENT");
    }
}

TEST_CASE("double free of a block above 1 MiB is noticed at once, of a run when it leaves the magazine")
{
    unsigned debug = GENERATE(0u, (unsigned)HAK_DEBUG_CHECK);
    size_t n = GENERATE((size_t)8193, (size_t)20000, (size_t)100000, (size_t)900000, 2 * MiB, 30 * MiB);
    CAPTURE(debug, n);
    Checked c(debug);
    // Runs that come and go get a magazine.
    for (int i = 0; i < 40; i++)
        hak_free(c.ctx, hak_alloc(c.ctx, n));
    std::vector<void *> keep;
    for (int i = 0; i < 3; i++)
        keep.push_back(hak_alloc(c.ctx, n));
    void *p = keep[1];
    keep.erase(keep.begin() + 1);
    hak_free(c.ctx, p);
    CHECK(c.errors.take() == "");
    hak_stats before = stats_of(c.ctx);
    hak_free(c.ctx, p);
    if (n <= MiB && !debug) hak_ctx_flush(c.ctx);
    REQUIRE(c.errors.list.size() == 1);
    // Memory that went back to the space or the OS meanwhile is not the context's any more.
    bool gone = !hak_owns(c.ctx, p) && c.errors.list[0].error == HAK_E_FOREIGN;
    c.require_one(gone ? HAK_E_FOREIGN : HAK_E_DOUBLE_FREE, p);
    CHECK(stats_of(c.ctx).live_bytes == before.live_bytes);
    CHECK(stats_of(c.ctx).live_blocks == 2);
    CHECK(hak_usable_size(c.ctx, p) == 0);
    require_sound(c.ctx);
    for (void *q : keep)
        hak_free(c.ctx, q);
    CHECK(c.errors.take() == "");
}

TEST_CASE("double free of a small block: at once with HAK_DEBUG_CHECK")
{
    size_t n =
        GENERATE((size_t)0, (size_t)16, (size_t)40, (size_t)500, (size_t)700, (size_t)3000, (size_t)8192);
    size_t packed = GENERATE((size_t)0, HAK_NONE);
    CAPTURE(n, packed);
    Checked c(HAK_DEBUG_CHECK, packed);
    void *keep = hak_alloc(c.ctx, n), *p = hak_alloc(c.ctx, n), *keep2 = hak_alloc(c.ctx, n);
    hak_free(c.ctx, p);
    CHECK(c.errors.take() == "");
    hak_free(c.ctx, p);
    c.require_one(HAK_E_DOUBLE_FREE, p);
    hak_free_sized(c.ctx, p, n);
    c.require_one(HAK_E_DOUBLE_FREE, p);
    CHECK(hak_realloc(c.ctx, p, n + 1) == nullptr);
    CHECK(c.errors.list.size() == 1);
    c.errors.list.clear();
    CHECK(stats_of(c.ctx).live_blocks == 2);
    require_sound(c.ctx);
    // The dropped frees did no harm: two blocks of this size are two.
    void *a = hak_alloc(c.ctx, n), *b = hak_alloc(c.ctx, n);
    CHECK(a != b);
    hak_free(c.ctx, keep);
    hak_free(c.ctx, keep2);
    CHECK(stats_of(c.ctx).live_blocks == 2);
    CHECK(c.errors.take() == "");
}

TEST_CASE("double free of a small block: without debug when it leaves the magazine")
{
    size_t n = GENERATE((size_t)16, (size_t)40, (size_t)500, (size_t)700, (size_t)3000);
    size_t packed = GENERATE((size_t)0, HAK_NONE);
    CAPTURE(n, packed);
    Checked c(0, packed);
    std::vector<void *> keep;
    for (int i = 0; i < 20; i++)
        keep.push_back(hak_alloc(c.ctx, n));
    void *p = hak_alloc(c.ctx, n);
    hak_free(c.ctx, p);
    hak_free(c.ctx, p);
    hak_ctx_flush(c.ctx);
    c.require_one(HAK_E_DOUBLE_FREE, p);
    CHECK(stats_of(c.ctx).live_blocks == keep.size());
    require_sound(c.ctx);
    void *a = hak_alloc(c.ctx, n), *b = hak_alloc(c.ctx, n);
    CHECK(a != b);
    require_sound(c.ctx);
}

TEST_CASE("a pointer into the middle of a block")
{
    size_t n =
        GENERATE((size_t)40, (size_t)64, (size_t)500, (size_t)3000, (size_t)20000, (size_t)300000, 2 * MiB);
    unsigned debug = GENERATE(0u, (unsigned)HAK_DEBUG_CHECK);
    size_t packed = GENERATE((size_t)0, HAK_NONE);
    CAPTURE(n, debug, packed);
    Checked c(debug, packed);
    char *p = static_cast<char *>(hak_alloc(c.ctx, n));
    for (size_t offset : {(size_t)1, (size_t)8, n / 2, n - 1}) {
        CAPTURE(offset);
        hak_free(c.ctx, p + offset);
        hak_ctx_flush(c.ctx);
        c.require_one(HAK_E_POINTER, p + offset);
        REQUIRE(hak_usable_size(c.ctx, p) >= n);
        REQUIRE(stats_of(c.ctx).live_blocks == 1);
    }
    if (debug) {
        CHECK(hak_realloc(c.ctx, p + 8, 2 * n) == nullptr);
        c.require_one(HAK_E_POINTER, p + 8);
    }
    require_sound(c.ctx);
    hak_free(c.ctx, p);
    CHECK(c.errors.take() == "");
}

TEST_CASE("a second free tells DOUBLE_FREE although the memory went back, with HAK_DEBUG_CHECK")
{
    const bool shared = GENERATE(false, true);
    const size_t n = GENERATE((size_t)3000, 30 * KiB, 65535 - (size_t)1, (size_t)65535, 100 * KiB, MiB);
    CAPTURE(shared, n);
    Checked c(HAK_DEBUG_CHECK, HAK_NONE, shared);
    TestCtx other(c.s.space);
    void *p = hak_alloc(c.ctx, n), *theirs = nullptr;
    hak_free(c.ctx, p);
    hak_ctx_trim(c.ctx);
    CHECK_FALSE(hak_owns(c.ctx, p));
    for (int i = 0; i < 2; i++) {
        hak_free(c.ctx, p);
        c.require_one(HAK_E_DOUBLE_FREE, p);
        CHECK(hak_realloc(c.ctx, p, n) == nullptr);
        c.require_one(HAK_E_DOUBLE_FREE, p);
        hak_free(c.ctx, static_cast<char *>(p) + 8);
        c.require_one(HAK_E_FOREIGN, static_cast<char *>(p) + 8);
    }
    // The memory of another context is its own.
    for (int i = 0; i < 100 && hak_ctx_of(c.s.space, p) != other; i++)
        REQUIRE((theirs = hak_alloc(other, n)) != nullptr);
    REQUIRE(hak_ctx_of(c.s.space, p) == other);
    hak_free(c.ctx, p);
    c.require_one(HAK_E_FOREIGN, p);
    CHECK(hak_usable_size(other, theirs) >= n);
    require_sound(other);
    require_sound(c.ctx);
}

TEST_CASE("realloc of a free block or into the middle of one is detected with HAK_DEBUG_CHECK, in place too")
{
    const bool shared = GENERATE(false, true);
    const size_t n = GENERATE((size_t)40, (size_t)500, (size_t)3000, 30 * KiB, 100 * KiB, 2 * MiB);
    CAPTURE(shared, n);
    Checked c(HAK_DEBUG_CHECK, 0, shared);
    void *keep = hak_alloc(c.ctx, n);
    char *p = static_cast<char *>(hak_alloc(c.ctx, n));
    for (size_t to : {n, n - 1, n + 1, 2 * n}) {
        CHECK(hak_realloc(c.ctx, p + 8, to) == nullptr);
        c.require_one(HAK_E_POINTER, p + 8);
        CHECK(hak_realloc_sized_cs(c.ctx, p + 8, n, to, 0, 0) == nullptr);
        c.require_one(HAK_E_POINTER, p + 8);
    }
    hak_free(c.ctx, p);
    for (size_t to : {n, n - 1, n + 1, 2 * n}) {
        CHECK(hak_realloc(c.ctx, p, to) == nullptr);
        c.require_one(HAK_E_DOUBLE_FREE, p);
        CHECK(hak_realloc_sized(c.ctx, p, n, to) == nullptr);
        c.require_one(HAK_E_DOUBLE_FREE, p);
    }
    CHECK(stats_of(c.ctx).live_blocks == 1);
    require_sound(c.ctx);
    hak_free(c.ctx, keep);
}

TEST_CASE("misuse that nothing tells without HAK_DEBUG_CHECK keeps the heap sound")
{
    Checked c(0, HAK_NONE);
    char *p = static_cast<char *>(hak_alloc(c.ctx, 64)), *keep = static_cast<char *>(hak_alloc(c.ctx, 64));
    SECTION("a block freed twice goes to two callers")
    {
        hak_free(c.ctx, p);
        hak_free(c.ctx, p);
        CHECK(hak_alloc(c.ctx, 64) == p);
        CHECK(hak_alloc(c.ctx, 64) == p);
        CHECK(c.errors.take() == "");
        // Both callers give it back.
        hak_free(c.ctx, p);
        hak_free(c.ctx, p);
        hak_ctx_flush(c.ctx);
        c.require_one(HAK_E_DOUBLE_FREE, p);
    }
    SECTION("a pointer into a block goes to one")
    {
        hak_free(c.ctx, p + 8);
        CHECK(hak_alloc(c.ctx, 64) == p + 8);
        hak_free(c.ctx, p + 8);
        CHECK(c.errors.take() == "");
        hak_ctx_flush(c.ctx);
        c.require_one(HAK_E_POINTER, p + 8);
        hak_free(c.ctx, p);
    }
    SECTION("a realloc in place takes a pointer for a block's")
    {
        CHECK(hak_realloc(c.ctx, p + 8, 60) == p + 8);
        hak_free(c.ctx, p);
        CHECK(hak_realloc(c.ctx, p, 60) == p);
        CHECK(c.errors.take() == "");
    }
    SECTION("a realloc that needs another block finds it, but for a block in a magazine")
    {
        CHECK(hak_realloc(c.ctx, p + 8, 200) == nullptr);
        c.require_one(HAK_E_POINTER, p + 8);
        hak_free(c.ctx, p);
        void *moved = hak_realloc(c.ctx, p, 200);
        CHECK(moved != nullptr);
        CHECK(c.errors.take() == "");
        hak_free(c.ctx, moved);
        hak_ctx_flush(c.ctx);
        c.require_one(HAK_E_DOUBLE_FREE, p);
        CHECK(hak_realloc(c.ctx, p, 200) == nullptr);
        c.require_one(HAK_E_DOUBLE_FREE, p);
    }
    hak_free(c.ctx, keep);
    hak_ctx_flush(c.ctx);
    CHECK(c.errors.take() == "");
    CHECK(stats_of(c.ctx).live_blocks == 0);
    require_sound(c.ctx);
}

TEST_CASE("any told size but the last asked for is wrong, with HAK_DEBUG_CHECK")
{
    const bool shared = GENERATE(false, true), poison = GENERATE(false, true);
    CAPTURE(shared, poison);
    Checked c(poison ? HAK_DEBUG_POISON : HAK_DEBUG_CHECK, 0, shared);
    for (size_t n : {(size_t)0, (size_t)1, (size_t)40, (size_t)500, (size_t)513, (size_t)600, (size_t)4000,
                     (size_t)20000, 32 * KiB, (size_t)65534, (size_t)65535, (size_t)100000, MiB, MiB + 1,
                     2 * MiB, 5 * MiB + 7}) {
        void *keep = hak_alloc(c.ctx, n);
        for (size_t told : {n - 1, n + 1, n / 3, 3 * n + 1, n + 65536, n ^ 8}) {
            if (told == n || told == HAK_NONE) continue;
            CAPTURE(n, told);
            void *p = hak_alloc(c.ctx, n);
            hak_free_sized(c.ctx, p, told);
            c.require_one(HAK_E_SIZE, p);
            // The real size was used: the block is free, the heap sound.
            REQUIRE(stats_of(c.ctx).live_blocks == 1);
            for (size_t to : {n, n + 1, n - n / 8, n / 2, n + n / 16, 2 * n + 40}) {
                CAPTURE(to);
                p = hak_alloc(c.ctx, n);
                fill(p, n, 5);
                void *q = hak_realloc_sized(c.ctx, p, told, to);
                c.require_one(HAK_E_SIZE, p);
                REQUIRE(q != nullptr);
                REQUIRE(filled(q, std::min(n, to), 5));
                // It is what was last asked for from now on.
                q = hak_realloc_sized_cs(c.ctx, q, to, to, 0, 0);
                hak_free_sized(c.ctx, q, to);
                REQUIRE(c.errors.take() == "");
            }
        }
        hak_free_sized(c.ctx, keep, n);
        REQUIRE(c.errors.take() == "");
        REQUIRE(stats_of(c.ctx).live_blocks == 0);
    }
    require_sound(c.ctx);
}

TEST_CASE("right sizes of blocks from any function are taken for right with HAK_DEBUG_CHECK")
{
    const bool shared = GENERATE(false, true);
    Checked c(HAK_DEBUG_CHECK, 0, shared);
    for (size_t n : {(size_t)0, (size_t)3, (size_t)100, (size_t)513, (size_t)5000, (size_t)70000, 3 * MiB}) {
        CAPTURE(n);
        for (size_t align :
             {(size_t)1, (size_t)8, (size_t)16, (size_t)64, (size_t)4096, (size_t)65536, 2 * MiB}) {
            CAPTURE(align);
            void *p = hak_aligned_alloc(c.ctx, align, n);
            hak_free_sized(c.ctx, p, n + 1);
            c.require_one(HAK_E_SIZE, p);
            p = hak_aligned_alloc(c.ctx, align, n);
            p = hak_realloc_sized(c.ctx, p, n, n + 1);
            hak_free_sized(c.ctx, p, n + 1);
            REQUIRE(c.errors.take() == "");
        }
        hak_free_sized(c.ctx, hak_calloc(c.ctx, n, 1), n);
        hak_free_sized(c.ctx, hak_calloc_cs(c.ctx, 1, n, 0, 0), n);
        hak_free_sized(c.ctx, hak_realloc(c.ctx, nullptr, n), n);
        hak_free_sized(c.ctx, hak_alloc(c.ctx, n), HAK_NONE);
        CHECK(c.errors.take() == "");
    }
    // A failure leaves what was asked for as it was.
    void *p = hak_alloc(c.ctx, 100);
    REQUIRE(hak_limit(c.ctx, 0, committed_of(c.ctx), nullptr, nullptr) == 0);
    CHECK(hak_realloc_sized(c.ctx, p, 100, 64 * MiB) == nullptr);
    p = hak_realloc_sized(c.ctx, p, 100, 90);
    REQUIRE(p != nullptr);
    hak_free_sized(c.ctx, p, 90);
    CHECK(c.errors.take() == "");
    require_sound(c.ctx);
}

TEST_CASE("a limit refuses what there is no room to note, with HAK_DEBUG_CHECK")
{
    const bool shared = GENERATE(false, true);
    const size_t n = GENERATE((size_t)40, (size_t)3000, 60 * KiB);
    CAPTURE(shared, n);
    Checked c(HAK_DEBUG_CHECK, 0, shared);
    hak_free(c.ctx, hak_alloc(c.ctx, n));
    for (size_t more = 0; more < 160 * KiB; more += 4 * KiB) {
        const size_t hard = committed_of(c.ctx) + more;
        REQUIRE(hak_limit(c.ctx, 0, hard, nullptr, nullptr) == 0);
        std::vector<void *> blocks;
        while (void *p = hak_alloc(c.ctx, n))
            blocks.push_back(p);
        CHECK(committed_of(c.ctx) <= hard);
        CHECK(stats_of(c.ctx).live_blocks == blocks.size());
        for (void *p : blocks)
            hak_free_sized(c.ctx, p, n);
        CHECK(c.errors.take() == "");
        require_sound(c.ctx);
    }
}

TEST_CASE("a retired context does not look at told sizes without HAK_DEBUG_CHECK")
{
    const bool shared = GENERATE(false, true);
    Checked c(0, 0, shared);
    void *p = hak_alloc(c.ctx, 500), *q = hak_alloc(c.ctx, 500);
    hak_ctx_retire(c.ctx);
    hak_free_sized(c.ctx, p, 3000);
    CHECK(c.errors.take() == "");
    hak_free_sized(c.ctx, q, 3000);
    CHECK(c.errors.take() == "");
    c.ctx = nullptr; // it went with its last block
}

TEST_CASE("HAK_DEBUG_POISON: new blocks and freed ones have their patterns")
{
    size_t packed = GENERATE((size_t)0, HAK_NONE);
    Checked c(HAK_DEBUG_POISON, packed);
    for (size_t n : {(size_t)8, (size_t)40, (size_t)500, (size_t)3000}) {
        CAPTURE(n);
        void *keep = hak_alloc(c.ctx, n), *p = hak_alloc(c.ctx, n);
        CHECK(all_bytes(p, n, 0xCD));
        std::memset(p, 0, n);
        hak_free(c.ctx, p);
        CHECK(all_bytes(p, n, 0xDD));
        // It implies HAK_DEBUG_CHECK.
        hak_free(c.ctx, p);
        c.require_one(HAK_E_DOUBLE_FREE, p);
        void *q = hak_alloc(c.ctx, n);
        CHECK(all_bytes(q, n, 0xCD));
        void *z = hak_calloc(c.ctx, 1, n);
        CHECK(all_bytes(z, n, 0));
        hak_free(c.ctx, keep);
    }
    CHECK(c.errors.take() == "");
    require_sound(c.ctx);
}

TEST_CASE("HAK_DEBUG_POISON: a write after free is found on reuse")
{
    size_t n = GENERATE((size_t)8, (size_t)40, (size_t)500, (size_t)3000);
    size_t packed = GENERATE((size_t)0, HAK_NONE);
    CAPTURE(n, packed);
    Checked c(HAK_DEBUG_POISON, packed);
    REQUIRE(hak_alloc(c.ctx, n) != nullptr);
    char *p = static_cast<char *>(hak_alloc(c.ctx, n));
    hak_free(c.ctx, p);
    p[n / 2] = 7;
    bool reused = false;
    for (int i = 0; i < 100000 && !reused; i++)
        reused = hak_alloc(c.ctx, n) == p;
    REQUIRE(reused);
    c.require_one(HAK_E_USE_AFTER_FREE, p);
    // Without a write nothing is reported.
    void *q = hak_alloc(c.ctx, n);
    hak_free(c.ctx, q);
    REQUIRE(hak_alloc(c.ctx, n) != nullptr);
    CHECK(c.errors.take() == "");
}

TEST_CASE("HAK_DEBUG_POISON: a write after free is found in a slab that was full")
{
    const size_t n = GENERATE((size_t)500, (size_t)3000);
    Checked c(HAK_DEBUG_POISON, HAK_NONE);
    std::vector<char *> blocks;
    for (int i = 0; i < 200; i++)
        blocks.push_back(static_cast<char *>(hak_alloc(c.ctx, n)));
    char *p = blocks[3];
    hak_free(c.ctx, p);
    p[n / 2] = 7;
    bool reused = false;
    for (int i = 0; i < 1000 && !reused; i++)
        reused = hak_alloc(c.ctx, n) == p;
    REQUIRE(reused);
    c.require_one(HAK_E_USE_AFTER_FREE, p);
}

TEST_CASE("HAK_DEBUG_ABORT aborts after the callback")
{
    auto status_of = [](unsigned debug) {
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(2);
            struct rlimit no_core = {0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
            std::signal(SIGABRT, SIG_DFL);
            Options options = ctx_options();
            options.debug = debug;
            options.error_user = &ends[1];
            options.on_error = [](void *user, hak_error, const void *, const char *) {
                if (write(*static_cast<int *>(user), "x", 1) != 1) _exit(9);
            };
            hak_ctx *ctx = hak_ctx_new(nullptr, &options);
            int local = 0;
            hak_free(ctx, &local);
            _exit(0);
        }
        close(ends[1]);
        int status = 0;
        REQUIRE(waitpid(pid, &status, 0) == pid);
        char told = 0;
        CHECK(read(ends[0], &told, 1) == 1);
        close(ends[0]);
        return status;
    };
    int status = status_of(HAK_DEBUG_ABORT);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGABRT);
    status = status_of(0);
    CHECK(WIFEXITED(status));
}

TEST_CASE("without a callback misuse is ignored silently")
{
    TestSpace s;
    TestCtx ctx(s.space);
    int local = 0;
    hak_free(ctx, &local);
    CHECK(hak_realloc(ctx, &local, 10) == nullptr);
    CHECK(hak_alloc(ctx, SIZE_MAX) == nullptr);
    CHECK(hak_aligned_alloc(ctx, 3, 10) == nullptr);
    CHECK(hak_label_define(ctx, nullptr) == 0);
    require_sound(ctx);
}

TEST_CASE("bookkeeping is off the blocks: writing over free ones disturbs nothing")
{
    TestSpace s;
    Options options = ctx_options();
    options.packed_bytes = HAK_NONE;
    TestCtx ctx(s.space, &options);
    std::vector<void *> blocks;
    for (int i = 0; i < 1000; i++)
        blocks.push_back(hak_alloc(ctx, 100));
    for (size_t i = 0; i < blocks.size(); i += 2)
        hak_free(ctx, blocks[i]);
    hak_ctx_flush(ctx);
    for (void *p : blocks)
        std::memset(p, 0xFF, 100);
    require_sound(ctx);
    for (int i = 0; i < 2000; i++)
        REQUIRE(hak_alloc(ctx, 100) != nullptr);
    require_sound(ctx);
}

TEST_CASE("hak_ctx_check finds a heap that contradicts itself")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (size_t i = 0; i < 777; i++)
        REQUIRE(hak_alloc(ctx, 24 + i) != nullptr);
    // The counter of live bytes lies in the context itself: damage it as a stray write would.
    size_t live = stats_of(ctx).live_bytes, *found = nullptr;
    size_t *words = reinterpret_cast<size_t *>(ctx.ctx);
    for (size_t i = 0; i < 1024 / sizeof *words && !found; i++)
        if (words[i] >= live && words[i] < live + 64 * KiB) found = &words[i];
    REQUIRE(found != nullptr);
    CHECK(hak_ctx_check(ctx, nullptr, nullptr));
    *found += 8;
    Errors errors;
    CHECK_FALSE(hak_ctx_check(ctx, Errors::record, &errors));
    CHECK(errors.count(HAK_E_CORRUPT) >= 1);
    CHECK_FALSE(hak_ctx_check(ctx, nullptr, nullptr));
    *found -= 8;
    require_sound(ctx);
}
