// The specification's tests under wasm2c, three times with resets in between.
#include "wasm_test.h"

#include <hakmem/wasm_wasm2c.h>

extern "C" {
#include <wasm-rt-impl.h>

struct spec_module {
    const char *name;
    void *instance;
    size_t size;
    void (*begin)(void);
    void (*run)(void);
    void (*end)(void);
};
extern const spec_module spec_modules[];

static size_t commands;
static std::vector<std::string> failures;
void spec_ran(const char *)
{
    commands++;
}
void spec_failed(const char *command)
{
    failures.push_back(command);
}
}

using namespace test;

static int begin(const spec_module *module)
{
    const int code = wasm_rt_impl_try();
    if (code == 0) module->begin();
    return code;
}

TEST_CASE("the specification's tests pass three times with resets in between", "[spec]")
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    options.guard_bytes = size_t(4) << 30;
    Host host(&options);
    REQUIRE(hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER) == 0);
    wasm_rt_init();
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    size_t modules = 0;
    for (const spec_module *module = spec_modules; module->name != nullptr; module++, modules++) {
        INFO(module->name);
        Scope scope(tenant);
        REQUIRE(begin(module) == 0);
        const char *why;
        hak_wasm_wasm2c_snapshot *snapshot = hak_wasm_wasm2c_take(module->instance, module->size, &why);
        REQUIRE(snapshot != nullptr);
        for (int round = 0; round < 3; round++) {
            INFO("round " << round);
            module->run();
            for (const std::string &failure : failures) {
                INFO(failure);
                CHECK(false);
            }
            failures.clear();
            REQUIRE(hak_wasm_wasm2c_reset(module->instance, snapshot) == 0);
        }
        hak_wasm_wasm2c_drop(snapshot);
        module->end();
    }
    CHECK(modules == 282);
    CHECK(commands == 67425);
    const hak_wasm_tenant_info info = info_of(tenant);
    CHECK(info.linear_bytes == 0);
    CHECK(info.heap_live == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}
