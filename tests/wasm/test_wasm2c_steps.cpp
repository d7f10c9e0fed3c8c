// Guests of wasm2c whose C counts its steps.
#include "wasm2c_test.h"

extern "C" {
#include "endless.h"
#include "endless_start.h"
}

using namespace test;

TEST_CASE("a guest of wasm2c ends when its steps are used up", "[wasm2c]")
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    options.guard_bytes = size_t(4) << 30;
    Host host(&options);
    REQUIRE(hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER) == 0);
    wasm_rt_init();
    Z_endless_init_module();
    Z_endless_start_init_module();
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    hak_wasm_tenant_steps(tenant, 100000);
    {
        Scope scope(tenant);
        static Z_endless_instance_t guest;
        static Z_endless_start_instance_t starts;
        hak_wasm_wasm2c_steps();
        CHECK(trapped([] { Z_endless_instantiate(&guest); }) == 0);
        for (int i = 0; i < 3; i++) {
            for (auto function : {+[] { Z_endlessZ_spin(&guest); }, +[] { Z_endlessZ_fill(&guest); },
                                  +[] { Z_endlessZ_twice(&guest, 60); }, +[] { Z_endlessZ_both(&guest, 1); },
                                  +[] { Z_endlessZ_both(&guest, 0); }}) {
                hak_wasm_wasm2c_steps();
                CHECK_FALSE(hak_wasm_wasm2c_spent());
                CHECK(trapped(function) == WASM_RT_TRAP_EXHAUSTION);
                CHECK(hak_wasm_wasm2c_spent());
            }
            // Nothing is left until the host says so.
            CHECK(trapped([] { Z_endlessZ_count(&guest, 1); }) == WASM_RT_TRAP_EXHAUSTION);
            hak_wasm_wasm2c_steps();
            static u32 counted;
            CHECK(trapped([] { counted = Z_endlessZ_count(&guest, 1000); }) == 0);
            CHECK(counted == 1000);
            CHECK_FALSE(hak_wasm_wasm2c_spent());
        }
        // A range costs as much as a loop over it: 100,000 steps are less than 100 ranges of 64 KiB.
        hak_wasm_tenant_steps(tenant, 1000);
        hak_wasm_wasm2c_steps();
        CHECK(trapped([] { Z_endlessZ_fill(&guest); }) == WASM_RT_TRAP_EXHAUSTION);
        // The start function.
        hak_wasm_wasm2c_steps();
        CHECK(trapped([] { Z_endless_start_instantiate(&starts); }) == WASM_RT_TRAP_EXHAUSTION);
        CHECK(hak_wasm_wasm2c_spent());
        hak_wasm_tenant_steps(tenant, 0);
        hak_wasm_wasm2c_steps();
        static u32 counted;
        CHECK(trapped([] { counted = Z_endlessZ_count(&guest, 1000000); }) == 0);
        CHECK(counted == 1000000);
        Z_endless_free(&guest);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}
