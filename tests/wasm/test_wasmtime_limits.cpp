// What guests of wasmtime can make grow besides their memory is within the tenant's limits.
#include "wasmtime_test.h"

#include <memory>

using namespace test;

namespace
{

struct LimitedTenant {
    hak_wasm_tenant *tenant;
    LimitedTenant(hak_wasm_host *host, size_t linear_bytes, size_t heap_bytes = 0,
                  hak_wasm_tenant *parent = nullptr)
    {
        TenantOptions options;
        options.parent = parent;
        options.children = parent == nullptr;
        options.limits.linear_bytes = linear_bytes;
        options.limits.heap_bytes = heap_bytes;
        options.limits.heap_soft = true;
        tenant = hak_wasm_tenant_new(host, &options);
        REQUIRE(tenant != nullptr);
    }
    LimitedTenant(const LimitedTenant &) = delete;
    LimitedTenant &operator=(const LimitedTenant &) = delete;
    ~LimitedTenant()
    {
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    }
    operator hak_wasm_tenant *() const
    {
        return tenant;
    }
};

constexpr const char *GROWER = R"((module
  (memory (export "memory") 1)
  (table $t 0 funcref)
  (func (export "size") (result i32) (table.size $t))
  (func (export "grow") (param i32) (result i32) (table.grow $t (ref.null func) (local.get 0)))))";

} // namespace

TEST_CASE("table.grow is refused beyond the tenant's limit, and the next instance is admitted", "[limits]")
{
    Runtime runtime;
    LimitedTenant tenant(runtime.host, MIB, MIB);
    Module module(runtime, GROWER);
    {
        Instance guest(tenant, module);
        for (int i = 0; i < 6; i++)
            CHECK(guest.call("grow", 20000000) == -1);
        CHECK(guest.call("size") == 0);
        // A sixteenth of the limit, 8 bytes each, which are charged.
        CHECK(info_of(tenant).linear_bytes == WASM_PAGE + MIB / 16);
        CHECK(guest.call("grow", MIB / 16 / 8 + 1) == -1);
        CHECK(guest.call("grow", MIB / 16 / 8) == 0);
        CHECK(guest.call("grow", 1) == -1);
        Instance next(tenant, module);
        CHECK(next.error == "");
        CHECK(next.call("grow", 100) == 0);
        CHECK(info_of(tenant).linear_bytes == 2 * (WASM_PAGE + MIB / 16));
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    // All instances together stay within the limit.
    std::vector<std::unique_ptr<Instance>> guests;
    for (int i = 0; i < 8; i++) {
        guests.push_back(std::make_unique<Instance>(tenant, module));
        CHECK(guests.back()->call("grow", MIB / 16 / 8) == 0);
    }
    Instance more(tenant, module);
    CHECK(more.error == "hakmem: the tables do not fit into the tenant's limit");
    CHECK(info_of(tenant).linear_bytes == MIB);
    CHECK(info_of(tenant).linear_refused == 1);
    guests.pop_back();
    Instance again(tenant, module);
    CHECK(again.error == "");
}

TEST_CASE("tables are charged with what they may grow to", "[limits]")
{
    Runtime runtime;
    LimitedTenant tenant(runtime.host, MIB);
    const struct {
        const char *fields;
        size_t bytes; // where code may change tables
        size_t fixed; // where none does
    } cases[] = {
        {"", 0, 0},
        {"(table 100 100 funcref)", 800, 800},
        {"(table 100 100 externref)", 800, 800},
        {"(table 10 100 funcref) (table 1 1 funcref)", 100 * 8 + 8, 10 * 8 + 8},
        {"(table 10 funcref)", (10 + MIB / 16 / 8) * 8, 10 * 8},
        {"(table 10 funcref) (table 0 funcref)", 2 * (10 + MIB / 16 / 16) * 8, 10 * 8},
        {"(table 5000 5000 funcref) (table 0 externref)", 5000 * 8 + (5000 + MIB / 16 / 8) * 8, 5000 * 8},
        {"(table 7 7 (ref null func))", 56, 56},
        {"(func $f) (table 7 7 (ref func) (ref.func $f))", 7 * 16, 7 * 16},
        {"(table 3 3 i31ref (ref.i31 (i32.const 1)))", 3 * 16, 3 * 16},
        {"(func $f) (table 9 9 funcref) (elem (i32.const 1) $f $f) (elem funcref (ref.func $f) (ref.null "
         "func))"
         "(elem declare func $f) (elem (table 0) (offset (i32.const 2)) func $f) (elem func $f $f $f)",
         72 + 5 * 16, 72 + 5 * 16},
    };
    const std::string changes = "(data $changes \"\") (func (data.drop $changes))";
    for (const auto &c : cases) {
        for (bool fixed : {false, true}) {
            INFO(c.fields << (fixed ? " (fixed)" : ""));
            Module module(runtime, "(module (memory (export \"memory\") 1) " + (fixed ? "" : changes) +
                                       c.fields + ")");
            if (!fixed) CHECK(module.refused() != "");
            Instance guest(tenant, module);
            CHECK(guest.error == "");
            // References to what the guest does not hold itself live in a heap with a slot of its own.
            const bool heap = std::string(c.fields).find("externref") != std::string::npos ||
                              std::string(c.fields).find("i31ref") != std::string::npos;
            size_t bytes = (heap ? 2 : 1) * WASM_PAGE + (fixed ? c.fixed : c.bytes);
            CHECK(info_of(tenant).linear_bytes == bytes);
            CHECK(info_of(tenant).label[HAK_WASM_LINEAR].live_bytes == bytes);
        }
    }
    // Nor does the embedder grow such a table without being charged.
    Module fixed(runtime, "(module (memory 1) (table (export \"t\") 10 funcref))");
    {
        Instance guest(tenant, fixed);
        wasmtime_extern_t table = guest.get("t");
        wasmtime_val_t nothing = {};
        nothing.kind = WASMTIME_FUNCREF;
        uint64_t before;
        CHECK(text_of(wasmtime_table_grow(hak_wasmtime_instance_context(guest.instance), &table.of.table, 1,
                                          &nothing, &before)) != "");
    }
    Module large(runtime, "(module (table 1000000 funcref))");
    Instance guest(tenant, large);
    CHECK(guest.error == "hakmem: the tables do not fit into the tenant's limit");
    CHECK(info_of(tenant).linear_bytes == 0);
}

TEST_CASE("a parent's limit holds for tables, and no limit lets them grow", "[limits]")
{
    Runtime runtime;
    {
        LimitedTenant group(runtime.host, MIB), tenant(runtime.host, 64 * MIB, 0, group);
        Module module(runtime, GROWER);
        Instance guest(tenant, module);
        CHECK(guest.call("grow", 20000000) == -1);
        CHECK(guest.call("grow", MIB / 16 / 8) == 0);
    }
    Module module(runtime, GROWER);
    const size_t before = info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes;
    Instance guest(hak_wasm_host_tenant(runtime.host), module);
    CHECK(guest.call("grow", 100000) == 0);
    CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes == before + WASM_PAGE);
}

