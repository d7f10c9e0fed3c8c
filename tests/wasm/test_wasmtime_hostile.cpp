// Hostile guests and modules under wasmtime: nothing over a limit, nothing left, and the next tenant is served.
#include "bombs.h"
#include "wasmtime_test.h"

#include <fstream>
#include <iterator>
#include <memory>

using namespace test;

namespace
{

constexpr size_t LIMIT = 4 * MIB;

using Bytes = std::vector<uint8_t>;

struct Owned {
    hak_wasm_tenant *tenant;
    Owned(const Runtime &runtime, const char *name)
    {
        TenantOptions options;
        options.name = name;
        options.limits.linear_bytes = LIMIT;
        options.limits.instances = 20;
        tenant = hak_wasm_tenant_new(runtime.host, &options);
        REQUIRE(tenant != nullptr);
    }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;
    ~Owned()
    {
        const hak_wasm_tenant_info info = info_of(tenant);
        CHECK(info.linear_bytes == 0);
        CHECK(info.instances == 0);
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    }
    operator hak_wasm_tenant *() const
    {
        return tenant;
    }
};

void is_within(hak_wasm_tenant *tenant)
{
    const hak_wasm_tenant_info info = info_of(tenant);
    CHECK(info.linear_peak <= LIMIT);
    CHECK(info.instances_peak <= 20);
}

// A module of the tenant's own; NULL = it is refused, and `error` says why.
struct Binary {
    hak_wasmtime_module *module;
    std::string error;

    Binary(const Runtime &runtime, hak_wasm_tenant *tenant, const Bytes &bytes)
    {
        wasmtime_error_t *e;
        module =
            hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker, bytes.data(), bytes.size(), &e);
        error = text_of(e);
        CHECK((module == nullptr) == (error != ""));
    }
    Binary(const Binary &) = delete;
    Binary &operator=(const Binary &) = delete;
    ~Binary()
    {
        hak_wasmtime_module_delete(module);
    }
};

Bytes read_guest(const std::string &name)
{
    std::ifstream in(std::string(GUESTS) + name + ".wasm", std::ios::binary);
    REQUIRE(in.good());
    return Bytes(std::istreambuf_iterator<char>(in), {});
}

// What a call came to: the code of its trap, -1 = it ended, and its result.
struct Outcome {
    int trap = -1;
    int32_t result = 0;
};

Outcome call(hak_wasmtime_instance *instance, const char *name)
{
    Outcome out;
    wasmtime_extern_t item;
    wasmtime_context_t *context = hak_wasmtime_instance_context(instance);
    REQUIRE(wasmtime_instance_export_get(context, hak_wasmtime_instance_get(instance), name,
                                         std::strlen(name), &item));
    wasm_functype_t *type = wasmtime_func_type(context, &item.of.func);
    const size_t parameters = wasm_functype_params(type)->size, results = wasm_functype_results(type)->size;
    wasm_functype_delete(type);
    wasmtime_val_t arguments[4] = {}, result = {};
    for (wasmtime_val_t &argument : arguments) {
        argument.kind = WASMTIME_I64;
        argument.of.i64 = 1;
    }
    REQUIRE(parameters <= 4);
    wasm_trap_t *trap;
    require_none(hak_wasmtime_call(instance, &item.of.func, arguments, parameters, &result, results, &trap));
    if (trap != nullptr) {
        wasmtime_trap_code_t code = 0;
        CHECK(wasmtime_trap_code(trap, &code));
        out.trap = code;
        wasm_trap_delete(trap);
    } else if (result.kind == WASMTIME_I32) {
        out.result = result.of.i32;
    }
    return out;
}

struct Guest {
    hak_wasmtime_instance *instance;
    std::string error;

    Guest(hak_wasm_tenant *tenant, const Binary &binary)
    {
        wasmtime_error_t *e;
        wasm_trap_t *trap;
        instance = hak_wasmtime_instance_new(tenant, binary.module, nullptr, nullptr, &e, &trap);
        error = text_of(e);
        if (trap != nullptr) {
            error = "trap";
            wasm_trap_delete(trap);
        }
        CHECK((instance == nullptr) == (error != ""));
    }
    Guest(const Guest &) = delete;
    Guest &operator=(const Guest &) = delete;
    ~Guest()
    {
        hak_wasmtime_instance_close(instance);
    }
};

void serve(const Runtime &runtime, hak_wasm_tenant *tenant)
{
    static const Bytes bytes = read_guest("hostile");
    Binary module(runtime, tenant, bytes);
    REQUIRE(module.module != nullptr);
    Guest guest(tenant, module);
    REQUIRE(guest.instance != nullptr);
    CHECK(call(guest.instance, "answer").result == 42);
}

wasm_config_t *fuelled()
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_consume_fuel_set(config, true);
    return config;
}

} // namespace

