// Fuzz target: the input's bytes are the decisions of the shadow model. Driven by libFuzzer where the
// compiler has it (clang, -fsanitize=fuzzer); with FUZZ_MAIN by random inputs for so many seconds:
// fuzz_alloc SECONDS [SEED], or by the files named: fuzz_alloc FILE...
#include "shadow.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 0;
    auto byte = [&] { return at < size ? data[at++] : (uint8_t)0; };
    try {
        test::Shadow shadow([&] {
            uint64_t value = byte();
            value |= (uint64_t)byte() << 8;
            // Spread over the whole word: large ranges must be reachable from two bytes.
            return value * 0x9E3779B97F4A7C15u >> 13 ^ value;
        });
        while (at < size)
            shadow.step();
        shadow.finish();
    } catch (const std::exception &e) {
        std::fprintf(stderr, "fuzz_alloc: %s\n", e.what());
        std::abort();
    }
    return 0;
}

#ifdef FUZZ_MAIN
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

namespace
{

int run_file(const char *name)
{
    std::ifstream file(name, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "fuzz_alloc: cannot read %s; usage: fuzz_alloc SECONDS [SEED] | FILE...\n",
                     name);
        return 2;
    }
    std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

} // namespace

int main(int argc, char **argv)
{
    char *end = nullptr;
    double seconds = argc > 1 ? std::strtod(argv[1], &end) : 5;
    if (argc > 1 && *end) {
        for (int i = 1; i < argc; i++)
            if (int rc = run_file(argv[i])) return rc;
        return 0;
    }
    std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1);
    auto stop = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    size_t inputs = 0;
    std::vector<uint8_t> bytes;
    for (; std::chrono::steady_clock::now() < stop; inputs++) {
        bytes.resize(16 + random() % 16384);
        for (uint8_t &byte : bytes)
            byte = (uint8_t)random();
        // What failed can be run again from this file.
        if (std::FILE *file = std::fopen("fuzz_alloc.last", "wb")) {
            std::fwrite(bytes.data(), 1, bytes.size(), file);
            std::fclose(file);
        }
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::printf("fuzz_alloc: %zu inputs\n", inputs);
    return 0;
}
#endif
