// wasmtime's linear memories and limits by the host.
#include "wasmtime_test.h"

#include <memory>
#include <thread>

using namespace test;

TEST_CASE("instances have memories of the host", "[wasmtime]")
{
    Runtime runtime;
    Module module(runtime, GUEST);
    TenantOptions options;
    options.name = "customer";
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    {
        Instance guest(tenant, module);
        REQUIRE(guest.error == "");
        CHECK(hak_wasm_is_memory(runtime.host, guest.memory()));
        CHECK(guest.size() == 2 * WASM_PAGE);
        CHECK(std::memcmp(guest.memory() + 1024, "initial data", 12) == 0);
        CHECK(info_of(tenant).linear_bytes == 2 * WASM_PAGE);
        CHECK(info_of(tenant).instances == 1);

        CHECK(guest.call("grow", 3) == 2);
        CHECK(info_of(tenant).linear_bytes == 5 * WASM_PAGE);
        CHECK(is_zero(guest.memory() + 2 * WASM_PAGE, 3 * WASM_PAGE));
        CHECK(guest.call("load", int32_t(5 * WASM_PAGE - 4)) == 0);
        CHECK(guest.traps("load", int32_t(5 * WASM_PAGE - 3)));
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    CHECK(info_of(tenant).instances == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a slot shows nothing of the guest before", "[wasmtime]")
{
    Runtime runtime;
    Module large(runtime, GUEST);
    Module small(runtime, R"((module (memory (export "memory") 1)
        (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))))");
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
    for (int round = 0; round < 20; round++) {
        char *before;
        {
            Instance guest(tenant, large);
            REQUIRE(guest.call("grow", 4) == 2);
            before = guest.memory();
            std::memset(before, 0xEE, guest.size());
        }
        Instance guest(tenant, small);
        CHECK(guest.memory() == before); // or this test sees nothing
        CHECK(is_zero(guest.memory(), guest.size()));
        CHECK(guest.traps("load", WASM_PAGE));
        CHECK(guest.traps("load", 6 * WASM_PAGE - 4));
    }
}

TEST_CASE("over a limit the guest sees -1, its neighbour nothing", "[wasmtime]")
{
    Runtime runtime;
    Module module(runtime, GUEST);
    TenantOptions options;
    options.limits.linear_bytes = 4 * WASM_PAGE;
    options.limits.instances = 1;
    hak_wasm_tenant *greedy = hak_wasm_tenant_new(runtime.host, &options);
    hak_wasm_tenant *neighbour = hak_wasm_tenant_new(runtime.host, &options);
    {
        Instance guest(greedy, module), other(neighbour, module);
        CHECK(guest.call("grow", 2) == 2);
        CHECK(guest.call("grow", 1) == -1);
        CHECK(guest.size() == 4 * WASM_PAGE);
        CHECK(info_of(greedy).linear_refused == 1);
        CHECK(guest.call("load", 1024) == other.call("load", 1024));
        CHECK(other.call("grow", 2) == 2);

        Instance second(greedy, module);
        CHECK(second.instance == nullptr);
        CHECK(second.error.find("limit of instances") != std::string::npos);
        CHECK(info_of(greedy).instances_refused == 1);
    }
    options.limits.linear_bytes = WASM_PAGE;
    hak_wasm_tenant_limit(greedy, &options.limits);
    Instance guest(greedy, module);
    CHECK(guest.instance == nullptr);
    CHECK(guest.error.find("hakmem: no linear memory") != std::string::npos);
    CHECK(info_of(greedy).instances == 0);
    hak_wasm_tenant_close(greedy, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(neighbour, HAK_WASM_RETIRE);
}

TEST_CASE("what cannot work is refused with a message", "[wasmtime]")
{
    wasmtime_error_t *error;
    SECTION("a host without guards")
    {
        Host host;
        CHECK(hak_wasmtime_engine_new(host, wasm_config_new(), &error) == nullptr);
        CHECK(text_of(error).find("HAK_WASM_GUARD") != std::string::npos);
    }
    SECTION("the pooling strategy")
    {
        HostOptions options = guarded();
        Host host(&options);
        wasm_config_t *config = wasm_config_new();
        wasmtime_pooling_allocation_config_t *pool = wasmtime_pooling_allocation_config_new();
        wasmtime_pooling_allocation_config_total_memories_set(pool, 4);
        wasmtime_pooling_allocation_strategy_set(config, pool);
        wasmtime_pooling_allocation_config_delete(pool);
        CHECK(hak_wasmtime_engine_new(host, config, &error) == nullptr);
        CHECK(text_of(error).find("pooling strategy") != std::string::npos);
    }
    SECTION("a module that is none, one with an import that is not there, one whose start traps")
    {
        Runtime runtime;
        const uint8_t bytes[] = {0, 'a', 's', 'm', 1, 0, 0, 0, 10, 99};
        for (size_t n = 0; n <= sizeof bytes; n++) {
            if (n == 8) continue; // an empty module
            CHECK(hak_wasmtime_module_new(hak_wasm_host_tenant(runtime.host), runtime.engine, runtime.linker,
                                          bytes, n, &error) == nullptr);
            CHECK(text_of(error) != "");
        }
        wasm_byte_vec_t binary;
        const std::string text = R"((module (import "env" "absent" (func))))";
        require_none(wasmtime_wat2wasm(text.data(), text.size(), &binary));
        CHECK(hak_wasmtime_module_new(hak_wasm_host_tenant(runtime.host), runtime.engine, runtime.linker,
                                      reinterpret_cast<uint8_t *>(binary.data), binary.size,
                                      &error) == nullptr);
        CHECK(text_of(error).find("absent") != std::string::npos);
        wasm_byte_vec_delete(&binary);

        Module module(runtime, "(module (memory 1) (func $f unreachable) (start $f))");
        Instance guest(hak_wasm_host_tenant(runtime.host), module);
        CHECK(guest.instance == nullptr);
        CHECK(info_of(hak_wasm_host_tenant(runtime.host)).instances == 0);
    }
}

TEST_CASE("a configuration with copy-on-write images does not reach wasmtime's panic", "[wasmtime]")
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_memory_init_cow_set(config, true);
    Runtime runtime(guarded(), config);
    Module module(runtime, GUEST);
    Instance guest(hak_wasm_host_tenant(runtime.host), module);
    CHECK(guest.call("load", 1024) == 0x74696e69); // "init"
}

TEST_CASE("smaller slots and guards than wasmtime's own", "[wasmtime]")
{
    HostOptions options = guarded();
    options.slot_bytes = 4 * WASM_PAGE;
    options.guard_bytes = WASM_PAGE;
    Runtime runtime(options);
    Module module(runtime, GUEST);
    Instance guest(hak_wasm_host_tenant(runtime.host), module);
    CHECK(guest.traps("load", 2 * WASM_PAGE));
    CHECK(guest.traps("load", 5 * WASM_PAGE));
    CHECK(guest.traps("load", 1 << 30));
    CHECK(guest.traps("load", -4));
    CHECK(guest.call("grow", 2) == 2);
    CHECK(guest.call("grow", 1) == -1);
}

TEST_CASE("a store is prepared before the guest's first instruction", "[wasmtime]")
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_epoch_interruption_set(config, true);
    Runtime runtime(guarded(), config);
    Module module(runtime,
                  R"((module (memory (export "memory") 1) (func $start (loop $l (br_if $l (i32.const 0))))
        (start $start)))");
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
    Instance late(tenant, module); // the deadline of a new store is now
    CHECK(late.instance == nullptr);

    int mark = 0;
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    hak_wasmtime_instance *instance = hak_wasmtime_instance_new(
        tenant, module.module, &mark,
        [](wasmtime_store_t *store, void *data) {
            wasmtime_context_t *context = wasmtime_store_context(store);
            wasmtime_context_set_epoch_deadline(context, 1);
            *static_cast<int *>(data) = wasmtime_context_get_data(context) == data ? 1 : 2;
        },
        &error, &trap);
    require_none(error);
    REQUIRE(trap == nullptr);
    CHECK(mark == 1);
    hak_wasmtime_instance_close(instance);
}

