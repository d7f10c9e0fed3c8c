/* HAK_DEBUG_GUARD: explains addresses to the host. */
#include "heap/guard.h"
#include "base/text.h"

void hak_guard_frames(hak_ctx *ctx, hak_frames_fn *fn, void *user)
{
    ctx = hk_whole(ctx);
    if (!(ctx->checked & HK_GUARDED)) return;
    hk_drawing_of(ctx)->frames = fn;
    hk_drawing_of(ctx)->user = user;
}

/* How far `at` is from the bytes of the block; 0 = in them. */
static size_t distance(const hk_guard_slot *slot, uintptr_t at)
{
    uintptr_t start = (uintptr_t)slot->p, end = start + slot->size;
    return at < start ? start - at : at >= end ? at - end + 1 : 0;
}

/* The slot nearest to `at` that has, or had, a block. */
static const hk_guard_slot *nearest(const hk_guard *g, uintptr_t at)
{
    const hk_guard_slot *found = NULL;
    size_t i = (at - (uintptr_t)g->base) / (HK_GUARD_MOST + HK_PAGE);
    for (size_t k = i ? i - 1 : 0; k <= i + 1 && k < g->count; k++) {
        const hk_guard_slot *slot = &g->slots[k];
        if (slot->p && (!found || distance(slot, at) < distance(found, at))) found = slot;
    }
    return found;
}

bool hak_space_guard_explain(const hak_space *space, const void *at, hak_guard_report *out)
{
    const hk_guard *g = atomic_load_explicit(&space->guard, memory_order_acquire);
    if (!hk_sized_fits(out->size, sizeof *out)) return false;
    if (!g || (uintptr_t)at - (uintptr_t)g->base >= g->bytes) return false;
    const hk_guard_slot *slot = nearest(g, (uintptr_t)at);
    if (!slot) return false;
    hak_guard_report r = {.at = at, .p = slot->p, .bytes = slot->size};
    r.freed = !atomic_load_explicit(&slot->live, memory_order_acquire);
    r.error = r.freed ? HAK_E_USE_AFTER_FREE : distance(slot, (uintptr_t)at) ? HAK_E_BOUNDS : HAK_OK;
    r.offset = (ptrdiff_t)((uintptr_t)at - (uintptr_t)slot->p);
    r.label = slot->label_name[0] ? slot->label : 0;
    memcpy(r.label_name, slot->label_name, sizeof r.label_name);
    r.allocated = slot->allocated;
    r.released = slot->released;
    hk_sized_write(out, &r, sizeof r);
    return true;
}

bool hak_guard_explain(const hak_ctx *ctx, const void *at, hak_guard_report *report)
{
    return hak_space_guard_explain(ctx->space, at, report);
}

/* ---- Text, without stdio: for signal handlers ----------------------------------------------------- */

static void put_event(hk_text *t, const char *what, const hak_guard_event *e)
{
    hk_text_put(t, what);
    if (e->thread) {
        hk_text_put(t, " by thread ");
        hk_text_number(t, e->thread, 10);
    }
    hk_text_put(t, ":");
    if (e->site) {
        hk_text_put(t, " site ");
        hk_text_number(t, e->site, 16);
    }
    for (unsigned i = 0; i < e->depth && i < HAK_GUARD_DEPTH; i++) {
        hk_text_put(t, i ? " " : " frames ");
        hk_text_number(t, e->frames[i], 16);
    }
    if (!e->site && !e->depth) hk_text_put(t, " call site unknown");
    hk_text_put(t, "\n");
}

static void put_where(hk_text *t, const hak_guard_report *r)
{
    bool before = r->offset < 0, behind = !before && (size_t)r->offset >= r->bytes;
    size_t n = before ? (size_t)-r->offset : behind ? (size_t)r->offset - r->bytes : (size_t)r->offset;
    hk_text_number(t, n, 10);
    hk_text_put(t, before ? " bytes before" : behind ? " bytes behind the end of" : " bytes into");
}

size_t hak_guard_text(const hak_guard_report *report, char *out, size_t room)
{
    hak_guard_report r;
    hk_text t = {out, 0, room};
    if (!hak_sized_copy(&r, sizeof r, report)) return hk_text_end(&t);
    hk_text_put(&t, "hakmem: ");
    hk_text_put(&t, r.error == HAK_OK         ? "access"
                    : r.error == HAK_E_BOUNDS ? "access out of bounds"
                                              : "use after free");
    hk_text_put(&t, " at ");
    hk_text_number(&t, (uintptr_t)r.at, 16);
    hk_text_put(&t, ", ");
    put_where(&t, &r);
    hk_text_put(&t, " a block of ");
    hk_text_number(&t, r.bytes, 10);
    hk_text_put(&t, " bytes at ");
    hk_text_number(&t, (uintptr_t)r.p, 16);
    if (r.label_name[0]) {
        hk_text_put(&t, ", label ");
        hk_text_name(&t, r.label_name);
    }
    hk_text_put(&t, "\n");
    put_event(&t, "  allocated", &r.allocated);
    if (r.freed && (r.released.thread || r.released.site || r.released.depth))
        put_event(&t, "  freed", &r.released);
    else if (r.freed) hk_text_put(&t, "  freed with its context\n");
    return hk_text_end(&t);
}
