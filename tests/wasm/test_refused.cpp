// A kernel that takes no pages back, as under a filter of system calls: what was written goes all the same.
// One before Linux 6.7, which has no shared mapping of a sealed file. One that has no further mapping. The
// linker puts functions that refuse before libc's.
#include "wasm_test.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <thread>

using namespace test;

extern "C" {
int __real_madvise(void *p, size_t n, int advice);
int __wrap_madvise(void *p, size_t n, int advice);
void *__real_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
int __real_mprotect(void *p, size_t n, int prot);
int __wrap_mprotect(void *p, size_t n, int prot);
}

namespace
{

int refused = -1;                // calls; -1 = none is refused
bool before_6_7 = false;         // as the kernel was then
int protections = -1;            // until one is refused; -1 = none is
std::function<void()> meanwhile; // runs within the next one, which is refused

struct Refusal {
    Refusal()
    {
        refused = 0;
    }
    Refusal(const Refusal &) = delete;
    Refusal &operator=(const Refusal &) = delete;
    ~Refusal()
    {
        refused = -1;
    }
};

// fn(host) for each way to find written pages that this kernel has, flat and with guards.
template <typename Fn>
void each_host(size_t warm_bytes, Fn fn)
{
    for (hak_wasm_dirty dirty : {HAK_WASM_DIRTY_SCAN, HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_DIRTY_COMPARE}) {
        for (hak_wasm_bounds bounds : {HAK_WASM_FLAT, HAK_WASM_GUARD}) {
            HostOptions options;
            options.dirty = dirty;
            options.bounds = bounds;
            options.warm_bytes = warm_bytes;
            if (!has_method(options)) continue;
            INFO("method " << dirty << ", bounds " << bounds);
            Host host(&options);
            fn(host);
        }
    }
}

char *new_memory(hak_wasm_host *host, size_t n)
{
    char *p = static_cast<char *>(hak_wasm_memory_new(host, n));
    REQUIRE(p != nullptr);
    return p;
}

} // namespace

int __wrap_madvise(void *p, size_t n, int advice)
{
    if (refused < 0) return __real_madvise(p, n, advice);
    refused++;
    errno = EPERM;
    return -1;
}

void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
    if (before_6_7 && fd >= 0 && (flags & MAP_TYPE) == MAP_SHARED) {
        const int seals = fcntl(fd, F_GET_SEALS);
        if (seals > 0 && (seals & F_SEAL_WRITE)) {
            errno = EPERM;
            return MAP_FAILED;
        }
    }
    return __real_mmap(p, n, prot, flags, fd, at);
}

int __wrap_mprotect(void *p, size_t n, int prot)
{
    if (protections == 0 || meanwhile) {
        const std::function<void()> fn = std::move(meanwhile);
        meanwhile = nullptr;
        if (fn) fn();
        errno = ENOMEM;
        return -1;
    }
    if (protections > 0) protections--;
    return __real_mprotect(p, n, prot);
}

TEST_CASE("a slot that was larger once goes cold where no pages are taken back", "[refused]")
{
    for (size_t warm_bytes : {size_t(0), HAK_NONE}) {
        each_host(warm_bytes, [](Host &host) {
            const size_t large = 8 * WASM_PAGE, small = WASM_PAGE;
            char *p = new_memory(host, large);
            std::memset(p, 1, large);
            hak_wasm_memory_free(host, p);
            REQUIRE(new_memory(host, small) == p); // the rest is closed on a host with guards
            std::memset(p, 2, small);
            const Refusal refusal;
            hak_wasm_memory_free(host, p);
            hak_wasm_host_trim(host);
            CHECK(refused > 0);
            CHECK(host.info().warm == 0);
            REQUIRE(new_memory(host, large) == p);
            CHECK(is_zero(p, large));
            hak_wasm_memory_free(host, p);
        });
    }
}

TEST_CASE("a slot of an image holds the image again where no pages are taken back", "[refused]")
{
    each_host(0, [](Host &host) {
        const size_t n = 4 * WASM_PAGE, more = 2 * WASM_PAGE;
        char *p = new_memory(host, n);
        for (size_t i = 0; i < n; i++)
            p[i] = i / 4096 % 3 == 1 ? 0 : char(i * 7 + 1);
        const std::vector<char> then(p, p + n);
        hak_wasm_image *image = hak_wasm_image_take(host, p);
        REQUIRE(image != nullptr);
        const Refusal refusal;
        for (int i = 0; i < 3; i++) {
            std::memset(p, 7, n);
            if (i == 1) {
                REQUIRE(hak_wasm_memory_grow(host, p, n + more) == 0);
                CHECK(is_zero(p + n, more));
                std::memset(p + n, 7, more);
                REQUIRE(hak_wasm_memory_reset(host, p, image) == 0);
                CHECK(std::memcmp(p, then.data(), n) == 0);
                std::memset(p, 7, n);
            }
            hak_wasm_memory_free(host, p);
            REQUIRE(hak_wasm_memory_adopt(host, image) == p);
            CHECK(std::memcmp(p, then.data(), n) == 0);
        }
        hak_wasm_memory_free(host, p);
        hak_wasm_image_drop(image);
        REQUIRE(new_memory(host, n + more) == p);
        CHECK(is_zero(p, n + more));
        hak_wasm_memory_free(host, p);
    });
}

