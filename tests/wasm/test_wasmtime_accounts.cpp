// What wasmtime keeps of a module is the tenant's; what a module may have, and how long a guest may run.
#include "wasmtime_test.h"

using namespace test;

namespace
{

hak_wasm_tenant *tenant_of(const Runtime &runtime, size_t linear_bytes)
{
    TenantOptions options;
    options.name = "payer";
    options.limits.linear_bytes = linear_bytes;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    REQUIRE(tenant != nullptr);
    return tenant;
}

// The error of a module that is not taken.
std::string refusal(Runtime &runtime, hak_wasm_tenant *tenant, const std::string &text)
{
    wasm_byte_vec_t binary;
    require_none(wasmtime_wat2wasm(text.data(), text.size(), &binary));
    wasmtime_error_t *error;
    hak_wasmtime_module *module =
        hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker,
                                reinterpret_cast<uint8_t *>(binary.data), binary.size, &error);
    wasm_byte_vec_delete(&binary);
    CHECK((module == nullptr) == (error != nullptr));
    hak_wasmtime_module_delete(module);
    return text_of(error);
}

std::string repeated(const std::string &item, int n)
{
    std::string out;
    for (int i = 0; i < n; i++)
        for (char c : item)
            out += c == '#' ? std::to_string(i) : std::string(1, c);
    return out;
}

size_t heap_of(const Runtime &runtime, hak_wasm_tenant *tenant)
{
    return info_of(tenant).heap_live + info_of(hak_wasm_host_tenant(runtime.host)).heap_live;
}

wasm_config_t *fuelled()
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_consume_fuel_set(config, true);
    return config;
}

constexpr const char *ENDLESS = R"((module (memory (export "memory") 1)
  (func (export "spin") (loop $l (br $l)))
  (func $deep (export "twice") (param i32)
    (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))
                            (call $deep (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "short") (result i32) (i32.const 7))))";

} // namespace

