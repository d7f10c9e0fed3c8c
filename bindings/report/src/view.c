#include "view.h"

#include "parts.h"
#include "window_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST, BEFORE, NOW, TIMES, SITE_FRAMES = 3, LINE = 1024 };

typedef struct row {
    const char *label;
    char *site; /* "" = a label */
    double live[TIMES], alloc[TIMES], peak, window[HKR_WINDOWS];
} row;

typedef struct rows {
    hkr_rows by_place;
    double times[HKR_WINDOWS]; /* of the windows that are shown */
    size_t windows;
} rows;

/* ---- Lines ---------------------------------------------------------------------------------------- */

typedef struct screen {
    FILE *out;
    const hkr_view_options *options;
} screen;

/* Cut to the columns; a character of UTF-8 takes one, which holds for names of functions and files. */
static __attribute__((format(printf, 2, 3))) void line(const screen *s, const char *format, ...)
{
    char text[LINE];
    size_t n = 0, columns = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (; text[n] != '\0'; n++) {
        const bool begins = ((unsigned char)text[n] & 0xC0) != 0x80;
        if (begins && s->options->columns != 0 && columns == s->options->columns) break;
        columns += begins;
    }
    fprintf(s->out, "%.*s%s", (int)n, text, s->options->end);
}

/* ---- Rows ----------------------------------------------------------------------------------------- */

static row *row_of(hkr_rows *all, const char *key, const char *label, const char *site)
{
    row *r = hkr_row(all, key);
    if (!r || r->site) return r;
    r->label = label;
    r->site = strdup(site);
    return r->site ? r : NULL;
}

/* The line of an interpreter; of machine code the innermost function that says something and who called it. */
static void site_of(char *text, size_t size, const hkr_context *c, const hkr_stack *s)
{
    const hkr_frame *site = hkr_site(c, s);
    if (!site) {
        snprintf(text, size, "?");
        return;
    }
    hkr_frame_text(text, size, site);
    const size_t at = hkr_site_at(c, s);
    for (size_t i = at + 1; site->native && i < s->depth && i < at + SITE_FRAMES; i++) {
        char caller[131] = " < ";
        const size_t used = strlen(text);
        hkr_clean(caller + 3, sizeof caller - 3, c->frames[s->frames[i]].function);
        hkr_clean(text + used, size - used, caller);
    }
}

static row *row_of_stack(hkr_rows *all, const hkr_context *c, const hkr_stack *s)
{
    char site[600], key[900];
    site_of(site, sizeof site, c, s);
    snprintf(key, sizeof key, "%.120s\n%.120s\n%s", c->name, s->label, site);
    return row_of(all, key, s->label, site);
}

/* What the sites held at the times of the windows. */
static bool add_windows(rows *all, const hkr_context *c)
{
    for (size_t i = 0; i < json_array_size(c->histories); i++) {
        const json_t *history = json_array_get(c->histories, i);
        const hkr_stack *s = hkr_stack_of(c, hkr_number(history, "stack"));
        row *r = s ? row_of_stack(&all->by_place, c, s) : NULL;
        if (s && !r) return false;
        for (size_t w = 0; r && w < all->windows; w++)
            r->window[w] += hkr_window_live(c, history, all->times[w]);
    }
    return true;
}

static bool add_stacks(hkr_rows *all, const hkr_context *c, int when)
{
    for (size_t i = 0; i < c->stack_count; i++) {
        const hkr_stack *s = &c->stacks[i];
        row *r = row_of_stack(all, c, s);
        if (!r) return false;
        r->live[when] += s->value[HKR_LIVE_BYTES];
        r->alloc[when] += s->value[HKR_ALLOC_BYTES];
        if (when == NOW) r->peak += s->value[HKR_PEAK_BYTES];
    }
    return true;
}

static bool add_labels(hkr_rows *all, const hkr_context *c, int when)
{
    for (size_t i = 0; i < json_array_size(c->labels); i++) {
        const json_t *label = json_array_get(c->labels, i);
        row *r = row_of(all, hkr_text(label, "name"), hkr_text(label, "name"), "");
        if (!r) return false;
        r->live[when] += hkr_number(label, "live_bytes");
    }
    return true;
}

