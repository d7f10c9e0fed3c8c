// The machine of examples/vms/toy: its language, its collector, its limit, its end.
#include "vm_test.h"

extern "C" {
#include "toy.h"
}

#include <cstdlib>
#include <memory>

using namespace test;

namespace
{

// Functions of lists.
#define LISTS                                                                                                \
    "(define count (lambda (l n) (if (pair? l) (count (cdr l) (+ n 1)) n)))\n"                               \
    "(define make (lambda (n l) (if (= n 0) l (make (- n 1) (cons (cons n (text n)) l)))))\n"                \
    "(define sum (lambda (l n) (if (pair? l) (sum (cdr l) (+ n (car (car l)))) n)))\n"

// A machine whose output is text.
struct Machine {
    char *text = nullptr;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    toy *vm;
    hak_ctx *heap;

    explicit Machine(hak_space *space, size_t limit = 0)
        : vm(toy_new(space, limit, out)), heap(vm ? toy_heap(vm) : nullptr)
    {
    }
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;
    ~Machine()
    {
        toy_drop(vm);
        fclose(out);
        free(text);
    }
    // What the program printed, and its error.
    std::string run(const std::string &source)
    {
        rewind(out);
        const char *error = toy_run(vm, source.c_str());
        fflush(out);
        return std::string(text, length) + (error ? error : "");
    }
    bool there() const
    {
        return vm;
    }
    bool refused(const std::string &result) const
    {
        return result.find("out of memory") != std::string::npos;
    }
    bool lost() const
    {
        return false;
    }
    // Closures, strings, lists and enough garbage for some collections.
    static constexpr char WORK[] =
        LISTS "(define counter (lambda () (let ((n 0)) (lambda () (set! n (+ n 1))))))\n"
              "(define a (counter)) (define b (counter)) (a) (a) (b)\n"
              "(define kept (make 300 nil))\n"
              "(define churn (lambda (n) (if (= n 0) 0 (begin (make 20 nil) (churn (- n 1))))))\n"
              "(churn 300)\n"
              "(print (count kept 0) \" \" (sum kept 0) \" \" (cdr (car kept)) \" \" (+ (a) (* 10 (b))))\n";
    static constexpr char GIVES[] = "300 45150 1 23\n";
};

hak_label_info label(const toy *vm, const char *name)
{
    return label_named(toy_heap(vm), name);
}

} // namespace

TEST_CASE("toy: programs print what they should")
{
    TestSpace t;
    Machine m(t.space);
    const char *const cases[][2] = {
        {"(print (+ 1 (* 2 3)) \" \" (- 1 2.5) \" \" (/ 1 4))", "7 -1.5 0.25\n"},
        {"(print (if (< 1 2) \"yes\" \"no\") (if nil 1) (if #f 1 2) (not #t))", "yesnil2#f\n"},
        {"; a comment\n(print (concat \"a\" \"\" \"bc\") (length (repeat \"xy\" 3)))", "abc6\n"},
        {"(print (car (cons 1 2)) (cdr (cons 1 2)) (pair? (cons 1 2)) (pair? 1) (eq? nil nil))",
         "12#t#f#t\n"},
        {"(define f (lambda (x) (lambda (y) (- x y)))) (print ((f 10) 3))", "7\n"},
        {"(let ((x 1) (y 2)) (let ((x 10)) (print (+ x y))) (print x))", "12\n1\n"},
        {"(define loop (lambda (n) (if (= n 0) \"done\" (loop (- n 1))))) (print (loop 10000))", "done\n"},
        {"(define loop (lambda (n) (if (= n 0) 0 (let ((m (- n 1))) (begin 1 (loop m)))))) (print (loop "
         "10000))",
         "0\n"},
        {"(print print (lambda () 1) (cons 1 1) 1e300)", "(built-in)(function)(pair)1e+300\n"},
        {"", ""},
    };
    for (auto &c : cases) {
        CAPTURE(c[0]);
        CHECK(m.run(c[0]) == c[1]);
        require_sound(m.heap);
    }
}

TEST_CASE("toy: an error has its line, and the machine goes on")
{
    TestSpace t;
    Machine m(t.space);
    const char *const cases[][2] = {
        {"\n\n(car 1)", "line 3: a pair expected"},
        {"(+ 1 nil)", "line 1: a number expected"},
        {"(print \"a\")\n(concat 1)", "a\nline 2: a string expected"},
        {"(1 2)", "line 1: this is not a function"},
        {"((lambda (x) x))", "line 1: 0 arguments for 1 parameters"},
        {"(cons 1)", "line 1: 1 arguments for 2 parameters"},
        {"(define r (lambda (n) (+ 1 (r n))))\n(r 1)", "line 1: stack overflow"},
        {"(error \"own\")", "line 1: own"},
        {"(repeat \"abc\" -1)", "line 1: a string cannot be that long"},
        {"(repeat \"abc\" (/ 0 0))", "line 1: a string cannot be that long"},
        {"(", "line 1: an expression expected"},
        {")", "line 1: an expression expected"},
        {"(print \"a", "line 1: a string has no end"},
        {"(lambda)", "line 1: ( of the parameters expected"},
        {"(lambda ())", "line 1: an expression expected"},
        {"(define 1 2)", "line 1: a name expected"},
        {"(let (x) 1)", "line 1: (NAME x) expected"},
        {"(if 1 2 3 4)", "line 1: ) expected"},
    };
    for (auto &c : cases) {
        CAPTURE(c[0]);
        CHECK(m.run(c[0]) == c[1]);
        CHECK(m.run("(print (+ 1 1))") == "2\n");
        require_sound(m.heap);
    }
    CHECK(m.run(std::string(5000, '(')) == "line 1: nested too deeply");
    std::string names;
    for (int i = 0; i < 100; i++)
        names += " x" + std::to_string(i);
    CHECK(m.run("(lambda (" + names + ") 1)") == "line 1: more than 64 names");
}

