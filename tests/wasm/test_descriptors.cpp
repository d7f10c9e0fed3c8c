// Programs that close the host's descriptors, as closefrom(3) does, and have other files under their numbers.
#include "wasm_test.h"

#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace test;

namespace
{

// fn(host) for each way to find written pages that this kernel has.
template <typename Fn>
void each_method(Fn fn)
{
    for (hak_wasm_dirty dirty : {HAK_WASM_DIRTY_SCAN, HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_DIRTY_COMPARE}) {
        HostOptions options;
        options.dirty = dirty;
        if (!has_method(options)) continue;
        INFO("method " << dirty);
        fn(options);
    }
}

std::vector<int> descriptors_of(const char *name)
{
    std::vector<int> found;
    for (int fd = 3; fd < 256; fd++) {
        char link[4096] = "";
        const std::string at = "/proc/self/fd/" + std::to_string(fd);
        if (readlink(at.c_str(), link, sizeof link - 1) > 0 && std::strstr(link, name) != nullptr)
            found.push_back(fd);
    }
    return found;
}

// The numbers of files with this name are /dev/zero's, which reads as a pagemap without pages; closed at the
// end.
struct Replaced {
    std::vector<int> numbers;
    explicit Replaced(const char *name) : numbers(descriptors_of(name))
    {
        const int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
        REQUIRE(zero >= 0);
        for (int fd : numbers)
            REQUIRE(dup2(zero, fd) == fd);
        close(zero);
    }
    Replaced(const Replaced &) = delete;
    Replaced &operator=(const Replaced &) = delete;
    // Whether they are as they were made.
    bool whole() const
    {
        struct stat zero, now;
        REQUIRE(stat("/dev/zero", &zero) == 0);
        for (int fd : numbers)
            if (fstat(fd, &now) != 0 || now.st_rdev != zero.st_rdev || now.st_ino != zero.st_ino)
                return false;
        return true;
    }
    ~Replaced()
    {
        for (int fd : numbers)
            close(fd);
    }
};

// No descriptor can be had.
struct NoneLeft {
    rlimit before;
    NoneLeft()
    {
        REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
        const rlimit none = {0, before.rlim_max};
        REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    }
    NoneLeft(const NoneLeft &) = delete;
    NoneLeft &operator=(const NoneLeft &) = delete;
    ~NoneLeft()
    {
        setrlimit(RLIMIT_NOFILE, &before);
    }
};

// A slot is used, freed and used again, and a memory is reset: nothing of what was before may be left.
void check_clean(hak_wasm_host *host)
{
    const size_t n = 4 * WASM_PAGE;
    auto *p = static_cast<char *>(hak_wasm_memory_new(host, n));
    std::memset(p + 5000, 7, 100);
    CHECK(hak_wasm_memory_free(host, p) == 0);
    REQUIRE(hak_wasm_memory_new(host, n) == p);
    CHECK(is_zero(p, n));
    CHECK(hak_wasm_memory_free(host, p) == 0);
}

void check_reset(hak_wasm_host *host, char *p, size_t n, hak_wasm_image *image)
{
    std::memset(p, 9, n);
    CHECK(hak_wasm_memory_reset(host, p, image) == 0);
    CHECK(p[0] == 1);
    CHECK(std::memcmp(p, p + 1, n - 1) == 0);
}

// Of the memory, filled with ones.
hak_wasm_image *image_of(hak_wasm_host *host, char *p, size_t n)
{
    std::memset(p, 1, n);
    hak_wasm_image *image = hak_wasm_image_take(host, p);
    REQUIRE(image != nullptr);
    return image;
}

} // namespace

TEST_CASE("the next tenant reads zero where the pagemap's number is another file's", "[descriptors]")
{
    each_method([](const HostOptions &options) {
        for (bool none_left : {false, true}) {
            INFO("none left " << none_left);
            hak_wasm_host *host = hak_wasm_host_new(&options);
            REQUIRE(host != nullptr);
            const size_t n = 2 * WASM_PAGE;
            auto *imaged = static_cast<char *>(hak_wasm_memory_new(host, n));
            hak_wasm_image *image = image_of(host, imaged, n);
            const Replaced replaced("/pagemap");
            CHECK(replaced.numbers.size() == (options.dirty == HAK_WASM_DIRTY_COMPARE ? 0 : 1));
            if (none_left) {
                const NoneLeft limit;
                check_clean(host);
                check_reset(host, imaged, n, image);
            }
            check_clean(host);
            check_reset(host, imaged, n, image);
            if (options.dirty != HAK_WASM_DIRTY_COMPARE) CHECK(descriptors_of("/pagemap").size() == 1);
            hak_wasm_memory_free(host, imaged);
            hak_wasm_image_drop(image);
            hak_wasm_host_delete(host);
            CHECK(replaced.whole());
            CHECK(descriptors_of("/pagemap").empty());
        }
    });
}

TEST_CASE("a host whose number of the pagemap is another file's ends without closing it", "[descriptors]")
{
    each_method([](const HostOptions &options) {
        hak_wasm_host *host = hak_wasm_host_new(&options);
        REQUIRE(host != nullptr);
        const Replaced replaced("/pagemap");
        hak_wasm_host_delete(host);
        CHECK(replaced.whole());
    });
}

TEST_CASE("no memory shows what has the number of an image's file", "[descriptors]")
{
    each_method([](const HostOptions &options) {
        Host host(&options);
        const size_t n = 2 * WASM_PAGE;
        auto *p = static_cast<char *>(hak_wasm_memory_new(host, n));
        hak_wasm_image *image = image_of(host, p, n);
        const Replaced replaced("hakmem-wasm-image");
        CHECK(replaced.numbers.size() == 1);
        check_reset(host, p, n, image); // it is attached already
        CHECK(hak_wasm_memory_adopt(host, image) == nullptr);
        auto *other = static_cast<char *>(hak_wasm_memory_new(host, n));
        std::memset(other, 3, n);
        CHECK(hak_wasm_memory_reset(host, other, image) == -1);
        CHECK(other[0] == 3);
        CHECK(std::memcmp(other, other + 1, n - 1) == 0);
        hak_wasm_memory_free(host, other);
        hak_wasm_memory_free(host, p);
        CHECK(hak_wasm_memory_adopt(host, image) == p); // a free slot that has it
        hak_wasm_memory_free(host, p);
        hak_wasm_image_drop(image);
        CHECK(replaced.whole());
    });
}
