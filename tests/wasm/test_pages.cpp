// Every n-th request for pages is refused under hosts without a runtime: what is refused is NULL or -1,
// nothing changes by it, nothing is left in the end.
#include "pages_test.h"

#include <thread>

using namespace test;

namespace
{

HostOptions options_of(hak_wasm_bounds bounds, size_t guard, hak_wasm_dirty dirty)
{
    HostOptions options;
    options.bounds = bounds;
    options.slot_bytes = MIB;
    options.guard_bytes = guard;
    options.extent_bytes = 2 * (MIB + guard); // two memories, so that there are several extents
    options.dirty = dirty;
    return options;
}

bool is(const char *p, size_t n, char value)
{
    return n == 0 || (*p == value && std::memcmp(p, p + 1, n - 1) == 0);
}

struct Memory {
    hak_wasm_host *host;
    char *p;
    size_t size;
    char value;

    bool holds(Course *course, const char *what) const
    {
        const bool right = hak_wasm_memory_size(host, p) == size && is(p, size, value);
        course->require(right, what);
        return right;
    }
    void grow(size_t bytes, Course *course)
    {
        const bool grown = hak_wasm_memory_grow(host, p, bytes) == 0;
        course->need(grown);
        if (!grown) return;
        course->require(is(p + size, bytes - size, 0), "what grew is not zero");
        size = bytes;
        std::memset(p, value, size);
    }
};

void use_memories(hak_wasm_host *host, Course *course)
{
    std::vector<Memory> memories;
    for (char value = 1; value <= 5; value++) {
        auto *p = static_cast<char *>(hak_wasm_memory_new(host, 2 * WASM_PAGE));
        course->need(p);
        if (!p) continue;
        course->require(is(p, 2 * WASM_PAGE, 0), "a new memory is not zero");
        std::memset(p, value, 2 * WASM_PAGE);
        memories.push_back({host, p, 2 * WASM_PAGE, value});
    }
    hak_wasm_image *image = memories.empty() ? nullptr : hak_wasm_image_take(host, memories[0].p);
    course->need(image);
    const char of_image = memories.empty() ? char(0) : memories[0].value;
    for (Memory &m : memories)
        m.grow(4 * WASM_PAGE, course);
    for (const Memory &m : memories)
        m.holds(course, "after growth, refused or not");
    // The last one comes from a larger image of its own: its pages are replaced twice.
    hak_wasm_image *larger = memories.size() < 2 ? nullptr : hak_wasm_image_take(host, memories.back().p);
    course->need(larger);
    for (Memory &m : memories) {
        if (!image) break;
        if (hak_wasm_memory_reset(host, m.p, image) == 0) {
            m.size = 2 * WASM_PAGE;
            m.value = of_image;
        } else {
            course->need(false);
            if (larger && &m == &memories.back() && is(m.p, m.size, 0)) m.value = 0; // as the header says
        }
        m.holds(course, "after a reset, refused or not");
    }
    if (image) {
        auto *p = static_cast<char *>(hak_wasm_memory_adopt(host, image));
        course->need(p);
        if (p) memories.push_back({host, p, 2 * WASM_PAGE, of_image});
        if (p) memories.back().holds(course, "of an image");
    }
    for (const Memory &m : memories)
        course->require(hak_wasm_memory_free(host, m.p) == 0, "a memory is not freed");
    hak_wasm_image_drop(larger);
    hak_wasm_image_drop(image);
}

void use_blocks(hak_wasm_host *host, Course *course)
{
    struct Block {
        char *p;
        size_t n;
        char value;
    };
    std::vector<Block> blocks;
    const size_t sizes[] = {16, 100, 1000, 5000, 40 * KIB, 300 * KIB, 1100 * KIB};
    for (size_t i = 0; i < 14; i++) {
        const size_t n = sizes[i % 7];
        auto *p = static_cast<char *>(i % 2 ? hak_wasm_alloc(host, n) : hak_wasm_calloc(host, 1, n));
        course->need(p);
        if (!p) continue;
        if (i % 2 == 0) course->require(is(p, n, 0), "calloc");
        std::memset(p, int(i), n);
        blocks.push_back({p, n, char(i)});
    }
    for (Block &b : blocks) {
        auto *p = static_cast<char *>(hak_wasm_realloc(host, b.p, b.n + b.n / 2));
        course->need(p);
        if (p) b.p = p;
    }
    for (const Block &b : blocks) {
        course->require(is(b.p, b.n, b.value), "a block holds what it held");
        hak_wasm_free(host, b.p);
    }
}

void serve(hak_wasm_host *host, hak_wasm_close how, Course *course)
{
    TenantOptions options;
    options.limits.linear_bytes = 64 * WASM_PAGE;
    options.children = true;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    course->need(tenant);
    if (!tenant) return;
    {
        Scope scope(tenant);
        use_memories(host, course);
        use_blocks(host, course);
    }
    hak_wasm_tenant_info info = {};
    info.size = sizeof info;
    hak_wasm_tenant_stats(tenant, &info);
    course->require(info.heap_live == 0, "something is left");
    // An image whose mapping the system did not let go of is there, and charged.
    course->require(info.linear_bytes == info.image_bytes, "linear bytes are left");
    hak_wasm_tenant_close(tenant, how);
    hak_wasm_host_tick(host, 0);
}

Course live(const HostOptions &options, Refusal &refusal, int threads)
{
    Course course;
    hak_wasm_host *host = hak_wasm_host_new(&options);
    course.need(host);
    if (!host) return course;
    std::vector<Course> courses(static_cast<size_t>(threads));
    std::vector<std::thread> others;
    for (Course &c : courses)
        others.emplace_back([&c, host] { serve(host, HAK_WASM_RETIRE, &c); });
    for (std::thread &t : others)
        t.join();
    serve(host, HAK_WASM_BULK, &course);
    for (const Course &c : courses)
        course.add(c);
    if (!refusal.lasts) {
        refusal.end();
        Course again;
        serve(host, HAK_WASM_RETIRE, &again);
        again.require(again.whole, "the host does not recover");
        hak_wasm_host_trim(host);
        require_empty(host, &again);
        again.whole = true;
        course.add(again);
    }
    hak_wasm_host_delete(host);
    return course;
}

} // namespace

TEST_CASE("every request for pages of a host is refused once", "[pages]")
{
    for (hak_wasm_dirty dirty : {HAK_WASM_DIRTY_AUTO, HAK_WASM_DIRTY_COMPARE}) {
        for (const HostOptions &options :
             {options_of(HAK_WASM_FLAT, 0, dirty), options_of(HAK_WASM_FLAT, WASM_PAGE, dirty),
              options_of(HAK_WASM_GUARD, WASM_PAGE, dirty)}) {
            INFO("bounds " << options.bounds << ", guards of " << options.guard_bytes << ", dirty " << dirty);
            CHECK(each_request([&](Refusal &refusal) { return live(options, refusal, 0); }) > 20);
        }
    }
}

TEST_CASE("requests for pages of a host with three threads are refused", "[pages]")
{
    const HostOptions options = options_of(HAK_WASM_GUARD, WASM_PAGE, HAK_WASM_DIRTY_AUTO);
    CHECK(each_request([&](Refusal &refusal) { return live(options, refusal, 2); }) > 20);
}
