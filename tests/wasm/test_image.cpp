// Images: reset is byte-equal by every method, slots never show what was written to an image's memory.
#include "wasm_test.h"

#include <fstream>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>

using namespace test;

namespace
{

struct Method {
    hak_wasm_dirty dirty;
    hak_wasm_bounds bounds;
};
const Method METHODS[] = {
    {HAK_WASM_DIRTY_SCAN, HAK_WASM_FLAT},    {HAK_WASM_DIRTY_SCAN, HAK_WASM_GUARD},
    {HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_FLAT}, {HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_GUARD},
    {HAK_WASM_DIRTY_COMPARE, HAK_WASM_FLAT}, {HAK_WASM_DIRTY_COMPARE, HAK_WASM_GUARD},
};

// fn(host) for every method that this kernel has.
template <typename Fn>
void each_method(Fn fn)
{
    for (const Method &m : METHODS) {
        HostOptions options;
        options.dirty = m.dirty;
        options.bounds = m.bounds;
        if (!has_method(options)) continue;
        INFO("method " << m.dirty << ", bounds " << m.bounds);
        Host host(&options);
        CHECK(host.info().dirty == m.dirty);
        fn(host);
    }
}

// A pattern with pages of zeros in it, so that the file has holes.
void fill(char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (i / 4096) % 3 == 1 ? 0 : char(i * seed + (i >> 12));
}

char *new_memory(hak_wasm_host *host, size_t n)
{
    char *p = static_cast<char *>(hak_wasm_memory_new(host, n));
    REQUIRE(p != nullptr);
    return p;
}

// A memory with a pattern, its bytes at that time, and its image.
struct Imaged {
    char *p;
    std::vector<char> then;
    hak_wasm_image *image;
};

Imaged new_imaged(hak_wasm_host *host, size_t n, unsigned seed)
{
    char *p = new_memory(host, n);
    fill(p, n, seed);
    std::vector<char> then(p, p + n);
    hak_wasm_image *image = hak_wasm_image_take(host, p);
    REQUIRE(image != nullptr);
    return {p, then, image};
}

} // namespace

TEST_CASE("a reset is byte-equal, a thousand times", "[image]")
{
    each_method([](Host &host) {
        const size_t n = 4 * WASM_PAGE;
        auto [p, then, image] = new_imaged(host, n, 7);
        CHECK(hak_wasm_image_size(image) == n);
        CHECK(std::equal(then.begin(), then.end(), p));
        unsigned random = 1;
        for (int round = 0; round < 1000; round++) {
            for (int i = 0; i < 20; i++) {
                random = random * 1103515245 + 12345;
                p[random % n] = char(random >> 20);
            }
            REQUIRE(hak_wasm_memory_reset(host, p, image) == 0);
            REQUIRE(std::memcmp(p, then.data(), n) == 0);
        }
        std::memset(p, 1, n);
        REQUIRE(hak_wasm_memory_reset(host, p, image) == 0);
        CHECK(std::memcmp(p, then.data(), n) == 0);
        CHECK(hak_wasm_memory_free(host, p) == 0);
        hak_wasm_image_drop(image);
        CHECK(host.info().image_bytes == 0);
    });
}

TEST_CASE("a memory that grew is cut off, and what it grows by again is zero", "[image]")
{
    each_method([](Host &host) {
        auto [p, then, image] = new_imaged(host, WASM_PAGE, 3);
        for (int round = 0; round < 3; round++) {
            REQUIRE(hak_wasm_memory_grow(host, p, 9 * WASM_PAGE) == 0);
            CHECK(is_zero(p + WASM_PAGE, 8 * WASM_PAGE));
            std::memset(p, 0x77, 9 * WASM_PAGE);
            REQUIRE(hak_wasm_memory_reset(host, p, image) == 0);
            CHECK(hak_wasm_memory_size(host, p) == WASM_PAGE);
            CHECK(std::memcmp(p, then.data(), WASM_PAGE) == 0);
        }
        CHECK(host.info().linear_bytes == WASM_PAGE);
        hak_wasm_image_drop(image); // memories attached to it live on
        CHECK(std::memcmp(p, then.data(), WASM_PAGE) == 0);
        CHECK(host.info().image_bytes == WASM_PAGE);
        hak_wasm_memory_free(host, p);
        CHECK(host.info().image_bytes == 0);
        char *q = new_memory(host, 9 * WASM_PAGE);
        CHECK(q == p);
        CHECK(is_zero(q, 9 * WASM_PAGE));
    });
}

