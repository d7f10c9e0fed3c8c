// Profiles of tenants: which function of the guest, or of the host, the memory is for, and whose it is.
#include "names_probe.h"
#include "wamr_profiled.h"

#include <cerrno>

using namespace test;

namespace
{

hak_profile_options exact()
{
    hak_profile_options o = HAK_PROFILE_OPTIONS_INIT;
    o.mode = HAK_PROFILE_EXACT;
    return o;
}

} // namespace

TEST_CASE("growths of a linear memory are told by function of the guest", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    REQUIRE(hak_wasm_profile_start(tenant.get(), nullptr) == 0);
    {
        Module module(tenant.get(), "profile");
        Guest guest(tenant.get(), module);
        REQUIRE(guest.guest != nullptr);
        CHECK(guest.call("outer", 1, 3) == 2);
        CHECK(guest.call("other", 1, 5) == 5);
        CHECK(guest.call("outer", 1, 1) == 10);
        CHECK(guest.call("deep", 1, 4) == 11);
        const auto all = stacks_of(tenant.get());
        CHECK(all.at("outer [guest];func[2] [guest];[linear]") == 4 * WASM_PAGE);
        CHECK(all.at("other [guest];func[2] [guest];[linear]") == 5 * WASM_PAGE);
        CHECK(all.at("deep [guest];deep [guest];deep [guest];deep [guest];deep [guest];[linear]") ==
              WASM_PAGE);
        CHECK(sum_of(all, "[linear]") == info_of(tenant.get()).label[HAK_WASM_LINEAR].live_bytes);
    }
    CHECK(sum_of(stacks_of(tenant.get()), "[linear]") == 0);
    CHECK(sum_of(stacks_of(tenant.get(), "peak"), "[linear]") == 12 * WASM_PAGE);
}

TEST_CASE("a report tells what of a tenant's memories is resident, without a profile too", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "profile");
    Guest guest(tenant.get(), module);
    REQUIRE(guest.guest != nullptr);
    CHECK(guest.call("outer", 1, 3) == 2);
    const hak_wasm_tenant_info info = info_of(tenant.get());
    CHECK(info.linear_proportional == info.linear_resident);
    const std::string path = report_of(tenant.get());
    const std::string series = output_of(std::string(HAKMEM_COMMAND) + " prometheus " + path);
    INFO(series);
    const auto has = [&](const char *family, size_t bytes) {
        const size_t at = series.find(std::string("\n") + family + "{");
        REQUIRE(at != std::string::npos);
        const std::string line = series.substr(at + 1, series.find('\n', at + 1) - at - 1),
                          end = "context=\"\"} " + std::to_string(bytes);
        return line.size() > end.size() && line.compare(line.size() - end.size(), end.size(), end) == 0;
    };
    CHECK(has("hakmem_linear_bytes", info.label[HAK_WASM_LINEAR].live_bytes));
    CHECK(has("hakmem_linear_resident_bytes", info.linear_resident));
    CHECK(has("hakmem_linear_proportional_bytes", info.linear_proportional));
    CHECK(output_of(std::string(HAKMEM_COMMAND) + " report " + path).find("\n  linear memories: 1, ") !=
          std::string::npos);
    std::remove(path.c_str());
}

