// The reader of modules: untrusted bytes, and what it writes.
#include "wasmtime_test.h"

extern "C" {
#include "module.h"
}

#include <cstdlib>
#include <random>
#include <string>

using namespace test;

namespace
{

std::string binary_of(const std::string &text)
{
    wasm_byte_vec_t binary;
    require_none(wasmtime_wat2wasm(text.data(), text.size(), &binary));
    std::string bytes(binary.data, binary.size);
    wasm_byte_vec_delete(&binary);
    return bytes;
}

struct Read : hkw_module {
    // Reads an exact copy, so that a sanitizer sees a read past the end.
    explicit Read(const std::string &binary, bool part = true)
    {
        std::vector<uint8_t> copy(binary.begin(), binary.end());
        copy.shrink_to_fit();
        hkw_module_read(copy.data(), copy.size(), part, this);
    }
    Read(const Read &) = delete;
    Read &operator=(const Read &) = delete;
    ~Read()
    {
        std::free(bytes);
        std::free(tables);
    }
};

std::string section(uint8_t id, const std::string &content)
{
    return std::string(1, char(id)) + char(content.size()) + content; // up to 127 bytes
}

} // namespace

TEST_CASE("a copy is the module with more exports, and valid", "[module]")
{
    Runtime runtime;
    for (const char *text : {
             "(module (memory 1))",
             "(module (memory 1) (global (mut i32) (i32.const 5)))",
             "(module (memory 1) (global (mut i64) (i64.const -5)) (export \"x\" (memory 0)) (data "
             "(i32.const 0) \"x\"))",
             "(module (memory 1) (func $f) (start $f))",
             "(module (tag) (memory 1) (table 1 funcref) (elem (i32.const 0) $f) (func $f))",
             "(module (memory 1) (table $t 2 funcref) (table (export \"u\") 1 9 funcref) (func $f) (func $g)"
             "(elem (table $t) (i32.const 0) func $g $f) (elem declare func $f)"
             "(func (table.set $t (i32.const 0) (ref.func $f))))",
             "(module (import \"a\" \"f\" (func $f)) (import \"a\" \"m\" (memory 1 2)) (import \"a\" \"t\" "
             "(table $t 1 8 "
             "funcref)) (import \"a\" \"g\" (global $g (mut i32))) (import \"a\" \"c\" (global $c i32)) "
             "(table $u 1 funcref)"
             "(global $h (mut i64) (i64.const 1)) (global funcref (ref.func $f)) (elem (table $t) (i32.const "
             "0) func $f)"
             "(func (table.copy $t $u (i32.const 0) (i32.const 0) (i32.const 1)) (global.set $g (global.get "
             "$c))"
             "(global.set $h (i64.const 2))))",
             GUEST,
         }) {
        INFO(text);
        const std::string bytes = binary_of(text);
        Read module(bytes);
        REQUIRE(module.refused == nullptr);
        REQUIRE(module.bytes != nullptr);
        CHECK(module.size > bytes.size());
        require_none(wasmtime_module_validate(runtime.engine, module.bytes, module.size));
        // A copy of a copy would shadow the names.
        Read again(std::string(reinterpret_cast<char *>(module.bytes), module.size));
        CHECK(std::string(again.refused ? again.refused : "").find("hak:") != std::string::npos);
    }
}

TEST_CASE("a table that is exported and that no code changes is shown in programs alone", "[module]")
{
    const std::string exported =
        binary_of("(module (table (export \"t\") 2 funcref) (func $f) (elem (i32.const 0) $f))");
    Read alone(exported, false), part(exported, true);
    CHECK(alone.refused == nullptr);
    CHECK_FALSE(alone.tables_change);
    CHECK(alone.functions == 0);
    CHECK(part.tables_change);
    CHECK(part.functions == 1);
    Read changed(binary_of("(module (table 2 funcref) (func (table.set 0 (i32.const 0) (ref.null func))))"),
                 false);
    CHECK(changed.tables_change);
}

TEST_CASE("more exports than one byte can count", "[module]")
{
    Runtime runtime;
    std::string text = "(module (memory 1)";
    for (int i = 0; i < 300; i++)
        text += "(global (mut i32) (i32.const " + std::to_string(i) + "))";
    Read module(binary_of(text + ")"));
    REQUIRE(module.bytes != nullptr);
    CHECK(module.globals == 300);
    require_none(wasmtime_module_validate(runtime.engine, module.bytes, module.size));
}

TEST_CASE("a section that is there twice is not counted twice", "[module]")
{
    const std::string header("\0asm\1\0\0\0", 8), memory = section(5, std::string("\1\0\1", 3));
    const std::string global("\x7f\1\x41\0\x0b", 5);
    std::string many;
    for (int i = 0; i < 20; i++)
        many += global;
    Read module(header + memory + section(6, char(20) + many) + section(6, char(1) + global));
    CHECK(module.bytes == nullptr);
    CHECK(module.refused != nullptr);
}

