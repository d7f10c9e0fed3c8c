// Limits on steps under a WAMR that counts instructions, and on what its loader takes.
#include "wamr_test.h"

using namespace test;

TEST_CASE("a guest ends when its instructions are used up, and each call has all of them", "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    hak_wasm_tenant_steps(tenant.get(), 100000);
    Module module(tenant.get(), "endless");
    Guest guest(tenant.get(), module);
    INFO(guest.error);
    REQUIRE(guest.guest != nullptr);
    const char *why;
    hak_wasm_wamr_snapshot *fresh = hak_wasm_wamr_take(guest, &why);
    REQUIRE(fresh != nullptr);
    for (int i = 0; i < 3; i++) {
        for (const char *function : {"spin", "fill"}) {
            guest.call(function);
            CHECK(std::string(guest.error).find("instruction limit exceeded") != std::string::npos);
        }
        guest.call("twice", 1, 60);
        CHECK(std::string(guest.error).find("instruction limit exceeded") != std::string::npos);
        CHECK(hak_wasm_wamr_reset(guest, fresh) == 0);
        CHECK(guest.call("count", 1, 1000) == 1000);
        CHECK(guest.ok());
    }
    // The limit of the moment, and none.
    hak_wasm_tenant_steps(tenant.get(), 100);
    guest.call("count", 1, 1000);
    CHECK_FALSE(guest.ok());
    hak_wasm_tenant_steps(tenant.get(), 0);
    CHECK(guest.call("count", 1, 1000000) == 1000000);
    hak_wasm_tenant_steps(tenant.get(), UINT64_MAX);
    CHECK(guest.call("count", 1, 1000) == 1000);
    hak_wasm_wamr_drop(fresh);
}

TEST_CASE("a start function without end is ended, and the next tenant is served", "[wamr]")
{
    Wamr host;
    Tenant evil = new_tenant(host), good = new_tenant(host);
    hak_wasm_tenant_steps(hak_wasm_host_tenant(host), 1000000);
    Module starts(evil.get(), "endless_start"), module(good.get(), "endless");
    for (int i = 0; i < 3; i++) {
        Guest guest(evil.get(), starts);
        CHECK(guest.guest == nullptr);
        CHECK(std::string(guest.error).find("instruction limit exceeded") != std::string::npos);
        CHECK(info_of(evil.get()).instances == 0);
        Guest next(good.get(), module);
        CHECK(next.call("count", 1, 1000) == 1000);
    }
}

TEST_CASE("machine code, which counts nothing, is refused under a limit on steps", "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), read_file(std::string(GUESTS) + "bounds_none.aot"));
    REQUIRE(module.module != nullptr);
    Guest before(tenant.get(), module);
    REQUIRE(before.guest != nullptr);
    hak_wasm_tenant_steps(tenant.get(), 1000000);
    Guest guest(tenant.get(), module);
    CHECK(guest.guest == nullptr);
    CHECK(std::string(guest.error) == "machine code counts no steps, which hak_wasm_tenant_steps limits");
    before.call("peek", 1, 0);
    CHECK(std::string(before.error).find("the limit on steps cannot hold") != std::string::npos);
}

TEST_CASE("the loader takes no module over the tenant's limits", "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    hak_wasm_module_limits limits = HAK_WASM_MODULE_LIMITS_INIT;
    limits.ranges = HAK_NONE;
    REQUIRE(hak_wasm_tenant_modules(tenant.get(), &limits) == 0);
    Module refused(tenant.get(), read_guest("endless"));
    CHECK(refused.module == nullptr);
    CHECK(std::string(refused.error) ==
          "hakmem: the module has 1 instructions on ranges, and hak_wasm_module_limits.ranges of \"\" is 0");
    Module taken(tenant.get(), read_guest("small"));
    CHECK(taken.module != nullptr);
}

TEST_CASE("an image of a guest is its tenant's", "[wamr]")
{
    Wamr host;
    TenantOptions options;
    options.limits.linear_bytes = WASM_PAGE + 8192;
    Tenant tenant = new_tenant(host, &options);
    Module module(tenant.get(), "endless");
    auto guest = std::make_unique<Guest>(tenant.get(), module);
    REQUIRE(guest->guest != nullptr);
    const char *why;
    hak_wasm_wamr_snapshot *one = hak_wasm_wamr_take(*guest, &why);
    REQUIRE(one != nullptr);
    CHECK(info_of(tenant.get()).image_bytes == 4096);
    std::memset(guest->memory(), 1, 8192);
    CHECK(hak_wasm_wamr_take(*guest, &why) == nullptr);
    CHECK(std::string(why).find("limit") != std::string::npos);
    hak_wasm_wamr_drop(one);
    guest.reset(); // whose memory has the image
    CHECK(info_of(tenant.get()).linear_bytes == 0);
}
