// What the tests of WebAssembly hosts share.
#pragma once

#include <hakmem/wasm.h>

#include "catch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <unistd.h>
#include <vector>

namespace test
{

struct HostOptions : hak_wasm_host_options {
    HostOptions() : hak_wasm_host_options(HAK_WASM_HOST_OPTIONS_INIT)
    {
    }
};

struct TenantOptions : hak_wasm_tenant_options {
    TenantOptions() : hak_wasm_tenant_options(HAK_WASM_TENANT_OPTIONS_INIT)
    {
    }
};

// How many descriptors are open; the folder's own is counted, too.
inline size_t open_files()
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != nullptr && readdir(dir) != nullptr)
        n++;
    if (dir != nullptr) closedir(dir);
    return n;
}

// Whether this kernel has the way to find written pages that the options ask for.
inline bool has_method(const HostOptions &options)
{
    hak_wasm_host *probe = hak_wasm_host_new(&options);
    if (probe == nullptr) WARN("this kernel does not have method " << options.dirty);
    else hak_wasm_host_delete(probe);
    return probe != nullptr;
}

// A host that is deleted at the end.
struct Host {
    hak_wasm_host *host;

    explicit Host(const hak_wasm_host_options *options = nullptr) : host(hak_wasm_host_new(options))
    {
        REQUIRE(host != nullptr);
    }
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;
    ~Host()
    {
        hak_wasm_host_delete(host);
    }
    operator hak_wasm_host *() const
    {
        return host;
    }

    hak_wasm_host_info info() const
    {
        hak_wasm_host_info i = {};
        i.size = sizeof i;
        REQUIRE(hak_wasm_host_stats(host, &i) == 0);
        return i;
    }
};

inline hak_wasm_tenant_info info_of(hak_wasm_tenant *tenant)
{
    hak_wasm_tenant_info i = {};
    i.size = sizeof i;
    REQUIRE(hak_wasm_tenant_stats(tenant, &i) == 0);
    return i;
}

struct Scope {
    hak_wasm_scope before;
    explicit Scope(hak_wasm_tenant *tenant, hak_wasm_label label = HAK_WASM_INSTANCE)
        : before(hak_wasm_enter(tenant, label))
    {
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope()
    {
        hak_wasm_leave(before);
    }
};

inline bool is_zero(const void *p, size_t n)
{
    const char *c = static_cast<const char *>(p);
    return n == 0 || (*c == 0 && std::memcmp(c, c + 1, n - 1) == 0);
}

constexpr size_t KIB = 1024, MIB = 1024 * 1024, WASM_PAGE = 65536;

} // namespace test
