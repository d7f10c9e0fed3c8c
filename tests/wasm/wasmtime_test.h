// wasmtime under hakmem, for tests: modules as text, calls that fail the test on errors.
#pragma once

#include "wasm_test.h"

#include <hakmem/wasm_wasmtime.h>

#include <string>

namespace test
{

inline std::string text_of(wasmtime_error_t *error)
{
    if (error == nullptr) return "";
    wasm_name_t message;
    wasmtime_error_message(error, &message);
    std::string text(message.data, message.size);
    wasm_byte_vec_delete(&message);
    wasmtime_error_delete(error);
    return text;
}

inline void require_none(wasmtime_error_t *error)
{
    INFO(text_of(error));
    REQUIRE(error == nullptr);
}

inline HostOptions guarded()
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    return options;
}

// Host, engine and an empty linker, ended in the right order.
struct Runtime {
    hak_wasm_host *host;
    wasm_engine_t *engine;
    wasmtime_linker_t *linker;

    explicit Runtime(const HostOptions &options = guarded(), wasm_config_t *config = wasm_config_new(),
                     bool hook = false)
        : host(hak_wasm_host_new(&options))
    {
        REQUIRE(host != nullptr);
        if (hook) REQUIRE(hak_wasmtime_hook_heap(host) == 0);
        wasmtime_error_t *error;
        engine = hak_wasmtime_engine_new(host, config, &error);
        require_none(error);
        linker = wasmtime_linker_new(engine);
    }
    Runtime(const Runtime &) = delete;
    Runtime &operator=(const Runtime &) = delete;
    void end_engine()
    {
        if (engine != nullptr) {
            wasmtime_linker_delete(linker);
            wasm_engine_delete(engine);
        }
        engine = nullptr;
    }
    ~Runtime()
    {
        end_engine();
        hak_wasm_host_delete(host);
    }
};

struct Module {
    hak_wasmtime_module *module;

    // linked: its imports are the linker's; else it is for programs.
    Module(Runtime &runtime, const std::string &text, hak_wasm_tenant *tenant = nullptr, bool linked = true)
    {
        wasm_byte_vec_t binary;
        require_none(wasmtime_wat2wasm(text.data(), text.size(), &binary));
        wasmtime_error_t *error;
        module = hak_wasmtime_module_new(tenant ? tenant : hak_wasm_host_tenant(runtime.host), runtime.engine,
                                         linked ? runtime.linker : nullptr,
                                         reinterpret_cast<uint8_t *>(binary.data), binary.size, &error);
        require_none(error);
        wasm_byte_vec_delete(&binary);
    }
    Module(const Module &) = delete;
    Module &operator=(const Module &) = delete;
    ~Module()
    {
        hak_wasmtime_module_delete(module);
    }
    std::string refused() const
    {
        const char *why = hak_wasmtime_module_refused(module);
        return why ? why : "";
    }
};

struct Instance {
    hak_wasmtime_instance *instance = nullptr;
    std::string error; // of the creation

    Instance() = default;
    Instance(hak_wasm_tenant *tenant, const Module &module)
    {
        wasmtime_error_t *e;
        wasm_trap_t *trap;
        instance = hak_wasmtime_instance_new(tenant, module.module, nullptr, nullptr, &e, &trap);
        error = text_of(e);
        if (trap != nullptr) wasm_trap_delete(trap);
    }
    Instance(const Instance &) = delete;
    Instance &operator=(const Instance &) = delete;
    ~Instance()
    {
        close();
    }
    void close()
    {
        hak_wasmtime_instance_close(instance);
        instance = nullptr;
    }
    wasmtime_extern_t get(const char *name)
    {
        wasmtime_extern_t item;
        REQUIRE(wasmtime_instance_export_get(hak_wasmtime_instance_context(instance),
                                             hak_wasmtime_instance_get(instance), name, std::strlen(name),
                                             &item));
        return item;
    }
    // Whether the call came back; with up to one argument and one result, both i32.
    bool try_call(const char *name, int32_t argument, int32_t *result)
    {
        wasmtime_extern_t item = get(name);
        wasm_functype_t *type = wasmtime_func_type(hak_wasmtime_instance_context(instance), &item.of.func);
        size_t parameters = wasm_functype_params(type)->size, results = wasm_functype_results(type)->size;
        wasm_functype_delete(type);
        wasmtime_val_t in = {}, out = {};
        in.kind = WASMTIME_I32;
        in.of.i32 = argument;
        wasm_trap_t *trap;
        require_none(hak_wasmtime_call(instance, &item.of.func, &in, parameters, &out, results, &trap));
        if (result != nullptr) *result = out.of.i32;
        if (trap == nullptr) return true;
        wasm_trap_delete(trap);
        return false;
    }
    int32_t call(const char *name, int32_t argument = 0)
    {
        int32_t result = 0;
        INFO(name);
        REQUIRE(try_call(name, argument, &result));
        return result;
    }
    bool traps(const char *name, int32_t argument = 0)
    {
        return !try_call(name, argument, nullptr);
    }
    char *memory()
    {
        wasmtime_extern_t item = get("memory");
        return reinterpret_cast<char *>(
            wasmtime_memory_data(hak_wasmtime_instance_context(instance), &item.of.memory));
    }
    size_t size()
    {
        wasmtime_extern_t item = get("memory");
        return wasmtime_memory_data_size(hak_wasmtime_instance_context(instance), &item.of.memory);
    }
    std::string bytes()
    {
        return std::string(memory(), size());
    }
};

// A guest with all kinds of state that a reset covers.
constexpr const char *GUEST = R"((module
  (memory (export "memory") 2)
  (global $stack (mut i32) (i32.const 65536))
  (global $wide (mut i64) (i64.const 7))
  (global $real (mut f64) (f64.const 0.5))
  (global $vector (mut v128) (v128.const i64x2 1 2))
  (data (i32.const 1024) "initial data")
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "store") (param i32) (i32.store (local.get 0) (i32.const 0x55aa55aa)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "step") (param i32) (result i32)
    (global.set $stack (i32.sub (global.get $stack) (i32.const 16)))
    (global.set $wide (i64.mul (global.get $wide) (i64.const 3)))
    (global.set $real (f64.add (global.get $real) (f64.const 1)))
    (global.set $vector (i64x2.add (global.get $vector) (global.get $vector)))
    (i32.store (i32.const 4096) (i32.add (i32.load (i32.const 4096)) (local.get 0)))
    (i32.add
      (i32.add (global.get $stack) (i32.wrap_i64 (global.get $wide)))
      (i32.add
        (i32.add (i32.trunc_f64_s (global.get $real)) (i32x4.extract_lane 2 (global.get $vector)))
        (i32.load (i32.const 4096)))))
  (func (export "trap") (param i32)
    (global.set $stack (i32.sub (global.get $stack) (i32.const 4096)))
    (i32.store (i32.const 70000) (local.get 0))
    unreachable)
  (func $deep (export "deep") (call $deep))
))";

} // namespace test
