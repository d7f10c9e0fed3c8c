// Linear memories: zero on reuse, growth, protection, the warm budget.
#include "wasm_test.h"

#include <csetjmp>
#include <csignal>
#include <ctime>
#include <sys/mman.h>

using namespace test;

namespace
{

sigjmp_buf fault_at;
void on_fault(int)
{
    siglongjmp(fault_at, 1);
}

// Whether reading or writing *p faults.
bool faults(volatile char *p)
{
    struct sigaction action = {}, before = {};
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, &before);
    volatile bool fault = true;
    if (sigsetjmp(fault_at, 1) == 0) {
        *p = *p;
        fault = false;
    }
    sigaction(SIGSEGV, &before, nullptr);
    return fault;
}

const hak_wasm_dirty METHODS[] = {HAK_WASM_DIRTY_SCAN, HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_DIRTY_COMPARE};
const hak_wasm_bounds BOUNDS[] = {HAK_WASM_FLAT, HAK_WASM_GUARD};

} // namespace

TEST_CASE("a memory is zero, also after somebody else's", "[memory]")
{
    for (hak_wasm_bounds bounds : BOUNDS) {
        for (hak_wasm_dirty method : METHODS) {
            HostOptions options;
            options.bounds = bounds;
            options.dirty = method;
            if (!has_method(options)) continue;
            const Host host(&options);
            std::vector<char *> seen;
            for (size_t pages : {3u, 3u, 7u, 1u, 7u}) {
                size_t size = pages * WASM_PAGE;
                char *p = static_cast<char *>(hak_wasm_memory_new(host, size));
                REQUIRE(p != nullptr);
                CHECK(hak_wasm_memory_size(host, p) == size);
                CHECK(is_zero(p, size));
                std::memset(p, 0xAB, size);
                REQUIRE(hak_wasm_memory_grow(host, p, size + 2 * WASM_PAGE) == 0);
                CHECK(is_zero(p + size, 2 * WASM_PAGE));
                std::memset(p + size, 0xCD, 2 * WASM_PAGE);
                CHECK(hak_wasm_memory_free(host, p) == 0);
                seen.push_back(p);
            }
            CHECK(std::count(seen.begin(), seen.end(), seen[0]) == 5); // or nothing would be reused
        }
    }
}

TEST_CASE("an access past the end faults, also in a slot that was larger before", "[memory]")
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    Host host(&options);
    char *p = static_cast<char *>(hak_wasm_memory_new(host, 4 * WASM_PAGE));
    REQUIRE(p != nullptr);
    CHECK_FALSE(faults(p + 4 * WASM_PAGE - 1));
    CHECK(faults(p + 4 * WASM_PAGE));
    CHECK(faults(p + hak_wasm_slot_bytes(host) + hak_wasm_guard_bytes(host) - 1));
    CHECK(faults(p - 1));
    REQUIRE(hak_wasm_memory_grow(host, p, 5 * WASM_PAGE) == 0);
    CHECK_FALSE(faults(p + 5 * WASM_PAGE - 1));
    CHECK(faults(p + 5 * WASM_PAGE));
    hak_wasm_memory_free(host, p);
    char *q = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE));
    CHECK(q == p);
    CHECK_FALSE(faults(q + WASM_PAGE - 1));
    CHECK(faults(q + WASM_PAGE));
    hak_wasm_memory_free(host, q);
}

TEST_CASE("what is not a memory is refused", "[memory]")
{
    Host host;
    char *p = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE));
    int other = 0;
    for (void *bad : {static_cast<void *>(nullptr), static_cast<void *>(&other), static_cast<void *>(p + 1),
                      static_cast<void *>(p + hak_wasm_slot_bytes(host))}) {
        CHECK(hak_wasm_memory_free(host, bad) == -1);
        CHECK(hak_wasm_memory_grow(host, bad, WASM_PAGE) == -1);
        CHECK(hak_wasm_memory_size(host, bad) == 0);
        CHECK_FALSE(hak_wasm_is_memory(host, bad));
    }
    CHECK(hak_wasm_memory_grow(host, p, WASM_PAGE - 1) == -1);
    CHECK(hak_wasm_memory_grow(host, p, hak_wasm_slot_bytes(host) + 1) == -1);
    CHECK(hak_wasm_memory_size(host, p) == WASM_PAGE);
    CHECK(hak_wasm_memory_free(host, p) == 0);
    CHECK(hak_wasm_memory_free(host, p) == -1);
    CHECK(hak_wasm_memory_new(host, hak_wasm_slot_bytes(host) + 1) == nullptr);
    void *empty = hak_wasm_memory_new(host, 0), *empty2 = hak_wasm_memory_new(host, 0);
    CHECK(empty != nullptr);
    CHECK(empty != empty2);
    CHECK(hak_wasm_memory_grow(host, empty, WASM_PAGE) == 0);
    CHECK(is_zero(empty, WASM_PAGE));
    CHECK(hak_wasm_memory_free(host, empty) == 0);
    CHECK(hak_wasm_memory_free(host, empty2) == 0);
}

