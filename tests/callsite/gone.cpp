// Names in a library that another thread unloads meanwhile.

#include "catch.h"

#include <dlfcn.h>
#include <string>

extern "C" {
#include "names.h"
#include "symbols.h"
}

namespace
{

void *unloaded_meanwhile;

} // namespace

// Stands before hkc_symbols_read: the image is known by then.
extern "C" hkc_symbols_source __real_hkc_symbols_read(const hkc_image *image, const char *debug_root,
                                                      hkc_symbols_visit *visit, void *user);
extern "C" hkc_symbols_source __wrap_hkc_symbols_read(const hkc_image *image, const char *debug_root,
                                                      hkc_symbols_visit *visit, void *user)
{
    if (unloaded_meanwhile) dlclose(unloaded_meanwhile);
    unloaded_meanwhile = nullptr;
    return __real_hkc_symbols_read(image, debug_root, visit, user);
}

TEST_CASE("a library that is unloaded meanwhile keeps its name and build id")
{
    hkc_names names = {};
    hkc_image image;
    void *library = dlopen(CALLSITE_GONE, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const uintptr_t pc = (uintptr_t)dlsym(library, "callsite_gone") + 1;
    REQUIRE(hkc_names_add(&names, pc));
    unloaded_meanwhile = library;
    hkc_names_resolve(&names);
    REQUIRE_FALSE(hkc_image_at(pc, &image));
    const hkc_name *name = hkc_names_find(&names, pc);
    REQUIRE(name != nullptr);
    CHECK(std::string(name->path) == CALLSITE_GONE);
    CHECK(std::string(CALLSITE_GONE).find(name->module) != std::string::npos);
    REQUIRE(name->build_id != nullptr);
    CHECK(std::string(name->build_id).size() >= 16);
    hkc_names_close(&names);
}

TEST_CASE("a copy of an image says what the image says")
{
    static hkc_image_texts texts;
    hkc_image image, copied;
    const auto function = (uintptr_t)&dlopen;
    REQUIRE(hkc_image_at(function, &image));
    REQUIRE(hkc_image_copy_at(function, &copied, &texts));
    CHECK(copied.bias == image.bias);
    CHECK(copied.path == texts.path);
    CHECK(std::string(copied.path) == image.path);
    REQUIRE(copied.build_id == texts.build_id);
    CHECK(std::string((const char *)copied.build_id, copied.build_id_size) ==
          std::string((const char *)image.build_id, image.build_id_size));
    static int data;
    REQUIRE(hkc_image_copy_at((uintptr_t)&data, &copied, &texts));
    CHECK(std::string(copied.path).empty());
    CHECK_FALSE(hkc_image_copy_at((uintptr_t)&copied, &copied, &texts));
}
