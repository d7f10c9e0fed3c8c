// Memory for the error itself: what is kept back below a limit, and when it comes and goes.
#include "host.h"

#include <hakmem/reserve.h>

#include <vector>

namespace
{

constexpr size_t HARD = 4 << 20, KEPT = 256 << 10;

// A context that is filled with blocks of 1000 bytes until one is refused.
struct Limited : Heap {
    hak_reserve reserve = {};
    std::vector<void *> blocks;
    int crossings = 0;
    Limited()
    {
        REQUIRE(hak_reserve_limit(&reserve, ctx, 0, HARD, KEPT, crossed, this) == 0);
    }
    static void crossed(hak_ctx *, void *user, size_t, size_t)
    {
        static_cast<Limited *>(user)->crossings++;
    }
    void fill()
    {
        while (void *p = hak_alloc(ctx, 1000))
            blocks.push_back(p);
        CHECK(committed(ctx) <= HARD);
    }
    void drop()
    {
        for (void *p : blocks)
            hak_free(ctx, p);
        blocks.clear();
    }
};

} // namespace

TEST_CASE("host: a reserve is there for what follows a refusal, and is kept back again")
{
    Limited vm;
    for (int round = 1; round <= 3; round++) {
        CAPTURE(round);
        vm.fill();
        CHECK(committed(vm.ctx) <= HARD - KEPT);
        CHECK(committed(vm.ctx) > HARD - KEPT - 64 * 1024);
        CHECK(!hak_alloc(vm.ctx, 100000));
        CHECK(hak_reserve_refused(&vm.reserve, 100000)); // the error, and statements after it
        CHECK(vm.reserve.open);
        CHECK(vm.reserve.opened == (size_t)round);
        void *error = hak_alloc(vm.ctx, 100000);
        CHECK(error);
        CHECK(!hak_reserve_close(&vm.reserve)); // is in use
        CHECK(vm.reserve.open);
        hak_free(vm.ctx, error);
        vm.drop();
        CHECK(hak_reserve_close(&vm.reserve));
        CHECK(!vm.reserve.open);
        CHECK(hak_reserve_close(&vm.reserve)); // nothing to do
    }
}

TEST_CASE("host: a reserve that nobody closes is kept back when the heap grows once more")
{
    Limited vm;
    vm.fill();
    CHECK(vm.crossings == 1);
    hak_reserve_refused(&vm.reserve, 1000);
    vm.fill(); // all of it
    CHECK(committed(vm.ctx) > HARD - KEPT);
    vm.drop();
    hak_ctx_trim(vm.ctx);
    vm.fill();
    CHECK(vm.crossings == 2);
    CHECK(committed(vm.ctx) <= HARD - KEPT);
    CHECK(!vm.reserve.open);
}

TEST_CASE("host: a machine that tries again gives up at its last try for the same size")
{
    Limited vm;
    vm.reserve.tries = 3;
    vm.fill();
    CHECK(!hak_reserve_refused(&vm.reserve, 5000));
    CHECK(!hak_reserve_refused(&vm.reserve, 64)); // of a collection
    CHECK(!hak_reserve_refused(&vm.reserve, 5000));
    CHECK(!vm.reserve.open);
    CHECK(hak_reserve_refused(&vm.reserve, 5000));
    CHECK(vm.reserve.open);
    CHECK(!hak_reserve_refused(&vm.reserve, 5000)); // counts anew
    int block;
    CHECK(hak_reserve_served(&vm.reserve, &block, 5000) == &block);
    CHECK(!hak_reserve_refused(&vm.reserve, 5000));
    CHECK(!hak_reserve_refused(&vm.reserve, 5000));
    CHECK(hak_reserve_refused(&vm.reserve, 5000));
}

TEST_CASE("host: limits that leave no room for the reserve change nothing")
{
    Limited vm;
    hak_reserve other = {};
    CHECK(hak_reserve_limit(&other, vm.ctx, 0, HARD, HARD + 1, nullptr, nullptr) == -1);
    CHECK(hak_reserve_limit(&other, vm.ctx, HARD - KEPT + 1, HARD, KEPT, nullptr, nullptr) == -1);
    CHECK(hak_reserve_limit(&other, vm.ctx, HARD + 1, HARD, 0, nullptr, nullptr) == -1);
    CHECK(hak_reserve_limit(&other, vm.ctx, 0, 3, 3, nullptr, nullptr) == -1);
    vm.fill();
    CHECK(committed(vm.ctx) <= HARD - KEPT);

    // An eighth, and 64 KiB at most; and no limit at all.
    CHECK(hak_reserve_limit(&vm.reserve, vm.ctx, 0, HARD, 0, nullptr, nullptr) == 0);
    CHECK(vm.reserve.bytes == 64 << 10);
    CHECK(hak_reserve_limit(&vm.reserve, vm.ctx, 0, 80000, 0, nullptr, nullptr) == 0);
    CHECK(vm.reserve.bytes == 10000);
    CHECK(hak_reserve_limit(&vm.reserve, vm.ctx, 0, 0, 0, nullptr, nullptr) == 0);
    CHECK(hak_alloc(vm.ctx, 2 * HARD));
    hak_reserve_open(&vm.reserve);
    CHECK(!vm.reserve.open);
}
