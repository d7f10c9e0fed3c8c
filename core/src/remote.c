#include "remote.h"

#include "alloc.h"
#include "big.h"
#include "check.h"
#include "packed.h"
#include "run.h"
#include "slab.h"
#include "stock.h"

/* A mixed batch goes off when it has HK_BATCH blocks or BYTES, one of a class with PILE_BYTES. OPENS: so many
 * frees of a class went by mixed batches before it gets a pile of its own. MOST_OPEN: a thread that frees
 * many classes of others would keep much in piles, and its batches of one class would be late; after AGAIN
 * mixed batches other classes may be the busy ones. DEEP: so many batches in an inbox say that its thread
 * does not come by: whoever pushes drains it. */
enum { BYTES = 64 << 10, PILE_BYTES = 32 << 10, OPENS = 32, MOST_OPEN = 24, AGAIN = 64, DEEP = 8 };

/* Blocks of one owner and class that are to be sent, at the end of the batch's first `room` places. */
typedef struct hk_pile {
    uint32_t entry; /* the owner's id and the class, as in the map */
    _Atomic uint8_t left;
    uint8_t room, misses;
    hk_batch *batch; /* where some are left; else NULL */
} hk_pile;

/* ---- Sending -------------------------------------------------------------------------------------- */

/* An empty batch of the calling thread's heap. NULL = no memory. */
static hk_batch *batch_get(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    if (!h->spare) h->spare = hk_batch_of(hk_chain_take(&h->empties));
    hk_batch *b = h->spare;
    if (b) {
        h->spare = hk_batch_of(b->link.next);
        __builtin_prefetch(h->spare, 1);
    } else {
        hk_heap_lock(heap);
        b = hk_meta_alloc(heap, sizeof *b);
        hk_heap_unlock(heap);
        if (!b) return NULL;
        b->from = heap;
    }
    hk_set(&b->bytes, 0);
    atomic_store_explicit(&b->count, 0, memory_order_relaxed);
    b->kind = HK_MIXED;
    return b;
}

static void batch_add(hk_batch *b, void *p, size_t size)
{
    unsigned n = hk_batch_count(b);
    b->blocks[n] = p;
    hk_add(&b->bytes, size);
    atomic_store_explicit(&b->count, n + 1, memory_order_release);
}

/* The blocks of a batch leave its heap. */
static void count_out(hk_batch *b)
{
    hk_add(&b->from->heap->out_bytes, hk_get(&b->bytes));
    hk_add(&b->from->heap->out_blocks, hk_batch_count(b));
}

static void deliver(hak_ctx *to, hk_batch *b)
{
    hk_heap *h = to->heap;
    const hk_batch *below = hk_batch_of(atomic_load_explicit(&h->inbox, memory_order_relaxed));
    unsigned deep = below ? atomic_load_explicit(&below->deep, memory_order_relaxed) + 1u : 0;
    atomic_store_explicit(&b->deep, (uint16_t)deep, memory_order_relaxed);
    hk_chain_push(&h->inbox, &b->link);
    if (HK_UNLIKELY(deep > DEEP) && hk_heap_try(to)) {
        hk_remote_drain(to, false);
        hk_heap_unlock(to);
    }
}

/* From the calling thread's heap, or one that is nobody's. */
static void send_batch(hak_ctx *to, hk_batch *b)
{
    count_out(b);
    b->from->heap->sent_to = to;
    deliver(to, b);
}

static void send(struct hk_outbox *box)
{
    hk_batch *b = box->batch;
    if (!b || hk_batch_count(b) == 0) return;
    box->batch = NULL;
    /* A fork between the two must not leave the batch in both places. */
    atomic_signal_fence(memory_order_seq_cst);
    send_batch(box->to, b);
}

static unsigned pile_left(const hk_pile *pile)
{
    return atomic_load_explicit(&pile->left, memory_order_relaxed);
}

HK_INLINE void pile_set(hk_pile *pile, unsigned left)
{
    atomic_store_explicit(&pile->left, (uint8_t)left, memory_order_release);
}

static HK_NOINLINE void send_pile(const hak_ctx *heap, hk_pile *pile)
{
    hk_batch *b = pile->batch;
    unsigned left = pile_left(pile), n = pile->room - left;
    if (!b || n == 0) return;
    if (left) memmove(b->blocks, b->blocks + left, n * sizeof(void *));
    hk_set(&b->bytes, n * hk_classes[b->kind].size);
    atomic_store_explicit(&b->count, n, memory_order_relaxed);
    pile->batch = NULL;
    pile->misses = 0;
    pile_set(pile, 0);
    /* A fork between the two must not leave the batch in both places. */
    atomic_signal_fence(memory_order_seq_cst);
    send_batch((hak_ctx *)(void *)hk_extent_address(heap->extent, pile->entry >> 8), b);
}

/* Sends the piles off; none belongs to a class. */
static void close_piles(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    for (unsigned i = 0; h->piles && i < HK_PILES; i++) {
        send_pile(heap, &h->piles[i]);
        h->piles[i].entry = 0;
        h->piles[i].misses = 0;
    }
    h->open_piles = h->mixed_sent = 0;
}

