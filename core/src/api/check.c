/* Checks the whole heap for states that cannot be. */
#include "api/quarantine.h"
#include "heap/batch.h"
#include "heap/block.h"
#include "heap/canary.h"
#include "heap/packed.h"
#include "heap/row.h"
#include "heap/slab.h"
#include "shared/thread_heap.h"
#include "space/bitmap.h"

typedef struct findings {
    const hak_ctx *ctx;
    hak_report_fn *report;
    void *user;
    size_t faults;
} findings;

static void fault(findings *f, const void *p, const char *what)
{
    f->faults++;
    if (f->report) f->report(f->user, HAK_E_CORRUPT, p, what);
}

static bool has_bitmap(hak_space *space, const hk_extent *e, const hk_slab *s)
{
    size_t chunk = hk_extent_unit(e, s) / HK_CHUNK_UNITS;
    hk_lock_take(&space->lock);
    bool has = s->bits / HK_CHUNK_WORDS == chunk && hk_bitmap_taken(hk_extent_chunk(e, chunk), s);
    hk_lock_drop(&space->lock);
    return has;
}

static void check_slab(findings *f, const hk_slab *s, size_t *blocks, size_t *bytes)
{
    const hk_class *c = &hk_classes[s->kind];
    hk_extent *e = hk_extent_of_slab(f->ctx->space, s);
    char *start = hk_slab_start(e, s);
    unsigned out = 0, most = hk_slab_capacity(f->ctx, s);
    if (s->fresh > most || (s->units != c->units && s->units != c->few)) {
        fault(f, start, "slab: more blocks than its class has");
        return;
    }
    if (!has_bitmap(f->ctx->space, e, s)) fault(f, start, "slab: its bitmap is not its own");
    for (unsigned i = 0; i < s->fresh; i++)
        out += hk_slab_block_out(e, s, i);
    if (out != s->used) fault(f, start, "slab: the bitmap and the count of used blocks differ");
    bool current = f->ctx->bins[s->kind].slab == s;
    bool marked = hk_slab_returns(f->ctx, s->kind) ? s->trigger == 0 : s->trigger == HK_TRIGGER_NEVER;
    if (current ? !marked : s->trigger == HK_TRIGGER_NEVER)
        fault(f, start, "slab: current, but not its bin's, or the reverse");
    if (!current && s->trigger == 0 && s->used == most && most > 1)
        fault(f, start, "slab: full, but listed as partial");
    *blocks += out;
    *bytes += (size_t)out * c->size;
}

static void check_bin(findings *f, unsigned kind)
{
    const hk_bin *bin = &f->ctx->bins[kind];
    const hak_space *space = f->ctx->space;
    bool packed = kind < HK_SMALL_CLASSES && hk_packed_keeps(f->ctx, kind);
    hk_extent *e;
    for (void **at = hk_bin_low(bin); at < bin->top; at++) {
        if (!hk_in_window(f->ctx, *at) || hk_kind_at(f->ctx, *at, &e) != (packed ? HK_KIND_PACKED : kind))
            fault(f, *at, "magazine: holds a block of another class");
        else if (hak_usable_size(f->ctx, *at) != hk_kind_size(kind))
            fault(f, *at, "magazine: holds a block that its slab has free");
    }
    hk_unit_id before = 0;
    for (hk_unit_id id = bin->first; id; id = hk_slab_at(space, id)->next) {
        const hk_slab *s = hk_slab_at(space, id);
        if (s->prev != before || s->kind != kind || s->trigger != 0)
            fault(f, hk_unit_address(space, id), "list of partial slabs is broken");
        before = id;
    }
    if (bin->last != before) fault(f, bin, "list of partial slabs has a wrong end");
}

typedef struct totals {
    size_t blocks, bytes;
} totals;

static bool add_block(void *user, const hak_block *b)
{
    totals *t = user;
    t->blocks++;
    t->bytes += b->size;
    return true;
}

static bool entry_right(const hak_ctx *ctx, const hk_slab *s, uint32_t entry)
{
    uint32_t kind = entry ^ ctx->key;
    return kind == s->kind || kind == HK_KIND_WATCHED;
}

static bool check(const hak_ctx *ctx, hak_report_fn *report, void *user)
{
    hk_rows_settle(ctx);
    hk_batches_return(ctx);
    findings f = {ctx, report, user, 0};
    totals t = {0, 0};
    HK_EACH_OWNED(ctx, s)
    {
        hk_extent *e = hk_extent_of_slab(ctx->space, s);
        for (unsigned i = 0; i < s->units; i++)
            if (!entry_right(ctx, s, hk_read(&e->map[hk_extent_unit(e, s) + i])))
                fault(&f, hk_slab_start(e, s), "map: a unit has another owner or kind");
        if (s->kind < HK_SMALL_CLASSES) {
            check_slab(&f, s, &t.blocks, &t.bytes);
        } else if (s->kind < HK_BINS) {
            t.blocks++;
            t.bytes += (size_t)s->units << HK_UNIT_SHIFT;
        }
    }
    hk_packed_visit(ctx, add_block, &t);
    hk_alone_visit(ctx, add_block, &t);
    for (unsigned kind = 0; kind < HK_BINS; kind++)
        check_bin(&f, kind);
    if (t.blocks != hk_get(&ctx->live_blocks)) fault(&f, NULL, "count of live blocks differs from the heap");
    if (t.bytes != hk_get(&ctx->live_bytes)) fault(&f, NULL, "live bytes differ from the heap");
    return f.faults == 0;
}

static bool look_at_canary(void *user, const hak_block *block)
{
    findings *f = user;
    if (hk_canary_whole(f->ctx, block->p)) return true;
    f->faults++;
    if (f->report)
        f->report(f->user, HAK_E_BOUNDS, block->p, "canary: written to behind the bytes that were asked for");
    return true;
}

static bool canaries_whole(const hak_ctx *whole, hak_report_fn *report, void *user)
{
    findings f = {whole, report, user, 0};
    hak_ctx_visit(whole, look_at_canary, &f);
    return f.faults == 0;
}

bool hak_ctx_check(const hak_ctx *ctx, hak_report_fn *report, void *user)
{
    hak_ctx *whole = hk_whole(ctx);
    bool sound = hk_quarantine_check(whole, report, user) == 0;
    if (whole->debug & HAK_DEBUG_CANARY) sound &= canaries_whole(whole, report, user);
    if (!whole->heaps) return check(ctx, report, user) && sound;
    hk_shared_settle(whole);
    for (const hak_ctx *heap = hk_heaps_first(whole); heap; heap = heap->heap->next)
        sound &= check(heap, report, user);
    return sound;
}
