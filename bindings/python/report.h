/* The report at exit: a JSON file that `python -m hakmem report` shows. */
#ifndef HK_PY_REPORT_H
#define HK_PY_REPORT_H

#include "core.h"

/* From now on a report is due. name: a file, %p in it is the process's number; without %p only `first`
 * processes write it. "-": on stderr, of a `first` process. First: not started by a process under hakmem. */
void hk_py_report_plan(const char *name, bool first);
extern bool hk_py_report_due;
/* Writes it now; later calls in this process do nothing. */
void hk_py_report_write(bool gil);
/* What is to be done last: without the GIL, when Python is gone or about to be cut off. */
void hk_py_report_finish(void);
/* The JSON text of the report, to any stream. */
HK_PY_API void hk_py_report_json(FILE *out, bool gil);

#endif
