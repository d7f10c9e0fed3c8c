/* Which part of CPython, or which extension, asked for a block: by the code that called the allocator.
 *
 *     base < heap < native, lines < profile < paths < hook < module
 *
 * native/ knows the code of CPython's image: functions, their names, and which part each belongs to.
 * It knows labels, but neither blocks nor lines. */
#ifndef HKP_NATIVE_H
#define HKP_NATIVE_H

#include "base/core.h"
#include "cfi.h"
#include "image.h"
#include "site_cache.h"
#include "symbols.h"

/* NULL = ready, else why there can be no such labels here. */
const char *hkp_native_start(hak_ctx *ctx);

/* Where the names come from, to say how good they are. */
hkc_symbols_source hkp_native_source(void);

/* A library that allocates for others: strdup, operator new, dlopen. */
bool hkp_native_for_others(const hkc_image *image);
/* The image with CPython in it; zero = not known. */
hkc_image hkp_native_core(void);

/* The program has scopes from now on. */
void hkp_native_scoped(void);
/* While Python is awaited, most places are new: pages of tables are kept. */
void hkp_native_await(bool awaited);

#ifdef HKC_CFI_WALK

/* What is in the cache are labels of the context. */
enum { HKP_SITE_SLOTS = 4096 };
extern hkc_site_word hkp_sites[HKP_SITE_SLOTS + HKC_SITE_PROBES] HKP_HIDDEN;
/* The same for the allocation path, or with scopes of the program, which go before, an empty one. */
extern hkc_site_word *hkp_sites_at_hand HKP_HIDDEN;

/* The label for a block. place: of the call of the hook. Keeps errno, locks nothing but what dl_iterate_phdr
 * locks. */
hak_label hkp_native_find(hkc_cfi_place place);

/* Up from the hook to the first function that is no helper: with about ten instructions and two loads for
 * each of one to three frames. Negative = not known at once. */
HKP_INLINE int hkp_native_label(hkc_cfi_place place)
{
    hkc_site_word *sites = hkp_sites_at_hand;
    uint64_t info = hkc_site_home(sites, HKP_SITE_SLOTS, hkc_cfi_return_at(place));
    if (HKP_LIKELY(info < HKC_SITE_CLIMB)) return (int)info;
    do {
        if (HKP_UNLIKELY(info > HKC_SITE_INFO)) return -1;
        place = hkc_cfi_place_up(place, (info - HKC_SITE_CLIMB) * sizeof(uintptr_t));
        info = hkc_site_home(sites, HKP_SITE_SLOTS, hkc_cfi_return_at(place));
        __asm__("" : "+r"(info)); /* not to become one with the code above, by a jump */
    } while (info >= HKC_SITE_CLIMB);
    return (int)info;
}

#else

typedef int hkc_cfi_place;
#define HKC_CFI_SP_ABOVE() 0

HKP_INLINE int hkp_native_label(hkc_cfi_place place)
{
    return place;
}

HKP_INLINE hak_label hkp_native_find(hkc_cfi_place place)
{
    return (hak_label)place;
}

#endif

/* For hooks.h: the labels of blocks are these. */
#define HKP_PLACE hkc_cfi_place
#define HKP_WHERE() HKC_CFI_SP_ABOVE()
#define HKP_LABEL(domain, where) ((void)(domain), hkp_native_label(where))
#define HKP_LABEL_FIND(domain, where) ((void)(domain), hkp_native_find(where))

#endif
