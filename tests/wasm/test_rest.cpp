// Memories that rest give their pages back, and no live memory keeps pages that nobody counts.
#include "wasm_test.h"

#include <fstream>
#include <memory>

using namespace test;

namespace
{

constexpr uint64_t SECOND = 1000000000;

struct Kind {
    hak_wasm_dirty dirty;
    hak_wasm_bounds bounds;
};

// fn(host) for every method that this kernel has.
template <typename Fn>
void each_kind(Fn fn)
{
    for (const Kind &kind :
         {Kind{HAK_WASM_DIRTY_SCAN, HAK_WASM_FLAT}, Kind{HAK_WASM_DIRTY_SCAN, HAK_WASM_GUARD},
          Kind{HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_GUARD}, Kind{HAK_WASM_DIRTY_COMPARE, HAK_WASM_FLAT}}) {
        HostOptions options;
        options.dirty = kind.dirty;
        options.bounds = kind.bounds;
        options.decay_ns = SECOND;
        options.warm_bytes = 4 * MIB;
        if (!has_method(options)) continue;
        INFO("method " << kind.dirty << ", bounds " << kind.bounds);
        Host host(&options);
        fn(host);
    }
}

char *new_memory(hak_wasm_host *host, size_t n)
{
    char *p = static_cast<char *>(hak_wasm_memory_new(host, n));
    REQUIRE(p != nullptr);
    return p;
}

// A memory with an image of a pattern.
struct Imaged {
    Host &host;
    size_t n;
    char *p;
    hak_wasm_image *image;
    std::vector<char> then;

    explicit Imaged(Host &h, size_t bytes = 4 * WASM_PAGE) : host(h), n(bytes), p(new_memory(h, bytes))
    {
        for (size_t i = 0; i < n; i++)
            p[i] = char(i / 4096 % 2 ? i * 7 : 0);
        then.assign(p, p + n);
        image = hak_wasm_image_take(host, p);
        REQUIRE(image != nullptr);
    }
    Imaged(const Imaged &) = delete;
    Imaged &operator=(const Imaged &) = delete;
    ~Imaged()
    {
        hak_wasm_memory_free(host, p);
        hak_wasm_image_drop(image);
    }
    bool is_back() const
    {
        return std::memcmp(p, then.data(), n) == 0;
    }
    void rest()
    {
        std::memset(p, 1, n);
        REQUIRE(hak_wasm_memory_rest(host, p, image) == 0);
        CHECK(is_back());
    }
    size_t resident() const
    {
        return hak_wasm_tenant_resident(hak_wasm_host_tenant(host));
    }
};

size_t resident_of_process()
{
    std::ifstream in("/proc/self/statm");
    size_t all = 0, resident = 0;
    in >> all >> resident;
    return resident * size_t(sysconf(_SC_PAGESIZE));
}

} // namespace

TEST_CASE("a memory that rests for a period gives its pages back", "[rest]")
{
    each_kind([](Host &host) {
        const bool tells = host.info().dirty != HAK_WASM_DIRTY_COMPARE;
        uint64_t now = 100 * SECOND;
        hak_wasm_host_tick(host, now);
        Imaged memory(host);
        for (int round = 0; round < 3; round++) {
            memory.rest();
            CHECK(host.info().resting == 1);
            if (tells) CHECK(memory.resident() == memory.n);
            hak_wasm_host_tick(host, now += 2 * SECOND); // it may have begun to rest a moment ago
            if (tells) CHECK(memory.resident() == memory.n);
            hak_wasm_host_tick(host, now += 2 * SECOND);
            if (tells) CHECK(memory.resident() == 0);
            CHECK(host.info().resting == 1);
            CHECK(memory.is_back());
            CHECK(hak_wasm_memory_wake(host, memory.p) == 0);
            CHECK(host.info().resting == 0);
            std::memset(memory.p, 3, memory.n);
            for (int i = 0; i < 3; i++)
                hak_wasm_host_tick(host, now += 2 * SECOND);
            CHECK(memory.p[memory.n - 1] == 3);
            CHECK(hak_wasm_memory_reset(host, memory.p, memory.image) == 0);
            CHECK(memory.is_back());
        }
        // At once, by a trim; and once.
        memory.rest();
        CHECK(hak_wasm_host_trim(host) >= memory.n);
        if (tells) CHECK(memory.resident() == 0);
        CHECK(hak_wasm_host_trim(host) < memory.n);
        CHECK(memory.is_back());
    });
}

