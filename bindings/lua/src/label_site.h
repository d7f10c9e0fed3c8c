/* What is known about the return addresses above lua_Alloc, for the whole process: either the kind of
 * block that is allocated there, or that it is in a helper of the allocator and where the next one is.
 * Learnt once by calibration, shared by all states and threads. */
#ifndef HKL_LABEL_SITE_H
#define HKL_LABEL_SITE_H

#include "cfi.h"
#include "label_kind.h"
#include "lesson/lesson.h"
#include "site_cache.h"

#ifdef HKC_CFI_WALK

/* The kinds in it are of hkl_kind. */
enum { HKL_SITE_SLOTS = 1024 };
extern hkc_site_word hkl_site_cache[HKL_SITE_SLOTS + HKC_SITE_PROBES];

/* The information for pc, a return address somewhere above the one of caller (HKC_CFI_SP_ABOVE of
 * lua_Alloc); fills the cache. Slow. */
unsigned hkl_site_resolve(uintptr_t pc, hkc_cfi_place caller);

enum { HKL_SITE_FRAMES = 6 };

typedef struct hkl_site_frame {
    uintptr_t pc;
    size_t bytes; /* from its sp to that of the next one; always the same at one pc, but for alloca */
} hkl_site_frame;

/* One allocation of calibration, with the frames above it. */
typedef struct hkl_observation {
    hkl_site_frame frames[HKL_SITE_FRAMES];
    uint8_t depth;
    uint8_t kind;
    bool broad; /* its operation also allocates in ways that other operations show better */
} hkl_observation;

void hkl_site_learn(const hkl_observation *obs, size_t count);
/* Addresses outside of all images are machine code of traces, which allocate cdata objects themselves. */
void hkl_site_has_traces(void);
/* Gives what was learnt, or takes it before anything is known. */
void hkl_site_lesson(hkl_lesson *lesson);

#endif
#endif
