#include "common/report_json.h"

#include <hakmem/learn.h>

#include <string.h>
#include <time.h>
#include <unistd.h>

static void command(hkc_json *w, pid_t pid)
{
    char text[4096];
    const size_t n = hkc_command_of(pid, text, sizeof text);
    hkc_json_array(w, "command");
    for (size_t at = 0; at < n; at += strlen(text + at) + 1)
        hkc_json_text(w, NULL, text + at);
    hkc_json_end(w);
}

static void memory(hkc_json *w, pid_t pid, const hkc_parts *parts)
{
    hkc_totals all;
    hkc_totals_read(&all, pid);
    if (parts) all.resident = parts->resident; /* of the same moment */
    if (all.peak < all.resident) all.peak = all.resident;
    hkc_json_object(w, "memory");
    hkc_json_size(w, "resident_bytes", all.resident);
    hkc_json_size(w, "peak_resident_bytes", all.peak);
    hkc_json_size(w, "anonymous_bytes", all.anonymous);
    hkc_parts_json(w, parts);
    hkc_json_end(w);
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
    hkc_json_integer(w, "parent", p->parent ? p->parent : hkc_parent());
    hkc_json_object(w, "runtime");
    hkc_json_text(w, "name", p->runtime);
    hkc_json_text(w, "version", p->version);
    hkc_json_end(w);
    hkc_json_integer(w, "time", (int64_t)time(NULL));
    hkc_json_size(w, "now_ns", (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    hkc_json_number(w, "cpu_seconds", p->cpu_seconds > 0 ? p->cpu_seconds : hkc_cpu_seconds());
    hkc_json_end(w);
    memory(w, pid, p->parts);
    hkc_json_array(w, "contexts");
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
