// Modules that another process compiles are the same modules, within limits on time and memory.
#include "apart_test.h"
#include "slow_build.h"

#include <atomic>
#include <cstdlib>
#include <thread>

using namespace test;

namespace
{

// More than a GiB: loops with parameters.
std::string large()
{
    constexpr unsigned PARAMETERS = 100;
    const std::string all = leb(PARAMETERS) + repeated(I32, PARAMETERS), zero("\0", 1);
    std::string code = leb(1) + leb(1) + I32 + repeated("\x41" + zero, PARAMETERS);
    for (unsigned i = 0; i < 1000; i++)
        code += std::string("\x03\x01\x20\0\x0d\0\x0b", 7);
    code += repeated("\x1a", PARAMETERS) + END;
    return HEADER + section(1, 2, NO_TYPE + "\x60" + all + all) + section(3, 1, zero) +
           section(10, 1, body(code));
}

// What a guest does until it traps and is reset, as numbers.
std::vector<int32_t> life(hak_wasm_tenant *tenant, hak_wasmtime_module *module)
{
    std::vector<int32_t> all;
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    Instance guest;
    guest.instance = hak_wasmtime_instance_new(tenant, module, nullptr, nullptr, &error, &trap);
    require_none(error);
    REQUIRE(guest.instance != nullptr);
    all.push_back(guest.call("step", 3));
    const char *why = nullptr;
    hak_wasmtime_image *image = hak_wasmtime_image_take(guest.instance, &why);
    INFO((why ? why : ""));
    REQUIRE(image != nullptr);
    for (int i = 0; i < 3; i++) {
        all.push_back(guest.call("step", 5));
        all.push_back(guest.call("step", 7));
        CHECK(guest.traps("trap", 1));
        CHECK(guest.traps("deep"));
        CHECK(hak_wasmtime_reset(guest.instance, image) == 0);
    }
    guest.close();
    hak_wasmtime_image_drop(image);
    return all;
}

} // namespace

