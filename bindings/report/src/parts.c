#include "parts.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES_SHOWN = 3, SITES_SHOWN = 5 };
static const double worth_showing = 64 << 10;

/* ---- Parts ---------------------------------------------------------------------------------------- */

static const json_t *array_of(const hkr_report *r)
{
    return json_object_get(r->memory, "parts");
}

size_t hkr_parts(const hkr_report *r)
{
    return json_array_size(array_of(r));
}

hkr_part hkr_part_at(const hkr_report *r, size_t i)
{
    const json_t *from = json_array_get(array_of(r), i);
    hkr_part part = {.kind = hkr_text(from, "kind"), .bytes = hkr_number(from, "bytes")};
    hkr_clean(part.name, sizeof part.name, hkr_text(from, "name"));
    hkr_clean(part.hint, sizeof part.hint, hkr_text(from, "hint"));
    return part;
}

/* What a kind is called where there is no room for names. */
static const char *brief(const char *kind)
{
    static const struct {
        const char *kind, *name;
    } known[] = {{"between", "free between blocks"},
                 {"metadata", "hakmem's tables"},
                 {"unnamed", "hakmem's other"},
                 {"malloc", "C library's malloc"},
                 {"mapped", "mapped past malloc"},
                 {"code", "machine code"},
                 {"file", "files"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].kind, kind) == 0) return known[i].name;
    return kind;
}

static bool is_first_of_kind(const hkr_report *r, size_t i, const char *kind)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(hkr_text(json_array_get(array_of(r), k), "kind"), kind) == 0) return false;
    return true;
}

void hkr_parts_line(char *text, size_t size, const hkr_report *r)
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < hkr_parts(r); i++) {
        const char *kind = hkr_text(json_array_get(array_of(r), i), "kind");
        char bytes[32], name[40];
        double sum = 0;
        if (!is_first_of_kind(r, i, kind)) continue;
        for (size_t k = i; k < hkr_parts(r); k++) {
            const json_t *part = json_array_get(array_of(r), k);
            if (strcmp(hkr_text(part, "kind"), kind) == 0) sum += hkr_number(part, "bytes");
        }
        hkr_clean(name, sizeof name, brief(kind));
        const int n = snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", name,
                               hkr_bytes(bytes, sum, false));
        if (n < 0 || (size_t)n >= size - used) return;
        used += (size_t)n;
    }
}

void hkr_write_parts(FILE *out, const hkr_report *r)
{
    char bytes[32];
    double sum = 0;
    const size_t count = hkr_parts(r);
    for (size_t i = 0; i < count; i++)
        sum += hkr_part_at(r, i).bytes;
    if (sum <= 0) return;
    fprintf(out, "\n  resident memory, %s:\n", hkr_bytes(bytes, sum, false));
    for (size_t i = 0; i < count; i++) {
        const hkr_part part = hkr_part_at(r, i);
        fprintf(out, "  %12s %5.1f %%  %-28s %s\n", hkr_bytes(bytes, part.bytes, false),
                part.bytes / sum * 100, part.name, part.hint);
    }
}

/* ---- Holes ---------------------------------------------------------------------------------------- */

typedef struct pin {
    char *site;
    double bytes, blocks;
} pin;

static int more_first(const void *a, const void *b)
{
    const pin *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->site, y->site);
}

static int wider_first(const void *a, const void *b)
{
    const double x = hkr_number(*(json_t *const *)a, "pinned_bytes");
    const double y = hkr_number(*(json_t *const *)b, "pinned_bytes");
    return (x < y) - (x > y);
}

static bool sum_sites(const hkr_context *c, hkr_rows *pins)
{
    for (size_t i = 0; i < c->stack_count; i++) {
        const hkr_stack *s = &c->stacks[i];
        const hkr_frame *f = hkr_site(c, s);
        char site[600] = "code without a name";
        if (s->pinned <= 0) continue;
        if (f) hkr_frame_text(site, sizeof site, f);
        pin *p = hkr_row(pins, site);
        if (!p || (!p->site && !(p->site = strdup(site)))) return false;
        p->bytes += s->pinned;
        p->blocks += s->value[HKR_LIVE_BLOCKS];
    }
    return true;
}

static bool write_pins(FILE *out, const hkr_context *c)
{
    char bytes[32];
    hkr_rows all = {.table = json_object(), .size = sizeof(pin)};
    const bool ok = all.table && sum_sites(c, &all);
    pin *pins = all.at;
    if (ok) hkr_sort(pins, all.count, sizeof *pins, more_first);
    for (size_t i = 0; i < all.count; i++) {
        if (ok && i < SITES_SHOWN)
            fprintf(out, "  %12s  pinned by %.0f blocks of %s\n", hkr_bytes(bytes, pins[i].bytes, false),
                    pins[i].blocks, pins[i].site);
        free(pins[i].site);
    }
    json_decref(all.table);
    free(pins);
    return ok;
}

bool hkr_write_holes(FILE *out, const hkr_context *c)
{
    double unused = 0, pinned = 0;
    char a[32], b[32];
    const size_t n = json_array_size(c->holes);
    for (size_t i = 0; i < n; i++) {
        unused += hkr_number(json_array_get(c->holes, i), "free_bytes");
        pinned += hkr_number(json_array_get(c->holes, i), "pinned_bytes");
    }
    if (pinned < worth_showing) return true;
    json_t **all = hkr_sorted(c->holes, wider_first);
    if (!all) return false;
    fprintf(out, "\n  %s are free in slabs that have live blocks; of these trim cannot give back %s:\n",
            hkr_bytes(a, unused, false), hkr_bytes(b, pinned, false));
    for (size_t i = 0; i < n && i < CLASSES_SHOWN && hkr_number(all[i], "pinned_bytes") > 0; i++)
        fprintf(out, "  %12s  beside %.0f blocks of %.0f bytes\n",
                hkr_bytes(a, hkr_number(all[i], "pinned_bytes"), false), hkr_number(all[i], "blocks"),
                hkr_number(all[i], "block_bytes"));
    free(all);
    return write_pins(out, c);
}