TEST_CASE("free slots keep pages within the warm budget, and until they decay", "[memory]")
{
    HostOptions options;
    options.warm_bytes = MIB;
    options.decay_ns = 1000;
    Host host(&options);
    std::vector<void *> memories;
    for (int i = 0; i < 50; i++) {
        void *p = hak_wasm_memory_new(host, 2 * WASM_PAGE);
        REQUIRE(p != nullptr);
        std::memset(p, 1, 2 * WASM_PAGE);
        memories.push_back(p);
    }
    CHECK(host.info().live == 50);
    CHECK(host.info().linear_bytes == 50 * 2 * WASM_PAGE);
    for (void *p : memories)
        hak_wasm_memory_free(host, p);
    CHECK(host.info().live == 0);
    CHECK(host.info().warm == 8);
    CHECK(host.info().warm_bytes == MIB);
    hak_wasm_host_tick(host, 10000);
    CHECK(host.info().warm == 8);
    hak_wasm_host_tick(host, 10500); // too early
    hak_wasm_host_tick(host, 20000);
    CHECK(host.info().warm == 0);
    CHECK(host.info().warm_bytes == 0);

    // Nor is it kept for ever by a clock that stands still, jumps or goes back.
    uint64_t now = 20000;
    for (uint64_t at : {now, now, now + (UINT64_C(1) << 60), UINT64_C(500), UINT64_C(1500), UINT64_C(2500)}) {
        void *p = hak_wasm_memory_new(host, WASM_PAGE);
        std::memset(p, 1, WASM_PAGE);
        hak_wasm_memory_free(host, p);
        CHECK(host.info().warm == 1);
        hak_wasm_host_tick(host, at);
    }
    hak_wasm_host_tick(host, 100000);
    CHECK(host.info().warm == 0);

    void *p = hak_wasm_memory_new(host, WASM_PAGE);
    std::memset(p, 1, WASM_PAGE);
    hak_wasm_memory_free(host, p);
    CHECK(host.info().warm_bytes == WASM_PAGE);
    CHECK(hak_wasm_host_trim(host) >= WASM_PAGE);
    CHECK(host.info().warm_bytes == 0);
}

TEST_CASE("without a warm budget pages go back at once", "[memory]")
{
    HostOptions options;
    options.warm_bytes = HAK_NONE;
    Host host(&options);
    void *p = hak_wasm_memory_new(host, WASM_PAGE);
    std::memset(p, 1, WASM_PAGE);
    hak_wasm_memory_free(host, p);
    unsigned char resident[WASM_PAGE / 4096];
    REQUIRE(mincore(p, WASM_PAGE, resident) == 0);
    CHECK(std::count(std::begin(resident), std::end(resident), 0) == WASM_PAGE / 4096);
    CHECK(host.info().warm == 0);
}

TEST_CASE("the budget counts what a smaller memory leaves of a larger one before", "[memory]")
{
    Host host;
    void *p = hak_wasm_memory_new(host, 16 * WASM_PAGE);
    std::memset(p, 1, 16 * WASM_PAGE);
    hak_wasm_memory_free(host, p);
    void *q = hak_wasm_memory_new(host, WASM_PAGE);
    CHECK(q == p);
    static_cast<char *>(q)[0] = 1;
    hak_wasm_memory_free(host, q);
    CHECK(host.info().warm_bytes == 16 * WASM_PAGE);
}

TEST_CASE("slots come in extents; the size of slots and extents is chosen", "[memory]")
{
    HostOptions options;
    options.slot_bytes = 128 * KIB;
    options.extent_bytes = 512 * KIB;
    Host host(&options);
    std::vector<void *> memories;
    for (int i = 0; i < 9; i++)
        memories.push_back(hak_wasm_memory_new(host, WASM_PAGE));
    CHECK(host.info().extents == 3);
    CHECK(host.info().slots == 12);
    CHECK(host.info().reserved_bytes == 3 * 512 * KIB);
    for (void *p : memories) {
        CHECK(reinterpret_cast<uintptr_t>(p) < uintptr_t(1) << 47);
        CHECK(hak_wasm_memory_grow(host, p, 128 * KIB) == 0);
        CHECK(hak_wasm_memory_grow(host, p, 129 * KIB) == -1);
        CHECK(hak_wasm_memory_free(host, p) == 0);
    }
}

TEST_CASE("a host has 4096 extents: then there is no further memory, and a freed slot serves the next one",
          "[memory]")
{
    HostOptions options;
    options.slot_bytes = options.extent_bytes = WASM_PAGE;
    Host host(&options);
    std::vector<void *> memories;
    while (memories.size() <= 4096) {
        void *p = hak_wasm_memory_new(host, WASM_PAGE);
        if (!p) break;
        memories.push_back(p);
    }
    CHECK(memories.size() == 4096);
    CHECK(host.info().extents == 4096);
    CHECK(hak_wasm_memory_free(host, memories.back()) == 0);
    CHECK(hak_wasm_memory_new(host, WASM_PAGE) == memories.back());
    CHECK(hak_wasm_memory_new(host, WASM_PAGE) == nullptr);
    for (void *p : memories)
        CHECK(hak_wasm_memory_free(host, p) == 0);
}

