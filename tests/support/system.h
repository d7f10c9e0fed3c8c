// Which system's file the core has here. Those of macOS and Windows run on Linux, too (core/systems.cmake), and lack
// what only Linux's table has.
#pragma once

#include "catch.h"

#include <cstdlib>
#include <string>

namespace test
{

// "linux", "darwin" or "windows".
inline bool system_is(const char *name)
{
#ifdef _WIN32
    return std::string("windows") == name;
#else
    const char *said = getenv("TEST_SYSTEM");
    return std::string(said ? said : "linux") == name;
#endif
}

// Whether the table of the system lacks this entry: Linux has all, the others have no remap, huge and populate.
template <typename Function>
bool lacks(Function *entry)
{
    CHECK((entry != nullptr) == system_is("linux"));
    return !entry;
}

} // namespace test
