// Components: their memories are the tenant's that is entered. There is nothing else that the C API shows of them.
#include "wasmtime_test.h"

#include <wasmtime/component.h>

using namespace test;

namespace
{

constexpr const char *COMPONENT = R"((component
  (core module $m
    (memory 2 100)
    (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))
  (core instance $i (instantiate $m))
  (func (export "grow") (param "n" s32) (result s32) (canon lift (core func $i "grow")))))";

struct Store {
    wasmtime_store_t *store;
    wasmtime_context_t *context;
    explicit Store(wasm_engine_t *engine)
        : store(wasmtime_store_new(engine, nullptr, nullptr)), context(wasmtime_store_context(store))
    {
    }
    Store(const Store &) = delete;
    Store &operator=(const Store &) = delete;
    ~Store()
    {
        wasmtime_store_delete(store);
    }
};

} // namespace

TEST_CASE("the memories of a component are the tenant's, within its limit", "[component]")
{
    Runtime runtime;
    TenantOptions options;
    options.limits.linear_bytes = 5 * WASM_PAGE;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    wasm_byte_vec_t binary;
    require_none(wasmtime_wat2wasm(COMPONENT, std::strlen(COMPONENT), &binary));
    wasmtime_component_t *component;
    require_none(wasmtime_component_new(runtime.engine, reinterpret_cast<uint8_t *>(binary.data), binary.size,
                                        &component));
    wasmtime_component_linker_t *linker = wasmtime_component_linker_new(runtime.engine);
    const hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    for (int round = 0; round < 3; round++) {
        Store store(runtime.engine), other(runtime.engine);
        wasmtime_component_instance_t instance, second;
        require_none(wasmtime_component_linker_instantiate(linker, store.context, component, &instance));
        CHECK(info_of(tenant).linear_bytes == 2 * WASM_PAGE);
        wasmtime_component_export_index_t *index =
            wasmtime_component_instance_get_export_index(&instance, store.context, nullptr, "grow", 4);
        REQUIRE(index != nullptr);
        wasmtime_component_func_t grow;
        REQUIRE(wasmtime_component_instance_get_func(&instance, store.context, index, &grow));
        wasmtime_component_export_index_delete(index);
        const auto grown = [&](int32_t pages) {
            wasmtime_component_val_t argument = {}, result = {};
            argument.kind = result.kind = WASMTIME_COMPONENT_S32;
            argument.of.s32 = pages;
            require_none(wasmtime_component_func_call(&grow, store.context, &argument, 1, &result, 1));
            return result.of.s32;
        };
        CHECK(grown(2) == 2);
        CHECK(info_of(tenant).linear_bytes == 4 * WASM_PAGE);
        CHECK(grown(2) == -1);
        CHECK(text_of(wasmtime_component_linker_instantiate(linker, other.context, component, &second)) !=
              "");
        CHECK(info_of(tenant).linear_bytes == 4 * WASM_PAGE);
    }
    hak_wasm_leave(before);
    CHECK(info_of(tenant).linear_bytes == 0);
    wasmtime_component_linker_delete(linker);
    wasmtime_component_delete(component);
    wasm_byte_vec_delete(&binary);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a component is not taken for a module", "[component]")
{
    Runtime runtime;
    wasm_byte_vec_t binary;
    require_none(wasmtime_wat2wasm(COMPONENT, std::strlen(COMPONENT), &binary));
    wasmtime_error_t *error;
    CHECK(hak_wasmtime_module_new(hak_wasm_host_tenant(runtime.host), runtime.engine, runtime.linker,
                                  reinterpret_cast<uint8_t *>(binary.data), binary.size, &error) == nullptr);
    CHECK(text_of(error) != "");
    wasm_byte_vec_delete(&binary);
}
