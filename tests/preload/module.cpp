// A module that allocates when it is loaded and unloaded, and hands blocks to its host.
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <string>

static std::map<int, std::string> table = {{1, std::string(100, 'a')}, {2, "module"}};

extern "C" char *module_text()
{
    return strdup(table[2].c_str());
}

extern "C" int module_catches_bad_alloc()
{
    const volatile size_t absurd = (size_t)PTRDIFF_MAX - 1000;
    try {
        operator delete(operator new(absurd));
    } catch (const std::bad_alloc &) {
        return 1;
    }
    return 0;
}
