/* Where the resident memory of a process is, as its report tells, and what keeps free memory from going back.
 */
#ifndef HKR_PARTS_H
#define HKR_PARTS_H

#include "report.h"

/* Returns how many parts there are: 0 in reports from before there were any. */
size_t hkr_parts(const hkr_report *report);
/* One of them. Texts are clean. */
typedef struct hkr_part {
    const char *kind; /* as the report says */
    char name[80], hint[160];
    double bytes;
} hkr_part;
hkr_part hkr_part_at(const hkr_report *report, size_t i);
/* "live 31.42 MiB, cached 1.00 MiB, ...": the sums of kinds, in the order of the parts. "" = there are none.
 */
void hkr_parts_line(char *text, size_t size, const hkr_report *report);

/* A table of the parts; nothing where there are none. */
void hkr_write_parts(FILE *out, const hkr_report *report);
/* Free memory between the live blocks of a context by size class, and the sites whose blocks pin it; nothing
 * where it is less than 64 KiB. false = no memory. */
bool hkr_write_holes(FILE *out, const hkr_context *context);

#endif
