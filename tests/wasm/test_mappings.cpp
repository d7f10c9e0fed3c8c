// Mappings of the process: slots are used again whatever image they had, what a host counts is what the
// system has, and beyond the limit there is an error and not a process that can start no thread.
#include "wasm_test.h"

#include <random>

using namespace test;

namespace
{

size_t mappings_of_process()
{
    FILE *maps = std::fopen("/proc/self/maps", "r");
    REQUIRE(maps != nullptr);
    size_t n = 0;
    for (int c; (c = std::getc(maps)) != EOF;)
        n += c == '\n';
    std::fclose(maps);
    return n;
}

HostOptions options_of(hak_wasm_bounds bounds, size_t mappings = 0)
{
    HostOptions options;
    options.bounds = bounds;
    options.slot_bytes = 16 * MIB;
    options.mappings = mappings;
    return options;
}

} // namespace

TEST_CASE("memories that are reset to an image and freed do not use up the process' mappings", "[mappings]")
{
    for (hak_wasm_bounds bounds : {HAK_WASM_FLAT, HAK_WASM_GUARD}) {
        const HostOptions options = options_of(bounds);
        Host host(&options);
        void *first = hak_wasm_memory_new(host, 4 * WASM_PAGE);
        std::memset(first, 1, WASM_PAGE);
        std::vector<hak_wasm_image *> images;
        for (int i = 0; i < 3; i++)
            images.push_back(hak_wasm_image_take(host, first));
        const size_t before = mappings_of_process();
        for (size_t i = 0; i < 2000; i++) {
            char *p = static_cast<char *>(hak_wasm_memory_new(host, 4 * WASM_PAGE));
            REQUIRE(p != nullptr);
            REQUIRE(is_zero(p, 4 * WASM_PAGE));
            p[i % WASM_PAGE] = 2;
            REQUIRE(hak_wasm_memory_reset(host, p, images[i % 3]) == 0);
            REQUIRE(p[i % WASM_PAGE] == 1);
            p[i % WASM_PAGE] = 3;
            REQUIRE(hak_wasm_memory_free(host, p) == 0);
        }
        CHECK(host.info().warm <= 16);
        CHECK(mappings_of_process() < before + 64);
        // images of which there are many at once, one after the other
        std::vector<hak_wasm_image *> many;
        for (int i = 0; i < 40; i++)
            many.push_back(hak_wasm_image_take(host, first));
        for (size_t i = 0; i < 2000; i++) {
            auto *p = static_cast<char *>(hak_wasm_memory_adopt(host, many[i % many.size()]));
            REQUIRE(p != nullptr);
            REQUIRE(p[0] == 1);
            REQUIRE(hak_wasm_memory_free(host, p) == 0);
        }
        CHECK(host.info().warm <= 16);
        for (hak_wasm_image *image : many)
            hak_wasm_image_drop(image);
        for (hak_wasm_image *image : images)
            hak_wasm_image_drop(image);
    }
}

TEST_CASE("a few images of which memories are made in turns keep their slots", "[mappings]")
{
    const HostOptions options = options_of(HAK_WASM_GUARD);
    Host host(&options);
    std::vector<hak_wasm_image *> images;
    std::vector<void *> last;
    for (int i = 0; i < 4; i++) {
        last.push_back(hak_wasm_memory_new(host, WASM_PAGE));
        images.push_back(hak_wasm_image_take(host, last.back()));
    }
    for (void *p : last)
        hak_wasm_memory_free(host, p);
    for (size_t i = 0; i < 100; i++) {
        void *p = hak_wasm_memory_adopt(host, images[i % 4]);
        CHECK(p == last[i % 4]);
        hak_wasm_memory_free(host, p);
    }
    for (hak_wasm_image *image : images)
        hak_wasm_image_drop(image);
}

TEST_CASE("there are no more memories and images than the host may have mappings", "[mappings]")
{
    const size_t most = 120;
    const HostOptions options = options_of(HAK_WASM_GUARD, most);
    Host host(&options);
    const size_t before = mappings_of_process();
    std::vector<char *> memories;
    while (auto *p = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE)))
        memories.push_back(p);
    CHECK(memories.size() == 59); // and two for the extent
    CHECK(host.info().mappings == most);
    CHECK(mappings_of_process() <= before + most);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 59 * WASM_PAGE);

    // an image needs one for itself and one for the memory
    std::memset(memories[0], 7, WASM_PAGE);
    CHECK(hak_wasm_image_take(host, memories[0]) == nullptr);
    CHECK(hak_wasm_memory_free(host, memories.back()) == 0);
    memories.pop_back();
    hak_wasm_image *image = hak_wasm_image_take(host, memories[0]);
    REQUIRE(image != nullptr);
    CHECK(host.info().mappings == most);
    std::memset(memories[1], 8, WASM_PAGE);
    CHECK(hak_wasm_memory_reset(host, memories[1], image) == -1);
    CHECK(memories[1][0] == 8);
    CHECK(hak_wasm_memory_size(host, memories[1]) == WASM_PAGE);
    CHECK(hak_wasm_memory_adopt(host, image) == nullptr);
    CHECK(hak_wasm_memory_grow(host, memories[1], 2 * WASM_PAGE) == 0);
    CHECK(hak_wasm_memory_reset(host, memories[0], image) == 0);

    // free slots give theirs back, warm ones with an image too
    for (int i = 0; i < 3; i++) {
        CHECK(hak_wasm_memory_free(host, memories.back()) == 0);
        memories.pop_back();
    }
    char *adopted = static_cast<char *>(hak_wasm_memory_adopt(host, image));
    REQUIRE(adopted != nullptr);
    CHECK(adopted[5] == 7);
    CHECK(hak_wasm_memory_free(host, adopted) == 0);
    while (auto *p = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE))) {
        CHECK(is_zero(p, WASM_PAGE));
        memories.push_back(p);
    }
    CHECK(memories.size() == 58);
    CHECK(mappings_of_process() <= before + most);
    for (char *p : memories)
        CHECK(hak_wasm_memory_free(host, p) == 0);
    hak_wasm_image_drop(image);
}

