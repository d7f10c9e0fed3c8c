/* A report as text, of a process that ends or of a file: what both have. */
#ifndef HKP_TEXT_H
#define HKP_TEXT_H

#include "base/out.h"
#include "common/parts.h"
#include "hook/wrap.h"
#include "lines/site.h"

typedef struct hkp_text {
    const char *version, *command, *python; /* of hakmem; all words; its version, what follows a space is not
                                             * shown */
    const char *states[HKP_DOMAINS], *why;  /* why: "" = nothing to say */
    long process;
    uint64_t cpu; /* microseconds */
    hak_stats stats;
    size_t resident, resident_ours, resident_peak;
    hak_label_info *labels; /* in any order; sorted when they are put */
    size_t label_count;
    const hkp_site_info *sites; /* in any order; NULL = sites are off */
    size_t site_count;
    bool wrapped[HKP_ARENA];
    hkp_wrap_count wrap_counts[HKP_ARENA];
    const hkc_parts *parts; /* without one: of a report from before there were any, or not known */
} hkp_text;

/* Takes no lock and allocates nothing. */
HKP_API void hkp_text_put(const hkp_text *text, hkp_out *out);
/* The parts of the resident memory, a line each. */
void hkp_text_parts(const hkc_parts *parts, hkp_out *out);

#endif
