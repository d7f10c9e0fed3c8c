/* Writes a report of contexts of its own to standard output. */
#include "common/report_json.h"

#include <stdio.h>
#include <unistd.h>

int main(void)
{
    const char *const names[] = {"string", "table"};
    hak_ctx *ctx = hak_ctx_new(NULL, &(hak_options){.size = sizeof(hak_options),
                                                    .name = "first \"one\"\xff",
                                                    .labels = names,
                                                    .label_count = 2});
    hak_ctx *empty = hak_ctx_new(NULL, NULL);
    if (!ctx || !empty) return 1;
    for (int i = 0; i < 100; i++)
        if (!hak_alloc_cs(ctx, 100, (hak_label)(i % 3), 0)) return 1;
    hkc_json w;
    hkc_json_open_fd(&w, STDOUT_FILENO);
    hkc_report_json_begin(&w, &(hkc_report_process){.runtime = "c", .version = "11"});
    hkc_report_json_context(&w, NULL, ctx);
    hkc_json_array(&w, "timeline");
    hkc_report_json_point(&w, 1, 2, 3, 0);
    hkc_report_json_point(&w, 2, 2, 3, 4);
    hkc_json_end(&w);
    hkc_json_end(&w);
    hkc_report_json_context(&w, "second", empty);
    hkc_json_text(&w, "own", "a member of the writer's");
    hkc_json_end(&w);
    hkc_report_json_end(&w);
    int error = hkc_json_close(&w);
    hak_ctx_destroy(empty);
    hak_ctx_destroy(ctx);
    return error != 0;
}
