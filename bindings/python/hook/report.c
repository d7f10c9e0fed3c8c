#include "hook/report.h"

#include "base/map.h"
#include "base/process.h"
#include "common/mapped.h"
#include "common/report_json.h"
#include "common/smaps.h"
#include "heap/heap.h"
#include "heap/labels.h"
#include "heap/resident.h"
#include "hook/install.h"
#include "hook/mapped.h"
#include "hook/text.h"
#include "paths/reused.h"
#include "profile/json.h"

#include <sys/mman.h>

static const char *const state_names[] = {"default", "replaced", "wrapped", "covered", "displaced"};

static void status_json(hkc_json *w, bool gil)
{
    hkp_status status;
    hkp_status_get(&status, gil);
    hkc_json_object(w, "status");
    for (int d = 0; d < HKP_DOMAINS; d++)
        hkc_json_text(w, hkp_domain_names[d], state_names[status.state[d]]);
    hkc_json_bool(w, "early", status.early);
    hkc_json_text(w, "labels", status.labels);
    hkc_json_text(w, "why", status.why);
    hkc_json_end(w);
    hkc_json_object(w, "wrapped");
    for (int d = HKP_RAW; d <= HKP_OBJ; d++) {
        if (status.state[d] != HKP_WRAPPED) continue;
        hkp_wrap_count c;
        hkp_wrap_counts((hkp_domain)d, &c);
        hkc_json_object(w, hkp_domain_names[d]);
        hkc_json_size(w, "allocations", c.allocations);
        hkc_json_size(w, "frees", c.frees);
        hkc_json_size(w, "bytes", c.bytes);
        hkc_json_end(w);
    }
    hkc_json_end(w);
}

static hkc_parts *take_parts(void)
{
    hak_stats stats = {.size = sizeof stats};
    hkc_mapped_measure(hkp_process());
    hkc_parts *parts = hkc_parts_begin(hkp_process());
    if (parts && hkp_stats(&stats) == 0) {
        hkc_parts_live(parts, hkp_ctx(), &stats, (size_t)hkp_labels(parts->infos));
        hkp_resident_take(parts, stats.retained_bytes);
        hkp_mapped_parts(parts);
    }
    hkc_parts_end(parts);
    return parts;
}

void hkp_report_resident(hkp_out *out)
{
    hkc_parts *parts = take_parts();
    hkp_text_parts(parts, out);
    hkc_parts_close(parts);
}

static void context_json(hkc_json *w, bool gil)
{
    const hkp_provider *provider = hkp_provider_current();
    hak_stats stats = {.size = sizeof stats};
    hak_label_info labels[HAK_LABELS_MAX + 1];
    hkc_json_object(w, NULL);
    hkc_json_text(w, "name", "python");
    if (hkp_stats(&stats) == 0) hkc_report_json_stats(w, &stats);
    hkc_report_json_labels(w, labels, (size_t)hkp_labels(labels));
    if (hkp_ctx()) hkc_report_json_holes(w, hkp_ctx());
    hkp_profile_json(w);
    hkc_json_size(w, "resident_ours_bytes", hkp_resident_ours());
    status_json(w, gil);
    hkc_json_text(w, "reused", hkp_reused_state());
    if (provider->report) provider->report(w);
    hkc_json_end(w);
}

void hkp_report_json(hkc_json *w, bool gil)
{
    const hkp_python *python = hkp_python_find();
    hkc_parts *parts = take_parts();
    hkc_report_process process = {.runtime = "python",
                                  .parts = parts,
                                  .version = python ? python->get_version() : "",
                                  .pid = hkp_process(),
                                  .parent = hkp_process_parent(),
                                  .cpu_seconds = (double)hkp_process_cpu() / 1e6};
    hkc_report_json_begin(w, &process);
    hkc_parts_close(parts);
    context_json(w, gil);
    hkp_mapped_json(w);
    hkc_report_json_end(w);
}

static int put(void *to, const char *bytes, size_t n)
{
    hkp_out *out = to;
    hkp_out_bytes(out, bytes, n);
    return out->error;
}

void hkp_report_json_text(hkp_out *out, bool gil)
{
    hkc_json w;
    hkc_json_open(&w, put, out);
    hkp_report_json(&w, gil);
    hkc_json_close(&w);
}

int hkp_report_diff_text(hkp_out *out, unsigned from, unsigned to)
{
    hkc_json w;
    hkc_json_open(&w, put, out);
    const int error = hkp_profile_diff_json(&w, from, to);
    hkc_json_close(&w);
    return error ? error : out->error;
}

/* Words with a space between them. */
static void command_text(char *text, size_t size)
{
    size_t n = hkc_command_of(hkp_process(), text, size);
    for (size_t i = 0; i + 1 < n; i++)
        if (!text[i]) text[i] = ' ';
}

void hkp_report_text(hkp_out *out, bool gil)
{
    const hkp_python *python = hkp_python_find();
    char command[512];
    hkp_status status;
    hak_label_info labels[HAK_LABELS_MAX + 1];
    hkc_parts *parts = take_parts();
    hkc_totals totals;
    hkc_totals_read(&totals, hkp_process());
    command_text(command, sizeof command);
    hkp_status_get(&status, gil);
    hkp_text t = {.version = hak_version(),
                  .command = command,
                  .python = python ? python->get_version() : "",
                  .why = status.why,
                  .process = (long)hkp_process(),
                  .cpu = hkp_process_cpu(),
                  .stats = {.size = sizeof t.stats},
                  .resident = totals.resident,
                  .resident_ours = hkp_resident_ours(),
                  .resident_peak = totals.peak,
                  .labels = labels,
                  .parts = parts};
    hkp_stats(&t.stats);
    t.label_count = (size_t)hkp_labels(labels);
    labels[0].name = "unlabelled";
    for (int d = 0; d < HKP_DOMAINS; d++)
        t.states[d] = state_names[status.state[d]];
    for (int d = 0; d < HKP_ARENA; d++) {
        t.wrapped[d] = status.state[d] == HKP_WRAPPED;
        hkp_wrap_counts((hkp_domain)d, &t.wrap_counts[d]);
    }
    t.site_count = hkp_site_count();
    hkp_site_info *sites = t.site_count ? hkp_pages(t.site_count * sizeof *sites) : NULL;
    if (sites) hkp_site_stats(sites, t.site_count);
    t.sites = sites;
    hkp_text_put(&t, out);
    hkc_parts_close(parts);
    if (sites) munmap(sites, t.site_count * sizeof *sites);
}
