// The WAMR adapter: where its memory comes from, labels, limits, sizes at the edge.
#include "wamr_test.h"

using namespace test;

TEST_CASE("all memory of a guest's life is the tenant's, by label, and goes with it", "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    {
        Module module(tenant.get(), "small");
        hak_wasm_tenant_info loaded = info_of(tenant.get());
        CHECK(loaded.label[HAK_WASM_LOAD].live_blocks > 10);
        CHECK(loaded.label[HAK_WASM_INSTANCE].live_blocks == 0);
        CHECK(loaded.label[HAK_WASM_STACK].live_blocks == 0);
        Guest guest(tenant.get(), module);
        INFO(guest.error);
        REQUIRE(guest.guest != nullptr);
        hak_wasm_tenant_info open = info_of(tenant.get());
        CHECK(open.label[HAK_WASM_LOAD].live_blocks == loaded.label[HAK_WASM_LOAD].live_blocks);
        CHECK(open.label[HAK_WASM_INSTANCE].live_blocks > 5);
        CHECK(open.label[HAK_WASM_STACK].live_bytes >= 32768);
        CHECK(open.label[HAK_WASM_LINEAR].live_bytes == 3 * WASM_PAGE);
        CHECK(open.label[HAK_WASM_LINEAR].live_blocks == 1);
        CHECK(open.instances == 1);
        guest.call("init");
        uint32_t first = guest.call("handle", 1, 5);
        CHECK(guest.ok());
        CHECK(guest.call("handle", 1, 5) != first);
        CHECK(guest.call("grow", 1, 2) == 3);
        CHECK(guest.call("pages") == 5);
        hak_wasm_tenant_info grown = info_of(tenant.get());
        CHECK(grown.label[HAK_WASM_LINEAR].live_bytes == 5 * WASM_PAGE);
        size_t sum = 0;
        for (int label = 0; label < HAK_WASM_LABELS; label++)
            if (label != HAK_WASM_LINEAR) sum += grown.label[label].live_bytes;
        CHECK(sum == grown.heap_live);
        CHECK(grown.label[HAK_WASM_OTHER].live_bytes == 0);
    }
    hak_wasm_tenant_info end = info_of(tenant.get());
    CHECK(end.heap_live == 0);
    CHECK(end.linear_bytes == 0);
    CHECK(end.instances == 0);
    CHECK(info_of(hak_wasm_host_tenant(host)).label[HAK_WASM_LINEAR].live_bytes == 0);
}

TEST_CASE("what the runtime keeps for itself is the host's, and none of it is left", "[wamr]")
{
    Host host;
    RuntimeInitArgs args = {};
    hak_wasm_wamr_args(host, &args);
    REQUIRE(wasm_runtime_full_init(&args));
    hak_wasm_tenant *root = hak_wasm_host_tenant(host);
    CHECK(info_of(root).heap_live > 0);
    CHECK(info_of(root).label[HAK_WASM_OTHER].live_bytes == info_of(root).heap_live);
    wasm_runtime_destroy();
    CHECK(info_of(root).heap_live == 0);
}

TEST_CASE("accesses past the end trap, also in a slot that was larger before", "[wamr]")
{
    for (hak_wasm_bounds bounds : {HAK_WASM_FLAT, HAK_WASM_GUARD}) {
        HostOptions options;
        options.bounds = bounds;
        Wamr host(&options);
        Tenant tenant = new_tenant(host);
        Module module(tenant.get(), "small");
        const char *before;
        {
            Guest guest(tenant.get(), module);
            before = guest.memory();
            CHECK(guest.call("load", 1, 3 * WASM_PAGE - 1) == 0);
            CHECK(guest.ok());
            guest.call("load", 1, 3 * WASM_PAGE);
            CHECK(std::string(guest.error) == "Exception: out of bounds memory access");
            guest.call("grow", 1, 10);
            guest.call("store", 2, 13 * WASM_PAGE - 1, 99);
            CHECK(guest.ok());
            guest.call("store", 2, 13 * WASM_PAGE, 99);
            CHECK_FALSE(guest.ok());
            std::memset(guest.memory(), 0xEE, 13 * WASM_PAGE);
        }
        Guest guest(tenant.get(), module);
        CHECK(guest.memory() == before);
        guest.call("store", 2, 3 * WASM_PAGE, 99);
        CHECK_FALSE(guest.ok());
        guest.call("load", 1, 0xFFFFFFFF);
        CHECK_FALSE(guest.ok());
        // nothing but the module's own data is there
        std::vector<char> now = guest.content(host);
        Guest fresh(tenant.get(), module);
        CHECK(fresh.memory() != guest.memory());
        CHECK(now == fresh.content(host));
        CHECK(std::count(now.begin(), now.end(), char(0xEE)) == 0);
        CHECK(guest.call("grow", 1, 10) == 3);
        CHECK(is_zero(guest.memory() + 3 * WASM_PAGE, 10 * WASM_PAGE));
    }
}

