/* What a live view shows: stacks by their site or labels, beside what they were when the view began. */
#ifndef HKR_VIEW_H
#define HKR_VIEW_H

#include "report.h"

typedef enum hkr_order { HKR_BY_LIVE, HKR_BY_GROWTH, HKR_BY_PEAK, HKR_BY_ALLOC } hkr_order;

typedef struct hkr_view_options {
    hkr_order order;
    bool labels;        /* instead of sites */
    bool parts;         /* of the resident memory, instead of both */
    bool windows;       /* sites by what they held when windows of the profile began, instead of all these */
    size_t skip, rows;  /* of the table */
    size_t columns;     /* of a line; 0 = as long as they are */
    const char *end;    /* of a line, "\n" */
    double interval;    /* seconds, in the first line; 0 = this is all */
    const char *notice; /* a line below the first; NULL = none */
} hkr_view_options;

/* One screen. first: the view began with it, before: of the time before now; both may be `now`. *total: rows
 * that there are. false = `out` failed, or no memory. */
bool hkr_write_view(FILE *out, const hkr_report *first, const hkr_report *before, const hkr_report *now,
                    const hkr_view_options *options, size_t *total);

#endif
