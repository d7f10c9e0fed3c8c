/* A report as JSON, "hakmem-report/1", the same in all bindings; docs/internals/report-format.md says what
 * its members mean. Allocates nothing but the pages of hkc_frames, takes no lock, heeds no locale:
 *
 *     hkc_json w;
 *     hkc_json_open_fd(&w, fd);
 *     hkc_report_json_begin(&w, &(hkc_report_process){.runtime = "lua", .version = "5.4.4"});
 *     hkc_report_json_context(&w, NULL, ctx);     // begins a context: name, stats, labels
 *     hkc_profile_json(&w, ctx, name_frame, me);  // its profile, see profile_json.h; left out where there is
 * none hkc_json_end(&w);                           // ends this context; there may be more
 *     hkc_report_json_end(&w);
 *     int error = hkc_json_close(&w);
 */
#ifndef HKC_REPORT_JSON_H
#define HKC_REPORT_JSON_H

#include "common/json.h"
#include "common/parts.h"

#include <hakmem/hakmem.h>
#include <sys/types.h>

typedef struct hkc_report_process {
    const char *runtime,
        *version;           /* what runs: "luajit", "lua", "python", "wamr", "wasmtime", "c"; NULL = "" */
    pid_t pid, parent;      /* of which process; 0 = the calling one and its parent */
    double cpu_seconds;     /* 0 = of the calling process */
    const hkc_parts *parts; /* of its resident memory, whose list is made; NULL = none */
} hkc_report_process;

/* The object begins: schema, version, process, memory; then the array of contexts, open. */
void hkc_report_json_begin(hkc_json *w, const hkc_report_process *process);
/* A context begins: name, stats, labels with blocks, holes; of one with a learner the timeline of its
 * windows, and its decisions. name NULL = that of the context. The object stays open for what else there is:
 * members of the format, and members of the binding's own, which readers pass over.
 */
void hkc_report_json_context(hkc_json *w, const char *name, const hak_ctx *ctx);
/* The same with other numbers than the context's own; NULL = none. */
void hkc_report_json_context_as(hkc_json *w, const char *name, const hak_ctx *ctx, const hak_stats *stats);
/* Its parts, for bindings that know more of a context than it does itself: the members "stats" and "labels"
 * of the object that is open. */
void hkc_report_json_stats(hkc_json *w, const hak_stats *stats);
void hkc_report_json_labels(hkc_json *w, const hak_label_info *labels, size_t count);
/* The member "holes": free memory between live blocks, by size class. */
void hkc_report_json_holes(hkc_json *w, const hak_ctx *ctx);
/* The array of contexts ends, and the object. */
void hkc_report_json_end(hkc_json *w);

/* A point of an array "timeline" of a context, which the caller begins and ends. resident 0 = not known. */
void hkc_report_json_point(hkc_json *w, uint64_t at_ns, size_t live, size_t committed, size_t resident);

#endif
