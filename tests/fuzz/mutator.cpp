// How libFuzzer changes inputs of operations: by its own means, which seldom meet the few bytes at the
// beginning that say what contexts there are; these bytes anew; or all that follows a random place anew. Most
// inputs are as long as may be, for to make the contexts takes as long as many operations; a few are short,
// for options that meet seldom.
#include <cstddef>
#include <cstdint>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    const size_t brief = 8192, first = 256;
    uint64_t state = seed;
    auto random = [&] {
        uint64_t z = (state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        return z ^ (z >> 27);
    };
    auto anew = [&](size_t from, size_t to) {
        for (size_t i = from; i < to; i++)
            data[i] = (uint8_t)(random() >> 24);
    };
    size = LLVMFuzzerMutate(data, size, most);
    const size_t end = random() % 4 || most < brief ? most : 64 + random() % (brief - 64);
    const uint64_t how = random() % 4;
    anew(how == 0 ? 0 : how == 1 ? random() % (size + 1) : size, end);
    if (how == 2) anew(0, first < end ? first : end);
    return end;
}
