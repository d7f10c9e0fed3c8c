#include "shared/remote.h"

#include "heap/block_free.h"
#include "heap/guard.h"
#include "heap/magazine.h"
#include "heap/metadata.h"
#include "heap/packed.h"
#include "profile/profile.h"
#include "shared/transfer.h"

/* A mixed batch is sent when it has HK_BATCH blocks or BYTES, a batch of one class when it has CLASS_BYTES.
 * OPENS: a class gets a remote cache of its own after this many of its frees went by mixed batches.
 * MOST_OPEN: no more classes have one, because a thread that frees many classes of other heaps would keep
 * much in remote caches, and its batches of one class would be late; after AGAIN mixed batches, other classes
 * may be the busy ones. DEEP: this many batches in a queue mean that its thread does not come by, so whoever
 * pushes drains the queue. From DEEPER on, whoever pushes waits a little for the heap's lock, because the
 * thread may have lost its processor while it held the lock. The wait ends, because the thread may be
 * suspended for a collector, which may be the thread that frees; then no more batches go into the queue. */
enum {
    BYTES = 64 << 10,
    CLASS_BYTES = 32 << 10,
    OPENS = 32,
    MOST_OPEN = 24,
    AGAIN = 64,
    DEEP = 8,
    DEEPER = 64
};

/* Blocks of one owner and class that are to be sent, at the end of the batch's first `room` places. */
typedef struct hk_remote_class {
    uint32_t entry; /* the owner's id and the class, as in the map */
    _Atomic uint8_t left;
    uint8_t room, misses;
    hk_batch *batch; /* where some are left; else NULL */
} hk_remote_class;

/* ---- Sending -------------------------------------------------------------------------------------- */

/* Returns an empty batch of the calling thread's heap. NULL = no memory. */
static hk_batch *batch_get(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    if (!h->spare) h->spare = hk_batch_of(hk_mpsc_take(&h->empties));
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
    HK_ASSERT(b->from == heap);
    hk_set(&b->bytes, 0);
    atomic_store_explicit(&b->count, 0, memory_order_relaxed);
    b->kind = HK_MIXED;
    return b;
}

