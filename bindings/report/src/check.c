#include "check.h"

#include <stdio.h>

enum { MEMBERS = 4 };

/* An array of objects in a context. */
typedef struct part {
    const char *name, *texts[MEMBERS], *amounts[MEMBERS],
        *maybe[MEMBERS]; /* maybe: an amount if it is there */
} part;
static const part parts[] = {
    {"labels", {"name"}, {"live_bytes", "live_blocks"}, {NULL}},
    {"marks", {"name"}, {"at_ns"}, {"live_bytes", "committed_bytes", "resident_bytes"}},
    {"timeline", {NULL}, {"at_ns", "live_bytes", "committed_bytes"}, {"resident_bytes"}},
    {"decisions", {"kind", "text"}, {"at_ns"}, {NULL}},
    {"verdicts", {"kind", "evidence"}, {"stack"}, {"freed_share", "kept_share", "since_ns", "windows"}},
    {"histories", {NULL}, {"stack"}, {NULL}},
    {"imports", {"name"}, {"live_bytes", "total_bytes"}, {"live_blocks"}},
    {"holes", {NULL}, {"block_bytes", "free_bytes", "pinned_bytes"}, {"blocks"}},
};
/* Of the whole process, in its member "memory". */
static const part resident = {"parts", {"kind", "name"}, {"bytes"}, {NULL}};

bool hkr_is_amount(const json_t *value)
{
    const double n = json_number_value(value);
    return json_is_number(value) && n >= 0 && n < 1e20;
}

static bool fail(char *wrong, size_t size, const char *array, size_t i, const char *name)
{
    snprintf(wrong, size, name ? "%s[%zu].%s" : "%s[%zu]", array, i, name);
    return false;
}

static bool check_one(const part *p, const json_t *one, size_t i, char *wrong, size_t size)
{
    if (!json_is_object(one)) return fail(wrong, size, p->name, i, NULL);
    for (size_t m = 0; m < MEMBERS && p->texts[m]; m++)
        if (!json_is_string(json_object_get(one, p->texts[m])))
            return fail(wrong, size, p->name, i, p->texts[m]);
    for (size_t m = 0; m < MEMBERS && p->amounts[m]; m++)
        if (!hkr_is_amount(json_object_get(one, p->amounts[m])))
            return fail(wrong, size, p->name, i, p->amounts[m]);
    for (size_t m = 0; m < MEMBERS && p->maybe[m]; m++) {
        const json_t *value = json_object_get(one, p->maybe[m]);
        if (value && !hkr_is_amount(value)) return fail(wrong, size, p->name, i, p->maybe[m]);
    }
    return true;
}

static bool check_part(const part *p, const json_t *context, char *wrong, size_t size)
{
    const json_t *array = json_object_get(context, p->name);
    if (array && !json_is_array(array)) {
        snprintf(wrong, size, "%s", p->name);
        return false;
    }
    for (size_t i = 0; i < json_array_size(array); i++)
        if (!check_one(p, json_array_get(array, i), i, wrong, size)) return false;
    return true;
}

static bool check_numbers(const json_t *object, const char *name, size_t count, size_t i, char *wrong,
                          size_t size)
{
    const json_t *array = json_object_get(object, name);
    bool sound = !array || (json_is_array(array) && json_array_size(array) == count);
    for (size_t n = 0; n < json_array_size(array) && sound; n++)
        sound = hkr_is_amount(json_array_get(array, n));
    return sound || fail(wrong, size, "histories", i, name);
}

/* A number for each window: of `live` when it began, which is not told of the first. */
static bool check_histories(const json_t *context, char *wrong, size_t size)
{
    const json_t *array = json_object_get(context, "histories");
    const size_t marks = json_array_size(json_object_get(context, "marks"));
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *one = json_array_get(array, i);
        if (!check_numbers(one, "live", marks, i, wrong, size) ||
            !check_numbers(one, "allocated", marks + 1, i, wrong, size) ||
            !check_numbers(one, "kept", marks + 1, i, wrong, size))
            return false;
    }
    return true;
}