TEST_CASE("other memories take the image on, and slots do not carry anything over", "[image]")
{
    each_method([](Host &host) {
        const size_t n = 3 * WASM_PAGE;
        auto [p, then, image] = new_imaged(host, n, 5);

        char *adopted = static_cast<char *>(hak_wasm_memory_adopt(host, image));
        REQUIRE(adopted != nullptr);
        CHECK(adopted != p);
        CHECK(std::memcmp(adopted, then.data(), n) == 0);
        std::memset(adopted, 0x55, n);
        CHECK(std::memcmp(p, then.data(), n) == 0);

        char *smaller = new_memory(host, WASM_PAGE), *larger = new_memory(host, 5 * WASM_PAGE);
        std::memset(larger, 0x33, 5 * WASM_PAGE);
        for (char *other : {smaller, larger}) {
            REQUIRE(hak_wasm_memory_reset(host, other, image) == 0);
            CHECK(hak_wasm_memory_size(host, other) == n);
            CHECK(std::memcmp(other, then.data(), n) == 0);
        }

        hak_wasm_memory_free(host, adopted);
        char *again = static_cast<char *>(hak_wasm_memory_adopt(host, image));
        CHECK(again == adopted); // a slot that had the image
        CHECK(std::memcmp(again, then.data(), n) == 0);
        hak_wasm_memory_free(host, again);
        char *plain = new_memory(host, n); // this one must not be it
        CHECK(is_zero(plain, n));

        std::memset(again = static_cast<char *>(hak_wasm_memory_adopt(host, image)), 0x11, n);
        hak_wasm_memory_free(host, again);
        hak_wasm_image_drop(image);
        char *zero = new_memory(host, n);
        CHECK(is_zero(zero, n));
        for (char *memory : {p, smaller, larger, plain, zero})
            CHECK(hak_wasm_memory_free(host, memory) == 0);
        CHECK(host.info().image_bytes == 0);
    });
}

TEST_CASE("another image may replace the one before", "[image]")
{
    each_method([](Host &host) {
        auto [p, first, big] = new_imaged(host, 4 * WASM_PAGE, 9);
        auto [q, second, small] = new_imaged(host, WASM_PAGE, 11);
        for (int i = 0; i < 3; i++) {
            REQUIRE(hak_wasm_memory_reset(host, p, small) == 0);
            CHECK(hak_wasm_memory_size(host, p) == WASM_PAGE);
            CHECK(std::memcmp(p, second.data(), WASM_PAGE) == 0);
            REQUIRE(hak_wasm_memory_grow(host, p, 2 * WASM_PAGE) == 0);
            CHECK(is_zero(p + WASM_PAGE, WASM_PAGE));
            std::memset(p, i + 1, 2 * WASM_PAGE);
            REQUIRE(hak_wasm_memory_reset(host, p, big) == 0);
            CHECK(std::memcmp(p, first.data(), 4 * WASM_PAGE) == 0);
        }
        // an image of a memory that is attached to one
        p[0] = 42;
        hak_wasm_image *third = hak_wasm_image_take(host, p);
        p[0] = 0;
        p[5000] = 1;
        REQUIRE(hak_wasm_memory_reset(host, p, third) == 0);
        CHECK(p[0] == 42);
        CHECK(std::memcmp(p + 1, first.data() + 1, 4 * WASM_PAGE - 1) == 0);
        for (hak_wasm_image *image : {big, small, third})
            hak_wasm_image_drop(image);
    });
}

