// What a tenant may hold does not depend on who was there before.
#include "wamr_test.h"

using namespace test;

namespace
{

hak_wasm_limits heap_limit(size_t bytes, bool soft = false)
{
    hak_wasm_limits limits = {};
    limits.heap_bytes = bytes;
    limits.heap_soft = soft;
    return limits;
}

struct Held {
    size_t instances, committed; // at most; at first
    bool operator==(const Held &other) const
    {
        return instances == other.instances && committed == other.committed;
    }
};

std::ostream &operator<<(std::ostream &out, const Held &held)
{
    return out << held.instances << " instances, begins with " << held.committed;
}

// Opens instances in the tenant until there is no room.
size_t fill(hak_wasm_tenant *tenant, wasm_module_t module, size_t most)
{
    std::vector<hak_wasm_wamr *> guests;
    char error[128];
    while (guests.size() < most) {
        hak_wasm_wamr *guest = hak_wasm_wamr_open(tenant, module, 8192, error, sizeof error);
        if (guest == nullptr) break;
        guests.push_back(guest);
    }
    for (hak_wasm_wamr *guest : guests)
        hak_wasm_wamr_close(guest);
    return guests.size();
}

// A tenant that had all kinds of blocks, and is closed.
void use(hak_wasm_host *host, wasm_module_t module, hak_wasm_limits limits)
{
    TenantOptions options;
    options.limits = limits;
    Tenant tenant = new_tenant(host, &options);
    fill(tenant.get(), module, 100);
    std::vector<void *> blocks;
    {
        Scope scope(tenant.get(), HAK_WASM_NATIVE);
        for (size_t i = 0; i < 3000; i++)
            blocks.push_back(hak_wasm_alloc(host, 16 + i * 37 % 3000));
    }
    for (void *p : blocks)
        hak_wasm_free(host, p);
}

Held hold(hak_wasm_host *host, wasm_module_t module, hak_wasm_limits limits, bool late)
{
    TenantOptions options;
    if (!late) options.limits = limits;
    Tenant tenant = new_tenant(host, &options);
    if (late) hak_wasm_tenant_limit(tenant.get(), &limits);
    const size_t committed = info_of(tenant.get()).heap_committed;
    return {fill(tenant.get(), module, SIZE_MAX), committed};
}

Held hold_in_new_host(hak_wasm_limits limits)
{
    Wamr host;
    Tenant loader = new_tenant(host);
    Module module(loader.get(), "small");
    return hold(host, module, limits, false);
}

} // namespace

TEST_CASE("a tenant holds as much after another as in a new host", "[recycled]")
{
    const size_t instances[] = {5, 15, 35}; // with stacks of 8 KiB
    size_t expected = 0;
    for (size_t limit : {128 * KIB, 256 * KIB, 512 * KIB}) {
        const Held held = hold_in_new_host(heap_limit(limit));
        CHECK(held.instances >= instances[expected++]);
        for (size_t before : {64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB, size_t(0)}) {
            for (bool late : {false, true}) {
                INFO("a limit of " << limit << " after one of " << before << (late ? ", set late" : ""));
                Wamr host;
                Tenant loader = new_tenant(host);
                Module module(loader.get(), "small");
                for (int i = 0; i < 3; i++) {
                    use(host, module, heap_limit(before));
                    CHECK(hold(host, module, heap_limit(limit), late) == held);
                }
            }
        }
    }
}

TEST_CASE("a soft limit admits as many after another tenant", "[recycled]")
{
    const Held held = hold_in_new_host(heap_limit(256 * KIB, true));
    CHECK(held.instances > 5);
    Wamr host;
    Tenant loader = new_tenant(host);
    Module module(loader.get(), "small");
    for (int i = 0; i < 3; i++) {
        use(host, module, heap_limit(MIB));
        CHECK(hold(host, module, heap_limit(256 * KIB, true), false) == held);
    }
}

TEST_CASE("nothing that closed tenants leave counts for the limit of the host", "[recycled]")
{
    for (bool late : {false, true}) {
        INFO(late);
        HostOptions options;
        if (!late) options.limits.heap_bytes = 2 * MIB;
        Wamr host(&options);
        Module module(hak_wasm_host_tenant(host), "small");
        if (!late) use(host, module, heap_limit(0));
        const size_t committed = info_of(hak_wasm_host_tenant(host)).heap_committed;
        for (int i = 0; i < 40; i++) {
            // At the same time, so that no context is another's.
            std::vector<Tenant> tenants;
            for (int n = 0; n < 4; n++) {
                tenants.push_back(new_tenant(host));
                fill(tenants.back().get(), module, 10);
            }
        }
        if (late) {
            CHECK(info_of(hak_wasm_host_tenant(host)).heap_committed > committed);
            const hak_wasm_limits limits = heap_limit(2 * MIB);
            hak_wasm_tenant_limit(hak_wasm_host_tenant(host), &limits);
        }
        CHECK(info_of(hak_wasm_host_tenant(host)).heap_committed <= committed);
        Tenant tenant = new_tenant(host);
        CHECK(fill(tenant.get(), module, 50) == 50);
    }
}
