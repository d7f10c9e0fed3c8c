/* What changed between two reports. Stacks are the same if their contexts, labels and frames are, by name:
 * numbers differ between processes. A change that the samples of both explain is noise, and stands below. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE, AFTER };

typedef struct change {
    const hkr_frame *site; /* of a stack; NULL = not known */
    const char *label;
    double bytes[2], blocks[2];
    double var[2], live_var[2], alloc_var[2]; /* of the bytes shown, that live, that were allocated */
    double one_var;                           /* of a single sample of this stack */
    double change_var;                        /* of the change; 0 = exact */
    bool noise;
} change;

typedef struct changes {
    hkr_rows by_key;  /* of a change: by context, label and frames */
    bool one_profile; /* both reports are of one run */
} changes;

static change *add(changes *all, const char *key, const hkr_frame *site, const char *label, int when,
                   double bytes, double blocks)
{
    change *c = hkr_row(&all->by_key, key);
    if (!c) return NULL;
    c->site = site;
    c->label = label;
    c->bytes[when] += bytes;
    c->blocks[when] += blocks;
    return c;
}

static bool is_sampled(const hkr_context *c)
{
    return strcmp(hkr_text(c->profile, "mode"), "sampled") == 0;
}

/* The variance of one sample of blocks of n bytes, see docs/internals/profile.md. */
static double var_of_sample(double n, double mean)
{
    if (!(n > 0) || !(mean > 0)) return 0;
    const double w = -1 / expm1(-n / mean);
    return n * n * w * (w - 1);
}

static void add_error(change *row, const hkr_context *c, const hkr_stack *s, const hkr_options *o, int when)
{
    const double alloc = s->alloc_error * s->alloc_error, live = s->live_error * s->live_error;
    row->alloc_var[when] += alloc;
    row->live_var[when] += live;
    row->var[when] += o->by == HKR_ALLOC_BYTES  ? alloc
                      : o->by == HKR_LIVE_BYTES ? live
                                                : s->peak_error * s->peak_error;
    if (!is_sampled(c) || !(s->value[o->by - 1] > 0)) return;
    const double one =
        var_of_sample(s->value[o->by] / s->value[o->by - 1], hkr_number(c->profile, "mean_bytes"));
    if (one > row->one_var) row->one_var = one;
}

/* A text with its length, so that no text can end another one. Returns how long that is; to: as much of it as
 * there is room for. */
static size_t put_key(char *to, size_t room, const char *text)
{
    return (size_t)snprintf(to, room, "%zu %s", strlen(text), text);
}

/* What tells a stack apart, in the same way: with room 0 only its length is told. */
static size_t write_key(char *to, size_t room, const hkr_context *c, const hkr_stack *s)
{
    size_t n = put_key(to, room, c->name);
#define LEFT (room ? to + n : NULL), (room ? room - n : 0)
    n += put_key(LEFT, s->label);
    for (size_t i = 0; i < s->depth; i++) {
        const hkr_frame *f = &c->frames[s->frames[i]];
        n += put_key(LEFT, f->function);
        n += put_key(LEFT, f->file);
        n += put_key(LEFT, f->module);
        n += (size_t)(snprintf)(LEFT, "%d ", f->line); /* on macOS a macro, which would take LEFT for one */
    }
#undef LEFT
    return n;
}

static bool add_stack(changes *all, const hkr_context *c, const hkr_stack *s, const hkr_options *o, int when)
{
    const size_t size = write_key(NULL, 0, c, s) + 1;
    char *key = malloc(size);
    if (!key) return false;
    write_key(key, size, c, s);
    change *row = add(all, key, hkr_site(c, s), s->label, when, s->value[o->by], s->value[o->by - 1]);
    if (row) add_error(row, c, s, o, when);
    free(key);
    return row;
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

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

/* The variance of a change. Two runs err independently of each other. In one run what lives in both reports
 * are the same samples: only what came and went in between can err. A stack with few samples errs by one more
 * than they tell. */
static double var_of(const change *c, const hkr_options *o, bool one_profile)
{
    double var = c->var[BEFORE] + c->var[AFTER];
    const double made = c->alloc_var[AFTER] - c->alloc_var[BEFORE],
                 freed = made - (c->live_var[AFTER] - c->live_var[BEFORE]);
    if (one_profile && made >= 0 && freed >= 0) {
        if (o->by == HKR_ALLOC_BYTES) var = least_of(var, made);
        if (o->by == HKR_LIVE_BYTES) var = least_of(var, made + freed);
    }
    return var > 0 || c->bytes[BEFORE] != c->bytes[AFTER] ? var + c->one_var : 0;
}

/* Of n rows that did not change, all are within so many of their standard errors in 99 of 100 cases. */
static double errors_of_chance(size_t n)
{
    return n > 0 ? sqrt(2 * log(100 * (double)n)) : 0;
}

static int most_grown_first(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->noise != y->noise) return x->noise ? 1 : -1;
    return grown(x) < grown(y) ? 1 : grown(x) > grown(y) ? -1 : 0;
}

