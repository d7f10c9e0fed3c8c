// Images of instances, and which modules can have them.
#include "wasmtime_test.h"

#include <fstream>
#include <iterator>
#include <memory>

using namespace test;

namespace
{

std::string text_of_guest(const std::string &name)
{
    std::ifstream in(std::string(GUESTS) + name + ".wat");
    REQUIRE(in.good());
    return std::string(std::istreambuf_iterator<char>(in), {});
}

struct Image {
    const char *why;
    hak_wasmtime_image *image;
    explicit Image(Instance &instance) : image(hak_wasmtime_image_take(instance.instance, &why))
    {
    }
    Image(const Image &) = delete;
    Image &operator=(const Image &) = delete;
    ~Image()
    {
        hak_wasmtime_image_drop(image);
    }
};

} // namespace

TEST_CASE("a reset brings memory and all globals back", "[reset]")
{
    for (hak_wasm_dirty method : {HAK_WASM_DIRTY_AUTO, HAK_WASM_DIRTY_PAGEMAP, HAK_WASM_DIRTY_COMPARE}) {
        HostOptions options = guarded();
        options.dirty = method;
        Runtime runtime(options);
        Module module(runtime, GUEST);
        REQUIRE(module.refused() == "");
        Instance guest(hak_wasm_host_tenant(runtime.host), module);
        guest.call("step", 5);
        Image image(guest);
        REQUIRE(image.image != nullptr);
        const std::string bytes = guest.bytes();
        const int32_t next = guest.call("step", 9), after = guest.call("step", 9);
        REQUIRE(next != after);
        for (int i = 0; i < 1000; i++) {
            REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
            REQUIRE(guest.call("step", 9) == next);
            guest.call("store", (i * 977 % 30000) * 4);
        }
        REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
        CHECK(guest.bytes() == bytes);
    }
}

TEST_CASE("a reset after a trap restores what the trap left behind", "[reset]")
{
    Runtime runtime;
    Module module(runtime, GUEST);
    Instance guest(hak_wasm_host_tenant(runtime.host), module);
    Image image(guest);
    const std::string bytes = guest.bytes();
    const int32_t next = guest.call("step", 1);
    REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);

    for (const char *way : {"trap", "deep"}) {
        CHECK(guest.traps(way, 99));
        const int32_t stray = guest.call("step", 1);
        if (std::string(way) == "trap") CHECK(stray != next); // its stack pointer is off
        REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
        CHECK(guest.bytes() == bytes);
        CHECK(guest.call("step", 1) == next);
        REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
    }
}

TEST_CASE("another instance takes the image over", "[reset]")
{
    Runtime runtime;
    Module module(runtime, GUEST);
    hak_wasm_tenant *one = hak_wasm_tenant_new(runtime.host, nullptr);
    hak_wasm_tenant *two = hak_wasm_tenant_new(runtime.host, nullptr);
    auto first = std::make_unique<Instance>(one, module);
    first->call("grow", 3);
    first->call("store", 4 * WASM_PAGE);
    first->call("step", 2);
    Image image(*first);
    const std::string bytes = first->bytes();
    const int32_t next = first->call("step", 3);
    first.reset();
    hak_wasm_tenant_close(one, HAK_WASM_RETIRE);

    for (int i = 0; i < 3; i++) {
        Instance guest(two, module);
        REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
        CHECK(guest.bytes() == bytes);
        CHECK(guest.call("step", 3) == next);
        CHECK(guest.traps("load", 5 * WASM_PAGE));
        CHECK(info_of(two).linear_bytes == 5 * WASM_PAGE);
    }
    TenantOptions options;
    options.limits.linear_bytes = 4 * WASM_PAGE;
    hak_wasm_tenant_limit(two, &options.limits);
    {
        Instance guest(two, module);
        CHECK(hak_wasmtime_reset(guest.instance, image.image) == -1);
        CHECK(guest.size() == 2 * WASM_PAGE);
    }
    hak_wasm_tenant_close(two, HAK_WASM_RETIRE);
}

