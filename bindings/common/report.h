/* The report in text of one context, the same in all bindings: a head line, a row for each label that has
 * blocks, where its memory is, and what the process has beside it. */
#ifndef HKC_REPORT_H
#define HKC_REPORT_H

#include "common/parts.h"

#include <hakmem/hakmem.h>

/* Where the text goes, a line at a time. */
typedef void hkc_put_fn(void *to, const char *text, size_t n);

typedef struct hkc_report {
    const char *name; /* "" = none */
    const char *note; /* behind the head line; "" = none */
    hak_stats stats;
    hak_label_info *labels;      /* sorted when they are put; those without blocks are left out */
    int label_count;             /* 0 = no table of labels */
    const hkc_parts *parts;      /* of the process; NULL = no rows for it */
    size_t threads, threads_now; /* that allocated so far, and those of them that are there; 0 = no row */
} hkc_report;

/* Replaces what a terminal would not show but do: control characters, newlines too, become '?'. Names of labels,
 * functions and files may be a guest's. */
void hkc_report_plain(char *text, size_t n);

/* Fills in the statistics of the context, and its labels, for which there is room at `labels`. What has no label is
 * "unlabelled". Allocates nothing. */
void hkc_report_take(hkc_report *report, const hak_ctx *ctx, hak_label_info labels[HAK_LABELS_MAX + 1]);

/* The table of labels alone: sorts them, the largest first, and adds up those behind the first `most` in one row.
 * total: what the shares are of. */
void hkc_report_labels(hak_label_info *labels, int count, int most, size_t total, hkc_put_fn *put, void *to);

/* The parts of the resident memory, a row each, below a row with their sum; nothing where the system does not
 * tell. */
void hkc_report_parts(const hkc_parts *parts, hkc_put_fn *put, void *to);

/* Resident bytes of this process; 0 = the system does not tell. Allocates nothing. For hak_profile_options.
 */
size_t hkc_resident(void);

/* Allocates nothing, and heeds no locale. */
void hkc_report_put(const hkc_report *report, hkc_put_fn *put, void *to);

#endif
