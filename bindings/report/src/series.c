#include "series.h"
#include "parts.h"

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

/* A newline has an escape of its own in all formats. To be freed; NULL = no memory. */
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

/* ---- Processes ------------------------------------------------------------------------------------ */

static bool resident_family(hkr_report *const *reports, size_t count, const hkr_series_sink *to)
{
    static const hkr_family family = {"hakmem_resident_bytes", "Resident memory of the whole process", "By",
                                      false};
    bool ok = to->family(to->user, &family);
    for (size_t r = 0; r < count && ok; r++) {
        const hkr_point point = {.report = reports[r],
                                 .value = hkr_number(reports[r]->memory, "resident_bytes")};
        if (point.value > 0) ok = to->point(to->user, &family, &point);
    }
    return ok;
}

/* Returns how long the name of a part is without its count, "stacks of threads (7)", which would make a new series
 * of each number. */
static size_t uncounted(const char *name)
{
    const size_t n = strlen(name);
    const char *open = strrchr(name, '(');
    const bool counts = open && open > name + 1 && open[1] != ')' && name[n - 1] == ')' &&
                        strspn(open + 1, "0123456789") == (size_t)(name + n - 1 - (open + 1));
    return counts ? (size_t)(open - 1 - name) : n;
}

/* Parts of one kind and name are one: their sum, by "KIND\nNAME". NULL = no memory. */
static json_t *sums_of_parts(const hkr_report *r)
{
    json_t *sums = json_object();
    bool ok = sums;
    for (size_t i = 0; i < hkr_parts(r) && ok; i++) {
        const hkr_part part = hkr_part_at(r, i);
        char key[200];
        snprintf(key, sizeof key, "%.100s\n%.*s", part.kind, (int)uncounted(part.name), part.name);
        ok = json_object_set_new(sums, key, json_real(hkr_number(sums, key) + part.bytes)) == 0;
    }
    if (ok) return sums;
    json_decref(sums);
    return NULL;
}

static bool part_family(hkr_report *const *reports, size_t count, const hkr_series_sink *to)
{
    static const hkr_family family = {"hakmem_resident_part_bytes",
                                      "Parts of the resident memory, which sum up to it", "By", false};
    bool ok = to->family(to->user, &family);
    for (size_t r = 0; r < count && ok; r++) {
        json_t *sums = sums_of_parts(reports[r]), *sum;
        const char *key;
        ok = sums;
        json_object_foreach(sums, key, sum)
        {
            const char *end = strchr(key, '\n');
            char kind[101];
            snprintf(kind, sizeof kind, "%.*s", (int)(end - key), key);
            char *clean = plain(kind);
            const hkr_point point = {reports[r], {"part", "name"}, {clean, end + 1}, json_number_value(sum)};
            ok = ok && clean && to->point(to->user, &family, &point);
            free(clean);
        }
        json_decref(sums);
    }
    return ok;
}

/* ---- Contexts and labels -------------------------------------------------------------------------- */

static bool context_families(const names *all, const hkr_series_sink *to)
{
    static const struct {
        hkr_family family;
        const char *member;
    } of[] = {
        {{"hakmem_live_bytes", "Bytes of live blocks", "By", false}, "live_bytes"},
        {{"hakmem_live_blocks", "Live blocks", "1", false}, "live_blocks"},
        {{"hakmem_peak_bytes", "Most live bytes so far", "By", false}, "peak_bytes"},
        {{"hakmem_committed_bytes", "Bytes taken from the system, which limits count", "By", false},
         "committed_bytes"},
        {{"hakmem_cached_bytes", "Committed and free", "By", false}, "cached_bytes"},
        {{"hakmem_metadata_bytes", "Bitmaps, labels and tables", "By", false}, "metadata_bytes"},
        {{"hakmem_hard_limit_bytes", "Limit on committed bytes, 0 without one", "By", false}, "hard_limit"},
        {{"hakmem_failures_total", "Allocations that were refused", "1", true}, "failures"},
    };
    bool ok = true;
    for (size_t m = 0; m < sizeof of / sizeof of[0] && ok; m++) {
        ok = to->family(to->user, &of[m].family);
        for (size_t i = 0; i < all->count && ok; i++) {
            const hkr_point point = {all->of[i].report,
                                     {"context"},
                                     {all->of[i].name},
                                     hkr_number(all->of[i].context->stats, of[m].member)};
            if (all->of[i].context->stats) ok = to->point(to->user, &of[m].family, &point);
        }
    }
    return ok;
}

/* Of tenants with linear memories. Reports without any have no such family. */
static bool linear_families(const names *all, const hkr_series_sink *to)
{
    static const struct {
        hkr_family family;
        const char *member;
    } of[] = {
        {{"hakmem_linear_bytes", "Sizes of linear memories, and what counts like them", "By", false},
         "bytes"},
        {{"hakmem_linear_resident_bytes", "Pages of linear memories that are their own", "By", false},
         "resident_bytes"},
        {{"hakmem_linear_proportional_bytes", "These, and an equal part of each image that they share", "By",
          false},
         "proportional_bytes"},
    };
    size_t first = 0;
    while (first < all->count && !all->of[first].context->linear)
        first++;
    bool ok = true;
    for (size_t m = 0; m < sizeof of / sizeof of[0] && ok && first < all->count; m++) {
        ok = to->family(to->user, &of[m].family);
        for (size_t i = first; i < all->count && ok; i++) {
            const hkr_point point = {all->of[i].report,
                                     {"context"},
                                     {all->of[i].name},
                                     hkr_number(all->of[i].context->linear, of[m].member)};
            if (all->of[i].context->linear) ok = to->point(to->user, &of[m].family, &point);
        }
    }
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

static bool label_family(const names *all, const hkr_family *family, const char *member,
                         const hkr_series_sink *to)
{
    bool ok = to->family(to->user, family);
    for (size_t i = 0; i < all->count && ok; i++) {
        json_t *sums = sums_of(all->of[i].context, member), *sum;
        const char *label;
        ok = sums;
        json_object_foreach(sums, label, sum)
        {
            const hkr_point point = {
                all->of[i].report, {"context", "label"}, {all->of[i].name, label}, json_number_value(sum)};
            ok = ok && to->point(to->user, family, &point);
        }
        json_decref(sums);
    }
    return ok;
}

bool hkr_each_series(hkr_report *const *reports, size_t count, const hkr_series_sink *to)
{
    static const hkr_family bytes = {"hakmem_label_live_bytes", "Bytes of live blocks by label", "By", false},
                            blocks = {"hakmem_label_live_blocks", "Live blocks by label", "1", false};
    names all;
    const bool ok = names_of(&all, reports, count) && resident_family(reports, count, to) &&
                    part_family(reports, count, to) && context_families(&all, to) &&
                    linear_families(&all, to) && label_family(&all, &bytes, "live_bytes", to) &&
                    label_family(&all, &blocks, "live_blocks", to);
    names_free(&all);
    return ok;
}