TEST_CASE("broken options are named", "[memory]")
{
    auto refused = [](auto change) {
        HostOptions o;
        change(o);
        return hak_wasm_host_options_error(&o) != nullptr && hak_wasm_host_new(&o) == nullptr;
    };
    CHECK(refused([](auto &o) { o.size = 1; }));
    CHECK(refused([](auto &o) { std::memset(&o.bounds, 7, sizeof o.bounds); }));
    CHECK(refused([](auto &o) { std::memset(&o.dirty, 7, sizeof o.dirty); }));
    CHECK(refused([](auto &o) { o.slot_bytes = 4096; }));
    CHECK(refused([](auto &o) { o.slot_bytes = size_t(32) << 30; }));
    CHECK(refused([](auto &o) { o.guard_bytes = size_t(9) << 30; }));
    CHECK(refused([](auto &o) { o.extent_bytes = size_t(1) << 47; }));
    HostOptions fine;
    CHECK(hak_wasm_host_options_error(&fine) == nullptr);
    CHECK(hak_wasm_host_options_error(nullptr) == nullptr);
}

TEST_CASE("a memory is charged with its size, and with 64 KiB at least", "[memory]")
{
    for (hak_wasm_bounds bounds : {HAK_WASM_FLAT, HAK_WASM_GUARD}) {
        HostOptions with;
        with.bounds = bounds;
        Host host(&with);
        TenantOptions options;
        options.limits.linear_bytes = 4 * WASM_PAGE;
        hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
        const Scope scope(tenant);
        std::vector<void *> memories;
        for (size_t bytes : {size_t(0), size_t(1), WASM_PAGE - 1, WASM_PAGE, size_t(0)})
            memories.push_back(hak_wasm_memory_new(host, bytes));
        CHECK(memories.back() == nullptr);
        CHECK(info_of(tenant).linear_bytes == 4 * WASM_PAGE);
        CHECK(info_of(tenant).label[HAK_WASM_LINEAR].live_bytes == 4 * WASM_PAGE);
        CHECK(host.info().linear_bytes == 2 * WASM_PAGE); // as the guests see them
        CHECK(hak_wasm_memory_free(host, memories[3]) == 0);
        void *p = memories[0];
        hak_wasm_image *empty;
        {
            const Scope another(hak_wasm_host_tenant(host)); // who pays for the image
            empty = hak_wasm_image_take(host, p);
        }
        REQUIRE(empty != nullptr);
        for (size_t bytes : {size_t(100), WASM_PAGE, WASM_PAGE + 1, 2 * WASM_PAGE}) {
            CHECK(hak_wasm_memory_grow(host, p, bytes) == 0);
            CHECK(info_of(tenant).linear_bytes == 2 * WASM_PAGE + std::max(bytes, WASM_PAGE));
        }
        CHECK(hak_wasm_memory_grow(host, p, 2 * WASM_PAGE + 1) == -1);
        CHECK(hak_wasm_memory_reset(host, p, empty) == 0);
        CHECK(info_of(tenant).linear_bytes == 3 * WASM_PAGE);
        hak_wasm_image_drop(empty);
        for (size_t i : {0, 1, 2})
            CHECK(hak_wasm_memory_free(host, memories[i]) == 0);
        CHECK(info_of(tenant).linear_bytes == 0);
        CHECK(info_of(tenant).label[HAK_WASM_LINEAR].live_bytes == 0);
        CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 0);
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    }
}

TEST_CASE("what is asked about a tenant, and its end, cost what its own memories cost", "[memory]")
{
    HostOptions options;
    options.slot_bytes = MIB;
    Host host(&options);
    hak_wasm_tenant *small = hak_wasm_tenant_new(host, nullptr), *large = hak_wasm_tenant_new(host, nullptr);
    auto memory_of = [&](hak_wasm_tenant *tenant) {
        Scope scope(tenant);
        return static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE));
    };
    *memory_of(small) = 1;
    // CPU time of 300 questions, and of 300 tenants that come and go.
    auto cost = [&] {
        const clock_t from = std::clock();
        for (int i = 0; i < 300; i++) {
            CHECK(hak_wasm_tenant_resident(small) >= 4096);
            hak_wasm_tenant *passing = hak_wasm_tenant_new(host, nullptr);
            CHECK(memory_of(passing) != nullptr);
            hak_wasm_tenant_close(passing, HAK_WASM_BULK);
        }
        return double(std::clock() - from);
    };
    cost();
    const double alone = std::min(cost(), cost());
    for (int i = 0; i < 100000; i++)
        REQUIRE(memory_of(large) != nullptr);
    CHECK(std::min(cost(), cost()) < 8 * alone);
    CHECK(info_of(large).label[HAK_WASM_LINEAR].live_blocks == 100000);
    hak_wasm_tenant_close(large, HAK_WASM_BULK);
    CHECK(host.info().live == 1);
    hak_wasm_tenant_close(small, HAK_WASM_BULK);
    CHECK(host.info().live == 0);
}
