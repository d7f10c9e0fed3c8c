#define _GNU_SOURCE
#include "base/options.h"

#include "common/learn.h"
#include "common/live.h"
#include "common/policy.h"
#include "common/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NULL = it is not there, or empty, or the program has more rights than its user. */
static const char *setting(const char *name)
{
    const char *text = secure_getenv(name);
    return text && *text ? text : NULL;
}

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
    const char *mode = setting("HAKMEM_MODE"), *policy = setting("HAKMEM_POLICY");
    char why[400];
    if (mode && (options->mode = hkc_mode_parse(mode, why, sizeof why)) < 0)
        return none("HAKMEM_MODE", mode, why);
    if (options->mode == HAK_MODE_LEARNING || options->mode == HAK_MODE_RESEARCH)
        return none("HAKMEM_MODE", mode, "Python learns with a file: HAKMEM_LEARN=FILE, --learn FILE");
    if (!policy) return read_learned(options);
    options->policy = hkc_policy_load(policy, why, sizeof why);
    if (!options->policy) fprintf(stderr, "hakmem: HAKMEM_POLICY: %s; Python is not started\n", why);
    return options->policy;
}

static bool read_memory(const char *name, const char *(*parse)(const char *, hkc_memory *), hkc_memory *out)
{
    const char *text = setting(name), *wrong = text ? parse(text, out) : NULL;
    return !wrong || none(name, text, wrong);
}

static bool read_size(const char *name, const char *(*parse)(const char *, size_t *), size_t *out)
{
    const char *text = setting(name), *wrong = text ? parse(text, out) : NULL;
    return !wrong || none(name, text, wrong);
}

static bool read_reused(hkp_options *options)
{
    const char *text = setting("HAKMEM_REUSED");
    options->reused = text ? strcmp(text, "on") == 0 : -1;
    return options->reused != 0 || strcmp(text, "off") == 0 ||
           none("HAKMEM_REUSED", text, "on or off expected");
}

bool hkp_options_limited(void)
{
    size_t bytes;
    const char *limit = setting("HAKMEM_LIMIT");
    return limit && (hkc_size_parse(limit, &bytes) || bytes);
}

bool hkp_options_read(hkp_options *options)
{
    const char *domains = setting("HAKMEM_DOMAINS"), *labels = setting("HAKMEM_LABELS"),
               *live = setting("HAKMEM_LIVE");
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    /* A program that replaces itself keeps its number. */
    const char *first = secure_getenv("HAKMEM_PID");
    *options = (hkp_options){.labels = labels ? labels : "off",
                             .mode = -1,
                             .profile = setting("HAKMEM_PROFILE"),
                             .window = setting("HAKMEM_PROFILE_WINDOW"),
                             .report = setting("HAKMEM_REPORT"),
                             .first = !first || strcmp(first, pid) == 0};
    if (options->profile && strcmp(options->profile, "on") == 0) options->profile = "";
    if (options->first) options->learn = setting("HAKMEM_LEARN");
    if (!first) setenv("HAKMEM_PID", pid, 1);
    const char *wrong = live ? hkc_live_setting(live, &options->live) : NULL;
    if (wrong) return none("HAKMEM_LIVE", live, wrong);
    options->all = domains && strcmp(domains, "all") == 0;
    if (domains && !options->all && strcmp(domains, "raw") != 0)
        return none("HAKMEM_DOMAINS", domains, "raw or all expected");
    if (!read_size("HAKMEM_LIMIT", hkc_size_parse, &options->limit) ||
        !read_size("HAKMEM_RESERVE", hkc_reserve_parse, &options->reserve) ||
        !read_memory("HAKMEM_MEMORY", hkc_memory_parse, &options->memory) ||
        !read_memory("HAKMEM_PRICE", hkc_price_parse, &options->memory) || !read_reused(options) ||
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