TEST_CASE("limits: memory.grow is -1, instances are refused, the neighbour does not notice", "[wamr]")
{
    Wamr host;
    TenantOptions options;
    options.limits.linear_bytes = MIB;
    options.limits.instances = 2;
    Tenant small = new_tenant(host, &options), other = new_tenant(host);
    Module module(small.get(), "small"), module2(other.get(), "small");
    {
        Guest guest(small.get(), module), neighbour(other.get(), module2);
        CHECK(guest.call("grow", 1, 13) == 3);
        CHECK(guest.call("grow", 1, 1) == UINT32_MAX);
        CHECK(guest.ok());
        CHECK(guest.call("pages") == 16);
        CHECK(neighbour.call("grow", 1, 100) == 3);
        CHECK(info_of(small.get()).linear_bytes == MIB);
        CHECK(info_of(small.get()).linear_refused == 1);
        CHECK(info_of(other.get()).linear_refused == 0);
        Guest second(small.get(), module); // an instance more is allowed, its memory is not
        CHECK(second.guest == nullptr);
        CHECK(std::string(second.error).size() > 0);
    }
    {
        Guest hog(small.get(), module);
        CHECK(hog.call("hog") > 512);
        CHECK(hog.call("hog") == 0);
        CHECK(hog.ok());
        CHECK(info_of(small.get()).linear_peak <= MIB);
    }
    {
        Guest one(small.get(), module), two(small.get(), module), three(small.get(), module);
        CHECK(two.guest != nullptr);
        CHECK(three.guest == nullptr);
        CHECK(std::string(three.error) == "the tenant is at a limit");
        CHECK(info_of(small.get()).instances_refused == 1);
        Guest neighbour(other.get(), module2);
        CHECK(neighbour.guest != nullptr);
    }
    CHECK(info_of(small.get()).instances == 0);
    CHECK(info_of(small.get()).instances_peak == 2);
}

TEST_CASE("a limit on the heap fails the load, and the tenant goes on", "[wamr]")
{
    Wamr host;
    TenantOptions options;
    options.limits.heap_bytes = 64 * KIB;
    Tenant tenant = new_tenant(host, &options);
    {
        Module module(tenant.get(), read_guest("small"));
        CHECK(module.module == nullptr);
    }
    CHECK(info_of(tenant.get()).heap_failures > 0);
    CHECK(info_of(tenant.get()).heap_live == 0);
    hak_wasm_limits limits = {};
    hak_wasm_tenant_limit(tenant.get(), &limits);
    Module module(tenant.get(), read_guest("small"));
    CHECK(module.module != nullptr);
}

TEST_CASE("memories of 0, 65,535 and 65,536 pages", "[wamr]")
{
    HostOptions options;
    options.slot_bytes = size_t(4) << 30;
    Wamr host(&options);
    Tenant tenant = new_tenant(host);
    {
        Module module(tenant.get(), "pages_0");
        Guest guest(tenant.get(), module);
        REQUIRE(guest.guest != nullptr);
        guest.call("store", 1, 0);
        CHECK_FALSE(guest.ok());
        CHECK(guest.call("grow", 1, 1) == 0);
        guest.call("store", 1, WASM_PAGE - 1);
        CHECK(guest.ok());
        CHECK(guest.call("grow", 1, 65535) == UINT32_MAX);
        CHECK(guest.call("grow", 1, 65534) == 1);
        guest.call("store", 1, 0xFFFEFFFF);
        CHECK(guest.ok());
        guest.call("store", 1, 0xFFFF0000);
        CHECK_FALSE(guest.ok());
        CHECK(guest.call("grow", 1, 1) == UINT32_MAX);
    }
    {
        Module module(tenant.get(), "pages_65535");
        Guest guest(tenant.get(), module);
        INFO(guest.error);
        REQUIRE(guest.guest != nullptr);
        CHECK(guest.call("grow", 1, 1) == UINT32_MAX);
        guest.call("store", 1, 0xFFFEFFFF);
        CHECK(guest.ok());
    }
    Module module(tenant.get(), "pages_65536");
    Guest guest(tenant.get(), module);
    CHECK(guest.guest == nullptr);
    CHECK(std::string(guest.error).find("the module wants 4294967296 bytes") == 0);
    CHECK(info_of(tenant.get()).linear_bytes == 0);
}

