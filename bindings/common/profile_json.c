#include "common/profile_json.h"

#include "common/history_json.h"
#include "common/pages.h"

#include <errno.h>
#include <string.h>

/* ---- Numbers of frames ---------------------------------------------------------------------------- */

static size_t keys_size(size_t room)
{
    return room * sizeof(uintptr_t);
}

/* Half of the slots stay free. */
static size_t slots_size(size_t room)
{
    return 2 * room * sizeof(uint32_t);
}

static uint32_t *slot_of(const hkc_frames *f, uintptr_t key)
{
    uint64_t hash = (uint64_t)key * 0x9E3779B97F4A7C15u;
    for (size_t i = (size_t)(hash >> 32) & (2 * f->room - 1);; i = (i + 1) & (2 * f->room - 1))
        if (!f->slots[i] || f->keys[f->slots[i] - 1] == key) return &f->slots[i];
}

static bool grow(hkc_frames *f)
{
    hkc_frames larger = {.room = f->room ? 2 * f->room : 4096, .count = f->count, .lost = f->lost};
    if (larger.room > UINT32_MAX / 2) return false;
    larger.keys = hkc_pages(keys_size(larger.room));
    larger.slots = hkc_pages(slots_size(larger.room));
    if (!larger.keys || !larger.slots) {
        hkc_frames_close(&larger);
        return false;
    }
    for (size_t i = 0; i < f->count; i++) {
        larger.keys[i] = f->keys[i];
        *slot_of(&larger, f->keys[i]) = (uint32_t)i + 1;
    }
    hkc_frames_close(f);
    *f = larger;
    return true;
}

void hkc_frames_number_json(hkc_json *w, hkc_frames *f, uintptr_t key)
{
    if (f->count == f->room && !grow(f)) {
        f->lost = true;
        return;
    }
    uint32_t *slot = slot_of(f, key);
    if (!*slot) {
        f->keys[f->count] = key;
        *slot = (uint32_t)++f->count;
    }
    hkc_json_size(w, NULL, *slot - 1);
}

void hkc_frames_open(hkc_frames *f)
{
    *f = (hkc_frames){0};
}

void hkc_frames_close(hkc_frames *f)
{
    hkc_pages_give(f->keys, keys_size(f->room));
    hkc_pages_give(f->slots, slots_size(f->room));
    *f = (hkc_frames){0};
}

/* ---- Stacks and frames ---------------------------------------------------------------------------- */

static const char *const kinds[] = {"unknown", "small-frequent", "medium", "large-infrequent"};

static void lifetime(hkc_json *w, const double *count, size_t n)
{
    while (n > 0 && !(count[n - 1] > 0))
        n--;
    if (n == 0) return;
    hkc_json_array(w, "lifetime");
    for (size_t i = 0; i < n; i++)
        hkc_json_number(w, NULL, count[i]);
    hkc_json_end(w);
}

/* label: its name; "" and NULL = "unlabelled". */
static void stack_json(hkc_json *w, hkc_frames *f, const hak_profile_stack *s, const char *label,
                       const char *thread)
{
    hkc_json_object(w, NULL);
    hkc_json_size(w, "id", s->id);
    hkc_json_text(w, "label", label && *label ? label : "unlabelled");
    if (thread) hkc_json_text(w, "thread", thread);
    hkc_json_array(w, "frames");
    for (unsigned i = 0; i < s->depth; i++)
        hkc_frames_number_json(w, f, s->frames[i]);
    if (s->depth == 0 && s->site) hkc_frames_number_json(w, f, s->site);
    hkc_json_end(w);
    hkc_json_size(w, "samples", s->samples);
    hkc_json_size(w, "live_samples", s->live_samples);
    hkc_json_number(w, "alloc_blocks", s->alloc_blocks);
    hkc_json_number(w, "alloc_bytes", s->alloc_bytes);
    hkc_json_number(w, "alloc_bytes_error", s->alloc_bytes_error);
    hkc_json_number(w, "live_blocks", s->live_blocks);
    hkc_json_number(w, "live_bytes", s->live_bytes);
    hkc_json_number(w, "live_bytes_error", s->live_bytes_error);
    hkc_json_number(w, "peak_blocks", s->peak_blocks);
    hkc_json_number(w, "peak_bytes", s->peak_bytes);
    hkc_json_number(w, "peak_bytes_error", s->peak_bytes_error);
    hkc_json_number(w, "mean_bytes", s->mean_bytes);
    hkc_json_size(w, "largest_bytes", s->largest_bytes);
    hkc_json_number(w, "age_ns", s->age_ns);
    lifetime(w, s->lifetime, sizeof s->lifetime / sizeof s->lifetime[0]);
    hkc_json_number(w, "grown_blocks", s->grown_blocks);
    hkc_json_number(w, "grown_bytes", s->grown_bytes);
    hkc_json_text(w, "class", (unsigned)s->kind < 4 ? kinds[s->kind] : kinds[0]);
    hkc_json_bool(w, "long_lived", s->long_lived);
    if (s->pinned_bytes > 0) hkc_json_number(w, "pinned_bytes", s->pinned_bytes);
    hkc_json_end(w);
}

