// Functions of CPython by name, by source file, and types and modules by name.
#include "catch.h"

extern "C" {
#include "base/map.h"
#include "native/parts.h"
#include "native/subsystem.h"
}

#include <string>

namespace
{

const hkp_words *words()
{
    static const hkp_words *all = hkp_words_open();
    return all;
}

std::string by_name(const char *function, const char *file = nullptr)
{
    hkp_subsystem by_file = file != nullptr ? hkp_subsystem_of_file(words(), file) : HKP_CORE;
    hkp_subsystem found = hkp_subsystem_of(words(), function, by_file);
    return found == HKP_HELPER ? "(helper)" : hkp_subsystem_name(found);
}

std::string by_type(const char *type)
{
    return hkp_subsystem_name(hkp_subsystem_of_type(words(), type));
}

TEST_CASE("the part of an address is that of the last beginning before it")
{
    uint32_t starts[] = {16, 32, 4096, 8192};
    unsigned char subsystems[] = {HKP_DICT, HKP_HELPER, HKP_UNKNOWN, HKP_LIST};
    for (size_t count = 0; count <= 4; count++) {
        const hkp_parts parts = {starts, subsystems, count};
        size_t begun = 0;
        for (size_t at = 0; at < 8200; at++) {
            if (begun < count && starts[begun] == at) begun++;
            unsigned expected = begun > 0 ? subsystems[begun - 1] : +HKP_UNKNOWN;
            if (hkp_part_at(&parts, at) != expected) FAIL("at " << at << " of " << count);
        }
        unsigned last = count > 0 ? subsystems[count - 1] : +HKP_UNKNOWN;
        CHECK(hkp_part_at(&parts, SIZE_MAX) == last);
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
    CHECK(by_name("codegen_nameop") == "compiler");
    CHECK(by_name("newblock") == "collections");
    CHECK(by_name("_PyTemplate_Build") == "unicode");
    CHECK(by_name("") == "core");
    CHECK(by_name("\xff") == "core");
}

TEST_CASE("what the compiler adds to a name does not matter")
{
    CHECK(by_name("list_resize.constprop.0.cold") == "list");
    CHECK(by_name("py_list_resize.lto_priv.0") == "list");
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
    CHECK(by_type("string.templatelib.Template") == "unicode");
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
    return hkp_hash(&half, sizeof half, 0);
}

bool is_same(uint32_t number, const void *key)
{
    return number == *static_cast<const uint32_t *>(key);
}

TEST_CASE("a map keeps what is put into it while it grows")
{
    hkp_map map = {hash_of, is_same, nullptr, 0, 0};
    auto find = [&](uint32_t number) { return hkp_map_find(&map, hash_of(number), &number); };
    CHECK(find(1) == 0);
    for (uint32_t i = 1; i <= 50000; i++)
        REQUIRE(hkp_map_add(&map, i));
    CHECK(map.count == 50000);
    size_t wrong = 0;
    for (uint32_t i = 1; i <= 50000; i++)
        wrong += find(i) != i;
    CHECK(wrong == 0);
    CHECK(find(50001) == 0);
    CHECK(hkp_hash("a", 1, 0) != hkp_hash("a", 1, 1));
}

} // namespace
