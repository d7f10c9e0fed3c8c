// Guests compiled to C: their memories are a host's, by the linker.
#include "wasm2c_test.h"

extern "C" {
#include "bare.h"
#include "imports.h"
#include "small.h"
#include "state.h"
#include "tables.h"
#include "zero.h"

// What the guest "imports" gets.
static wasm_rt_memory_t imported_memory;
static wasm_rt_funcref_table_t imported_table;
wasm_rt_memory_t *Z_envZ_memory(struct Z_env_instance_t *)
{
    return &imported_memory;
}
wasm_rt_funcref_table_t *Z_envZ_table(struct Z_env_instance_t *)
{
    return &imported_table;
}
}

using namespace test;

namespace
{

struct Wasm2c : Host {
    static HostOptions guarded()
    {
        HostOptions options;
        options.bounds = HAK_WASM_GUARD;
        options.guard_bytes = size_t(4) << 30;
        return options;
    }
    explicit Wasm2c(HostOptions options = guarded()) : Host(&options)
    {
        REQUIRE(hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER) == 0);
        wasm_rt_init(); // once in a process: wasm2c cannot begin again after wasm_rt_free
        Z_small_init_module();
    }
};

struct Snapshot {
    const char *why;
    hak_wasm_wasm2c_snapshot *snapshot;
    Snapshot(void *instance, size_t size) : snapshot(hak_wasm_wasm2c_take(instance, size, &why))
    {
    }
    Snapshot(const Snapshot &) = delete;
    Snapshot &operator=(const Snapshot &) = delete;
    ~Snapshot()
    {
        hak_wasm_wasm2c_drop(snapshot);
    }
};

} // namespace

TEST_CASE("a host without guards is refused where guests rely on them", "[wasm2c]")
{
    Host flat;
    CHECK(hak_wasm_wasm2c_use(flat, true) == -1);
    HostOptions options;
    options.bounds = HAK_WASM_GUARD; // 32 MiB: too small for 32-bit offsets
    Host narrow(&options);
    CHECK(hak_wasm_wasm2c_use(narrow, true) == -1);
    CHECK(hak_wasm_wasm2c_use(narrow, false) == 0);
    wasm_rt_memory_t memory = {};
    Wasm2c host;
    // Whose tenant is current decides where the memory is.
    for (hak_wasm_host *other : {flat.host, narrow.host, host.host}) {
        hak_wasm_tenant *tenant = hak_wasm_tenant_new(other, nullptr);
        Scope scope(tenant);
        for (bool signals : {true, false}) {
            CHECK(hak_wasm_wasm2c_use(host, signals) == 0);
            const bool fits = !signals || other == host.host;
            CHECK(trapped([&] { wasm_rt_allocate_memory(&memory, 1, 1); }) ==
                  (fits ? WASM_RT_TRAP_NONE : WASM_RT_TRAP_OOB));
            CHECK((memory.data != nullptr) == fits);
            wasm_rt_free_memory(&memory);
            CHECK(info_of(tenant).linear_bytes == 0);
        }
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    }
}

