#include "parts.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {
    double value;
    const hkr_stack *stack;
} row;

static int larger_first(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return x->stack->id < y->stack->id ? -1 : x->stack->id > y->stack->id;
}

/* "process 71, lua 5.4.4: resident 9.00 MiB, peak 12.00 MiB"; what is not known is left out. */
static void process(FILE *out, const hkr_report *r)
{
    static const struct {
        const char *member, *name;
    } amounts[] = {
        {"resident_bytes", "resident"}, {"peak_resident_bytes", "peak"}, {"anonymous_bytes", "anonymous"}};
    const json_t *runtime = json_object_get(r->process, "runtime");
    char name[512], version[512], bytes[32];
    const double pid = hkr_number(r->process, "pid");
    const char *between = "  ";
    hkr_clean(name, sizeof name, hkr_text(runtime, "name"));
    hkr_clean(version, sizeof version, hkr_text(runtime, "version"));
    if (pid > 0) {
        fprintf(out, "%sprocess %.0f", between, pid);
        between = ", ";
    }
    if (*name || *version) {
        fprintf(out, "%s%s%s%s", between, name, *name && *version ? " " : "", version);
        between = ", ";
    }
    if (*between == ',') between = ": ";
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++) {
        const double n = hkr_number(r->memory, amounts[i].member);
        if (n <= 0) continue;
        fprintf(out, "%s%s %s", between, amounts[i].name, hkr_bytes(bytes, n, false));
        between = ", ";
    }
    if (*between != ' ') fputc('\n', out);
}

static void head(FILE *out, const hkr_report *r)
{
    enum { WORDS = 12, EACH = 120 };
    char text[WORDS * EACH];
    hkr_command(text, sizeof text, r, WORDS, EACH);
    const bool more = json_array_size(json_object_get(r->process, "command")) > WORDS;
    fprintf(out, "hakmem%s%s%s\n", *text ? ": " : "", text, more ? " ..." : "");
    process(out, r);
}

/* Leaks first, what fills last. */
static int urgency(const json_t *verdict)
{
    const char *kind = hkr_text(verdict, "kind");
    return strcmp(kind, "leak") == 0 ? 2 : strcmp(kind, "filling") != 0;
}

static int leaks_first(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    if (urgency(x) != urgency(y)) return urgency(y) - urgency(x);
    const double slope_x = hkr_number(x, "bytes_a_window"), slope_y = hkr_number(y, "bytes_a_window");
    if (slope_x != slope_y) return slope_x < slope_y ? 1 : -1;
    return (hkr_number(x, "stack") > hkr_number(y, "stack")) -
           (hkr_number(x, "stack") < hkr_number(y, "stack"));
}

static void verdict(FILE *out, const hkr_context *c, const json_t *v)
{
    static const char *const words[] = {"fills", "grows", "LEAK?"};
    char site[400] = "?", label[64] = "", text[400];
    const hkr_stack *s = hkr_stack_of(c, hkr_number(v, "stack"));
    const hkr_frame *f = s ? hkr_site(c, s) : NULL;
    if (f) hkr_frame_text(site, sizeof site, f);
    if (s) hkr_clean(label, sizeof label, s->label);
    hkr_clean(text, sizeof text, hkr_text(v, "evidence"));
    fprintf(out, "  %s: %s%s%s: %s\n", words[urgency(v)], site, *label ? ", " : "", label, text);
}

/* Objects from CPython's free lists stand at a line that had them before. */
static bool leaves_free_lists(const hkr_context *c)
{
    return *c->reused && strcmp(c->reused, "followed") != 0;
}

static bool verdicts(FILE *out, const hkr_context *c)
{
    const size_t n = json_array_size(c->verdicts);
    if (n == 0) return true;
    json_t **all = hkr_sorted(c->verdicts, leaks_first);
    if (!all) return false;
    for (size_t i = 0; i < n; i++)
        verdict(out, c, all[i]);
    if (urgency(all[0]) == 2 && leaves_free_lists(c))
        fputs("  A line that makes tuples, lists, dicts or numbers for a moment may stand here for one that\n"
              "  keeps them. CPython hands them out again from free lists, and this profile does not follow "
              "that.\n",
              out);
    free(all);
    return true;
}

/* What is in no row below comes first. */
static void losses(FILE *out, const hkr_context *c)
{
    const double stacks = hkr_number(c->profile, "dropped_stacks"),
                 samples = hkr_number(c->profile, "dropped_samples"),
                 lost = hkr_number(c->profile, "dropped_bytes");
    char bytes[32];
    if (stacks > 0) fprintf(out, "  %.0f stacks are missing: the table of the profile was full", stacks);
    else if (samples > 0)
        fprintf(out, "  %.0f samples are missing: the table of the profile was full", samples);
    else return;
    if (lost > 0) fprintf(out, "; of what was allocated, they had %s", hkr_bytes(bytes, lost, false));
    fputc('\n', out);
}

/* Writes what a tenant's linear memories are, and what of the resident memory is theirs. */
static void linear(FILE *out, const hkr_context *c)
{
    char a[32], b[32], d[32];
    fprintf(out, "  linear memories: %.0f, %s, resident %s, proportional %s\n",
            hkr_number(c->linear, "memories"), hkr_bytes(a, hkr_number(c->linear, "bytes"), false),
            hkr_bytes(b, hkr_number(c->linear, "resident_bytes"), false),
            hkr_bytes(d, hkr_number(c->linear, "proportional_bytes"), false));
}

