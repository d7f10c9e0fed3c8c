/* Text format 0.0.4. Series for contexts and labels, none for stacks: there would be too many. */
#include "report.h"

#include <string.h>

static void put_value(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\n') fputs("\\n", out);
        else if (*c == '"' || *c == '\\') fprintf(out, "\\%c", *c);
        else fputc(*c, out);
    }
}

static void family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void series(FILE *out, const char *name, const hkr_report *r, const char *context, const char *label,
                   double value)
{
    fprintf(out, "%s{pid=\"%.0f\"", name, hkr_number(r->process, "pid"));
    if (context) {
        fputs(",context=\"", out);
        put_value(out, context);
        fputc('"', out);
    }
    if (label) {
        fputs(",label=\"", out);
        put_value(out, label);
        fputc('"', out);
    }
    fprintf(out, "} %.0f\n", value);
}

static void label_family(FILE *out, hkr_report *const *reports, size_t count, const char *name,
                         const char *member, const char *help)
{
    family(out, name, "gauge", help);
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < reports[r]->context_count; i++) {
            const hkr_context *c = &reports[r]->contexts[i];
            for (size_t l = 0; l < json_array_size(c->labels); l++) {
                const json_t *label = json_array_get(c->labels, l);
                series(out, name, reports[r], c->name, hkr_text(label, "name"), hkr_number(label, member));
            }
        }
}

bool hkr_write_prometheus(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *o)
{
    static const struct {
        const char *name, *member, *type, *help;
    } of_contexts[] = {
        {"hakmem_live_bytes", "live_bytes", "gauge", "Bytes of live blocks"},
        {"hakmem_live_blocks", "live_blocks", "gauge", "Live blocks"},
        {"hakmem_peak_bytes", "peak_bytes", "gauge", "Most live bytes so far"},
        {"hakmem_committed_bytes", "committed_bytes", "gauge",
         "Bytes taken from the system, which limits count"},
        {"hakmem_cached_bytes", "cached_bytes", "gauge", "Committed and free"},
        {"hakmem_metadata_bytes", "metadata_bytes", "gauge", "Bitmaps, labels and tables"},
        {"hakmem_hard_limit_bytes", "hard_limit", "gauge", "Limit on committed bytes, 0 without one"},
        {"hakmem_failures_total", "failures", "counter", "Allocations that were refused"},
    };
    (void)o;
    family(out, "hakmem_resident_bytes", "gauge", "Resident memory of the whole process");
    for (size_t r = 0; r < count; r++)
        series(out, "hakmem_resident_bytes", reports[r], NULL, NULL,
               hkr_number(reports[r]->memory, "resident_bytes"));
    for (size_t m = 0; m < sizeof of_contexts / sizeof of_contexts[0]; m++) {
        family(out, of_contexts[m].name, of_contexts[m].type, of_contexts[m].help);
        for (size_t r = 0; r < count; r++)
            for (size_t i = 0; i < reports[r]->context_count; i++)
                if (reports[r]->contexts[i].stats)
                    series(out, of_contexts[m].name, reports[r], reports[r]->contexts[i].name, NULL,
                           hkr_number(reports[r]->contexts[i].stats, of_contexts[m].member));
    }
    label_family(out, reports, count, "hakmem_label_live_bytes", "live_bytes",
                 "Bytes of live blocks by label");
    label_family(out, reports, count, "hakmem_label_live_blocks", "live_blocks", "Live blocks by label");
    return !ferror(out);
}
