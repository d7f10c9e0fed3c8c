// Drives a fuzz target where the compiler has no libFuzzer: by random inputs for so many seconds, half of
// them changed from the files that are named, TARGET SECONDS SEED [FILE...]; or by files alone, TARGET
// FILE...
#include "input.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace
{

using Bytes = std::vector<uint8_t>;

bool read(const char *name, Bytes *out)
{
    std::ifstream file(name, std::ios::binary);
    if (file) out->assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    else std::fprintf(stderr, "fuzz: cannot read %s; usage: TARGET SECONDS SEED [FILE...] | FILE...\n", name);
    return (bool)file;
}

Bytes random_bytes(std::mt19937_64 &random)
{
    Bytes bytes(16 + random() % 16384);
    for (uint8_t &byte : bytes)
        byte = (uint8_t)random();
    return bytes;
}

// A few bytes changed, lost or doubled, or the end of another one.
void change(std::mt19937_64 &random, Bytes *bytes, const Bytes &other)
{
    for (uint64_t n = 1 + random() % 6; n && !bytes->empty(); n--) {
        size_t at = random() % bytes->size(),
               length = std::min<size_t>(1 + random() % 16, bytes->size() - at);
        auto from = bytes->begin() + (ptrdiff_t)at;
        switch (random() % 5) {
        case 0:
            *from = (uint8_t)random();
            break;
        case 1:
            *from = (uint8_t)("0123456789 \nKM#"[random() % 15]);
            break;
        case 2:
            bytes->erase(from, from + (ptrdiff_t)length);
            break;
        case 3: {
            Bytes copy(from, from + (ptrdiff_t)length);
            bytes->insert(bytes->begin() + (ptrdiff_t)(random() % (bytes->size() + 1)), copy.begin(),
                          copy.end());
            break;
        }
        default:
            if (at < other.size())
                bytes->assign(bytes->begin(), from),
                    bytes->insert(bytes->end(), other.begin() + (ptrdiff_t)at, other.end());
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    char *end = nullptr;
    double seconds = argc > 1 ? std::strtod(argv[1], &end) : 5;
    bool files_alone = argc > 1 && *end;
    std::vector<Bytes> corpus;
    for (int i = files_alone ? 1 : 3; i < argc; i++) {
        corpus.emplace_back();
        if (!read(argv[i], &corpus.back())) return 2;
        if (files_alone) LLVMFuzzerTestOneInput(corpus.back().data(), corpus.back().size());
    }
    if (files_alone) return 0;
    std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1);
    auto stop = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    size_t inputs = 0;
    for (; std::chrono::steady_clock::now() < stop; inputs++) {
        Bytes bytes;
        if (corpus.empty() || random() % 2) {
            bytes = random_bytes(random);
        } else {
            bytes = corpus[random() % corpus.size()];
            change(random, &bytes, corpus[random() % corpus.size()]);
        }
        // What failed can be run again from this file.
        if (std::FILE *file = std::fopen((std::string(argv[0]) + ".last").c_str(), "wb")) {
            std::fwrite(bytes.data(), 1, bytes.size(), file);
            std::fclose(file);
        }
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::printf("%zu inputs\n", inputs);
    return 0;
}
