// mruby on hakmem: examples/vms/mruby.
#include "vm_test.h"

extern "C" {
#include "mruby_heap.h"

#include <mruby/compile.h>
#include <mruby/error.h>
#include <mruby/string.h>
}

using namespace test;

namespace
{

struct Machine {
    vm_heap *own;
    hak_ctx *heap;
    mrb_state *mrb = nullptr;

    explicit Machine(hak_space *space, size_t limit = 0, bool labels = true)
        : own(mruby_heap_new(space, labels)), heap(own ? own->ctx : nullptr)
    {
        if (own) mruby_limit(own, limit);
        if (own) mrb = mruby_new(own);
    }
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;
    ~Machine()
    {
        vm_heap_drop(own); // dropped, not freed
    }
    // A string that the program gives, or the class of its error.
    std::string run(const std::string &source)
    {
        RProc *program = mruby_compile(mrb, source.c_str(), source.size());
        if (!program && !mrb->exc) return "syntax error";
        mrb_value value = !program ? mrb_nil_value() : mrb_top_run(mrb, program, mrb_top_self(mrb), 0);
        std::string result = mrb->exc ? mrb_obj_classname(mrb, mrb_obj_value(mrb->exc))
                             : mrb_string_p(value)
                                 ? std::string(RSTRING_PTR(value), (size_t)RSTRING_LEN(value))
                                 : "no string";
        mrb->exc = nullptr;
        return result;
    }
    bool there() const
    {
        return mrb;
    }
    bool refused(const std::string &result) const
    {
        return result == "NoMemoryError";
    }
    bool lost() const
    {
        return false;
    }
    static constexpr char WORK[] =
        "l = (0...300).map { |i| [i, \"text #{i}\", { i => \"x\" * 30 }, -> { i }] }\n"
        "l.sort! { |a, b| b[0] <=> a[0] }\n"
        "(l[3][0] + l.map { |e| e[3].call + e[1].size + e[2][e[0]].size }.inject(:+)).to_s";
    static constexpr char GIVES[] = "56436";
};

} // namespace

TEST_CASE("mruby: programs run, and labels tell what their memory is for")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(Machine::WORK) == Machine::GIVES);
    CHECK(m.run("def (") == "syntax error");
    mrb_full_gc(m.mrb);
    size_t strings = label_named(m.heap, "string").live_blocks,
           arrays = label_named(m.heap, "array").live_blocks;
    CHECK(m.run("$s = (0...1000).map { |i| 'a longer text, behind the object ' * 3 + i.to_s }; '1'") == "1");
    CHECK(label_named(m.heap, "string").live_blocks >= strings + 1000);
    CHECK(m.run("$a = (0...1000).map { |i| [i] * 20 }; '2'") == "2");
    CHECK(label_named(m.heap, "array").live_blocks >= arrays + 1000);
    size_t variables = label_named(m.heap, "variable").live_blocks;
    CHECK(m.run("class C; def initialize; @a = 1; end; end; $o = (0...1000).map { C.new }; '3'") == "3");
    CHECK(label_named(m.heap, "variable").live_blocks >= variables + 1000);
    CHECK(label_named(m.heap, "object").live_bytes > 100000);
    CHECK(label_named(m.heap, "method").live_blocks > 50);
    hak_label_info other;
    CHECK(hak_label_stats(m.heap, 0, &other) == 0);
    CHECK(other.live_bytes < stats_of(m.heap).live_bytes / 50);
    CHECK(m.run("$s = $a = $o = nil; '4'") == "4");
    mrb_full_gc(m.mrb);
    CHECK(label_named(m.heap, "string").live_blocks < strings + 100);
    CHECK(label_named(m.heap, "array").live_blocks < arrays + 100);
    require_sound(m.heap);
}

TEST_CASE("mruby: without labels all is in one row")
{
    test_without_labels<Machine>();
}

TEST_CASE("mruby: mruby frees all that it took")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(Machine::WORK) == Machine::GIVES);
    mrb_close(m.mrb);
    CHECK(stats_of(m.heap).live_blocks == 1); // vm_heap
}

TEST_CASE("mruby: the limit is an error that a program can catch, and the machine goes on")
{
    TestSpace t;
    const size_t limit = 4 * MiB;
    Machine m(t.space, limit), other(t.space);
    REQUIRE(m.mrb);
    for (int round = 0; round < 3; round++) {
        CHECK(m.run("$l = []; loop { $l << 'x' * 100 + $l.size.to_s }") == "NoMemoryError");
        CHECK(committed_of(m.heap) <= limit);
        CHECK(stats_of(m.heap).peak_bytes > limit * 7 / 10);
        CHECK(m.run("$l = nil; '1'") == "1");
        CHECK(m.run("begin; 'x' * 100_000_000; rescue NoMemoryError => e; e.message; end") ==
              "Out of memory");
        CHECK(m.run(Machine::WORK) == Machine::GIVES);
        require_sound(m.heap);
    }
    CHECK(other.run("('x' * 10_000_000).size.to_s") == "10000000");
}

TEST_CASE("mruby: with little memory a program runs or is told")
{
    test_little_memory<Machine>(8 * KiB, 2000 * KiB, 52 * KiB);
}

TEST_CASE("mruby: any page may be refused")
{
    test_refused_pages<Machine>();
}

TEST_CASE("mruby: many machines in one space, dropped without freeing")
{
    test_many_machines<Machine>("$kept = 'kept'", "$kept", "kept", 20);
}

// A program that compiles most of itself when it runs.
struct Evaluating : Machine {
    using Machine::Machine;
    static constexpr char WORK[] =
        "eval \"l = (0...60).map { |i| [i, 'text ' + i.to_s, { i => 'x' * 30 }, -> { i }] }\\n\" +\n"
        "     \"def f(a, b = 1, *c, d: 2, &e); begin; a.foo; rescue => x; -> { x }; end; end\\n\" * 20 +\n"
        "     \"l.map { |a| a[3].call + a[1].size }.inject(:+).to_s\"";
    static constexpr char GIVES[] = "2180";
};

TEST_CASE("mruby: eval with little memory runs or is told, and the machine goes on")
{
    test_little_memory<Evaluating>(4 * KiB, 1400 * KiB, 52 * KiB);
    test_refused_pages<Evaluating>();
    TestSpace t;
    Evaluating m(t.space, 2 * MiB);
    // What is popped leaves room for the next line, not for what that line compiles.
    const char fill[] =
        "$l = []; begin; loop { $l << 'x' * 1000 }; rescue NoMemoryError; end; 150.times { $l.pop }; '1'";
    CHECK(m.run(fill) == "1");
    CHECK(m.run("begin; eval('[1, 2];' * 1000); rescue NoMemoryError; 'none'; end") == "none");
    CHECK(m.run("$l = nil; '2'") == "2");
    CHECK(m.run(m.WORK) == m.GIVES);
    CHECK(m.run("begin; eval 'def ('; rescue SyntaxError; 'wrong'; end") == "wrong");
    require_sound(m.heap);
}