static void labels(FILE *out, const hkr_context *c)
{
    const size_t n = json_array_size(c->labels);
    char text[64], bytes[32];
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += hkr_number(json_array_get(c->labels, i), "live_bytes");
    if (n == 0 || total <= 0) return;
    fprintf(out, "\n  %-28s %14s %12s %7s\n", "label", "live", "blocks", "share");
    for (size_t i = 0; i < n; i++) {
        const json_t *l = json_array_get(c->labels, i);
        const double live = hkr_number(l, "live_bytes");
        hkr_clean(text, 29, hkr_text(l, "name"));
        fprintf(out, "  %-28s %14s %12.0f %5.1f %%\n", text, hkr_bytes(bytes, live, false),
                hkr_number(l, "live_blocks"), live / total * 100);
    }
}

static int most_imported(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const double p = hkr_number(x, "live_bytes"), q = hkr_number(y, "live_bytes");
    if (p != q) return p < q ? 1 : -1;
    return strcmp(hkr_text(x, "name"), hkr_text(y, "name"));
}

/* What lives of the code that modules ran when they were imported, and of the import itself. */
static bool imports(FILE *out, const hkr_context *c, const hkr_options *o)
{
    const size_t n = json_array_size(c->imports);
    if (n == 0) return true;
    json_t **all = hkr_sorted(c->imports, most_imported);
    if (!all) return false;
    fprintf(out, "\n  %12s %17s  %s\n", "live", "and its imports", "import of");
    for (size_t i = 0; i < n && i < o->top; i++) {
        char name[128], a[32], b[32];
        hkr_clean(name, sizeof name, hkr_text(all[i], "name"));
        fprintf(out, "  %12s %17s  %s\n", hkr_bytes(a, hkr_number(all[i], "live_bytes"), false),
                hkr_bytes(b, hkr_number(all[i], "total_bytes"), false), name);
    }
    free(all);
    return true;
}

static bool stacks(FILE *out, const hkr_context *c, const hkr_options *o)
{
    static const char *const names[] = {"", "allocated", "", "live", "", "at the peak"};
    if (c->stack_count == 0) return true;
    row *rows = malloc(c->stack_count * sizeof *rows);
    if (!rows) return false;
    for (size_t i = 0; i < c->stack_count; i++)
        rows[i] = (row){c->stacks[i].value[o->by], &c->stacks[i]};
    hkr_sort(rows, c->stack_count, sizeof *rows, larger_first);
    const bool sampled = strcmp(hkr_text(c->profile, "mode"), "sampled") == 0;
    char mean[32];
    fprintf(out, "\n  %zu stacks%s%s; the largest %s:\n", c->stack_count,
            sampled ? ", sampled, one each " : "",
            sampled ? hkr_bytes(mean, hkr_number(c->profile, "mean_bytes"), false) : "", names[o->by]);
    bool reused = false;
    fprintf(out, "  %12s %12s %12s %12s  %-16s %s\n", "live", "+-", "peak", "allocated", "label", "site");
    for (size_t i = 0; i < c->stack_count && i < o->top; i++) {
        const hkr_stack *s = rows[i].stack;
        const hkr_frame *f = hkr_site(c, s);
        char site[400] = "?", label[64], a[32], b[32], d[32], e[32];
        if (f) hkr_frame_text(site, sizeof site, f);
        hkr_clean(label, 17, s->label);
        const bool moved = s->reused > s->value[HKR_LIVE_BYTES] / 2;
        reused |= moved;
        fprintf(out, "  %12s %12s %12s %12s  %-16s %s%s\n", hkr_bytes(a, s->value[HKR_LIVE_BYTES], false),
                s->live_error > 0 ? hkr_bytes(b, s->live_error, false) : "",
                hkr_bytes(d, s->value[HKR_PEAK_BYTES], false), hkr_bytes(e, s->value[HKR_ALLOC_BYTES], false),
                label, site, moved ? " ~" : "");
    }
    if (reused)
        fputs("  ~ most are of kinds that CPython keeps in free lists: another line may have taken them "
              "since\n",
              out);
    else if (leaves_free_lists(c)) {
        char why[80];
        hkr_clean(why, sizeof why, c->reused);
        fprintf(
            out,
            "  An object from a free list of CPython counts at the stack that first took its memory, not at\n"
            "  the one that has it now: %s\n",
            why);
    }
    free(rows);
    return true;
}

bool hkr_write_text(FILE *out, const hkr_report *r, const hkr_options *o)
{
    head(out, r);
    hkr_write_parts(out, r);
    for (size_t i = 0; i < r->context_count; i++) {
        const hkr_context *c = &r->contexts[i];
        char name[128], a[32], b[32], d[32];
        hkr_clean(name, sizeof name, *c->name ? c->name : "(no name)");
        fprintf(out, "\ncontext %s", name);
        if (c->stats)
            fprintf(out, ": %s live in %.0f blocks, peak %s, committed %s",
                    hkr_bytes(a, hkr_number(c->stats, "live_bytes"), false),
                    hkr_number(c->stats, "live_blocks"),
                    hkr_bytes(b, hkr_number(c->stats, "peak_bytes"), false),
                    hkr_bytes(d, hkr_number(c->stats, "committed_bytes"), false));
        fputc('\n', out);
        if (hkr_number(c->stats, "hard_limit") > 0)
            fprintf(out, "  limit %s, %.0f allocations refused\n",
                    hkr_bytes(a, hkr_number(c->stats, "hard_limit"), false),
                    hkr_number(c->stats, "failures"));
        if (c->linear) linear(out, c);
        losses(out, c);
        if (!verdicts(out, c)) return false;
        labels(out, c);
        if (!hkr_write_holes(out, c)) return false;
        if (!imports(out, c, o)) return false;
        if (!stacks(out, c, o)) return false;
    }
    return !ferror(out);
}
