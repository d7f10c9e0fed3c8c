/* What the environment asks of the hook. */
#ifndef HK_PY_OPTIONS_H
#define HK_PY_OPTIONS_H

#include "core.h"

typedef struct hk_py_options {
    bool all;           /* HAKMEM_DOMAINS=all; default raw */
    const char *labels; /* HAKMEM_LABELS; default off */
    size_t limit;       /* HAKMEM_LIMIT: bytes, or with K, M, G; 0 = none */
    const char *report; /* HAKMEM_REPORT: a file, %p stands for the process's number; NULL = none */
    bool first;         /* not started by another process under hakmem: HAKMEM_PID is set by this one */
} hk_py_options;

/* false: a value that is none; it was named on stderr. */
bool hk_py_options_read(hk_py_options *options);

#endif