TEST_CASE("a module that another process compiled is the same module", "[apart]")
{
    Nothing left;
    Runtime runtime;
    TenantOptions options;
    options.limits.linear_bytes = 64 * MIB;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    for (const char *way : {"compile", "prints"}) {
        size_t charged;
        std::vector<int32_t> expected;
        {
            Module here(runtime, GUEST, tenant);
            charged = info_of(tenant).linear_bytes;
            expected = life(tenant, here.module);
        }
        Apart apart(runtime, binary_of(GUEST), Options(way), tenant);
        INFO(apart.error);
        REQUIRE(apart.module != nullptr);
        CHECK(apart.info.outcome == HAK_WASMTIME_APART_DONE);
        CHECK(apart.info.milliseconds < 60000);
        CHECK(apart.info.bytes > 0);
        CHECK(apart.info.bytes < 512 * MIB);
        CHECK(info_of(tenant).linear_bytes == charged);
        CHECK(hak_wasmtime_module_refused(apart.module) == nullptr);
        CHECK(life(tenant, apart.module) == expected);
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("slots and guards of the host are in the code", "[apart]")
{
    Nothing left;
    HostOptions host = guarded();
    host.slot_bytes = 64 * MIB;
    host.guard_bytes = MIB;
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_consume_fuel_set(config, true);
    Runtime runtime(host, config);
    hak_wasm_tenant_steps(hak_wasm_host_tenant(runtime.host), 1000000);
    Apart apart(runtime, binary_of(GUEST), Options("with_fuel"));
    INFO(apart.error);
    REQUIRE(apart.module != nullptr);
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    Instance guest;
    guest.instance = hak_wasmtime_instance_new(hak_wasm_host_tenant(runtime.host), apart.module, nullptr,
                                               nullptr, &error, &trap);
    require_none(error);
    CHECK(guest.traps("load", 0x7ffffff0));
    CHECK(guest.traps("load", 2 * int(WASM_PAGE)));
    CHECK(guest.call("load", 1024) == 0x74696e69);
}

TEST_CASE("a module of a program, and one whose copy wasmtime refuses", "[apart]")
{
    Nothing left;
    Runtime runtime;
    Apart part(runtime, binary_of("(module (import \"a\" \"b\" (func)))"), Options(), nullptr, false);
    CHECK(part.error == "");
    CHECK(part.module != nullptr);
    // As many globals as a module may have: the copy exports one more than it may.
    constexpr unsigned GLOBALS = 1000000;
    const std::string most =
        HEADER + section(6, GLOBALS, repeated("\x7f\x01\x41\x07\x0b", GLOBALS)) + section(7, 0, "");
    const std::string with_memory =
        HEADER + section(5, 1, std::string("\0\1", 2)) + most.substr(HEADER.size());
    wasmtime_error_t *error;
    hak_wasmtime_module *here = hak_wasmtime_module_new(
        hak_wasm_host_tenant(runtime.host), runtime.engine, runtime.linker,
        reinterpret_cast<const uint8_t *>(with_memory.data()), with_memory.size(), &error);
    require_none(error);
    Apart apart(runtime, with_memory, Options());
    CHECK(apart.error == "");
    REQUIRE(apart.module != nullptr);
    REQUIRE(hak_wasmtime_module_refused(here) != nullptr);
    REQUIRE(hak_wasmtime_module_refused(apart.module) != nullptr);
    CHECK(std::string(hak_wasmtime_module_refused(apart.module)) == hak_wasmtime_module_refused(here));
    hak_wasmtime_module_delete(here);
}

TEST_CASE("a module that wasmtime or a limit refuses has the same text in both ways", "[apart]")
{
    Nothing left;
    Runtime runtime;
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
    // A name that ends as wasmtime's texts of no memory do.
    const std::string name = "(os error 12)", exported = leb(name.size()) + name + std::string("\0\0", 2);
    const std::string binaries[] = {
        HEADER + section(1, 1, NO_TYPE) + section(3, 1, std::string("\0", 1)) +
            section(7, 2, repeated(exported, 2)) + section(10, 1, body(NO_LOCALS + END)),
        "",
        "nonsense",
        HEADER + "\x63",
        functions_with(NO_LOCALS + "\x1a" + END),
        binary_of("(module (import \"a\" \"b\" (func)))"),
        binary_of("(module (memory 0) (memory 0) (memory 0) (memory 0) (memory 0))")};
    for (const std::string &binary : binaries) {
        wasmtime_error_t *error;
        CHECK(hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker,
                                      reinterpret_cast<const uint8_t *>(binary.data()), binary.size(),
                                      &error) == nullptr);
        CHECK(failure(runtime, binary, Options(), HAK_WASMTIME_APART_REFUSED) == text_of(error));
    }
}

TEST_CASE("the tenant's limits come first, and start no program", "[apart]")
{
    Nothing left;
    Runtime runtime;
    hak_wasm_module_limits limits = HAK_WASM_MODULE_LIMITS_INIT;
    limits.functions = 10;
    TenantOptions options;
    options.name = "alice";
    options.limits.linear_bytes = WASM_PAGE;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    REQUIRE(hak_wasm_tenant_modules(tenant, &limits) == 0);
    Options nowhere;
    nowhere.arguments[0] = "/nowhere";
    Apart functions(runtime, functions_with(NO_LOCALS + END, 11), nowhere, tenant);
    CHECK(functions.error ==
          "hakmem: the module has 11 functions, and hak_wasm_module_limits.functions of \"alice\" is 10");
    CHECK(functions.info.outcome == HAK_WASMTIME_APART_REFUSED);
    CHECK(functions.info.milliseconds == 0);
    Apart room(runtime, functions_with(NO_LOCALS + repeated("\x41\x2a\x1a", 30000) + END), nowhere, tenant);
    CHECK(room.error == "hakmem: the module does not fit into the tenant's limit");
    CHECK(room.info.outcome == HAK_WASMTIME_APART_REFUSED);
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("code is within the tenant's limit as it is in the host", "[apart]")
{
    Nothing left;
    Runtime runtime;
    TenantOptions options;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    const std::string binary = binary_of(GUEST);
    size_t charged;
    {
        Apart apart(runtime, binary, Options(), tenant);
        REQUIRE(apart.module != nullptr);
        charged = info_of(tenant).linear_bytes;
    }
    hak_wasm_limits limits = {};
    for (size_t less : {size_t(0), size_t(1), size_t(5000), charged - binary.size() - 1}) {
        limits.linear_bytes = charged - less;
        hak_wasm_tenant_limit(tenant, &limits);
        Apart apart(runtime, binary, Options(), tenant);
        CHECK(apart.error ==
              (less == 0 ? "" : "hakmem: the module's code does not fit into the tenant's limit"));
        CHECK(apart.info.outcome == (less == 0 ? HAK_WASMTIME_APART_DONE : HAK_WASMTIME_APART_REFUSED));
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    CHECK(info_of(tenant).linear_peak == charged);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a module that takes too long is given up, and the next one is served", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string bomb = slow();
    // On a busy machine the program takes a while to begin.
    for (unsigned ms : {1000, 2000}) {
        Options options("compile", ms);
        options.bytes = size_t(4) << 30;
        const auto begun = Clock::now();
        CHECK(failure(runtime, bomb, options, HAK_WASMTIME_APART_TIME) ==
              "hakmem: the module takes more than " + std::to_string(ms) + " ms to compile");
        const int64_t took = since(begun);
        CHECK(took >= ms);
        CHECK(took < ms + SLACK);
        serve(runtime);
    }
    Options options;
    options.bytes = size_t(4) << 30;
    options.cpu_milliseconds = 200;
    Apart apart(runtime, bomb, options);
    CHECK(apart.error == "hakmem: the module takes more than 200 ms of a processor to compile");
    CHECK(apart.info.outcome == HAK_WASMTIME_APART_TIME);
    // The timer counts ticks of the system, in which others may have run.
    CHECK(apart.info.cpu_milliseconds >= 100);
    CHECK(apart.info.cpu_milliseconds < 200 + SLACK);
    serve(runtime);
}

TEST_CASE("a module that takes too much memory is given up, and the next one is served", "[apart]")
{
#ifdef TEST_SLOW_BUILD
    return; // sanitizers have reserved the address space that the limit would refuse
#endif
    Nothing left;
    Runtime runtime;
    const std::string binaries[] = {large(), slow()};
    for (const std::string &binary : binaries) {
        Options options;
        options.bytes = 100 * MIB;
        CHECK(failure(runtime, binary, options, HAK_WASMTIME_APART_MEMORY) ==
              "hakmem: the module takes more than 104857600 bytes to compile");
        serve(runtime);
    }
    // Each limit comes to a module, or to one of these ends, for a module that is no bomb.
    const std::string binary = functions_with(NO_LOCALS + repeated("\x41\x2a\x1a", 3000) + END, 20);
    int outcomes[HAK_WASMTIME_APART_ENGINE + 1] = {};
    for (size_t bytes = 4096; bytes <= 64 * MIB; bytes += bytes / 2) {
        Options options;
        options.bytes = bytes;
        Apart apart(runtime, binary, options);
        INFO(bytes << " " << apart.error);
        outcomes[apart.info.outcome]++;
        CHECK((apart.info.outcome == HAK_WASMTIME_APART_DONE ||
               apart.info.outcome == HAK_WASMTIME_APART_MEMORY ||
               apart.info.outcome == HAK_WASMTIME_APART_DIED));
        if (apart.module) CHECK(apart.info.bytes <= bytes);
    }
    CHECK(outcomes[HAK_WASMTIME_APART_DONE] > 0);
    CHECK(outcomes[HAK_WASMTIME_APART_MEMORY] > 0);
    CHECK(outcomes[HAK_WASMTIME_APART_DIED] <= 2);
}

TEST_CASE("an engine of another configuration says so", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string text =
        failure(runtime, binary_of(SMALL), Options("with_fuel"), HAK_WASMTIME_APART_ENGINE);
    CHECK(text.find(program_text("compiles for another engine: ")) == 0);
    CHECK(text.find("fuel") != std::string::npos);
}

TEST_CASE("code is kept in a folder, and then no program is needed", "[apart]")
{
    Nothing left;
    Runtime runtime;
    char folder[] = "/tmp/hakmem-apart-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    Options options;
    options.folder = folder;
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
    std::vector<int32_t> first;
    {
        Apart apart(runtime, binary_of(GUEST), options);
        CHECK(apart.error == "");
        CHECK(apart.info.bytes > 0);
        first = life(tenant, apart.module);
    }
    options.arguments[0] = "/nowhere";
    {
        Apart apart(runtime, binary_of(GUEST), options);
        CHECK(apart.error == "");
        CHECK(apart.info.bytes == 0);
        CHECK(life(tenant, apart.module) == first);
    }
    const std::string binary = binary_of(GUEST);
    hak_wasmtime_module *loaded = hak_wasmtime_module_load(tenant, runtime.engine, runtime.linker,
                                                           reinterpret_cast<const uint8_t *>(binary.data()),
                                                           binary.size(), folder, nullptr);
    CHECK(life(tenant, loaded) == first);
    hak_wasmtime_module_delete(loaded);
    REQUIRE(std::system((std::string("rm -r ") + folder).c_str()) == 0);
    CHECK(failure(runtime, binary, options, HAK_WASMTIME_APART_START) ==
          std::string("hakmem: the folder of compiled modules \"") + folder +
              "\": No such file or directory");
}

TEST_CASE("several threads have modules compiled at once", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string bomb = slow(), module = binary_of(GUEST);
    const Options good, late("compile", 1500), bad("fails");
    std::atomic<int> wrong{0};
    const auto run = [&](unsigned first) {
        for (unsigned i = first; i < first + 6; i++) {
            const bool is_good = i % 3 == 0, is_late = i % 3 == 1;
            Apart apart(runtime, is_late ? bomb : module, is_good ? good : is_late ? late : bad);
            const auto expected = is_good   ? HAK_WASMTIME_APART_DONE
                                  : is_late ? HAK_WASMTIME_APART_TIME
                                            : HAK_WASMTIME_APART_START;
            wrong += apart.info.outcome != expected;
        }
    };
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; t++)
        threads.emplace_back(run, t);
    for (std::thread &thread : threads)
        thread.join();
    CHECK(wrong == 0);
    CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes == 0);
}
