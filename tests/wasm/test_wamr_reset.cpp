// Reset of WAMR guests: the same answers and the same bytes, whatever happened in between.
#include "wamr_test.h"

#include <sys/stat.h>

using namespace test;

namespace
{

struct Snapshot {
    const char *why;
    hak_wasm_wamr_snapshot *snapshot;
    explicit Snapshot(hak_wasm_wamr *guest) : snapshot(hak_wasm_wamr_take(guest, &why))
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

// Two directories, which a guest of "numbers" has as 3 and 4, and what it creates in them.
struct Directories {
    char first[32] = "/tmp/hakmem-first-XXXXXX", second[32] = "/tmp/hakmem-second-XXXXXX";
    Directories()
    {
        REQUIRE(mkdtemp(first) != nullptr);
        REQUIRE(mkdtemp(second) != nullptr);
    }
    Directories(const Directories &) = delete;
    Directories &operator=(const Directories &) = delete;
    ~Directories()
    {
        for (const char *place : {first, second}) {
            took_file(place);
            rmdir(place);
        }
    }
    static bool took_file(const char *place)
    {
        return unlink((std::string(place) + "/hakmem-guest").c_str()) == 0;
    }
};

// The guest "numbers" on a host, with two directories.
struct Numbers {
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module{tenant.get(), "numbers"};
    const Directories place;
    const char *dirs[2] = {place.first, place.second};
    Numbers()
    {
        wasm_runtime_set_wasi_args(module, dirs, 2, nullptr, 0, nullptr, 0, nullptr, 0);
    }
};

// Opens `function`(dir) until the number is this one: WAMR chooses them at random. What is closed in between
// leaves its address to the next one.
bool open_as(Guest &guest, const char *function, uint32_t dir, uint32_t number)
{
    for (int i = 0; i < 10000; i++) {
        const uint32_t fd = guest.call(function, 1, dir);
        if (fd == number || fd == UINT32_MAX) return fd == number;
        guest.call("close_file", 1, fd);
    }
    return false;
}

int counted = 0;
void count(wasm_exec_env_t)
{
    counted++;
}

} // namespace

TEST_CASE("a thousand requests have the same answer and the same bytes", "[reset]")
{
    for (hak_wasm_dirty method : {HAK_WASM_DIRTY_SCAN, HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_DIRTY_COMPARE}) {
        HostOptions options;
        options.dirty = method;
        if (!has_method(options)) continue;
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
    const uint32_t fresh = guest.call("sum"), fresh_rest = guest.call("rest");
    REQUIRE(guest.ok());
    Snapshot snapshot(guest);
    for (int i = 0; i < 10; i++) {
        guest.call("change");
        REQUIRE(guest.ok());
        uint32_t changed = guest.call("sum");
        CHECK(guest.ok());
        CHECK(changed != fresh);
        CHECK(guest.call("rest") == 25 + 2000);
        guest.call("init_from_segments");
        CHECK_FALSE(guest.ok());
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.call("sum") == fresh);
        CHECK(guest.call("rest") == fresh_rest);
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

TEST_CASE("tables come back, whatever way a guest changed them", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "tables");
    Guest guest(tenant.get(), module), other(tenant.get(), module);
    guest.call("change", 1, 8);
    const uint32_t then = guest.call("sum");
    CHECK(then != other.call("sum"));
    Snapshot snapshot(guest);
    REQUIRE(snapshot != nullptr);
    for (Guest *one : {&guest, &other, &guest}) {
        REQUIRE(hak_wasm_wamr_reset(*one, snapshot) == 0);
        CHECK(one->call("sum") == then);
        for (uint32_t way = 0; way < 8; way++) {
            one->call("change", 1, way);
            CHECK(one->call("sum") != then);
            REQUIRE(hak_wasm_wamr_reset(*one, snapshot) == 0);
            CHECK(one->call("sum") == then);
        }
        CHECK(one->call("widen", 1, 4) == 3);
        one->call("trap");
        CHECK(!one->ok());
        one->call("ask", 1, 0);
        CHECK(!one->ok());
        REQUIRE(hak_wasm_wamr_reset(*one, snapshot) == 0);
        CHECK(one->call("sum") == then);
        CHECK(one->call("ask", 1, 0) == 1);
    }
}

TEST_CASE("a guest without a memory goes back to its globals and tables", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "bare");
    Guest guest(tenant.get(), module), other(tenant.get(), module);
    Snapshot snapshot(guest);
    REQUIRE(snapshot != nullptr);
    for (Guest *one : {&guest, &other, &guest}) {
        one->call("change");
        CHECK(one->call("sum") == 42);
        REQUIRE(hak_wasm_wamr_reset(*one, snapshot) == 0);
        CHECK(one->call("sum") == 2);
        REQUIRE(hak_wasm_wamr_rest(*one, snapshot) == 0);
        hak_wasm_host_trim(host);
        CHECK(one->call("sum") == 2);
    }
}

TEST_CASE("a memory that begins without a page has none after a reset", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "zero");
    Guest guest(tenant.get(), module);
    Snapshot snapshot(guest);
    REQUIRE(snapshot != nullptr);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(guest.call("get") == UINT32_MAX);
        guest.call("put", 1, 0x5EC2E7 + i);
        CHECK(guest.call("get") == 0x5EC2E7 + i);
        if (i == 1) CHECK(guest.call("grow", 1, 7) == 1);
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.call("pages") == 0);
        CHECK(info_of(tenant.get()).linear_bytes == 0);
        CHECK(guest.call("grow", 1, 1) == 0);
        CHECK(guest.call("get") == 0);
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
    }
    // A snapshot with pages, for guests with none, fewer and more.
    guest.call("put", 1, 77);
    Snapshot later(guest);
    REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
    REQUIRE(hak_wasm_wamr_reset(guest, later) == 0);
    CHECK(guest.call("get") == 77);
    CHECK(guest.call("pages") == 1);
    Guest second(tenant.get(), module);
    REQUIRE(hak_wasm_wamr_reset(second, later) == 0);
    CHECK(second.call("get") == 77);
    second.call("put", 1, 78);
    CHECK(second.call("grow", 1, 3) == 1);
    REQUIRE(hak_wasm_wamr_reset(second, later) == 0);
    CHECK(second.call("get") == 77);
    CHECK(second.call("pages") == 1);
    CHECK(info_of(tenant.get()).linear_bytes - info_of(tenant.get()).image_bytes == 2 * WASM_PAGE);
    REQUIRE(hak_wasm_wamr_reset(second, snapshot) == 0);
    CHECK(info_of(tenant.get()).label[HAK_WASM_LINEAR].live_blocks == 1);
    // Over the limit it is an error, and the guest is as it was.
    TenantOptions options;
    options.limits.linear_bytes = WASM_PAGE;
    hak_wasm_tenant_limit(tenant.get(), &options.limits);
    CHECK(hak_wasm_wamr_reset(second, later) == -1);
    CHECK(second.call("get") == UINT32_MAX);
}

