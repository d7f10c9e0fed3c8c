/* SHA-256 (FIPS 180-4): the names of compiled modules, so that nobody can make a module that another one's
 * code is taken for. */
#ifndef HAKMEM_WASM_SHA256_H
#define HAKMEM_WASM_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { HKW_SHA256_BYTES = 32 };

typedef struct hkw_sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
} hkw_sha256;

void hkw_sha256_begin(hkw_sha256 *sha);
void hkw_sha256_add(hkw_sha256 *sha, const void *bytes, size_t n);
void hkw_sha256_end(hkw_sha256 *sha, uint8_t out[HKW_SHA256_BYTES]);

#endif
