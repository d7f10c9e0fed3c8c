// hakmem.hpp with exceptions: contexts, label scopes, resources, allocators.
#include "heap.h"

#include <hakmem/hakmem.hpp>

#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

using namespace test;

namespace
{

size_t bytes_of(hak::context &ctx, hak_label label)
{
    hak_label_info info;
    REQUIRE(hak_label_stats(ctx.get(), label, &info) == 0);
    return info.live_bytes;
}

struct alignas(64) Wide {
    char bytes[64];
};

} // namespace

TEST_CASE("C++: a context ends with its object, and moves")
{
    TestSpace t;
    {
        hak::context a(t.space);
        REQUIRE(a.ok());
        void *p = a.allocate(100);
        REQUIRE(p);
        CHECK(hak_owns(a.get(), p));
        hak_ctx *inner = a.get();
        hak::context b(std::move(a));
        CHECK_FALSE(a.ok());
        CHECK(a.get() == nullptr);
        CHECK(a.allocate(1) == nullptr);
        CHECK(a.live_bytes() == 0);
        CHECK(b.get() == inner);
        hak::context c(t.space);
        void *old = c.allocate(1);
        c = std::move(b);
        CHECK(c.get() == inner);
        CHECK_FALSE(hak_ctx_of(t.space, old));
        p = c.reallocate(p, 5000);
        REQUIRE(p);
        const size_t before = c.live_bytes();
        CHECK(c.stats().live_bytes == before);
        c.deallocate(p);
        CHECK(c.live_bytes() <= before - 5000);
    }
    CHECK(hak_ctx_of(t.space, &t) == nullptr);
}

TEST_CASE("C++: a context that is released stays, with the resources on it")
{
    TestSpace t;
    hak_ctx *ctx = nullptr;
    {
        hak::context a(t.space);
        hak::resource r(a);
        std::pmr::vector<int> numbers(100, 1, &r);
        ctx = a.release();
        CHECK_FALSE(a.ok());
        CHECK(a.release() == nullptr);
        numbers.resize(1000);
        CHECK(hak_owns(ctx, numbers.data()));
    }
    void *p = hak_alloc(ctx, 10);
    CHECK(hak_ctx_of(t.space, p) == ctx);
    hak_ctx_destroy(ctx);
}

TEST_CASE("C++: broken options and no memory give a context that is not")
{
    TestSpace t;
    hak_options options = HAK_OPTIONS_INIT;
    options.debug = 1u << 20;
    hak::context broken(t.space, &options);
    CHECK_FALSE(broken.ok());
    hak::resource memory(broken);
    CHECK_THROWS_AS(memory.allocate(1), std::bad_alloc);
    CHECK(broken.label("x") == 0);
    CHECK_FALSE(broken.limit(1));

    for (uint64_t n = 1; n < 6; n++) {
        TestSpace s;
        s.os.fail_nth(n);
        hak::context ctx(s.space);
        void *p = ctx.allocate(10);
        CHECK((p != nullptr) <= ctx.ok());
    }
}

TEST_CASE("C++: label scopes nest, and end")
{
    TestSpace t;
    hak::context ctx(t.space);
    const hak_label a = ctx.label("a"), b = ctx.label("b");
    REQUIRE(a != b);
    auto label = [&] { return hak_label_of(ctx.get(), ctx.allocate(24)); };
    CHECK(label() == 0);
    {
        hak::label_scope outer(ctx, a);
        CHECK(label() == a);
        {
            hak::label_scope inner(ctx, b);
            CHECK(label() == b);
        }
        CHECK(label() == a);
        void *p = ctx.reallocate(nullptr, 24);
        CHECK(hak_label_of(ctx.get(), p) == a);
        {
            hak::label_scope inner(ctx, b);
            CHECK(hak_label_of(ctx.get(), ctx.reallocate(p, 5000)) == a);
        }
        hak::resource memory(ctx), own(ctx, b);
        CHECK(hak_label_of(ctx.get(), memory.allocate(40)) == a);
        CHECK(hak_label_of(ctx.get(), own.allocate(40)) == b);
    }
    CHECK(label() == 0);
}

