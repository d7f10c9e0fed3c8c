// Functions of CPython by name, by source file, and types and modules by name.
#include <catch2/catch.hpp>

extern "C" {
#include "map.h"
#include "parts.h"
#include "subsystem.h"
}

#include <string>

namespace
{

const hk_py_words *words()
{
    static const hk_py_words *all = hk_py_words_open();
    return all;
}

std::string by_name(const char *function, const char *file = nullptr)
{
    hk_py_subsystem by_file = file != nullptr ? hk_py_subsystem_of_file(words(), file) : HK_PY_CORE;
    hk_py_subsystem found = hk_py_subsystem_of(words(), function, by_file);
    return found == HK_PY_HELPER ? "(helper)" : hk_py_subsystem_name(found);
}

std::string by_type(const char *type)
{
    return hk_py_subsystem_name(hk_py_subsystem_of_type(words(), type));
}

TEST_CASE("the part of an address is that of the last beginning before it")
{
    uint32_t starts[] = {16, 32, 4096, 8192};
    unsigned char subsystems[] = {HK_PY_DICT, HK_PY_HELPER, HK_PY_UNKNOWN, HK_PY_LIST};
    for (size_t count = 0; count <= 4; count++) {
        const hk_py_parts parts = {starts, subsystems, count};
        size_t begun = 0;
        for (size_t at = 0; at < 8200; at++) {
            if (begun < count && starts[begun] == at) begun++;
            unsigned expected = begun > 0 ? subsystems[begun - 1] : +HK_PY_UNKNOWN;
            if (hk_py_part_at(&parts, at) != expected) FAIL("at " << at << " of " << count);
        }
        unsigned last = count > 0 ? subsystems[count - 1] : +HK_PY_UNKNOWN;
        CHECK(hk_py_part_at(&parts, SIZE_MAX) == last);
    }
}

TEST_CASE("the longest beginning of a name decides")
{
    CHECK(by_name("PyUnicode_Concat") == "unicode");
    CHECK(by_name("PyUnicodeDecodeError_GetEnd") == "exceptions");
    CHECK(by_name("set_add_entry") == "set");
    CHECK(by_name("setup_context") == "core");
    CHECK(by_name("dict_keys") == "dict");
    CHECK(by_name("data_stack_grow") == "regex");
    CHECK(by_name("_PyEval_EvalFrameDefault") == "core");
    CHECK(by_name("") == "core");
    CHECK(by_name("\xff") == "core");
}

TEST_CASE("what the compiler adds to a name does not matter")
{
    CHECK(by_name("list_resize.constprop.0.cold") == "list");
    CHECK(by_name("gc_alloc.isra.0") == "(helper)");
    CHECK(by_name("gc_collect_main") == "gc");
}

TEST_CASE("helpers are whole names")
{
    CHECK(by_name("PyUnicode_New") == "(helper)");
    CHECK(by_name("PyUnicode_NewSomething") == "unicode");
    CHECK(by_name("_PyObject_GC_New") == "(helper)");
    CHECK(by_name("PyType_GenericAlloc") == "(helper)");
    CHECK(by_name("PyType_GenericAllocX") == "type");
}

TEST_CASE("the source file goes before the name, but for instances")
{
    CHECK(by_name("pad", "unicodeobject.c") == "unicode");
    CHECK(by_name("replace", "bytesobject.c") == "bytes");
    CHECK(by_name("list_rule", "parser.c") == "parser");
    CHECK(by_name("list_rule") == "parser");
    CHECK(by_name("_rule") == "core");
    CHECK(by_name("object_new", "typeobject.c") == "instance");
    CHECK(by_name("mro_internal", "typeobject.c") == "type");
    CHECK(by_name("pad", "unknown.c") == "core");
    CHECK(by_name("list_sort", "unknown.c") == "list");
}

TEST_CASE("types and modules")
{
    CHECK(by_type("list_iterator") == "list");
    CHECK(by_type("listening") == "core");
    CHECK(by_type("collections.deque") == "collections");
    CHECK(by_type("_io.BufferedReader") == "io");
    CHECK(by_type("re.Pattern") == "regex");
    CHECK(by_type("types.GenericAlias") == "type");
    CHECK(by_type("types.SimpleNamespace") == "module");
    CHECK(by_type("types.Unheard") == "core");
    CHECK(by_type("ZeroDivisionError") == "exceptions");
    CHECK(by_type("zipimport.zipimporter") == "import");
}

// Two numbers each have the same hash.
uint64_t hash_of(uint32_t number)
{
    uint32_t half = number / 2;
    return hk_py_hash(&half, sizeof half, 0);
}

bool is_same(uint32_t number, const void *key)
{
    return number == *static_cast<const uint32_t *>(key);
}

TEST_CASE("a map keeps what is put into it while it grows")
{
    hk_py_map map = {hash_of, is_same, nullptr, 0, 0};
    auto find = [&](uint32_t number) { return hk_py_map_find(&map, hash_of(number), &number); };
    CHECK(find(1) == 0);
    for (uint32_t i = 1; i <= 50000; i++)
        REQUIRE(hk_py_map_add(&map, i));
    CHECK(map.count == 50000);
    size_t wrong = 0;
    for (uint32_t i = 1; i <= 50000; i++)
        wrong += find(i) != i;
    CHECK(wrong == 0);
    CHECK(find(50001) == 0);
    CHECK(hk_py_hash("a", 1, 0) != hk_py_hash("a", 1, 1));
}

} // namespace
