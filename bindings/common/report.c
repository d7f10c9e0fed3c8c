#include "common/report.h"

#include "common/control.h"
#include "common/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 256 };

typedef struct sink {
    hkc_put_fn *put;
    void *to;
} sink;

void hkc_report_plain(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t control = hkc_control(text + i, n - i);
        if (control == 0) continue;
        memset(text + i, '?', control);
        i += control - 1;
    }
}

static HKC_FORMAT(2, 3) void line(const sink *s, const char *format, ...)
{
    char text[LINE];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n <= 0) return;
    if ((size_t)n >= sizeof text) {
        n = sizeof text - 1;
        text[n - 1] = '\n';
    }
    hkc_report_plain(text, (size_t)n - 1); /* a line ends, and nothing in it does */
    s->put(s->to, text, (size_t)n);
}

void hkc_report_take(hkc_report *r, const hak_ctx *ctx, hak_label_info labels[HAK_LABELS_MAX + 1])
{
    r->stats.size = sizeof r->stats;
    hak_ctx_stats(ctx, &r->stats);
    r->labels = labels;
    r->label_count = hak_labels_stats(ctx, labels, HAK_LABELS_MAX + 1);
    labels[0].name = "unlabelled";
}

/* Sorts them, the largest first. qsort may allocate. */
static void sort_labels(hak_label_info *labels, int count)
{
    for (int i = 1; i < count; i++) {
        const hak_label_info label = labels[i];
        int at = i;
        for (; at > 0 && labels[at - 1].live_bytes < label.live_bytes; at--)
            labels[at] = labels[at - 1];
        labels[at] = label;
    }
}

static void label_row(const sink *s, const hak_label_info *l, size_t largest, size_t total)
{
    static const char bar[] = "####################################";
    if (l->live_blocks == 0) return;
    const double part = (double)l->live_bytes;
    const int width = largest > 0 ? (int)(part / (double)largest * (double)(sizeof bar - 1) + 0.5) : 0;
    unsigned share = total > 0 ? (unsigned)(part / (double)total * 1000 + 0.5) : 0;
    line(s, "  %-22.22s %14zu %11zu %3u.%u %%%s%.*s\n", l->name, l->live_bytes, l->live_blocks, share / 10,
         share % 10, width > 0 ? "  " : "", width, bar);
}

void hkc_report_labels(hak_label_info *labels, int count, int most, size_t total, hkc_put_fn *put, void *to)
{
    const sink s = {put, to};
    char name[32];
    hak_label_info rest = {.name = name};
    int others = 0;
    sort_labels(labels, count);
    for (int i = most; i < count; i++) {
        others += labels[i].live_blocks > 0;
        rest.live_bytes += labels[i].live_bytes;
        rest.live_blocks += labels[i].live_blocks;
    }
    snprintf(name, sizeof name, "(%d others)", others);
    const size_t first = count > 0 ? labels[0].live_bytes : 0;
    const size_t largest = first > rest.live_bytes ? first : rest.live_bytes;
    line(&s, "  %-22s %14s %11s %7s\n", "label", "live bytes", "blocks", "share");
    for (int i = 0; i < count && i < most; i++)
        label_row(&s, &labels[i], largest, total);
    label_row(&s, &rest, largest, total);
    line(&s, "\n");
}

static void bytes_row(const sink *s, const char *name, size_t bytes, const char *what)
{
    const size_t mib = (size_t)1 << 20;
    size_t hundredths = bytes / mib * 100 + (bytes % mib * 100 + mib / 2) / mib;
    line(s, "  %-22s %14zu %8zu.%02zu MiB  %s\n", name, bytes, hundredths / 100, hundredths % 100, what);
}

size_t hkc_resident(void)
{
    return hkc_resident_of(0);
}

static void part_row(const sink *s, const hkc_part *p)
{
    const size_t mib = (size_t)1 << 20;
    const size_t hundredths = p->bytes / mib * 100 + (p->bytes % mib * 100 + mib / 2) / mib;
    /* A name that is longer than its column takes from that of the bytes. */
    const size_t length = strlen(p->name), beyond = length > 24 ? length - 24 : 0;
    line(s, "    %-24s %*zu %8zu.%02zu MiB  %s\n", p->name, beyond < 10 ? 10 - (int)beyond : 0, p->bytes,
         hundredths / 100, hundredths % 100, p->hint);
}

void hkc_report_parts(const hkc_parts *parts, hkc_put_fn *put, void *to)
{
    const sink s = {put, to};
    if (!parts || parts->count == 0) return;
    bytes_row(&s, "process resident", parts->sum, "the sum of these parts:");
    for (size_t i = 0; i < parts->count; i++)
        part_row(&s, &parts->part[i]);
}

static void total_rows(const sink *s, const hak_stats *t)
{
    bytes_row(s, "live", t->live_bytes, "of blocks in use");
    bytes_row(s, "cached", t->cached_bytes, "free, kept for the next blocks");
    bytes_row(s, "metadata", t->metadata_bytes, "bitmaps, labels, tables of hakmem");
    bytes_row(s, "committed", t->committed_bytes, "the sum of these three");
    bytes_row(s, "released", t->released_bytes, "part of cached that is back at the system");
    bytes_row(s, "retained", t->retained_bytes, "recycled pages beside what is committed");
    bytes_row(s, "peak live", t->peak_bytes, "the highest so far");
    if (t->soft_limit != 0) bytes_row(s, "soft limit", t->soft_limit, "of committed bytes");
    if (t->hard_limit != 0) bytes_row(s, "hard limit", t->hard_limit, "of committed bytes");
    line(s, "  %-22s %14llu                  allocations refused\n", "failures",
         (unsigned long long)t->failures);
}

void hkc_report_put(const hkc_report *r, hkc_put_fn *put, void *to)
{
    const sink s = {put, to};
    line(&s, "hakmem %s: %.150s%sprocess %ld: %zu bytes in %zu blocks%s%s\n", hak_version(), r->name,
         r->name[0] != '\0' ? ", " : "", (long)getpid(), r->stats.live_bytes, r->stats.live_blocks,
         r->note[0] != '\0' ? ", " : "", r->note);
    if (r->label_count > 0)
        hkc_report_labels(r->labels, r->label_count, r->label_count, r->stats.live_bytes, put, to);
    total_rows(&s, &r->stats);
    hkc_report_parts(r->parts, put, to);
    if (r->threads != 0)
        line(&s, "  %-22s %14zu                  that allocated, %zu of them now\n", "threads", r->threads,
             r->threads_now);
}
