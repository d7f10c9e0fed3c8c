#include "hook/text.h"

#include "common/report.h"
#include "heap/labels.h"

#include <stdio.h>
#include <string.h>

/* Rows of a table; the last one is for the rest, where there are more. */
enum { LABELS = 30, SITES = 20 };
/* Bytes of a command; of a place in the code, so that a row has 100; of its file at least. */
enum { COMMAND = 90, PLACE = 50, FOLDER = 12 };

static void put(void *to, const char *bytes, size_t n)
{
    hkp_out_bytes(to, bytes, n);
}

/* Bytes for people; MiB keep two digits so that small changes show. `sign` is "-" or "". */
static void amount(hkp_out *out, const char *before, const char *sign, size_t n)
{
    const size_t kib = 1024, mib = kib * 1024;
    if (n >= mib) {
        size_t hundredths = n / mib * 100 + (n % mib * 100 + mib / 2) / mib;
        hkp_out_format(out, "%s%s%zu.%02zu MiB", before, sign, hundredths / 100, hundredths % 100);
    } else if (n >= kib) {
        size_t tenths = (n * 10 + kib / 2) / kib;
        hkp_out_format(out, "%s%s%zu.%zu KiB", before, sign, tenths / 10, tenths % 10);
    } else {
        hkp_out_format(out, "%s%s%zu B", before, sign, n);
    }
}

/* Puts a text of the program, in which nothing is a command to a terminal. */
static void plain(hkp_out *out, const char *text, size_t n)
{
    char part[128];
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < sizeof part ? n - i : sizeof part;
        if (some < n - i && (unsigned char)text[i + some - 1] == 0xC2)
            some--; /* not between two bytes of one */
        memcpy(part, text + i, some);
        hkc_report_plain(part, some);
        hkp_out_bytes(out, part, some);
    }
}

/* The beginning of a text, which is cut at a character. */
static void beginning(hkp_out *out, const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n > most) {
        for (n = most - 3; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
            continue;
        plain(out, text, n);
        hkp_out_text(out, "...");
    } else {
        plain(out, text, n);
    }
}

/* Its end. */
static const char *end_of(const char *text, size_t most, const char **before)
{
    size_t n = strlen(text);
    *before = n > most ? "..." : "";
    if (n <= most) return text;
    text += n - most + 3;
    while (((unsigned char)*text & 0xc0) == 0x80)
        text++;
    return text;
}

/* ---- Tables -------------------------------------------------------------------------------------- */

static void labels(const hkp_text *t, hkp_out *out)
{
    size_t total = 0;
    for (size_t i = 0; i < t->label_count; i++)
        total += t->labels[i].live_bytes;
    hkc_report_labels(t->labels, (int)t->label_count, LABELS, total, put, out);
}

/* Numbers of the largest sites, the largest first; returns how many. */
static size_t largest(size_t top[SITES], const hkp_text *t)
{
    size_t found = 0;
    for (size_t i = 0; i < t->site_count; i++) {
        size_t n = t->sites[i].live_bytes, at = found;
        while (at > 0 && t->sites[top[at - 1]].live_bytes < n)
            at--;
        if (n == 0 || at == SITES) continue;
        if (found < SITES) found++;
        memmove(&top[at + 1], &top[at], (found - 1 - at) * sizeof *top);
        top[at] = i;
    }
    return found;
}

static void site_amounts(hkp_out *out, const hkp_site_info *s, size_t total)
{
    unsigned share = total > 0 ? (unsigned)((double)s->live_bytes / (double)total * 1000 + 0.5) : 0;
    hkp_out_format(out, "  %13zu %13zu %10zu %3u.%u %%  ", s->live_bytes, s->asked_bytes, s->live_blocks,
                   share / 10, share % 10);
}

/* Cut at the beginning, to so many characters: the line and the function say more than the folder. */
static void place(hkp_out *out, const hkp_site_info *s, size_t most)
{
    char where[256];
    const char *before;
    if (!*s->file) {
        hkp_out_text(out, "(no Python code)");
        return;
    }
    snprintf(where, sizeof where, ":%d %s", s->line, s->function);
    size_t n = strlen(where);
    const char *file = end_of(s->file, n + FOLDER < most ? most - n : FOLDER, &before);
    hkp_out_text(out, before);
    plain(out, file, strlen(file));
    beginning(out, where, most - FOLDER);
}