TEST_CASE("a tenant closed in bulk takes modules, instances and memories along", "[wamr]")
{
    Wamr host;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    Bytes bytes = read_guest("small");
    char error[128];
    wasm_module_t module =
        hak_wasm_wamr_load(tenant, bytes.data(), uint32_t(bytes.size()), error, sizeof error);
    REQUIRE(module != nullptr);
    for (int i = 0; i < 3; i++)
        REQUIRE(hak_wasm_wamr_open(tenant, module, 32768, error, sizeof error) != nullptr);
    hak_wasm_tenant *root = hak_wasm_host_tenant(host);
    CHECK(info_of(root).instances == 3);
    size_t committed = info_of(root).heap_committed;
    hak_wasm_tenant_close(tenant, HAK_WASM_BULK);
    CHECK(info_of(root).instances == 0);
    CHECK(info_of(root).linear_bytes == 0);
    CHECK(host.info().live == 0);
    CHECK(info_of(root).heap_committed < committed - 64 * KIB);
}

TEST_CASE("wrong arguments are refused with a text, if there is room for one", "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    char error[128] = "";
    uint8_t nonsense[] = {1, 2, 3};
    CHECK(hak_wasm_wamr_load(tenant.get(), nullptr, 100, error, sizeof error) == nullptr);
    CHECK(std::string(error) == "there is no module");
    CHECK(hak_wasm_wamr_load(tenant.get(), nonsense, 0, error, sizeof error) == nullptr);
    CHECK(hak_wasm_wamr_load(tenant.get(), nonsense, sizeof nonsense, nullptr, 0) == nullptr);
    CHECK(hak_wasm_wamr_load(tenant.get(), nonsense, sizeof nonsense, nullptr, 100) == nullptr);
    CHECK(hak_wasm_wamr_open(tenant.get(), nullptr, 32768, error, sizeof error) == nullptr);
    CHECK(hak_wasm_wamr_open(tenant.get(), nullptr, 32768, nullptr, 100) == nullptr);

    Module module(tenant.get(), "small");
    CHECK(hak_wasm_wamr_open(tenant.get(), module, UINT32_MAX, error, sizeof error) == nullptr);
    hak_wasm_limits none = {0, false, WASM_PAGE, 1};
    hak_wasm_tenant_limit(tenant.get(), &none);
    CHECK(hak_wasm_wamr_open(tenant.get(), module, 32768, nullptr, 100) == nullptr);
    none = {};
    hak_wasm_tenant_limit(tenant.get(), &none);
    Guest guest(tenant.get(), module);
    REQUIRE(guest.guest != nullptr);
    CHECK_FALSE(hak_wasm_wamr_call(guest, nullptr, 0, nullptr));
    CHECK_FALSE(hak_wasm_wamr_call(guest, "pages", 0, nullptr)); // it has a result
    CHECK_FALSE(hak_wasm_wamr_call(guest, "handle", 1, nullptr));
    CHECK(hak_wasm_wamr_exception(guest) != nullptr);
    uint32_t argv[4] = {};
    CHECK_FALSE(hak_wasm_wamr_call(guest, "handle", 0, argv));
    CHECK(hak_wasm_wamr_call(guest, "init", 0, nullptr));
    CHECK(hak_wasm_wamr_reset(guest, nullptr) == -1);
    hak_wasm_wamr_snapshot *snapshot = hak_wasm_wamr_take(guest, nullptr);
    CHECK(snapshot != nullptr);
    CHECK(hak_wasm_wamr_reset(guest, snapshot) == 0);
    hak_wasm_wamr_drop(snapshot);
    hak_wasm_wamr_drop(nullptr);
    hak_wasm_wamr_close(nullptr);
}

