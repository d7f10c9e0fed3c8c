#include "common/report_json.h"

#include <hakmem/learn.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TEXT = 4096 };

/* A file of a process in /proc, up to TEXT - 1 bytes and a 0 behind them. */
static size_t read_proc(pid_t pid, const char *name, char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t more;
    while (fd >= 0 && n < TEXT - 1 && (more = read(fd, text + n, TEXT - 1 - n)) > 0)
        n += (size_t)more;
    if (fd >= 0) close(fd);
    text[n] = '\0';
    return n;
}

static void command(hkc_json *w, pid_t pid)
{
    char text[TEXT];
    const size_t n = read_proc(pid, "cmdline", text);
    hkc_json_array(w, "command");
    for (size_t at = 0; at < n; at += strlen(text + at) + 1)
        hkc_json_text(w, NULL, text + at);
    hkc_json_end(w);
}

/* Of a line of /proc/PID/status, "VmHWM:   1234 kB". */
static bool kilobytes(const char *line, const char *name, uint64_t *bytes)
{
    const size_t length = strlen(name);
    if (strncmp(line, name, length) != 0) return false;
    *bytes = 0;
    for (line += length; *line == ' ' || *line == '\t'; line++) {
    }
    for (; *line >= '0' && *line <= '9'; line++)
        *bytes = *bytes * 10 + (uint64_t)(*line - '0');
    *bytes *= 1024;
    return true;
}