// First: wasmtime's heap is hooked before there is any engine.
TEST_CASE("a module's tenant is charged with no less than wasmtime keeps of it", "[accounts]")
{
    // Lives as long as the process, as hak_wasmtime_hook_heap asks: wasmtime's threads outlive main.
    static Runtime &runtime = *new Runtime(guarded(), wasm_config_new(), true);
    hak_wasm_tenant *tenant = tenant_of(runtime, 0);
    {
        Module first(runtime, "(module (func (export \"f\")))", tenant); // what is kept once for all
    }
    for (const std::string &fields : {
             repeated("(func)", 3000),
             repeated("(func (export \"name of a function #\"))", 3000),
             "(func $f)" + repeated("(export \"name #\" (func $f))", 3000),
             repeated("(global (mut i64) (i64.const 1))", 3000),
             "(memory 1)" + repeated("(global (mut i64) (i64.const 1))", 3000),
             "(memory 1) (memory 1)" + repeated("(global (mut i64) (i64.const 1))", 3000),
             "(func $f) (table 3000 funcref) (elem (i32.const 0) func" + repeated(" $f", 3000) + ")",
             repeated("(func $f#)", 3000) +
                 "(func (table.set 0 (i32.const 0) (ref.null func))) (table 3000 funcref) (elem (i32.const "
                 "0) func" +
                 repeated(" $f#", 3000) + ")",
             "(func (param i32) (result i32)" + repeated("(call 0 (local.get 0)) drop ", 3000) +
                 "(i32.const 1))",
         }) {
        INFO(fields.substr(0, 60));
        const size_t before = heap_of(runtime, tenant);
        CHECK(info_of(tenant).linear_bytes == 0);
        Module module(runtime, "(module " + fields + ")", tenant);
        const size_t kept = heap_of(runtime, tenant) - before, charged = info_of(tenant).linear_bytes;
        CHECK(charged > kept);
        CHECK(charged < 8 * MIB);
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a module that does not fit into the tenant's limit is refused, and leaves nothing", "[accounts]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = tenant_of(runtime, MIB);
    const std::string large =
        "(module " + repeated("(func (export \"f#\") (result i32) (i32.const #))", 5000) + ")";
    CHECK(refusal(runtime, tenant, large) ==
          "hakmem: the module's code does not fit into the tenant's limit");
    CHECK(info_of(tenant).linear_bytes == 0);
    CHECK(info_of(tenant).linear_refused == 1);
    // Who has no room for the binary, has it not even compiled.
    REQUIRE(hak_wasm_charge(tenant, MIB - 1000) == 0);
    CHECK(refusal(runtime, tenant, large) == "hakmem: the module does not fit into the tenant's limit");
    CHECK(info_of(tenant).linear_bytes == MIB - 1000);
    hak_wasm_uncharge(tenant, MIB - 1000);
    {
        Module module(runtime, GUEST, tenant);
        const size_t code = info_of(tenant).linear_bytes;
        CHECK(code >= 4096);
        CHECK(code < 64 * KIB);
        Instance guest(tenant, module);
        CHECK(info_of(tenant).linear_bytes == code + 2 * WASM_PAGE);
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("an image of an instance is its tenant's", "[accounts]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = tenant_of(runtime, 2 * WASM_PAGE + 4096), *other = tenant_of(runtime, 0);
    Module module(runtime, GUEST);
    {
        Instance guest(tenant, module);
        const char *why;
        // The module's data are a page, and the file is one.
        CHECK(hak_wasmtime_image_take(guest.instance, &why) == nullptr);
        CHECK(std::string(why).find("limit") != std::string::npos);
        CHECK(info_of(tenant).linear_bytes == 2 * WASM_PAGE);
        hak_wasm_limits limits = {0, false, 2 * WASM_PAGE + 8192, 0};
        hak_wasm_tenant_limit(tenant, &limits);
        hak_wasmtime_image *image = hak_wasmtime_image_take(guest.instance, &why);
        REQUIRE(image != nullptr);
        CHECK(info_of(tenant).image_bytes == 8192);
        Instance next(other, module);
        CHECK(hak_wasmtime_reset(next.instance, image) == 0);
        CHECK(info_of(other).image_bytes == 0);
        next.close();
        hak_wasmtime_image_drop(image);
        guest.close();
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    CHECK(info_of(other).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(other, HAK_WASM_RETIRE);
}

TEST_CASE("small modules that take long to compile are refused before they are", "[accounts]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = tenant_of(runtime, 0);
    hak_wasm_module_limits limits = HAK_WASM_MODULE_LIMITS_INIT;
    limits.arity = 32;
    limits.blocks = 100;
    limits.depth = 32;
    limits.locals = 256;
    limits.body_bytes = 64 << 10;
    REQUIRE(hak_wasm_tenant_modules(tenant, &limits) == 0);
    const std::string locals = "(local" + repeated(" i32", 100) + ")";
    const std::string sets = repeated("(local.set # (i32.add (local.get 1) (local.get #)))", 100);
    CHECK(refusal(runtime, tenant,
                  "(module (func (param i32)" + locals + repeated("(loop ", 1000) + sets +
                      repeated("(br_if 0 (local.get 0)))", 1000) + "))") ==
          "hakmem: the module has 1000 loops within one another, and hak_wasm_module_limits.depth of "
          "\"payer\" is 32");
    const std::string types = repeated(" i32", 16);
    CHECK(refusal(runtime, tenant,
                  "(module (type $t (func (param" + types + ") (result" + types + "))) (func (type $t)" +
                      repeated("(local.get #)", 16) + repeated("loop (type $t) end ", 16000) + "))")
              .find("has a function of 16000 blocks with types of the module, and") != std::string::npos);
    CHECK(refusal(runtime, tenant, GUEST) == "");
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a guest ends when its steps are used up, and each call has all of them", "[accounts]")
{
    Runtime runtime(guarded(), fuelled());
    hak_wasm_tenant *tenant = tenant_of(runtime, 0);
    hak_wasm_tenant_steps(tenant, 100000);
    Module module(runtime, ENDLESS);
    Instance guest(tenant, module);
    REQUIRE(guest.error == "");
    for (int i = 0; i < 3; i++) {
        CHECK(guest.traps("spin"));
        CHECK(guest.traps("twice", 60));
        CHECK(guest.call("short") == 7);
    }
    // A start function, too.
    Module starts(runtime, "(module (func $s (loop $l (br $l))) (start $s))");
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    CHECK(hak_wasmtime_instance_new(tenant, starts.module, nullptr, nullptr, &error, &trap) == nullptr);
    CHECK(error == nullptr);
    REQUIRE(trap != nullptr);
    wasm_trap_delete(trap);
    guest.close();
    CHECK(info_of(tenant).instances == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a limit on steps is refused where nothing counts them", "[accounts]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = tenant_of(runtime, 0);
    Module module(runtime, ENDLESS);
    {
        Instance before(tenant, module);
        CHECK(before.call("short") == 7);
        hak_wasm_tenant_steps(tenant, 1000);
        Instance after(tenant, module);
        CHECK(after.instance == nullptr);
        CHECK(after.error.find("fuel") != std::string::npos);
        wasmtime_extern_t item = before.get("spin");
        wasm_trap_t *trap;
        CHECK(text_of(hak_wasmtime_call(before.instance, &item.of.func, nullptr, 0, nullptr, 0, &trap)) !=
              "");
        CHECK(trap == nullptr);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}