TEST_CASE("a reset to a larger image is refused over the limit, and changes nothing", "[image]")
{
    Host host;
    char *p = new_memory(host, 4 * WASM_PAGE);
    fill(p, 4 * WASM_PAGE, 9);
    hak_wasm_image *image = hak_wasm_image_take(host, p);
    TenantOptions options;
    options.limits.linear_bytes = 2 * WASM_PAGE;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    {
        Scope scope(tenant);
        char *q = new_memory(host, WASM_PAGE);
        q[10] = 10;
        CHECK(hak_wasm_memory_reset(host, q, image) == -1);
        CHECK(hak_wasm_memory_size(host, q) == WASM_PAGE);
        CHECK(q[10] == 10);
        CHECK(hak_wasm_memory_adopt(host, image) == nullptr);
        CHECK(hak_wasm_memory_reset(host, p + 1, image) == -1);
        hak_wasm_memory_free(host, q);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_image_drop(image);
    hak_wasm_image_drop(nullptr);
    CHECK(hak_wasm_image_take(host, p + 1) == nullptr);
}

TEST_CASE("sizes need not be whole pages", "[image]")
{
    each_method([](Host &host) {
        const size_t n = 70001;
        auto [p, then, image] = new_imaged(host, n, 19);
        for (size_t larger : {n + 1, n + 3000, n + 20000}) {
            REQUIRE(hak_wasm_memory_grow(host, p, larger) == 0);
            CHECK(is_zero(p + n, larger - n));
            std::memset(p, 0x42, larger);
            REQUIRE(hak_wasm_memory_reset(host, p, image) == 0);
            CHECK(hak_wasm_memory_size(host, p) == n);
            CHECK(std::memcmp(p, then.data(), n) == 0);
        }
        char *adopted = static_cast<char *>(hak_wasm_memory_adopt(host, image));
        REQUIRE(hak_wasm_memory_grow(host, adopted, n + 5000) == 0);
        CHECK(is_zero(adopted + n, 5000));
        hak_wasm_memory_free(host, adopted);
        hak_wasm_memory_free(host, p);
        hak_wasm_image_drop(image);
        char *q = new_memory(host, n + 5000);
        CHECK(is_zero(q, n + 5000));
    });
}

TEST_CASE("an empty memory has an image, too", "[image]")
{
    each_method([](Host &host) {
        void *p = hak_wasm_memory_new(host, 0);
        hak_wasm_image *image = hak_wasm_image_take(host, p);
        REQUIRE(image != nullptr);
        REQUIRE(hak_wasm_memory_grow(host, p, WASM_PAGE) == 0);
        static_cast<char *>(p)[5] = 5;
        CHECK(hak_wasm_memory_reset(host, p, image) == 0);
        CHECK(hak_wasm_memory_size(host, p) == 0);
        CHECK(hak_wasm_memory_grow(host, p, WASM_PAGE) == 0);
        CHECK(is_zero(p, WASM_PAGE));
        hak_wasm_image_drop(image);
    });
}

// A page that the kernel took out (here: paged out to swap if there is any, dropped from the page tables if
// it is the file's) must be found written to, or found equal.
TEST_CASE("pages that the kernel paged out are restored and cleared", "[image]")
{
    each_method([](Host &host) {
        const size_t n = 4 * WASM_PAGE;
        auto [p, then, image] = new_imaged(host, n, 13);
        std::memset(p + 4096, 0x66, 8 * 4096);
        madvise(p, n, MADV_PAGEOUT);
        REQUIRE(hak_wasm_memory_reset(host, p, image) == 0);
        CHECK(std::memcmp(p, then.data(), n) == 0);
        char *q = new_memory(host, n);
        std::memset(q, 0x66, n);
        madvise(q, n, MADV_PAGEOUT);
        hak_wasm_memory_free(host, q);
        CHECK(new_memory(host, n) == q);
        CHECK(is_zero(q, n));
        hak_wasm_image_drop(image);
    });
}

TEST_CASE("a child process finds its own pages, not its parent's", "[image]")
{
    each_method([](Host &host) {
        const size_t n = 2 * WASM_PAGE;
        auto [p, then, image] = new_imaged(host, n, 17);
        CHECK(hak_wasm_memory_reset(host, p, image) == 0); // the pagemap is open
        pid_t child = fork();
        if (child == 0) {
            std::memset(p, 0x99, n);
            bool same = hak_wasm_memory_reset(host, p, image) == 0 && std::memcmp(p, then.data(), n) == 0;
            char *q = static_cast<char *>(hak_wasm_memory_new(host, n));
            std::memset(q, 0x99, n);
            hak_wasm_memory_free(host, q);
            same = same && hak_wasm_memory_new(host, n) == q && is_zero(q, n);
            _exit(same ? 0 : 1);
        }
        int status = -1;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
        hak_wasm_image_drop(image);
    });
}

TEST_CASE("untouched pages of an image are not copied", "[image]")
{
    Host host;
    if (host.info().dirty == HAK_WASM_DIRTY_COMPARE) return;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    const size_t n = 64 * WASM_PAGE;
    {
        Scope scope(tenant);
        char *p = new_memory(host, n);
        std::memset(p, 1, n);
        CHECK(hak_wasm_tenant_resident(tenant) == n);
        hak_wasm_image *image = hak_wasm_image_take(host, p);
        CHECK(hak_wasm_tenant_resident(tenant) == 0);
        unsigned sum = 0;
        for (size_t i = 0; i < n; i += 4096)
            sum += unsigned(p[i]);
        CHECK(sum == n / 4096);
        CHECK(hak_wasm_tenant_resident(tenant) == 0);
        p[0] = p[100000] = 2;
        CHECK(hak_wasm_tenant_resident(tenant) == 2 * 4096);
        hak_wasm_memory_free(host, p);
        hak_wasm_image_drop(image);
    }
    CHECK(hak_wasm_tenant_resident(tenant) == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("an image's pages are shared out among all memories that are attached to it", "[image]")
{
    Host host;
    hak_wasm_tenant *one = hak_wasm_tenant_new(host, nullptr), *two = hak_wasm_tenant_new(host, nullptr);
    const auto shares = [&] { return hak_wasm_tenant_proportional(one) + hak_wasm_tenant_proportional(two); };
    const size_t n = 6 * WASM_PAGE, own = host.info().dirty == HAK_WASM_DIRTY_COMPARE ? n : 0;
    hak_wasm_image *image = nullptr, *other = nullptr;
    char *first = nullptr, *of_two[2] = {};
    {
        Scope scope(one);
        first = new_memory(host, n);
        std::memset(first, 1, n);
        if (!own) CHECK(hak_wasm_tenant_proportional(one) == n);
        image = hak_wasm_image_take(host, first);
        REQUIRE(image != nullptr);
        CHECK(hak_wasm_tenant_resident(one) == own);
        CHECK(hak_wasm_tenant_proportional(one) == n + own);
    }
    {
        Scope scope(two);
        for (char *&p : of_two)
            REQUIRE((p = static_cast<char *>(hak_wasm_memory_adopt(host, image))) != nullptr);
        CHECK(hak_wasm_tenant_proportional(one) == n / 3 + own);
        CHECK(hak_wasm_tenant_proportional(two) == 2 * (n / 3 + own));
        CHECK(shares() == n + 3 * own);
        of_two[0][0] = 2;
        if (!own) CHECK(hak_wasm_tenant_proportional(two) == 2 * (n / 3) + 4096);
        for (hak_wasm_tenant *tenant : {one, two}) { // as statistics tell it
            CHECK(info_of(tenant).linear_resident == hak_wasm_tenant_resident(tenant));
            CHECK(info_of(tenant).linear_proportional == hak_wasm_tenant_proportional(tenant));
        }
        // Another image of the same memory takes the place of this one.
        other = hak_wasm_image_take(host, of_two[0]);
        REQUIRE(other != nullptr);
        CHECK(hak_wasm_tenant_proportional(one) == n / 2 + own);
        CHECK(hak_wasm_tenant_proportional(two) == n / 2 + n + 2 * own);
        REQUIRE(hak_wasm_memory_reset(host, of_two[0], image) == 0);
        CHECK(shares() == n + 3 * own);
    }
    hak_wasm_image_drop(other);
    // The image lives on with the memories.
    hak_wasm_image_drop(image);
    hak_wasm_memory_free(host, first);
    CHECK(hak_wasm_tenant_proportional(one) == 0);
    CHECK(hak_wasm_tenant_proportional(two) == n + 2 * own);
    for (char *p : of_two)
        hak_wasm_memory_free(host, p);
    CHECK(shares() == 0);
    hak_wasm_tenant_close(one, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(two, HAK_WASM_RETIRE);
}

TEST_CASE("locked pages do not keep what was written", "[image]")
{
    each_method([](Host &host) {
        const size_t n = 256 << 10;
        Imaged m = new_imaged(host, n, 3);
        char *other = new_memory(host, n);
        REQUIRE(hak_wasm_memory_reset(host, other, m.image) == 0);
        // As with mlockall() in the host.
        if (mlock(other, n) != 0) {
            WARN("no page may be locked here");
            return;
        }
        std::memset(other, 7, n);
        hak_wasm_memory_free(host, other);
        char *next = static_cast<char *>(hak_wasm_memory_adopt(host, m.image));
        REQUIRE(next != nullptr);
        CHECK(std::memcmp(next, m.then.data(), n) == 0);
        hak_wasm_memory_free(host, next);
        hak_wasm_memory_free(host, m.p);
        hak_wasm_image_drop(m.image);
    });
}
