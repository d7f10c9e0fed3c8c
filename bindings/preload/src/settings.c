#include "settings.h"

#include "common/learn.h"
#include "common/live.h"
#include "common/otel.h"
#include "common/pipe.h"
#include "common/policy.h"
#include "common/size.h"

#include <hakmem/profile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ITEM_SIZE = PATH_MAX + 16,
    TRIM_MOST = 24 * 60 * 60,
    GUARD_MOST = 1 << 30,
    TRACE_LEAST = 16,
    TRACE_MOST = 32768
};

/* Digits; 1 to most. 0 = it is something else. */
static size_t number(const char *text, size_t most)
{
    size_t value = 0;
    for (; *text >= '0' && *text <= '9' && value <= most; text++)
        value = value * 10 + (size_t)(*text - '0');
    return *text == '\0' && value <= most ? value : 0;
}

/* The file by a name that still holds when the program has changed its directory. */
static bool file_name(char out[PATH_MAX], const char *value)
{
    static char folder[PATH_MAX];
    const bool relative = value[0] != '/';
    folder[0] = '\0';
    if (value[0] == '\0' || (relative && !getcwd(folder, sizeof folder))) return false;
    if (strlen(folder) + relative + strlen(value) >= PATH_MAX) return false;
    snprintf(out, PATH_MAX, "%s%s%s", folder, relative ? "/" : "", value);
    return true;
}

static bool report_to(hks_settings *s, const char *value)
{
    const bool to_stderr = strcmp(value, "stderr") == 0;
    if (!to_stderr && !file_name(s->file, value)) return false;
    if (to_stderr) s->file[0] = '\0';
    s->report = true;
    return true;
}

/* NULL = taken. */
static const char *rate(hks_settings *s, const char *value)
{
    static const char range[] = "a size from 1K to 1T expected, or exact";
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    if (strcmp(value, "exact") == 0) {
        s->exact = true;
        return NULL;
    }
    const char *why = hkc_size_parse(value, &options.mean);
    if (why) return why;
    if (options.mean == 0 || hak_profile_options_error(&options)) return range;
    s->mean = options.mean;
    s->exact = false;
    return NULL;
}

/* NULL = taken. */
static const char *mode(hks_settings *s, const char *value)
{
    static char why[160];
    const int found = hkc_mode_parse(value, why, sizeof why);
    if (found < 0) return why;
    s->mode = (hak_mode)found;
    s->mode_named = found != HAK_MODE_LEARNING && found != HAK_MODE_RESEARCH;
    return NULL;
}

static const char *policy(hks_settings *s, const char *value)
{
    static char why[160];
    hak_policy *found = hkc_policy_load(value, why, sizeof why);
    if (!found) return why;
    hak_policy_unref(s->policy);
    s->policy = found;
    return NULL;
}

/* NULL = taken. */
static const char *on_or_off(bool *it, const char *value)
{
    const bool on = strcmp(value, "on") == 0;
    if (!on && strcmp(value, "off") != 0) return "on or off expected";
    *it = on;
    return NULL;
}

/* NULL = taken. */
static const char *probes(hks_settings *s, const char *value)
{
    const char *wrong = on_or_off(&s->probes, value);
    return !wrong && s->probes && !hkc_otel_there() ? "there are none on this system" : wrong;
}

/* NULL = taken. */
static const char *live(hks_settings *s, const char *value)
{
    const char *place, *wrong = hkc_live_setting(value, &place);
    if (wrong) return wrong;
    if (place && strchr(place, '/')) return file_name(s->live, place) ? NULL : "the path is too long";
    strcpy(s->live, place ? place : "");
    return NULL;
}

/* NULL = taken. */
static const char *check(hks_settings *s, const char *value)
{
    static const char *const names[] = {
        [HKS_CHECK_OFF] = "off", [HKS_CHECK_REPORT] = "report", [HKS_CHECK_ABORT] = "abort"};
    for (int i = HKS_CHECK_OFF; i <= HKS_CHECK_ABORT; i++)
        if (strcmp(value, names[i]) == 0) {
            s->check = (hks_check)i;
            return NULL;
        }
    return "report, abort or off expected";
}

static const char *trace(hks_settings *s, const char *value)
{
    const size_t calls = number(value, TRACE_MOST);
    if (calls < TRACE_LEAST) return "a number of calls expected, 16 to 32768";
    s->trace = calls;
    return NULL;
}