enum { IMAGES = 256 };

/* Its place in the array of images; -1 = there is no room, or it is not known. */
static int image_of(const char *paths[IMAGES], const char *ids[IMAGES], const hkc_frame *frame)
{
    int i = 0;
    if (!frame->path || !frame->build_id) return -1;
    while (i < IMAGES && paths[i] && (paths[i] != frame->path || ids[i] != frame->build_id))
        i++;
    if (i == IMAGES) return -1;
    paths[i] = frame->path;
    ids[i] = frame->build_id;
    return i;
}

void hkc_profile_frames_json(hkc_json *w, const hkc_frames *f, hkc_frame_fn *name, void *user)
{
    const char *paths[IMAGES] = {NULL}, *ids[IMAGES];
    hkc_json_array(w, "frames");
    for (size_t i = 0; i < f->count; i++) {
        hkc_frame frame = {0};
        if (name) name(user, f->keys[i], &frame);
        else frame.native = true;
        hkc_json_object(w, NULL);
        if (frame.function) {
            hkc_json_text(w, "function", frame.function);
        } else {
            char address[2 + 2 * sizeof(uintptr_t)];
            size_t at = sizeof address;
            for (uintptr_t rest = f->keys[i]; rest || at == sizeof address; rest >>= 4)
                address[--at] = "0123456789abcdef"[rest & 15];
            address[--at] = 'x';
            address[--at] = '0';
            hkc_json_text_n(w, "function", address + at, sizeof address - at);
        }
        if (frame.file) hkc_json_text(w, "file", frame.file);
        if (frame.line > 0) hkc_json_integer(w, "line", frame.line);
        if (frame.module) hkc_json_text(w, "module", frame.module);
        hkc_json_text(w, "kind", frame.native ? "native" : "interpreter");
        const int image = image_of(paths, ids, &frame);
        if (image >= 0) {
            hkc_json_integer(w, "image", image);
            hkc_json_size(w, "address", frame.address);
        }
        hkc_json_end(w);
    }
    hkc_json_end(w);
    if (!paths[0]) return;
    hkc_json_array(w, "images");
    for (int i = 0; i < IMAGES && paths[i]; i++) {
        hkc_json_object(w, NULL);
        hkc_json_text(w, "path", paths[i]);
        hkc_json_text(w, "build_id", ids[i]);
        hkc_json_end(w);
    }
    hkc_json_end(w);
}

/* ---- The profile of a context --------------------------------------------------------------------- */

typedef struct visit {
    hkc_json *w;
    const hkc_profile_writer *by;
    hkc_frames frames;
    hkc_history history;
    hak_label_info labels[HAK_LABELS_MAX + 1];
    int label_count;
} visit;

/* From before the visit, in which the context may not be called. */
static const char *label_name(const visit *v, hak_label label)
{
    for (int i = 0; i < v->label_count && i <= HAK_LABELS_MAX; i++)
        if (v->labels[i].label == label) return v->labels[i].name;
    return NULL;
}

static bool each_stack(void *user, const hak_profile_stack *stack)
{
    visit *v = user;
    hak_profile_stack shown = *stack;
    hkc_history_note(&v->history, stack);
    const char *label = label_name(v, stack->label);
    const char *thread = v->by->stack ? v->by->stack(v->by->user, &shown, &label) : NULL;
    stack_json(v->w, &v->frames, &shown, label, thread);
    return !v->w->error;
}

