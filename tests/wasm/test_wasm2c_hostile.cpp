// Hostile guests of wasm2c: nothing over a limit, and the next tenant is served.
#include "wasm2c_test.h"

#include <alloca.h>

extern "C" {
#include "hostile.h"
#include "small.h"
}

using namespace test;

namespace
{

constexpr size_t LIMIT = 2 * MIB;

hak_wasm_tenant *limited(hak_wasm_host *host)
{
    TenantOptions options;
    options.limits.linear_bytes = LIMIT;
    options.limits.heap_bytes = LIMIT;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    REQUIRE(tenant != nullptr);
    return tenant;
}

Z_hostile_instance_t evil;
Z_small_instance_t good;
u32 result;

struct Act {
    const char *name;
    int trap; // WASM_RT_TRAP_NONE: it ends
    void (*run)();
};

const Act ACTS[] = {
    {"pages", WASM_RT_TRAP_NONE, [] { result = Z_hostileZ_pages(&evil); }},
    {"elements", WASM_RT_TRAP_NONE, [] { result = Z_hostileZ_elements(&evil); }},
    {"deep", WASM_RT_TRAP_EXHAUSTION, [] { Z_hostileZ_deep(&evil); }},
    {"deep_pages", WASM_RT_TRAP_EXHAUSTION, [] { Z_hostileZ_deep_pages(&evil); }},
    {"deep_elements", WASM_RT_TRAP_EXHAUSTION, [] { Z_hostileZ_deep_elements(&evil); }},
    {"deep_locals", WASM_RT_TRAP_EXHAUSTION, [] { Z_hostileZ_deep_locals(&evil, 1, 2, 3, 4); }},
    {"spin", WASM_RT_TRAP_EXHAUSTION, [] { Z_hostileZ_spin(&evil); }},
    {"beyond", WASM_RT_TRAP_OOB, [] { Z_hostileZ_beyond(&evil); }},
    {"segment", WASM_RT_TRAP_OOB, [] { Z_hostileZ_segment(&evil); }},
    // A range takes its steps before it begins, and has more bytes than there are steps.
    {"segment_source", WASM_RT_TRAP_EXHAUSTION, [] { Z_hostileZ_segment_source(&evil); }},
    {"segment_elements", WASM_RT_TRAP_OOB, [] { Z_hostileZ_segment_elements(&evil); }},
    {"wrong", WASM_RT_TRAP_CALL_INDIRECT, [] { Z_hostileZ_wrong(&evil); }},
};

void serve_the_next(hak_wasm_tenant *tenant)
{
    Scope scope(tenant);
    hak_wasm_wasm2c_steps();
    REQUIRE(trapped([] { Z_small_instantiate(&good); }) == 0);
    REQUIRE(trapped([] { result = Z_smallZ_grow(&good, 2); }) == 0);
    CHECK(result == 3);
    REQUIRE(trapped([] {
                Z_smallZ_init(&good);
                result = Z_smallZ_handle(&good, 5);
            }) == 0);
    Z_small_free(&good);
    CHECK(info_of(tenant).linear_bytes == 0);
}

// From a place on the stack that many bytes further down.
__attribute__((noinline)) int act_below(size_t bytes, const Act &act)
{
    volatile char *p = static_cast<volatile char *>(alloca(bytes + 1));
    p[bytes] = 0;
    hak_wasm_wasm2c_steps();
    return trapped(act.run);
}

} // namespace

