#include "otlp.h"
#include "series.h"

#include <inttypes.h>
#include <string.h>

enum { CUMULATIVE = 2 }; /* of OTLP's AggregationTemporality */

typedef struct writer {
    json_t *metrics, *points; /* points: of the last metric */
    uint64_t now;
} writer;

/* 64-bit numbers are texts in this encoding, and signed. */
static json_t *number_text(double value)
{
    return json_sprintf("%" PRId64, value < 0 ? 0 : value < 9.2e18 ? (int64_t)value : INT64_MAX);
}

static json_t *attribute(const char *key, const char *text)
{
    return json_pack("{s:s,s:{s:s}}", "key", key, "value", "stringValue", text);
}

static bool add_family(void *user, const hkr_family *f)
{
    writer *w = user;
    const size_t n = strlen(f->name) - (f->counter ? strlen("_total") : 0);
    json_t *points = json_array(), *data = json_pack("{s:O}", "dataPoints", points);
    if (f->counter && data)
        json_object_update_new(data, json_pack("{s:i,s:b}", "aggregationTemporality", CUMULATIVE, "isMonotonic", 1));
    json_t *metric = json_pack("{s:s#,s:s,s:s,s:o}", "name", f->name, (int)n, "description", f->help, "unit",
                               f->unit, f->counter ? "sum" : "gauge", data);
    w->points = points;
    json_decref(points); /* the metric has it */
    return metric && json_array_append_new(w->metrics, metric) == 0;
}

static bool add_point(void *user, const hkr_family *f, const hkr_point *p)
{
    writer *w = user;
    (void)f;
    json_t *attributes = json_array();
    for (int i = 0; i < 2 && p->keys[i]; i++)
        json_array_append_new(attributes, attribute(p->keys[i], p->values[i]));
    json_t *point = json_pack("{s:o,s:o,s:o}", "attributes", attributes, "timeUnixNano",
                              json_sprintf("%" PRIu64, w->now), "asInt", number_text(p->value));
    return point && json_array_append_new(w->points, point) == 0;
}

/* Who the numbers are of, by the names that OpenTelemetry gives to such things. */
static json_t *resource(const hkr_report *r)
{
    json_t *attributes = json_array();
    const json_t *runtime = json_object_get(r->process, "runtime");
    const char *command = json_string_value(json_array_get(json_object_get(r->process, "command"), 0));
    const char *slash = command ? strrchr(command, '/') : NULL, *name = slash ? slash + 1 : command;
    const double pid = hkr_number(r->process, "pid");
    json_array_append_new(attributes, attribute("service.name", name ? name : "unknown_service"));
    if (pid > 0)
        json_array_append_new(attributes, json_pack("{s:s,s:{s:o}}", "key", "process.pid", "value", "intValue",
                                                    number_text(pid)));
    if (*hkr_text(runtime, "name"))
        json_array_append_new(attributes, attribute("process.runtime.name", hkr_text(runtime, "name")));
    if (*hkr_text(runtime, "version"))
        json_array_append_new(attributes, attribute("process.runtime.version", hkr_text(runtime, "version")));
    return json_pack("{s:o}", "attributes", attributes);
}

/* A counter's start, the time at which its process began, is not in a report, and is left out. */
static json_t *of_process(const hkr_report *r, uint64_t now)
{
    writer w = {.metrics = json_array(), .now = now};
    hkr_report *one = (hkr_report *)(uintptr_t)r;
    if (!hkr_each_series(&one, 1, &(hkr_series_sink){add_family, add_point, &w})) {
        json_decref(w.metrics);
        return NULL;
    }
    for (size_t i = json_array_size(w.metrics); i-- > 0;) { /* none without points */
        const json_t *metric = json_array_get(w.metrics, i), *gauge = json_object_get(metric, "gauge");
        if (json_array_size(json_object_get(gauge ? gauge : json_object_get(metric, "sum"), "dataPoints")) == 0)
            json_array_remove(w.metrics, i);
    }
    return json_pack("{s:o,s:[{s:{s:s,s:s},s:o}]}", "resource", resource(r), "scopeMetrics", "scope", "name",
                     "hakmem", "version", *hkr_text(r->root, "hakmem") ? hkr_text(r->root, "hakmem") : "0",
                     "metrics", w.metrics);
}

json_t *hkr_otlp(hkr_report *const *reports, size_t count, uint64_t now)
{
    json_t *all = json_array();
    bool ok = all;
    for (size_t i = 0; i < count && ok; i++)
        ok = json_array_append_new(all, of_process(reports[i], now)) == 0;
    if (ok) return json_pack("{s:o}", "resourceMetrics", all);
    json_decref(all);
    return NULL;
}
