// Binaries of modules, put together.
#pragma once

#include <cstdint>
#include <string>

namespace test
{

// A number, as binaries have it.
inline std::string leb(uint64_t n)
{
    std::string out;
    for (; n >= 0x80; n >>= 7)
        out += char(n | 0x80);
    return out + char(n);
}

inline std::string section(char id, uint64_t count, const std::string &items)
{
    const std::string content = leb(count) + items;
    return id + leb(content.size()) + content;
}

inline std::string repeated(const std::string &item, unsigned n)
{
    std::string out;
    for (unsigned i = 0; i < n; i++)
        out += item;
    return out;
}

inline std::string body(const std::string &code)
{
    return leb(code.size()) + code;
}

inline const std::string HEADER("\0asm\1\0\0\0", 8);

} // namespace test
