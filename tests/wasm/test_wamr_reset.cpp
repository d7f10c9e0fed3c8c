// Reset of WAMR guests: the same answers and the same bytes, whatever happened in between.
#include "wamr_test.h"

#include <dirent.h>
#include <sys/stat.h>

using namespace test;

namespace
{

struct Snapshot {
    hak_wasm_wamr_snapshot *snapshot;
    explicit Snapshot(hak_wasm_wamr *guest) : snapshot(hak_wasm_wamr_take(guest))
    {
    }
    Snapshot(const Snapshot &) = delete;
    Snapshot &operator=(const Snapshot &) = delete;
    ~Snapshot()
    {
        hak_wasm_wamr_drop(snapshot);
    }
    operator hak_wasm_wamr_snapshot *() const
    {
        return snapshot;
    }
};

size_t open_files()
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

} // namespace

TEST_CASE("a thousand requests have the same answer and the same bytes", "[reset]")
{
    for (hak_wasm_dirty method : {HAK_WASM_DIRTY_SCAN, HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_DIRTY_COMPARE}) {
        HostOptions options;
        options.dirty = method;
        hak_wasm_host *probe = hak_wasm_host_new(&options);
        if (probe == nullptr) {
            WARN("this kernel does not have method " << method);
            continue;
        }
        hak_wasm_host_delete(probe);
        Wamr host(&options);
        Tenant tenant = new_tenant(host);
        Module module(tenant.get(), "small");
        Guest guest(tenant.get(), module);
        guest.call("init");
        const std::vector<char> then = guest.content(host);
        Snapshot snapshot(guest);
        REQUIRE(snapshot != nullptr);
        CHECK(guest.content(host) == then);
        const uint32_t answer = guest.call("handle", 1, 3);
        CHECK(guest.call("handle", 1, 3) != answer); // without a reset it differs
        for (int i = 0; i < 1000; i++) {
            if (i % 100 == 50) CHECK(guest.call("grow", 1, 4) == 3);
            if (i % 100 == 60) {
                guest.call("trap");
                CHECK(std::string(guest.error) == "Exception: unreachable");
            }
            if (i % 100 == 70) {
                guest.call("recurse", 1, 0);
                CHECK_FALSE(guest.ok());
            }
            if (i % 100 == 80) std::memset(guest.memory(), i, 3 * WASM_PAGE);
            REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
            if (i % 50 == 0) REQUIRE(guest.content(host) == then);
            CHECK(guest.call("pages") == 3);
            REQUIRE(guest.call("handle", 1, 3) == answer);
        }
    }
}

TEST_CASE("globals, tables, dropped segments and the size of the memory are restored", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "state");
    Guest guest(tenant.get(), module);
    const uint32_t fresh = guest.call("sum");
    REQUIRE(guest.ok());
    Snapshot snapshot(guest);
    for (int i = 0; i < 10; i++) {
        guest.call("change");
        REQUIRE(guest.ok());
        uint32_t changed = guest.call("sum");
        CHECK(guest.ok());
        CHECK(changed != fresh);
        guest.call("init_from_segments");
        CHECK_FALSE(guest.ok());
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.call("sum") == fresh);
        if (i % 2) {
            guest.call("init_from_segments");
            CHECK(guest.ok());
            CHECK(std::memcmp(guest.memory(), "hakmem", 6) == 0);
            REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
            CHECK(is_zero(guest.memory(), 6));
        }
    }
    // and to what is not the beginning
    guest.call("change");
    const uint32_t changed = guest.call("sum");
    Snapshot later(guest);
    for (int i = 0; i < 3; i++) {
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.call("sum") == fresh);
        REQUIRE(hak_wasm_wamr_reset(guest, later) == 0);
        CHECK(guest.call("sum") == changed);
        CHECK(guest.memory()[WASM_PAGE] == 7);
    }
}

