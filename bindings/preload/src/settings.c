#include "settings.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ITEM_SIZE = PATH_MAX + 16, TRIM_MOST = 24 * 60 * 60 };

/* Digits, with units followed by one of K, M, G (powers of 1024); above 0. */
static bool number(const char *text, bool units, size_t *out)
{
    size_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (size_t)(*at - '0'), &value))
            return false;
    unsigned shift = 0;
    if (units && at > text && *at != '\0') {
        shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : 0;
        at += shift != 0;
    }
    if (*at != '\0' || value == 0 || value > SIZE_MAX >> shift) return false;
    *out = value << shift;
    return true;
}

/* The file by a name that still holds when the program has changed its directory. */
static bool report_to(hk_settings *s, const char *value)
{
    static char folder[PATH_MAX];
    bool relative = value[0] != '/', to_stderr = strcmp(value, "stderr") == 0;
    folder[0] = '\0';
    if (value[0] == '\0' || (!to_stderr && relative && getcwd(folder, sizeof folder) == NULL)) return false;
    if (strlen(folder) + relative + strlen(value) >= sizeof s->file) return false;
    s->file[0] = '\0';
    if (!to_stderr) snprintf(s->file, sizeof s->file, "%s%s%s", folder, relative ? "/" : "", value);
    s->report = true;
    return true;
}

/* NULL = taken; else what was expected. */
static const char *take(hk_settings *s, const char *key, const char *value)
{
    if (strcmp(key, "limit") == 0)
        return number(value, true, &s->limit) ? NULL : "bytes expected, such as 65536, 512K, 64M or 2G";
    if (strcmp(key, "trim") == 0) {
        size_t seconds;
        if (!number(value, false, &seconds) || seconds > TRIM_MOST) return "seconds expected, 1 to 86400";
        s->trim = (unsigned)seconds;
        return NULL;
    }
    if (strcmp(key, "report") == 0)
        return report_to(s, value) ? NULL : "stderr or the name of a file expected";
    if (strcmp(key, "name") == 0) {
        if (value[0] == '\0' || strlen(value) >= sizeof s->name) return "1 to 63 bytes expected";
        strcpy(s->name, value);
        return NULL;
    }
    return "there are limit=SIZE, report=stderr or a file, trim=SECONDS, name=TEXT";
}

static void complain(const char *item, const char *why)
{
    char line[200];
    int n = snprintf(line, sizeof line, "hakmem: HAKMEM: '%.80s': %s; left out\n", item, why);
    (void)!write(STDERR_FILENO, line, (size_t)n);
}

void hk_settings_read(hk_settings *settings, const char *text)
{
    static char item[ITEM_SIZE];
    while (text != NULL && *text != '\0') {
        size_t n = strcspn(text, ",");
        if (n >= sizeof item) {
            complain(text, "too long");
        } else if (n > 0) {
            memcpy(item, text, n);
            item[n] = '\0';
            char *equals = strchr(item, '=');
            if (equals != NULL) *equals = '\0';
            const char *why = take(settings, item, equals != NULL ? equals + 1 : "");
            if (equals != NULL) *equals = '=';
            if (why != NULL) complain(item, why);
        }
        text += n + (text[n] == ',');
    }
}
