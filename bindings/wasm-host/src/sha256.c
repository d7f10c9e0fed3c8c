#include "sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t word_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_word(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void take_block(hkw_sha256 *sha, const uint8_t *block)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = word_at(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        const uint32_t a = right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t b = right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, sha->state, sizeof s);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = right(s[4], 6) ^ right(s[4], 11) ^ right(s[4], 25);
        const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        const uint32_t one = s[7] + a + choice + constants[i] + w[i];
        const uint32_t b = right(s[0], 2) ^ right(s[0], 13) ^ right(s[0], 22);
        const uint32_t two = b + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        sha->state[i] += s[i];
}

void hkw_sha256_begin(hkw_sha256 *sha)
{
    *sha = (hkw_sha256){
        {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
        0,
        {0}};
}

void hkw_sha256_add(hkw_sha256 *sha, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = sha->length % 64;
    sha->length += n;
    while (held + n >= 64) {
        const size_t part = 64 - held;
        if (held == 0) {
            take_block(sha, p);
        } else {
            memcpy(sha->block + held, p, part);
            take_block(sha, sha->block);
        }
        p += part;
        n -= part;
        held = 0;
    }
    if (n) memcpy(sha->block + held, p, n);
}

void hkw_sha256_end(hkw_sha256 *sha, uint8_t out[HKW_SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    const uint64_t bits = sha->length * 8;
    put_word(length, (uint32_t)(bits >> 32));
    put_word(length + 4, (uint32_t)bits);
    hkw_sha256_add(sha, padding, 1 + (119 - sha->length % 64) % 64);
    hkw_sha256_add(sha, length, sizeof length);
    for (int i = 0; i < 8; i++)
        put_word(out + 4 * i, sha->state[i]);
}
