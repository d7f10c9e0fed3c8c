// Names of functions, from each of the three places where they may be.
#include "catch.h"

extern "C" {
#include "cfi.h"
#include "image.h"
#include "symbols.h"
}

#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

extern "C" __attribute__((noinline, visibility("default"))) int hk_test_exported(int x)
{
    return x * 7 + (int)(intptr_t)__builtin_return_address(0) % 2;
}

namespace
{

__attribute__((noinline)) int local_to_this_file(int x)
{
    return x * 5 + (int)(intptr_t)__builtin_return_address(0) % 2;
}

// Functions of a file's .symtab by address, as elfutils reads them.
std::multimap<uintptr_t, std::string> expected_names(const char *path, uintptr_t bias)
{
    std::multimap<uintptr_t, std::string> names;
    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY);
    Elf *elf = elf_begin(fd, ELF_C_READ, nullptr);
    Elf_Scn *scn = nullptr;
    while ((scn = elf_nextscn(elf, scn)) != nullptr) {
        GElf_Shdr header;
        gelf_getshdr(scn, &header);
        if (header.sh_type != SHT_SYMTAB) continue;
        Elf_Data *data = elf_getdata(scn, nullptr);
        for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
            GElf_Sym sym;
            gelf_getsym(data, (int)i, &sym);
            if (GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx != SHN_UNDEF)
                names.emplace(bias + sym.st_value, elf_strptr(elf, header.sh_link, sym.st_name));
        }
    }
    elf_end(elf);
    close(fd);
    return names;
}

hkc_image own_image()
{
    hkc_image image;
    REQUIRE(hkc_image_at((uintptr_t)&hk_test_exported, &image));
    return image;
}

// A copy of this program, changed by a command with %s for the copy.
std::string changed_copy(const std::string &name, const std::string &command)
{
    char dir[] = "/tmp/hakmem-symbols-XXXXXX";
    REQUIRE(mkdtemp(dir) != nullptr);
    std::string path = std::string(dir) + "/" + name;
    REQUIRE(std::system(("cp /proc/" + std::to_string(getpid()) + "/exe " + path).c_str()) == 0);
    if (!command.empty()) REQUIRE(std::system((command + " " + path).c_str()) == 0);
    return path;
}

void remove_copy(const std::string &path)
{
    REQUIRE(std::system(("rm -r " + path.substr(0, path.rfind('/'))).c_str()) == 0);
}

// What hkc_symbols_read visits, of several at one place the first.
struct Symbols {
    hkc_symbols_source source;
    std::map<uintptr_t, std::string> names, files;

    Symbols(const hkc_image &image, const char *debug_root)
    {
        source = hkc_symbols_read(&image, debug_root, visit, this);
    }

    static void visit(void *user, uintptr_t start, const char *name, const char *file)
    {
        auto *self = static_cast<Symbols *>(user);
        if (self->names.emplace(start, name).second && file != nullptr) self->files[start] = file;
    }

    std::string name_at(uintptr_t start) const
    {
        auto found = names.find(start);
        return found != names.end() ? found->second : "";
    }
};

TEST_CASE("every function of .symtab has the name that elfutils gives it")
{
    hkc_image image = own_image();
    Symbols symbols(image, "/nonexistent");
    REQUIRE(symbols.source == HKC_SYMBOLS_SYMTAB);
    auto expected = expected_names("/proc/self/exe", image.bias);
    REQUIRE(expected.size() > 100);
    size_t wrong = 0;
    for (auto &entry : expected) {
        auto range = expected.equal_range(entry.first);
        std::string name = symbols.name_at(entry.first);
        bool known = false;
        for (auto i = range.first; i != range.second; i++)
            known = known || i->second == name;
        wrong += !known;
    }
    CHECK(wrong == 0);
    CHECK(symbols.name_at((uintptr_t)&hk_test_exported + 1).empty());
    CHECK(symbols.name_at(image.low).empty());
}

TEST_CASE("a local function has its source file, an exported one has none")
{
    hkc_image image = own_image();
    Symbols symbols(image, "/nonexistent");
    CHECK(local_to_this_file(1) != 0);
    REQUIRE(symbols.files.count((uintptr_t)&local_to_this_file) == 1);
    CHECK(symbols.files[(uintptr_t)&local_to_this_file] == "symbols.cpp");
    CHECK(symbols.name_at((uintptr_t)&hk_test_exported) == "hk_test_exported");
    CHECK(symbols.files.count((uintptr_t)&hk_test_exported) == 0);
}