TEST_CASE("a tenant whose heap is full gets errors, and nothing is left", "[wasmtime]")
{
    Runtime runtime;
    Module module(runtime, GUEST);
    TenantOptions options;
    options.limits.heap_bytes = 64 * KIB;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    std::vector<void *> blocks;
    {
        Scope scope(tenant, HAK_WASM_NATIVE);
        for (size_t n : {4 * KIB, 16 * size_t(1)}) {
            while (void *p = hak_wasm_alloc(runtime.host, n))
                blocks.push_back(p);
        }
    }
    const std::string text = "(module (memory 1))";
    wasm_byte_vec_t binary;
    require_none(wasmtime_wat2wasm(text.data(), text.size(), &binary));
    wasmtime_error_t *error;
    CHECK(hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker,
                                  reinterpret_cast<uint8_t *>(binary.data), binary.size, &error) == nullptr);
    CHECK(text_of(error) == "hakmem: no memory for a module");
    wasm_byte_vec_delete(&binary);
    {
        Instance guest(tenant, module);
        CHECK(guest.instance == nullptr);
        CHECK(guest.error != "");
    }
    CHECK(info_of(tenant).instances == 0);
    CHECK(info_of(tenant).linear_bytes == 0);
    for (void *p : blocks)
        hak_wasm_free(runtime.host, p);
    CHECK(info_of(tenant).heap_live == 0);
    {
        Instance guest(tenant, module);
        CHECK(guest.error == "");
    }
    CHECK(info_of(tenant).heap_live == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("two threads make and end instances of tenants with limits", "[wasmtime]")
{
    Runtime runtime;
    Module module(runtime, GUEST);
    const size_t code = info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes;
    struct Thread {
        int made = 0, wrong = 0;
        std::thread thread;
    } threads[2];
    for (auto &t : threads) {
        t.thread = std::thread([&runtime, &module, &t] {
            TenantOptions options;
            options.limits.linear_bytes = 3 * WASM_PAGE;
            hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
            for (int i = 0; i < 5000; i++) {
                wasmtime_error_t *error;
                wasm_trap_t *trap;
                hak_wasmtime_instance *instance =
                    hak_wasmtime_instance_new(tenant, module.module, nullptr, nullptr, &error, &trap);
                if (instance == nullptr) continue;
                t.made++;
                wasmtime_context_t *context = hak_wasmtime_instance_context(instance);
                wasmtime_extern_t memory;
                wasmtime_instance_export_get(context, hak_wasmtime_instance_get(instance), "memory", 6,
                                             &memory);
                char *p = reinterpret_cast<char *>(wasmtime_memory_data(context, &memory.of.memory));
                uint64_t before;
                wasmtime_error_t *first = wasmtime_memory_grow(context, &memory.of.memory, 1, &before);
                wasmtime_error_t *second = wasmtime_memory_grow(context, &memory.of.memory, 1, &before);
                if (first || !second || p[4096] != 0 || p[3 * WASM_PAGE - 1] != 0) t.wrong++;
                text_of(first), text_of(second);
                std::memset(p + 4096, 0x77, 100);
                p[3 * WASM_PAGE - 1] = 1;
                hak_wasmtime_instance_close(instance);
            }
            hak_wasm_tenant_info info = {}; // Catch's assertions are for one thread only
            info.size = sizeof info;
            hak_wasm_tenant_stats(tenant, &info);
            if (info.linear_bytes != 0 || info.instances != 0) t.wrong++;
            hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
        });
    }
    for (auto &t : threads) {
        t.thread.join();
        CHECK(t.made == 5000);
        CHECK(t.wrong == 0);
    }
    CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes == code);
}

