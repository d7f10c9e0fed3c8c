// What the tests of the WAMR adapter share.
#pragma once

#include "wasm_test.h"

#include <hakmem/wasm_wamr.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace test
{

using Bytes = std::vector<uint8_t>;

inline Bytes read_file(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    REQUIRE(in.good());
    return Bytes(std::istreambuf_iterator<char>(in), {});
}
inline Bytes read_guest(const std::string &name)
{
    return read_file(std::string(GUESTS) + name + ".wasm");
}

// A host with WAMR on it.
struct Wamr : Host {
    explicit Wamr(const hak_wasm_host_options *options = nullptr, NativeSymbol *natives = nullptr,
                  uint32_t native_count = 0)
        : Host(options)
    {
        RuntimeInitArgs args = {};
        hak_wasm_wamr_args(host, &args);
        args.n_native_symbols = native_count;
        args.native_symbols = natives;
        args.native_module_name = "env";
        REQUIRE(wasm_runtime_full_init(&args));
    }
    ~Wamr()
    {
        wasm_runtime_destroy();
    }
};

struct CloseTenant {
    void operator()(hak_wasm_tenant *t) const
    {
        hak_wasm_tenant_close(t, HAK_WASM_RETIRE);
    }
};
using Tenant = std::unique_ptr<hak_wasm_tenant, CloseTenant>;
inline Tenant new_tenant(hak_wasm_host *host, const hak_wasm_tenant_options *options = nullptr)
{
    Tenant tenant(hak_wasm_tenant_new(host, options));
    REQUIRE(tenant != nullptr);
    return tenant;
}

// A loaded module with the bytes it needs.
struct Module {
    Bytes bytes;
    char error[128] = "";
    wasm_module_t module;

    Module(hak_wasm_tenant *tenant, Bytes content)
        : bytes(std::move(content)),
          module(hak_wasm_wamr_load(tenant, bytes.data(), uint32_t(bytes.size()), error, sizeof error))
    {
    }
    Module(hak_wasm_tenant *tenant, const char *guest) : Module(tenant, read_guest(guest))
    {
        INFO(error);
        REQUIRE(module != nullptr);
    }
    Module(const Module &) = delete;
    Module &operator=(const Module &) = delete;
    ~Module()
    {
        if (module) wasm_runtime_unload(module);
    }
    operator wasm_module_t() const
    {
        return module;
    }
};

// An instance; `guest` is NULL when it could not be made.
struct Guest {
    char error[128] = "";
    hak_wasm_wamr *guest;

    Guest(hak_wasm_tenant *tenant, wasm_module_t module)
        : guest(hak_wasm_wamr_open(tenant, module, 32768, error, sizeof error))
    {
    }
    Guest(const Guest &) = delete;
    Guest &operator=(const Guest &) = delete;
    ~Guest()
    {
        hak_wasm_wamr_close(guest);
    }
    operator hak_wasm_wamr *() const
    {
        return guest;
    }

    // The result of a function of up to two arguments; the exception goes to `error`.
    uint32_t call(const char *function, uint32_t argc = 0, uint32_t a = 0, uint32_t b = 0)
    {
        uint32_t argv[2] = {a, b};
        error[0] = 0;
        if (!hak_wasm_wamr_call(guest, function, argc, argv)) {
            std::snprintf(error, sizeof error, "%s", hak_wasm_wamr_exception(guest));
            return UINT32_MAX;
        }
        return argv[0];
    }
    bool ok() const
    {
        return error[0] == 0;
    }

    char *memory() const
    {
        wasm_memory_inst_t m = wasm_runtime_get_default_memory(hak_wasm_wamr_instance(guest));
        return m ? static_cast<char *>(wasm_memory_get_base_address(m)) : nullptr;
    }
    std::vector<char> content(hak_wasm_host *host) const
    {
        char *p = memory();
        return std::vector<char>(p, p + hak_wasm_memory_size(host, p));
    }
};

} // namespace test