static bool collect(rows *all, const hkr_report *r, const hkr_view_options *o, int when)
{
    for (size_t i = 0; i < r->context_count; i++)
        if (!(o->labels && !o->windows ? add_labels : add_stacks)(&all->by_place, &r->contexts[i], when) ||
            (when == NOW && o->windows && !add_windows(all, &r->contexts[i])))
            return false;
    return true;
}

#define COMPARE(name, of)                                                                                    \
    static int name(const void *a, const void *b)                                                            \
    {                                                                                                        \
        const row *x = a, *y = b;                                                                            \
        const double p = of(x), q = of(y);                                                                   \
        return p < q ? 1 : p > q ? -1 : strcmp(x->site, y->site);                                            \
    }
#define LIVE(r) (r)->live[NOW]
#define GROWTH(r) ((r)->live[NOW] - (r)->live[FIRST])
#define PEAK(r) (r)->peak
#define ALLOC(r) (r)->alloc[NOW]
COMPARE(by_live, LIVE)
COMPARE(by_growth, GROWTH)
COMPARE(by_peak, PEAK)
COMPARE(by_alloc, ALLOC)

static void table(const screen *s, const hkr_rows *all, double seconds)
{
    const hkr_view_options *o = s->options;
    const size_t end = o->skip + o->rows < all->count ? o->skip + o->rows : all->count;
    line(s, "%12s %12s %12s %12s  %-14s %s", "live", "since start", "peak", "allocated/s", "label",
         o->labels ? "" : "site");
    for (size_t i = o->skip; i < end; i++) {
        const row *r = (const row *)all->at + i;
        char live[32], growth[32], peak[32], rate[32], label[32];
        const double grown = GROWTH(r), allocated = r->alloc[NOW] - r->alloc[BEFORE];
        hkr_clean(label, 15, r->label);
        line(s, "%12s %12s %12s %12s  %-14s %s", hkr_bytes(live, r->live[NOW], false),
             grown < 1 && grown > -1 ? "" : hkr_bytes(growth, grown, true),
             o->labels ? "" : hkr_bytes(peak, r->peak, false),
             allocated > 0 && seconds > 0 ? hkr_bytes(rate, allocated / seconds, false) : "", label, r->site);
    }
}

