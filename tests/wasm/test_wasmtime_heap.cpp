// wasmtime's own heap in the tenants' contexts. One process, one hook: every test uses the same runtime.
#include "wasmtime_test.h"

#include <thread>

using namespace test;

namespace
{

// Lives as long as the process, as hak_wasmtime_hook_heap asks.
Runtime &hooked()
{
    static Runtime *runtime = new Runtime(guarded(), wasm_config_new(), true);
    return *runtime;
}

size_t live(hak_wasm_tenant *tenant, hak_wasm_label label)
{
    return info_of(tenant).label[label].live_bytes;
}

} // namespace

TEST_CASE("what wasmtime allocates is the tenant's, by label", "[heap]")
{
    Runtime &runtime = hooked();
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    {
        Module module(runtime, GUEST, tenant);
        CHECK(live(tenant, HAK_WASM_LOAD) > 1000);
        CHECK(live(tenant, HAK_WASM_INSTANCE) == 0);
        {
            Instance guest(tenant, module);
            CHECK(live(tenant, HAK_WASM_INSTANCE) > 2000);
            guest.call("step", 1);
        }
        CHECK(live(tenant, HAK_WASM_INSTANCE) < 2000);
    }
    CHECK(live(tenant, HAK_WASM_LOAD) < 1000);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("no other code of the process is hooked", "[heap]")
{
    Runtime &runtime = hooked();
    Scope scope(hak_wasm_host_tenant(runtime.host));
    void *p = std::malloc(1000);
    CHECK_FALSE(hak_wasm_owns(runtime.host, p));
    std::free(p);
    CHECK(hak_wasmtime_hook_heap(runtime.host) == 0);
    Host other;
    CHECK(hak_wasmtime_hook_heap(other) == -1);
}

TEST_CASE("blocks that outlive their tenant keep it until they are freed", "[heap]")
{
    Runtime &runtime = hooked();
    hak_wasm_tenant *root = hak_wasm_host_tenant(runtime.host);
    Module module(runtime, GUEST);
    const size_t before = info_of(root).heap_committed;
    size_t survivors = 0;
    for (int i = 0; i < 300; i++) {
        hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
        {
            Instance guest(tenant, module);
            REQUIRE(guest.error == "");
            guest.call("step", i);
        }
        if (info_of(tenant).heap_live > 0) survivors++;
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    }
    // wasmtime makes a few things once, on behalf of whoever comes first.
    CHECK(survivors < 10);
    CHECK(info_of(root).heap_committed <= before + 16 * 64 * KIB);
}

TEST_CASE("a soft limit of the heap stops new instances, not wasmtime", "[heap]")
{
    Runtime &runtime = hooked();
    Module module(runtime, GUEST);
    TenantOptions options;
    options.limits.heap_bytes = 256 * KIB;
    options.limits.heap_soft = true;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    std::vector<hak_wasmtime_instance *> guests;
    std::string message;
    while (message.empty() && guests.size() < 10000) {
        wasmtime_error_t *error;
        wasm_trap_t *trap;
        hak_wasmtime_instance *guest =
            hak_wasmtime_instance_new(tenant, module.module, nullptr, nullptr, &error, &trap);
        message = text_of(error);
        if (guest) guests.push_back(guest);
    }
    CHECK(guests.size() > 1);
    CHECK(message.find("limit of instances or of heap") != std::string::npos);
    for (auto *guest : guests)
        hak_wasmtime_instance_close(guest);
    Instance again(tenant, module);
    CHECK(again.error == "");
    again.close();
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("past a hard limit of the heap the host pays, and wasmtime goes on", "[heap]")
{
    Runtime &runtime = hooked();
    TenantOptions options;
    options.limits.heap_bytes = 32 * KIB;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    {
        Module module(runtime, GUEST, tenant); // needs far more than that
        CHECK(info_of(tenant).heap_failures > 0);
        CHECK(info_of(tenant).heap_committed <= 32 * KIB);
        Instance guest(hak_wasm_host_tenant(runtime.host), module);
        CHECK(guest.call("step", 1) != 0);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("two threads with tenants of their own, blocks freed by the other", "[heap]")
{
    Runtime &runtime = hooked();
    Module module(runtime, GUEST);
    std::vector<hak_wasmtime_instance *> guests[2];
    hak_wasm_tenant *tenants[2];
    for (auto &tenant : tenants)
        tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    for (int round = 0; round < 20; round++) {
        std::thread threads[2];
        for (int t = 0; t < 2; t++) {
            threads[t] = std::thread([&, t] {
                for (auto *guest : guests[t])
                    hak_wasmtime_instance_close(guest);
                guests[t].clear();
                for (int i = 0; i < 50; i++) {
                    wasmtime_error_t *error;
                    wasm_trap_t *trap;
                    guests[t].push_back(hak_wasmtime_instance_new(tenants[t], module.module, nullptr, nullptr,
                                                                  &error, &trap));
                }
            });
        }
        for (auto &thread : threads)
            thread.join();
        std::swap(guests[0], guests[1]);
    }
    for (auto &list : guests) {
        for (auto *guest : list) {
            REQUIRE(guest != nullptr);
            hak_wasmtime_instance_close(guest);
        }
    }
    for (auto *tenant : tenants) {
        CHECK(info_of(tenant).instances == 0);
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    }
}