TEST_CASE("whatever a guest does, it stays within its limits, and others are served", "[wasm2c]")
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    options.guard_bytes = size_t(4) << 30;
    Host host(&options);
    REQUIRE(hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER) == 0);
    wasm_rt_init();
    Z_hostile_init_module();
    Z_small_init_module();
    hak_wasm_tenant *attacker = limited(host), *next = limited(host);
    hak_wasm_tenant_steps(attacker, 3000000);
    for (const Act &act : ACTS) {
        // Wherever the stack ends: within the guest, or within a function that the guest calls.
        const bool deep = std::strncmp(act.name, "deep", 4) == 0;
        for (size_t below = 0; below < (deep ? 4096 : 1); below += 2600) {
            INFO(act.name << ", " << below << " bytes further down");
            {
                Scope scope(attacker);
                hak_wasm_wasm2c_steps();
                REQUIRE(trapped([] { Z_hostile_instantiate(&evil); }) == 0);
                const char *why;
                hak_wasm_wasm2c_snapshot *fresh = hak_wasm_wasm2c_take(&evil, sizeof evil, &why);
                REQUIRE(fresh != nullptr);
                for (int i = 0; i < (deep ? 1 : 2); i++) {
                    CHECK(act_below(below, act) == act.trap);
                    const hak_wasm_tenant_info info = info_of(attacker);
                    CHECK(info.linear_peak <= LIMIT);
                    CHECK(info.heap_committed <= LIMIT);
                    if (std::strcmp(act.name, "pages") == 0) CHECK(result == LIMIT / WASM_PAGE - 1);
                    if (std::strcmp(act.name, "elements") == 0) CHECK(result >= 20000);
                    serve_the_next(next);
                    REQUIRE(hak_wasm_wasm2c_reset(&evil, fresh) == 0);
                    hak_wasm_wasm2c_steps();
                    CHECK(trapped([] { result = Z_hostileZ_answer(&evil); }) == 0);
                    CHECK(result == 42);
                }
                hak_wasm_wasm2c_drop(fresh);
                Z_hostile_free(&evil);
            }
            const hak_wasm_tenant_info info = info_of(attacker);
            CHECK(info.linear_bytes == 0);
            CHECK(info.heap_live == 0);
        }
    }
    hak_wasm_tenant_close(attacker, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(next, HAK_WASM_RETIRE);
    CHECK(host.info().live == 0);
}

TEST_CASE("as many instances as a tenant can have are within its limits", "[wasm2c]")
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    options.guard_bytes = size_t(4) << 30;
    Host host(&options);
    REQUIRE(hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER) == 0);
    wasm_rt_init();
    Z_hostile_init_module();
    Z_small_init_module();
    hak_wasm_tenant *attacker = limited(host), *next = limited(host);
    const auto is_within = [&] {
        CHECK(info_of(attacker).linear_peak <= LIMIT);
        CHECK(info_of(attacker).heap_committed <= LIMIT);
    };
    static Z_hostile_instance_t guests[LIMIT / WASM_PAGE + 1];
    static size_t made;
    {
        Scope scope(attacker);
        hak_wasm_wasm2c_steps();
        int trap = 0;
        for (made = 0; made < std::size(guests) && trap == 0; made++) {
            trap = trapped([] { Z_hostile_instantiate(&guests[made]); });
            is_within();
        }
        // The last one has no memory: each takes a page.
        CHECK(trap != 0);
        CHECK(made == std::size(guests));
        for (size_t i = 0; i + 1 < made; i++) {
            static Z_hostile_instance_t *guest;
            guest = &guests[i];
            CHECK(trapped([] { result = Z_hostileZ_pages(guest); }) == 0);
            CHECK(result == 1);
            CHECK(trapped([] { result = Z_hostileZ_elements(guest); }) == 0);
        }
        is_within();
        serve_the_next(next);
        for (size_t i = 0; i < made; i++)
            Z_hostile_free(&guests[i]);
    }
    CHECK(info_of(attacker).linear_bytes == 0);
    CHECK(info_of(attacker).heap_live == 0);
    hak_wasm_tenant_close(attacker, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(next, HAK_WASM_RETIRE);
    CHECK(host.info().live == 0);
}

TEST_CASE("a function of the host traps where the guest left it no stack", "[wasm2c]")
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    options.guard_bytes = size_t(4) << 30;
    Host host(&options);
    REQUIRE(hak_wasm_wasm2c_use(host, true) == 0);
    wasm_rt_init();
    CHECK(trapped([] { hak_wasm_wasm2c_stack(64 << 10); }) == 0);
    CHECK(trapped([] { hak_wasm_wasm2c_stack(0); }) == 0);
    CHECK(trapped([] { hak_wasm_wasm2c_stack(size_t(1) << 30); }) == WASM_RT_TRAP_EXHAUSTION);
    // Where guests count their depth, nothing is touched.
    REQUIRE(hak_wasm_wasm2c_use(host, false) == 0);
    CHECK(trapped([] { hak_wasm_wasm2c_stack(size_t(1) << 30); }) == 0);
    REQUIRE(hak_wasm_wasm2c_use(host, true) == 0);
}