/* A column each window, and one for now. Of stacks that hold little there is no history. */
static void window_table(const screen *s, const rows *all, const hkr_report *now)
{
    const hkr_view_options *o = s->options;
    const size_t count = all->by_place.count, end = o->skip + o->rows < count ? o->skip + o->rows : count;
    char text[(HKR_WINDOWS + 1) * 12 + 1], age[16], bytes[32];
    size_t n = 0;
    if (all->windows == 0) {
        line(s, "no windows: there is no profile, its first window goes on, or its windows are off");
        return;
    }
    for (size_t w = 0; w < all->windows; w++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%12s", hkr_window_age(age, now, all->times[w]));
    line(s, "%s%12s  %-14s %s", text, "now", "label", "site");
    for (size_t i = o->skip; i < end; i++) {
        const row *r = (const row *)all->by_place.at + i;
        char label[32];
        n = 0;
        for (size_t w = 0; w < all->windows; w++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%12s",
                                  r->window[w] > 0 ? hkr_bytes(bytes, r->window[w], false) : "");
        hkr_clean(label, 15, r->label);
        line(s, "%s%12s  %-14s %s", text, hkr_bytes(bytes, r->live[NOW], false), label, r->site);
    }
}

/* Parts have the order of the report. */
static void part_table(const screen *s, const hkr_report *now)
{
    const hkr_view_options *o = s->options;
    const size_t count = hkr_parts(now), end = o->skip + o->rows < count ? o->skip + o->rows : count;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += hkr_part_at(now, i).bytes;
    line(s, "%12s %7s  %-28s %s", "resident", "share", "part", "what can be done");
    for (size_t i = o->skip; i < end; i++) {
        const hkr_part part = hkr_part_at(now, i);
        char bytes[32];
        line(s, "%12s %5.1f %%  %-28s %s", hkr_bytes(bytes, part.bytes, false),
             sum > 0 ? part.bytes / sum * 100 : 0.0, part.name, part.hint);
    }
}

/* ---- The head ------------------------------------------------------------------------------------- */

static double seconds_between(const hkr_report *a, const hkr_report *b)
{
    return (hkr_number(b->process, "now_ns") - hkr_number(a->process, "now_ns")) / 1e9;
}

static void head(const screen *s, const hkr_report *first, const hkr_report *before, const hkr_report *now)
{
    char command[200], runtime[64], live[32], grown[32], peak[32], committed[32], bytes[32];
    char process[32] = "a process", every[32] = "", resident[64] = "", used[32] = "";
    hkr_command(command, sizeof command, now, 6, 100);
    hkr_clean(runtime, sizeof runtime, hkr_text(json_object_get(now->process, "runtime"), "name"));
    if (s->options->interval > 0) snprintf(every, sizeof every, ", every %.3g s", s->options->interval);
    const double pid = hkr_number(now->process, "pid"), pages = hkr_number(now->memory, "resident_bytes");
    if (pid > 0) snprintf(process, sizeof process, "process %.0f", pid);
    if (pages > 0) snprintf(resident, sizeof resident, ", resident %s", hkr_bytes(bytes, pages, false));
    line(s, "hakmem: %s%s%s%s%s%s", process, *runtime ? ", " : "", runtime, every, *command ? ": " : "",
         command);
    const double seconds = seconds_between(before, now);
    const double cpu = hkr_number(now->process, "cpu_seconds") - hkr_number(before->process, "cpu_seconds");
    const double change = hkr_total(now, "live_bytes") - hkr_total(first, "live_bytes");
    if (hkr_number(now->process, "cpu_seconds") > 0)
        snprintf(used, sizeof used, ", CPU %.0f %%", seconds > 0 && cpu > 0 ? cpu / seconds * 100 : 0.0);
    line(s, "live %s (%s since start), peak %s, committed %s%s%s",
         hkr_bytes(live, hkr_total(now, "live_bytes"), false), hkr_bytes(grown, change, true),
         hkr_bytes(peak, hkr_total(now, "peak_bytes"), false),
         hkr_bytes(committed, hkr_total(now, "committed_bytes"), false), resident, used);
    char parts[512];
    hkr_parts_line(parts, sizeof parts, now);
    if (*parts) line(s, "%s", parts);
    line(s, "%s", s->options->notice ? s->options->notice : "");
}

bool hkr_write_view(FILE *out, const hkr_report *first, const hkr_report *before, const hkr_report *now,
                    const hkr_view_options *o, size_t *count)
{
    static int (*const orders[])(const void *, const void *) = {by_live, by_growth, by_peak, by_alloc};
    const screen s = {out, o};
    /* A line is left with 40 columns for label and site. */
    const size_t room = o->columns == 0 ? HKR_WINDOWS : o->columns > 64 ? (o->columns - 52) / 12 : 1;
    rows all = {.by_place = {.table = json_object(), .size = sizeof(row)}};
    hkr_rows *by_place = &all.by_place;
    if (o->windows) all.windows = hkr_window_times(now, room, all.times);
    const bool ok = by_place->table && collect(&all, first, o, FIRST) && collect(&all, before, o, BEFORE) &&
                    collect(&all, now, o, NOW);
    if (ok) {
        hkr_sort(by_place->at, by_place->count, sizeof(row), orders[o->order]);
        head(&s, first, before, now);
        if (o->parts) part_table(&s, now);
        else if (o->windows) window_table(&s, &all, now);
        else table(&s, by_place, seconds_between(before, now));
        *count = o->parts ? hkr_parts(now) : o->windows && all.windows == 0 ? 0 : by_place->count;
    }
    for (size_t i = 0; i < by_place->count; i++)
        free(((row *)by_place->at)[i].site);
    free(by_place->at);
    json_decref(by_place->table);
    return ok && !ferror(out);
}
