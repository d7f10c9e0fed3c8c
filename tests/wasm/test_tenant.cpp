// Tenants: accounts, limits and their parents, scopes, closing.
#include "wasm_test.h"

#include <hakmem/policy.h>
#include <hakmem/wasm_profile.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <vector>

using namespace test;

namespace
{

hak_wasm_tenant *child_of(hak_wasm_host *host, hak_wasm_tenant *parent, hak_wasm_limits limits = {})
{
    TenantOptions options;
    options.parent = parent;
    options.limits = limits;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    REQUIRE(tenant != nullptr);
    return tenant;
}

// A number of the heap, the first context in the tenant's report.
size_t reported(hak_wasm_tenant *tenant, const std::string &name)
{
    char *text = nullptr;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    REQUIRE(out != nullptr);
    REQUIRE(hak_wasm_report_json(tenant, out) == 0);
    REQUIRE(std::fclose(out) == 0);
    const std::string report(text, size);
    std::free(text);
    const size_t contexts = report.find("\"contexts\"");
    const size_t at = report.find("\"" + name + "\":", contexts);
    INFO(report.substr(contexts));
    REQUIRE(at != std::string::npos);
    return std::stoul(report.substr(at + name.size() + 3));
}

} // namespace

TEST_CASE("blocks go to the current tenant and label, scopes nest", "[tenant]")
{
    Host host;
    hak_wasm_tenant *a = child_of(host, nullptr), *b = child_of(host, nullptr);
    CHECK(hak_wasm_current().tenant == nullptr);
    hak_wasm_scope outer = hak_wasm_enter(a, HAK_WASM_LOAD);
    void *p = hak_wasm_alloc(host, 100);
    hak_wasm_scope inner = hak_wasm_enter(b, HAK_WASM_WASI);
    CHECK(inner.tenant == a);
    CHECK(inner.label == HAK_WASM_LOAD);
    void *q = hak_wasm_calloc(host, 10, 10), *r = hak_wasm_aligned_alloc(host, 256, 100);
    CHECK(reinterpret_cast<uintptr_t>(r) % 256 == 0);
    CHECK(is_zero(q, 100));
    hak_wasm_leave(inner);
    CHECK(hak_wasm_current().tenant == a);
    hak_wasm_leave(outer);
    CHECK(hak_wasm_current().tenant == nullptr);
    void *root = hak_wasm_alloc(host, 100);

    CHECK(info_of(a).label[HAK_WASM_LOAD].live_blocks == 1);
    CHECK(info_of(a).heap_live == hak_wasm_usable_size(host, p));
    CHECK(info_of(b).label[HAK_WASM_WASI].live_blocks == 2);
    CHECK(info_of(hak_wasm_host_tenant(host)).label[HAK_WASM_OTHER].live_blocks == 1);
    // a block stays its tenant's, whatever is current
    outer = hak_wasm_enter(b, HAK_WASM_NATIVE);
    p = hak_wasm_realloc(host, p, 5000);
    CHECK(info_of(a).label[HAK_WASM_LOAD].live_bytes >= 5000);
    hak_wasm_free(host, p);
    CHECK(info_of(a).heap_live == 0);
    hak_wasm_leave(outer);
    CHECK(hak_wasm_owns(host, q));
    int local = 0;
    CHECK_FALSE(hak_wasm_owns(host, &local));
    CHECK(hak_wasm_usable_size(host, &local) == 0);
    CHECK(hak_wasm_realloc(host, &local, 10) == nullptr);
    hak_wasm_free(host, &local);
    hak_wasm_free(host, nullptr);
    for (void *block : {q, r, root})
        hak_wasm_free(host, block);
    hak_wasm_tenant_close(a, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(b, HAK_WASM_RETIRE);
    CHECK(info_of(hak_wasm_host_tenant(host)).heap_live == 0);
}

TEST_CASE("a tenant of another host is not current here", "[tenant]")
{
    Host host, other;
    hak_wasm_tenant *tenant = child_of(other, nullptr);
    {
        Scope scope(tenant);
        hak_wasm_free(host, hak_wasm_alloc(host, 10));
        void *p = hak_wasm_memory_new(host, WASM_PAGE);
        CHECK(info_of(tenant).linear_bytes == 0);
        CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == WASM_PAGE);
        hak_wasm_memory_free(host, p);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("hard heap limits give NULL, soft ones only refuse instances", "[tenant]")
{
    for (bool soft : {false, true}) {
        Host host;
        hak_wasm_tenant *tenant = child_of(host, nullptr, {256 * KIB, soft, 0, 0});
        Scope scope(tenant);
        std::vector<void *> blocks;
        REQUIRE(hak_wasm_admit(tenant) == 0);
        for (int i = 0; i < 100; i++)
            blocks.push_back(hak_wasm_alloc(host, 10000));
        size_t got = 100 - size_t(std::count(blocks.begin(), blocks.end(), nullptr));
        if (soft) {
            CHECK(got == 100);
            CHECK(hak_wasm_admit(tenant) == -1);
            CHECK(info_of(tenant).instances_refused == 1);
        } else {
            CHECK(got > 10);
            CHECK(got < 26);
            CHECK(info_of(tenant).heap_committed <= 256 * KIB);
            CHECK(info_of(tenant).heap_failures >= 100 - got);
        }
        for (void *p : blocks)
            hak_wasm_free(host, p);
        hak_wasm_dismiss(tenant);
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    }
}

TEST_CASE("limits of parents and of the host cover all below them", "[tenant]")
{
    HostOptions options;
    options.limits.linear_bytes = 20 * WASM_PAGE;
    options.limits.instances = 5;
    Host host(&options);
    TenantOptions group;
    group.children = true;
    group.limits = {512 * KIB, false, 10 * WASM_PAGE, 3};
    hak_wasm_tenant *plan = hak_wasm_tenant_new(host, &group);
    REQUIRE(plan != nullptr);
    hak_wasm_tenant *a = child_of(host, plan), *b = child_of(host, plan, {0, false, 2 * WASM_PAGE, 0}),
                    *c = child_of(host, nullptr);
    TenantOptions wrong;
    wrong.parent = a; // may not have children
    CHECK(hak_wasm_tenant_new(host, &wrong) == nullptr);
    wrong = TenantOptions();
    wrong.size = 3;
    CHECK(hak_wasm_tenant_new(host, &wrong) == nullptr);

    std::vector<void *> memories;
    auto take = [&](hak_wasm_tenant *tenant, size_t pages) {
        Scope scope(tenant);
        void *p = hak_wasm_memory_new(host, pages * WASM_PAGE);
        if (p != nullptr) memories.push_back(p);
        return p != nullptr;
    };
    CHECK(take(a, 7));
    CHECK_FALSE(take(b, 3)); // own limit
    CHECK(take(b, 2));
    CHECK_FALSE(take(a, 2)); // the plan's
    CHECK(take(a, 1));
    CHECK_FALSE(take(c, 11)); // the host's
    CHECK(take(c, 10));
    CHECK(info_of(plan).linear_bytes == 10 * WASM_PAGE);
    CHECK(info_of(plan).label[HAK_WASM_LINEAR].live_bytes == 0);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 20 * WASM_PAGE);
    CHECK(info_of(b).linear_refused == 1);
    CHECK(info_of(plan).linear_refused == 1);
    CHECK(info_of(a).linear_refused == 0);
    for (void *p : memories)
        CHECK(hak_wasm_memory_free(host, p) == 0);
    CHECK(info_of(plan).linear_bytes == 0);

    CHECK(hak_wasm_admit(a) == 0);
    CHECK(hak_wasm_admit(a) == 0);
    CHECK(hak_wasm_admit(b) == 0);
    CHECK(hak_wasm_admit(b) == -1);
    CHECK(hak_wasm_admit(c) == 0);
    CHECK(hak_wasm_admit(c) == 0);
    CHECK(hak_wasm_admit(c) == -1);
    CHECK(info_of(b).instances == 1);
    hak_wasm_dismiss(b);
    CHECK(hak_wasm_admit(a) == 0);
    for (hak_wasm_tenant *tenant : {a, a, a, c, c})
        hak_wasm_dismiss(tenant);

    // heap: what one takes, the other lacks
    std::vector<void *> blocks;
    size_t got_a = 0, got_b = 0;
    {
        Scope scope(a);
        for (int i = 0; i < 100; i++) {
            void *p = hak_wasm_alloc(host, 10000);
            got_a += p != nullptr;
            blocks.push_back(p);
        }
        CHECK(hak_wasm_admit(b) == 0);
        hak_wasm_dismiss(b);
    }
    {
        Scope scope(b);
        for (int i = 0; i < 100; i++) {
            void *p = hak_wasm_alloc(host, 10000);
            got_b += p != nullptr;
            blocks.push_back(p);
        }
    }
    CHECK(got_a > 20);
    CHECK(got_b < 4);
    CHECK(info_of(plan).heap_committed <= 512 * KIB);
    for (void *p : blocks)
        hak_wasm_free(host, p);
    for (hak_wasm_tenant *tenant :
         {plan, a, b, c}) // the parent first: it lives on until its children are gone
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 0);
}

