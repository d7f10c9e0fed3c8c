#include "api/trace.h"

#include "base/text.h"
#include "heap/asked.h"
#include "heap/label.h"
#include "heap/metadata.h"
#include "shared/thread_heap.h"

enum { CALLS = 1024 };

/* A call by its number, which is 0 while it is written. A reader that finds the same number before and after
 * the rest has read all of one call: the rest is stored behind the 0 and loaded before the second look. */
typedef struct trace_slot {
    _Atomic uint64_t number;
    _Atomic uint32_t what; /* kind << 16 | label */
    _Atomic uintptr_t p, site;
    atomic_size_t n;
    _Atomic uint64_t thread;
} trace_slot;

struct hk_trace {
    _Atomic uint64_t calls;
    size_t mask;
    hak_frames_fn *frames;
    void *user;
    trace_slot slots[];
};
_Static_assert(sizeof(struct hk_trace) + HK_TRACE_MOST * sizeof(trace_slot) + 2 * HK_BESIDE <= HK_CHUNK,
               "the ring is units of one chunk");

static struct hk_trace *trace_of(const hak_ctx *ctx)
{
    return hk_whole(ctx)->watch ? hk_whole(ctx)->watch->trace : NULL;
}

bool hk_trace_begin(hak_ctx *ctx, size_t calls)
{
    size_t most = calls ? calls : CALLS, n = HK_TRACE_LEAST;
    while (n < most)
        n *= 2;
    bool zero;
    size_t bytes = sizeof(struct hk_trace) + n * sizeof(trace_slot);
    hk_slab *s = hk_meta_units(ctx, bytes, &zero);
    if (!s) return false;
    struct hk_trace *t = ctx->watch->trace = hk_meta_start(ctx, s);
    if (!zero) memset(t, 0, bytes);
    t->mask = n - 1;
    return true;
}

static void keep_call(struct hk_trace *t, const hak_trace_call *c)
{
    uint64_t number = atomic_load_explicit(&t->calls, memory_order_relaxed) + 1;
    trace_slot *s = &t->slots[number & t->mask];
    atomic_store_explicit(&s->number, 0, memory_order_relaxed);
    atomic_store_explicit(&s->what, (uint32_t)c->kind << 16 | c->label, memory_order_release);
    atomic_store_explicit(&s->p, (uintptr_t)c->p, memory_order_release);
    atomic_store_explicit(&s->n, c->n, memory_order_release);
    atomic_store_explicit(&s->site, c->site, memory_order_release);
    atomic_store_explicit(&s->thread, c->thread, memory_order_release);
    atomic_store_explicit(&s->number, number, memory_order_release);
    atomic_store_explicit(&t->calls, number, memory_order_release);
}

/* false = it is not kept any more, or not yet. */
static bool read_call(struct hk_trace *t, uint64_t number, hak_trace_call *c)
{
    trace_slot *s = &t->slots[number & t->mask];
    if (atomic_load_explicit(&s->number, memory_order_acquire) != number) return false;
    uint32_t what = atomic_load_explicit(&s->what, memory_order_acquire);
    c->number = number;
    c->kind = (hak_trace_kind)(what >> 16);
    c->label = (hak_label)what;
    c->p = (const void *)atomic_load_explicit(&s->p, memory_order_acquire);
    c->n = atomic_load_explicit(&s->n, memory_order_acquire);
    c->site = atomic_load_explicit(&s->site, memory_order_acquire);
    c->thread = atomic_load_explicit(&s->thread, memory_order_acquire);
    return atomic_load_explicit(&s->number, memory_order_relaxed) == number;
}

