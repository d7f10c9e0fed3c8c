// What the tests of modules that another process compiles share. COMPILER: the program of compiler.c.
#pragma once

#include "bombs.h"
#include "wasmtime_test.h"

#include <hakmem/wasm_wasmtime_apart.h>

#include <chrono>
#include <sys/wait.h>

namespace test
{

using Clock = std::chrono::steady_clock;

// Time for a machine that does other things, beyond a limit.
constexpr int SLACK = 3000;

inline int64_t since(Clock::time_point begun)
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun).count();
}

inline std::string binary_of(const std::string &text)
{
    wasm_byte_vec_t binary;
    require_none(wasmtime_wat2wasm(text.data(), text.size(), &binary));
    const std::string bytes(binary.data, binary.size);
    wasm_byte_vec_delete(&binary);
    return bytes;
}

// Many seconds of a processor: locals that live through loops.
inline std::string slow()
{
    std::string code = leb(1) + leb(1000) + I32;
    for (unsigned i = 0; i < 40000; i++)
        code += std::string("\x03\x40\x20\0\x0d\0\x0b", 7);
    for (unsigned i = 0; i < 1000; i++)
        code += "\x20" + leb(i) + "\x1a";
    return functions_with(code + END);
}

struct Options : hak_wasmtime_apart_options {
    const char *arguments[3];
    explicit Options(const char *way = "compile", unsigned ms = 0)
        : hak_wasmtime_apart_options(HAK_WASMTIME_APART_OPTIONS_INIT), arguments{COMPILER, way, nullptr}
    {
        program = arguments;
        milliseconds = ms;
        // Where the machine is busy, or watches every access.
        if (ms == 0) milliseconds = 60000;
        cpu_milliseconds = 60000;
    }
    Options(const Options &) = delete;
    Options &operator=(const Options &) = delete;
};

// Descriptors that are open, children that run or wait to be asked: none is left when this ends.
struct Nothing {
    size_t before = open_files();
    Nothing() = default;
    Nothing(const Nothing &) = delete;
    Nothing &operator=(const Nothing &) = delete;
    ~Nothing()
    {
        CHECK(open_files() == before);
        CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
        CHECK(errno == ECHILD);
    }
};

struct Apart {
    hak_wasmtime_module *module;
    hak_wasmtime_apart_info info = HAK_WASMTIME_APART_INFO_INIT;
    std::string error;

    Apart(const Runtime &runtime, const std::string &binary, const hak_wasmtime_apart_options &options,
          hak_wasm_tenant *tenant = nullptr, bool linked = true)
    {
        wasmtime_error_t *e = nullptr;
        module = hak_wasmtime_module_apart(tenant ? tenant : hak_wasm_host_tenant(runtime.host),
                                           runtime.engine, linked ? runtime.linker : nullptr,
                                           reinterpret_cast<const uint8_t *>(binary.data()), binary.size(),
                                           &options, &info, &e);
        error = text_of(e);
    }
    Apart(const Apart &) = delete;
    Apart &operator=(const Apart &) = delete;
    ~Apart()
    {
        hak_wasmtime_module_delete(module);
    }
};

// What a failure is, in one text; "" = there is a module.
inline std::string failure(const Runtime &runtime, const std::string &binary,
                           const hak_wasmtime_apart_options &options, hak_wasmtime_apart_outcome outcome)
{
    Apart apart(runtime, binary, options);
    CHECK(apart.info.outcome == outcome);
    CHECK((apart.module == nullptr) == (outcome != HAK_WASMTIME_APART_DONE));
    CHECK((apart.error == "") == (outcome == HAK_WASMTIME_APART_DONE));
    return apart.error;
}

inline std::string program_text(const std::string &rest)
{
    return std::string("hakmem: \"") + COMPILER + "\" " + rest;
}

inline const std::string SMALL = "(module (func (export \"answer\") (result i32) (i32.const 42)))";

inline void serve(const Runtime &runtime)
{
    CHECK(failure(runtime, binary_of(SMALL), Options(), HAK_WASMTIME_APART_DONE) == "");
}

} // namespace test
