// Modules whose code is kept in a folder: compiled once, and taken only by a runtime that can run it.
#include "folder.h"
#include "wasmtime_test.h"

extern "C" {
#include "module.h"
}

#include <sys/stat.h>

using namespace test;

namespace
{

std::string answering(int number)
{
    return "(module (memory (export \"memory\") 1) (global $g (mut i32) (i32.const 0))"
           " (func (export \"answer\") (result i32)"
           " (global.set $g (i32.add (global.get $g) (i32.const " +
           std::to_string(number) + "))) (global.get $g)))";
}

struct Binary {
    wasm_byte_vec_t bytes;
    explicit Binary(const std::string &text)
    {
        require_none(wasmtime_wat2wasm(text.data(), text.size(), &bytes));
    }
    Binary(const Binary &) = delete;
    Binary &operator=(const Binary &) = delete;
    ~Binary()
    {
        wasm_byte_vec_delete(&bytes);
    }
    const uint8_t *data() const
    {
        return reinterpret_cast<const uint8_t *>(bytes.data);
    }
};

// What a guest of the loaded module answers, twice, with a reset in between; or why there is none.
std::string answer(Runtime &runtime, hak_wasm_tenant *tenant, const std::string &text, const char *folder)
{
    const Binary binary(text);
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    hak_wasmtime_module *module = hak_wasmtime_module_load(tenant, runtime.engine, runtime.linker,
                                                           binary.data(), binary.bytes.size, folder, &error);
    if (module == nullptr) return text_of(error);
    hak_wasmtime_instance *guest = hak_wasmtime_instance_new(tenant, module, nullptr, nullptr, &error, &trap);
    require_none(error);
    const char *why;
    hak_wasmtime_image *image = hak_wasmtime_image_take(guest, &why);
    REQUIRE(image != nullptr);
    std::string answers;
    for (int i = 0; i < 2; i++) {
        wasmtime_extern_t item;
        wasmtime_val_t out;
        REQUIRE(wasmtime_instance_export_get(hak_wasmtime_instance_context(guest),
                                             hak_wasmtime_instance_get(guest), "answer", 6, &item));
        require_none(hak_wasmtime_call(guest, &item.of.func, nullptr, 0, &out, 1, nullptr));
        answers += std::to_string(out.of.i32) + " ";
        REQUIRE(hak_wasmtime_reset(guest, image) == 0);
    }
    hak_wasmtime_instance_close(guest);
    hak_wasmtime_image_drop(image);
    hak_wasmtime_module_delete(module);
    return answers;
}

ino_t number_of(const std::string &file)
{
    struct stat s;
    REQUIRE(stat(file.c_str(), &s) == 0);
    return s.st_ino;
}

} // namespace

TEST_CASE("a module is compiled once, and its code kept for the next process", "[kept]")
{
    Folder folder;
    std::string kept;
    ino_t number = 0;
    for (int process = 0; process < 3; process++) {
        Runtime runtime;
        CHECK(answer(runtime, hak_wasm_host_tenant(runtime.host), answering(7), folder.path) == "7 7 ");
        REQUIRE(folder.names().size() == 1);
        if (process == 0) number = number_of(kept = folder.names()[0]);
        CHECK(number_of(kept) == number);
        CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes == 0);
    }
    // The code is what the folder has: here another module's is put in place of this one's.
    Runtime runtime;
    const Binary one(answering(7)), other(answering(9));
    hkw_module rewritten;
    hkw_module_read(one.data(), one.bytes.size, false, &rewritten);
    hkw_module other_rewritten;
    hkw_module_read(other.data(), other.bytes.size, false, &other_rewritten);
    wasmtime_module_t *module;
    require_none(wasmtime_module_new(runtime.engine, other_rewritten.bytes, other_rewritten.size, &module));
    wasm_byte_vec_t code;
    require_none(wasmtime_module_serialize(module, &code));
    wasmtime_module_delete(module);
    REQUIRE(hak_wasm_code_put(folder.path, "wasmtime " WASMTIME_VERSION, rewritten.bytes, rewritten.size,
                              code.data, code.size, nullptr, 0) == 0);
    CHECK(answer(runtime, hak_wasm_host_tenant(runtime.host), answering(7), folder.path) == "9 9 ");
    CHECK(answer(runtime, hak_wasm_host_tenant(runtime.host), answering(7), nullptr) == "7 7 ");
    // What wasmtime does not take is compiled anew, and replaced.
    REQUIRE(hak_wasm_code_put(folder.path, "wasmtime " WASMTIME_VERSION, rewritten.bytes, rewritten.size,
                              "nonsense", 8, nullptr, 0) == 0);
    number = number_of(kept);
    CHECK(answer(runtime, hak_wasm_host_tenant(runtime.host), answering(7), folder.path) == "7 7 ");
    CHECK(number_of(kept) != number);
    wasm_byte_vec_delete(&code);
    free(rewritten.bytes);
    free(rewritten.tables);
    free(other_rewritten.bytes);
    free(other_rewritten.tables);
}

TEST_CASE("an engine of another configuration compiles by itself", "[kept]")
{
    Folder folder;
    for (int i = 0; i < 2; i++) {
        for (bool fuel : {false, true}) {
            wasm_config_t *config = wasm_config_new();
            if (fuel) wasmtime_config_consume_fuel_set(config, true);
            Runtime runtime(guarded(), config);
            hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
            if (fuel) hak_wasm_tenant_steps(tenant, 1000000);
            CHECK(answer(runtime, tenant, answering(7), folder.path) == "7 7 ");
        }
    }
}

TEST_CASE("limits hold for modules whose code is kept", "[kept]")
{
    Folder folder;
    Runtime runtime;
    CHECK(answer(runtime, hak_wasm_host_tenant(runtime.host), answering(7), folder.path) == "7 7 ");
    TenantOptions options;
    options.limits.linear_bytes = 4096;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    CHECK(answer(runtime, tenant, answering(7), folder.path) ==
          "hakmem: the module's code does not fit into the tenant's limit");
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_module_limits limits = HAK_WASM_MODULE_LIMITS_INIT;
    limits.bytes = 10;
    hak_wasm_tenant_modules(tenant, &limits);
    CHECK(answer(runtime, tenant, answering(7), folder.path).find("hak_wasm_module_limits.bytes") !=
          std::string::npos);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    CHECK(answer(runtime, hak_wasm_host_tenant(runtime.host), answering(7), "/nowhere") ==
          "hakmem: the folder of compiled modules \"/nowhere\": No such file or directory");
    chmod(folder.path, 0777);
    CHECK(answer(runtime, hak_wasm_host_tenant(runtime.host), answering(7), folder.path)
              .find("others may write") != std::string::npos);
}