TEST_CASE("a reset is refused where the runtime cannot go back", "[reset]")
{
    Runtime runtime;
    Module module(runtime, GUEST), same(runtime, GUEST);
    Instance guest(hak_wasm_host_tenant(runtime.host), module),
        other(hak_wasm_host_tenant(runtime.host), same);
    Image image(guest);
    CHECK(hak_wasmtime_reset(other.instance, image.image) == -1);
    guest.call("grow", 1);
    CHECK(hak_wasmtime_reset(guest.instance, image.image) == -1);
}

TEST_CASE("which modules can be reset", "[reset]")
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_wasm_threads_set(config, true);
    wasmtime_config_shared_memory_set(config, true);
    Runtime runtime(guarded(), config);
    wasm_functype_t *type = wasm_functype_new_0_0();
    require_none(wasmtime_linker_define_func(
        runtime.linker, "env", 3, "f", 1, type,
        [](void *, wasmtime_caller_t *, const wasmtime_val_t *, size_t, wasmtime_val_t *,
           size_t) -> wasm_trap_t * { return nullptr; },
        nullptr, nullptr));
    wasm_functype_delete(type);

    const std::string m = "(memory 1) ", table = m + "(table $t 4 8 funcref) (elem $e func $g) (func $g) ";
    const struct {
        const char *why; // "" = they can
        std::string fields;
    } cases[] = {
        {"", m},
        {"", "(import \"env\" \"f\" (func))" + m + "(global (mut i32) (i32.const 1)) (start 0)"},
        {"", table + "(elem (i32.const 1) $g) (func (call_indirect (i32.const 1)))"},
        {"", m + "(export \"a\" (memory 0)) (tag (param i32)) (func (drop (memory.size)))"},
        {"", m + "(data $d \"x\") (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)))"},
        {"", m + "(func (memory.copy (i32.const 0) (i32.const 8) (i32.const 8))"
                 "(memory.fill (i32.const 0) (i32.const 8) (i32.const 8)))"},
        {"",
         m + "(func (param i32 f32 f64) (block (loop (br_table 0 1 0 (local.get 0)))) (drop (f64.const 0x0b))"
             "(drop (f32.const 11)) (if (local.get 0) (then (return)) (else (nop)))"
             "(drop (select (result i32) (i32.const 1) (i32.const -1) (local.get 0)))"
             "(drop (i32.trunc_sat_f32_s (local.get 1))) (drop (ref.is_null (ref.null func))))"},
        {"", m + "(func (param v128) (v128.store8_lane offset=300 3 (i32.const 0) (local.get 0))"
                 "(drop (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 (local.get 0) (local.get 0)))"
                 "(drop (i32x4.relaxed_trunc_f32x4_s (v128.const i64x2 11 11))))"},
        {"", table + "(func (table.set $t (i32.const 0) (ref.null func)))"},
        {"", table + "(func (drop (table.grow $t (ref.null func) (i32.const 1))))"},
        {"", table + "(func (table.fill $t (i32.const 0) (ref.null func) (i32.const 1)))"},
        {"", table + "(func (table.copy (i32.const 0) (i32.const 0) (i32.const 1)))"},
        {"", table + "(func (table.init $t $e (i32.const 0) (i32.const 0) (i32.const 1)))"},
        {"drops a segment", table + "(func (elem.drop $e))"},
        {"drops a segment", m + "(data $d \"x\") (func (data.drop $d))"},
        {"other references than functions", m + "(table $x 1 externref) (table $t 4 funcref) (func "
                                                "(table.set $t (i32.const 0) (ref.null func)))"},
        {"other references than functions", m + "(table (export \"t\") 1 externref)"},
        {"", m + "(table 1 externref)"},
        {"imports a table", "(import \"env\" \"t\" (table 1 funcref))" + m},
        {"imports its memory", "(import \"env\" \"m\" (memory 1))"},
        {"imports a mutable global", "(import \"env\" \"g\" (global (mut i32)))" + m},
        {"mutable global that is a reference", m + "(global (mut externref) (ref.null extern))"},
        {"shared between threads", "(memory 1 1 shared)"},
        {"begins with hak:", m + "(func (export \"hak:global:0\"))"},
        {"more than one memory", m + m},
        {"effect is not known", m + "(func (drop (i32.atomic.load (i32.const 0))))"},
    };
    for (const auto &c : cases) {
        INFO(c.fields);
        Module module(runtime, "(module " + c.fields + ")", nullptr,
                      c.fields.find("(import \"env\" \"f\"") == 0);
        if (*c.why == '\0') CHECK(module.refused() == "");
        else CHECK(module.refused().find(c.why) != std::string::npos);
    }
}