TEST_CASE("a stripped program keeps the names that it exports")
{
    std::string path = changed_copy("stripped", "strip");
    hkc_image image = own_image();
    image.path = path.c_str();
    Symbols symbols(image, "/nonexistent");
    CHECK(symbols.source == HKC_SYMBOLS_DYNSYM);
    CHECK(symbols.name_at((uintptr_t)&hk_test_exported) == "hk_test_exported");
    CHECK(symbols.name_at((uintptr_t)&local_to_this_file).empty());
    remove_copy(path);
}

TEST_CASE("a stripped program takes the names of its debug package")
{
    std::string stripped = changed_copy("stripped", "strip"),
                debug = changed_copy("debug", "strip --only-keep-debug");
    std::string root = debug.substr(0, debug.rfind('/')), id;
    hkc_image image = own_image();
    image.path = stripped.c_str();
    for (size_t i = 0; i < image.build_id_size; i++) {
        char digits[4];
        snprintf(digits, sizeof digits, i == 1 ? "/%02x" : "%02x", image.build_id[i]);
        id += digits;
    }
    REQUIRE(id.size() > 8);
    const std::string place = root + "/.build-id/" + id + ".debug";
    REQUIRE(std::system(("mkdir -p " + place.substr(0, place.rfind('/')) + " && mv " + debug + " " + place)
                            .c_str()) == 0);
    Symbols symbols(image, root.c_str());
    CHECK(symbols.source == HKC_SYMBOLS_DEBUG);
    CHECK(symbols.name_at((uintptr_t)&local_to_this_file).find("local_to_this_file") != std::string::npos);
    remove_copy(stripped);
    remove_copy(debug);
}

TEST_CASE("a file that came in the place of an image since gives it no names")
{
    hkc_image image = own_image();
    REQUIRE(image.build_id_size >= 8);
    std::vector<uint8_t> other(image.build_id, image.build_id + image.build_id_size);
    other.back() ^= 1;
    image.path = "/proc/self/exe";
    CHECK(Symbols(image, "/nonexistent").source == HKC_SYMBOLS_SYMTAB);
    image.build_id = other.data();
    CHECK(Symbols(image, "/nonexistent").source == HKC_SYMBOLS_NONE);
    other.pop_back();
    image.build_id_size--;
    CHECK(Symbols(image, "/nonexistent").source == HKC_SYMBOLS_NONE);

    std::string none = changed_copy("none", "objcopy --remove-section .note.gnu.build-id");
    image = own_image();
    image.path = none.c_str();
    CHECK(Symbols(image, "/nonexistent").source == HKC_SYMBOLS_NONE);
    image.build_id = nullptr;
    CHECK(Symbols(image, "/nonexistent").source == HKC_SYMBOLS_SYMTAB);
    remove_copy(none);
}

TEST_CASE("broken files have no symbols, and errno is kept")
{
    hkc_image image = own_image();
    for (const char *command : {"truncate -s 100", "truncate -s 0", "truncate -s 9000", "rm"}) {
        std::string path = changed_copy("broken", command);
        image.path = path.c_str();
        image.build_id = nullptr;
        errno = 77;
        Symbols symbols(image, "/nonexistent");
        CHECK(symbols.source == HKC_SYMBOLS_NONE);
        CHECK(errno == 77);
        CHECK(symbols.names.empty());
        remove_copy(path);
    }
}

TEST_CASE("the image of an address")
{
    // A function that no sanitizer replaces.
    const auto function = (uintptr_t)&getpagesize;
    hkc_image image;
    REQUIRE(hkc_image_at(function, &image));
    char stem[16];
    hkc_image_stem(&image, stem, sizeof stem);
    CHECK(std::string(stem) == "libc");
    hkc_image_stem(&image, stem, 3);
    CHECK(std::string(stem) == "li");
    CHECK(image.build_id != nullptr);
    CHECK(image.build_id_size >= 8);
    CHECK(image.low <= function);
    CHECK(image.high > function);
    hkc_image own = own_image();
    hkc_image_stem(&own, stem, sizeof stem);
    CHECK(std::string(stem).empty());
    int on_stack = 0;
    CHECK_FALSE(hkc_image_at((uintptr_t)&on_stack, &image));
}

} // namespace
