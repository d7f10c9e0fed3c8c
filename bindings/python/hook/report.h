/* The report of this process, which `python -m hakmem report` shows. */
#ifndef HKP_REPORT_H
#define HKP_REPORT_H

#include "base/out.h"
#include "common/parts.h"

/* Where the resident memory of the process is: a line for each part. */
HKP_API void hkp_report_resident(hkp_out *out);
/* For people. Otherwise as the next. */
void hkp_report_text(hkp_out *out, bool gil);
/* As JSON, the format of all reports. Takes no lock but those of the heap, and allocates with neither malloc
 * nor Python. */
void hkp_report_json(hkc_json *w, bool gil);
/* The same into memory. */
HKP_API void hkp_report_json_text(hkp_out *out, bool gil);
/* The stacks that changed between two windows of the profile, as JSON. 0 = done; EINVAL = there are no such
 * windows; ENOMEM. */
HKP_API int hkp_report_diff_text(hkp_out *out, unsigned from, unsigned to);

#endif