static const char *const trends[] = {"growth", "leak", "filling"};

static bool each_growth(void *user, const hak_profile_growth *g)
{
    hkc_json *w = user;
    hkc_json_object(w, NULL);
    hkc_json_text(w, "kind", (unsigned)g->trend < 3 ? trends[g->trend] : trends[0]);
    hkc_json_size(w, "stack", g->stack);
    hkc_json_text(w, "evidence", g->evidence);
    hkc_json_number(w, "bytes_a_window", g->bytes_a_window);
    hkc_json_number(w, "low", g->low);
    hkc_json_number(w, "high", g->high);
    hkc_json_number(w, "bytes_an_hour", g->bytes_an_hour);
    hkc_json_number(w, "low_an_hour", g->low_an_hour);
    hkc_json_number(w, "high_an_hour", g->high_an_hour);
    hkc_json_number(w, "freed_share", g->freed_share);
    hkc_json_number(w, "kept_share", g->kept_share);
    hkc_json_size(w, "since_ns", g->since_ns);
    hkc_json_size(w, "windows", g->windows);
    hkc_json_end(w);
    return !w->error;
}

static void visit_open(visit *v, hkc_json *w, const hak_ctx *ctx, const hkc_profile_writer *by)
{
    v->w = w;
    v->by = by;
    v->label_count = hak_labels_stats(ctx, v->labels, HAK_LABELS_MAX + 1);
    hkc_frames_open(&v->frames);
    v->history = (hkc_history){0};
}

/* 0, or ENOMEM: some stacks lack frames. */
static int visit_close(visit *v)
{
    hkc_profile_frames_json(v->w, &v->frames, v->by->name, v->by->user);
    const int error = v->frames.lost ? ENOMEM : 0;
    hkc_frames_close(&v->frames);
    return error;
}

static bool no_stack(void *user, const hak_profile_stack *stack)
{
    (void)user, (void)stack;
    return false;
}

int hkc_profile_diff_json(hkc_json *w, const hak_ctx *ctx, unsigned from, unsigned to,
                          const hkc_profile_writer *by)
{
    visit v;
    if (hak_profile_diff(ctx, from, to, no_stack, NULL) < 0) return EINVAL;
    visit_open(&v, w, ctx, by);
    hkc_json_array(w, "stacks");
    hak_profile_diff(ctx, from, to, each_stack, &v);
    hkc_json_end(w);
    return visit_close(&v);
}

int hkc_profile_json(hkc_json *w, const hak_ctx *ctx, hkc_frame_fn *name, void *user)
{
    const hkc_profile_writer by = {.name = name, .user = user};
    return hkc_profile_json_by(w, ctx, &by);
}

int hkc_profile_json_by(hkc_json *w, const hak_ctx *ctx, const hkc_profile_writer *by)
{
    hak_profile_info info = {.size = sizeof info};
    if (hak_profile_stats(ctx, &info) != 0) return 0;
    hkc_json_object(w, "profile");
    static const char *const modes[] = {"sampled", "exact", "counted"};
    hkc_json_text(w, "mode", modes[info.mode]);
    hkc_json_bool(w, "running", info.running);
    hkc_json_size(w, "mean_bytes", info.mean);
    hkc_json_size(w, "samples", info.samples);
    hkc_json_size(w, "dropped_stacks", info.dropped_stacks);
    hkc_json_size(w, "dropped_samples", info.dropped_samples);
    hkc_json_number(w, "dropped_bytes", info.dropped_bytes);
    hkc_json_size(w, "table_bytes", info.table_bytes);
    hkc_json_size(w, "started_ns", info.started_ns);
    if (info.window_ns) hkc_json_size(w, "window_ns", info.window_ns);
    hkc_json_end(w);

    visit v;
    visit_open(&v, w, ctx, by);
    hkc_history_open(&v.history, ctx, by->touched_bytes);
    hkc_json_array(w, "stacks");
    hak_profile_visit(ctx, each_stack, &v);
    hkc_json_end(w);
    if (by->more) by->more(by->user, w, &v.frames);
    const int error = visit_close(&v);
    const int history_error = hkc_history_json(&v.history, w, ctx);
    hkc_json_array(w, "verdicts");
    hak_profile_grown(ctx, each_growth, w);
    hkc_json_end(w);
    return error ? error : history_error;
}
