// How libFuzzer changes inputs of operations: by its own means, and every second time all that follows a random place
// anew. Most inputs are as long as may be, for to make the contexts takes as long as many operations; a few are short,
// for options that meet seldom.
#include <cstddef>
#include <cstdint>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t state = seed;
    auto random = [&] {
        uint64_t z = (state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        return z ^ (z >> 27);
    };
    size = LLVMFuzzerMutate(data, size, most);
    const size_t brief = 8192, end = random() % 4 || most < brief ? most : 64 + random() % (brief - 64);
    const size_t from = random() % 2 ? random() % (size + 1) : size;
    for (size_t i = from; i < end; i++)
        data[i] = (uint8_t)(random() >> 24);
    return end;
}
