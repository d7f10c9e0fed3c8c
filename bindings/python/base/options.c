#define _POSIX_C_SOURCE 200809L
#include "base/options.h"

#include "common/learn.h"
#include "common/live.h"
#include "common/policy.h"
#include "common/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool none(const char *name, const char *value, const char *why)
{
    fprintf(stderr, "hakmem: %s=%.400s: %s; Python is not started\n", name, value, why);
    return false;
}

/* A policy goes before what was learned. */
static bool read_learned(hkp_options *options)
{
    char why[400];
    if (!options->learn || hkc_learn_load(options->learn, &options->policy, why, sizeof why)) return true;
    fprintf(stderr, "hakmem: HAKMEM_LEARN: %s; Python is not started\n", why);
    return false;
}

static bool read_mode(hkp_options *options)
{
    const char *mode = getenv("HAKMEM_MODE"), *policy = getenv("HAKMEM_POLICY");
    char why[400];
    if (mode && *mode && (options->mode = hkc_mode_parse(mode, why, sizeof why)) < 0)
        return none("HAKMEM_MODE", mode, why);
    if (options->mode == HAK_MODE_LEARNING || options->mode == HAK_MODE_RESEARCH)
        return none("HAKMEM_MODE", mode, "Python learns with a file: HAKMEM_LEARN=FILE, --learn FILE");
    if (!policy || !*policy) return read_learned(options);
    options->policy = hkc_policy_load(policy, why, sizeof why);
    if (!options->policy) fprintf(stderr, "hakmem: HAKMEM_POLICY: %s; Python is not started\n", why);
    return options->policy;
}

static bool read_memory(hkp_options *options)
{
    const char *memory = getenv("HAKMEM_MEMORY"), *price = getenv("HAKMEM_PRICE");
    const char *wrong = memory && *memory ? hkc_memory_parse(memory, &options->memory) : NULL;
    if (wrong) return none("HAKMEM_MEMORY", memory, wrong);
    wrong = price && *price ? hkc_price_parse(price, &options->memory) : NULL;
    return !wrong || none("HAKMEM_PRICE", price, wrong);
}

static bool read_reserve(hkp_options *options)
{
    const char *text = getenv("HAKMEM_RESERVE");
    const char *wrong = text && *text ? hkc_reserve_parse(text, &options->reserve) : NULL;
    return !wrong || none("HAKMEM_RESERVE", text, wrong);
}

static bool read_reused(hkp_options *options)
{
    const char *text = getenv("HAKMEM_REUSED");
    options->reused = -1;
    if (!text || !*text) return true;
    options->reused = strcmp(text, "on") == 0;
    return options->reused || strcmp(text, "off") == 0 || none("HAKMEM_REUSED", text, "on or off expected");
}

static bool read_limit(hkp_options *options)
{
    const char *limit = getenv("HAKMEM_LIMIT");
    const char *wrong = limit && *limit ? hkc_size_parse(limit, &options->limit) : NULL;
    return !wrong || none("HAKMEM_LIMIT", limit, wrong);
}

bool hkp_options_limited(void)
{
    size_t bytes;
    const char *limit = getenv("HAKMEM_LIMIT");
    return limit && *limit && (hkc_size_parse(limit, &bytes) || bytes);
}

bool hkp_options_read(hkp_options *options)
{
    const char *domains = getenv("HAKMEM_DOMAINS");
    const char *labels = getenv("HAKMEM_LABELS"), *report = getenv("HAKMEM_REPORT");
    const char *profile = getenv("HAKMEM_PROFILE"), *live = getenv("HAKMEM_LIVE");
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    /* A program that replaces itself keeps its number. */
    const char *first = getenv("HAKMEM_PID");
    *options = (hkp_options){.labels = labels && *labels ? labels : "off", .mode = -1};
    if (profile && *profile) options->profile = strcmp(profile, "on") == 0 ? "" : profile;
    if (report && *report) options->report = report;
    const char *wrong = live && *live ? hkc_live_setting(live, &options->live) : NULL;
    if (wrong) return none("HAKMEM_LIVE", live, wrong);
    const char *window = getenv("HAKMEM_PROFILE_WINDOW");
    if (window && *window) options->window = window;
    options->first = !first || strcmp(first, pid) == 0;
    const char *learn = getenv("HAKMEM_LEARN");
    if (learn && *learn && options->first) options->learn = learn;
    if (!first) setenv("HAKMEM_PID", pid, 1);
    if (domains && *domains) {
        options->all = strcmp(domains, "all") == 0;
        if (!options->all && strcmp(domains, "raw") != 0)
            return none("HAKMEM_DOMAINS", domains, "raw or all expected");
    }
    if (!read_limit(options) || !read_reused(options) || !read_reserve(options) || !read_memory(options) ||
        !read_mode(options))
        return false;
    options->policy =
        hkc_memory_begin(options->policy, &options->memory, options->learn != NULL, options->mode >= 0);
    /* The numbers that Python gives where no mode is named are those of a lean heap. */
    const bool chosen =
        options->policy && (options->learn || options->memory.price || options->memory.budget);
    if (options->mode < 0 && chosen) options->mode = hak_policy_mode(options->policy);
    return true;
}
