// The masks with a bit for each unit of a chunk, and the room for bitmaps, held against what is said of them
// one bit at a time.
#include "inner.h"

#include "catch.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <random>
#include <vector>

namespace
{

using bits = std::bitset<128>;

struct words {
    uint64_t w[2];
};

words words_of(const bits &b)
{
    words out = {{0, 0}};
    for (unsigned i = 0; i < 128; i++)
        if (b[i]) out.w[i / 64] |= UINT64_C(1) << i % 64;
    return out;
}

bits bits_of(const uint64_t w[2])
{
    bits b;
    for (unsigned i = 0; i < 128; i++)
        b[i] = w[i / 64] >> i % 64 & 1;
    return b;
}

bits single(const bits &b)
{
    bits out;
    for (unsigned i = 0; i < 128; i++)
        out[i] = b[i] && !(i > 0 && b[i - 1]) && !(i < 127 && b[i + 1]);
    return out;
}

unsigned first_row(const bits &b, unsigned n)
{
    for (unsigned from = 0; from + n <= 128; from++) {
        unsigned have = 0;
        while (have < n && b[from + have])
            have++;
        if (have == n) return from;
    }
    return 128;
}

// Empty, full, each bit alone, all but each bit, and random ones of all densities.
std::vector<bits> examples()
{
    std::vector<bits> all = {bits(), ~bits()};
    for (unsigned i = 0; i < 128; i++) {
        all.push_back(bits().set(i));
        all.push_back(~bits().set(i));
    }
    std::mt19937 random(1);
    for (unsigned i = 0; i < 500; i++) {
        bits b;
        for (unsigned j = 0; j < 128; j++)
            b[j] = random() % 500 < i;
        all.push_back(b);
    }
    return all;
}

} // namespace

TEST_CASE("mask: a row of bits, wherever it lies")
{
    for (unsigned from = 0; from < 128; from++)
        for (unsigned n = 1; from + n <= 128; n++) {
            uint64_t w[2];
            inner_mask_of(from, n, w);
            bits expected;
            for (unsigned i = from; i < from + n; i++)
                expected.set(i);
            if (bits_of(w) != expected) FAIL("from " << from << ", " << n << " bits");
        }
}

TEST_CASE("mask: count, the lowest")
{
    for (const bits &b : examples()) {
        INFO(b);
        const words in = words_of(b);
        REQUIRE(inner_mask_count(in.w) == b.count());
        uint64_t out[2];
        for (unsigned n : {0u, 1u, 2u, 31u, 64u, 65u, 127u, 128u, 200u}) {
            bits lowest;
            for (unsigned i = 0; i < 128 && lowest.count() < n; i++)
                lowest[i] = b[i];
            inner_mask_lowest(in.w, n, out);
            REQUIRE(bits_of(out) == lowest);
        }
    }
}

TEST_CASE("mask: the first row of a length; of one bit, one that has no neighbour")
{
    for (const bits &b : examples()) {
        INFO(b);
        const words in = words_of(b);
        for (unsigned n = 2; n <= 128; n++)
            REQUIRE(inner_mask_row(in.w, n) == first_row(b, n));
        const bits alone = single(b);
        REQUIRE(inner_mask_row(in.w, 1) == first_row(alone.any() ? alone : b, 1));
    }
}

TEST_CASE("bitmaps of a chunk are aligned to their size, do not meet, and the lowest place is taken")
{
    std::vector<unsigned> kinds; // one for each length
    for (unsigned k = 0; k < inner_small_classes(); k++) {
        bool known = std::any_of(kinds.begin(), kinds.end(), [k](unsigned other) {
            return inner_bitmap_bytes(other) == inner_bitmap_bytes(k);
        });
        if (!known) kinds.push_back(k);
    }
    REQUIRE(kinds.size() >= 3);
    std::mt19937 random(2);
    for (size_t units : {1, 3, 8, 64, 127, 128}) {
        inner_chunk *chunk = inner_chunk_new(units);
        std::vector<bool> used(units * 16); // words
        std::map<uint32_t, unsigned> taken; // where, and its kind: one a unit at most
        for (int step = 0; step < 3000; step++) {
            if (taken.size() < units && random() % 100 < 55) {
                unsigned kind = kinds[random() % kinds.size()];
                size_t n = inner_bitmap_bytes(kind) / 8, lowest = 0;
                while (std::any_of(used.begin() + (long)lowest, used.begin() + (long)(lowest + n),
                                   [](bool b) { return b; }))
                    lowest += n;
                REQUIRE(lowest + n <= used.size());
                uint32_t at = inner_bitmap_take(chunk, kind);
                REQUIRE(at == lowest);
                std::fill_n(used.begin() + at, n, true);
                taken[at] = kind;
            } else if (!taken.empty()) {
                auto it = std::next(taken.begin(), (long)(random() % taken.size()));
                REQUIRE(inner_bitmap_taken(chunk, it->second, it->first));
                inner_bitmap_give(chunk, it->second, it->first);
                REQUIRE_FALSE(inner_bitmap_taken(chunk, it->second, it->first));
                std::fill_n(used.begin() + it->first, inner_bitmap_bytes(it->second) / 8, false);
                taken.erase(it);
            }
            if (units % 8 != 0) continue; // the rest of the last mask counts as taken
            size_t end = used.size();
            while (end > 0 && !used[end - 1])
                end--;
            size_t said = inner_bitmaps_end(chunk);
            REQUIRE((units < 128 || said >= end));
            if (units == 128) REQUIRE(said < end + 128);
        }
        inner_chunk_delete(chunk);
    }
}

TEST_CASE("a chunk of fewer units has room for their bitmaps alone")
{
    unsigned longest = 0;
    for (unsigned k = 0; k < inner_small_classes(); k++)
        if (inner_bitmap_bytes(k) > inner_bitmap_bytes(longest)) longest = k;
    const uint32_t n = (uint32_t)inner_bitmap_bytes(longest) / 8;
    for (uint32_t units = 1; units <= 128; units++) {
        INFO(units);
        inner_chunk *chunk = inner_chunk_new(units);
        for (uint32_t i = 0; i < 128; i++)
            CHECK(inner_bitmap_taken(chunk, longest, i * n) == (i >= units));
        inner_chunk_delete(chunk);
    }
}
