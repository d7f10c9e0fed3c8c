/* What stacks held over time, as JSON: the windows of a profile, and for each stack that matters what lived
 * of it when each window began, what it allocated in each, and what of that lives now.
 *
 *     hkc_history history;
 *     hkc_history_open(&history, ctx, 0);
 *     ... hkc_history_note(&history, stack), for each stack of hak_profile_visit() ...
 *     hkc_history_json(&history, w, ctx);
 *
 * A stack matters if it has a 10,000th of what lives or lived at the peak, so that a report has at most
 * 20,000 of them. Memory is the system's own pages. */
#ifndef HKC_HISTORY_JSON_H
#define HKC_HISTORY_JSON_H

#include "common/json.h"

#include <hakmem/profile.h>

typedef struct hkc_history {
    hak_profile_window *marks;
    size_t count, marks_room; /* of marks; what there are pages for */
    uint32_t *row_of, *ids;   /* by number of the stack, 0 = none, else the row and 1; by row */
    size_t stacks, rows;      /* most of stacks; 0 = no pages */
    size_t row_bytes;
    double least; /* bytes of a stack that matters */
    bool touched; /* windows tell what lived as resident bytes */
    double *live, *made, *kept;
} hkc_history;

/* Without windows, or where there are more than 100 that the program has begun, there are no histories.
 * touched_bytes: as in hkc_profile_writer. */
void hkc_history_open(hkc_history *h, const hak_ctx *ctx, size_t touched_bytes);
/* May be called inside of hak_profile_visit(). */
void hkc_history_note(hkc_history *h, const hak_profile_stack *stack);
/* Members "marks" and "histories" of the object that is open, and gives the memory back. 0, or ENOMEM:
 * something is missing. */
int hkc_history_json(hkc_history *h, hkc_json *w, const hak_ctx *ctx);

#endif
