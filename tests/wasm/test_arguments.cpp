// Arguments that a host gets wrong: NULL where something is asked for, structs of other versions, sizes and
// counts beyond all bounds. They are refused and change nothing.
#include "wasm_test.h"

#include <hakmem/wasm_profile.h>

#include <cerrno>
#include <unistd.h>

using namespace test;

namespace
{

// A struct of a later version: `extra` bytes more, and what they hold.
template <typename T>
std::vector<char> later(const T &now, size_t extra, char tail)
{
    std::vector<char> bytes(sizeof now + extra, tail);
    std::memcpy(bytes.data(), &now, sizeof now);
    const size_t size = bytes.size();
    std::memcpy(bytes.data(), &size, sizeof size);
    return bytes;
}

// A value that the enumeration does not have, as a caller in C may pass it: undefined in C++, and meant here.
template <typename T>
__attribute__((no_sanitize("undefined"))) T wild(int value)
{
    T out;
    static_assert(sizeof out == sizeof value, "enumerations are ints");
    std::memcpy(&out, &value, sizeof out);
    return out;
}

} // namespace

TEST_CASE("NULL is refused where a memory, an image or a struct is asked for", "[arguments]")
{
    Host host;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    char *memory = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE));
    memory[0] = 5;
    CHECK(hak_wasm_host_stats(host, nullptr) == -1);
    CHECK(hak_wasm_tenant_stats(tenant, nullptr) == -1);
    CHECK(hak_wasm_image_take(host, nullptr) == nullptr);
    CHECK(hak_wasm_image_size(nullptr) == 0);
    CHECK(hak_wasm_memory_reset(host, memory, nullptr) == -1);
    CHECK(hak_wasm_memory_reset(host, nullptr, nullptr) == -1);
    CHECK(memory[0] == 5);
    CHECK(hak_wasm_memory_adopt(host, nullptr) == nullptr);
    CHECK(hak_wasm_memory_free(host, nullptr) == -1);
    CHECK(hak_wasm_memory_grow(host, nullptr, WASM_PAGE) == -1);
    CHECK(hak_wasm_memory_size(host, nullptr) == 0);
    CHECK_FALSE(hak_wasm_is_memory(host, nullptr));
    CHECK_FALSE(hak_wasm_owns(host, nullptr));
    CHECK(hak_wasm_usable_size(host, nullptr) == 0);
    hak_wasm_free(host, nullptr);
    hak_wasm_image_drop(nullptr);
    hak_wasm_tenant_close(nullptr, HAK_WASM_BULK);
    hak_wasm_host_delete(nullptr);
    CHECK(hak_wasm_report_json(tenant, nullptr) == EINVAL);
    CHECK(hak_wasm_host_options_error(nullptr) == nullptr);

    hak_wasm_limits limits = {0, false, WASM_PAGE, 0};
    hak_wasm_tenant_limit(tenant, &limits);
    hak_wasm_tenant_limit(tenant, nullptr);
    CHECK(hak_wasm_charge(tenant, 2 * WASM_PAGE) == -1); // the limit stays
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("looking at a host needs a place and a function, and no room for the reason", "[arguments]")
{
    char error[200] = "";
    hak_wasm_tenants_fn *none = [](void *, hak_wasm_look *look) { hak_wasm_look_at(look, nullptr); };
    CHECK(hak_wasm_live_start(nullptr, none, nullptr, error, sizeof error) == -1);
    CHECK(std::strstr(error, "place") != nullptr);
    CHECK(hak_wasm_live_start("on", nullptr, nullptr, error, sizeof error) == -1);
    CHECK(hak_wasm_live_start("/no/such/directory/socket", none, nullptr, nullptr, 100) == -1);
    CHECK(hak_wasm_live_start("/no/such/directory/socket", none, nullptr, nullptr, 0) == -1);
    CHECK(hak_wasm_live_start("yes", none, nullptr, error, sizeof error) == -1);
    CHECK(std::string(error) == "no socket at 'yes': on or a path with a slash expected");
    CHECK(access("yes", F_OK) == -1);
    hak_wasm_live_stop();
}

