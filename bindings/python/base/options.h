/* What the environment asks of the hook. */
#ifndef HKP_OPTIONS_H
#define HKP_OPTIONS_H

#include "base/core.h"

#include "common/memory.h"

#include <hakmem/policy.h>

typedef struct hkp_options {
    bool all;            /* HAKMEM_DOMAINS=all; default raw */
    const char *labels;  /* HAKMEM_LABELS; default off */
    const char *profile; /* HAKMEM_PROFILE: "on" is "", else; NULL = none */
    const char *window;  /* HAKMEM_PROFILE_WINDOW; NULL = the default */
    int reused;          /* HAKMEM_REUSED: whether objects from free lists are followed; -1 = by default */
    size_t limit;        /* HAKMEM_LIMIT, as hkc_size_parse reads it; 0 = none */
    size_t reserve;      /* HAKMEM_RESERVE: hak_space_options.reserve; 0 = none */
    int mode;            /* HAKMEM_MODE, a hak_mode; -1 = none */
    hak_policy *policy;  /* of the file HAKMEM_POLICY; NULL = none */
    hkc_memory memory;   /* HAKMEM_MEMORY and HAKMEM_PRICE: what it is worth */
    const char *learn;   /* HAKMEM_LEARN: a file, of the first process alone; NULL = none */
    const char *report;  /* HAKMEM_REPORT: a file, %p stands for the process's number; NULL = none */
    const char *live;    /* HAKMEM_LIVE: on, or a socket; NULL = none */
    bool first;          /* not started by another process under hakmem: HAKMEM_PID is set by this one */
} hkp_options;

/* Returns false for a value that is none, which a line on stderr has named: Python must not start. */
bool hkp_options_read(hkp_options *options);
/* Whether a limit is asked for, be it one that cannot be read. */
bool hkp_options_limited(void);

#endif
