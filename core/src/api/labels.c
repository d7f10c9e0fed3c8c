/* Defines labels, tells their names, and counts the live blocks of each. */
#include "api/errors.h"

#include "heap/batch.h"
#include "heap/big.h"
#include "heap/hints.h"
#include "heap/label.h"
#include "heap/label_on.h"
#include "heap/packed.h"
#include "heap/row.h"
#include "heap/slab.h"
#include "shared/remote.h"
#include "shared/transfer.h"

hak_label hak_label_of(const hak_ctx *ctx, const void *p)
{
    return hak_usable_size(ctx, p) != 0 ? hk_label_of_block(ctx, p) : 0;
}

void hk_label_give(const hak_ctx *ctx, void *p, hak_label label)
{
    /* Blocks beside it share its byte, and their heap may be about to write it. Packed memory stays with its
     * heap. */
    hak_ctx *heap = ctx->role && hk_is_packed(ctx, p) ? hk_owner(ctx, p) : NULL;
    if (heap) hk_heap_lock(heap);
    hk_relabel(ctx, p, label);
    if (heap) hk_heap_unlock(heap);
}

/* Locks all heaps at once, because slabs move between them. */
static bool heaps_labels_on(hak_ctx *shared)
{
    hak_ctx *heap, *first = hk_heaps_first(shared), *failed = NULL;
    for (heap = first; heap; heap = heap->heap->next)
        hk_lock_take(&heap->heap->lock);
    for (heap = first; heap && !failed; heap = heap->heap->next)
        if (!hk_labels_charge(heap)) failed = heap;
    /* If a heap failed, those before it undo the charge; else all begin to use their bytes. */
    for (heap = first; heap != failed; heap = heap->heap->next) {
        if (failed) hk_labels_uncharge(heap);
        else hk_labels_use(heap);
    }
    for (heap = first; heap; heap = heap->heap->next)
        hk_lock_drop(&heap->heap->lock);
    return !failed;
}

static bool labels_on(hak_ctx *ctx)
{
    hk_space_labels_begin(ctx->space);
    if (ctx->heaps ? !heaps_labels_on(ctx) : !hk_labels_charge(ctx)) {
        hk_space_labels_end(ctx->space);
        return false;
    }
    hk_labels_use(ctx);
    return true;
}

static bool names_grow(hak_ctx *ctx)
{
    uint32_t room = ctx->labels.room ? ctx->labels.room * 2 : 32;
    const char **names = hk_meta_alloc(ctx, room * sizeof *names);
    if (!names) return false;
    if (ctx->labels.room) memcpy(names, ctx->labels.defined, ctx->labels.room * sizeof *names);
    ctx->labels.defined = names;
    ctx->labels.room = (uint16_t)room;
    return true;
}

/* Contexts come and go by the million, and some define their labels one by one. 0 = not among them. */
static uint32_t position(const char *const *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (names[i][0] == name[0] && strcmp(names[i], name) == 0) return i + 1;
    return 0;
}

static hak_label define(hak_ctx *ctx, const char *name, size_t n)
{
    uint32_t given = ctx->labels.given_count, known = position(ctx->labels.given, given, name);
    if (known) return (hak_label)known;
    known = position(ctx->labels.defined, ctx->labels.count - given, name);
    if (known) return (hak_label)(given + known);
    if (ctx->labels.count == HAK_LABELS_MAX) {
        hk_error(ctx, HAK_E_LABEL, name, "label: the context has all its labels");
        return 0;
    }
    uint32_t at = (uint32_t)(ctx->labels.count - ctx->labels.given_count);
    /* Comes first: it may fail each time that a name is tried, and metadata is never freed. */
    if (!ctx->labels.on && !labels_on(ctx)) return 0;
    if (at == ctx->labels.room && !names_grow(ctx)) return 0;
    char *copy = hk_meta_alloc(ctx, n + 1);
    if (!copy) return 0;
    memcpy(copy, name, n + 1);
    ctx->labels.defined[at] = copy;
    hak_label label = (hak_label)++ctx->labels.count;
    hk_hints_label(ctx, label);
    return label;
}

hak_label hak_label_define(hak_ctx *ctx, const char *name)
{
    ctx = hk_whole(ctx);
    size_t n = hk_label_name_length(name);
    if (n == 0) {
        hk_error(ctx, HAK_E_LABEL, name, "label: a name of 1 to 63 bytes");
        return 0;
    }
    hk_whole_lock(ctx);
    hak_label label = define(ctx, name, n);
    hk_whole_unlock(ctx);
    return label;
}

const char *hak_label_name(const hak_ctx *ctx, hak_label label)
{
    return hk_label_name(ctx, label);
}

/* ---- Sums ---------------------------------------------------------------------------------------- */

typedef struct label_sums {
    const hak_ctx *ctx;
    size_t bytes[256], blocks[256];
} label_sums;

static void count_label(label_sums *t, unsigned label, size_t bytes, size_t blocks)
{
    t->bytes[label] += bytes;
    t->blocks[label] += blocks;
}

static bool count_block(void *user, const hak_block *b)
{
    count_label(user, b->label, b->size, 1);
    return true;
}