/* Only those that changed stay, what grew most first, what shrank most last, and noise below. Returns how many
 * shrank, and how many are noise. */
static size_t keep_changed(changes *all, const hkr_options *o, size_t *noise)
{
    change *rows = all->by_key.at;
    size_t kept = 0, estimates = 0, shrunk = 0;
    for (size_t i = 0; i < all->by_key.count; i++) {
        const change *c = &rows[i];
        if (grown(c) == 0 && c->blocks[AFTER] == c->blocks[BEFORE]) continue;
        rows[kept] = *c;
        rows[kept].change_var = var_of(c, o, all->one_profile);
        estimates += rows[kept++].change_var > 0;
    }
    all->by_key.count = kept;
    *noise = 0;
    for (size_t i = 0; i < kept; i++) {
        change *c = &rows[i];
        c->noise = c->change_var > 0 && fabs(grown(c)) <= errors_of_chance(estimates) * sqrt(c->change_var);
        *noise += c->noise;
        shrunk += !c->noise && grown(c) < 0;
    }
    hkr_sort(rows, kept, sizeof *rows, most_grown_first);
    return shrunk;
}

static void show_row(FILE *out, const change *c)
{
    char site[400] = "", label[64], a[32], b[32], d[32], e[32];
    if (c->site) hkr_frame_text(site, sizeof site, c->site);
    hkr_clean(label, 17, c->label);
    fprintf(out, "  %13s %13s %13s %13s %+10.0f  %-16s %s\n", hkr_bytes(a, grown(c), true),
            c->change_var > 0 ? hkr_bytes(e, sqrt(c->change_var), false) : "",
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
    size_t noise;
    const size_t shrunk = keep_changed(all, o, &noise), sure = all->by_key.count - noise,
                 rest = sure - shrunk;
    const change *rows = all->by_key.at;
    const size_t first = least(rest, o->top - least(shrunk, o->top / 2)),
                 last = least(shrunk, o->top - first), below = least(noise, o->top - first - last);
    fprintf(out, "\n  %13s %13s %13s %13s %10s  %-16s %s\n", "change", "+-", "before", "after", "blocks",
            stacks ? "label" : "label, live", stacks ? "site" : "");
    for (size_t i = 0; i < first; i++)
        show_row(out, &rows[i]);
    for (size_t i = sure - last; i < sure; i++)
        show_row(out, &rows[i]);
    if (sure == 0)
        fprintf(out, "  no %s changed%s\n", stacks ? "stack" : "label", noise ? " for certain" : "");
    if (first + last < sure) fprintf(out, "  and %zu more\n", sure - first - last);
    if (noise == 0) return;
    fprintf(out, "\n  within the error of the samples:\n");
    for (size_t i = sure; i < sure + below; i++)
        show_row(out, &rows[i]);
    if (below < noise) fprintf(out, "  and %zu more\n", noise - below);
}

/* Whether both are of one run: a profile began at one moment in one process. */
static bool is_one_profile(const hkr_report *a, const hkr_report *b)
{
    if (hkr_number(a->process, "pid") != hkr_number(b->process, "pid")) return false;
    if (a->context_count == 0 || b->context_count == 0) return false;
    const double x = hkr_number(a->contexts[0].profile, "started_ns"),
                 y = hkr_number(b->contexts[0].profile, "started_ns");
    return x > 0 && x == y;
}

bool hkr_write_diff(FILE *out, const hkr_report *before, const hkr_report *after, const hkr_options *o)
{
    static const char *const totals[] = {"live_bytes", "peak_bytes", "committed_bytes"};
    changes stacks = {{.table = json_object(), .size = sizeof(change)}, is_one_profile(before, after)},
            labels = {{.table = json_object(), .size = sizeof(change)}, false};
    bool ok = stacks.by_key.table && labels.by_key.table && collect(&stacks, &labels, before, o, BEFORE) &&
              collect(&stacks, &labels, after, o, AFTER);
    if (ok) {
        for (int i = 0; i < 3; i++) {
            const double a = hkr_total(before, totals[i]), b = hkr_total(after, totals[i]);
            char x[32], y[32], z[32];
            fprintf(out, "  %.*s: %s -> %s (%s)\n", (int)strlen(totals[i]) - 6, totals[i],
                    hkr_bytes(x, a, false), hkr_bytes(y, b, false), hkr_bytes(z, b - a, true));
        }
        if (stacks.by_key.count > 0) show(out, &stacks, o, true);
        show(out, &labels, o, false);
    }
    json_decref(stacks.by_key.table);
    json_decref(labels.by_key.table);
    free(stacks.by_key.at);
    free(labels.by_key.at);
    return ok && !ferror(out);
}
