// A host that allocates for its guests, and their profiles as the command hakmem reads them.
#pragma once

#include "wamr_test.h"

#include <hakmem/wasm_profile.h>

#include <map>

namespace test
{

inline hak_wasm_host *lender;
inline void *lent[64];
inline uint32_t lent_count;

// The host allocates for the guest that calls.
inline uint32_t take(wasm_exec_env_t, uint32_t n)
{
    lent[lent_count] = hak_wasm_alloc(lender, n);
    return lent_count++;
}

inline void release(wasm_exec_env_t, uint32_t which)
{
    hak_wasm_free(lender, lent[which]);
}

inline NativeSymbol natives[] = {{"take", reinterpret_cast<void *>(take), "(i)i", nullptr},
                                 {"release", reinterpret_cast<void *>(release), "(i)", nullptr}};

struct Profiled : Wamr {
    Profiled() : Wamr(nullptr, natives, 2)
    {
        lender = host;
        lent_count = 0;
    }
};

inline std::string report_of(hak_wasm_tenant *tenant)
{
    char path[] = "/tmp/hakmem-wasm-XXXXXX";
    const int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    FILE *out = fdopen(fd, "w");
    REQUIRE(hak_wasm_report_json(tenant, out) == 0);
    REQUIRE(fclose(out) == 0);
    return path;
}

inline std::string output_of(const std::string &command)
{
    std::string text;
    FILE *in = popen(command.c_str(), "r");
    REQUIRE(in != nullptr);
    for (int c; (c = fgetc(in)) != EOF;)
        text += char(c);
    REQUIRE(pclose(in) == 0);
    return text;
}

// Stacks of the report, "outermost;...;innermost;[label]", and their bytes, as the command hakmem reads them.
inline std::map<std::string, size_t> stacks_of(hak_wasm_tenant *tenant, const char *by = "live")
{
    const std::string path = report_of(tenant);
    std::string text = output_of(std::string(HAKMEM_COMMAND) + " folded --by " + by + " " + path +
                                 " 2>/dev/null || test $? = 1"); // 1 = there are no stacks
    std::map<std::string, size_t> all;
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        const std::string line = text.substr(at, end - at);
        const size_t space = line.rfind(' ');
        const size_t name = line.find(';') + 1; // behind that of the context
        all[line.substr(name, space - name)] += std::stoul(line.substr(space + 1));
    }
    std::remove(path.c_str());
    return all;
}

inline size_t sum_of(const std::map<std::string, size_t> &all, const std::string &part)
{
    size_t sum = 0;
    for (const auto &[stack, bytes] : all)
        if (stack.find(part) != std::string::npos) sum += bytes;
    return sum;
}

} // namespace test