TEST_CASE("a tenant gets no guest where WAMR has its memory from elsewhere", "[wamr]")
{
    Host own;
    Tenant tenant = new_tenant(own);
    char error[128] = "";
    Bytes bytes = read_guest("small");
    {
        RuntimeInitArgs args = {}; // hak_wasm_wamr_args is forgotten
        args.mem_alloc_type = Alloc_With_System_Allocator;
        REQUIRE(wasm_runtime_full_init(&args));
        CHECK(hak_wasm_wamr_load(tenant.get(), bytes.data(), uint32_t(bytes.size()), error, sizeof error) ==
              nullptr);
        CHECK(std::string(error).find("hak_wasm_wamr_args") != std::string::npos);
        wasm_runtime_destroy();
    }
    Wamr other;
    bytes = read_guest("small");
    CHECK(hak_wasm_wamr_load(tenant.get(), bytes.data(), uint32_t(bytes.size()), nullptr, 0) == nullptr);
    Tenant right = new_tenant(other);
    Module module(right.get(), "small");
    CHECK(hak_wasm_wamr_open(tenant.get(), module, 32768, error, sizeof error) == nullptr);
    CHECK(info_of(tenant.get()).instances == 0);
}

TEST_CASE("a guest whose function has other arguments or results than the host thinks is not called",
          "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    // (func (export "f") (param i32 x arguments) (result i64 x results)) (i64.const -1) x results
    auto guest_of = [](uint8_t arguments, uint8_t results) {
        Bytes type = {1, 0x60, arguments}, code = {0};
        type.insert(type.end(), arguments, 0x7f);
        type.push_back(results);
        type.insert(type.end(), results, 0x7e);
        for (int i = 0; i < results; i++)
            code.insert(code.end(), {0x42, 0x7f});
        code.push_back(0x0b);
        Bytes module = {0, 'a', 's', 'm', 1, 0, 0, 0, 1, uint8_t(type.size())};
        module.insert(module.end(), type.begin(), type.end());
        module.insert(module.end(), {3, 2, 1, 0, 7, 5, 1, 1, 'f', 0, 0, 10, uint8_t(code.size() + 2), 1,
                                     uint8_t(code.size())});
        module.insert(module.end(), code.begin(), code.end());
        return module;
    };
    uint32_t argv[40];
    auto calls = [&](uint8_t arguments, uint8_t results, uint32_t argc) {
        Module module(tenant.get(), guest_of(arguments, results));
        INFO(module.error);
        REQUIRE(module.module != nullptr);
        Guest guest(tenant.get(), module);
        REQUIRE(guest.guest != nullptr);
        std::fill(std::begin(argv), std::end(argv), 7);
        return hak_wasm_wamr_call(guest, "f", argc, argv);
    };
    CHECK_FALSE(calls(0, 1, 0)); // two cells, and there is one
    CHECK(std::count(std::begin(argv), std::end(argv), 7u) == 40);
    CHECK(calls(0, 1, 2));
    CHECK(argv[1] == UINT32_MAX);
    CHECK(argv[2] == 7);
    CHECK_FALSE(calls(0, 2, 2));
    CHECK_FALSE(calls(1, 10, 1));
    CHECK(std::count(std::begin(argv), std::end(argv), 7u) == 40);
    CHECK(calls(1, 10, 20));
    CHECK(argv[19] == UINT32_MAX);
    CHECK_FALSE(calls(30, 0, 1));
    CHECK(calls(2, 1, 2));
    CHECK(calls(1, 0, 2));
}

TEST_CASE("a limit on steps is refused by a WAMR that counts no instructions", "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "small");
    Guest before(tenant.get(), module);
    REQUIRE(before.guest != nullptr);
    hak_wasm_tenant_steps(tenant.get(), 1000000);
    Guest guest(tenant.get(), module);
    CHECK(guest.guest == nullptr);
    CHECK(std::string(guest.error).find("WAMR_BUILD_INSTRUCTION_METERING") != std::string::npos);
    before.call("nothing");
    CHECK(std::string(before.error).find("the limit on steps cannot hold") != std::string::npos);
    hak_wasm_tenant_steps(tenant.get(), 0);
    before.call("nothing");
    CHECK(before.ok());
}