TEST_CASE("an imported memory and table are the guest's own and are restored", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "imports");
    Guest guest(tenant.get(), module), other(tenant.get(), module);
    INFO(guest.error);
    REQUIRE(guest.guest != nullptr);
    Snapshot snapshot(guest);
    REQUIRE(snapshot != nullptr);
    const uint32_t fresh = guest.call("sum");
    REQUIRE(guest.ok());
    for (int i = 0; i < 3; i++) {
        guest.call("change");
        REQUIRE(guest.ok());
        CHECK(guest.call("sum") == 7 + 200 + 40000);
        CHECK(other.call("sum") == fresh);
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(guest.call("sum") == fresh);
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

TEST_CASE("a directory at the number and the address of another one is not taken for it", "[reset]")
{
    Numbers n;
    const size_t files = open_files();
    {
        Guest guest(n.tenant.get(), n.module), other(n.tenant.get(), n.module);
        INFO(guest.error);
        REQUIRE(guest.guest != nullptr);
        REQUIRE(other.guest != nullptr);
        Snapshot snapshot(guest);
        REQUIRE(snapshot != nullptr);
        for (int i = 0; i < 12; i++) {
            const bool exchanged = i % 2;
            Guest &g = i / 2 % 2 ? other : guest;
            INFO((exchanged ? "exchanged by two renumberings, turn " : "closed and opened, turn ") << i);
            if (exchanged) {
                for (int turn = 0; turn < 2; turn++) {
                    CHECK(g.call("renumber", 2, 4, 3) == 0);
                    REQUIRE(open_as(g, "open_again", 3, 4));
                }
            } else {
                CHECK(g.call("close_file", 1, 3) == 0);
                REQUIRE(open_as(g, "open_again", 4, 3));
            }
            CHECK(hak_wasm_wamr_reset(g, snapshot) == 1);
            CHECK(hak_wasm_wamr_reset(g, snapshot) == 0);
            const int fd = int(g.call("open_file", 1, 3));
            CHECK(fd > 4);
            CHECK(g.call("close_file", 1, uint32_t(fd)) == 0);
            CHECK(n.place.took_file(n.place.first));
            CHECK_FALSE(n.place.took_file(n.place.second));
        }
    }
    CHECK(open_files() == files);
}

TEST_CASE("a guest that renumbers its descriptors neither ends nor stops the host", "[reset]")
{
    enum { BAD_FILE = 8 };
    Numbers n;
    const size_t files = open_files();
    {
        Guest guest(n.tenant.get(), n.module);
        INFO(guest.error);
        REQUIRE(guest.guest != nullptr);
        for (uint32_t fd = 0; fd < 5; fd++)
            CHECK(guest.call("renumber", 2, fd, fd) == 0);
        CHECK(guest.call("renumber", 2, 77, 77) == BAD_FILE);
        CHECK(guest.call("renumber", 2, UINT32_MAX, UINT32_MAX) == BAD_FILE);
        for (int i = 0; i < 100; i++) {
            const uint32_t a = guest.call("open_file", 1, 3), b = guest.call("open_file", 1, 4);
            REQUIRE((int(a) > 4 && int(b) > 4));
            CHECK(guest.call("renumber", 2, a, b) == 0);
            CHECK(guest.call("close_file", 1, a) == BAD_FILE);
            CHECK(guest.call("close_file", 1, b) == 0);
        }
        // Each leaves one more: WAMR has to see that its table is full.
        for (int i = 0; i < 200; i++) {
            const uint32_t a = guest.call("open_file", 1, 3), b = guest.call("open_file", 1, 4);
            REQUIRE((int(a) > 4 && int(b) > 4));
            CHECK(guest.call("renumber", 2, a, b) == 0);
        }
    }
    CHECK(open_files() == files);
}

TEST_CASE("a file that is open in a snapshot is not mistaken for one that is opened later", "[reset]")
{
    Numbers n;
    const size_t files = open_files();
    {
        Guest guest(n.tenant.get(), n.module), other(n.tenant.get(), n.module);
        INFO(guest.error);
        REQUIRE(guest.guest != nullptr);
        const uint32_t fd = guest.call("open_file", 1, 3);
        REQUIRE(int(fd) > 4);
        Snapshot snapshot(guest), same(guest);
        CHECK(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(hak_wasm_wamr_reset(guest, same) == 0);
        CHECK(guest.call("close_file", 1, fd) == 0);
        REQUIRE(open_as(guest, "open_file", 4, fd));
        CHECK(hak_wasm_wamr_reset(guest, snapshot) == -1);
        REQUIRE(open_as(other, "open_file", 3, fd));
        CHECK(hak_wasm_wamr_reset(other, same) == -1); // it is another instance's
    }
    CHECK(open_files() == files);
    CHECK(info_of(n.tenant.get()).label[HAK_WASM_INSTANCE].live_blocks == 0);
}

TEST_CASE("a reset does not run the start function again, and takes the exit code back", "[reset]")
{
    NativeSymbol natives[] = {{"count", reinterpret_cast<void *>(count), "()", nullptr}};
    Wamr host(nullptr, natives, 1);
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "start");
    counted = 0;
    Guest guest(tenant.get(), module);
    INFO(guest.error);
    REQUIRE(guest.guest != nullptr);
    Snapshot snapshot(guest);
    REQUIRE(snapshot != nullptr);
    for (uint32_t i = 0; i < 3; i++) {
        guest.call("exit", 1, 40 + i);
        CHECK(wasm_runtime_get_wasi_exit_code(hak_wasm_wamr_instance(guest)) == 40 + i);
        REQUIRE(hak_wasm_wamr_reset(guest, snapshot) == 0);
        CHECK(wasm_runtime_get_wasi_exit_code(hak_wasm_wamr_instance(guest)) == 0);
        CHECK(guest.call("starts") == 1);
    }
    CHECK(counted == 1);
}

TEST_CASE("modules with state that no snapshot could have are not loaded", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    const Bytes header = {0, 'a', 's', 'm', 1, 0, 0, 0};
    Bytes two_memories = header, vector = header, shared = header;
    for (int byte : {5, 5, 2, 0, 1, 0, 1})
        two_memories.push_back(uint8_t(byte));
    for (int byte : {6, 22, 1, 0x7b, 1, 0xfd, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b})
        vector.push_back(uint8_t(byte));
    for (int byte : {5, 4, 1, 3, 1, 1})
        shared.push_back(uint8_t(byte));
    for (const Bytes &bytes : {two_memories, vector, shared}) {
        Module module(tenant.get(), bytes);
        INFO(module.error);
        CHECK(module.module == nullptr);
    }
}

TEST_CASE("tables of the host's references have no snapshot", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "externs");
    Guest guest(tenant.get(), module);
    REQUIRE(guest.guest != nullptr);
    Snapshot snapshot(guest);
    CHECK(snapshot == nullptr);
    CHECK(std::string(snapshot.why) == "it has a table or a global of external references");
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

TEST_CASE("a guest that rests gives its pages back, and its next call ends the rest", "[reset]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "small");
    Guest guest(tenant.get(), module);
    guest.call("init");
    REQUIRE(guest.ok());
    Snapshot snapshot(guest);
    const std::vector<char> then = guest.content(host);
    const uint32_t answer = guest.call("handle", 1, 3);
    for (int i = 0; i < 3; i++) {
        guest.call("grow", 1, 2);
        REQUIRE(hak_wasm_wamr_rest(guest, snapshot) == 0);
        hak_wasm_host_trim(host);
        CHECK(hak_wasm_tenant_resident(tenant.get()) == 0);
        CHECK(guest.call("pages") == 3);
        CHECK(guest.call("handle", 1, 3) == answer);
        // It is awake: what it wrote stays, and so does what the host writes.
        hak_wasm_host_trim(host);
        CHECK(hak_wasm_tenant_resident(tenant.get()) > 0);
        REQUIRE(hak_wasm_wamr_rest(guest, snapshot) == 0);
        guest.memory()[5] = 55; // asks for the instance
        hak_wasm_host_trim(host);
        CHECK(guest.memory()[5] == 55);
        REQUIRE(hak_wasm_wamr_rest(guest, snapshot) == 0);
        CHECK(guest.content(host) == then);
    }
    Module nothing(tenant.get(), "zero");
    Guest empty(tenant.get(), nothing);
    Snapshot none(empty);
    CHECK(hak_wasm_wamr_rest(empty, none) == 0);
    CHECK(hak_wasm_wamr_rest(empty, snapshot) == -1);
}