TEST_CASE("pages that are not taken back count as warm", "[refused]")
{
    HostOptions options;
    options.dirty = HAK_WASM_DIRTY_COMPARE;
    Host host(&options);
    const size_t n = 4 * WASM_PAGE;
    char *p = new_memory(host, n), *q = new_memory(host, n);
    std::memset(p, 3, n);
    hak_wasm_image *image = hak_wasm_image_take(host, p);
    REQUIRE(image != nullptr);
    std::memset(p, 4, n);
    std::memset(q, 4, n);
    const Refusal refusal;
    hak_wasm_memory_free(host, p);
    CHECK(host.info().warm_bytes == n);
    hak_wasm_memory_free(host, q);
    CHECK(host.info().warm_bytes == 2 * n);
    hak_wasm_image_drop(image);
}

TEST_CASE("there are images and resets where sealed files have no shared mappings", "[refused]")
{
    each_host(0, [](Host &host) {
        const size_t n = 4 * WASM_PAGE;
        char *p = new_memory(host, n);
        std::memset(p + WASM_PAGE, 1, 2 * WASM_PAGE);
        const std::vector<char> then(p, p + n);
        before_6_7 = true;
        hak_wasm_image *image = hak_wasm_image_take(host, p);
        before_6_7 = false;
        REQUIRE(image != nullptr);
        std::memset(p, 2, n);
        CHECK(hak_wasm_memory_reset(host, p, image) == 0);
        CHECK(std::memcmp(p, then.data(), n) == 0);
        hak_wasm_memory_free(host, p);
        hak_wasm_image_drop(image);
    });
}

TEST_CASE("a host with guards between slots has as many as it has mappings for", "[refused]")
{
    HostOptions options;
    options.slot_bytes = MIB;
    options.guard_bytes = WASM_PAGE; // 240,000 guards in an extent
    Host host(&options);
    std::vector<char *> memories;
    protections = 100;
    while (auto *p = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE)))
        memories.push_back(p);
    CHECK(memories.size() == 100); // each is opened between pages that stay closed
    CHECK(hak_wasm_memory_new(host, WASM_PAGE) == nullptr);
    if (!memories.empty()) {
        CHECK(hak_wasm_memory_free(host, memories.back()) == 0);
        CHECK(hak_wasm_memory_new(host, WASM_PAGE) == memories.back());
    }
    protections = -1;
    auto *next = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE));
    REQUIRE(next != nullptr);
    memories.push_back(next);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const auto readable = [&](const char *p) { return write(ends[1], p, 1) == 1; };
    for (const char *p : memories) {
        CHECK_FALSE(readable(p - 1));
        CHECK_FALSE(readable(p - WASM_PAGE));
        CHECK(readable(p));
        CHECK(readable(p + MIB - 1));
        CHECK_FALSE(readable(p + MIB));
        CHECK_FALSE(readable(p + MIB + WASM_PAGE - 1));
    }
    close(ends[0]);
    close(ends[1]);
    for (char *p : memories)
        CHECK(hak_wasm_memory_free(host, p) == 0);
}

TEST_CASE("what a memory would take that there is no mapping for, others are not refused", "[refused]")
{
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    options.limits.linear_bytes = 4 * WASM_PAGE;
    Host host(&options);
    hak_wasm_tenant *big = hak_wasm_tenant_new(host, nullptr), *small = hak_wasm_tenant_new(host, nullptr);
    std::atomic<int> result{1}; // of the other's request, which comes while the big one is not decided
    std::thread other;
    meanwhile = [&] {
        other = std::thread([&] { result = hak_wasm_charge(small, 2 * WASM_PAGE); });
        for (int i = 0; i < 100 && result == 1; i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    {
        Scope scope(big);
        CHECK(hak_wasm_memory_new(host, 3 * WASM_PAGE) == nullptr);
    }
    other.join();
    CHECK(result == 0);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 2 * WASM_PAGE);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_refused == 0);
    hak_wasm_tenant_close(big, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(small, HAK_WASM_BULK);
}