TEST_CASE("the host may set a limit of its own", "[limits]")
{
    Runtime runtime;
    LimitedTenant tenant(runtime.host, MIB);
    Module module(runtime, GROWER);
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    Instance guest(tenant, module);
    guest.close();
    guest.instance = hak_wasmtime_instance_new(
        tenant, module.module, nullptr,
        [](wasmtime_store_t *store, void *) { wasmtime_store_limiter(store, -1, 5, -1, -1, -1); }, &error,
        &trap);
    require_none(error);
    CHECK(guest.call("grow", 6) == -1);
    CHECK(guest.call("grow", 5) == 0);
}

TEST_CASE("the heap of GC types is the tenant's linear memory", "[limits]")
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_wasm_gc_set(config, true);
    wasmtime_config_wasm_function_references_set(config, true);
    Runtime runtime(guarded(), config);
    LimitedTenant tenant(runtime.host, MIB);
    Module module(runtime, R"((module
      (memory (export "memory") 1)
      (type $node (struct (field (ref null $node)) (field i64)))
      (func (export "keep") (param i32) (result i32) (local $list (ref null $node))
        (loop $l
          (local.set $list (struct.new $node (local.get $list) (i64.const 7)))
          (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
          (br_if $l (local.get 0)))
        (i32.const 1))))");
    Instance guest(tenant, module);
    CHECK(guest.call("keep", 10) == 1);
    CHECK(info_of(tenant).linear_bytes > WASM_PAGE);
    wasmtime_extern_t keep = guest.get("keep");
    wasmtime_val_t many = {}, result;
    many.kind = WASMTIME_I32;
    many.of.i32 = 10000000;
    wasm_trap_t *trap;
    const std::string error =
        text_of(hak_wasmtime_call(guest.instance, &keep.of.func, &many, 1, &result, 1, &trap));
    CHECK(error.find("GC heap out of memory") != std::string::npos);
    CHECK(info_of(tenant).linear_bytes <= MIB);
    CHECK(info_of(tenant).linear_refused > 0);
}

TEST_CASE("a shared memory is the tenant's linear memory", "[limits]")
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_wasm_threads_set(config, true);
    wasmtime_config_shared_memory_set(config, true);
    Runtime runtime(guarded(), config);
    LimitedTenant tenant(runtime.host, MIB);
    Module module(runtime, R"((module (memory 1 1000 shared)
      (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))))");
    Instance guest(tenant, module);
    CHECK(info_of(tenant).linear_bytes == WASM_PAGE);
    CHECK(guest.call("grow", 16) == -1);
    CHECK(guest.call("grow", 15) == 1);
    CHECK(info_of(tenant).linear_bytes == MIB);
}