/* What grew is one of the stacks. */
static bool check_verdicts(const hkr_context *c, char *wrong, size_t size)
{
    for (size_t i = 0; i < json_array_size(c->verdicts); i++) {
        const double id = hkr_number(json_array_get(c->verdicts, i), "stack");
        if (hkr_stack_of(c, id)) continue;
        snprintf(wrong, size, "verdicts[%zu].stack, as there is no stack %.0f,", i, id);
        return false;
    }
    return true;
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

/* Members that may be missing, but are what `is` says where they are there. */
static bool check_members(bool (*is)(const json_t *value), const char *name, const json_t *object,
                          const char *const *names, char *wrong, size_t size)
{
    for (; *names; names++) {
        const json_t *value = json_object_get(object, *names);
        if (!value || is(value)) continue;
        snprintf(wrong, size, "%s.%s", name, *names);
        return false;
    }
    return true;
}

static bool check_command(const json_t *command, char *wrong, size_t size)
{
    const size_t count = json_array_size(command);
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(command, i))) return fail(wrong, size, "process.command", i, NULL);
    if (!command || json_is_array(command)) return true;
    snprintf(wrong, size, "process.command");
    return false;
}

bool hkr_check_process(const json_t *process, char *wrong, size_t size)
{
    static const char *const amounts[] = {"pid", "parent", "time", "now_ns", "cpu_seconds", NULL};
    static const char *const texts[] = {"name", "version", NULL};
    const double last = 253402300799; /* the last second of the year 9999 */
    const json_t *runtime = json_object_get(process, "runtime");
    if (!check_command(json_object_get(process, "command"), wrong, size)) return false;
    if (!check_members(hkr_is_amount, "process", process, amounts, wrong, size)) return false;
    if (!check_members(is_text, "process.runtime", runtime, texts, wrong, size)) return false;
    if (runtime && !json_is_object(runtime)) snprintf(wrong, size, "process.runtime");
    else if (hkr_number(process, "time") > last) snprintf(wrong, size, "process.time");
    else return true;
    return false;
}

bool hkr_check_memory(const json_t *memory, char *wrong, size_t size)
{
    static const char *const names[] = {"resident_bytes", "peak_resident_bytes", "anonymous_bytes", NULL};
    if (!check_members(hkr_is_amount, "memory", memory, names, wrong, size)) return false;
    if (check_part(&resident, memory, wrong, size)) return true;
    char text[128];
    snprintf(text, sizeof text, "memory.%.100s", wrong);
    snprintf(wrong, size, "%s", text);
    return false;
}

bool hkr_check_context(const json_t *context, const hkr_context *read, char *wrong, size_t size)
{
    static const char *const stats[] = {"live_bytes",     "live_blocks",  "peak_bytes",     "committed_bytes",
                                        "metadata_bytes", "cached_bytes", "released_bytes", "reserved_bytes",
                                        "retained_bytes", "big_bytes",    "big_blocks",     "soft_limit",
                                        "hard_limit",     "failures",     "os_calls",       NULL};
    static const char *const profile[] = {"mean_bytes",    "samples",     "dropped_stacks", "dropped_samples",
                                          "dropped_bytes", "table_bytes", "window_ns",      NULL};
    static const char *const mode[] = {"mode", NULL};
    static const char *const linear[] = {"bytes", "memories", "resident_bytes", "proportional_bytes", NULL};
    if (!check_members(hkr_is_amount, "stats", json_object_get(context, "stats"), stats, wrong, size))
        return false;
    if (!check_members(hkr_is_amount, "profile", json_object_get(context, "profile"), profile, wrong, size))
        return false;
    if (!check_members(is_text, "profile", json_object_get(context, "profile"), mode, wrong, size))
        return false;
    if (!check_members(hkr_is_amount, "linear", json_object_get(context, "linear"), linear, wrong, size))
        return false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!check_part(&parts[i], context, wrong, size)) return false;
    if (!check_histories(context, wrong, size)) return false;
    return check_verdicts(read, wrong, size);
}
