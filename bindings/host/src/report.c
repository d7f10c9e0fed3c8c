/* Reports of a host's contexts, by the writers that all bindings share. */
#include <hakmem/report.h>

#include "callsite/frame.h"
#include "common/file.h"
#include "common/pipe.h"
#include "common/report.h"
#include "common/report_json.h"

#include <errno.h>

/* ---- Names of frames ----------------------------------------------------------------------------- */

typedef struct naming {
    const hak_report_options *by;
    const hak_ctx *ctx;
    hkc_names native; /* frames that nobody named */
    bool poor;        /* no memory for one */
} naming;

static bool named(const naming *n, uintptr_t frame, hak_report_frame *out)
{
    if (n->by->frame && n->by->frame(n->by->user, n->ctx, frame, out)) return true;
    *out = (hak_report_frame){0};
    return n->by->frames && hak_frames_find(n->by->frames, frame, out);
}

static void note(naming *n, uintptr_t frame)
{
    hak_report_frame out = {0};
    if (!named(n, frame, &out) && !hkc_names_add(&n->native, frame)) n->poor = true;
}

static bool note_stack(void *user, const hak_profile_stack *stack)
{
    for (unsigned i = 0; i < stack->depth; i++)
        note(user, stack->frames[i]);
    if (stack->depth == 0 && stack->site) note(user, stack->site);
    return true;
}

static void name(void *user, uintptr_t frame, hkc_frame *out)
{
    const naming *n = user;
    hak_report_frame known = {0};
    if (!named(n, frame, &known)) {
        hkc_frame_of(&n->native, frame, out);
        return;
    }
    out->function = known.function;
    out->file = known.file;
    out->module = known.module;
    out->line = known.line;
    out->native = known.native;
}

/* ---- The forms ----------------------------------------------------------------------------------- */

/* ENOMEM = some stacks lack frames or names. */
static int context_json(hkc_json *w, const hak_ctx *ctx, const hak_report_options *o)
{
    naming n = {.by = o, .ctx = ctx};
    hak_profile_visit(ctx, note_stack, &n);
    hkc_names_resolve(&n.native);
    hkc_report_json_context(w, NULL, ctx);
    const int error = hkc_profile_json(w, ctx, name, &n);
    hkc_json_end(w);
    const bool poor = n.poor || n.native.poor;
    hkc_names_close(&n.native);
    return error ? error : poor ? ENOMEM : 0;
}

static int write_json(hkc_json *w, hak_ctx *const *contexts, size_t count, const hak_report_options *o)
{
    int poor = 0;
    hkc_parts *parts = hkc_parts_of(0, contexts, count);
    hkc_report_json_begin(w, &(hkc_report_process){.runtime = o->runtime ? o->runtime : "c",
                                                   .version = o->version,
                                                   .parts = parts});
    hkc_parts_close(parts);
    for (size_t i = 0; i < count; i++) {
        const int error = context_json(w, contexts[i], o);
        if (!poor) poor = error;
    }
    hkc_report_json_end(w);
    const int error = hkc_json_close(w);
    return error ? error : poor;
}

typedef struct lines {
    hak_report_put_fn *put;
    void *to;
    int error;
} lines;

static void put_line(void *to, const char *text, size_t n)
{
    lines *l = to;
    if (!l->error) l->error = l->put(l->to, text, n);
}

/* A table that says of nothing what it is for is left out. */
static bool is_labelled(const hak_label_info *labels, int count)
{
    for (int i = 0; i < count; i++)
        if (labels[i].label && labels[i].live_blocks) return true;
    return false;
}

static void context_text(lines *l, const hak_ctx *ctx)
{
    hak_label_info labels[HAK_LABELS_MAX + 1];
    hkc_report report = {.name = hak_ctx_name(ctx), .note = ""};
    hkc_report_take(&report, ctx, labels);
    if (!is_labelled(labels, report.label_count)) report.label_count = 0;
    hkc_report_put(&report, put_line, l);
}

static int write_text(lines *l, hak_ctx *const *contexts, size_t count)
{
    hkc_parts *parts = hkc_parts_of(0, contexts, count);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) put_line(l, "\n", 1);
        context_text(l, contexts[i]);
    }
    hkc_report_parts(parts, put_line, l);
    hkc_parts_close(parts);
    return l->error;
}

/* *partly: the error is that the report lacks something; it is whole otherwise. */
static int write_to(hak_report_put_fn *put, void *to, hak_ctx *const *contexts, size_t count,
                    const hak_report_options *o, bool *partly)
{
    hkc_json w;
    if (o->form == HAK_REPORT_TEXT) return write_text(&(lines){put, to, 0}, contexts, count);
    hkc_json_open(&w, put, to);
    const int error = write_json(&w, contexts, count, o);
    *partly = error && !w.error;
    return error;
}

/* ---- Where it goes ------------------------------------------------------------------------------- */

static int check(hak_report_options *o, const hak_report_options *given, hak_ctx *const *contexts,
                 size_t count)
{
    const hak_report_options defaults = HAK_REPORT_OPTIONS_INIT;
    if (!hak_sized_copy(o, sizeof *o, given ? given : &defaults)) return EINVAL;
    if (o->form != HAK_REPORT_JSON && o->form != HAK_REPORT_TEXT) return EINVAL;
    if (!contexts || count == 0) return EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!contexts[i]) return EINVAL;
    return 0;
}

int hak_report_put(hak_report_put_fn *put, void *to, hak_ctx *const *contexts, size_t count,
                   const hak_report_options *options)
{
    hak_report_options o;
    bool partly = false;
    const int error = put ? check(&o, options, contexts, count) : EINVAL;
    return error ? error : write_to(put, to, contexts, count, &o, &partly);
}

static int put_stream(void *to, const char *bytes, size_t n)
{
    errno = 0;
    if (fwrite(bytes, 1, n, to) == n) return 0;
    return errno ? errno : EIO;
}

int hak_report_stream(FILE *out, hak_ctx *const *contexts, size_t count, const hak_report_options *options)
{
    hak_report_options o;
    bool partly = false;
    int error = out ? check(&o, options, contexts, count) : EINVAL;
    if (error) return error;
    error = write_to(put_stream, out, contexts, count, &o, &partly);
    errno = 0;
    if ((!error || partly) && fflush(out) != 0) error = errno ? errno : EIO;
    return error;
}

static int put_file(void *to, const char *bytes, size_t n)
{
    const hkc_file *file = to;
    return hkc_pipe_write_all(file->fd, bytes, n);
}

int hak_report_path(const char *path, hak_ctx *const *contexts, size_t count,
                    const hak_report_options *options)
{
    hak_report_options o;
    hkc_file file;
    bool partly = false;
    int error = path ? check(&o, options, contexts, count) : EINVAL;
    if (!error) error = hkc_file_open(&file, path, 0666);
    if (error) return error;
    error = write_to(put_file, &file, contexts, count, &o, &partly);
    const int closed = hkc_file_close(&file, partly ? 0 : error);
    return closed ? closed : error;
}