TEST_CASE("options of another version are taken if nothing is in them that is not known", "[arguments]")
{
    HostOptions options;
    options.slot_bytes = MIB;
    auto host_of = [](const std::vector<char> &bytes) {
        hak_wasm_host *host =
            hak_wasm_host_new(reinterpret_cast<const hak_wasm_host_options *>(bytes.data()));
        const size_t slot = host ? hak_wasm_slot_bytes(host) : 0;
        hak_wasm_host_delete(host);
        return slot;
    };
    CHECK(host_of(later<hak_wasm_host_options>(options, 64, 0)) == MIB);
    CHECK(host_of(later<hak_wasm_host_options>(options, 64, 1)) == 0);
    std::vector<char> older(offsetof(hak_wasm_host_options, guard_bytes));
    options.size = older.size();
    std::memcpy(older.data(), &options, older.size());
    CHECK(host_of(older) == MIB);
    for (size_t size : {size_t(0), size_t(7), SIZE_MAX, SIZE_MAX / 2}) {
        options.size = size;
        CHECK(hak_wasm_host_options_error(&options) != nullptr);
        CHECK(hak_wasm_host_new(&options) == nullptr);
    }

    Host host;
    TenantOptions tenant;
    tenant.limits.linear_bytes = WASM_PAGE;
    for (char tail : {'\0', '\1'}) {
        const std::vector<char> bytes = later<hak_wasm_tenant_options>(tenant, 32, tail);
        hak_wasm_tenant *t =
            hak_wasm_tenant_new(host, reinterpret_cast<const hak_wasm_tenant_options *>(bytes.data()));
        REQUIRE((t != nullptr) == (tail == 0));
        if (t == nullptr) continue;
        CHECK(hak_wasm_charge(t, WASM_PAGE + 1) == -1);
        hak_wasm_tenant_close(t, HAK_WASM_RETIRE);
    }
    tenant.size = offsetof(hak_wasm_tenant_options, limits); // a header without limits
    hak_wasm_tenant *t = hak_wasm_tenant_new(host, &tenant);
    REQUIRE(t != nullptr);
    CHECK(hak_wasm_charge(t, WASM_PAGE + 1) == 0);
    for (size_t size : {size_t(0), size_t(1), SIZE_MAX}) {
        tenant.size = size;
        CHECK(hak_wasm_tenant_new(host, &tenant) == nullptr);
    }

    // A caller's struct is as large as the caller says.
    for (size_t size :
         {size_t(8), offsetof(hak_wasm_tenant_info, linear_bytes), sizeof(hak_wasm_tenant_info) + 40}) {
        std::vector<char> info(size + 8, 0x5A);
        std::memcpy(info.data(), &size, sizeof size);
        CHECK(hak_wasm_tenant_stats(t, reinterpret_cast<hak_wasm_tenant_info *>(info.data())) == 0);
        CHECK(info[size] == 0x5A);
        if (size > sizeof(hak_wasm_tenant_info)) CHECK(info[size - 1] == 0);
    }
    for (size_t size : {size_t(0), size_t(7), SIZE_MAX}) {
        hak_wasm_tenant_info info = {};
        info.size = size;
        CHECK(hak_wasm_tenant_stats(t, &info) == -1);
        hak_wasm_host_info of_host = {};
        of_host.size = size;
        CHECK(hak_wasm_host_stats(host, &of_host) == -1);
        hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
        profile.size = size;
        CHECK(hak_wasm_profile_start(t, &profile) == -1);
    }
    CHECK(hak_wasm_profile_stop(t) == -1);
    hak_wasm_tenant_close(t, HAK_WASM_BULK);
}