TEST_CASE("toy: each kind of object has its label, and the collector frees what nothing leads to")
{
    TestSpace t;
    Machine m(t.space);
    toy_collect(m.vm);
    const size_t strings = label(m.vm, "string").live_blocks, pairs = label(m.vm, "pair").live_blocks;
    const size_t codes = label(m.vm, "code").live_blocks, bytecodes = label(m.vm, "bytecode").live_blocks;
    CHECK(label(m.vm, "globals").live_blocks == 1 + 20); // the table, and a name for each built-in function

    CHECK(m.run(LISTS) == "");
    CHECK(m.run("(define l (make 1000 nil)) (collect)") == "");
    CHECK(label(m.vm, "pair").live_blocks == pairs + 2000);
    CHECK(label(m.vm, "string").live_blocks == strings + 1000);
    // The three functions and the form that runs the collector, each with instructions and constants.
    CHECK(label(m.vm, "code").live_blocks == codes + 4);
    CHECK(label(m.vm, "closure").live_blocks == 3);
    CHECK(label(m.vm, "env").live_blocks == 0);

    CHECK(m.run("(define l nil) (define count nil) (define make nil) (define sum nil)") == "");
    toy_collect(m.vm);
    CHECK(label(m.vm, "pair").live_blocks == pairs);
    CHECK(label(m.vm, "string").live_blocks == strings);
    CHECK(label(m.vm, "code").live_blocks == codes);
    CHECK(label(m.vm, "bytecode").live_blocks == bytecodes);
    CHECK(label(m.vm, "closure").live_blocks == 0);
    CHECK(m.run("(print (< (memory) 500))") == "#t\n");
    require_sound(m.heap);
}

TEST_CASE("toy: garbage is collected as the heap grows, and the heap stays small")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(Machine::WORK) == Machine::GIVES);
    // 6000 lists of 20 pairs and strings: 1.3 MB in all.
    CHECK(toy_collections(m.vm) >= 5);
    CHECK(stats_of(m.heap).committed_bytes < 300 * KiB);
}

TEST_CASE("toy: a big string shows the line that made it")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run("(define small (repeat \"x\" 10))\n\n(define big (repeat \"x\" 3000000))") == "");
    hak_site line = 0;
    hak_ctx_visit(
        m.heap,
        [](void *user, const hak_block *block) {
            if (block->size > 3000000) *static_cast<hak_site *>(user) = block->site;
            return true;
        },
        &line);
    CHECK(line == 3);
}

TEST_CASE("toy: the limit is an error of the program, and the machine goes on")
{
    TestSpace t;
    const size_t limit = 256 * KiB;
    Machine m(t.space, limit);
    CHECK(m.run(LISTS "(define l nil)\n(define grow (lambda () (begin (set! l (cons 1 l)) (grow))))") == "");
    for (int round = 0; round < 2; round++) {
        CHECK_THAT(m.run("(print \"on\")\n(grow)"),
                   Catch::Contains("on\nline 5: out of memory: no 24 bytes for"));
        hak_stats stats = stats_of(m.heap);
        CHECK(stats.committed_bytes <= limit);
        CHECK(stats.live_bytes > limit * 6 / 10);
        require_sound(m.heap);
        CHECK(m.run("(print (count l 0))") != "");
        CHECK(m.run("(define l nil)(define kept nil)(collect)(print (< (memory) 3000))") == "#t\n");
        CHECK(m.run(Machine::WORK) == Machine::GIVES);
    }
    CHECK(m.run("(repeat \"x\" 600000)") == "line 1: out of memory: no 600008 bytes for string");
    CHECK(m.run("(print 1)") == "1\n");
}

TEST_CASE("toy: with little memory a program runs or says that it has none")
{
    test_little_memory<Machine>(4 * KiB, 160 * KiB, 0);
}

TEST_CASE("toy: any page may be refused")
{
    test_refused_pages<Machine>();
}

TEST_CASE("toy: the collector needs no memory of its own")
{
    TestSpace t;
    Machine m(t.space);
    CHECK(m.run(LISTS "(define l (make 3000 nil))") == "");
    // The list has far more waiting objects than fit into the machine: the heap is walked again instead.
    hak_stats stats = stats_of(m.heap);
    hak_limit(m.heap, 0, stats.committed_bytes, nullptr, nullptr);
    while (hak_alloc(m.heap, 4000) || hak_alloc(m.heap, 512) || hak_alloc(m.heap, 16))
        ;
    toy_collect(m.vm);
    hak_limit(m.heap, 0, 0, nullptr, nullptr);
    CHECK(m.run("(print (count l 0) \" \" (sum l 0))") == "3000 4501500\n");
    toy_collect(m.vm); // the string of the line above
    CHECK(label(m.vm, "string").live_blocks == 3000);
    require_sound(m.heap);
}

TEST_CASE("toy: many machines in one space, dropped without freeing")
{
    TestSpace t;
    Machine first(t.space);
    CHECK(first.run(LISTS "(define l (make 100 nil))") == "");
    for (int i = 0; i < 200; i++) {
        Machine m(t.space);
        CHECK(m.run(LISTS "(define l (make 500 nil)) (print (count l 0))") == "500\n");
    }
    CHECK(first.run("(print (sum l 0))") == "5050\n");
}
