// Programs: instances of several modules in one store, with one image and one account.
#include "wasmtime_test.h"

using namespace test;

namespace
{

// What others import: a memory, a table, a global and functions.
constexpr const char *PROVIDER = R"((module
  (memory (export "memory") 1 100)
  (table (export "table") 4 40 funcref)
  (global (export "count") (mut i32) (i32.const 0))
  (global $hidden (mut i32) (i32.const 3))
  (func $ten (result i32) (i32.const 10))
  (elem (i32.const 0) $ten)
  (func (export "add") (param i32) (result i32)
    (global.set $hidden (i32.add (global.get $hidden) (local.get 0)))
    (i32.store (i32.const 64) (global.get $hidden))
    (global.get $hidden))))";

constexpr const char *SCRIPT = R"((module
  (type $f (func (result i32)))
  (import "provider" "add" (func $add (param i32) (result i32)))
  (import "provider" "memory" (memory 1))
  (import "provider" "table" (table $t 4 funcref))
  (import "provider" "count" (global $count (mut i32)))
  (table $own 2 funcref)
  (global $mine (mut i32) (i32.const 5))
  (func $twenty (type $f) (i32.const 20))
  (elem (table $t) (i32.const 1) func $twenty)
  (data (i32.const 128) "script")
  (func (export "run") (param i32) (result i32)
    (global.set $mine (i32.add (global.get $mine) (local.get 0)))
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (i32.store (i32.const 128) (i32.add (i32.load (i32.const 128)) (local.get 0)))
    (i32.add
      (i32.add (i32.mul (global.get $mine) (i32.const 1000)) (call $add (local.get 0)))
      (i32.add (i32.mul (global.get $count) (i32.const 1000000)) (i32.load8_u (i32.const 128)))))
  (func (export "swap") (param i32)
    (table.set $t (i32.const 0) (ref.func $twenty))
    (table.set $t (i32.const 1) (ref.null func))
    (table.set $own (i32.const 1) (ref.func $twenty)))
  (func (export "ask") (param i32) (result i32) (call_indirect $t (type $f) (local.get 0)))
  (func (export "ask_own") (param i32) (result i32) (call_indirect $own (type $f) (local.get 0)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "widen") (param i32) (result i32) (table.grow $t (ref.null func) (local.get 0)))))";

struct Program : Instance {
    Program(Runtime &runtime, hak_wasm_tenant *tenant, std::vector<hak_wasmtime_part> parts) : Instance()
    {
        wasmtime_error_t *e;
        wasm_trap_t *trap;
        instance = hak_wasmtime_program_new(tenant, parts.data(), parts.size(), runtime.linker, nullptr,
                                            nullptr, &e, &trap);
        error = text_of(e);
        trapped = trap != nullptr;
        if (trap != nullptr) wasm_trap_delete(trap);
    }
    bool trapped = false;
};

} // namespace

