// Modules that WAMR's compiler made ahead of time (guests/compiler): frames for profiles, and resets.
#include "wamr_profiled.h"

#include <dirent.h>
#include <unistd.h>

using namespace test;

namespace
{

std::string only_file(const char *folder)
{
    std::string path;
    DIR *dir = opendir(folder);
    REQUIRE(dir != nullptr);
    while (const dirent *entry = readdir(dir))
        if (entry->d_name[0] != '.') path = std::string(folder) + "/" + entry->d_name;
    closedir(dir);
    return path;
}

Bytes read_compiled(const std::string &name)
{
    return read_file(std::string(GUESTS) + name + ".aot");
}

} // namespace

TEST_CASE("functions of compiled guests are told where they have frames", "[wamr]")
{
    // Frames with all values, and small ones.
    const std::string frames = GENERATE("whole", "small");
    INFO(frames);
    Profiled host;
    Tenant tenant = new_tenant(host);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    REQUIRE(hak_wasm_profile_start(tenant.get(), &options) == 0);
    Module module(tenant.get(), read_compiled("profile_" + frames));
    INFO(module.error);
    REQUIRE(module.module != nullptr);
    const size_t code = info_of(tenant.get()).linear_bytes;
    Guest guest(tenant.get(), module);
    INFO(guest.error);
    REQUIRE(guest.guest != nullptr);
    CHECK(guest.call("outer", 1, 3) == 2);
    CHECK(guest.call("other", 1, 5) == 5);
    CHECK(guest.call("deep", 1, 4) == 10);
    guest.call("borrow", 1, 4096);
    REQUIRE(guest.ok());
    const auto all = stacks_of(tenant.get());
    CHECK(all.at("outer [guest];func[2] [guest];[linear]") == 3 * WASM_PAGE);
    CHECK(all.at("other [guest];func[2] [guest];[linear]") == 5 * WASM_PAGE);
    CHECK(all.at("deep [guest];deep [guest];deep [guest];deep [guest];deep [guest];[linear]") == WASM_PAGE);
    CHECK(all.at("borrow [guest];take [env];[wasi]") == 4096);
    CHECK(sum_of(all, "[linear]") + code == info_of(tenant.get()).label[HAK_WASM_LINEAR].live_bytes);
    hak_wasm_free(host, lent[0]);
}

TEST_CASE("compiled guests without frames are told by the function that the host called", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    REQUIRE(hak_wasm_profile_start(tenant.get(), &options) == 0);
    Module module(tenant.get(), read_compiled("profile_none"));
    REQUIRE(module.module != nullptr);
    const size_t code = info_of(tenant.get()).linear_bytes;
    Guest guest(tenant.get(), module);
    REQUIRE(guest.guest != nullptr);
    CHECK(guest.call("outer", 1, 3) == 2);
    guest.call("borrow", 1, 4096);
    REQUIRE(guest.ok());
    const auto all = stacks_of(tenant.get());
    CHECK(all.at("outer [guest];[linear]") == 3 * WASM_PAGE);
    CHECK(sum_of(all, "[linear]") + code == info_of(tenant.get()).label[HAK_WASM_LINEAR].live_bytes);
    CHECK(all.at("borrow [guest];[wasi]") == 4096);
    hak_wasm_free(host, lent[0]);
}

TEST_CASE("compiled and interpreted guests of one host have their own frames", "[wamr]")
{
    Profiled host;
    Tenant tenant = new_tenant(host);
    REQUIRE(hak_wasm_profile_start(tenant.get(), nullptr) == 0);
    Module compiled(tenant.get(), read_compiled("profile_whole")), interpreted(tenant.get(), "profile");
    REQUIRE(compiled.module != nullptr);
    Guest one(tenant.get(), compiled), other(tenant.get(), interpreted);
    REQUIRE((one.guest != nullptr && other.guest != nullptr));
    CHECK(one.call("outer", 1, 3) == 2);
    CHECK(other.call("other", 1, 2) == 2);
    const auto all = stacks_of(tenant.get());
    CHECK(all.at("outer [guest];func[2] [guest];[linear]") == 3 * WASM_PAGE);
    CHECK(all.at("other [guest];func[2] [guest];[linear]") == 2 * WASM_PAGE);
}

TEST_CASE("a compiled guest is reset to what it was, its memory's bounds included", "[wamr]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), read_compiled("bounds_none"));
    REQUIRE(module.module != nullptr);
    Guest guest(tenant.get(), module);
    INFO(guest.error);
    REQUIRE(guest.guest != nullptr);
    guest.call("poke", 2, 8, 77);
    const char *why = nullptr;
    hak_wasm_wamr_snapshot *snapshot = hak_wasm_wamr_take(guest, &why);
    INFO((why ? why : ""));
    REQUIRE(snapshot != nullptr);
    for (int i = 0; i < 3; i++) {
        CHECK(guest.call("peek", 1, WASM_PAGE) == UINT32_MAX);
        CHECK(!guest.ok());
        CHECK(guest.call("grow", 1, 2) == 1);
        guest.call("poke", 2, 3 * WASM_PAGE - 4, 5);
        guest.call("poke", 2, 8, 1);
        REQUIRE(guest.ok());
        CHECK(guest.call("peek", 1, 3 * WASM_PAGE - 4) == 5);
        CHECK(guest.call("peek", 1, 3 * WASM_PAGE) == UINT32_MAX);
        guest.call("drop");
        guest.call("init");
        CHECK(!guest.ok());
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.call("peek", 1, 8) == 77);
        CHECK(guest.call("calls") == 0);
        CHECK(guest.call("answer", 1, 1) == 2);
        guest.call("init");
        CHECK(guest.ok());
        guest.call("poke", 2, 8, 77);
        REQUIRE(guest.ok());
        CHECK(guest.call("peek", 1, WASM_PAGE - 4) == 0);
        CHECK(guest.ok());
        CHECK(guest.call("peek", 1, 2 * WASM_PAGE) ==
              UINT32_MAX); // beyond its end, and within it a moment ago
        CHECK(!guest.ok());
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
    }
    hak_wasm_wamr_drop(snapshot);
}