TEST_CASE("who does not ask for reasons gets none, and wrong arguments are refused", "[wasmtime]")
{
    HostOptions flat;
    Host unfit(&flat);
    CHECK(hak_wasmtime_engine_new(unfit, wasm_config_new(), nullptr) == nullptr);
    Runtime runtime;
    CHECK(hak_wasmtime_engine_new(runtime.host, nullptr, nullptr) == nullptr);
    CHECK(hak_wasmtime_hook_heap(nullptr) == -1);
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
    const uint8_t nonsense[] = {1, 2, 3};
    CHECK(hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker, nonsense, 3, nullptr) == nullptr);
    CHECK(hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker, nullptr, 3, nullptr) == nullptr);
    CHECK(hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker, nonsense, 0, nullptr) == nullptr);
    CHECK(hak_wasmtime_instance_new(tenant, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr);
    hak_wasmtime_module_delete(nullptr);
    hak_wasmtime_instance_close(nullptr);
    hak_wasmtime_image_drop(nullptr);

    Module traps(runtime, "(module (func $f unreachable) (start $f))");
    CHECK(hak_wasmtime_instance_new(tenant, traps.module, nullptr, nullptr, nullptr, nullptr) == nullptr);
    Module module(runtime, GUEST);
    Instance guest(tenant, module);
    hak_wasmtime_image *image = hak_wasmtime_image_take(guest.instance, nullptr);
    CHECK(image != nullptr);
    CHECK(hak_wasmtime_reset(guest.instance, image) == 0);
    CHECK(hak_wasmtime_reset(guest.instance, nullptr) == -1);
    hak_wasmtime_image_drop(image);
    wasmtime_val_t in = {};
    in.kind = WASMTIME_I32;
    wasmtime_extern_t function = guest.get("trap");
    wasmtime_error_t *error =
        hak_wasmtime_call(guest.instance, &function.of.func, &in, 1, nullptr, 0, nullptr);
    CHECK(text_of(error) == "hakmem: the guest trapped");
    function = guest.get("store");
    require_none(hak_wasmtime_call(guest.instance, &function.of.func, &in, 1, nullptr, 0, nullptr));
    CHECK(info_of(tenant).instances == 1);

    Module shared(runtime, "(module (table (export \"t\") 1 10 externref) (func (export \"set\") (table.set "
                           "0 (i32.const 0) (ref.null extern))))");
    Instance stays(tenant, shared);
    CHECK(hak_wasmtime_image_take(stays.instance, nullptr) == nullptr);
}