void hk_remote_send(hak_ctx *heap)
{
    for (unsigned i = 0; i < HK_OUTBOXES; i++)
        send(&heap->heap->outbox[i]);
    close_piles(heap);
}

HK_RACY void hk_remote_held(const hak_ctx *heap, size_t *bytes, size_t *blocks)
{
    *bytes = *blocks = 0;
    for (unsigned i = 0; i < HK_OUTBOXES; i++) {
        const hk_batch *b = heap->heap->outbox[i].batch;
        if (!b) continue;
        *bytes += hk_get(&b->bytes);
        *blocks += hk_batch_count(b);
    }
    const hk_pile *piles = heap->heap->piles;
    for (unsigned i = 0; piles && i < HK_PILES; i++) {
        if (!piles[i].batch) continue;
        size_t n = piles[i].room - pile_left(&piles[i]);
        *bytes += n * hk_classes[piles[i].entry & 255].size;
        *blocks += n;
    }
}

HK_RACY void hk_remote_each(const hak_ctx *heap, void (*fn)(void *user, void *p), void *user)
{
    for (unsigned i = 0; i < HK_OUTBOXES; i++) {
        const hk_batch *b = heap->heap->outbox[i].batch;
        for (unsigned k = 0, n = b ? hk_batch_count(b) : 0; k < n; k++)
            fn(user, b->blocks[k]);
    }
    const hk_pile *piles = heap->heap->piles;
    for (unsigned i = 0; piles && i < HK_PILES; i++) {
        const hk_batch *b = piles[i].batch;
        for (unsigned k = b ? pile_left(&piles[i]) : HK_BATCH; k < piles[i].room; k++)
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

void hk_remote_unpack(hak_ctx *heap, hk_batch *b, bool own)
{
    hk_heap *h = heap->heap;
    unsigned n = hk_batch_count(b), others = hk_slab_free_all(heap, b->blocks, n, own);
    hk_add(&h->in_bytes, hk_get(&b->bytes));
    hk_add(&h->in_blocks, n);
    for (unsigned i = 0; i < others; i++)
        if (HK_UNLIKELY(!hk_remote_home(heap, b->blocks[i]))) hk_heap_forward(heap, b->blocks[i]);
    hk_chain_push(&b->from->heap->empties, &b->link);
}

void hk_remote_drain(hak_ctx *heap, bool own)
{
    if (HK_UNLIKELY(atomic_load_explicit(&heap->heap->strays, memory_order_relaxed) != NULL))
        hk_heap_strays(heap);
    for (hk_link *at = hk_chain_take(&heap->heap->inbox), *next; at; at = next) {
        next = at->next;
        __builtin_prefetch(next, 1);
        if (!own) heap->heap->away += hk_get(&hk_batch_of(at)->bytes);
        if (!hk_stock_put(heap, hk_batch_of(at))) hk_remote_unpack(heap, hk_batch_of(at), own);
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
    send_batch(owner, b);
}

/* Another heap needs the outbox. Few blocks are freed where they belong, if nobody is at work there: where
 * threads are many, batches of few blocks would cost more than the blocks. */
static void displace(struct hk_outbox *box)
{
    hk_batch *b = box->batch;
    if (!b || hk_batch_count(b) == 0) return;
    if (hk_batch_count(b) > HK_BATCH / 2 || !hk_heap_try(box->to)) {
        send(box);
        return;
    }
    box->batch = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    count_out(b);
    box->to->heap->away += hk_get(&b->bytes);
    hk_remote_unpack(box->to, b, false);
    hk_heap_unlock(box->to);
}

HK_INLINE struct hk_outbox *box_of(hak_ctx *heap, uint32_t id)
{
    return &heap->heap->outbox[(id * 0x9E3779B1u) >> 29];
}
_Static_assert(HK_OUTBOXES == 1 << (32 - 29), "box_of takes three bits");

/* Without two of 90 classes of one owner in one place. */
HK_INLINE unsigned pile_index(uint32_t entry)
{
    return (entry * 0x9E3779B1u) >> 25;
}
_Static_assert(HK_PILES == 1 << (32 - 25), "pile_index takes seven bits");

static bool piles_make(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    if (h->piles) return true;
    hk_heap_lock(heap);
    hk_pile *piles = hk_meta_alloc(heap, HK_PILES * sizeof *piles);
    hk_heap_unlock(heap);
    if (!piles) return false;
    memset(piles, 0, HK_PILES * sizeof *piles);
    h->piles = piles;
    return true;
}

HK_INLINE void pile_put(hk_pile *pile, unsigned left, void *p)
{
    pile->batch->blocks[left - 1] = p;
    pile_set(pile, left - 1);
}

/* Into the pile, if it is that of the owner and class and has room. */
HK_INLINE bool pile_takes(const hak_ctx *heap, hk_pile *pile, uint32_t entry, void *p)
{
    unsigned left = pile_left(pile);
    if (HK_UNLIKELY(pile->entry != entry || !left)) return false;
    pile_put(pile, left, p);
    if (HK_UNLIKELY(left == 1)) send_pile(heap, pile);
    return true;
}

/* Whether the class is to have a batch of its own, now that one more block is freed. */
static bool pile_due(hak_ctx *heap, uint32_t entry)
{
    hk_heap *h = heap->heap;
    if ((entry & 255) >= HK_STOCK_CLASSES || !h->piles) return false;
    hk_pile *pile = &h->piles[pile_index(entry)];
    if (pile->entry == entry) return true;
    if (pile->misses < OPENS) pile->misses++;
    return pile->misses == OPENS && (pile->entry || h->open_piles < MOST_OPEN);
}

/* Classes with few blocks to send share a batch. false = this one does, or there is no memory. */
static bool free_to_pile(hak_ctx *heap, const hak_ctx *owner, uint32_t entry, void *p)
{
    unsigned class = entry & 255;
    if (owner->extent != heap->extent || !piles_make(heap) || !pile_due(heap, entry)) return false;
    hk_pile *pile = &heap->heap->piles[pile_index(entry)];
    if (pile->entry != entry) {
        if (!pile->entry) heap->heap->open_piles++;
        send_pile(heap, pile);
        pile->entry = entry;
    }
    /* The block's slab went over, since hk_free_from_heap looked, to a heap that has a pile. */
    if (HK_UNLIKELY(pile_takes(heap, pile, entry, p))) return true;
    hk_batch *b = batch_get(heap);
    if (!b) return false;
    b->kind = (uint16_t) class;
    pile->room = (uint8_t)hk_min(PILE_BYTES / hk_classes[class].size, HK_BATCH);
    for (unsigned i = 0; i < pile->room; i += 8)
        __builtin_prefetch(&b->blocks[i], 1);
    pile_set(pile, pile->room);
    pile->batch = b;
    pile_put(pile, pile->room, p);
    return true;
}

HK_INLINE void send_if_full(hak_ctx *heap, struct hk_outbox *box)
{
    if (HK_LIKELY(hk_batch_count(box->batch) < HK_BATCH && hk_get(&box->batch->bytes) < BYTES)) return;
    send(box);
    if (++heap->heap->mixed_sent == AGAIN) close_piles(heap);
}

static HK_NOINLINE void free_remote(hak_ctx *heap, hak_ctx *owner, uint32_t entry, void *p)
{
    unsigned kind = entry & 255;
    if (kind >= HK_SMALL_CLASSES && kind != HK_KIND_PACKED) {
        free_whole(heap, owner, p);
        return;
    }
    if (free_to_pile(heap, owner, entry, p)) return;
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
    send_if_full(heap, box);
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

/* A block of the calling thread's heap. false = its units went over to another one meanwhile. */
static bool free_own(hak_ctx *heap, void *p, size_t n, const uint32_t *entry)
{
    hk_heap_enter(heap);
    bool own = hk_read(entry) >> 8 == heap->id;
    if (own) hk_free_here(heap, p, n);
    hk_heap_unlock(heap);
    return own;
}

static HK_NOINLINE void free_elsewhere(hak_ctx *ctx, void *p, size_t n)
{
    if (!p) return;
    const hk_extent *e = ctx->extent;
    size_t unit = ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT;
    uint32_t entry = HK_LIKELY(unit < e->units) ? hk_read(&e->map[unit]) : 0, id = entry >> 8;
    if (id == ctx->id && !ctx->checked && free_own(ctx, p, n, &e->map[unit])) return;
    if (HK_LIKELY(id && id != ctx->id && id - e->first < e->units && !ctx->checked)) {
        hak_ctx *owner = (hak_ctx *)(void *)hk_extent_address(e, id);
        unsigned kind = entry & 255;
        struct hk_outbox *box = box_of(ctx, id);
        /* Without a look at the owner, whose lines its thread writes to. */
        if (HK_LIKELY(box->to == owner && kind < HK_SMALL_CLASSES && box->batch && !pile_due(ctx, entry))) {
            batch_add(box->batch, p, hk_classes[kind].size);
            send_if_full(ctx, box);
            return;
        }
        if (HK_LIKELY(owner->role == HK_HEAP && owner->heap->root == ctx->heap->root)) {
            free_remote(ctx, owner, entry, p);
            return;
        }
    }
    hak_ctx *owner = hk_owner(ctx, p);
    if (owner == ctx || ctx->checked) free_direct(ctx->heap->root, ctx, p, n);
    else free_whole(ctx, owner, p);
}

/* Most go to a pile that there is, without a look at the owner, whose lines its thread writes to. A checked
 * heap has none. */
void hk_free_from_heap(hak_ctx *ctx, void *p, size_t n, uint32_t kind)
{
    hk_pile *piles = ctx->heap->piles;
    if (HK_LIKELY(piles != NULL)) {
        uint32_t entry = kind ^ ctx->key; /* outside of the window none that a pile has */
        if (HK_LIKELY(pile_takes(ctx, &piles[pile_index(entry)], entry, p))) return;
    }
    free_elsewhere(ctx, p, n);
}
