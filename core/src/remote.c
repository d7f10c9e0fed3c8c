#include "remote.h"

#include "alloc.h"
#include "big.h"
#include "check.h"
#include "packed.h"
#include "run.h"
#include "slab.h"

/* A batch goes off when it has BATCH blocks or BYTES. DEEP: so many batches in an inbox say that its thread
 * does not come by: whoever pushes drains it. */
enum { BATCH = 59, BYTES = 64 << 10, DEEP = 8 };

struct hk_batch {
    hk_link link;
    hak_ctx *from; /* the heap that it comes back to */
    hk_counter bytes;
    _Atomic uint32_t deep; /* batches below it in the inbox, about */
    _Atomic uint32_t count;
    void *blocks[BATCH];
    uint64_t unused;
};
_Static_assert(sizeof(hk_batch) == 512, "a batch is eight cache lines");

static hk_batch *batch_of(hk_link *link)
{
    return (hk_batch *)(void *)link;
}

static unsigned count_of(const hk_batch *b)
{
    return atomic_load_explicit(&b->count, memory_order_relaxed);
}

/* ---- Sending -------------------------------------------------------------------------------------- */

/* An empty batch of the calling thread's heap. NULL = no memory. */
static hk_batch *batch_get(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    if (!h->spare) h->spare = batch_of(hk_chain_take(&h->empties));
    hk_batch *b = h->spare;
    if (b) {
        h->spare = batch_of(b->link.next);
    } else {
        hk_heap_lock(heap);
        b = hk_meta_alloc(heap, sizeof *b);
        hk_heap_unlock(heap);
        if (!b) return NULL;
        b->from = heap;
    }
    hk_set(&b->bytes, 0);
    atomic_store_explicit(&b->count, 0, memory_order_relaxed);
    return b;
}

static void batch_add(hk_batch *b, void *p, size_t size)
{
    unsigned n = count_of(b);
    b->blocks[n] = p;
    hk_add(&b->bytes, size);
    atomic_store_explicit(&b->count, n + 1, memory_order_release);
}

/* The blocks of a batch leave its heap. */
static void count_out(hk_batch *b)
{
    hk_add(&b->from->heap->out_bytes, hk_get(&b->bytes));
    hk_add(&b->from->heap->out_blocks, count_of(b));
}

static void deliver(hak_ctx *to, hk_batch *b)
{
    hk_heap *h = to->heap;
    const hk_batch *below = batch_of(atomic_load_explicit(&h->inbox, memory_order_relaxed));
    uint32_t deep = below ? atomic_load_explicit(&below->deep, memory_order_relaxed) + 1 : 0;
    atomic_store_explicit(&b->deep, deep, memory_order_relaxed);
    hk_chain_push(&h->inbox, &b->link);
    if (HK_UNLIKELY(deep > DEEP) && hk_heap_try(to)) {
        hk_remote_drain(to, false);
        hk_heap_unlock(to);
    }
}

static void send(struct hk_outbox *box)
{
    hk_batch *b = box->batch;
    if (!b || count_of(b) == 0) return;
    box->batch = NULL;
    /* A fork between the two must not leave the batch in both places. */
    atomic_signal_fence(memory_order_seq_cst);
    count_out(b);
    deliver(box->to, b);
}

void hk_remote_send(hak_ctx *heap)
{
    for (unsigned i = 0; i < HK_OUTBOXES; i++)
        send(&heap->heap->outbox[i]);
}

HK_RACY void hk_remote_held(const hak_ctx *heap, size_t *bytes, size_t *blocks)
{
    *bytes = *blocks = 0;
    for (unsigned i = 0; i < HK_OUTBOXES; i++) {
        const hk_batch *b = heap->heap->outbox[i].batch;
        if (!b) continue;
        *bytes += hk_get(&b->bytes);
        *blocks += count_of(b);
    }
}

HK_RACY void hk_remote_each(const hak_ctx *heap, void (*fn)(void *user, void *p), void *user)
{
    for (unsigned i = 0; i < HK_OUTBOXES; i++) {
        const hk_batch *b = heap->heap->outbox[i].batch;
        for (unsigned k = 0, n = b ? count_of(b) : 0; k < n; k++)
            fn(user, b->blocks[k]);
    }
}

/* ---- At home -------------------------------------------------------------------------------------- */

bool hk_remote_home(hak_ctx *heap, void *p)
{
    hk_extent *e;
    uint32_t kind = hk_kind_at(heap, p, &e);
    if (HK_LIKELY(kind < HK_SMALL_CLASSES)) hk_slab_free(heap, e, kind, p);
    else if (kind < HK_BINS) hk_run_give(heap, p);
    else if (hk_owner(heap, p) != heap) return false;
    else hk_free_here(heap, p, HAK_NONE);
    return true;
}

/* Under the blocking lock of whichever heap owns p. mine: the calling thread's, or NULL. */
static void free_direct(hak_ctx *root, const hak_ctx *mine, void *p, size_t n)
{
    for (;;) {
        hak_ctx *owner = hk_owner(root, p);
        if (owner->role != HK_HEAP) {
            hk_misuse(root, p);
            return;
        }
        hk_heap_lock(owner);
        bool same = hk_owner(root, p) == owner;
        if (same && owner != mine && owner->checked) hk_check_free(owner, p, n);
        if (same && owner == mine) hk_free_here(owner, p, n);
        else if (same) hk_remote_home(owner, p);
        hk_heap_unlock(owner);
        if (same) return;
    }
}

