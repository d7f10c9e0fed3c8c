/* HAKMEM=key=value,... */
#ifndef HKS_PRELOAD_SETTINGS_H
#define HKS_PRELOAD_SETTINGS_H

#include "common/memory.h"

#include <hakmem/policy.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hks_check { HKS_CHECK_OFF, HKS_CHECK_REPORT, HKS_CHECK_ABORT } hks_check;

typedef struct hks_settings {
    size_t limit;           /* bytes; 0 = none */
    size_t reserve;         /* address space of the first extent; 0 = the default */
    unsigned trim;          /* seconds between trims; 0 = none */
    bool report;            /* at exit */
    char file[PATH_MAX];    /* where; "" = stderr */
    char profile[PATH_MAX]; /* file; "" = none */
    size_t mean;            /* bytes to a sample; 0 = the default */
    int signal;             /* that asks for a profile; 0 = none */
    char live[PATH_MAX];    /* "on", or the socket; "" = none */
    bool exact;             /* every block */
    bool probes;            /* a profile without a file, for tracers */
    uint64_t window_ns;     /* of the profile; 0 = windows do not begin by themselves */
    bool has_window;        /* was said */
    char name[64];          /* in the report */
    hks_check check;        /* of every free */
    hak_mode mode;          /* memory against speed */
    bool mode_named;        /* the user named one, which does not just learn */
    hak_policy *policy;     /* NULL = none */
    hkc_memory memory;      /* what it is worth */
    char learn[PATH_MAX];   /* file that what is learned goes to; "" = none */
    size_t guard;           /* one block in so many is before a guard page; 0 = none */
    size_t trace;           /* calls that are kept for what is told of misuse; 0 = none */
    bool canary;            /* behind each block */
    bool quarantine;        /* for freed blocks */
} hks_settings;

static inline bool hks_settings_learn(const hks_settings *s)
{
    return *s->learn != '\0' || s->mode == HAK_MODE_LEARNING || s->mode == HAK_MODE_RESEARCH;
}

/* Whether a profile runs, be it for a file or for tracers. */
static inline bool hks_settings_profile(const hks_settings *s)
{
    return *s->profile != '\0' || s->probes;
}

static inline bool hks_settings_finds_misuse(const hks_settings *s)
{
    return s->check != HKS_CHECK_OFF || s->guard != 0 || s->trace != 0 || s->canary || s->quarantine;
}

/* Whether a limit or a check was asked for: a program that cannot have it is not started. */
static inline bool hks_settings_protect(const hks_settings *s)
{
    return s->limit != 0 || hks_settings_finds_misuse(s);
}

/* Of a process that is ended before its program begins. */
enum { HKS_STATUS = 2 };

/* Read by the first call, which the first allocation of the process makes. What is wrong is told in a line on
 * stderr each, and the process ends: beside it a limit or a check may be missing that was asked for. */
const hks_settings *hks_settings_get(void);

#endif
