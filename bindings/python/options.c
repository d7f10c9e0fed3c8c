#define _POSIX_C_SOURCE 200809L
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool bad(const char *name, const char *value)
{
    fprintf(stderr, "hakmem: %s=%s: not understood, hakmem stays out\n", name, value);
    return false;
}

static bool size_of(const char *text, size_t *out)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (*text < '0' || *text > '9' || errno != 0 || (*end && (!unit || end[1])) || n > SIZE_MAX >> shift)
        return false;
    *out = (size_t)n << shift;
    return true;
}

bool hk_py_options_read(hk_py_options *options)
{
    const char *domains = getenv("HAKMEM_DOMAINS"), *limit = getenv("HAKMEM_LIMIT");
    const char *labels = getenv("HAKMEM_LABELS"), *report = getenv("HAKMEM_REPORT");
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    /* A program that replaces itself keeps its number. */
    const char *first = getenv("HAKMEM_PID");
    *options = (hk_py_options){.labels = labels && *labels ? labels : "off"};
    if (report && *report) options->report = report;
    options->first = !first || strcmp(first, pid) == 0;
    if (!first) setenv("HAKMEM_PID", pid, 1);
    if (domains && *domains) {
        options->all = strcmp(domains, "all") == 0;
        if (!options->all && strcmp(domains, "raw") != 0) return bad("HAKMEM_DOMAINS", domains);
    }
    if (limit && *limit && !size_of(limit, &options->limit)) return bad("HAKMEM_LIMIT", limit);
    return true;
}
