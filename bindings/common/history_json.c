#include "common/history_json.h"

#include "common/pages.h"

#include <errno.h>
#include <string.h>

enum { MARKS_MOST = 100, SHARE = 10000, ATTEMPTS = 3 };

/* ---- Windows -------------------------------------------------------------------------------------- */

/* One may begin meanwhile: what there was no room for is left out. */
static size_t read_marks(const hak_ctx *ctx, hak_profile_window *out, size_t room)
{
    for (size_t i = 0; i < room; i++)
        out[i].size = sizeof *out;
    const int there = hak_profile_marks(ctx, out, room);
    return there < 0 ? 0 : (size_t)there < room ? (size_t)there : room;
}

/* They are begun and joined by other threads. */
static bool is_still_so(const hkc_history *h, const hak_ctx *ctx)
{
    hak_profile_window now[MARKS_MOST + 1];
    bool same = read_marks(ctx, now, h->count + 1) == h->count;
    for (size_t i = 0; i < h->count && same; i++)
        same = now[i].at_ns == h->marks[i].at_ns;
    return same;
}

static void marks_json(const hkc_history *h, hkc_json *w)
{
    hkc_json_array(w, "marks");
    for (size_t i = 0; i < h->count; i++) {
        const hak_profile_window *m = &h->marks[i];
        hkc_json_object(w, NULL);
        hkc_json_text(w, "name", m->name);
        hkc_json_size(w, "at_ns", m->at_ns);
        hkc_json_size(w, "live_bytes", h->touched ? m->resident_bytes : m->live_bytes);
        hkc_json_size(w, "committed_bytes", h->touched ? m->resident_bytes : m->committed_bytes);
        if (m->resident_bytes && !h->touched) hkc_json_size(w, "resident_bytes", m->resident_bytes);
        hkc_json_end(w);
    }
    hkc_json_end(w);
}

void hkc_history_open(hkc_history *h, const hak_ctx *ctx, size_t touched_bytes)
{
    hak_profile_info info = {.size = sizeof info};
    *h = (hkc_history){.touched = touched_bytes > 0};
    const int there = hak_profile_marks(ctx, NULL, 0);
    if (there <= 0 || hak_profile_stats(ctx, &info) != 0) return;
    h->marks_room = (size_t)there;
    h->marks = hkc_pages(h->marks_room * sizeof *h->marks);
    h->count = h->marks ? read_marks(ctx, h->marks, h->marks_room) : 0;
    if (h->count == 0 || h->count > MARKS_MOST) return;
    h->row_bytes = (info.stacks + 1) * sizeof *h->row_of;
    h->row_of = hkc_pages(h->row_bytes);
    h->ids = hkc_pages(h->row_bytes);
    h->stacks = h->row_of && h->ids ? info.stacks : 0;
    h->least = (double)(h->touched ? touched_bytes : hak_ctx_live_bytes(ctx)) / (double)SHARE;
}

void hkc_history_note(hkc_history *h, const hak_profile_stack *s)
{
    const bool matters = s->live_bytes > h->least || s->peak_bytes > h->least;
    if (s->id == 0 || s->id > h->stacks || !matters) return;
    h->ids[h->rows++] = s->id;
    h->row_of[s->id] = (uint32_t)h->rows;
}

/* ---- Stacks --------------------------------------------------------------------------------------- */

typedef struct column {
    hkc_history *h;
    size_t at;
} column;

/* The place of a stack in a window; NULL = it has none. */
static double *place(const hkc_history *h, double *matrix, uint32_t id, size_t window)
{
    const uint32_t row = id <= h->stacks ? h->row_of[id] : 0;
    return row != 0 && window <= h->count ? &matrix[(row - 1) * (h->count + 1) + window] : NULL;
}

static bool add_change(void *user, const hak_profile_stack *s)
{
    const column *c = user;
    double *live = place(c->h, c->h->live, s->id, c->at);
    if (!live) return true;
    *live = s->live_bytes;
    *place(c->h, c->h->made, s->id, c->at) = s->alloc_bytes;
    return true;
}

static bool add_kept(void *user, uint32_t stack, unsigned window, double bytes)
{
    hkc_history *h = user;
    double *kept = place(h, h->kept, stack, window);
    if (kept) *kept += bytes;
    return true;
}

static size_t matrix_bytes(const hkc_history *h)
{
    return h->rows * (h->count + 1) * sizeof(double);
}

/* false = windows changed meanwhile. */
static bool collect(hkc_history *h, const hak_ctx *ctx)
{
    memset(h->live, 0, matrix_bytes(h));
    memset(h->made, 0, matrix_bytes(h));
    memset(h->kept, 0, matrix_bytes(h));
    for (size_t i = 0; i <= h->count; i++) {
        column c = {h, i};
        hak_profile_diff(ctx, (unsigned)i, (unsigned)i + 1, add_change, &c);
    }
    hak_profile_kept(ctx, add_kept, h);
    return is_still_so(h, ctx);
}

static void amounts(hkc_json *w, const char *name, const double *from, size_t n)
{
    hkc_json_array(w, name);
    for (size_t i = 0; i < n; i++)
        hkc_json_size(w, NULL, from[i] > 0 ? (size_t)(from[i] + 0.5) : 0);
    hkc_json_end(w);
}

static void stack_json(hkc_history *h, hkc_json *w, size_t row, bool counted)
{
    const size_t columns = h->count + 1;
    double *live = &h->live[row * columns];
    for (size_t i = 1; i < columns; i++)
        live[i] += live[i - 1];
    hkc_json_object(w, NULL);
    hkc_json_size(w, "stack", h->ids[row]);
    amounts(w, "live", live, h->count);
    amounts(w, "allocated", &h->made[row * columns], columns);
    if (!counted) amounts(w, "kept", &h->kept[row * columns], columns);
    hkc_json_end(w);
}

static int histories_json(hkc_history *h, hkc_json *w, const hak_ctx *ctx)
{
    hak_profile_info info = {.size = sizeof info};
    const size_t bytes = matrix_bytes(h);
    h->live = hkc_pages(bytes);
    h->made = hkc_pages(bytes);
    h->kept = hkc_pages(bytes);
    const bool room = h->live && h->made && h->kept && hak_profile_stats(ctx, &info) == 0;
    bool whole = false;
    for (int i = 0; room && !whole && i < ATTEMPTS; i++)
        whole = collect(h, ctx);
    if (whole) {
        hkc_json_array(w, "histories");
        for (size_t row = 0; row < h->rows; row++)
            stack_json(h, w, row, info.mode == HAK_PROFILE_COUNTED);
        hkc_json_end(w);
    }
    hkc_pages_give(h->live, bytes);
    hkc_pages_give(h->made, bytes);
    hkc_pages_give(h->kept, bytes);
    return room ? 0 : ENOMEM;
}

int hkc_history_json(hkc_history *h, hkc_json *w, const hak_ctx *ctx)
{
    const bool missing = !h->marks && hak_profile_marks(ctx, NULL, 0) > 0;
    int error = missing ? ENOMEM : 0;
    if (h->count > 0) marks_json(h, w);
    if (h->rows > 0) error = histories_json(h, w, ctx);
    hkc_pages_give(h->row_of, h->row_bytes);
    hkc_pages_give(h->ids, h->row_bytes);
    hkc_pages_give(h->marks, h->marks_room * sizeof *h->marks);
    return error;
}