HK_RACY static void sum_slab(label_sums *t, const hk_slab *s)
{
    const hk_class *c = &hk_classes[s->kind];
    hk_extent *e = hk_extent_of_slab(t->ctx->space, s);
    char *start = hk_slab_first(t->ctx, e, s);
    if (!t->ctx->labels.on) {
        count_label(t, 0, (size_t)s->used * c->size, s->used);
        return;
    }
    const uint64_t *bits = hk_slab_bits(e, s);
    for (unsigned k = 0; k * 64 < s->fresh; k++) {
        uint64_t out = ~bits[k];
        if (s->fresh - k * 64 < 64) out &= (UINT64_C(1) << (s->fresh - k * 64)) - 1;
        for (; out; out &= out - 1) {
            char *p = start + (k * 64 + (unsigned)__builtin_ctzll(out)) * (size_t)c->size;
            count_label(t, *hk_label_byte(e, s->kind, p), c->size, 1);
        }
    }
}

/* A block in a magazine or remote cache was counted with its slab, under the label that its byte still has:
 * subtracts it. */
HK_RACY static void discount(void *user, void *p)
{
    label_sums *t = user;
    hk_extent *e;
    const hak_ctx *owner = t->ctx;
    uint32_t kind = hk_find(&owner, p, &e);
    unsigned label = 0;
    size_t size = 0;
    if (hk_has_labels(kind)) {
        size = kind < HK_BINS ? hk_kind_size(kind) : hk_packed_size(owner, p);
        if (owner->labels.on) label = hk_label_at(e, kind, p, size);
    } else {
        /* A small block may have a mapping of its own, for its alignment, and wait in a remote cache as
         * others do. */
        const hk_big *b = hk_big_find(owner, p);
        if (!b || b->cached) return;
        size = b->size;
        label = b->label;
    }
    if (size == 0 || label > 255) return;
    t->bytes[label] -= size;
    t->blocks[label]--;
}

/* The same for a block in the remote cache of a heap, whose thread may send it home meanwhile. The lock of
 * the heap that owns the block keeps its unit where it is: without the lock the unit might go back, and its
 * pages with it. */
static void discount_remote(void *user, void *p)
{
    const label_sums *t = user;
    hak_ctx *owner = hk_owner(t->ctx, p);
    hk_heap_lock(owner);
    if (hk_owner(owner, p) == owner) discount(user, p);
    hk_heap_unlock(owner);
}

HK_RACY static void discount_magazine(label_sums *t, unsigned i)
{
    const hk_bin *bin = &t->ctx->bins[i];
    void **at = hk_bin_low(bin), **top = bin->top;
    /* Another thread's magazine, seen between two stores. */
    if (HK_UNLIKELY(top - at > UINT8_MAX)) return;
    for (; at < top; at++)
        discount(t, *at);
}

HK_RACY static void count_owned(hak_ctx *ctx, hk_slab *s, void *user)
{
    label_sums *t = user;
    if (s->kind < HK_SMALL_CLASSES) {
        sum_slab(t, s);
    } else if (s->kind < HK_BINS) {
        hk_extent *e = hk_extent_of_slab(ctx->space, s);
        char *p = hk_slab_start(e, s);
        count_label(t, ctx->labels.on ? *hk_label_byte(e, s->kind, p) : 0, (size_t)s->units << HK_UNIT_SHIFT,
                    1);
    }
}

/* All but slabs and runs. */
static void sum_others(const hak_ctx *ctx, label_sums *t)
{
    hk_packed_visit(ctx, count_block, t);
    hk_alone_visit(ctx, count_block, t);
    for (unsigned i = 0, all = hk_bins_all(ctx); i < all; i++)
        discount_magazine(t, i);
}

static void sum_shared(hak_ctx *shared, label_sums *t)
{
    hk_lock_take(&shared->heaps->walk);
    hk_shared_gather(shared);
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        t->ctx = heap;
        hk_heap_walk(heap, count_owned, t);
        hk_heap_lock(heap);
        sum_others(heap, t);
        hk_transfer_each(heap, discount, t);
        hk_heap_unlock(heap);
        hk_remote_each(heap, discount_remote, t);
    }
    hk_lock_drop(&shared->heaps->walk);
    for (unsigned i = 0; i < 256; i++) {
        /* Blocks may have come home while this counted. */
        if ((ptrdiff_t)t->bytes[i] < 0 || (ptrdiff_t)t->blocks[i] < 0) t->bytes[i] = t->blocks[i] = 0;
    }
}

static void sum_labels(const hak_ctx *ctx, label_sums *t)
{
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    if (ctx->heaps) {
        sum_shared((hak_ctx *)(uintptr_t)ctx, t);
    } else {
        hk_rows_settle(ctx);
        hk_batches_return(ctx);
        HK_EACH_OWNED(ctx, s)
        {
            count_owned((hak_ctx *)(uintptr_t)ctx, s, t);
        }
        sum_others(ctx, t);
    }
    /* Labels that nobody defined. */
    for (unsigned i = ctx->labels.count + 1; i < 256; i++) {
        t->bytes[0] += t->bytes[i];
        t->blocks[0] += t->blocks[i];
    }
}

int hak_labels_stats(const hak_ctx *ctx, hak_label_info *out, size_t room)
{
    label_sums t;
    ctx = hk_whole(ctx);
    size_t n = ctx->labels.count + 1u;
    sum_labels(ctx, &t);
    for (size_t i = 0; i < n && i < room; i++)
        out[i] = (hak_label_info){hak_label_name(ctx, (hak_label)i), (hak_label)i, t.bytes[i], t.blocks[i]};
    return (int)n;
}

int hak_label_stats(const hak_ctx *ctx, hak_label label, hak_label_info *info)
{
    label_sums t;
    ctx = hk_whole(ctx);
    if (label > ctx->labels.count) return -1;
    sum_labels(ctx, &t);
    *info = (hak_label_info){hak_label_name(ctx, label), label, t.bytes[label], t.blocks[label]};
    return 0;
}
