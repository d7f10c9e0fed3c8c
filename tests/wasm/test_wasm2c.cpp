// Guests compiled to C: their memories are a host's, by the linker.
#include "wasm_test.h"

#include <hakmem/wasm_wasm2c.h>

extern "C" {
#include "small.h"
#include <wasm-rt-impl.h>
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

// What a function trapped with; WASM_RT_TRAP_NONE = it did not.
template <typename Fn>
int trapped(Fn fn)
{
    int code = wasm_rt_impl_try();
    if (code == 0) fn();
    return code;
}

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

TEST_CASE("a guest is brought back by its image and a copy of its struct", "[wasm2c]")
{
    Wasm2c host;
    static Z_small_instance_t guest;
    Z_small_instantiate(&guest);
    Z_smallZ_init(&guest);
    wasm_rt_memory_t *memory = Z_smallZ_memory(&guest);
    hak_wasm_image *image = hak_wasm_image_take(host, memory->data);
    REQUIRE(image != nullptr);
    const Z_small_instance_t then = guest;
    const std::vector<uint8_t> bytes(memory->data, memory->data + memory->size);
    const uint32_t answer = Z_smallZ_handle(&guest, 3);
    for (int i = 0; i < 100; i++) {
        if (i % 3 == 0) Z_smallZ_grow(&guest, 4);
        if (i % 5 == 0) CHECK(trapped([] { Z_smallZ_trap(&guest); }) == WASM_RT_TRAP_UNREACHABLE);
        REQUIRE(hak_wasm_wasm2c_reset(host, memory, image) == 0);
        guest = then;
        CHECK(Z_smallZ_pages(&guest) == 3);
        REQUIRE(std::memcmp(memory->data, bytes.data(), bytes.size()) == 0);
        REQUIRE(Z_smallZ_handle(&guest, 3) == answer);
    }
    Z_small_free(&guest);
    CHECK(hak_wasm_wasm2c_reset(host, memory, image) == -1);
    hak_wasm_image_drop(image);
}
