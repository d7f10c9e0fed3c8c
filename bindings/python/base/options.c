#define _POSIX_C_SOURCE 200809L
#include "base/options.h"

#include "common/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool bad(const char *name, const char *value)
{
    fprintf(stderr, "hakmem: %s=%s: not understood, hakmem stays out\n", name, value);
    return false;
}

bool hkp_options_read(hkp_options *options)
{
    const char *domains = getenv("HAKMEM_DOMAINS"), *limit = getenv("HAKMEM_LIMIT");
    const char *labels = getenv("HAKMEM_LABELS"), *report = getenv("HAKMEM_REPORT");
    const char *profile = getenv("HAKMEM_PROFILE");
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    /* A program that replaces itself keeps its number. */
    const char *first = getenv("HAKMEM_PID");
    *options = (hkp_options){.labels = labels && *labels ? labels : "off"};
    if (profile && *profile) options->profile = strcmp(profile, "on") == 0 ? "" : profile;
    if (report && *report) options->report = report;
    options->first = !first || strcmp(first, pid) == 0;
    if (!first) setenv("HAKMEM_PID", pid, 1);
    if (domains && *domains) {
        options->all = strcmp(domains, "all") == 0;
        if (!options->all && strcmp(domains, "raw") != 0) return bad("HAKMEM_DOMAINS", domains);
    }
    if (limit && *limit && hkc_size_parse(limit, &options->limit)) return bad("HAKMEM_LIMIT", limit);
    return true;
}