static void memory(hkc_json *w, pid_t pid, const hkc_parts *parts)
{
    char text[TEXT], path[64];
    uint64_t resident = 0, peak = 0, anonymous = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t more;
    for (size_t n = 0; fd >= 0 && (more = read(fd, text + n, sizeof text - n)) > 0;) {
        char *line = text, *end = text + n + (size_t)more;
        for (char *behind; (behind = memchr(line, '\n', (size_t)(end - line))) != NULL; line = behind + 1) {
            *behind = '\0';
            if (!kilobytes(line, "VmRSS:", &resident) && !kilobytes(line, "VmHWM:", &peak))
                kilobytes(line, "RssAnon:", &anonymous);
        }
        n = (size_t)(end - line);
        if (n == sizeof text) n = 0; /* a user's groups may be many; none of the lines is as long */
        memmove(text, line, n);
    }
    if (fd >= 0) close(fd);
    if (parts) resident = parts->resident; /* of the same moment */
    if (peak < resident) peak = resident;
    hkc_json_object(w, "memory");
    hkc_json_size(w, "resident_bytes", resident);
    hkc_json_size(w, "peak_resident_bytes", peak);
    hkc_json_size(w, "anonymous_bytes", anonymous);
    hkc_parts_json(w, parts);
    hkc_json_end(w);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void hkc_report_json_begin(hkc_json *w, const hkc_report_process *p)
{
    const pid_t pid = p->pid ? p->pid : getpid();
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    hkc_json_object(w, NULL);
    hkc_json_text(w, "schema", "hakmem-report/1");
    hkc_json_text(w, "hakmem", hak_version());
    hkc_json_object(w, "process");
    command(w, pid);
    hkc_json_integer(w, "pid", pid);
    hkc_json_integer(w, "parent", p->parent ? p->parent : getppid());
    hkc_json_object(w, "runtime");
    hkc_json_text(w, "name", p->runtime);
    hkc_json_text(w, "version", p->version);
    hkc_json_end(w);
    hkc_json_integer(w, "time", (int64_t)time(NULL));
    hkc_json_size(w, "now_ns", (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    hkc_json_number(w, "cpu_seconds", p->cpu_seconds > 0 ? p->cpu_seconds : cpu_seconds());
    hkc_json_end(w);
    memory(w, pid, p->parts);
    hkc_json_array(w, "contexts");
}

void hkc_report_json_contexts_end(hkc_json *w)
{
    hkc_json_end(w);
}

void hkc_report_json_end(hkc_json *w)
{
    hkc_json_end(w);
    hkc_json_end(w);
}

void hkc_report_json_stats(hkc_json *w, const hak_stats *s)
{
    hkc_json_object(w, "stats");
    hkc_json_size(w, "live_bytes", s->live_bytes);
    hkc_json_size(w, "live_blocks", s->live_blocks);
    hkc_json_size(w, "peak_bytes", s->peak_bytes);
    hkc_json_size(w, "committed_bytes", s->committed_bytes);
    hkc_json_size(w, "metadata_bytes", s->metadata_bytes);
    hkc_json_size(w, "cached_bytes", s->cached_bytes);
    hkc_json_size(w, "released_bytes", s->released_bytes);
    hkc_json_size(w, "reserved_bytes", s->reserved_bytes);
    hkc_json_size(w, "retained_bytes", s->retained_bytes);
    hkc_json_size(w, "big_bytes", s->big_bytes);
    hkc_json_size(w, "big_blocks", s->big_blocks);
    hkc_json_size(w, "soft_limit", s->soft_limit);
    hkc_json_size(w, "hard_limit", s->hard_limit);
    hkc_json_size(w, "failures", s->failures);
    hkc_json_size(w, "os_calls", s->os_calls);
    hkc_json_end(w);
}

void hkc_report_json_labels(hkc_json *w, const hak_label_info *labels, size_t count)
{
    hkc_json_array(w, "labels");
    for (size_t i = 0; i < count; i++) {
        if (labels[i].live_blocks == 0) continue;
        hkc_json_object(w, NULL);
        hkc_json_text(w, "name", labels[i].label ? labels[i].name : "unlabelled");
        hkc_json_size(w, "live_bytes", labels[i].live_bytes);
        hkc_json_size(w, "live_blocks", labels[i].live_blocks);
        hkc_json_end(w);
    }
    hkc_json_end(w);
}

void hkc_report_json_holes(hkc_json *w, const hak_ctx *ctx)
{
    enum { CLASSES = 128 };
    hak_class_info classes[CLASSES];
    const int n = hak_classes_stats(ctx, classes, CLASSES);
    hkc_json_array(w, "holes");
    for (int i = 0; i < n && i < CLASSES; i++) {
        if (classes[i].free_bytes == 0) continue;
        hkc_json_object(w, NULL);
        hkc_json_size(w, "block_bytes", classes[i].block_bytes);
        hkc_json_size(w, "blocks", classes[i].blocks);
        hkc_json_size(w, "free_bytes", classes[i].free_bytes);
        hkc_json_size(w, "pinned_bytes", classes[i].pinned_bytes);
        hkc_json_end(w);
    }
    hkc_json_end(w);
}

static const char *const phases[] = {"learning", "frozen", "canary"};
static const char *const decisions[] = {"window", "try",      "keep", "undo",  "freeze",
                                        "thaw",   "forecast", "met",  "missed"};

static void decision_json(hkc_json *w, const hak_decision *d)
{
    hkc_json_object(w, NULL);
    hkc_json_size(w, "window", d->window);
    hkc_json_size(w, "at_ns", d->at_ns);
    hkc_json_text(w, "kind", decisions[d->kind]);
    hkc_json_text(w, "phase", phases[d->phase]);
    if (d->number) {
        hkc_json_text(w, "number", d->number);
        if (d->from != HAK_NONE) hkc_json_size(w, "from", d->from);
        if (d->to != HAK_NONE) hkc_json_size(w, "to", d->to);
    }
    hkc_json_number(w, "expected", d->expected);
    hkc_json_number(w, "observed", d->observed);
    hkc_json_text(w, "text", d->text);
    hkc_json_end(w);
}

/* What the context's learner saw and decided. */
static void learned(hkc_json *w, hak_learner *learner)
{
    hak_window window = {.size = sizeof window};
    hak_decision decision = {.size = sizeof decision};
    hkc_json_array(w, "timeline");
    for (size_t i = 0; hak_learner_window(learner, i, &window) == 0; i++)
        hkc_report_json_point(w, window.at_ns, window.live_bytes, window.committed_bytes,
                              window.resident_bytes);
    hkc_json_end(w);
    hkc_json_array(w, "decisions");
    for (size_t i = 0; hak_learner_decision(learner, i, &decision) == 0; i++)
        decision_json(w, &decision);
    hkc_json_end(w);
}

void hkc_report_json_context(hkc_json *w, const char *name, const hak_ctx *ctx)
{
    hak_stats stats = {.size = sizeof stats};
    hkc_report_json_context_as(w, name, ctx, hak_ctx_stats(ctx, &stats) == 0 ? &stats : NULL);
}

void hkc_report_json_context_as(hkc_json *w, const char *name, const hak_ctx *ctx, const hak_stats *stats)
{
    hak_label_info labels[HAK_LABELS_MAX + 1];
    hkc_json_object(w, NULL);
    hkc_json_text(w, "name", name ? name : hak_ctx_name(ctx));
    if (stats) hkc_report_json_stats(w, stats);
    const int n = hak_labels_stats(ctx, labels, HAK_LABELS_MAX + 1);
    hkc_report_json_labels(w, labels, n > 0 ? (size_t)n : 0);
    hkc_report_json_holes(w, ctx);
    hak_learner *learner = hak_ctx_learner(ctx);
    if (learner) learned(w, learner);
}

void hkc_report_json_point(hkc_json *w, uint64_t at_ns, size_t live, size_t committed, size_t resident)
{
    hkc_json_object(w, NULL);
    hkc_json_size(w, "at_ns", at_ns);
    hkc_json_size(w, "live_bytes", live);
    hkc_json_size(w, "committed_bytes", committed);
    if (resident) hkc_json_size(w, "resident_bytes", resident);
    hkc_json_end(w);
}