TEST_CASE("numbers beyond all bounds are refused", "[arguments]")
{
    auto error_of = [](auto change) {
        HostOptions options;
        change(options);
        const char *error = hak_wasm_host_options_error(&options);
        CHECK((hak_wasm_host_new(&options) == nullptr) == (error != nullptr));
        return std::string(error ? error : "");
    };
    CHECK(error_of([](HostOptions &o) { o.slot_bytes = SIZE_MAX; }) != "");
    CHECK(error_of([](HostOptions &o) { o.slot_bytes = 1; }) != "");
    CHECK(error_of([](HostOptions &o) { o.guard_bytes = SIZE_MAX; }) != "");
    CHECK(error_of([](HostOptions &o) { o.extent_bytes = SIZE_MAX; }) != "");
    CHECK(error_of([](HostOptions &o) { o.bounds = wild<hak_wasm_bounds>(7); }) != "");
    CHECK(error_of([](HostOptions &o) { o.dirty = wild<hak_wasm_dirty>(9); }) != "");

    HostOptions most;
    most.warm_bytes = SIZE_MAX - 1;
    most.decay_ns = UINT64_MAX;
    most.mappings = SIZE_MAX;
    most.limits = {SIZE_MAX, true, SIZE_MAX, SIZE_MAX};
    Host host(&most);
    hak_wasm_host_tick(host, UINT64_MAX);
    hak_wasm_host_tick(host, 1);
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    Scope scope(tenant, wild<hak_wasm_label>(1000));
    for (size_t n : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX - 65535}) {
        CHECK(hak_wasm_memory_new(host, n) == nullptr);
        CHECK(hak_wasm_alloc(host, n) == nullptr);
        CHECK(hak_wasm_calloc(host, n, 2) == nullptr);
        CHECK(hak_wasm_aligned_alloc(host, 16, n) == nullptr);
        CHECK(hak_wasm_aligned_alloc(host, n, 16) == nullptr);
    }
    CHECK(hak_wasm_aligned_alloc(host, 0, 16) == nullptr);
    CHECK(hak_wasm_aligned_alloc(host, 24, 16) == nullptr);
    void *block = hak_wasm_alloc(host, 0);
    CHECK(hak_wasm_realloc(host, block, SIZE_MAX) == nullptr);
    hak_wasm_free(host, block);
    void *memory = hak_wasm_memory_new(host, 0);
    CHECK(memory != nullptr);
    CHECK(hak_wasm_memory_grow(host, memory, SIZE_MAX) == -1);
    CHECK(hak_wasm_label_name(wild<hak_wasm_label>(-1)) == nullptr);
    hak_wasm_image *nothing = hak_wasm_image_take(host, memory);
    CHECK(hak_wasm_image_size(nothing) == 0);
    hak_wasm_image_drop(nothing);
    CHECK(hak_wasm_memory_free(host, memory) == 0);
    CHECK(info_of(tenant).linear_bytes == 0);
    CHECK(info_of(tenant).heap_live == 0);

    hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
    profile.depth = 33;
    CHECK(hak_wasm_profile_start(tenant, &profile) == -1);
    hak_wasm_tenant_close(tenant, wild<hak_wasm_close>(5));
}

TEST_CASE("what was never charged or admitted is not given back", "[arguments]")
{
    HostOptions options;
    options.limits = {0, false, 4 * WASM_PAGE, 2};
    Host host(&options);
    hak_wasm_tenant *one = hak_wasm_tenant_new(host, nullptr), *two = hak_wasm_tenant_new(host, nullptr);
    REQUIRE(hak_wasm_charge(one, 3 * WASM_PAGE) == 0);
    CHECK(hak_wasm_charge(one, SIZE_MAX) == -1);
    CHECK(hak_wasm_charge(one, SIZE_MAX - 3 * WASM_PAGE + 1) == -1);
    hak_wasm_uncharge(two, 3 * WASM_PAGE); // of the other's
    CHECK(hak_wasm_charge(two, 2 * WASM_PAGE) == -1);
    hak_wasm_uncharge(one, SIZE_MAX);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 0);
    CHECK(hak_wasm_charge(two, 4 * WASM_PAGE) == 0);
    CHECK(hak_wasm_charge(one, 1) == -1);
    hak_wasm_uncharge(two, 4 * WASM_PAGE);

    REQUIRE(hak_wasm_admit(one) == 0);
    hak_wasm_dismiss(two);
    CHECK(info_of(hak_wasm_host_tenant(host)).instances == 1);
    hak_wasm_dismiss(one);
    hak_wasm_dismiss(one);
    hak_wasm_dismiss(one);
    CHECK(hak_wasm_admit(one) == 0);
    CHECK(hak_wasm_admit(two) == 0);
    CHECK(hak_wasm_admit(two) == -1);
    hak_wasm_dismiss(one);
    hak_wasm_dismiss(two);
    hak_wasm_tenant_close(one, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(two, HAK_WASM_RETIRE);

    // without a limit a number wraps around nowhere
    Host plain;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(plain, nullptr);
    CHECK(hak_wasm_charge(tenant, SIZE_MAX) == 0);
    CHECK(hak_wasm_charge(tenant, 2) == -1);
    CHECK(hak_wasm_linear_limit(tenant) == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_BULK);
    CHECK(info_of(hak_wasm_host_tenant(plain)).linear_bytes == 0);
}