TEST_CASE("C++: containers of std::pmr")
{
    TestSpace t;
    hak::context ctx(t.space);
    const size_t empty = ctx.stats().live_bytes;
    const hak_label rows = ctx.label("rows"), names = ctx.label("names");
    hak::resource memory(ctx, rows), other(ctx, names);
    {
        std::pmr::vector<std::pmr::string> list(&memory);
        for (int i = 0; i < 1000; i++)
            list.emplace_back("a string that is too long to be kept inside: " + std::to_string(i));
        std::pmr::map<int, std::pmr::string> map(&other);
        for (int i = 0; i < 1000; i++)
            map.emplace(i, list[(size_t)i]);
        CHECK(bytes_of(ctx, rows) > 1000 * (48 + sizeof(std::pmr::string)));
        CHECK(bytes_of(ctx, names) > 1000 * (48 + sizeof(std::pmr::string)));
        CHECK(map.at(999) == list[999]);
        // Of one context: moved, not copied.
        std::pmr::vector<std::pmr::string> moved(std::move(list), &other);
        CHECK(list.empty());
        CHECK(moved.size() == 1000);
        require_sound(ctx.get());
    }
    CHECK(bytes_of(ctx, rows) == 0);
    CHECK(bytes_of(ctx, names) == 0);
    CHECK(ctx.stats().live_bytes == empty);
    hak::context second(t.space);
    hak::resource foreign(second);
    CHECK(memory == other);
    CHECK_FALSE(memory == foreign);
    CHECK_FALSE(memory == *std::pmr::new_delete_resource());
}

TEST_CASE("C++: the allocator, for any alignment")
{
    TestSpace t;
    hak::context ctx(t.space);
    const size_t empty = ctx.stats().live_bytes;
    {
        hak::allocator<int> ints(ctx);
        std::vector<int, hak::allocator<int>> v(ints);
        for (int i = 0; i < 10000; i++)
            v.push_back(i);
        CHECK(v[9999] == 9999);
        std::list<Wide, hak::allocator<Wide>> wide(5, Wide{}, ints);
        for (Wide &w : wide)
            CHECK(reinterpret_cast<uintptr_t>(&w) % 64 == 0);
        std::vector<long double, hak::allocator<long double>> numbers(3, 1.0L, ints);
        CHECK(reinterpret_cast<uintptr_t>(numbers.data()) % alignof(long double) == 0);
        std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
                           hak::allocator<std::pair<const int, int>>>
            hash(10, std::hash<int>(), std::equal_to<int>(), ints);
        hash[3] = 4;
        auto shared = std::allocate_shared<std::string>(ints, "text");
        CHECK(*shared == "text");
        CHECK(hak_owns(ctx.get(), shared.get()));
        auto copy = v;
        CHECK(copy == v);
        require_sound(ctx.get());
    }
    CHECK(ctx.stats().live_bytes == empty);
    hak::resource memory(ctx);
    for (size_t align = 1; align <= 8192; align *= 2)
        for (size_t n :
             {size_t(0), size_t(1), size_t(8), size_t(16), size_t(24), size_t(1000), size_t(100000)}) {
            void *p = memory.allocate(n, align);
            CAPTURE(align, n);
            CHECK(reinterpret_cast<uintptr_t>(p) % align == 0);
            memory.deallocate(p, n, align);
        }
    CHECK(ctx.stats().live_bytes == empty);
}

TEST_CASE("C++: over the limit is std::bad_alloc, and leaves all as it was")
{
    TestSpace t;
    hak::context ctx(t.space);
    REQUIRE(ctx.limit(1 * MiB));
    hak::resource memory(ctx);
    std::pmr::vector<char> v(&memory);
    v.assign(100 * KiB, 'x');
    CHECK_THROWS_AS(v.resize(8 * MiB), std::bad_alloc);
    CHECK(v.size() == 100 * KiB);
    CHECK(v[100 * KiB - 1] == 'x');
    hak::allocator<long> longs(ctx);
    CHECK_THROWS_AS(longs.allocate(SIZE_MAX / 4), std::bad_alloc);
    CHECK(ctx.stats().committed_bytes <= 1 * MiB);
    require_sound(ctx.get());
}