TEST_CASE("a flat host counts images and guards", "[mappings]")
{
    HostOptions options = options_of(HAK_WASM_FLAT, 40);
    {
        Host host(&options);
        std::vector<void *> memories;
        for (int i = 0; i < 100; i++)
            memories.push_back(hak_wasm_memory_new(host, WASM_PAGE));
        CHECK(memories.back() != nullptr); // none of its own each
        std::vector<hak_wasm_image *> images;
        while (hak_wasm_image *image = hak_wasm_image_take(host, memories[images.size()]))
            images.push_back(image);
        CHECK(images.size() == 12);
        for (hak_wasm_image *image : images)
            hak_wasm_image_drop(image);
    }
    options.guard_bytes = WASM_PAGE;
    Host host(&options);
    size_t n = 0;
    while (hak_wasm_memory_new(host, WASM_PAGE) != nullptr)
        n++;
    CHECK(n == 19);
}

TEST_CASE("hosts without a number share half of what the system grants", "[mappings]")
{
    HostOptions options = options_of(HAK_WASM_GUARD);
    options.slot_bytes = WASM_PAGE;
    options.guard_bytes = WASM_PAGE;
    size_t granted = 0;
    FILE *file = std::fopen("/proc/sys/vm/max_map_count", "r");
    REQUIRE(file != nullptr);
    REQUIRE(std::fscanf(file, "%zu", &granted) == 1);
    std::fclose(file);
    if (granted > 100000) return; // it takes too long
    Host one(&options), two(&options);
    size_t n = 0;
    for (hak_wasm_host *host : {one.host, two.host})
        while (n < granted && hak_wasm_memory_new(host, 4096) != nullptr)
            n++;
    CHECK(n <= granted / 4);
    CHECK(n >= granted / 4 - 8);
    CHECK(one.info().mappings + two.info().mappings <= granted / 2);
}

TEST_CASE("a host counts the mappings that it makes", "[mappings]")
{
    for (hak_wasm_bounds bounds : {HAK_WASM_FLAT, HAK_WASM_GUARD}) {
        for (uint32_t seed = 1; seed <= 4; seed++) {
            INFO("bounds " << bounds << ", seed " << seed);
            HostOptions options = options_of(bounds, 400);
            if (seed % 2 == 0) options.warm_bytes = HAK_NONE;
            Host host(&options);
            std::mt19937 random(seed);
            std::vector<char *> memories;
            std::vector<hak_wasm_image *> images;
            const size_t before = mappings_of_process();
            size_t excess = 0;
            for (int i = 0; i < 4000; i++) {
                const size_t bytes = random() % 6 * WASM_PAGE;
                const size_t at = memories.empty() ? 0 : random() % memories.size();
                char *p = memories.empty() ? nullptr : memories[at];
                switch (random() % 8) {
                case 0:
                case 1:
                    p = static_cast<char *>(hak_wasm_memory_new(host, bytes));
                    if (p != nullptr) memories.push_back(p);
                    break;
                case 2:
                    if (p == nullptr || images.size() > 20) break;
                    if (hak_wasm_image *image = hak_wasm_image_take(host, p)) images.push_back(image);
                    break;
                case 3:
                    if (p != nullptr && !images.empty())
                        hak_wasm_memory_reset(host, p, images[random() % images.size()]);
                    break;
                case 4:
                    if (images.empty()) break;
                    p = static_cast<char *>(hak_wasm_memory_adopt(host, images[random() % images.size()]));
                    if (p != nullptr) memories.push_back(p);
                    break;
                case 5:
                    if (p != nullptr)
                        hak_wasm_memory_grow(host, p, hak_wasm_memory_size(host, p) + WASM_PAGE);
                    break;
                case 6:
                    if (i % 20 == 0 && !images.empty()) {
                        hak_wasm_image_drop(images.back());
                        images.pop_back();
                    }
                    if (i % 50 == 0) hak_wasm_host_trim(host);
                    [[fallthrough]];
                default:
                    if (p == nullptr || random() % 4 == 0) break;
                    REQUIRE(hak_wasm_memory_free(host, p) == 0);
                    memories.erase(memories.begin() + std::ptrdiff_t(at));
                    break;
                }
                for (char *memory : memories) {
                    const size_t n = hak_wasm_memory_size(host, memory);
                    if (n > 0 && random() % 4 == 0) memory[random() % n] = char(i);
                }
                if (i % 40 != 0) continue;
                const size_t now = mappings_of_process(), counted = host.info().mappings;
                REQUIRE(counted <= 400);
                if (now > before + counted) excess = std::max(excess, now - before - counted);
            }
            CHECK(excess <= 25); // neighbours that the system does not join again
            for (hak_wasm_image *image : images)
                hak_wasm_image_drop(image);
        }
    }
}
