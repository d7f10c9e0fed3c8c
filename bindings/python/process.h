/* What the operating system knows of this process. */
#ifndef HK_PY_PROCESS_H
#define HK_PY_PROCESS_H

#include "core.h"

/* Resident bytes; 0 = unknown. */
HK_PY_API size_t hk_py_resident(void);
/* The command line as a JSON array. */
void hk_py_command_json(FILE *out);

#endif
