/* Writes a report of contexts of its own to standard output: one with an exact profile of stacks of numbers.
 */
#include "common/profile_json.h"
#include "common/report_json.h"

#include <hakmem/learn.h>

#include <stdio.h>
#include <unistd.h>

/* Stacks of two frames, the outer one the same for all. */
static size_t frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *out, size_t room)
{
    (void)user, (void)ctx;
    if (room < 2) return 0;
    out[0] = site;
    out[1] = 7;
    return 2;
}

static void name(void *user, uintptr_t frame, hkc_frame *out)
{
    (void)user;
    if (frame == 9) return; /* not known */
    out->function = frame == 7 ? "main" : "allocate";
    out->file = "write.c";
    out->line = (int)frame;
    out->module = "report_write";
    if (frame == 7) return;
    out->path = "/bin/report_write";
    out->build_id = "00ff";
    out->address = frame;
}

/* As if the process had grown by a MiB each time that somebody looks. */
static size_t resident(void)
{
    static size_t looks;
    return ++looks << 20;
}

/* A context whose heap rose and fell in so many windows of a clock moved by hand. */
static hak_ctx *learned(hak_learner *learner)
{
    hak_ctx *ctx = hak_ctx_new(NULL, &(hak_options){.size = sizeof(hak_options), .name = "learned"});
    if (!ctx || !learner || hak_learner_add(learner, ctx) != 0) return NULL;
    for (uint64_t second = 1; second <= 20; second++) {
        void *blocks[24];
        hak_ctx_tick(ctx, second * 1000000000);
        for (int i = 0; i < 24; i++)
            if (!(blocks[i] = hak_alloc(ctx, second << 20))) return NULL;
        for (int i = 0; i < 24; i++)
            hak_free(ctx, blocks[i]);
    }
    return ctx;
}

int main(void)
{
    const char *const names[] = {"string", "table"};
    hak_ctx *ctx = hak_ctx_new(NULL, &(hak_options){.size = sizeof(hak_options),
                                                    .name = "first \"one\"\xff",
                                                    .labels = names,
                                                    .label_count = 2});
    hak_ctx *empty = hak_ctx_new(NULL, NULL);
    hak_learner_options options = HAK_LEARNER_OPTIONS_INIT;
    options.resident = resident;
    hak_learner *learner = hak_learner_new(NULL, &options);
    hak_ctx *wave = learned(learner);
    if (!ctx || !empty || !wave) return 1;
    const hak_profile_options profile = {.size = sizeof profile,
                                         .mode = HAK_PROFILE_EXACT,
                                         .table_bytes = 1 << 20,
                                         .frames = frames,
                                         .resident = resident};
    if (hak_profile_start(ctx, &profile) != 0) return 1;
    for (int i = 0; i < 100; i++)
        if (!hak_alloc_cs(ctx, 100, (hak_label)(i % 3), (hak_site)(i % 2 ? 8 : 9))) return 1;
    for (int i = 0; i < 50; i++)
        hak_free(ctx, hak_alloc_cs(ctx, 1000, 1, 8));
    /* Windows of the same length, in each of which one stack grows and another one does not. */
    for (int window = 0; window < 8; window++) {
        char mark[16];
        snprintf(mark, sizeof mark, "window %d", window);
        if (hak_profile_mark(ctx, mark) < 0) return 1;
        for (int i = 0; i < 20; i++)
            if (!hak_alloc_cs(ctx, 200, 2, 11)) return 1;
    }
    hkc_json w;
    hkc_json_open_fd(&w, STDOUT_FILENO);
    hkc_parts *parts = hkc_parts_of(0, &ctx, 1);
    hkc_report_json_begin(&w, &(hkc_report_process){.runtime = "c", .version = "11", .parts = parts});
    hkc_parts_close(parts);
    hkc_report_json_context(&w, NULL, ctx);
    if (hkc_profile_json(&w, ctx, name, NULL) != 0) return 1;
    hkc_json_array(&w, "timeline");
    hkc_report_json_point(&w, 1, 2, 3, 0);
    hkc_report_json_point(&w, 2, 2, 3, 4);
    hkc_json_end(&w);
    hkc_json_end(&w);
    hkc_report_json_context(&w, "second", empty);
    if (hkc_profile_json(&w, empty, name, NULL) != 0) return 1;
    hkc_json_text(&w, "own", "a member of the writer's");
    hkc_json_end(&w);
    hkc_report_json_context(&w, NULL, wave);
    hkc_json_end(&w);
    hkc_report_json_end(&w);
    int error = hkc_json_close(&w);
    hak_ctx_destroy(wave);
    hak_learner_delete(learner);
    hak_ctx_destroy(empty);
    hak_ctx_destroy(ctx);
    return error != 0;
}