namespace
{

void break_it(const std::string &good)
{
    for (size_t n = 0; n < good.size(); n++) {
        Read module(good.substr(0, n));
        CHECK((module.refused != nullptr || module.globals <= 4));
    }
    std::mt19937 random(7);
    size_t refused = 0, rounds = 20000;
    for (size_t i = 0; i < rounds; i++) {
        std::string bytes = good;
        for (unsigned changes = 1 + random() % 4; changes > 0; changes--)
            bytes[8 + random() % (bytes.size() - 8)] = char(random());
        if (random() % 4 == 0)
            bytes.insert(8 + random() % (bytes.size() - 8), bytes.substr(random() % bytes.size(), 20));
        Read module(bytes);
        if (module.refused != nullptr) {
            refused++;
            CHECK(module.bytes == nullptr);
        }
    }
    CHECK(refused > rounds / 10);
    CHECK(refused < rounds);
}

} // namespace

TEST_CASE("no bytes break the reader", "[module]")
{
    const std::string tables = binary_of(R"((module (memory 1) (table 1 9 funcref) (table 3 3 externref)
        (table 2 2 (ref func) (ref.func $f)) (func $f) (global (mut i32) (i32.const 1))
        (elem (i32.const 0) $f) (elem funcref (ref.func $f) (ref.null func)) (elem declare func $f)))");
    const std::string changes =
        binary_of(R"((module (import "a" "m" (memory 1)) (import "a" "t" (table $i 1 funcref))
        (table $t 2 9 funcref) (func $f) (func $g) (elem (table $t) (i32.const 0) func $g $f) (elem declare func $g)
        (global (mut funcref) (ref.null func)) (export "f" (func $f)) (export "t" (table $t))
        (func (table.set $t (i32.const 0) (ref.func $f)) (drop (table.grow $t (ref.null func) (i32.const 1)))
              (table.fill $t (i32.const 0) (ref.null func) (i32.const 1)) (elem.drop 0))))");
    for (const std::string &good :
         {binary_of(GUEST), tables, changes, binary_of(R"((module (table $t 2 9 funcref)
        (func $f) (func $g) (elem (table $t) (i32.const 0) func $g $f) (memory 1) (global (mut i32) (i32.const 1))
        (func (export "x") (table.set $t (i32.const 0) (ref.func $f)))))")})
        break_it(good);
}

TEST_CASE("other hosts can have the copy, or the reason why there is none", "[module]")
{
    Runtime runtime;
    const std::string good = binary_of(GUEST), bad = binary_of("(module (import \"a\" \"m\" (memory 1)))");
    hak_wasm_code copy = {};
    const char *why = "untouched";
    REQUIRE(hak_wasm_module_expose(good.data(), good.size(), &copy, &why) == 0);
    CHECK(why == nullptr);
    CHECK(copy.size > good.size());
    require_none(wasmtime_module_validate(runtime.engine, static_cast<uint8_t *>(copy.bytes), copy.size));
    hak_wasm_code_free(&copy);
    CHECK(hak_wasm_module_expose(bad.data(), bad.size(), &copy, &why) == -1);
    CHECK(std::string(why) == "it imports its memory");
    CHECK(hak_wasm_module_expose(good.data(), good.size() / 2, &copy, nullptr) == -1);
    CHECK(hak_wasm_module_expose(nullptr, 0, &copy, &why) == -1);
    CHECK(std::string(why) == "there is no module");
    CHECK(hak_wasm_module_expose(good.data(), good.size(), nullptr, &why) == -1);
}

TEST_CASE("a module whose copy is too large for wasmtime runs, and is not reset", "[module]")
{
    // As many globals as a module may have, which the copy exports beside the memory: one more than it may export.
    const auto leb = [](size_t n) {
        return std::string{char(128 | (n & 127)), char(128 | ((n >> 7) & 127)), char(128 | ((n >> 14) & 127)),
                           char(n >> 21)};
    };
    const size_t count = 1000000;
    std::string globals = leb(count);
    for (size_t i = 0; i < count; i++)
        globals.append("\x7f\1\x41\7\x0b", 5);
    const std::string bytes = std::string("\0asm\1\0\0\0", 8) + section(1, std::string("\1\x60\0\1\x7f", 5)) +
                              section(3, std::string("\1\0", 2)) + section(5, std::string("\1\0\1", 3)) +
                              char(6) + leb(globals.size()) + globals +
                              section(7, std::string("\1\5seven\0\0", 9)) +
                              section(10, std::string("\1\4\0\x23\0\x0b", 6));
    Runtime runtime;
    wasmtime_error_t *error;
    hak_wasmtime_module *module =
        hak_wasmtime_module_new(hak_wasm_host_tenant(runtime.host), runtime.engine, runtime.linker,
                                reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(), &error);
    require_none(error);
    REQUIRE(hak_wasmtime_module_refused(module) != nullptr);
    const std::string refused = hak_wasmtime_module_refused(module);
    CHECK(refused.find("over a limit of wasmtime") != std::string::npos);
    Instance guest;
    wasm_trap_t *trap;
    guest.instance = hak_wasmtime_instance_new(hak_wasm_host_tenant(runtime.host), module, nullptr, nullptr,
                                               &error, &trap);
    require_none(error);
    CHECK(guest.call("seven") == 7);
    const char *why = nullptr;
    CHECK(hak_wasmtime_image_take(guest.instance, &why) == nullptr);
    CHECK(std::string(why ? why : "") == refused);
    guest.close();
    hak_wasmtime_module_delete(module);
}