TEST_CASE("a refused growth and a reset leave what is there in the profile", "[wamr]")
{
    Profiled host;
    TenantOptions options;
    options.limits.linear_bytes = 6 * WASM_PAGE;
    Tenant tenant = new_tenant(host, &options);
    REQUIRE(hak_wasm_profile_start(tenant.get(), nullptr) == 0);
    Module module(tenant.get(), "profile");
    Guest guest(tenant.get(), module);
    CHECK(guest.call("outer", 1, 1) == 2);
    CHECK(guest.call("other", 1, 4) == UINT32_MAX);
    CHECK(sum_of(stacks_of(tenant.get()), "other") == 0);
    const char *why = nullptr;
    hak_wasm_wamr_snapshot *snapshot = hak_wasm_wamr_take(guest, &why);
    REQUIRE(snapshot != nullptr);
    for (int i = 0; i < 20; i++) {
        CHECK(guest.call("other", 1, 2) == 3);
        CHECK(sum_of(stacks_of(tenant.get()), "other") == 2 * WASM_PAGE);
        CHECK(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(sum_of(stacks_of(tenant.get()), "other") == 0);
        CHECK(sum_of(stacks_of(tenant.get()), "outer") == WASM_PAGE);
    }
    CHECK(sum_of(stacks_of(tenant.get(), "alloc"), "other") == 40 * WASM_PAGE);
    hak_wasm_wamr_drop(snapshot);
}

TEST_CASE("blocks of the host are told by import and function of the guest, or by the host's stack", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    const hak_profile_options options = exact();
    REQUIRE(hak_wasm_profile_start(tenant.get(), &options) == 0);
    Module module(tenant.get(), "profile");
    Guest guest(tenant.get(), module);
    const uint32_t first = guest.call("borrow", 1, 4096);
    guest.call("borrow", 1, 8192);
    REQUIRE(guest.ok());
    auto all = stacks_of(tenant.get());
    CHECK(all.at("borrow [guest];take [env];[wasi]") == 3 * 4096);
    CHECK(sum_of(all, "wasm_runtime_load") == info_of(tenant.get()).label[HAK_WASM_LOAD].live_bytes);
    CHECK(sum_of(all, "hak_wasm_wamr_open") > 0);
    size_t heap = 0;
    for (const auto &[stack, bytes] : all)
        if (stack.find("[linear]") == std::string::npos) heap += bytes;
    CHECK(heap == info_of(tenant.get()).heap_live);
    for (const auto &[stack, bytes] : all) { // none of the allocator's own frames is the innermost
        const size_t label = stack.rfind(";["), frame = stack.rfind(';', label - 1);
        INFO(stack.substr(frame));
        CHECK(stack.compare(frame, 4, ";hk_") != 0);
        CHECK(stack.compare(frame, 11, ";hak_alloc ") != 0);
        CHECK(stack.compare(frame, 12, ";take_native") != 0);
    }
    guest.call("give_back", 1, first);
    all = stacks_of(tenant.get());
    CHECK(all.at("borrow [guest];take [env];[wasi]") == 2 * 4096);
    hak_wasm_free(host, lent[1]);
}

TEST_CASE("no lock of a tenant is held while names are looked up", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    const hak_profile_options options = exact();
    REQUIRE(hak_wasm_profile_start(tenant.get(), &options) == 0);
    Module module(tenant.get(), "profile");
    probe_calls = probe_held = 0;
    probe_tenant = tenant.get();
    const auto all = stacks_of(tenant.get());
    probe_tenant = nullptr;
    CHECK(sum_of(all, "wasm_runtime_load") == info_of(tenant.get()).label[HAK_WASM_LOAD].live_bytes);
    CHECK(probe_calls > 0);
    CHECK(probe_held == 0);
}

TEST_CASE("a report is of the context that the tenant has when it is locked", "[wamr]")
{
    Profiled host;
    hak_wasm_tenant *first = hak_wasm_tenant_new(host, nullptr);
    REQUIRE(first != nullptr);
    hak_wasm_tenant_close(first, HAK_WASM_RETIRE);
    Tenant second = new_tenant(host);
    REQUIRE(second.get() == first); // its context is replaced when it gets a limit
    probe_limits = probe_stale = 0;
    probe_tenant = probe_limited = second.get();
    CHECK(stacks_of(second.get()).empty());
    probe_tenant = nullptr;
    CHECK(probe_limits == 1);
    CHECK(probe_stale == 0);
}

TEST_CASE("nothing of a tenant's profile is in another tenant's", "[wamr]")
{
    Profiled host;
    TenantOptions options;
    options.name = "first";
    Tenant first = new_tenant(host, &options);
    options.name = "second";
    Tenant second = new_tenant(host, &options);
    const hak_profile_options all_blocks = exact();
    REQUIRE(hak_wasm_profile_start(first.get(), &all_blocks) == 0);
    REQUIRE(hak_wasm_profile_start(second.get(), &all_blocks) == 0);
    Module mine(first.get(), "profile"), theirs(second.get(), "small");
    Guest guest(first.get(), mine), other(second.get(), theirs);
    guest.call("outer", 1, 3);
    guest.call("borrow", 1, 5000);
    other.call("init");
    other.call("grow", 1, 2);
    for (const auto &[stack, bytes] : stacks_of(second.get())) {
        INFO(stack);
        CHECK((stack.find("outer") == std::string::npos && stack.find("borrow") == std::string::npos));
    }
    CHECK(sum_of(stacks_of(second.get()), "grow [guest]") == 2 * WASM_PAGE);
    CHECK(sum_of(stacks_of(first.get()), "grow [guest]") == 0);
    const std::string path = report_of(second.get()), text = output_of("cat " + path);
    std::remove(path.c_str());
    for (const char *name : {"first", "outer", "borrow", "take", "env"}) {
        INFO(name << text.substr(std::min(text.size(), text.find("\"" + std::string(name))), 80));
        CHECK(text.find("\"" + std::string(name)) == std::string::npos);
    }
    CHECK(text.find("\"second linear\"") != std::string::npos);
    hak_wasm_free(host, lent[0]);
}

TEST_CASE("a guest that runs makes no frames for a tenant that the host enters meanwhile", "[wamr]")
{
    Profiled host;
    Tenant runs = new_tenant(host), entered = new_tenant(host);
    const hak_profile_options all_blocks = exact();
    REQUIRE(hak_wasm_profile_start(entered.get(), &all_blocks) == 0);
    const auto stack = [](void *, hak_wasm_frame *frames, size_t) -> size_t {
        frames[0] = {"secret", nullptr, 0};
        return 1;
    };
    const hak_wasm_guest before = hak_wasm_guest_run({runs.get(), stack, nullptr});
    const hak_wasm_scope scope = hak_wasm_enter(entered.get(), HAK_WASM_NATIVE);
    void *p = hak_wasm_alloc(host, 5000), *memory = hak_wasm_memory_new(host, WASM_PAGE);
    CHECK(sum_of(stacks_of(entered.get()), "secret") == 0);
    hak_wasm_guest_run({entered.get(), stack, nullptr});
    void *q = hak_wasm_alloc(host, 5000);
    CHECK(sum_of(stacks_of(entered.get()), "secret") >= 5000);
    hak_wasm_guest_run(before);
    hak_wasm_leave(scope);
    hak_wasm_free(host, p);
    hak_wasm_free(host, q);
    hak_wasm_memory_free(host, memory);
}

TEST_CASE("the next tenant sees nothing of one that is closed, and starts with no profile", "[wamr]")
{
    Profiled host;
    for (int i = 0; i < 10; i++) {
        hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
        REQUIRE(tenant != nullptr);
        CHECK(hak_wasm_profile_stop(tenant) == -1);
        CHECK(stacks_of(tenant).empty());
        if (i % 2 == 0) {
            REQUIRE(hak_wasm_profile_start(tenant, nullptr) == 0);
            const hak_wasm_scope scope = hak_wasm_enter(tenant, HAK_WASM_NATIVE);
            void *memory = hak_wasm_memory_new(host, WASM_PAGE);
            hak_wasm_leave(scope);
            CHECK(sum_of(stacks_of(tenant), "[linear]") == WASM_PAGE);
            if (i % 4 == 0) hak_wasm_memory_free(host, memory); // else it goes with the tenant, or retires it
        }
        hak_wasm_tenant_close(tenant, i % 3 == 0 ? HAK_WASM_BULK : HAK_WASM_RETIRE);
    }
}

TEST_CASE("a profile can be stopped and begun anew, and broken options are refused", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.depth = 33;
    CHECK(hak_wasm_profile_start(tenant.get(), &options) == -1);
    options.depth = 0;
    options.mean = 1;
    CHECK(hak_wasm_profile_start(tenant.get(), &options) == -1);
    options.mean = 0;
    options.depth = 1;
    CHECK(hak_wasm_profile_start(tenant.get(), &options) == 0);
    CHECK(hak_wasm_profile_start(tenant.get(), &options) == -1);
    Module module(tenant.get(), "profile");
    Guest guest(tenant.get(), module);
    guest.call("outer", 1, 1);
    CHECK(stacks_of(tenant.get()).at("func[2] [guest];[linear]") == WASM_PAGE); // one frame
    CHECK(hak_wasm_profile_stop(tenant.get()) == 0);
    guest.call("other", 1, 1);
    CHECK(sum_of(stacks_of(tenant.get()), "[linear]") == 3 * WASM_PAGE); // two from before, one by outer
    CHECK(hak_wasm_profile_start(tenant.get(), nullptr) == 0);
    guest.call("other", 1, 1);
    const auto all = stacks_of(tenant.get());
    CHECK(all.at("other [guest];func[2] [guest];[linear]") == WASM_PAGE);
    CHECK(sum_of(all, "[linear]") == WASM_PAGE);
    CHECK(hak_wasm_profile_stop(tenant.get()) == 0);
    CHECK(hak_wasm_profile_stop(tenant.get()) == -1);
}

TEST_CASE("a report that cannot be written says why and harms nothing", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    REQUIRE(hak_wasm_profile_start(tenant.get(), nullptr) == 0);
    FILE *full = fopen("/dev/full", "w");
    REQUIRE(full != nullptr);
    CHECK(hak_wasm_report_json(tenant.get(), full) == ENOSPC);
    fclose(full);
    CHECK(stacks_of(tenant.get()).empty());
}
