// QuickJS on hakmem: examples/vms/quickjs.
#include "vm_test.h"

extern "C" {
#include "quickjs_heap.h"
}

using namespace test;

namespace
{

struct Machine {
    vm_heap *own;
    hak_ctx *heap;
    JSRuntime *runtime = nullptr;
    JSContext *context = nullptr;

    explicit Machine(hak_space *space, size_t limit = 0, bool labels = true)
        : own(quickjs_heap_new(space, labels)), heap(own ? own->ctx : nullptr)
    {
        if (own) vm_heap_limit(own, limit, nullptr, nullptr);
        if (own) runtime = quickjs_runtime_new(own);
        if (runtime) quickjs_limit(runtime, own, limit);
        if (runtime) context = JS_NewContext(runtime);
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
        JSValue value = JS_Eval(context, source.c_str(), source.size(), "test", JS_EVAL_TYPE_GLOBAL);
        if (JS_IsException(value)) value = JS_GetException(context);
        const char *text = JS_ToCString(context, value);
        if (!text) JS_FreeValue(context, JS_GetException(context));
        std::string result = text ? text : "no memory for the text";
        JS_FreeCString(context, text);
        JS_FreeValue(context, value);
        return result;
    }
    bool there() const
    {
        return context;
    }
    // A text too short for an error of its own is null.
    bool refused(const std::string &result) const
    {
        return result.find("out of memory") != std::string::npos || result == "null" ||
               result == "no memory for the text";
    }
    bool lost() const
    {
        return false;
    }
    static constexpr char WORK[] =
        "var l = []; for (var i = 0; i < 300; i++) l.push({n: i, t: 'x' + i, f: () => i});\n"
        "var m = new Map(l.map(o => [o.t, o])), c = {}; c.c = c;\n"
        "JSON.stringify(l).length + l.sort((a, b) => b.n - a.n)[3].n + m.get('x7').n +\n"
        "/a(.)/.exec('ax')[1].length";
    static constexpr char GIVES[] = "6385";
};

} // namespace

TEST_CASE("quickjs: programs run, and labels tell what their memory is for")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(Machine::WORK) == Machine::GIVES);
    hak_label_info before = label_named(m.heap, "object"), strings = label_named(m.heap, "string");
    size_t functions = label_named(m.heap, "function").live_blocks;
    CHECK(m.run("var objects = []; for (let i = 0; i < 1000; i++) objects.push({a: i}); 1") == "1");
    CHECK(label_named(m.heap, "object").live_blocks >= before.live_blocks + 1000);
    CHECK(label_named(m.heap, "object").live_blocks <= before.live_blocks + 2100); // with their properties
    CHECK(m.run("var strings = objects.map(o => 'text of ' + o.a); 2") == "2");
    CHECK(label_named(m.heap, "string").live_blocks >= strings.live_blocks + 1000);
    CHECK(m.run("var closures = objects.map(o => () => o); 3") == "3");
    CHECK(label_named(m.heap, "function").live_blocks >= functions + 1000);
    CHECK(m.run("var buffer = new ArrayBuffer(100000); 4") == "4");
    CHECK(label_named(m.heap, "buffer").live_bytes >= 100000);
    CHECK(label_named(m.heap, "code").live_blocks > 0);
    hak_label_info other;
    CHECK(hak_label_stats(m.heap, 0, &other) == 0);
    CHECK(other.live_bytes < stats_of(m.heap).live_bytes / 50);
    CHECK(m.run("objects = strings = closures = buffer = null; 5") == "5");
    JS_RunGC(m.runtime);
    CHECK(label_named(m.heap, "object").live_blocks < before.live_blocks + 50);
    require_sound(m.heap);
}

TEST_CASE("quickjs: without labels all is in one row")
{
    test_without_labels<Machine>();
}

TEST_CASE("quickjs: QuickJS frees all that it took")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(Machine::WORK) == Machine::GIVES);
    JS_FreeContext(m.context);
    JS_FreeRuntime(m.runtime);
    CHECK(stats_of(m.heap).live_blocks == 1); // vm_heap
    require_sound(m.heap);
}

TEST_CASE("quickjs: the limit is an error that a program can catch, and the machine goes on")
{
    TestSpace t;
    const size_t limit = 4 * MiB;
    Machine m(t.space, limit), other(t.space);
    for (int round = 0; round < 3; round++) {
        CHECK(m.run("var l = []; for (;;) l.push({a: 'x'.repeat(100) + l.length})") ==
              "InternalError: out of memory");
        CHECK(committed_of(m.heap) <= limit);
        CHECK(stats_of(m.heap).peak_bytes > limit * 8 / 10);
        CHECK(m.run("l = null; 1") == "1");
        CHECK(m.run("try { 'x'.repeat(100e6) } catch (e) { e.message }") == "out of memory");
        CHECK(m.run(Machine::WORK) == Machine::GIVES);
        require_sound(m.heap);
    }
    CHECK(other.run("'x'.repeat(1e7).length") == "10000000");
}

TEST_CASE("quickjs: near the limit the collector runs, cycles are no leak")
{
    TestSpace t;
    Machine m(t.space, 2 * MiB);
    JS_SetGCThreshold(m.runtime, (size_t)-1); // from now on only the soft limit runs it
    CHECK(m.run("for (var i = 0; i < 200000; i++) { let a = {}, b = {a}; a.b = b } i") == "200000");
    CHECK(committed_of(m.heap) <= 2 * MiB);
}

TEST_CASE("quickjs: with little memory a program runs or is told")
{
    test_little_memory<Machine>(8 * KiB, 2400 * KiB, 52 * KiB);
}

TEST_CASE("quickjs: any page may be refused")
{
    test_refused_pages<Machine>();
}

TEST_CASE("quickjs: many machines in one space, dropped without freeing")
{
    test_many_machines<Machine>("var kept = 'kept'; kept", "kept", "kept", 50);
}