TEST_CASE("whatever a guest does, it stays within its limits, and others are served", "[hostile]")
{
    Runtime runtime(guarded(), fuelled());
    Owned attacker(runtime, "attacker"), next(runtime, "next");
    hak_wasm_tenant_steps(attacker, 3000000);
    hak_wasm_tenant_steps(next, 3000000);
    const struct {
        const char *name;
        int trap; // -1 = it ends
        bool grows;
    } acts[] = {{"pages", -1, true},
                {"elements", -1, true},
                {"deep", WASMTIME_TRAP_CODE_STACK_OVERFLOW, false},
                {"deep_pages", WASMTIME_TRAP_CODE_STACK_OVERFLOW, true},
                {"deep_elements", WASMTIME_TRAP_CODE_STACK_OVERFLOW, true},
                {"deep_locals", WASMTIME_TRAP_CODE_STACK_OVERFLOW, false},
                {"spin", WASMTIME_TRAP_CODE_OUT_OF_FUEL, false},
                {"beyond", WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS, false},
                {"segment", WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS, false},
                {"segment_source", WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS, false},
                {"segment_elements", WASMTIME_TRAP_CODE_TABLE_OUT_OF_BOUNDS, false},
                {"wrong", WASMTIME_TRAP_CODE_INDIRECT_CALL_TO_NULL, false}};
    Binary module(runtime, attacker, read_guest("hostile"));
    REQUIRE(module.module != nullptr);
    const size_t kept = info_of(attacker).linear_bytes;
    for (const auto &act : acts) {
        INFO(act.name);
        auto guest = std::make_unique<Guest>(attacker, module);
        REQUIRE(guest->instance != nullptr);
        // Beside the table there is a segment of one element.
        const size_t elements = (info_of(attacker).linear_bytes - kept - WASM_PAGE - 16) / 8;
        const char *why;
        hak_wasmtime_image *fresh = hak_wasmtime_image_take(guest->instance, &why);
        REQUIRE(fresh != nullptr);
        for (int i = 0; i < 3; i++) {
            const size_t before = info_of(attacker).linear_bytes;
            const Outcome outcome = call(guest->instance, act.name);
            CHECK(outcome.trap == act.trap);
            is_within(attacker);
            if (std::strcmp(act.name, "pages") == 0)
                CHECK(size_t(outcome.result) == (LIMIT - before) / WASM_PAGE + 1);
            if (std::strcmp(act.name, "elements") == 0) CHECK(size_t(outcome.result) == elements);
            serve(runtime, next);
            // What grew cannot go back, and makes room for a new instance.
            CHECK(hak_wasmtime_reset(guest->instance, fresh) == (act.grows ? -1 : 0));
            if (act.grows) {
                guest.reset();
                guest = std::make_unique<Guest>(attacker, module);
                REQUIRE(guest->instance != nullptr);
                CHECK(hak_wasmtime_reset(guest->instance, fresh) == 0);
            }
            CHECK(call(guest->instance, "answer").result == 42);
        }
        hak_wasmtime_image_drop(fresh);
    }
}

TEST_CASE("as many instances as a tenant can have are within its limits", "[hostile]")
{
    Runtime runtime;
    Owned attacker(runtime, "attacker"), next(runtime, "next");
    Binary module(runtime, attacker, read_guest("hostile"));
    std::vector<std::unique_ptr<Guest>> guests;
    do {
        guests.push_back(std::make_unique<Guest>(attacker, module));
        if (guests.back()->instance) CHECK(call(guests.back()->instance, "elements").trap == -1);
        is_within(attacker);
    } while (guests.back()->instance && guests.size() < 100);
    CHECK(guests.back()->instance == nullptr);
    CHECK(guests.size() > 2);
    for (auto &guest : guests)
        if (guest->instance) CHECK(call(guest->instance, "pages").trap == -1);
    is_within(attacker);
    serve(runtime, next);
}

TEST_CASE("the limits that the guide names keep modules out before wasmtime compiles them", "[hostile]")
{
    Runtime runtime(guarded(), fuelled());
    Owned next(runtime, "next");
    hak_wasm_tenant_steps(next, 1000000);
    size_t taken = 0;
    for (const Bomb &bomb : bombs(LIMIT / WASM_PAGE)) {
        INFO(bomb.name);
        Owned attacker(runtime, "attacker");
        const hak_wasm_module_limits limits = guide_limits();
        REQUIRE(hak_wasm_tenant_modules(attacker, &limits) == 0);
        hak_wasm_tenant_steps(attacker, 1000000);
        {
            Binary module(runtime, attacker, Bytes(bomb.binary.begin(), bomb.binary.end()));
            is_within(attacker);
            if (!is_for_the_instance(bomb)) {
                CHECK(module.module == nullptr);
                // The limits count exports and read no names: that is wasmtime's to refuse, which compiles nothing.
                const bool counted = std::strcmp(bomb.name, "a name without end") != 0;
                CHECK((module.error.find("hakmem: ") == 0) == counted);
            }
            if (module.module) {
                taken++;
                Guest guest(attacker, module);
                is_within(attacker);
            }
        }
        serve(runtime, next);
    }
    CHECK(taken >= 3);
}