TEST_CASE("what is done with a memory ends its rest", "[rest]")
{
    each_kind([](Host &host) {
        const auto keeps_what_is_written = [&](Imaged &memory) {
            CHECK(host.info().resting == 0);
            memory.p[5000] = 77;
            hak_wasm_host_trim(host);
            CHECK(memory.p[5000] == 77);
        };
        Imaged memory(host);
        memory.rest();
        CHECK(hak_wasm_memory_wake(host, memory.p) == 0);
        CHECK(hak_wasm_memory_wake(host, memory.p) == 0);
        keeps_what_is_written(memory);
        memory.rest();
        CHECK(hak_wasm_memory_reset(host, memory.p, memory.image) == 0);
        keeps_what_is_written(memory);
        memory.rest();
        CHECK(hak_wasm_memory_grow(host, memory.p, 2 * memory.n) == 0);
        memory.p[2 * memory.n - 1] = 78;
        keeps_what_is_written(memory);
        CHECK(memory.p[2 * memory.n - 1] == 78);
        memory.rest();
        CHECK(hak_wasm_memory_size(host, memory.p) == memory.n);
        hak_wasm_image *another = hak_wasm_image_take(host, memory.p);
        REQUIRE(another != nullptr);
        keeps_what_is_written(memory);
        // To another image, and the pages go once more.
        CHECK(hak_wasm_memory_rest(host, memory.p, another) == 0);
        hak_wasm_host_trim(host);
        CHECK(memory.is_back());
        hak_wasm_image_drop(another);
        memory.rest();
        {
            Imaged more(host);
            more.rest();
            CHECK(host.info().resting == 2);
        }
        CHECK(host.info().resting == 1);
    });
}

TEST_CASE("a rest without a memory or an image is refused", "[rest]")
{
    Host host, other;
    Imaged memory(host), another(other);
    CHECK(hak_wasm_memory_rest(host, memory.p + 1, memory.image) == -1);
    CHECK(hak_wasm_memory_rest(host, nullptr, memory.image) == -1);
    CHECK(hak_wasm_memory_rest(host, memory.p, nullptr) == -1);
    CHECK(hak_wasm_memory_rest(host, memory.p, another.image) == -1);
    CHECK(hak_wasm_memory_wake(host, memory.p + 1) == -1);
    CHECK(hak_wasm_memory_wake(host, nullptr) == -1);
    CHECK(hak_wasm_memory_wake(host, another.p) == -1);
    CHECK(host.info().resting == 0);
}

TEST_CASE("growth that a reset cut off leaves no pages that nobody counts", "[rest]")
{
    each_kind([](Host &host) {
        constexpr size_t LARGE = 16 * MIB, MANY = 12;
        const size_t before = resident_of_process();
        std::vector<std::unique_ptr<Imaged>> memories;
        for (size_t i = 0; i < MANY; i++) {
            memories.push_back(std::make_unique<Imaged>(host, WASM_PAGE));
            char *p = memories.back()->p;
            REQUIRE(hak_wasm_memory_grow(host, p, LARGE) == 0);
            std::memset(p, 1, LARGE);
            REQUIRE(hak_wasm_memory_reset(host, p, memories.back()->image) == 0);
            CHECK(host.info().warm_bytes <= 4 * MIB);
        }
        CHECK(resident_of_process() < before + 16 * MIB);
        // A memory that grows a little finds the pages, and they are its own again.
        char *p = memories[0]->p;
        for (int i = 0; i < 5; i++) {
            REQUIRE(hak_wasm_memory_grow(host, p, 5 * WASM_PAGE) == 0);
            CHECK(is_zero(p + WASM_PAGE, 4 * WASM_PAGE));
            std::memset(p, 1, 5 * WASM_PAGE);
            REQUIRE(hak_wasm_memory_reset(host, p, memories[0]->image) == 0);
        }
        memories.clear();
        hak_wasm_host_trim(host);
        CHECK(host.info().warm_bytes == 0);
        CHECK(resident_of_process() < before + 8 * MIB);
    });
}

TEST_CASE("a small memory in a slot of a large one leaves no pages that nobody counts", "[rest]")
{
    each_kind([](Host &host) {
        constexpr size_t LARGE = 3 * MIB, MANY = 30;
        const size_t before = resident_of_process();
        std::vector<char *> small;
        for (size_t i = 0; i < MANY; i++) {
            char *p = new_memory(host, LARGE);
            std::memset(p, 1, LARGE);
            hak_wasm_memory_free(host, p);
            small.push_back(new_memory(host, WASM_PAGE));
            CHECK(is_zero(small.back(), WASM_PAGE));
            CHECK(host.info().warm_bytes <= 4 * MIB);
        }
        CHECK(resident_of_process() < before + 16 * MIB);
        for (char *p : small) {
            REQUIRE(hak_wasm_memory_grow(host, p, LARGE) == 0);
            CHECK(is_zero(p, LARGE));
            hak_wasm_memory_free(host, p);
        }
        hak_wasm_host_trim(host);
        CHECK(host.info().warm_bytes == 0);
    });
}