TEST_CASE("machine code is its tenant's until the module is unloaded, and within the limit", "[wamr]")
{
    Wamr host;
    TenantOptions options;
    options.name = "payer";
    Tenant tenant = new_tenant(host, &options), next = new_tenant(host);
    const auto linear = [](const Tenant &of) { return info_of(of.get()).linear_bytes; };
    size_t code = 0;
    for (int i = 0; i < 3; i++) {
        Module module(tenant.get(), read_compiled("bounds_none"));
        INFO(module.error);
        REQUIRE(module.module != nullptr);
        if (i == 0) code = linear(tenant);
        CHECK(code >= 4096);
        CHECK(linear(tenant) == code);
        Module second(tenant.get(), read_compiled("bounds_none")),
            other(next.get(), read_compiled("bounds_none"));
        CHECK(linear(tenant) == 2 * code);
        CHECK(linear(next) == code);
        Guest guest(tenant.get(), module);
        REQUIRE(guest.guest != nullptr);
        CHECK(guest.call("answer", 1, 1) == 2);
        CHECK(linear(tenant) == 2 * code + WASM_PAGE);
    }
    CHECK(linear(tenant) == 0);
    CHECK(linear(next) == 0);
    // Whatever of it is the first that does not fit, nothing is left.
    for (size_t most = 4096; most <= code; most += 4096) {
        hak_wasm_limits limits = {0, false, most - 1, 0};
        hak_wasm_tenant_limit(tenant.get(), &limits);
        {
            Module module(tenant.get(), read_compiled("bounds_none"));
            CHECK(module.module == nullptr);
            CHECK(std::string(module.error) ==
                  "the module's machine code does not fit into the tenant's limit");
        }
        CHECK(linear(tenant) == 0);
        CHECK(info_of(tenant.get()).linear_peak <= 2 * code + WASM_PAGE);
        Module other(next.get(), read_compiled("bounds_none"));
        CHECK(other.module != nullptr);
    }
    hak_wasm_limits limits = {0, false, code, 0};
    hak_wasm_tenant_limit(tenant.get(), &limits);
    Module module(tenant.get(), read_compiled("bounds_none"));
    CHECK(module.module != nullptr);
    CHECK(linear(tenant) == code);
}

TEST_CASE("a compiled guest is loaded from the folder of compiled modules, and from no file that was changed",
          "[wamr]")
{
    char folder[] = "/tmp/hakmem-compiled-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    const char runtime[] = "WAMR of the test, no frames";
    const Bytes source = read_guest("bounds"), compiled = read_compiled("bounds_none");
    char error[256] = "";
    hak_wasm_code code;
    CHECK(hak_wasm_code_get(folder, runtime, source.data(), source.size(), &code, error, sizeof error) == 0);
    REQUIRE(hak_wasm_code_put(folder, runtime, source.data(), source.size(), compiled.data(), compiled.size(),
                              error, sizeof error) == 0);
    // Of another runtime, or of another module, there is none.
    const Bytes other = read_guest("profile");
    CHECK(hak_wasm_code_get(folder, "WAMR of another build", source.data(), source.size(), &code, error,
                            sizeof error) == 0);
    CHECK(hak_wasm_code_get(folder, runtime, other.data(), other.size(), &code, error, sizeof error) == 0);
    REQUIRE(hak_wasm_code_get(folder, runtime, source.data(), source.size(), &code, error, sizeof error) ==
            1);
    const uint8_t *bytes = static_cast<const uint8_t *>(code.bytes);
    const Bytes found(bytes, bytes + code.size);
    hak_wasm_code_free(&code);
    CHECK(found == compiled);
    {
        Wamr host;
        Tenant tenant = new_tenant(host);
        Module module(tenant.get(), found);
        INFO(module.error);
        REQUIRE(module.module != nullptr);
        Guest guest(tenant.get(), module);
        REQUIRE(guest.guest != nullptr);
        CHECK(guest.call("answer", 1, 1) == 2);
        CHECK(guest.call("grow", 1, 2) == 1);
        CHECK(guest.ok());
    }
    // One byte of the machine code.
    const std::string path = only_file(folder);
    Bytes changed = read_file(path);
    changed[changed.size() - 100] ^= 1;
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char *>(changed.data()), std::streamsize(changed.size()));
    CHECK(hak_wasm_code_get(folder, runtime, source.data(), source.size(), &code, error, sizeof error) == 0);
    CHECK(unlink(path.c_str()) == 0);
    CHECK(rmdir(folder) == 0);
}
