#include "hook/report.h"

#include "base/process.h"
#include "heap/heap.h"
#include "heap/labels.h"
#include "heap/resident.h"
#include "hook/install.h"
#include "hook/wrap.h"

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
    struct rusage usage;
    hkp_process_usage(&usage);
    hkp_out_format(out,
                   "{\"schema\":1,\"hakmem\":\"%s\",\"time\":%lld,\"pid\":%ld,\"parent\":%ld,\"command\":",
                   hak_version(), (long long)time(NULL), (long)hkp_process(), (long)hkp_process_parent());
    hkp_command_json(out);
    hkp_out_text(out, ",\"python\":");
    hkp_out_string(out, python ? python->get_version() : "");
    /* Not %f: the program's locale may have a decimal comma. */
    long long microseconds = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
                             usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    hkp_out_format(out, ",\"cpu_seconds\":%lld.%06lld,\"peak_resident_bytes\":%lld", microseconds / 1000000,
                   microseconds % 1000000, (long long)usage.ru_maxrss * 1024);
    status_json(out, gil);
    stats_json(out);
    labels_json(out);
    const hkp_provider *provider = hkp_provider_current();
    if (provider->report) provider->report(out, gil);
    hkp_out_text(out, "}\n");
}