// Guests that change what they have by the instructions of one proposal each: `change`, and `state` tells it.
TEST_CASE("a guest of each proposal goes back to all that it was, or is refused with the reason", "[reset]")
{
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_wasm_threads_set(config, true);
    wasmtime_config_shared_memory_set(config, true);
    wasmtime_config_wasm_tail_call_set(config, true);
    wasmtime_config_wasm_function_references_set(config, true);
    wasmtime_config_wasm_gc_set(config, true);
    wasmtime_config_wasm_exceptions_set(config, true);
    wasmtime_config_wasm_memory64_set(config, true);
    wasmtime_config_wasm_multi_memory_set(config, true);
    wasmtime_config_wasm_wide_arithmetic_set(config, true);
    wasmtime_config_wasm_custom_page_sizes_set(config, true);
    Runtime runtime(guarded(), config);
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    const std::string number =
        "(global $g (mut i32) (i32.const 5)) (func (export \"state\") (result i32) (global.get $g)) ";
    const std::string word = "(memory 1) (func (export \"state\") (result i32) (i32.load (i32.const 64))) "
                             "(data (i32.const 64) \"hak\") ";
    const std::string add = "(global.set $g (i32.add (global.get $g) (i32.const 1)))";
    const std::string holds = "(func (export \"state\") (result i32) (ref.is_null (table.get $t ";
    const struct {
        const char *name, *why; // "" = it goes back
        std::string fields;
    } proposals[] = {
        {"sign extension", "",
         number + "(func (export \"change\") (global.set $g (i32.extend8_s (i32.const 0x80))))"},
        {"conversions without traps", "",
         number + "(func (export \"change\") (global.set $g (i32.trunc_sat_f64_s (f64.const 1e300))))"},
        {"several values", "",
         number + "(func $two (result i32 i32) (i32.const 7) (i32.const 8))"
                  "(func (export \"change\") (call $two) (global.set $g) (drop))"},
        {"constants that are computed", "",
         "(global $g (mut i32) (i32.mul (i32.const 5) (i32.sub (i32.const 9) (i32.const 2))))"
         "(func (export \"state\") (result i32) (global.get $g)) (func (export \"change\") " +
             add + ")"},
        {"bulk memory", "",
         word + "(data $d \"other\") (func (export \"change\")"
                "(memory.fill (i32.const 60) (i32.const 1) (i32.const 5000))"
                "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 5)))"},
        {"bulk memory within it", "",
         word + "(data $d \"other\") (func (export \"change\")"
                "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 5))"
                "(memory.copy (i32.const 64) (i32.const 0) (i32.const 5)))"},
        {"references to functions", "",
         "(table $t 3 funcref) (elem declare func $f) (func $f)" + holds +
             "(i32.const 2)))) (func (export \"change\") (table.set $t (i32.const 2) (ref.func $f)))"},
        {"references of the host", "other references than functions",
         "(table $t 3 externref)" + holds +
             "(i32.const 2)))) (func (export \"change\") (table.fill $t (i32.const 0) (ref.null extern) "
             "(i32.const "
             "2)))"},
        {"vectors", "",
         word + "(global $v (mut v128) (v128.const i32x4 1 2 3 4)) (func (export \"change\")"
                "(global.set $v (i32x4.mul (global.get $v) (v128.const i32x4 3 3 3 3)))"
                "(v128.store (i32.const 64) (i32x4.add (v128.load (i32.const 64)) (global.get $v))))"},
        {"relaxed vectors", "",
         word + "(func (export \"change\") (v128.store (i32.const 64) (i8x16.relaxed_swizzle"
                "(v128.const i32x4 1 2 3 4) (v128.const i32x4 5 6 7 8))))"},
        {"tail calls", "",
         number + "(func $again (param i32) (if (local.get 0) (then " + add +
             "(return_call $again (i32.sub (local.get 0) (i32.const 1))))))"
             "(func (export \"change\") (return_call $again (i32.const 100000)))"},
        {"several memories", "more than one memory",
         word + "(memory $m 1) (func (export \"change\") (i32.store $m (i32.const 0) (i32.const 1))"
                "(memory.copy 0 $m (i32.const 64) (i32.const 0) (i32.const 4)))"},
        {"memories of 64 bits", "",
         "(memory i64 1) (data (i64.const 64) \"hak\")"
         "(func (export \"state\") (result i32) (i32.load (i64.const 64)))"
         "(func (export \"change\") (i64.store (i64.const 64) (i64.const 1)))"},
        {"tables of 64 bits", "",
         "(table $t i64 3 funcref) (elem declare func $f) (func $f)" + holds +
             "(i64.const 2)))) (func (export \"change\") (table.set $t (i64.const 2) (ref.func $f)))"},
        {"threads", "effect is not known",
         word + "(func (export \"change\") (i32.atomic.store (i32.const 64) (i32.const 1)))"},
        {"shared memories", "shared between threads",
         "(memory 1 1 shared) (func (export \"state\") (result i32) (i32.load (i32.const 64)))"
         "(func (export \"change\") (i32.store (i32.const 64) (i32.const 1)))"},
        {"exceptions", "",
         number + "(tag $e (param i32)) (func (export \"change\")"
                  "(block $caught (result i32) (try_table (catch $e $caught) (throw $e (i32.const 9)))"
                  "(unreachable)) (global.set $g))"},
        {"references with types", "",
         number + "(type $t (func)) (elem declare func $f) (func $f (type $t) " + add +
             ") (func (export \"change\") (call_ref $t (ref.func $f)))"},
        {"tables with types", "other references than functions",
         "(type $f (func)) (table $t 3 (ref null $f)) (elem declare func $x) (func $x)" + holds +
             "(i32.const 2)))) (func (export \"change\") (table.set $t (i32.const 2) (ref.func $x)))"},
        {"collected types", "effect is not known",
         number + "(type $s (struct (field (mut i32)))) (func (export \"change\")"
                  "(global.set $g (struct.get $s 0 (struct.new $s (i32.const 9)))))"},
        {"collected types in globals", "mutable global that is a reference",
         "(type $s (struct (field i32))) (global $g (mut (ref null $s)) (ref.null $s))"
         "(func (export \"state\") (result i32) (ref.is_null (global.get $g)))"
         "(func (export \"change\") (global.set $g (struct.new $s (i32.const 9))))"},
        {"wide arithmetic", "",
         number + "(func (export \"change\") (i64.mul_wide_u (i64.const -1) (i64.const 3)) (i32.wrap_i64)"
                  "(global.set $g) (drop))"},
        {"pages of other sizes", "another size than 64 KiB",
         "(memory 4096 (pagesize 1)) (func (export \"state\") (result i32) (i32.load (i32.const 64)))"
         "(func (export \"change\") (i32.store (i32.const 64) (i32.const 1)))"},
    };
    for (const auto &proposal : proposals) {
        INFO(proposal.name);
        Module module(runtime, "(module " + proposal.fields + ")");
        Instance guest(tenant, module), other(tenant, module);
        CHECK(guest.error == "");
        Image image(guest);
        if (*proposal.why != '\0') {
            CHECK(module.refused().find(proposal.why) != std::string::npos);
            CHECK(image.image == nullptr);
            guest.call("change");
            continue;
        }
        CHECK(module.refused() == "");
        REQUIRE(image.image != nullptr);
        const int32_t then = guest.call("state");
        for (int round = 0; round < 3; round++) {
            for (Instance *one : {&guest, &other}) {
                one->call("change");
                CHECK(one->call("state") != then);
                REQUIRE(hak_wasmtime_reset(one->instance, image.image) == 0);
                CHECK(one->call("state") == then);
            }
        }
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("an image of a module that cannot be reset is refused with the reason", "[reset]")
{
    Runtime runtime;
    Module module(runtime, R"((module (memory (export "memory") 1) (memory 1)))");
    Instance guest(hak_wasm_host_tenant(runtime.host), module);
    Image image(guest);
    CHECK(image.image == nullptr);
    CHECK(std::string(image.why) == module.refused());
}

TEST_CASE("an instance for each request, reset and closed, takes the slot of one before", "[reset]")
{
    Runtime runtime;
    Module module(runtime, GUEST);
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
    Instance first(tenant, module);
    first.call("step", 3);
    Image image(first);
    const int32_t next = first.call("step", 1);
    hak_wasm_host_info info = {};
    info.size = sizeof info;
    for (int i = 0; i < 500; i++) {
        Instance guest(tenant, module);
        REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
        CHECK(guest.call("step", 1) == next);
    }
    REQUIRE(hak_wasm_host_stats(runtime.host, &info) == 0);
    CHECK(info.warm <= 16);
    CHECK(info.mappings <= 100);
}

TEST_CASE("an instance that rests gives its pages back, and its next call ends the rest", "[reset]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    Module module(runtime, GUEST);
    {
        Instance guest(tenant, module);
        guest.call("step", 2);
        Image image(guest);
        const std::string bytes = guest.bytes();
        const int32_t next = guest.call("step", 3);
        for (int i = 0; i < 3; i++) {
            REQUIRE(hak_wasmtime_rest(guest.instance, image.image) == 0);
            hak_wasm_host_trim(runtime.host);
            CHECK(hak_wasm_tenant_resident(tenant) == 0);
            const wasmtime_extern_t step = guest.get("step"); // asks for the context
            REQUIRE(hak_wasmtime_rest(guest.instance, image.image) == 0);
            wasmtime_val_t argument = {}, result;
            argument.kind = WASMTIME_I32;
            argument.of.i32 = 3;
            CHECK(text_of(hak_wasmtime_call(guest.instance, &step.of.func, &argument, 1, &result, 1,
                                            nullptr)) == "");
            CHECK(result.of.i32 == next);
            hak_wasm_host_trim(runtime.host);
            CHECK(hak_wasm_tenant_resident(tenant) > 0);
            REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
            CHECK(guest.bytes() == bytes);
        }
        CHECK(hak_wasmtime_rest(guest.instance, nullptr) == -1);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("an instance without a memory goes back to its globals", "[reset]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    for (const char *table : {"", "(table 3 3 funcref)"}) {
        Module module(runtime, std::string("(module ") + table +
                                   R"((global $n (mut i32) (i32.const 5))
          (func (export "add") (param i32) (result i32)
            (global.set $n (i32.add (global.get $n) (local.get 0)))
            (if (i32.gt_s (global.get $n) (i32.const 1000)) (then unreachable))
            (global.get $n))))");
        CHECK(module.refused() == "");
        Instance guest(tenant, module), other(tenant, module);
        CHECK(guest.call("add", 10) == 15);
        Image image(guest);
        REQUIRE(image.image != nullptr);
        for (int i = 0; i < 3; i++) {
            REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
            CHECK(guest.call("add", 1) == 16);
            CHECK(guest.traps("add", 1000000));
            REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
            CHECK(guest.call("add", 2) == 17);
            REQUIRE(hak_wasmtime_rest(guest.instance, image.image) == 0);
            CHECK(guest.call("add", 3) == 18);
            REQUIRE(hak_wasmtime_reset(other.instance, image.image) == 0);
            CHECK(other.call("add", 1) == 16);
        }
        CHECK(info_of(tenant).image_bytes == 0);
    }
    // Nothing at all can change.
    Module constant(runtime, "(module (func (export \"add\") (param i32) (result i32) (local.get 0)))");
    {
        Instance guest(tenant, constant);
        Image image(guest);
        REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
        CHECK(guest.call("add", 7) == 7);
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("tables come back, whatever way a guest changed them", "[reset]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    {
        Module module(runtime, text_of_guest("tables"));
        CHECK(module.refused() == "");
        Instance guest(tenant, module), other(tenant, module);
        guest.call("change", 8);
        const int32_t then = guest.call("sum");
        CHECK(then != other.call("sum"));
        const size_t before = info_of(tenant).linear_bytes;
        Image image(guest);
        REQUIRE(image.image != nullptr);
        CHECK(info_of(tenant).linear_bytes >= before + 11 * sizeof(uint32_t));
        for (Instance *one : {&guest, &other, &guest}) {
            REQUIRE(hak_wasmtime_reset(one->instance, image.image) == 0);
            CHECK(one->call("sum") == then);
            for (int32_t way = 0; way < 8; way++) {
                INFO(way);
                one->call("change", way);
                CHECK(one->call("sum") != then);
                REQUIRE(hak_wasmtime_reset(one->instance, image.image) == 0);
                CHECK(one->call("sum") == then);
            }
            CHECK(one->traps("trap"));
            CHECK(one->traps("ask"));
            REQUIRE(hak_wasmtime_rest(one->instance, image.image) == 0);
            CHECK(one->call("sum") == then);
            CHECK(one->call("ask") == 1);
        }
        // A table cannot become smaller, and becomes larger if it has to.
        CHECK(other.call("widen", 2) == 3);
        const int32_t wide = other.call("sum");
        CHECK(hak_wasmtime_reset(other.instance, image.image) == -1);
        Image larger(other);
        REQUIRE(larger.image != nullptr);
        REQUIRE(hak_wasmtime_reset(guest.instance, larger.image) == 0);
        CHECK(guest.call("sum") == wide);
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("a guest without a memory goes back to its globals and tables", "[reset]")
{
    Runtime runtime;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    const size_t before = info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes;
    {
        Module module(runtime, text_of_guest("bare"));
        CHECK(module.refused() == "");
        auto guest = std::make_unique<Instance>(tenant, module);
        Image image(*guest);
        REQUIRE(image.image != nullptr);
        guest.reset();
        // The host pays for the image, and needs the tenant no more.
        hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
        CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes > before);
        Instance other(hak_wasm_host_tenant(runtime.host), module);
        for (int i = 0; i < 3; i++) {
            other.call("change");
            CHECK(other.call("sum") == 42);
            REQUIRE(hak_wasmtime_reset(other.instance, image.image) == 0);
            CHECK(other.call("sum") == 2);
        }
    }
    CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes == before);
}

TEST_CASE("a guest that drops segments is not reset", "[reset]")
{
    Runtime runtime;
    Module module(runtime, text_of_guest("state"));
    CHECK(module.refused() != "");
    Instance guest(hak_wasm_host_tenant(runtime.host), module);
    Image image(guest);
    CHECK(image.image == nullptr);
    CHECK(std::string(image.why) == module.refused());
}

TEST_CASE("an image is refused while a table has a function of the host's", "[reset]")
{
    Runtime runtime;
    wasm_functype_t *type = wasm_functype_new_0_0();
    const auto nothing = [](void *, wasmtime_caller_t *, const wasmtime_val_t *, size_t, wasmtime_val_t *,
                            size_t) -> wasm_trap_t * { return nullptr; };
    require_none(
        wasmtime_linker_define_func(runtime.linker, "env", 3, "f", 1, type, nothing, nullptr, nullptr));
    // One that the module imports is its own to refer to.
    Module module(runtime,
                  R"((module (import "env" "f" (func $f)) (memory 1) (table (export "table") 2 funcref)
        (elem (i32.const 0) $f) (func (export "call") (call_indirect (i32.const 0)))
        (func (export "clear") (table.set (i32.const 0) (ref.null func)))))");
    CHECK(module.refused() == "");
    Instance guest(hak_wasm_host_tenant(runtime.host), module);
    Image image(guest);
    REQUIRE(image.image != nullptr);
    guest.call("clear");
    CHECK(guest.traps("call"));
    REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
    CHECK(!guest.traps("call"));
    const wasmtime_extern_t table = guest.get("table");
    wasmtime_val_t value = {};
    value.kind = WASMTIME_FUNCREF;
    wasmtime_context_t *context = hak_wasmtime_instance_context(guest.instance);
    wasmtime_func_new(context, type, nothing, nullptr, nullptr, &value.of.funcref);
    require_none(wasmtime_table_set(context, &table.of.table, 1, &value));
    Image other(guest);
    CHECK(other.image == nullptr);
    CHECK(std::string(other.why) == "a table has a function that is none of the module's");
    // The reset takes it away.
    REQUIRE(hak_wasmtime_reset(guest.instance, image.image) == 0);
    Image again(guest);
    CHECK(again.image != nullptr);
    wasm_functype_delete(type);
}
