// Contents that tell one block from another and one place in it from the next, by words: small blocks are
// filled altogether, large ones at both ends and in about 32 pages between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace test
{

constexpr size_t STAMP_WHOLE = 1024, STAMP_END = 64;
constexpr uint64_t STAMP_STEP = 0xBF58476D1CE4E5B9u;

inline uint64_t stamp_word(uint32_t id, size_t at)
{
    return ((uint64_t)id + 1) * 0x9E3779B97F4A7C15u + at / 8 * STAMP_STEP;
}

// f(from, to) for each part of a block of n bytes that has a stamp, from being a multiple of 8; until it is
// false.
template <typename F>
bool each_stamped(size_t n, F f)
{
    if (!f((size_t)0, std::min(n, STAMP_WHOLE))) return false;
    if (n <= STAMP_WHOLE) return true;
    const size_t page = 4096, step = std::max(page, n / 32 / page * page);
    for (size_t i = page; i + 8 <= n; i += step)
        if (!f(i, i + 8)) return false;
    return f(std::max(STAMP_WHOLE, (n - STAMP_END) & ~(size_t)7), n);
}

inline void stamp(char *p, size_t n, uint32_t id)
{
    each_stamped(n, [&](size_t from, size_t to) {
        uint64_t word = stamp_word(id, from);
        size_t i = from;
        for (; i + 8 <= to; i += 8, word += STAMP_STEP)
            std::memcpy(p + i, &word, 8);
        for (; i < to; i++, word >>= 8)
            p[i] = (char)word;
        return true;
    });
}

// Whether the bytes of [from, to) are those of the stamp. No early end, so that compilers make wide loops of
// it.
inline bool stamped_in(const char *p, size_t from, size_t to, uint32_t id)
{
    uint64_t word = stamp_word(id, from), wrong = 0;
    size_t i = from;
    for (; i + 8 <= to; i += 8, word += STAMP_STEP) {
        uint64_t is;
        std::memcpy(&is, p + i, 8);
        wrong |= is ^ word;
    }
    for (; i < to; i++, word >>= 8)
        wrong |= (unsigned char)((unsigned char)p[i] ^ (unsigned char)word);
    return !wrong;
}

// Whether the first `have` bytes still carry the stamp of a block of n bytes.
inline bool stamped(const char *p, size_t have, size_t n, uint32_t id)
{
    return each_stamped(n, [&](size_t from, size_t to) {
        return from >= have || stamped_in(p, from, std::min(to, have), id);
    });
}

// The same of both ends of a block alone: what a neighbour that lies wrongly writes over.
inline bool edges_stamped(const char *p, size_t n, uint32_t id)
{
    if (n <= 2 * STAMP_END) return stamped_in(p, 0, n, id);
    size_t tail = (n - STAMP_END) & ~(size_t)7;
    // Between the filled beginning and the stamped end there is nothing to compare with.
    if (n > STAMP_WHOLE) tail = std::max(STAMP_WHOLE, tail);
    return stamped_in(p, 0, STAMP_END, id) && stamped_in(p, tail, n, id);
}

// Whether a block is zero: all of it up to 16 KiB, else where a stamp will be.
inline bool zero(const char *p, size_t n)
{
    auto zeros = [&](size_t from, size_t to) {
        uint64_t any = 0, word;
        size_t i = from;
        for (; i + 8 <= to; i += 8) {
            std::memcpy(&word, p + i, 8);
            any |= word;
        }
        for (; i < to; i++)
            any |= (unsigned char)p[i];
        return !any;
    };
    return n <= 16384 ? zeros(0, n) : each_stamped(n, zeros);
}

} // namespace test