static void batch_add(hk_batch *b, void *p, size_t size)
{
    unsigned n = hk_batch_count(b);
    HK_ASSERT(n < HK_BATCH && b->kind == HK_MIXED);
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

/* Sends the blocks in slabs home, linked through themselves; does not write to what is no live block. Returns
 * whether other blocks are left in the batch; if not, the batch is at hand again. */
static HK_NOINLINE bool unload(hak_ctx *to, hk_batch *b)
{
    hk_heap *h = b->from->heap;
    unsigned left = 0;
    for (unsigned i = 0, n = hk_batch_count(b); i < n; i++) {
        void *p = b->blocks[i];
        uint32_t kind = hk_kind_in_window(to, p);
        if (kind < HK_SMALL_CLASSES && hk_block_size(to, p)) {
            hk_sub(&b->bytes, hk_classes[kind].size);
            hk_mpsc_push(&to->heap->strays, p);
        } else b->blocks[left++] = p;
    }
    atomic_store_explicit(&b->count, left, memory_order_relaxed);
    if (left) return true;
    b->link.next = h->spare ? &h->spare->link : NULL;
    h->spare = b;
    return false;
}

/* Sends a batch to the queue of its owner. If `now`, or if the queue is deep, this thread tries to take the
 * batch home itself. The batch is of the calling thread's heap, or of a heap without thread. */
static void send_batch(hak_ctx *to, hk_batch *b, bool now)
{
    hk_heap *h = to->heap;
    const hk_batch *below = hk_batch_of(atomic_load_explicit(&h->queue, memory_order_relaxed));
    unsigned deep = below ? atomic_load_explicit(&below->deep, memory_order_relaxed) + 1u : 0;
    HK_ASSERT(hk_batch_count(b) > 0 && hk_batch_sound(b) && to->role == HK_HEAP);
    count_out(b);
    b->from->heap->sent_to = to;
    bool deeper = HK_UNLIKELY(deep > DEEPER), taken = deeper && hk_heap_soon(to);
    if (deeper && !taken && !unload(to, b)) return;
    atomic_store_explicit(&b->deep, (uint16_t)deep, memory_order_relaxed);
    hk_mpsc_push(&h->queue, &b->link);
    if (taken || (HK_UNLIKELY(now || deep > DEEP) && hk_heap_try(to))) {
        hk_remote_drain(to, false);
        hk_heap_unlock(to);
    }
}

static void send_box(struct hk_remote_mixed *box, bool now)
{
    hk_batch *b = box->batch;
    if (!b || hk_batch_count(b) == 0) return;
    box->batch = NULL;
    /* A fork between the two must not leave the batch in both places. */
    atomic_signal_fence(memory_order_seq_cst);
    send_batch(box->to, b, now);
}

static unsigned class_left(const hk_remote_class *cache)
{
    return atomic_load_explicit(&cache->left, memory_order_relaxed);
}

HK_INLINE void class_set(hk_remote_class *cache, unsigned left)
{
    atomic_store_explicit(&cache->left, (uint8_t)left, memory_order_release);
}

/* The cache has no class while its batch comes or goes, so that a child of a fork puts no block into it. The
 * blocks of that batch are lost in the child. */
static void class_shut(hk_remote_class *cache)
{
    cache->entry = 0;
    atomic_signal_fence(memory_order_seq_cst);
}

static void class_begin(hk_remote_class *cache, hk_batch *b, unsigned room, uint32_t entry)
{
    class_shut(cache);
    cache->room = (uint8_t)room;
    class_set(cache, room);
    cache->batch = b;
    atomic_signal_fence(memory_order_seq_cst);
    cache->entry = entry;
}

static void class_end(hk_remote_class *cache)
{
    uint32_t entry = cache->entry;
    class_shut(cache);
    cache->batch = NULL;
    class_set(cache, 0);
    cache->misses = 0;
    atomic_signal_fence(memory_order_seq_cst);
    cache->entry = entry;
}

static HK_NOINLINE void send_class(const hak_ctx *heap, hk_remote_class *cache)
{
    hk_batch *b = cache->batch;
    uint32_t entry = cache->entry;
    unsigned left = class_left(cache), n = cache->room - left;
    class_end(cache);
    if (!b || n == 0 || !entry) return;
    if (left) memmove(b->blocks, b->blocks + left, n * sizeof(void *));
    hk_set(&b->bytes, n * hk_classes[b->kind].size);
    atomic_store_explicit(&b->count, n, memory_order_relaxed);
    send_batch((hak_ctx *)(void *)hk_extent_address(heap->extent, entry >> 8), b, false);
}

/* Sends off the remote caches of one class; none belongs to a class then. */
static void close_classes(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    for (unsigned i = 0; h->remote && i < HK_REMOTE_CLASSES; i++) {
        send_class(heap, &h->remote[i]);
        h->remote[i].entry = 0;
        h->remote[i].misses = 0;
    }
    h->open_classes = h->mixed_sent = 0;
}

void hk_remote_send(hak_ctx *heap)
{
    for (unsigned i = 0; i < HK_REMOTE_MIXED; i++)
        send_box(&heap->heap->mixed[i], false);
    close_classes(heap);
}

HK_RACY void hk_remote_held(const hak_ctx *heap, size_t *bytes, size_t *blocks)
{
    *bytes = *blocks = 0;
    for (unsigned i = 0; i < HK_REMOTE_MIXED; i++) {
        const hk_batch *b = heap->heap->mixed[i].batch;
        if (!b) continue;
        *bytes += hk_get(&b->bytes);
        *blocks += hk_batch_count(b);
    }
    const hk_remote_class *classes = heap->heap->remote;
    for (unsigned i = 0; classes && i < HK_REMOTE_CLASSES; i++) {
        const hk_batch *b = classes[i].batch;
        if (!b || b->kind >= HK_SMALL_CLASSES) continue;
        size_t n = classes[i].room - class_left(&classes[i]);
        *bytes += n * hk_classes[b->kind].size;
        *blocks += n;
    }
}

HK_RACY void hk_remote_each(const hak_ctx *heap, void (*fn)(void *user, void *p), void *user)
{
    for (unsigned i = 0; i < HK_REMOTE_MIXED; i++) {
        const hk_batch *b = heap->heap->mixed[i].batch;
        for (unsigned k = 0, n = b ? hk_batch_count(b) : 0; k < n; k++)
            fn(user, b->blocks[k]);
    }
    const hk_remote_class *classes = heap->heap->remote;
    for (unsigned i = 0; classes && i < HK_REMOTE_CLASSES; i++) {
        const hk_batch *b = classes[i].batch;
        for (unsigned k = b ? class_left(&classes[i]) : HK_BATCH; k < classes[i].room; k++)
            fn(user, b->blocks[k]);
    }
}

/* ---- At home -------------------------------------------------------------------------------------- */

void hk_free_direct(hak_ctx *shared, const hak_ctx *mine, void *p, size_t n)
{
    for (;;) {
        hak_ctx *owner = hk_owner(shared, p);
        if (owner->role != HK_HEAP) {
            hk_found_wrong(shared, HK_WRONG_BLOCK, p);
            return;
        }
        if (owner == mine) hk_heap_enter(owner);
        else hk_heap_lock(owner);
        bool same = hk_owner(shared, p) == owner;
        if (same && owner != mine && owner->debug & HAK_DEBUG_CHECK) hk_check_free(owner, p, n);
        if (same && owner == mine) hk_block_free(owner, p, n);
        else if (same) hk_block_put_back(owner, p);
        hk_heap_unlock(owner);
        if (same) return;
    }
}

/* ---- Freeing -------------------------------------------------------------------------------------- */

HK_INLINE struct hk_remote_mixed *box_of(hak_ctx *heap, uint32_t id)
{
    return &heap->heap->mixed[(id * 0x9E3779B1u) >> 29];
}
_Static_assert(HK_REMOTE_MIXED == 1 << (32 - 29), "box_of takes three bits");

/* With these constants, no two of 90 classes of one owner share a place. */
HK_INLINE unsigned class_index(uint32_t entry)
{
    return (entry * 0x9E3779B1u) >> 25;
}
_Static_assert(HK_REMOTE_CLASSES == 1 << (32 - 25), "class_index takes seven bits");

static bool classes_make(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    if (h->remote) return true;
    hk_heap_lock(heap);
    hk_remote_class *classes = hk_meta_alloc(heap, HK_REMOTE_CLASSES * sizeof *classes);
    hk_heap_unlock(heap);
    if (!classes) return false;
    memset(classes, 0, HK_REMOTE_CLASSES * sizeof *classes);
    h->remote = classes;
    return true;
}

HK_INLINE void class_put(hk_remote_class *cache, unsigned left, void *p)
{
    HK_ASSERT(left > 0 && left <= cache->room && cache->room <= HK_BATCH);
    cache->batch->blocks[left - 1] = p;
    class_set(cache, left - 1);
}

/* Puts p into the remote cache if that is the one of its owner and class and has room. */
HK_INLINE bool class_takes(const hak_ctx *heap, hk_remote_class *cache, uint32_t entry, void *p)
{
    unsigned left = class_left(cache);
    if (HK_UNLIKELY(cache->entry != entry || !left)) return false;
    class_put(cache, left, p);
    if (HK_UNLIKELY(left == 1)) send_class(heap, cache);
    return true;
}

/* Counts one more freed block of the class. Returns whether the class should get a batch of its own. */
static bool class_due(hak_ctx *heap, uint32_t entry)
{
    hk_heap *h = heap->heap;
    if ((entry & 255) >= HK_TRANSFER_CLASSES || !h->remote) return false;
    hk_remote_class *cache = &h->remote[class_index(entry)];
    if (cache->entry == entry) return true;
    if (cache->misses < OPENS) cache->misses++;
    return cache->misses == OPENS && (cache->entry || h->open_classes < MOST_OPEN);
}

/* Classes with few blocks to send share a batch. false = this one does, or there is no memory. */
static bool free_by_class(hak_ctx *heap, const hak_ctx *owner, uint32_t entry, void *p)
{
    unsigned sc = entry & 255;
    if (owner->extent != heap->extent || !classes_make(heap) || !class_due(heap, entry)) return false;
    hk_remote_class *cache = &heap->heap->remote[class_index(entry)];
    if (cache->entry != entry) {
        if (!cache->entry) heap->heap->open_classes++;
        send_class(heap, cache);
        cache->entry = entry;
    }
    /* Since hk_free_from_heap looked, the block's slab may have moved to a heap for which there is a remote
     * cache. */
    if (HK_UNLIKELY(class_takes(heap, cache, entry, p))) return true;
    hk_batch *b = batch_get(heap);
    if (!b) return false;
    b->kind = (uint16_t)sc;
    unsigned room = (unsigned)hk_min(CLASS_BYTES / hk_classes[sc].size, HK_BATCH);
    for (unsigned i = 0; i < room; i += 8)
        __builtin_prefetch(&b->blocks[i], 1);
    class_begin(cache, b, room, entry);
    class_put(cache, room, p);
    return true;
}

HK_INLINE void send_if_full(hak_ctx *heap, struct hk_remote_mixed *box)
{
    if (HK_LIKELY(hk_batch_count(box->batch) < HK_BATCH && hk_get(&box->batch->bytes) < BYTES)) return;
    send_box(box, false);
    if (++heap->heap->mixed_sent == AGAIN) close_classes(heap);
}

/* Puts p into the mixed batch for this owner. If another owner has the place, sends that batch. It has few
 * blocks, so this thread tries to take it home at once: with many threads, such batches would cost more than
 * the blocks. */
static void free_mixed(hak_ctx *heap, hak_ctx *owner, void *p, size_t size)
{
    struct hk_remote_mixed *box = box_of(heap, owner->owned.id);
    if (HK_UNLIKELY(box->to != owner)) {
        send_box(box, box->batch && hk_batch_count(box->batch) <= HK_BATCH / 2);
        box->to = owner;
    }
    if (HK_UNLIKELY(!box->batch)) box->batch = batch_get(heap);
    if (HK_UNLIKELY(!box->batch || size == 0)) {
        hk_free_direct(heap->whole, heap, p, HAK_NONE);
        return;
    }
    batch_add(box->batch, p, size);
    if (HK_LIKELY(size <= HK_SMALL_MAX)) send_if_full(heap, box);
    else send_box(box, true); /* a block of whole units is not kept waiting */
}

static HK_NOINLINE void free_remote(hak_ctx *heap, hak_ctx *owner, uint32_t entry, void *p)
{
    unsigned kind = entry & 255;
    if (kind < HK_SMALL_CLASSES && free_by_class(heap, owner, entry, p)) return;
    free_mixed(heap, owner, p, kind < HK_SMALL_CLASSES ? hk_classes[kind].size : hk_block_size(owner, p));
}

/* Frees a block of the calling thread's heap. false = its units moved to another heap meanwhile. */
static bool free_own(hak_ctx *heap, void *p, size_t n, const uint32_t *entry)
{
    hk_heap_enter(heap);
    bool own = hk_read(entry) >> 8 == heap->owned.id;
    if (own) hk_block_free(heap, p, n);
    hk_heap_unlock(heap);
    return own;
}

void hk_heap_overflow(hak_ctx *heap, hk_bin *bin, void *p)
{
    hk_heap_enter(heap);
    /* Its slab may have moved to another heap a moment ago. */
    if (hk_kind_in_window(heap, p) != bin->kind) hk_heap_return(heap, bin->kind, p);
    else hk_magazine_overflow(heap, bin, p);
    hk_heap_unlock(heap);
}

/* Frees a block that is not (or no longer) a sample, in a watched unit of the heap's own: to its magazine, as
 * without a profile. As always, the unit may move to another heap meanwhile. */
static bool free_in_watched(hak_ctx *heap, void *p)
{
    uint32_t kind = hk_kind_watched(heap->owned.id, heap->extent, p);
    if (kind >= HK_SMALL_CLASSES) return false;
    hk_bin *bin = hk_bin_of(heap, kind);
    void **top = bin->top;
    if (top >= bin->hi) return false;
    *top = p;
    /* The order matters to a child that is forked between the two stores: see shared/thread_heap.h. */
    atomic_signal_fence(memory_order_release);
    bin->top = top + 1;
    return true;
}

static HK_NOINLINE void free_elsewhere(hak_ctx *ctx, void *p, size_t n)
{
    if (!p) return;
    const hk_extent *e = ctx->extent;
    size_t unit = ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT;
    if (HK_UNLIKELY(unit >= ctx->units)) hk_widen(ctx);
    uint32_t entry = HK_LIKELY(unit < ctx->units) ? hk_read(&e->map[unit]) : 0, id = entry >> 8;
    if (id == ctx->owned.id && !(ctx->checked & HK_CHECKED)) {
        if (HK_UNLIKELY((entry & HK_KIND_MASK) == HK_KIND_WATCHED)) {
            hk_profile_freed(ctx, p);
            if (free_in_watched(ctx, p)) return;
        }
        if (free_own(ctx, p, n, &e->map[unit])) return;
    }
    if (HK_LIKELY(id && id != ctx->owned.id && id - e->first < e->units && !(ctx->checked & HK_CHECKED))) {
        hak_ctx *owner = (hak_ctx *)(void *)hk_extent_address(e, id);
        unsigned kind = entry & 255;
        struct hk_remote_mixed *box = box_of(ctx, id);
        /* This does not read the owner, because the owner's thread writes to those cache lines. */
        if (HK_LIKELY(box->to == owner && kind < HK_SMALL_CLASSES && box->batch && !class_due(ctx, entry))) {
            batch_add(box->batch, p, hk_classes[kind].size);
            send_if_full(ctx, box);
            return;
        }
        if (HK_LIKELY(owner->role == HK_HEAP && owner->whole == ctx->whole)) {
            if (HK_UNLIKELY(kind == HK_KIND_WATCHED)) hk_profile_freed(ctx, p);
            free_remote(ctx, owner, entry, p);
            return;
        }
    }
    hk_profile_freed(ctx, p);
    hak_ctx *owner = hk_owner(ctx, p);
    /* A drawn block does not wait in a batch: from its free on nobody may touch it. */
    bool drawn = hk_guard_in(ctx->space, p);
    if (drawn) hk_guard_freed_by(ctx, p, 0);
    if (owner == ctx || drawn || ctx->checked & HK_CHECKED) hk_free_direct(ctx->whole, ctx, p, n);
    else free_mixed(ctx, owner, p, hk_block_size(owner, p));
}

/* Most blocks go to a remote cache that exists already. This does not read the owner, because the owner's
 * thread writes to those cache lines. A checked heap has no remote caches. */
void hk_free_from_heap(hak_ctx *ctx, void *p, size_t n, uint32_t kind)
{
    hk_remote_class *classes = ctx->heap->remote;
    if (HK_LIKELY(classes)) {
        uint32_t entry = kind ^ ctx->key; /* outside of the window: no remote cache has such blocks */
        if (HK_LIKELY(class_takes(ctx, &classes[class_index(entry)], entry, p))) return;
    }
    free_elsewhere(ctx, p, n);
}

void hk_free_packed_here(hak_ctx *heap, void *p)
{
    hk_heap_enter(heap);
    bool packed = hk_kind_in_window(heap, p) == HK_KIND_PACKED;
    if (HK_LIKELY(packed)) hk_packed_free(heap, p);
    hk_heap_unlock(heap);
    if (HK_UNLIKELY(!packed)) free_elsewhere(heap, p, HAK_NONE);
}
