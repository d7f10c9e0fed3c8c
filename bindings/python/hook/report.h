/* The report of this process, which `python -m hakmem report` shows. */
#ifndef HKP_REPORT_H
#define HKP_REPORT_H

#include "base/out.h"
#include "common/json.h"

/* For people. Otherwise as the next. */
void hkp_report_text(hkp_out *out, bool gil);
/* As JSON, the format of all reports. Takes no lock but those of the heap, and allocates with neither malloc nor
 * Python. */
void hkp_report_json(hkc_json *w, bool gil);
/* The same into memory. */
HKP_API void hkp_report_json_text(hkp_out *out, bool gil);

#endif