TEST_CASE("instances have their memory from the current tenant's host", "[wasm2c]")
{
    Wasm2c host;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    static Z_small_instance_t guest, other;
    {
        Scope scope(tenant);
        REQUIRE(trapped([] { Z_small_instantiate(&guest); }) == WASM_RT_TRAP_NONE);
    }
    Z_small_instantiate(&other); // the default host's
    CHECK(info_of(tenant).linear_bytes == 3 * WASM_PAGE);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 6 * WASM_PAGE);
    CHECK(hak_wasm_is_memory(host, Z_smallZ_memory(&guest)->data));

    Z_smallZ_init(&guest);
    Z_smallZ_init(&other);
    CHECK(Z_smallZ_handle(&guest, 5) == Z_smallZ_handle(&other, 5));
    CHECK(Z_smallZ_grow(&guest, 0) == 3);
    CHECK(Z_smallZ_grow(&guest, 2) == 3);
    CHECK(Z_smallZ_pages(&guest) == 5);
    CHECK(info_of(tenant).linear_bytes == 5 * WASM_PAGE);
    CHECK(Z_smallZ_grow(&guest, 70000) == UINT32_MAX);
    CHECK(Z_smallZ_grow(&guest, 65536 - 5) == UINT32_MAX); // would be 4 GiB, 0 in 32 bits
    CHECK(trapped([] { Z_smallZ_load(&guest, 5 * WASM_PAGE - 1); }) == WASM_RT_TRAP_NONE);
    CHECK(trapped([] { Z_smallZ_load(&guest, 5 * WASM_PAGE); }) == WASM_RT_TRAP_OOB);
    CHECK(trapped([] { Z_smallZ_store(&guest, 0xFFFFFFFF, 1); }) == WASM_RT_TRAP_OOB);
    CHECK(trapped([] { Z_smallZ_trap(&guest); }) == WASM_RT_TRAP_UNREACHABLE);

    Z_small_free(&guest);
    Z_small_free(&other);
    CHECK(host.info().live == 0);
    {
        Scope scope(tenant);
        Z_small_instantiate(&guest);
        CHECK(trapped([] { Z_smallZ_load(&guest, 3 * WASM_PAGE); }) == WASM_RT_TRAP_OOB);
        Z_small_free(&guest);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("over a limit a guest traps, or its growth fails", "[wasm2c]")
{
    Wasm2c host;
    TenantOptions options;
    options.limits.linear_bytes = 4 * WASM_PAGE;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    static Z_small_instance_t guest, second;
    {
        Scope scope(tenant);
        REQUIRE(trapped([] { Z_small_instantiate(&guest); }) == WASM_RT_TRAP_NONE);
        CHECK(trapped([] { Z_small_instantiate(&second); }) == WASM_RT_TRAP_OOB);
        CHECK(Z_smallZ_grow(&guest, 1) == 3);
        CHECK(Z_smallZ_grow(&guest, 1) == UINT32_MAX);
        CHECK(info_of(tenant).linear_refused == 2);
    }
    Z_small_free(&guest);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a guest is brought back by a snapshot", "[wasm2c]")
{
    Wasm2c host;
    static Z_small_instance_t guest, other;
    Z_small_instantiate(&guest);
    Z_small_instantiate(&other);
    Z_smallZ_init(&guest);
    wasm_rt_memory_t *memory = Z_smallZ_memory(&guest);
    Snapshot snapshot(&guest, sizeof guest);
    REQUIRE(snapshot.snapshot != nullptr);
    const std::vector<uint8_t> bytes(memory->data, memory->data + memory->size);
    const uint32_t answer = Z_smallZ_handle(&guest, 3);
    for (int i = 0; i < 100; i++) {
        if (i % 3 == 0) Z_smallZ_grow(&guest, 4);
        if (i % 5 == 0) CHECK(trapped([] { Z_smallZ_trap(&guest); }) == WASM_RT_TRAP_UNREACHABLE);
        REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
        CHECK(Z_smallZ_pages(&guest) == 3);
        REQUIRE(std::memcmp(memory->data, bytes.data(), bytes.size()) == 0);
        REQUIRE(Z_smallZ_handle(&guest, 3) == answer);
    }
    CHECK(hak_wasm_wasm2c_reset(&other, snapshot.snapshot) == -1);
    Z_small_free(&other);
    Z_small_free(&guest);
    CHECK(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == -1);
}

TEST_CASE("globals, tables, dropped segments and the size of the memory are restored", "[wasm2c]")
{
    Wasm2c host;
    Z_state_init_module();
    static Z_state_instance_t guest;
    Z_state_instantiate(&guest);
    const uint32_t fresh = Z_stateZ_sum(&guest), rest = Z_stateZ_rest(&guest);
    Snapshot snapshot(&guest, sizeof guest);
    REQUIRE(snapshot.snapshot != nullptr);
    for (int i = 0; i < 3; i++) {
        Z_stateZ_change(&guest);
        CHECK(Z_stateZ_sum(&guest) != fresh);
        CHECK(Z_stateZ_rest(&guest) == 25 + 2000);
        CHECK(trapped([] { Z_stateZ_init_from_segments(&guest); }) == WASM_RT_TRAP_OOB);
        REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
        CHECK(Z_stateZ_sum(&guest) == fresh);
        CHECK(Z_stateZ_rest(&guest) == rest);
        CHECK(trapped([] { Z_stateZ_init_from_segments(&guest); }) == WASM_RT_TRAP_NONE);
        REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
        CHECK(is_zero(Z_stateZ_memory(&guest)->data, 6));
    }
    Z_state_free(&guest);
}

TEST_CASE("tables come back, whatever way a guest changed them", "[wasm2c]")
{
    Wasm2c host;
    Z_tables_init_module();
    static Z_tables_instance_t guest;
    Z_tables_instantiate(&guest);
    Z_tablesZ_change(&guest, 8);
    const uint32_t then = Z_tablesZ_sum(&guest);
    Snapshot snapshot(&guest, sizeof guest);
    REQUIRE(snapshot.snapshot != nullptr);
    for (int i = 0; i < 3; i++) {
        for (uint32_t way = 0; way < 8; way++) {
            Z_tablesZ_change(&guest, way);
            CHECK(Z_tablesZ_sum(&guest) != then);
            REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
            CHECK(Z_tablesZ_sum(&guest) == then);
        }
        CHECK(Z_tablesZ_widen(&guest, 4) == 3);
        CHECK(trapped([] { Z_tablesZ_trap(&guest); }) == WASM_RT_TRAP_UNREACHABLE);
        CHECK(trapped([] { Z_tablesZ_ask(&guest, 0); }) == WASM_RT_TRAP_CALL_INDIRECT);
        REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
        CHECK(Z_tablesZ_sum(&guest) == then);
        CHECK(Z_tablesZ_ask(&guest, 0) == 1);
    }
    Z_tables_free(&guest);
}

TEST_CASE("a guest without a memory goes back to its globals and tables", "[wasm2c]")
{
    Wasm2c host;
    Z_bare_init_module();
    static Z_bare_instance_t guest;
    Z_bare_instantiate(&guest);
    Snapshot snapshot(&guest, sizeof guest);
    REQUIRE(snapshot.snapshot != nullptr);
    for (int i = 0; i < 3; i++) {
        Z_bareZ_change(&guest);
        CHECK(Z_bareZ_sum(&guest) == 42);
        REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
        CHECK(Z_bareZ_sum(&guest) == 2);
    }
    Z_bare_free(&guest);
}

TEST_CASE("a memory that begins without a page has none after a reset", "[wasm2c]")
{
    Wasm2c host;
    Z_zero_init_module();
    static Z_zero_instance_t guest;
    Z_zero_instantiate(&guest);
    Snapshot snapshot(&guest, sizeof guest);
    REQUIRE(snapshot.snapshot != nullptr);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(Z_zeroZ_get(&guest) == UINT32_MAX);
        Z_zeroZ_put(&guest, 0x5EC2E7 + i);
        CHECK(Z_zeroZ_get(&guest) == 0x5EC2E7 + i);
        REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
        CHECK(Z_zeroZ_pages(&guest) == 0);
        CHECK(Z_zeroZ_grow(&guest, 1) == 0);
        CHECK(Z_zeroZ_get(&guest) == 0);
        REQUIRE(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
    }
    Z_zero_free(&guest);
}

TEST_CASE("an instance with another's memory or table has no snapshot", "[wasm2c]")
{
    Wasm2c host;
    Z_imports_init_module();
    wasm_rt_allocate_memory(&imported_memory, 1, 4);
    wasm_rt_allocate_funcref_table(&imported_table, 2, 8);
    static Z_imports_instance_t guest;
    Z_imports_instantiate(&guest, nullptr);
    Snapshot snapshot(&guest, sizeof guest);
    CHECK(snapshot.snapshot == nullptr);
    CHECK(std::string(snapshot.why) == "it imports a memory or a table");
    Z_imports_free(&guest);
    wasm_rt_free_memory(&imported_memory);
    wasm_rt_free_funcref_table(&imported_table);
}

TEST_CASE("tables count for the heap of the tenant", "[wasm2c]")
{
    Wasm2c host;
    TenantOptions options;
    options.limits.heap_bytes = 2 * MIB;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    static wasm_rt_funcref_table_t table, large;
    Scope scope(tenant);
    wasm_rt_allocate_funcref_table(&table, 10, UINT32_MAX);
    const uint32_t most = uint32_t(2 * MIB / sizeof(wasm_rt_funcref_t));
    CHECK(wasm_rt_grow_funcref_table(&table, most, wasm_rt_funcref_null_value) == UINT32_MAX);
    CHECK(wasm_rt_grow_funcref_table(&table, UINT32_MAX, wasm_rt_funcref_null_value) == UINT32_MAX);
    CHECK(table.size == 10);
    CHECK(wasm_rt_grow_funcref_table(&table, most / 4, wasm_rt_funcref_null_value) == 10);
    CHECK(info_of(tenant).heap_live >= most / 4 * sizeof(wasm_rt_funcref_t));
    CHECK(trapped([] { wasm_rt_allocate_funcref_table(&large, UINT32_MAX, UINT32_MAX); }) ==
          WASM_RT_TRAP_OOB);
    wasm_rt_free_funcref_table(&large); // what the embedder does after a trap of instantiate
    wasm_rt_free_funcref_table(&table);
    CHECK(info_of(tenant).heap_live == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

namespace
{

// As wasm2c makes the struct of an instance.
struct Parts {
    wasm_rt_memory_t memory;
    wasm_rt_funcref_table_t functions;
    wasm_rt_externref_table_t references;
    void begin(uint32_t n)
    {
        wasm_rt_allocate_memory(&memory, n, 100);
        wasm_rt_allocate_funcref_table(&functions, n, 1000000);
        wasm_rt_allocate_externref_table(&references, n, 1000000);
    }
    bool grow(uint32_t delta)
    {
        return wasm_rt_grow_memory(&memory, delta) != UINT32_MAX &&
               wasm_rt_grow_funcref_table(&functions, delta, wasm_rt_funcref_null_value) != UINT32_MAX &&
               wasm_rt_grow_externref_table(&references, delta, wasm_rt_externref_null_value) != UINT32_MAX;
    }
    void mark(uint8_t value)
    {
        for (uint32_t i = 0; i < references.size; i++)
            references.data[i] = reinterpret_cast<wasm_rt_externref_t>(uintptr_t(value) + i);
        std::memset(memory.data, value, memory.size);
    }
    bool is(uint32_t n, uint8_t value) const
    {
        bool right = memory.pages == n && functions.size == n && references.size == n;
        for (uint32_t i = 0; right && i < n; i++)
            right = references.data[i] == reinterpret_cast<wasm_rt_externref_t>(uintptr_t(value) + i);
        return right && memory.data[0] == value && memory.data[n * WASM_PAGE - 1] == value;
    }
    void end()
    {
        wasm_rt_free_memory(&memory);
        wasm_rt_free_funcref_table(&functions);
        wasm_rt_free_externref_table(&references);
    }
};

} // namespace

TEST_CASE("resets go to older, smaller snapshots and to newer, larger ones", "[wasm2c]")
{
    Wasm2c host;
    static Parts guest;
    guest.begin(1);
    guest.mark(1);
    Snapshot first(&guest, sizeof guest);
    REQUIRE(guest.grow(9));
    guest.mark(2);
    Snapshot second(&guest, sizeof guest);
    REQUIRE(guest.grow(40));
    guest.mark(3);
    Snapshot third(&guest, sizeof guest);
    for (int i = 0; i < 3; i++) {
        REQUIRE(hak_wasm_wasm2c_reset(&guest, first.snapshot) == 0);
        CHECK(guest.is(1, 1));
        REQUIRE(hak_wasm_wasm2c_reset(&guest, third.snapshot) == 0);
        CHECK(guest.is(50, 3));
        REQUIRE(hak_wasm_wasm2c_reset(&guest, second.snapshot) == 0);
        CHECK(guest.is(10, 2));
        REQUIRE(guest.grow(5));
        guest.mark(4);
    }
    guest.end();
    CHECK(hak_wasm_wasm2c_reset(&guest, first.snapshot) == -1);
}

TEST_CASE("a reset to a larger table is refused over the limit, and works below it", "[wasm2c]")
{
    Wasm2c host;
    TenantOptions options;
    options.limits.heap_bytes = MIB;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    static struct {
        wasm_rt_externref_table_t table;
    } guest;
    wasm_rt_allocate_externref_table(&guest.table, 500000, 1000000);
    Snapshot large(&guest, sizeof guest); // the host's tenant pays
    wasm_rt_free_externref_table(&guest.table);
    {
        Scope scope(tenant);
        wasm_rt_allocate_externref_table(&guest.table, 10, 1000000);
    }
    CHECK(hak_wasm_wasm2c_reset(&guest, large.snapshot) == -1);
    CHECK(guest.table.size == 10);
    options.limits.heap_bytes = 8 * MIB;
    hak_wasm_tenant_limit(tenant, &options.limits);
    CHECK(hak_wasm_wasm2c_reset(&guest, large.snapshot) == 0);
    CHECK(guest.table.size == 500000);
    wasm_rt_free_externref_table(&guest.table);
    CHECK(info_of(tenant).heap_live == 0);
    wasm_rt_allocate_externref_table(&guest.table, 10, 400000);
    CHECK(hak_wasm_wasm2c_reset(&guest, large.snapshot) == -1); // it may not have so many elements
    CHECK(guest.table.size == 10);
    wasm_rt_free_externref_table(&guest.table);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("what a tenant of another host has is grown, reset and freed whatever is current", "[wasm2c]")
{
    const HostOptions guarded = Wasm2c::guarded();
    Host other(&guarded); // before the default one
    Wasm2c host;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(other, nullptr);
    hak_wasm_tenant *here = hak_wasm_tenant_new(host, nullptr);
    static Parts guest;
    for (hak_wasm_tenant *current : {static_cast<hak_wasm_tenant *>(nullptr), here}) {
        {
            Scope scope(tenant);
            guest.begin(2);
        }
        Scope scope(current);
        guest.mark(1);
        {
            Snapshot snapshot(&guest, sizeof guest);
            REQUIRE(snapshot.snapshot != nullptr);
            CHECK(guest.grow(3));
            guest.mark(2);
            CHECK(info_of(tenant).linear_bytes == 5 * WASM_PAGE);
            CHECK(hak_wasm_wasm2c_reset(&guest, snapshot.snapshot) == 0);
            CHECK(guest.is(2, 1));
            CHECK(info_of(tenant).linear_bytes == 2 * WASM_PAGE);
        }
        CHECK(info_of(here).linear_bytes == 0);
        guest.end();
        CHECK(info_of(tenant).linear_bytes == 0);
        CHECK(info_of(tenant).heap_live == 0);
        CHECK(info_of(here).heap_live == 0);
    }
    hak_wasm_tenant_close(here, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("wrong arguments of the adapter are refused", "[wasm2c]")
{
    Wasm2c host;
    CHECK(hak_wasm_wasm2c_use(nullptr, false) == -1);
    CHECK(hak_wasm_wasm2c_use(nullptr, true) == -1);
    Z_small_instance_t guest = {};
    {
        Scope scope(hak_wasm_host_tenant(host));
        Z_small_instantiate(&guest);
        hak_wasm_wasm2c_snapshot *snapshot = hak_wasm_wasm2c_take(&guest, sizeof guest, nullptr);
        CHECK(snapshot != nullptr);
        CHECK(hak_wasm_wasm2c_reset(&guest, snapshot) == 0);
        CHECK(hak_wasm_wasm2c_reset(&guest, nullptr) == -1);
        hak_wasm_wasm2c_drop(snapshot);
        CHECK(hak_wasm_wasm2c_take(nullptr, 100, nullptr) == nullptr);
        CHECK(hak_wasm_wasm2c_take(&guest, 0, nullptr) == nullptr);
        hak_wasm_wasm2c_drop(nullptr);
    }
    Z_small_free(&guest);
}

TEST_CASE("an instance that rests gives its pages back until it is woken", "[wasm2c]")
{
    Wasm2c host;
    static Z_small_instance_t guest;
    Z_small_instantiate(&guest);
    Z_smallZ_init(&guest);
    Snapshot snapshot(&guest, sizeof guest);
    REQUIRE(snapshot.snapshot != nullptr);
    const uint32_t answer = Z_smallZ_handle(&guest, 3);
    for (int i = 0; i < 3; i++) {
        Z_smallZ_grow(&guest, 4);
        REQUIRE(hak_wasm_wasm2c_rest(&guest, snapshot.snapshot) == 0);
        CHECK(host.info().resting == 1);
        hak_wasm_host_trim(host);
        CHECK(hak_wasm_tenant_resident(hak_wasm_host_tenant(host)) == 0);
        hak_wasm_wasm2c_wake(snapshot.snapshot);
        CHECK(host.info().resting == 0);
        CHECK(Z_smallZ_pages(&guest) == 3);
        CHECK(Z_smallZ_handle(&guest, 3) == answer);
        hak_wasm_host_trim(host);
        CHECK(hak_wasm_tenant_resident(hak_wasm_host_tenant(host)) > 0);
    }
    hak_wasm_wasm2c_wake(nullptr);
    CHECK(hak_wasm_wasm2c_rest(&guest, nullptr) == -1);
    Z_small_free(&guest);
}
