/* The report of this process, which `python -m hakmem report` shows. */
#ifndef HKP_REPORT_H
#define HKP_REPORT_H

#include "base/json.h"

/* For people. Otherwise as the next. */
void hkp_report_text(hkp_out *out, bool gil);
/* As JSON. Takes no lock but those of the heap, and allocates with neither malloc nor Python. */
HKP_API void hkp_report_json(hkp_out *out, bool gil);

#endif