TEST_CASE("one snapshot serves all guests of a module", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "small"), other(tenant.get(), "big");
    Guest guest(tenant.get(), module);
    guest.call("init");
    for (int i = 0; i < 5; i++)
        guest.call("handle", 1, 9);
    Snapshot snapshot(guest);
    const std::vector<char> then = guest.content(host);
    const uint32_t answer = guest.call("handle", 1, 4);
    Guest second(tenant.get(), module);
    REQUIRE(hak_wasm_wamr_reset(second, snapshot) == 0);
    CHECK(second.content(host) == then);
    CHECK(second.call("handle", 1, 4) == answer);
    Guest stranger(tenant.get(), other);
    CHECK(hak_wasm_wamr_reset(stranger, snapshot) == -1);
    stranger.call("init");
    CHECK(stranger.ok());
}

TEST_CASE("16 MiB are restored by their written pages", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "big");
    Guest guest(tenant.get(), module);
    guest.call("init");
    Snapshot snapshot(guest);
    const std::vector<char> then = guest.content(host);
    CHECK(then.size() > 16 * MIB);
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t answer = guest.call("handle", 1, i);
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.call("handle", 1, i) == answer);
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.content(host) == then);
    }
}

TEST_CASE("a guest that opened a file is instantiated anew, and the file is closed", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "files");
    char place[] = "/tmp/hakmem-guest-XXXXXX";
    REQUIRE(mkdtemp(place) != nullptr);
    const char *dirs[] = {place};
    wasm_runtime_set_wasi_args(module, dirs, 1, nullptr, 0, nullptr, 0, nullptr, 0);
    {
        Guest guest(tenant.get(), module);
        INFO(guest.error);
        REQUIRE(guest.guest != nullptr);
        guest.call("_initialize");
        Snapshot snapshot(guest);
        size_t files = open_files();
        CHECK(hak_wasm_wamr_reset(guest, snapshot) == 0);
        for (int i = 0; i < 3; i++) {
            int fd = int(guest.call("open_file"));
            REQUIRE(fd > 3);
            CHECK(info_of(tenant.get()).label[HAK_WASM_WASI].live_blocks > 0);
            CHECK(open_files() == files + 1);
            CHECK(guest.call("is_open", 1, uint32_t(fd)) == 1);
            CHECK(hak_wasm_wamr_reset(guest, snapshot) == 1);
            CHECK(open_files() == files);
            CHECK(guest.call("is_open", 1, uint32_t(fd)) == 0);
            CHECK(hak_wasm_wamr_reset(guest, snapshot) == 0);
        }
        guest.call("close_file", 1, 1); // its output
        CHECK(hak_wasm_wamr_reset(guest, snapshot) == 1);
        CHECK(guest.call("is_open", 1, 1) == 1);

        CHECK(int(guest.call("open_file")) > 3);
        Snapshot with_file(guest); // of which no new instance can be
        CHECK(hak_wasm_wamr_reset(guest, with_file) == 0);
        CHECK(int(guest.call("open_file")) > 3);
        CHECK(hak_wasm_wamr_reset(guest, with_file) == -1);
    }
    CHECK(info_of(tenant.get()).label[HAK_WASM_LINEAR].live_blocks == 0);
    CHECK(unlink((std::string(place) + "/hakmem-guest").c_str()) == 0);
    CHECK(rmdir(place) == 0);
}

TEST_CASE("tables of the host's references have no snapshot", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "externs");
    Guest guest(tenant.get(), module);
    REQUIRE(guest.guest != nullptr);
    CHECK(hak_wasm_wamr_take(guest) == nullptr);
    hak_wasm_wamr_drop(nullptr);
}

TEST_CASE("a snapshot and its guest end in any order", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "small");
    for (bool guest_first : {true, false}) {
        auto guest = std::make_unique<Guest>(tenant.get(), module);
        auto snapshot = std::make_unique<Snapshot>(*guest);
        guest->call("handle", 1, 1);
        if (guest_first) guest.reset();
        snapshot.reset();
        if (guest) CHECK(guest->call("handle", 1, 1) != UINT32_MAX);
    }
    CHECK(host.info().image_bytes == 0);
    Guest fresh(tenant.get(), module), fresh2(tenant.get(), module);
    CHECK(fresh.content(host) == fresh2.content(host));
}
