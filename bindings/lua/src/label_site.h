/* What is known about the return addresses above lua_Alloc, for the whole process: either the kind of
 * block that is allocated there, or that it is a helper of the allocator and which frame to look at next.
 * Learnt once by calibration, shared by all states and threads. */
#ifndef HK_LUA_LABEL_SITE_H
#define HK_LUA_LABEL_SITE_H

#include "cfi.h"
#include "label_kind.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* One word a site, so that a reader without a lock sees all of it or none: the address above 16 bits of
 * information. 0 = free. */
enum { HK_SITE_SLOTS = 1024, HK_SITE_PROBES = 8 };
extern _Atomic uint64_t hk_site_cache[HK_SITE_SLOTS + HK_SITE_PROBES];

/* Without CLIMB, the information is a hk_kind. With it, a hk_cfi_rule: */
#define HK_SITE_CLIMB 0x8000u
#define HK_SITE_CFA_FP 0x4000u
#define HK_SITE_FP_SHIFT 8
#define HK_SITE_FP_MASK 0x1fu
#define HK_SITE_CFA_MASK 0xffu /* in words of 8 bytes */

static inline hk_cfi_rule hk_site_rule(unsigned info) {
    return (hk_cfi_rule){(uint16_t)((info & HK_SITE_CFA_MASK) * 8), (info & HK_SITE_CFA_FP) != 0,
                         (uint8_t)(info >> HK_SITE_FP_SHIFT & HK_SITE_FP_MASK)};
}

static inline size_t hk_site_slot(uintptr_t pc) {
    return (size_t)(pc ^ (pc >> 10)) & (HK_SITE_SLOTS - 1);
}

/* The information for pc, from what was learnt; fills the cache. Slow. */
unsigned hk_site_resolve(uintptr_t pc);

enum { HK_SITE_FRAMES = 6 };

/* One allocation of calibration, with the return addresses above it. */
typedef struct hk_observation {
    uintptr_t pc[HK_SITE_FRAMES];
    uint8_t depth;
    uint8_t kind;
    bool broad; /* its operation also allocates in ways that other operations show better */
} hk_observation;

void hk_site_learn(const hk_observation *obs, size_t count);
/* Addresses outside of all images are machine code of traces, which allocate cdata objects themselves. */
void hk_site_has_traces(void);

#endif
