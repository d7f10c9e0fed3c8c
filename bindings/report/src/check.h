/* Parts of a report that stay JSON: whether they are what the writers and the page take for granted. */
#ifndef HKR_CHECK_H
#define HKR_CHECK_H

#include "report.h"

/* Whether it is a number of bytes, blocks or nanoseconds. */
bool hkr_is_amount(const json_t *value);
/* false = `wrong` says which member is not as it should be: "labels[1].live_bytes". Members that are unknown
 * here, and those that are missing and may be, are passed over. */
bool hkr_check_process(const json_t *process, char *wrong, size_t size);
bool hkr_check_memory(const json_t *memory, char *wrong, size_t size);
/* read: what hkr_load made of it. */
bool hkr_check_context(const json_t *context, const hkr_context *read, char *wrong, size_t size);

#endif
