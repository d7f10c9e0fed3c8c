// The bytes of an input as decisions; behind its end they are 0.
#pragma once

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace test
{

// What all inputs of the process did to the heap, told when it ends.
struct Operations {
    uint64_t count = 0;
    ~Operations()
    {
        std::fprintf(stderr, "%" PRIu64 " operations\n", count);
    }
};
inline Operations operations;

// How many it were when something was found.
inline void tell_operations()
{
    std::fprintf(stderr, "after %" PRIu64 " operations\n", operations.count);
}

class Input
{
  public:
    Input(const uint8_t *data, size_t size) : at_(data), end_(data + size)
    {
    }
    bool left() const
    {
        return at_ < end_;
    }
    uint8_t byte()
    {
        return left() ? *at_++ : (uint8_t)0;
    }
    // Spread over the whole word: large ranges must be reachable from two bytes.
    uint64_t value()
    {
        uint64_t value = byte();
        value |= (uint64_t)byte() << 8;
        return value * 0x9E3779B97F4A7C15u >> 13 ^ value;
    }
    size_t below(size_t n)
    {
        return (size_t)(value() % n);
    }

  private:
    const uint8_t *at_, *end_;
};

} // namespace test