static void sites(const hkp_text *t, hkp_out *out)
{
    hkp_site_info rest = {.file = ""};
    size_t top[SITES], count = largest(top, t), others = 0, total = 0;
    for (size_t i = 0; i < t->site_count; i++) {
        others += t->sites[i].live_bytes > 0;
        total += t->sites[i].live_bytes;
        rest.asked_bytes += t->sites[i].asked_bytes;
        rest.live_blocks += t->sites[i].live_blocks;
    }
    rest.live_bytes = total;
    bool moved = false;
    hkp_out_format(out, "  %13s %13s %10s %7s  line\n", "live bytes", "asked for", "blocks", "share");
    for (size_t i = 0; i < count; i++) {
        const hkp_site_info *s = &t->sites[top[i]];
        rest.live_bytes -= s->live_bytes;
        rest.asked_bytes -= s->asked_bytes;
        rest.live_blocks -= s->live_blocks;
        site_amounts(out, s, total);
        const bool most = s->reused_bytes > s->live_bytes / 2;
        place(out, s, PLACE - (most ? 2 : 0));
        hkp_out_text(out, most ? " ~\n" : "\n");
        moved |= most;
    }
    if ((others -= count) > 0) {
        site_amounts(out, &rest, total);
        hkp_out_format(out, "(%zu others)\n", others);
    }
    if (moved)
        hkp_out_text(out, "  ~ most are of kinds that CPython keeps in free lists: another line may have "
                          "taken them since\n");
    hkp_out_text(out, "\n");
}

/* ---- Lines --------------------------------------------------------------------------------------- */

void hkp_text_parts(const hkc_parts *parts, hkp_out *out)
{
    hkc_report_parts(parts, put, out);
}

/* What is known without parts. */
static void resident(const hkp_text *t, hkp_out *out)
{
    const size_t ours = t->resident_ours < t->resident ? t->resident_ours : t->resident;
    amount(out, "  resident ", "", t->resident);
    amount(out, ": hakmem ", "", ours);
    amount(out, ", the rest ", "", t->resident - ours);
    hkp_out_text(out, "\n");
}

static void head(const hkp_text *t, hkp_out *out)
{
    int version = (int)strcspn(t->python, " ");
    if (version > 40) version = 40;
    hkp_out_format(out, "hakmem %.40s: ", t->version);
    beginning(out, t->command, COMMAND);
    hkp_out_format(out, "\n  Python %.*s, process %ld, %llu.%02llu s of CPU, ", version, t->python,
                   t->process, (unsigned long long)(t->cpu / 1000000),
                   (unsigned long long)(t->cpu / 10000 % 100));
    amount(out, "peak resident ", "", t->resident_peak);
    for (int d = 0; d < HKP_DOMAINS; d++) {
        if (d == HKP_MALLOC && strcmp(t->states[d], "replaced") != 0) continue;
        hkp_out_format(out, "%s%s %.20s", d ? ", " : "\n  domains: ", hkp_domain_names[d], t->states[d]);
    }
    if (*t->why) {
        hkp_out_text(out, "\n  note: ");
        plain(out, t->why, strlen(t->why));
    }
    hkp_out_text(out, "\n\n");
}

static void tail(const hkp_text *t, hkp_out *out)
{
    for (int d = 0; d < HKP_ARENA; d++) {
        if (!t->wrapped[d]) continue;
        hkp_out_format(out, "  %s, wrapped: %llu allocations, %llu bytes asked for\n", hkp_domain_names[d],
                       (unsigned long long)t->wrap_counts[d].allocations,
                       (unsigned long long)t->wrap_counts[d].bytes);
    }
    amount(out, "  peak live ", "", t->stats.peak_bytes);
    amount(out, ", committed ", "", t->stats.committed_bytes);
    if (t->stats.hard_limit) {
        amount(out, "\n  limit ", "", t->stats.hard_limit);
        hkp_out_format(out, ", %llu allocations refused", (unsigned long long)t->stats.failures);
    }
    hkp_out_text(out, "\n");
    if (t->parts && t->parts->count > 0) hkp_text_parts(t->parts, out);
    else resident(t, out);
}

void hkp_text_put(const hkp_text *t, hkp_out *out)
{
    head(t, out);
    labels(t, out);
    if (t->sites) sites(t, out);
    tail(t, out);
}
