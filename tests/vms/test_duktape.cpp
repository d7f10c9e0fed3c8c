// Duktape on hakmem: examples/vms/duktape.
#include "vm_test.h"

extern "C" {
#include "duktape_heap.h"
}

using namespace test;

namespace
{

struct Machine {
    vm_heap *own;
    hak_ctx *heap;
    duk_context *duk = nullptr;

    explicit Machine(hak_space *space, size_t limit = 0, bool labels = true)
        : own(duktape_heap_new(space, labels)), heap(own ? own->ctx : nullptr)
    {
        if (own) duktape_limit(own, limit);
        if (own) duk = duktape_new(own);
    }
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;
    ~Machine()
    {
        vm_heap_drop(own); // dropped, not freed
    }
    // The value as text, or the error.
    std::string run(const std::string &source)
    {
        duk_peval_lstring(duk, source.c_str(), source.size());
        std::string result = duk_safe_to_string(duk, -1);
        duk_pop(duk);
        return result;
    }
    bool there() const
    {
        return duk;
    }
    bool refused(const std::string &result) const
    {
        return result.rfind("Error: alloc failed", 0) == 0; // while it compiles with the line behind
    }
    bool lost() const
    {
        return false;
    }
    static constexpr char WORK[] = "var l = []; for (var i = 0; i < 300; i++) (function (i) {\n"
                                   "    l.push({n: i, t: 'x' + i, f: function () { return i; }});\n"
                                   "})(i);\n"
                                   "l.sort(function (a, b) { return b.n - a.n; });\n"
                                   "var c = {}; c.c = c;\n"
                                   "JSON.stringify(l).length + l[3].f() + l[5].t.length";
    static constexpr char GIVES[] = "6381";
};

} // namespace

TEST_CASE("duktape: programs run, and labels tell what their memory is for")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(Machine::WORK) == Machine::GIVES);
    duk_gc(m.duk, 0);
    size_t objects = label_named(m.heap, "object").live_blocks,
           strings = label_named(m.heap, "string").live_blocks;
    CHECK(m.run("var o = []; for (var i = 0; i < 1000; i++) o.push({a: i}); 1") == "1");
    CHECK(label_named(m.heap, "object").live_blocks >= objects + 1000);
    CHECK(label_named(m.heap, "property").live_blocks >= 1000);
    CHECK(m.run("var s = o.map(function (o) { return 'text of ' + o.a; }); 2") == "2");
    CHECK(label_named(m.heap, "string").live_blocks >= strings + 1000);
    CHECK(m.run("var b = new Uint8Array(100000); 3") == "3");
    CHECK(label_named(m.heap, "buffer").live_bytes >= 100000);
    CHECK(label_named(m.heap, "stack").live_blocks > 0);
    hak_label_info other;
    CHECK(hak_label_stats(m.heap, 0, &other) == 0);
    CHECK(other.live_bytes < stats_of(m.heap).live_bytes / 50);
    CHECK(m.run("o = s = b = null; 4") == "4");
    duk_gc(m.duk, 0);
    CHECK(label_named(m.heap, "object").live_blocks < objects + 50);
    CHECK(label_named(m.heap, "buffer").live_bytes < 50000);
    require_sound(m.heap);
}

TEST_CASE("duktape: without labels all is in one row")
{
    test_without_labels<Machine>();
}

TEST_CASE("duktape: Duktape frees all that it took")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(Machine::WORK) == Machine::GIVES);
    duk_destroy_heap(m.duk);
    CHECK(stats_of(m.heap).live_blocks == 1); // vm_heap
}

TEST_CASE("duktape: the limit is an error that a program can catch, and the machine goes on")
{
    TestSpace t;
    const size_t limit = 4 * MiB;
    Machine m(t.space, limit), other(t.space);
    REQUIRE(m.duk);
    for (int round = 0; round < 3; round++) {
        CHECK(m.run("var l = []; for (;;) l.push({a: 'a longer text ' + l.length})") ==
              "Error: alloc failed");
        CHECK(committed_of(m.heap) <= limit);
        CHECK(stats_of(m.heap).peak_bytes > limit * 6 / 10);
        CHECK(m.run("l = null; 1") == "1");
        duk_gc(m.duk, 0);
        CHECK(m.run("try { new Uint8Array(100e6); } catch (e) { e.message }") == "alloc failed");
        CHECK(m.run(Machine::WORK) == Machine::GIVES);
        require_sound(m.heap);
    }
    CHECK(other.run("new Uint8Array(1e7).length") == "10000000");
}

TEST_CASE("duktape: with little memory a program runs or is told")
{
    test_little_memory<Machine>(8 * KiB, 1000 * KiB, 52 * KiB);
}

TEST_CASE("duktape: any page may be refused")
{
    test_refused_pages<Machine>();
}

TEST_CASE("duktape: many machines in one space, dropped without freeing")
{
    test_many_machines<Machine>("var kept = 'kept'; kept", "kept", "kept", 20);
}

// Errors of which there are many levels to unwind, and small blocks up to the limit.
struct Recursive : Machine {
    using Machine::Machine;
    static constexpr char WORK[] = "function f(n) { return n ? [n, f(n - 1)] : []; } f(150).length";
    static constexpr char GIVES[] = "2";
};

TEST_CASE("duktape: what was kept back is there for the error, never for what could not be had")
{
    test_little_memory<Recursive>(1 * KiB, 480 * KiB, 52 * KiB);
}
