// Modules that take more memory or time than their size says, and the limits that the guide names against them.
#pragma once

#include "binary_test.h"
#include "wasm_test.h"

namespace test
{

inline const std::string I32 = "\x7f", NO_TYPE = std::string("\x60\0\0", 3), END = "\x0b", NO_LOCALS("\0", 1);

inline std::string functions_with(const std::string &code, unsigned n = 1)
{
    return HEADER + section(1, 1, NO_TYPE) + section(3, n, repeated(std::string("\0", 1), n)) +
           section(10, n, repeated(body(code), n));
}

struct Bomb {
    const char *name;
    std::string binary;
};

inline std::vector<Bomb> bombs(size_t most_pages)
{
    const std::string empty = NO_LOCALS + END, zero("\0", 1);
    const std::string block = "\x02\x40", loop = "\x03\x40", branch = "\x0c";
    std::string exports;
    for (unsigned i = 0; i < 4000; i++) {
        const std::string name = "f" + std::to_string(i);
        exports += leb(name.size()) + name + zero + zero;
    }
    const std::string one_function = HEADER + section(1, 1, NO_TYPE) + section(3, 1, zero);
    return {
        {"many functions", functions_with(empty, 100000)},
        {"a body of a megabyte", functions_with(NO_LOCALS + repeated("\x41\x2a\x1a", 300000) + END)},
        {"many types",
         HEADER + section(1, 50000, repeated("\x60" + leb(16) + repeated(I32, 16) + zero, 50000))},
        {"a type of many results",
         HEADER + section(1, 1, "\x60" + leb(1000) + repeated(I32, 1000) + leb(1000) + repeated(I32, 1000))},
        {"many globals", HEADER + section(6, 200000, repeated(I32 + "\x01\x41" + zero + END, 200000))},
        {"many exports", one_function + section(7, 4000, exports) + section(10, 1, body(empty))},
        {"many imports", HEADER + section(1, 1, NO_TYPE) +
                             section(2, 50000,
                                     repeated("\x01"
                                              "a\x01"
                                              "b" +
                                                  zero + zero,
                                              50000))},
        {"more locals than numbers", functions_with(leb(1) + leb(0xffffffff) + I32 + END)},
        {"all locals that there may be", functions_with(leb(1) + leb(50000) + I32 + END, 50)},
        {"blocks in blocks", functions_with(NO_LOCALS + repeated(block, 100000) + repeated(END, 100001))},
        {"loops in loops", functions_with(NO_LOCALS + repeated(loop, 20000) + repeated(END, 20001))},
        {"a branch of many ways", functions_with(NO_LOCALS + block + ("\x41" + zero) + "\x0e" + leb(200000) +
                                                 repeated(zero, 200001) + END + END)},
        {"a branch of more ways than bytes",
         functions_with(NO_LOCALS + block + ("\x41" + zero) + "\x0e" + leb(0x7fffffff) + repeated(zero, 100) +
                        END + END)},
        {"branches out of everything",
         functions_with(NO_LOCALS + repeated(block, 300) + repeated(branch + leb(299), 10000) +
                        repeated(END, 301))},
        {"a table of all elements", HEADER + section(4, 1, "\x70" + zero + leb(0xffffffff))},
        {"a table of a million elements", HEADER + section(4, 1, "\x70" + zero + leb(1000000))},
        {"a memory of all pages", HEADER + section(5, 1, zero + leb(65536))},
        {"a memory over the limit", HEADER + section(5, 1, zero + leb(most_pages + 1))},
        {"data beyond the memory",
         HEADER + section(5, 1, zero + leb(1)) +
             section(11, 1, zero + "\x41" + leb(0x7ffffff) + END + leb(5) + "12345")},
        {"many segments", HEADER + section(5, 1, zero + leb(1)) +
                              section(11, 50000, repeated(zero + "\x41" + zero + END + leb(1) + "x", 50000))},
        {"more types than bytes", HEADER + section(1, 0xffffffff, NO_TYPE)},
        {"more functions than bytes", HEADER + section(1, 1, NO_TYPE) + section(3, 0x7fffffff, zero) +
                                          section(10, 0x7fffffff, body(empty))},
        {"more globals than bytes", HEADER + section(6, 0xffffffff, I32 + "\x01\x41" + zero + END)},
        {"more segments than bytes", HEADER + section(5, 1, zero + leb(1)) + section(11, 0xfffffff, zero)},
        {"a section of more bytes than there are", HEADER + "\x0a" + leb(0xfffffff0)},
        {"a name without end", HEADER + section(7, 1, leb(0xfffffff0) + "abc")},
    };
}

// A table, a memory and what a function does are the affair of the instance: such modules are within the guide's limits.
inline bool is_for_the_instance(const Bomb &bomb)
{
    const std::string name = bomb.name;
    return name.find("table") != std::string::npos || name.find("memory") != std::string::npos ||
           name == "branches out of everything";
}

// Those of docs/guide/wasm-limits.md.
inline hak_wasm_module_limits guide_limits()
{
    hak_wasm_module_limits limits = HAK_WASM_MODULE_LIMITS_INIT;
    limits.bytes = MIB;
    limits.types = 500;
    limits.arity = 32;
    limits.imports = 200;
    limits.functions = 5000;
    limits.globals = limits.exports = 1000;
    limits.segments = 500;
    limits.locals = 256;
    limits.body_bytes = 64 << 10;
    limits.blocks = 100;
    limits.depth = 16;
    return limits;
}

} // namespace test