TEST_CASE("what is refused is in no account", "[tenant]")
{
    Host host;
    TenantOptions group;
    group.children = true;
    group.limits.linear_bytes = 10 << 16;
    group.limits.instances = 1;
    hak_wasm_tenant *parent = hak_wasm_tenant_new(host, &group), *tenant = child_of(host, parent);
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    void *memory = hak_wasm_memory_new(host, 1 << 16);
    for (size_t bytes : {(size_t)11 << 16, hak_wasm_slot_bytes(host) + 1, SIZE_MAX - 4095, SIZE_MAX}) {
        CHECK(hak_wasm_memory_new(host, bytes) == nullptr);
        CHECK(hak_wasm_memory_grow(host, memory, bytes) == -1);
    }
    hak_wasm_leave(before);
    REQUIRE(hak_wasm_admit(tenant) == 0);
    CHECK(hak_wasm_admit(tenant) == -1);
    for (hak_wasm_tenant *t : {tenant, parent}) {
        CHECK(info_of(t).linear_bytes == 1 << 16);
        CHECK(info_of(t).linear_peak == 1 << 16);
        CHECK(info_of(t).instances_peak == 1);
    }
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_peak == 1 << 16);
    // nobody has a limit that it could be over
    for (size_t bytes : {hak_wasm_slot_bytes(host) + 1, SIZE_MAX - 4095, SIZE_MAX})
        CHECK(hak_wasm_memory_new(host, bytes) == nullptr);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_peak == 1 << 16);
    hak_wasm_dismiss(tenant);
    hak_wasm_memory_free(host, memory);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(parent, HAK_WASM_RETIRE);
}

