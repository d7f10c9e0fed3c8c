/* Text format 0.0.4. Series for contexts and labels, none for stacks: there would be too many. */
#include "parts.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

/* All contexts, by names that are unique in their report as they are written. */
typedef struct names {
    struct {
        const hkr_report *report;
        const hkr_context *context;
        char *name;
    } * of;
    size_t count;
} names;

/* A newline has an escape of its own. To be freed; NULL = no memory. */
static char *plain(const char *text)
{
    char *made = strdup(text);
    for (char *c = made; made && *c; c++) {
        const size_t control = *c == '\n' ? 0 : hkr_control(c);
        for (size_t i = 0; i < control; i++)
            c[i] = '?';
    }
    return made;
}

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
    const double pid = hkr_number(r->process, "pid");
    fprintf(out, "%s{", name);
    if (pid > 0) fprintf(out, "pid=\"%.0f\"", pid);
    if (context) {
        fprintf(out, "%scontext=\"", pid > 0 ? "," : "");
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

static void names_free(names *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->of[i].name);
    free(all->of);
}

static bool add_names(names *all, const hkr_report *r)
{
    json_t *taken = json_object();
    bool ok = taken;
    for (size_t i = 0; i < r->context_count && ok; i++) {
        char *name = plain(r->contexts[i].name);
        all->of[all->count].report = r;
        all->of[all->count].context = &r->contexts[i];
        ok = name && (all->of[all->count].name = hkr_unique(taken, name));
        all->count += ok;
        free(name);
    }
    json_decref(taken);
    return ok;
}

static bool names_of(names *all, hkr_report *const *reports, size_t count)
{
    size_t contexts = 1;
    for (size_t r = 0; r < count; r++)
        contexts += reports[r]->context_count;
    *all = (names){.of = calloc(contexts, sizeof *all->of)};
    bool ok = all->of;
    for (size_t r = 0; r < count && ok; r++)
        ok = add_names(all, reports[r]);
    return ok;
}

/* Labels of one name are one series. */
static json_t *sums_of(const hkr_context *c, const char *member)
{
    json_t *sums = json_object();
    bool ok = sums;
    for (size_t l = 0; l < json_array_size(c->labels) && ok; l++) {
        const json_t *label = json_array_get(c->labels, l);
        char *name = plain(hkr_text(label, "name"));
        ok = name && json_object_set_new_nocheck(
                         sums, name, json_real(hkr_number(sums, name) + hkr_number(label, member))) == 0;
        free(name);
    }
    if (ok) return sums;
    json_decref(sums);
    return NULL;
}

static bool label_family(FILE *out, const names *all, const char *name, const char *member, const char *help)
{
    family(out, name, "gauge", help);
    for (size_t i = 0; i < all->count; i++) {
        json_t *sums = sums_of(all->of[i].context, member);
        if (!sums) return false;
        const char *label;
        json_t *sum;
        json_object_foreach(sums, label, sum)
            series(out, name, all->of[i].report, all->of[i].name, label, json_number_value(sum));
        json_decref(sums);
    }
    return true;
}

/* The parts of the resident memory; those of one kind and name are one series. */
static bool part_family(FILE *out, hkr_report *const *reports, size_t count)
{
    static const char name[] = "hakmem_resident_part_bytes";
    family(out, name, "gauge", "Parts of the resident memory, which sum up to it");
    for (size_t r = 0; r < count; r++) {
        const double pid = hkr_number(reports[r]->process, "pid");
        json_t *seen = json_object();
        if (!seen) return false;
        for (size_t i = 0; i < hkr_parts(reports[r]); i++) {
            const hkr_part part = hkr_part_at(reports[r], i);
            char key[200];
            snprintf(key, sizeof key, "%.100s\n%s", part.kind, part.name);
            json_object_set_new(seen, key, json_real(hkr_number(seen, key) + part.bytes));
        }
        const char *key;
        json_t *sum;
        json_object_foreach(seen, key, sum)
        {
            const char *end = strchr(key, '\n');
            char kind[101];
            snprintf(kind, sizeof kind, "%.*s", (int)(end - key), key);
            char *clean = plain(kind);
            fprintf(out, "%s{", name);
            if (pid > 0) fprintf(out, "pid=\"%.0f\",", pid);
            fputs("part=\"", out);
            put_value(out, clean ? clean : "");
            fputs("\",name=\"", out);
            put_value(out, end + 1);
            fprintf(out, "\"} %.0f\n", json_number_value(sum));
            free(clean);
        }
        json_decref(seen);
    }
    return true;
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
    names all;
    bool ok = names_of(&all, reports, count);
    family(out, "hakmem_resident_bytes", "gauge", "Resident memory of the whole process");
    for (size_t r = 0; r < count; r++) {
        const double resident = hkr_number(reports[r]->memory, "resident_bytes");
        if (resident > 0) series(out, "hakmem_resident_bytes", reports[r], NULL, NULL, resident);
    }
    ok = ok && part_family(out, reports, count);
    for (size_t m = 0; m < sizeof of_contexts / sizeof of_contexts[0]; m++) {
        family(out, of_contexts[m].name, of_contexts[m].type, of_contexts[m].help);
        for (size_t i = 0; i < all.count; i++)
            if (all.of[i].context->stats)
                series(out, of_contexts[m].name, all.of[i].report, all.of[i].name, NULL,
                       hkr_number(all.of[i].context->stats, of_contexts[m].member));
    }
    ok = ok &&
         label_family(out, &all, "hakmem_label_live_bytes", "live_bytes", "Bytes of live blocks by label") &&
         label_family(out, &all, "hakmem_label_live_blocks", "live_blocks", "Live blocks by label");
    names_free(&all);
    return ok && !ferror(out);
}
