/* What changed between two reports. Stacks are the same if their contexts, labels and frames are, by name:
 * numbers differ between processes. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE, AFTER };

typedef struct change {
    const hkr_frame *site; /* of a stack; NULL = not known */
    const char *label;
    double bytes[2], blocks[2];
} change;

typedef struct changes {
    json_t *table; /* context, label and frames: place in rows */
    change *rows;
    size_t count, room;
} changes;

static change *row_of(changes *all, const char *key)
{
    json_t *place = json_object_get(all->table, key);
    if (place) return &all->rows[(size_t)json_integer_value(place)];
    if (all->count == all->room) {
        const size_t room = all->room ? 2 * all->room : 256;
        change *larger = realloc(all->rows, room * sizeof *larger);
        if (!larger) return NULL;
        all->rows = larger;
        all->room = room;
    }
    if (json_object_set_new_nocheck(all->table, key, json_integer((json_int_t)all->count)) != 0) return NULL;
    all->rows[all->count] = (change){0};
    return &all->rows[all->count++];
}

static bool add(changes *all, const char *key, const hkr_frame *site, const char *label, int when,
                double bytes, double blocks)
{
    change *c = row_of(all, key);
    if (!c) return false;
    c->site = site;
    c->label = label;
    c->bytes[when] += bytes;
    c->blocks[when] += blocks;
    return true;
}

/* With its length, so that no text can end another one. */
static void put_key(FILE *key, const char *text)
{
    fprintf(key, "%zu %s", strlen(text), text);
}

static bool add_stack(changes *all, const hkr_context *c, const hkr_stack *s, const hkr_options *o, int when)
{
    char *key = NULL;
    size_t size;
    FILE *text = open_memstream(&key, &size);
    if (!text) return false;
    put_key(text, c->name);
    put_key(text, s->label);
    for (size_t i = 0; i < s->depth; i++) {
        const hkr_frame *f = &c->frames[s->frames[i]];
        put_key(text, f->function);
        put_key(text, f->file);
        put_key(text, f->module);
        fprintf(text, "%d ", f->line);
    }
    bool ok = fclose(text) == 0;
    ok = ok && add(all, key, hkr_site(c, s), s->label, when, s->value[o->by], s->value[o->by - 1]);
    free(key);
    return ok;
}

static bool collect(changes *stacks, changes *labels, const hkr_report *r, const hkr_options *o, int when)
{
    for (size_t i = 0; i < r->context_count; i++) {
        const hkr_context *c = &r->contexts[i];
        for (size_t s = 0; s < c->stack_count; s++)
            if (!add_stack(stacks, c, &c->stacks[s], o, when)) return false;
        for (size_t l = 0; l < json_array_size(c->labels); l++) {
            const json_t *label = json_array_get(c->labels, l);
            const char *name = hkr_text(label, "name");
            if (!add(labels, name, NULL, name, when, hkr_number(label, "live_bytes"),
                     hkr_number(label, "live_blocks")))
                return false;
        }
    }
    return true;
}

static double grown(const change *c)
{
    return c->bytes[AFTER] - c->bytes[BEFORE];
}

static int most_grown_first(const void *a, const void *b)
{
    const double x = grown(a), y = grown(b);
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Only those that changed stay, what grew most first and what shrank most last. Returns how many shrank. */
static size_t keep_changed(changes *all)
{
    size_t kept = 0, shrunk = 0;
    for (size_t i = 0; i < all->count; i++) {
        const change *c = &all->rows[i];
        if (grown(c) == 0 && c->blocks[AFTER] == c->blocks[BEFORE]) continue;
        shrunk += grown(c) < 0;
        all->rows[kept++] = *c;
    }
    all->count = kept;
    if (kept > 0) qsort(all->rows, kept, sizeof *all->rows, most_grown_first);
    return shrunk;
}

static void show_row(FILE *out, const change *c)
{
    char site[400] = "", label[64], a[32], b[32], d[32];
    if (c->site) hkr_frame_text(site, sizeof site, c->site);
    hkr_clean(label, 17, c->label);
    fprintf(out, "  %13s %13s %13s %+10.0f  %-16s %s\n", hkr_bytes(a, grown(c), true),
            hkr_bytes(b, c->bytes[BEFORE], false), hkr_bytes(d, c->bytes[AFTER], false),
            c->blocks[AFTER] - c->blocks[BEFORE], label, site);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Half of the rows are for what shrank, unless there is less of it, or less of the rest. */
static void show(FILE *out, changes *all, const hkr_options *o, bool stacks)
{
    const size_t shrunk = keep_changed(all), rest = all->count - shrunk;
    const size_t first = least(rest, o->top - least(shrunk, o->top / 2)),
                 last = least(shrunk, o->top - first);
    fprintf(out, "\n  %13s %13s %13s %10s  %-16s %s\n", "change", "before", "after", "blocks",
            stacks ? "label" : "label, live", stacks ? "site" : "");
    for (size_t i = 0; i < first; i++)
        show_row(out, &all->rows[i]);
    for (size_t i = all->count - last; i < all->count; i++)
        show_row(out, &all->rows[i]);
    if (all->count == 0) fprintf(out, "  no %s changed\n", stacks ? "stack" : "label");
    if (first + last < all->count) fprintf(out, "  and %zu more\n", all->count - first - last);
}

static double total(const hkr_report *r, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < r->context_count; i++)
        sum += hkr_number(r->contexts[i].stats, name);
    return sum;
}

bool hkr_write_diff(FILE *out, const hkr_report *before, const hkr_report *after, const hkr_options *o)
{
    static const char *const totals[] = {"live_bytes", "peak_bytes", "committed_bytes"};
    changes stacks = {.table = json_object()}, labels = {.table = json_object()};
    bool ok = stacks.table && labels.table && collect(&stacks, &labels, before, o, BEFORE) &&
              collect(&stacks, &labels, after, o, AFTER);
    if (ok) {
        for (int i = 0; i < 3; i++) {
            const double a = total(before, totals[i]), b = total(after, totals[i]);
            char x[32], y[32], z[32];
            fprintf(out, "  %.*s: %s -> %s (%s)\n", (int)strlen(totals[i]) - 6, totals[i],
                    hkr_bytes(x, a, false), hkr_bytes(y, b, false), hkr_bytes(z, b - a, true));
        }
        if (stacks.count > 0) show(out, &stacks, o, true);
        show(out, &labels, o, false);
    }
    json_decref(stacks.table);
    json_decref(labels.table);
    free(stacks.rows);
    free(labels.rows);
    return ok && !ferror(out);
}
