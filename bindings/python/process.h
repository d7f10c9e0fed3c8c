/* What the operating system knows of this process. */
#ifndef HK_PY_PROCESS_H
#define HK_PY_PROCESS_H

#include "core.h"

/* The command line as a JSON array. */
void hk_py_command_json(FILE *out);

#endif