void hk_trace_note(const hak_ctx *ctx, hak_trace_kind kind, const void *p, size_t n, hak_label label,
                   hak_site site)
{
    hak_ctx *whole = hk_whole(ctx);
    struct hk_trace *t = trace_of(ctx);
    if (!t) return;
    const hak_os *os = &ctx->space->os;
    hak_trace_call c = {.kind = kind, .label = label, .p = p, .n = n, .site = site};
    c.thread = os->thread_id ? os->thread_id(os->user) : 0;
    if (!site && t->frames && !t->frames(t->user, whole, 0, &c.site, 1)) c.site = 0;
    hk_whole_lock(whole);
    keep_call(t, &c);
    hk_whole_unlock(whole);
}

void hk_trace_freed(const hak_ctx *ctx, const void *p, hak_site site)
{
    if (!trace_of(ctx)) return;
    size_t n = hk_asked(ctx, p);
    hk_trace_note(ctx, HAK_TRACE_FREE, p, n >= HK_HELD ? 0 : n, 0, site);
}

/* ---- For the host --------------------------------------------------------------------------------- */

static bool concerns(const hak_trace_call *c, const void *p)
{
    return !p || c->p == p || (uintptr_t)p - (uintptr_t)c->p < c->n;
}

int hak_trace_visit(const hak_ctx *ctx, const void *p, hak_trace_fn *fn, void *user)
{
    struct hk_trace *t = trace_of(ctx);
    if (!t) return -1;
    uint64_t last = atomic_load_explicit(&t->calls, memory_order_acquire);
    for (uint64_t i = last > t->mask ? last - t->mask : 1; i <= last; i++) {
        hak_trace_call c;
        if (read_call(t, i, &c) && concerns(&c, p) && !fn(user, &c)) return 1;
    }
    return 0;
}

void hak_trace_frames(hak_ctx *ctx, hak_frames_fn *fn, void *user)
{
    struct hk_trace *t = trace_of(ctx);
    if (!t) return;
    t->user = user;
    t->frames = fn;
}

/* No line is longer: a label's name has at most 63 bytes. */
enum { LINE_MOST = 256 };

typedef struct lines {
    const hak_ctx *ctx;
    hk_text text;
    size_t left_out, bytes; /* of the oldest lines, and of all; measured first */
    bool measured;
} lines;

static size_t line(const hak_ctx *ctx, const hak_trace_call *c, char *out)
{
    hk_text t = {out, 0, LINE_MOST};
    hk_text_put(&t, "  call ");
    hk_text_number(&t, c->number, 10);
    hk_text_put(&t, c->kind == HAK_TRACE_FREE    ? ": freed "
                    : c->kind == HAK_TRACE_ALLOC ? ": allocated "
                                                 : ": reallocated to ");
    hk_text_number(&t, c->n, 10);
    hk_text_put(&t, " bytes at ");
    hk_text_number(&t, (uintptr_t)c->p, 16);
    if (c->label) {
        hk_text_put(&t, ", label ");
        hk_text_name(&t, hk_label_name(ctx, hk_label_known(ctx, c->label)));
    }
    if (c->site) {
        hk_text_put(&t, ", site ");
        hk_text_number(&t, c->site, 16);
    }
    if (c->thread) {
        hk_text_put(&t, ", thread ");
        hk_text_number(&t, c->thread, 10);
    }
    hk_text_put(&t, "\n");
    return hk_text_end(&t);
}

static bool add_line(void *user, const hak_trace_call *c)
{
    lines *l = user;
    char one[LINE_MOST];
    size_t n = line(l->ctx, c, one);
    if (!l->measured) l->bytes += n;
    else if (l->left_out > 0) l->left_out -= hk_min(n, l->left_out);
    else if (n < l->text.room - l->text.at) hk_text_put(&l->text, one);
    return true;
}

size_t hak_trace_text(const hak_ctx *ctx, const void *p, char *out, size_t room)
{
    lines l = {.ctx = ctx, .text = {out, 0, room}};
    if (!room) return 0;
    hak_trace_visit(ctx, p, add_line, &l);
    l.left_out = l.bytes < room ? 0 : l.bytes - (room - 1);
    l.measured = true;
    hak_trace_visit(ctx, p, add_line, &l);
    return hk_text_end(&l.text);
}