TEST_CASE("the modules of a program have one store, one image and one account", "[program]")
{
    Runtime runtime;
    TenantOptions options;
    options.limits.instances = 2;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    {
        Module provider(runtime, PROVIDER, nullptr, false), script(runtime, SCRIPT, nullptr, false);
        CHECK(script.refused() != ""); // alone
        CHECK(provider.refused() == "");
        Program program(runtime, tenant, {{"provider", provider.module}, {nullptr, script.module}});
        REQUIRE(program.error == "");
        CHECK(info_of(tenant).instances == 1);
        CHECK(info_of(tenant).linear_bytes >= WASM_PAGE);
        program.call("run", 1);
        const char *why;
        hak_wasmtime_image *image = hak_wasmtime_image_take(program.instance, &why);
        INFO((why ? why : ""));
        REQUIRE(image != nullptr);
        const int32_t next = program.call("run", 2);
        REQUIRE(hak_wasmtime_reset(program.instance, image) == 0);
        Program other(runtime, tenant, {{"provider", provider.module}, {nullptr, script.module}});
        REQUIRE(other.error == "");
        for (Program *one : {&program, &other, &program}) {
            REQUIRE(hak_wasmtime_reset(one->instance, image) == 0);
            CHECK(one->call("run", 2) == next);
            CHECK(one->call("run", 2) != next);
            CHECK(one->call("ask", 0) == 10);
            CHECK(one->call("ask", 1) == 20);
            one->call("swap");
            CHECK(one->call("ask", 0) == 20);
            CHECK(one->traps("ask", 1));
            CHECK(one->call("ask_own", 1) == 20);
            REQUIRE(hak_wasmtime_rest(one->instance, image) == 0);
            hak_wasm_host_trim(runtime.host);
            CHECK(one->call("ask", 0) == 10);
            CHECK(one->call("ask", 1) == 20);
            CHECK(one->traps("ask_own", 1));
            CHECK(one->call("run", 2) == next);
        }
        Program third(runtime, tenant, {{"provider", provider.module}, {nullptr, script.module}});
        CHECK(third.error.find("limit of instances") != std::string::npos);
        // A memory or table that a part made grow is another's, and cannot go back either.
        CHECK(other.call("grow", 1) == 1);
        CHECK(hak_wasmtime_reset(other.instance, image) == -1);
        CHECK(program.call("widen", 1) == 4);
        CHECK(hak_wasmtime_reset(program.instance, image) == -1);
        CHECK(hak_wasmtime_program_part(program.instance, 0) != nullptr);
        CHECK(hak_wasmtime_program_part(program.instance, 1) == hak_wasmtime_instance_get(program.instance));
        CHECK(hak_wasmtime_program_part(program.instance, 2) == nullptr);
        // An image of the provider alone is another thing. With a linker, its table is not seen to change.
        Module linked(runtime, PROVIDER);
        Instance alone(hak_wasm_host_tenant(runtime.host), linked);
        CHECK(hak_wasmtime_reset(alone.instance, image) == -1);
        program.close();
        Program unseen(runtime, tenant, {{"provider", linked.module}, {nullptr, script.module}});
        REQUIRE(unseen.error == "");
        CHECK(hak_wasmtime_image_take(unseen.instance, &why) == nullptr);
        CHECK(std::string(why).find("was loaded with a linker") != std::string::npos);
        hak_wasmtime_image_drop(image);
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    CHECK(info_of(tenant).instances == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a program that cannot be is refused with the reason, and leaves nothing", "[program]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    {
        Module provider(runtime, PROVIDER, nullptr, false), script(runtime, SCRIPT, nullptr, false);
        Module bad(runtime,
                   "(module (import \"provider\" \"add\" (func (param i32) (result i32))) (memory 1) "
                   "(func $f unreachable) (start $f))",
                   nullptr, false);
        const struct {
            const char *why;
            std::vector<hak_wasmtime_part> parts;
        } cases[] = {
            {"there is no module", {}},
            {"there is no module", {{"provider", provider.module}, {nullptr, nullptr}}},
            {"has no name", {{nullptr, provider.module}, {nullptr, script.module}}},
            {"unknown import", {{nullptr, script.module}}},
            {"unknown import", {{"other", provider.module}, {nullptr, script.module}}},
            {"unknown import", {{"script", script.module}, {"provider", provider.module}}},
        };
        for (const auto &c : cases) {
            INFO(c.why);
            Program program(runtime, tenant, c.parts);
            CHECK(program.instance == nullptr);
            CHECK(program.error.find(c.why) != std::string::npos);
        }
        Program program(runtime, tenant, {{"provider", provider.module}, {nullptr, bad.module}});
        CHECK(program.instance == nullptr);
        CHECK(program.trapped);
        Instance alone(tenant, script);
        CHECK(alone.instance == nullptr);
        CHECK(alone.error.find("is for a program") != std::string::npos);
        wasmtime_error_t *error;
        const hak_wasmtime_part part = {nullptr, provider.module};
        CHECK(hak_wasmtime_program_new(tenant, &part, 1, nullptr, nullptr, nullptr, &error, nullptr) ==
              nullptr);
        CHECK(text_of(error).find("needs a linker") != std::string::npos);
        CHECK(info_of(tenant).linear_bytes == 0);
        CHECK(info_of(tenant).instances == 0);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("no part of a program takes more than the tenant may have", "[program]")
{
    Runtime runtime;
    TenantOptions options;
    options.limits.linear_bytes = 4 * WASM_PAGE;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    hak_wasm_tenant *neighbour = hak_wasm_tenant_new(runtime.host, &options);
    {
        Module provider(runtime, PROVIDER, nullptr, false), script(runtime, SCRIPT, nullptr, false);
        for (int round = 0; round < 3; round++) {
            Program program(runtime, tenant, {{"provider", provider.module}, {nullptr, script.module}});
            REQUIRE(program.error == "");
            while (program.call("grow", 1) != -1)
                REQUIRE(info_of(tenant).linear_bytes <= 4 * WASM_PAGE);
            while (program.call("widen", 1) != -1)
                REQUIRE(info_of(tenant).linear_bytes <= 4 * WASM_PAGE);
            CHECK(info_of(tenant).linear_bytes > 3 * WASM_PAGE - 1);
            Program more(runtime, tenant, {{"provider", provider.module}, {nullptr, script.module}});
            CHECK(more.instance == nullptr);
            Program served(runtime, neighbour, {{"provider", provider.module}, {nullptr, script.module}});
            REQUIRE(served.error == "");
            CHECK(served.call("ask", 0) == 10);
        }
        // Parts share the number of memories that an instance may have.
        Module two(runtime, "(module (memory 0) (memory 0))");
        Program many(runtime, neighbour, {{"a", two.module}, {"b", two.module}, {"c", two.module}});
        CHECK(many.instance == nullptr);
        CHECK(many.error != "");
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(neighbour, HAK_WASM_RETIRE);
}

TEST_CASE("a part imports what another exports, and nothing of what hakmem sees of that one", "[program]")
{
    Runtime runtime;
    Module provider(runtime, PROVIDER, nullptr, false);
    const struct {
        const char *import;
        bool fine;
    } cases[] = {
        {"\"add\" (func (param i32) (result i32))", true},
        {"\"memory\" (memory 1)", true},
        {"\"table\" (table 4 funcref)", true},
        {"\"count\" (global (mut i32))", true},
        {"\"hak:memory\" (memory 1)", false},
        {"\"hak:table:0\" (table 4 funcref)", false},
        {"\"hak:global:1\" (global (mut i32))", false},
        {"\"hak:function:0\" (func (result i32))", false},
    };
    for (const auto &c : cases) {
        INFO(c.import);
        Module plugin(runtime, std::string("(module (import \"provider\" ") + c.import + "))", nullptr,
                      false);
        Program program(runtime, hak_wasm_host_tenant(runtime.host),
                        {{"provider", provider.module}, {nullptr, plugin.module}});
        CHECK((program.instance != nullptr) == c.fine);
        if (!c.fine) CHECK(program.error.find("unknown import") != std::string::npos);
    }
}

namespace
{

wasm_config_t *with_threads()
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_wasm_threads_set(config, true);
    wasmtime_config_shared_memory_set(config, true);
    return config;
}

// The linker's "env" "m".
void define_shared_memory(Runtime &runtime)
{
    wasm_memorytype_t *type;
    require_none(wasmtime_memorytype_new(1, true, 1, false, true, 16, &type));
    wasmtime_extern_t item;
    item.kind = WASMTIME_EXTERN_SHAREDMEMORY;
    require_none(wasmtime_sharedmemory_new(runtime.engine, type, &item.of.sharedmemory));
    wasmtime_store_t *store = wasmtime_store_new(runtime.engine, nullptr, nullptr);
    require_none(
        wasmtime_linker_define(runtime.linker, wasmtime_store_context(store), "env", 3, "m", 1, &item));
    wasmtime_store_delete(store);
    wasmtime_extern_delete(&item);
    wasm_memorytype_delete(type);
}

} // namespace

// Of all that a program imports and that changes, such a memory alone can be no part's: it belongs to no store.
TEST_CASE("a program with a shared memory of the linker's has no image", "[program]")
{
    Runtime runtime(guarded(), with_threads());
    define_shared_memory(runtime);
    Module own(runtime, "(module (memory 1))", nullptr, false);
    Module borrows(runtime, R"((module (import "env" "m" (memory 1 1 shared))
        (func (export "store") (param i32) (i32.store (i32.const 8) (local.get 0)))
        (func (export "load") (result i32) (i32.load (i32.const 8)))))",
                   nullptr, false);
    CHECK(borrows.refused() == "its memory is shared between threads");
    Program program(runtime, hak_wasm_host_tenant(runtime.host),
                    {{"own", own.module}, {nullptr, borrows.module}});
    REQUIRE(program.error == "");
    const char *why = nullptr;
    hak_wasmtime_image *image = hak_wasmtime_image_take(program.instance, &why);
    CHECK(image == nullptr);
    CHECK(std::string(why ? why : "") == "its memory is shared between threads");
    program.call("store", 7);
    CHECK(program.call("load") == 7);
    hak_wasmtime_image_drop(image);
}
