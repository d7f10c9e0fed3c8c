#include "hook/report.h"

#include "base/map.h"
#include "base/process.h"
#include "heap/heap.h"
#include "heap/labels.h"
#include "heap/resident.h"
#include "hook/install.h"
#include "hook/text.h"

#include <sys/mman.h>
#include <time.h>

static const char *const state_names[] = {"default", "replaced", "wrapped", "covered", "displaced"};

static void stats_json(hkp_out *out)
{
    hak_stats s = {.size = sizeof s};
    if (hkp_stats(&s) != 0) return;
    hkp_out_text(out, ",\"stats\":");
    hkp_out_size(out, "{", "live_bytes", s.live_bytes);
    hkp_out_size(out, ",", "live_blocks", s.live_blocks);
    hkp_out_size(out, ",", "peak_bytes", s.peak_bytes);
    hkp_out_size(out, ",", "committed_bytes", s.committed_bytes);
    hkp_out_size(out, ",", "metadata_bytes", s.metadata_bytes);
    hkp_out_size(out, ",", "cached_bytes", s.cached_bytes);
    hkp_out_size(out, ",", "released_bytes", s.released_bytes);
    hkp_out_size(out, ",", "idle_bytes", s.idle_bytes);
    hkp_out_size(out, ",", "big_bytes", s.big_bytes);
    hkp_out_size(out, ",", "hard_limit", s.hard_limit);
    hkp_out_size(out, ",", "soft_limit", s.soft_limit);
    hkp_out_size(out, ",", "failures", (size_t)s.failures);
    hkp_out_size(out, ",", "resident_bytes", hkp_resident());
    hkp_out_size(out, ",", "resident_ours_bytes", hkp_resident_ours());
    hkp_out_text(out, "}");
}

static void labels_json(hkp_out *out)
{
    hak_label_info labels[HAK_LABELS_MAX + 1];
    int n = hkp_labels(labels);
    hkp_out_text(out, ",\"labels\":{");
    const char *comma = "";
    for (int i = 0; i < n; i++) {
        if (labels[i].live_blocks == 0) continue;
        hkp_out_text(out, comma);
        hkp_out_string(out, labels[i].label ? labels[i].name : "unlabelled");
        hkp_out_size(out, ":{", "live_bytes", labels[i].live_bytes);
        hkp_out_size(out, ",", "live_blocks", labels[i].live_blocks);
        hkp_out_text(out, "}");
        comma = ",";
    }
    hkp_out_text(out, "}");
}

static void status_json(hkp_out *out, bool gil)
{
    hkp_status status;
    hkp_status_get(&status, gil);
    hkp_out_text(out, ",\"status\":{");
    for (int d = 0; d < HKP_DOMAINS; d++)
        hkp_out_format(out, "%s\"%s\":\"%s\"", d ? "," : "", hkp_domain_names[d],
                       state_names[status.state[d]]);
    hkp_out_format(out, ",\"early\":%s,\"labels\":\"%s\",\"why\":", status.early ? "true" : "false",
                   status.labels);
    hkp_out_string(out, status.why);
    hkp_out_text(out, "},\"wrapped\":{");
    const char *comma = "";
    for (int d = HKP_RAW; d <= HKP_OBJ; d++) {
        if (status.state[d] != HKP_WRAPPED) continue;
        hkp_wrap_count c;
        hkp_wrap_counts((hkp_domain)d, &c);
        hkp_out_format(out, "%s\"%s\":{\"allocations\":%llu,\"frees\":%llu,\"bytes\":%llu}", comma,
                       hkp_domain_names[d], (unsigned long long)c.allocations, (unsigned long long)c.frees,
                       (unsigned long long)c.bytes);
        comma = ",";
    }
    hkp_out_text(out, "}");
}

void hkp_report_json(hkp_out *out, bool gil)
{
    const hkp_python *python = hkp_python_find();
    hkp_out_format(out,
                   "{\"schema\":1,\"hakmem\":\"%s\",\"time\":%lld,\"pid\":%ld,\"parent\":%ld,\"command\":",
                   hak_version(), (long long)time(NULL), (long)hkp_process(), (long)hkp_process_parent());
    hkp_command_json(out);
    hkp_out_text(out, ",\"python\":");
    hkp_out_string(out, python ? python->get_version() : "");
    /* Not %f: the program's locale may have a decimal comma. */
    unsigned long long cpu = hkp_process_cpu();
    hkp_out_format(out, ",\"cpu_seconds\":%llu.%06llu", cpu / 1000000, cpu % 1000000);
    hkp_out_size(out, ",", "peak_resident_bytes", hkp_resident_peak());
    status_json(out, gil);
    stats_json(out);
    labels_json(out);
    const hkp_provider *provider = hkp_provider_current();
    if (provider->report) provider->report(out, gil);
    hkp_out_text(out, "}\n");
}

/* Words with a space between them. */
static void command_text(char *text, size_t size)
{
    size_t n = hkp_command(text, size);
    for (size_t i = 0; i + 1 < n; i++)
        if (!text[i]) text[i] = ' ';
}

void hkp_report_text(hkp_out *out, bool gil)
{
    const hkp_python *python = hkp_python_find();
    char command[512];
    hkp_status status;
    hak_label_info labels[HAK_LABELS_MAX + 1];
    command_text(command, sizeof command);
    hkp_status_get(&status, gil);
    hkp_text t = {.version = hak_version(),
                  .command = command,
                  .python = python ? python->get_version() : "",
                  .why = status.why,
                  .process = (long)hkp_process(),
                  .cpu = hkp_process_cpu(),
                  .stats = {.size = sizeof t.stats},
                  .resident = hkp_resident(),
                  .resident_ours = hkp_resident_ours(),
                  .resident_peak = hkp_resident_peak(),
                  .labels = labels};
    hkp_stats(&t.stats);
    t.label_count = (size_t)hkp_labels(labels);
    for (size_t i = 0; i < t.label_count; i++)
        if (!labels[i].label) labels[i].name = "unlabelled";
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
    if (sites) munmap(sites, t.site_count * sizeof *sites);
}