TEST_CASE("a parent is of the same host", "[tenant]")
{
    Host host, other;
    TenantOptions options;
    options.parent = hak_wasm_host_tenant(other);
    CHECK(hak_wasm_tenant_new(host, &options) == nullptr);
}

TEST_CASE("new limits hold from then on", "[tenant]")
{
    Host host;
    hak_wasm_tenant *tenant = child_of(host, nullptr);
    Scope scope(tenant);
    void *p = hak_wasm_memory_new(host, 4 * WASM_PAGE);
    hak_wasm_limits limits = {0, false, 3 * WASM_PAGE, 0};
    hak_wasm_tenant_limit(tenant, &limits);
    CHECK(hak_wasm_memory_grow(host, p, 4 * WASM_PAGE) == 0); // no growth
    CHECK(hak_wasm_memory_grow(host, p, 5 * WASM_PAGE) == -1);
    CHECK(hak_wasm_memory_new(host, 1) == nullptr);
    limits.linear_bytes = 5 * WASM_PAGE;
    hak_wasm_tenant_limit(tenant, &limits);
    CHECK(hak_wasm_memory_grow(host, p, 5 * WASM_PAGE) == 0);
    hak_wasm_memory_free(host, p);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a retired tenant goes with its last block, memory, instance and child", "[tenant]")
{
    Host host;
    hak_wasm_tenant *root = hak_wasm_host_tenant(host);
    size_t before = info_of(root).heap_committed;
    TenantOptions group;
    group.children = true;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &group), *child = child_of(host, tenant);
    void *block, *memory;
    {
        Scope scope(tenant);
        block = hak_wasm_alloc(host, 1000);
        memory = hak_wasm_memory_new(host, WASM_PAGE);
    }
    CHECK(hak_wasm_admit(tenant) == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    CHECK(info_of(root).linear_bytes == WASM_PAGE);
    CHECK(hak_wasm_memory_grow(host, memory, 2 * WASM_PAGE) == 0);
    CHECK(info_of(root).linear_bytes == 2 * WASM_PAGE);
    block = hak_wasm_realloc(host, block, 3000);
    CHECK(hak_wasm_owns(host, block));
    hak_wasm_free(host, block);
    CHECK_FALSE(hak_wasm_owns(host, block));
    hak_wasm_memory_free(host, memory);
    CHECK(info_of(root).linear_bytes == 0);
    CHECK(info_of(root).instances == 1);
    hak_wasm_dismiss(tenant);
    CHECK(info_of(root).instances == 0);
    hak_wasm_tenant_close(child, HAK_WASM_RETIRE);
    hak_wasm_host_trim(host);
    CHECK(info_of(root).heap_committed == before);
}

TEST_CASE("what survives a retired tenant goes with the host", "[tenant]")
{
    Host host;
    TenantOptions group;
    group.children = true;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &group), *child = child_of(host, tenant);
    Scope scope(child);
    CHECK(hak_wasm_alloc(host, 100) != nullptr);
    CHECK(hak_wasm_memory_new(host, WASM_PAGE) != nullptr);
    CHECK(hak_wasm_admit(child) == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(child, HAK_WASM_RETIRE);
    CHECK(host.info().live == 1);
}

TEST_CASE("frees that are none do not end a retired tenant", "[tenant]")
{
    // At first a context sees them at once; behind magazines only when they are emptied.
    size_t blocks = GENERATE(3, 20000);
    bool spares = GENERATE(false, true);
    HostOptions options;
    if (!spares) options.warm_bytes = HAK_NONE;
    Host host(&options);
    hak_wasm_tenant *tenant = child_of(host, nullptr);
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    std::vector<char *> p;
    for (size_t i = 0; i < blocks; i++)
        p.push_back(static_cast<char *>(hak_wasm_alloc(host, 64)));
    hak_wasm_leave(before);
    SECTION("a block that is freed twice")
    {
        for (size_t i = 2; i < p.size(); i++)
            hak_wasm_free(host, p[i]);
        hak_wasm_free(host, p[1]);
        hak_wasm_free(host, p[1]);
    }
    SECTION("a pointer into a block")
    {
        for (size_t i = 1; i < p.size(); i++)
            hak_wasm_free(host, p[i]);
        hak_wasm_free(host, p[0] + 16);
    }
    SECTION("a block that is freed twice, the other one after the end")
    {
        for (size_t i = 2; i < p.size(); i++)
            hak_wasm_free(host, p[i]);
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
        tenant = nullptr;
        hak_wasm_free(host, p[1]);
        hak_wasm_free(host, p[1]);
    }
    memset(p[0], 7, 64);
    if (tenant) hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_host_trim(host);
    CHECK(hak_wasm_usable_size(host, p[0]) == 64);
    CHECK(p[0][63] == 7);
    hak_wasm_free(host, p[0]);
    CHECK_FALSE(hak_wasm_owns(host, p[0]));
}

TEST_CASE("a tenant without blocks goes, whatever was freed too often", "[tenant]")
{
    HostOptions options;
    options.warm_bytes = HAK_NONE;
    Host host(&options);
    hak_wasm_tenant *tenant = child_of(host, nullptr);
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    void *p = hak_wasm_alloc(host, 64);
    hak_wasm_leave(before);
    hak_wasm_free(host, p);
    hak_wasm_free(host, p);
    REQUIRE(hak_wasm_owns(host, p));
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    CHECK_FALSE(hak_wasm_owns(host, p));
}

TEST_CASE("closed in bulk, everything is gone at once", "[tenant]")
{
    Host host;
    hak_wasm_tenant *root = hak_wasm_host_tenant(host);
    size_t before = info_of(root).heap_committed;
    hak_wasm_tenant *tenant = child_of(host, nullptr), *other = child_of(host, nullptr);
    std::vector<void *> memories;
    {
        Scope scope(tenant);
        for (int i = 0; i < 100; i++)
            hak_wasm_alloc(host, size_t(1) << (i % 18));
        for (int i = 0; i < 5; i++)
            memories.push_back(hak_wasm_memory_new(host, WASM_PAGE));
        std::memset(memories[2], 1, WASM_PAGE);
    }
    void *kept;
    {
        Scope scope(other);
        kept = hak_wasm_memory_new(host, WASM_PAGE);
        static_cast<char *>(kept)[7] = 7;
    }
    hak_wasm_admit(tenant);
    hak_wasm_tenant_close(tenant, HAK_WASM_BULK);
    CHECK(info_of(root).linear_bytes == WASM_PAGE);
    CHECK(info_of(root).instances == 0);
    for (void *p : memories)
        CHECK_FALSE(hak_wasm_is_memory(host, p));
    CHECK(static_cast<char *>(kept)[7] == 7);
    hak_wasm_memory_free(host, kept);
    hak_wasm_tenant_close(other, HAK_WASM_RETIRE);
    hak_wasm_host_trim(host);
    CHECK(info_of(root).heap_committed == before);
    hak_wasm_tenant_close(root, HAK_WASM_BULK); // not to be closed
    CHECK(info_of(root).heap_committed == before);
}

TEST_CASE("a policy of the host is that of its tenants", "[tenant]")
{
    auto kept = [](const char *text) {
        HostOptions options;
        hak_policy *policy = text ? hak_policy_parse(nullptr, text, std::strlen(text), nullptr) : nullptr;
        CHECK((policy != nullptr) == (text != nullptr));
        options.policy = policy;
        Host host(&options);
        hak_policy_unref(policy);
        hak_wasm_tenant *root = hak_wasm_host_tenant(host);
        const size_t before = info_of(root).heap_committed;
        for (int i = 0; i < 4; i++)
            hak_wasm_free(host, hak_wasm_alloc(host, 3000 * KIB));
        return info_of(root).heap_committed - before;
    };
    CHECK(kept(nullptr) >= 3000 * KIB);
    CHECK(kept("hakmem-policy 1\nbig_cache none\n") < 1000 * KIB);
    CHECK(kept("hakmem-policy 1\nmode minimal\n") < 1000 * KIB);
}

TEST_CASE("a tenant in the context of one before is as new", "[tenant]")
{
    HostOptions host_options;
    host_options.decay_ns = 1000;
    Host host(&host_options);
    hak_wasm_tenant *root = hak_wasm_host_tenant(host);
    const size_t before = info_of(root).heap_committed;
    TenantOptions options;
    options.name = "a name that is longer";
    options.limits = {64 * KIB, false, WASM_PAGE, 1};
    hak_wasm_tenant *first = hak_wasm_tenant_new(host, &options);
    {
        Scope scope(first, HAK_WASM_WASI);
        hak_wasm_free(host, hak_wasm_alloc(host, 5000));
        CHECK(hak_wasm_alloc(host, 100000) == nullptr);
        hak_wasm_memory_free(host, hak_wasm_memory_new(host, WASM_PAGE));
        CHECK(hak_wasm_memory_new(host, 2 * WASM_PAGE) == nullptr);
        CHECK(hak_wasm_admit(first) == 0);
        CHECK(hak_wasm_admit(first) == -1);
        hak_wasm_dismiss(first);
    }
    hak_wasm_tenant_close(first, HAK_WASM_RETIRE);
    CHECK(info_of(root).heap_committed > before);

    TenantOptions plain;
    plain.name = "b";
    hak_wasm_tenant *second = hak_wasm_tenant_new(host, &plain);
    CHECK(second == first);
    CHECK(hak_wasm_tenant_name(second) == std::string("b"));
    hak_wasm_tenant_info info = info_of(second);
    CHECK(info.heap_live == 0);
    CHECK(info.heap_failures == 0);
    CHECK(info.linear_peak == 0);
    CHECK(info.linear_refused == 0);
    CHECK(info.instances_peak == 0);
    CHECK(info.instances_refused == 0);
    {
        Scope scope(second);
        void *p = hak_wasm_alloc(host, 100000); // the limits are gone, too
        CHECK(p != nullptr);
        hak_wasm_free(host, p);
        CHECK(hak_wasm_admit(second) == 0);
        CHECK(hak_wasm_admit(second) == 0);
        hak_wasm_dismiss(second);
        hak_wasm_dismiss(second);
    }
    hak_wasm_tenant_close(second, HAK_WASM_RETIRE);
    options.limits.heap_bytes = 20 * KIB; // too little to begin with another's pages
    hak_wasm_tenant *third = hak_wasm_tenant_new(host, &options);
    CHECK(third != first);
    CHECK(info_of(third).heap_committed <= 20 * KIB);
    hak_wasm_tenant_close(third, HAK_WASM_RETIRE);

    hak_wasm_host_tick(host, 10000);
    CHECK(info_of(root).heap_committed > before);
    hak_wasm_host_tick(host, 20000);
    CHECK(info_of(root).heap_committed == before);
}

TEST_CASE("a report shows nothing of the tenant that had the context before", "[tenant]")
{
    Host host;
    for (int turn = 0; turn < 3; turn++) {
        hak_wasm_tenant *first = child_of(host, nullptr);
        std::vector<void *> blocks;
        {
            Scope scope(first, HAK_WASM_NATIVE);
            for (size_t i = 0; i < 2000; i++)
                blocks.push_back(hak_wasm_alloc(host, 16 + i * 37 % 500));
            CHECK(hak_wasm_alloc(host, SIZE_MAX / 2) == nullptr);
        }
        CHECK(reported(first, "peak_bytes") > 400 * KIB);
        CHECK(reported(first, "failures") == 1);
        for (void *p : blocks)
            hak_wasm_free(host, p);
        hak_wasm_tenant_close(first, HAK_WASM_RETIRE);
        hak_wasm_tenant *second = child_of(host, nullptr);
        REQUIRE(second == first);
        CHECK(reported(second, "failures") == 0);
        CHECK(reported(second, "peak_bytes") == 0);
        CHECK(reported(second, "live_bytes") == 0);
        CHECK(reported(second, "live_blocks") == 0);
        {
            Scope scope(second, HAK_WASM_NATIVE);
            void *p = hak_wasm_alloc(host, 3000);
            CHECK(reported(second, "peak_bytes") >= 3000);
            hak_wasm_free(host, p);
            CHECK(hak_wasm_alloc(host, SIZE_MAX / 2) == nullptr);
        }
        CHECK(reported(second, "peak_bytes") >= 3000);
        CHECK(reported(second, "failures") == 1);
        hak_wasm_tenant_close(second, HAK_WASM_RETIRE);
    }
}

TEST_CASE("tenants, hosts and labels have names", "[tenant]")
{
    Host host;
    TenantOptions options;
    std::string name(100, 'x');
    options.name = name.c_str();
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    CHECK(hak_wasm_tenant_name(tenant) == std::string(47, 'x'));
    CHECK(hak_wasm_tenant_host(tenant) == host);
    CHECK(std::string(hak_wasm_tenant_name(hak_wasm_host_tenant(host))) == "host");
    CHECK(std::string(hak_wasm_label_name(HAK_WASM_OTHER)) == "other");
    CHECK(std::string(hak_wasm_label_name(HAK_WASM_NATIVE)) == "native");
    CHECK(hak_wasm_label_name(HAK_WASM_LABELS) == nullptr);
    hak_wasm_host_info info = {};
    CHECK(hak_wasm_host_stats(host, &info) == -1);
    hak_wasm_tenant_info tenant_info = {};
    CHECK(hak_wasm_tenant_stats(tenant, &tenant_info) == -1);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a tick gives retained pages of contexts back", "[tenant]")
{
    HostOptions options;
    options.decay_ns = 1000;
    Host host(&options);
    hak_wasm_tenant *tenant = child_of(host, nullptr);
    {
        Scope scope(tenant);
        for (int i = 0; i < 500; i++)
            std::memset(hak_wasm_alloc(host, 30000), 1, 30000);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_BULK);
    auto resident = [] {
        size_t pages = 0;
        FILE *f = std::fopen("/proc/self/statm", "r");
        int n = std::fscanf(f, "%*u %zu", &pages);
        std::fclose(f);
        REQUIRE(n == 1);
        return pages * 4096;
    };
    size_t before = resident();
    for (uint64_t now = 10000; now < 200000; now += 10000)
        hak_wasm_host_tick(host, now);
    hak_wasm_host_tick(host, 0);
    CHECK(resident() + 10 * MIB < before);
}

TEST_CASE("options and statistics of another version of the header", "[tenant]")
{
    struct Later {
        hak_wasm_tenant_options known;
        uint64_t more;
    } later = {HAK_WASM_TENANT_OPTIONS_INIT, 0};
    Host host;
    later.known.size = sizeof later;
    later.known.name = "later";
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &later.known);
    REQUIRE(tenant != nullptr);
    CHECK(std::string(hak_wasm_tenant_name(tenant)) == "later");
    later.more = 1;
    CHECK(hak_wasm_tenant_new(host, &later.known) == nullptr);
    // A name alone: no parent, no limits.
    later.known.size = offsetof(hak_wasm_tenant_options, parent);
    later.known.parent = tenant; // may have no children: not read
    hak_wasm_tenant *other = hak_wasm_tenant_new(host, &later.known);
    REQUIRE(other != nullptr);

    struct {
        hak_wasm_tenant_info known;
        uint64_t more;
    } info;
    std::memset(&info, 0xEE, sizeof info);
    info.known.size = sizeof info;
    REQUIRE(hak_wasm_tenant_stats(tenant, &info.known) == 0);
    CHECK(info.known.size == sizeof info);
    CHECK((info.known.instances_refused == 0 && info.more == 0));
    info.known.size = offsetof(hak_wasm_tenant_info, instances_refused);
    info.known.instances_refused = 5;
    REQUIRE(hak_wasm_tenant_stats(tenant, &info.known) == 0);
    CHECK(info.known.instances_refused == 5);
    info.known.size = 0;
    CHECK(hak_wasm_tenant_stats(tenant, &info.known) == -1);

    hak_wasm_host_info of_host;
    std::memset(&of_host, 0xEE, sizeof of_host);
    of_host.size = offsetof(hak_wasm_host_info, dirty);
    REQUIRE(hak_wasm_host_stats(host, &of_host) == 0);
    CHECK(of_host.extents <= 1);
    of_host.size = SIZE_MAX;
    CHECK(hak_wasm_host_stats(host, &of_host) == -1);
    hak_wasm_host_options old = HAK_WASM_HOST_OPTIONS_INIT;
    old.size = offsetof(hak_wasm_host_options, slot_bytes);
    old.slot_bytes = 1; // not read
    CHECK(hak_wasm_host_options_error(&old) == nullptr);
    old.size = 1;
    CHECK(hak_wasm_host_options_error(&old) != nullptr);
    hak_wasm_tenant_close(other, HAK_WASM_BULK);
    hak_wasm_tenant_close(tenant, HAK_WASM_BULK);
}

TEST_CASE("a process is looked at at one place, and once", "[tenant]")
{
    char error[200] = "", path[] = "/tmp/hakmem-look-XXXXXX";
    auto *nobody = +[](void *, hak_wasm_look *) {};
    REQUIRE(mkdtemp(path) != nullptr);
    std::string folder = path, place = folder + "/socket", none = folder + "/none/socket";
    // Whether a forked child may be looked at, at the same place or at another one.
    const auto child_starts = [&](const std::string &at) {
#ifndef __SANITIZE_THREAD__ // it ends a child that starts a thread
        const pid_t child = fork();
        if (child == 0) {
            const bool ok = hak_wasm_live_start(at.c_str(), nobody, nullptr, error, sizeof error) == 0;
            hak_wasm_live_stop();
            _exit(ok ? 0 : 1);
        }
        int status = -1;
        REQUIRE(waitpid(child, &status, 0) == child);
        return status == 0;
#else
        return !at.empty();
#endif
    };
    CHECK(hak_wasm_live_start(none.c_str(), nobody, nullptr, error, sizeof error) == -1);
    CHECK(std::string(error).find("/none") != std::string::npos);
    REQUIRE(hak_wasm_live_start(place.c_str(), nobody, nullptr, error, sizeof error) == 0);
    CHECK(access(place.c_str(), F_OK) == 0);
    CHECK(hak_wasm_live_start(place.c_str(), nobody, nullptr, error, sizeof error) == -1);
    CHECK(std::string(error) == "this process is looked at already");
    CHECK(child_starts(folder + "/child"));
    CHECK(access(place.c_str(), F_OK) == 0);
    hak_wasm_live_stop();
    CHECK(access(place.c_str(), F_OK) == -1);
    hak_wasm_live_stop();
    for (int i = 0; i < 2; i++) {
        CHECK(hak_wasm_live_start(place.c_str(), nobody, nullptr, error, sizeof error) == -1);
        CHECK(std::string(error).find("once in a process") != std::string::npos);
        CHECK(access(place.c_str(), F_OK) == -1);
    }
    CHECK(child_starts(place));
    CHECK(rmdir(path) == 0);
}