/* Blocks whose slabs went over to another heap follow them. */
static void forward(hak_ctx *heap, hk_batch *b, unsigned n)
{
    hk_set(&b->bytes, 0);
    atomic_store_explicit(&b->count, 0, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++) {
        void *p = b->blocks[i];
        batch_add(b, p, hak_usable_size(heap, p));
    }
    hk_sub(&heap->heap->in_bytes, hk_get(&b->bytes));
    hk_sub(&heap->heap->in_blocks, n);
    deliver(hk_owner(heap, b->blocks[0]), b);
}

static void take_home(hak_ctx *heap, hk_batch *b, bool own)
{
    hk_heap *h = heap->heap;
    unsigned n = count_of(b), others = hk_slab_free_all(heap, b->blocks, n, own), moved = 0;
    for (unsigned i = 0; i < others; i++)
        if (HK_UNLIKELY(!hk_remote_home(heap, b->blocks[i]))) b->blocks[moved++] = b->blocks[i];
    hk_add(&h->in_bytes, hk_get(&b->bytes));
    hk_add(&h->in_blocks, n);
    if (HK_UNLIKELY(moved)) forward(heap, b, moved);
    else hk_chain_push(&b->from->heap->empties, &b->link);
}

void hk_remote_drain(hak_ctx *heap, bool own)
{
    for (hk_link *at = hk_chain_take(&heap->heap->inbox), *next; at; at = next) {
        next = at->next;
        take_home(heap, batch_of(at), own);
    }
}

/* ---- Freeing -------------------------------------------------------------------------------------- */

/* A block of at least a unit: at once if its heap is at rest, else by a batch of its own. */
static void free_whole(hak_ctx *heap, hak_ctx *owner, void *p)
{
    if (hk_heap_try(owner)) {
        bool home = hk_remote_home(owner, p);
        hk_heap_unlock(owner);
        if (home) return;
    }
    size_t size = hak_usable_size(owner, p);
    hk_batch *b = size ? batch_get(heap) : NULL;
    if (!b) {
        free_direct(heap->heap->root, heap, p, HAK_NONE);
        return;
    }
    batch_add(b, p, size);
    count_out(b);
    deliver(owner, b);
}

/* Another heap needs the outbox. Few blocks are freed where they belong, if nobody is at work there: where
 * threads are many, batches of few blocks would cost more than the blocks. */
static void displace(struct hk_outbox *box)
{
    hk_batch *b = box->batch;
    if (!b || count_of(b) == 0) return;
    if (count_of(b) > BATCH / 2 || !hk_heap_try(box->to)) {
        send(box);
        return;
    }
    box->batch = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    count_out(b);
    take_home(box->to, b, false);
    hk_heap_unlock(box->to);
}

HK_INLINE struct hk_outbox *box_of(hak_ctx *heap, uint32_t id)
{
    return &heap->heap->outbox[(id * 0x9E3779B1u) >> 29];
}
_Static_assert(HK_OUTBOXES == 1 << (32 - 29), "box_of takes three bits");

static HK_NOINLINE void free_remote(hak_ctx *heap, hak_ctx *owner, unsigned kind, void *p)
{
    if (kind >= HK_SMALL_CLASSES && kind != HK_KIND_PACKED) {
        free_whole(heap, owner, p);
        return;
    }
    size_t size = kind == HK_KIND_PACKED ? hk_packed_size(owner, p) : hk_classes[kind].size;
    struct hk_outbox *box = box_of(heap, owner->id);
    if (HK_UNLIKELY(box->to != owner)) {
        displace(box);
        box->to = owner;
    }
    if (HK_UNLIKELY(!box->batch)) box->batch = batch_get(heap);
    if (HK_UNLIKELY(!box->batch || size == 0)) {
        free_direct(heap->heap->root, heap, p, HAK_NONE);
        return;
    }
    batch_add(box->batch, p, size);
    if (count_of(box->batch) == BATCH || hk_get(&box->batch->bytes) >= BYTES) send(box);
}

void hk_free_without_heap(hak_ctx *root, void *p, size_t n)
{
    hk_team *t = root->team;
    hk_lock_take(&t->lock);
    free_direct(root, NULL, p, n);
    bool over = atomic_load(&t->retired) && hk_team_empty(root);
    hk_lock_drop(&t->lock);
    if (over) hak_ctx_destroy(root);
}

void hk_free_from_heap(hak_ctx *ctx, void *p, size_t n)
{
    const hk_extent *e = ctx->extent;
    size_t unit = ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT;
    uint32_t entry = HK_LIKELY(unit < e->units) ? hk_read(&e->map[unit]) : 0, id = entry >> 8;
    if (HK_LIKELY(id && id != ctx->id && id - e->first < e->units && !ctx->checked)) {
        hak_ctx *owner = (hak_ctx *)(void *)hk_extent_address(e, id);
        unsigned kind = entry & 255;
        struct hk_outbox *box = box_of(ctx, id);
        /* Without a look at the owner, whose lines its thread writes to. */
        if (HK_LIKELY(box->to == owner && kind < HK_SMALL_CLASSES && box->batch &&
                      count_of(box->batch) + 1 < BATCH)) {
            batch_add(box->batch, p, hk_classes[kind].size);
            if (HK_UNLIKELY(hk_get(&box->batch->bytes) >= BYTES)) send(box);
            return;
        }
        if (HK_LIKELY(owner->role == HK_HEAP && owner->heap->root == ctx->heap->root)) {
            free_remote(ctx, owner, kind, p);
            return;
        }
    }
    hak_ctx *owner = hk_owner(ctx, p);
    if (owner == ctx || ctx->checked) free_direct(ctx->heap->root, ctx, p, n);
    else free_whole(ctx, owner, p);
}