TEST_CASE("charges of a tenant that is closed in bulk are gone", "[limits]")
{
    Host host;
    LimitedTenant group(host, MIB);
    TenantOptions options;
    options.parent = group;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    CHECK(hak_wasm_linear_limit(tenant) == MIB);
    CHECK(hak_wasm_charge(tenant, MIB + 1) == -1);
    CHECK(hak_wasm_charge(tenant, MIB) == 0);
    CHECK(hak_wasm_charge(tenant, 1) == -1);
    hak_wasm_uncharge(tenant, 100);
    CHECK(info_of(group).linear_bytes == MIB - 100);
    hak_wasm_tenant_close(tenant, HAK_WASM_BULK);
    CHECK(info_of(group).linear_bytes == 0);
}

TEST_CASE("a tenant cannot use up address space with memories that have no page", "[limits]")
{
    Runtime runtime;
    LimitedTenant evil(runtime.host, MIB), good(runtime.host, MIB);
    const auto module_of = [](int memories) {
        std::string text = "(module";
        for (int i = 0; i < memories; i++)
            text += " (memory 0)";
        return text + ")";
    };
    for (int memories : {HAK_WASMTIME_MEMORIES, 1}) {
        Module module(runtime, module_of(memories));
        std::vector<std::unique_ptr<Instance>> guests;
        for (int i = 0; i < 1000; i++) {
            guests.push_back(std::make_unique<Instance>(evil, module));
            if (!guests.back()->instance) break;
        }
        INFO(memories << " memories");
        CHECK(guests.size() == MIB / WASM_PAGE / size_t(memories) + 1);
        CHECK(guests.back()->error.find("hakmem: no linear memory") != std::string::npos);
        CHECK(info_of(evil).linear_bytes == MIB);
        CHECK(info_of(evil).label[HAK_WASM_LINEAR].live_bytes == MIB);
        CHECK(info_of(evil).label[HAK_WASM_LINEAR].live_blocks == MIB / WASM_PAGE);
        Module page(runtime, "(module (memory 1))");
        Instance guest(good, page);
        CHECK(guest.error == "");
        guests.clear();
        CHECK(info_of(evil).linear_bytes == 0);
        CHECK(info_of(evil).label[HAK_WASM_LINEAR].live_bytes == 0);
        CHECK(info_of(evil).label[HAK_WASM_LINEAR].live_blocks == 0);
    }
    CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes == 0);
}

TEST_CASE("a module with more memories than an instance may have is refused", "[limits]")
{
    Runtime runtime;
    LimitedTenant tenant(runtime.host, 0);
    const auto refusal = [&](const std::string &fields, int memories) {
        std::string text = "(module " + fields;
        for (int i = 0; i < memories; i++)
            text += " (memory 0)";
        text += ")";
        wasm_byte_vec_t binary;
        require_none(wasmtime_wat2wasm(text.data(), text.size(), &binary));
        wasmtime_error_t *error;
        hak_wasmtime_module_delete(hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker,
                                                           reinterpret_cast<uint8_t *>(binary.data),
                                                           binary.size, &error));
        wasm_byte_vec_delete(&binary);
        return text_of(error);
    };
    CHECK(refusal("", HAK_WASMTIME_MEMORIES) == "");
    // Where an import alone keeps its instances from being reset, memories are counted all the same.
    for (const char *fields : {"", "(import \"\" \"t\" (table 0 funcref))"}) {
        for (int memories : {HAK_WASMTIME_MEMORIES + 1, 100})
            CHECK(refusal(fields, memories) ==
                  "hakmem: the module has more linear memories than an instance may have");
    }
}

TEST_CASE("instances are within the limit with their globals, and without a memory, too", "[limits]")
{
    Runtime runtime;
    TenantOptions options;
    options.limits.linear_bytes = 4 * MIB;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    const auto instances_of = [&](const std::string &text) {
        Module module(runtime, text);
        std::vector<std::unique_ptr<Instance>> all;
        do {
            all.push_back(std::make_unique<Instance>(tenant, module));
        } while (all.back()->instance != nullptr && all.size() < 1000);
        if (all.back()->instance == nullptr) CHECK(all.back()->error.find("limit") != std::string::npos);
        CHECK(info_of(tenant).linear_bytes <= 4 * MIB);
        return all.size() - 1;
    };
    std::string globals, functions;
    for (int i = 0; i < 50000; i++)
        globals += "(global (mut i64) (i64.const 1))";
    for (int i = 0; i < 20000; i++)
        functions += "(func (export \"f" + std::to_string(i) + "\"))";
    CHECK(instances_of("(module)") == 64);
    CHECK(instances_of("(module (global (mut i32) (i32.const 1)))") == 64);
    CHECK(instances_of("(module (memory 1))") == 64);
    CHECK(instances_of("(module (memory 1) (func (export \"f\")))") == 64);
    CHECK(instances_of("(module " + globals + ")") == 5);
    CHECK(instances_of("(module (memory 1) " + globals + ")") == 5);
    CHECK(instances_of("(module " + functions + ")") == 6);
    CHECK(instances_of("(module (table 1 1 funcref) (func (table.set 0 (i32.const 0) (ref.null func)))" +
                       functions + ")") == 4);
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}
