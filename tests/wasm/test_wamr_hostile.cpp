// Hostile guests and modules under WAMR: nothing over a limit, nothing left, and the next tenant is served.
#include "bombs.h"
#include "wamr_test.h"

using namespace test;

namespace
{

constexpr size_t LIMIT = 4 * MIB;

Tenant limited(hak_wasm_host *host, const char *name)
{
    TenantOptions options;
    options.name = name;
    options.children = true; // a quota, whose count includes every page of the context
    options.limits.linear_bytes = LIMIT;
    options.limits.heap_bytes = LIMIT;
    options.limits.instances = 20;
    return new_tenant(host, &options);
}

void is_within(hak_wasm_tenant *tenant)
{
    const hak_wasm_tenant_info info = info_of(tenant);
    CHECK(info.linear_peak <= LIMIT);
    CHECK(info.heap_committed <= LIMIT);
    CHECK(info.instances_peak <= 20);
}

void serve(hak_wasm_tenant *tenant)
{
    Module module(tenant, "small");
    Guest guest(tenant, module);
    INFO(guest.error);
    REQUIRE(guest.guest != nullptr);
    CHECK(guest.call("grow", 1, 2) == 3);
    CHECK(guest.call("pages") == 5);
    CHECK(guest.ok());
}

} // namespace

TEST_CASE("whatever a guest does, it stays within its limits, and others are served", "[wamr]")
{
    Wamr host;
    Tenant attacker = limited(host, "attacker"), next = limited(host, "next");
    hak_wasm_tenant_steps(attacker.get(), 3000000);
    const struct {
        const char *name, *error; // NULL: it ends
        uint32_t arguments;
    } acts[] = {{"pages", nullptr, 0},
                {"elements", nullptr, 0},
                {"deep", "stack overflow", 0},
                {"deep_pages", "stack overflow", 0},
                {"deep_elements", "stack overflow", 0},
                {"deep_locals", "stack overflow", 8},
                {"spin", "instruction limit exceeded", 0},
                {"beyond", "out of bounds", 0},
                {"segment", "out of bounds", 0},
                {"segment_source", "out of bounds", 0},
                {"segment_elements", "out of bounds", 0},
                {"wrong", "", 0}};
    {
        Module module(attacker.get(), "hostile");
        for (const auto &act : acts) {
            INFO(act.name);
            Guest guest(attacker.get(), module);
            REQUIRE(guest.guest != nullptr);
            const char *why;
            hak_wasm_wamr_snapshot *fresh = hak_wasm_wamr_take(guest, &why);
            REQUIRE(fresh != nullptr);
            for (int i = 0; i < 3; i++) {
                uint32_t argv[8] = {1, 2, 3, 4, 5, 6, 7, 8};
                const bool ended = hak_wasm_wamr_call(guest, act.name, act.arguments, argv);
                CHECK(ended == (act.error == nullptr));
                if (!ended) {
                    const std::string error = hak_wasm_wamr_exception(guest);
                    INFO(error);
                    CHECK(error.find(act.error ? act.error : "none") != std::string::npos);
                }
                is_within(attacker.get());
                if (std::strcmp(act.name, "pages") == 0) CHECK(argv[0] == LIMIT / WASM_PAGE - 1);
                serve(next.get());
                CHECK(hak_wasm_wamr_reset(guest, fresh) == 0);
                CHECK(guest.call("answer") == 42);
            }
            hak_wasm_wamr_drop(fresh);
        }
    }
    CHECK(info_of(attacker.get()).heap_live == 0);
    CHECK(info_of(attacker.get()).linear_bytes == 0);
}

TEST_CASE("as many instances as a tenant can have are within its limits", "[wamr]")
{
    Wamr host;
    Tenant attacker = limited(host, "attacker"), next = limited(host, "next");
    {
        Module module(attacker.get(), "hostile");
        std::vector<std::unique_ptr<Guest>> guests;
        do {
            guests.push_back(std::make_unique<Guest>(attacker.get(), module));
            if (guests.back()->guest) guests.back()->call("elements");
        } while (guests.back()->guest && guests.size() < 100);
        CHECK(guests.back()->guest == nullptr);
        CHECK(guests.size() > 2);
        is_within(attacker.get());
        for (auto &guest : guests)
            if (guest->guest) guest->call("pages");
        is_within(attacker.get());
        serve(next.get());
    }
    CHECK(info_of(attacker.get()).heap_live == 0);
    CHECK(info_of(attacker.get()).linear_bytes == 0);
}

TEST_CASE("no module takes more than its tenant may have while WAMR reads it", "[wamr]")
{
    Wamr host;
    Tenant next = limited(host, "next");
    size_t taken = 0, refused = 0;
    for (const Bomb &bomb : bombs(LIMIT / WASM_PAGE)) {
        INFO(bomb.name);
        Tenant attacker = limited(host, "attacker");
        hak_wasm_tenant_steps(attacker.get(), 1000000);
        {
            const Bytes bytes(bomb.binary.begin(), bomb.binary.end());
            Module module(attacker.get(), bytes);
            is_within(attacker.get());
            if (module.module) {
                taken++;
                Guest guest(attacker.get(), module);
                is_within(attacker.get());
            } else {
                refused++;
                CHECK(module.error[0] != 0);
            }
            serve(next.get());
        }
        CHECK(info_of(attacker.get()).heap_live == 0);
        CHECK(info_of(attacker.get()).linear_bytes == 0);
        CHECK(info_of(attacker.get()).instances == 0);
    }
    // Most are what a module may be; it is the limits that keep them out.
    CHECK(taken >= 3);
    CHECK(refused >= 10);
}

TEST_CASE("the limits that the guide names keep them out before WAMR reads them", "[wamr]")
{
    Wamr host;
    Tenant attacker = limited(host, "attacker");
    const hak_wasm_module_limits limits = guide_limits();
    REQUIRE(hak_wasm_tenant_modules(attacker.get(), &limits) == 0);
    for (const Bomb &bomb : bombs(LIMIT / WASM_PAGE)) {
        INFO(bomb.name);
        const Bytes bytes(bomb.binary.begin(), bomb.binary.end());
        Module module(attacker.get(), bytes);
        if (!is_for_the_instance(bomb)) CHECK(module.module == nullptr);
        is_within(attacker.get());
    }
    CHECK(info_of(attacker.get()).heap_live == 0);
}