/* NULL = taken; else what was expected. */
static const char *take(hks_settings *s, const char *key, const char *value)
{
    if (strcmp(key, "limit") == 0) return hkc_size_parse(value, &s->limit);
    if (strcmp(key, "reserve") == 0) return hkc_reserve_parse(value, &s->reserve);
    if (strcmp(key, "trim") == 0) {
        const size_t seconds = number(value, TRIM_MOST);
        if (seconds == 0) return "seconds expected, 1 to 86400";
        s->trim = (unsigned)seconds;
        return NULL;
    }
    if (strcmp(key, "report") == 0)
        return report_to(s, value) ? NULL : "stderr or the name of a file expected";
    if (strcmp(key, "profile") == 0)
        return file_name(s->profile, value) ? NULL : "the name of a file expected";
    if (strcmp(key, "rate") == 0) return rate(s, value);
    if (strcmp(key, "window") == 0) {
        const char *why = hkc_window_parse(value, &s->window_ns);
        if (!why) s->has_window = true;
        return why;
    }
    if (strcmp(key, "mode") == 0) return mode(s, value);
    if (strcmp(key, "policy") == 0) return policy(s, value);
    if (strcmp(key, "learn") == 0) /* is read when all is known: a policy goes before what it says */
        return file_name(s->learn, value) ? NULL : "the name of a file expected";
    if (strcmp(key, "memory") == 0) return hkc_memory_parse(value, &s->memory);
    if (strcmp(key, "price") == 0) return hkc_price_parse(value, &s->memory);
    if (strcmp(key, "live") == 0) return live(s, value);
    if (strcmp(key, "signal") == 0) {
        const int found = hkc_live_signal(value);
        if (found == 0) return "USR1, USR2, HUP or the number of a real-time signal expected";
        s->signal = found;
        return NULL;
    }
    if (strcmp(key, "name") == 0) {
        if (value[0] == '\0' || strlen(value) >= sizeof s->name) return "1 to 63 bytes expected";
        strcpy(s->name, value);
        return NULL;
    }
    if (strcmp(key, "check") == 0) return check(s, value);
    if (strcmp(key, "guard") == 0) {
        const size_t every = number(value, GUARD_MOST);
        if (every == 0) return "a number expected, 1 to 1073741824: one block in so many";
        s->guard = every;
        return NULL;
    }
    if (strcmp(key, "trace") == 0) return trace(s, value);
    if (strcmp(key, "probes") == 0) return probes(s, value);
    if (strcmp(key, "canary") == 0) return on_or_off(&s->canary, value);
    if (strcmp(key, "quarantine") == 0) return on_or_off(&s->quarantine, value);
    return "no such key; there are limit=SIZE, report=stderr or a file, profile=FILE, rate=SIZE or exact, "
           "window=TIME or off, signal=NAME, probes=on or off, live=on, off or a socket, reserve=SIZE, "
           "trim=SECONDS, name=TEXT, check=report, abort or off, guard=NUMBER, canary=on or off, "
           "quarantine=on or off, trace=NUMBER, mode=NAME, policy=FILE, learn=FILE, "
           "memory=cheap, normal, dear or SIZE, price=NUMBER";
}

static bool wrong;

static void complain(const char *item, const char *why)
{
    char line[720]; /* for the longest there is */
    const int n =
        snprintf(line, sizeof line, "hakmem: HAKMEM: '%.80s': %s; the program is not started\n", item, why);
    (void)hkc_pipe_write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
    wrong = true;
}

static void parse(hks_settings *settings, const char *text)
{
    static char item[ITEM_SIZE];
    while (text && *text != '\0') {
        size_t n = strcspn(text, ",");
        if (n >= sizeof item) {
            complain(text, "too long");
        } else if (n > 0) {
            memcpy(item, text, n);
            item[n] = '\0';
            char *equals = strchr(item, '=');
            if (equals) *equals = '\0';
            const char *why = take(settings, item, equals ? equals + 1 : "");
            if (equals) *equals = '=';
            if (why) complain(item, why);
        }
        text += n + (text[n] == ',');
    }
}

const hks_settings *hks_settings_get(void)
{
    static hks_settings settings;
    static bool done;
    /* The first allocation comes before any second thread. */
    if (!done) {
        done = true;
        parse(&settings, secure_getenv("HAKMEM"));
        static char why[160], item[ITEM_SIZE];
        if (*settings.learn != '\0' && !settings.policy &&
            !hkc_learn_load(settings.learn, &settings.policy, why, sizeof why)) {
            snprintf(item, sizeof item, "learn=%s", settings.learn);
            complain(item, why);
        }
        settings.policy = hkc_memory_begin(settings.policy, &settings.memory, hks_settings_learn(&settings),
                                           settings.mode_named);
        if (settings.signal != 0 && *settings.profile == '\0')
            complain("signal", "there is no profile=FILE to write");
        static const char none[] = "there is no profile: profile=FILE or probes=on expected";
        if ((settings.mean != 0 || settings.exact) && !hks_settings_profile(&settings))
            complain("rate", none);
        if (settings.has_window && !hks_settings_profile(&settings)) complain("window", none);
        if (!settings.has_window) settings.window_ns = HKC_WINDOW_NS;
        if (wrong) _exit(HKS_STATUS);
    }
    return &settings;
}
