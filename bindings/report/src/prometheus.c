/* Text format 0.0.4, or OpenMetrics 1.0. */
#include "series.h"

#include <string.h>

typedef struct writer {
    FILE *out;
    bool open_metrics;
} writer;

static void put_value(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\n') fputs("\\n", out);
        else if (*c == '"' || *c == '\\') fprintf(out, "\\%c", *c);
        else fputc(*c, out);
    }
}

/* A counter's family has no "_total" in OpenMetrics. */
static bool put_family(void *user, const hkr_family *f)
{
    const writer *w = user;
    const size_t n = strlen(f->name) - (w->open_metrics && f->counter ? strlen("_total") : 0);
    return fprintf(w->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)n, f->name, f->help, (int)n, f->name,
                   f->counter ? "counter" : "gauge") > 0;
}

static bool put_point(void *user, const hkr_family *f, const hkr_point *p)
{
    const writer *w = user;
    const double pid = hkr_number(p->report->process, "pid");
    fprintf(w->out, "%s{", f->name);
    if (pid > 0) fprintf(w->out, "pid=\"%.0f\"", pid);
    for (int i = 0; i < 2 && p->keys[i]; i++) {
        fprintf(w->out, "%s%s=\"", i > 0 || pid > 0 ? "," : "", p->keys[i]);
        put_value(w->out, p->values[i]);
        fputc('"', w->out);
    }
    return fprintf(w->out, "} %.0f\n", p->value) > 0;
}

bool hkr_write_prometheus(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *o)
{
    writer w = {out, o->open_metrics};
    const bool ok = hkr_each_series(reports, count, &(hkr_series_sink){put_family, put_point, &w});
    if (o->open_metrics) fputs("# EOF\n", out);
    return ok && !ferror(out);
}
