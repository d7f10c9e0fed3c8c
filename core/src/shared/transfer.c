#include "shared/transfer.h"

#include "heap/magazine.h"
#include "heap/metadata.h"
#include "heap/slab.h"
#include "shared/remote.h"

enum { FREE_BYTES = 1 << 20 };

static hk_transfer *transfer_seen(const hak_ctx *heap)
{
    return atomic_load_explicit(&heap->heap->transfer, memory_order_acquire);
}

static hk_transfer *transfer_of(hak_ctx *heap)
{
    hk_transfer *t = transfer_seen(heap);
    if (t) return t;
    t = hk_meta_alloc(heap, sizeof *t);
    if (!t) return NULL;
    memset(t, 0, sizeof *t);
    atomic_store_explicit(&heap->heap->transfer, t, memory_order_release);
    return t;
}

/* Some may be of slabs that have moved to another heap since they were sent. */
static bool all_here(const hak_ctx *heap, const hk_batch *b)
{
    for (unsigned i = 0, n = hk_batch_count(b); i < n; i++)
        if (hk_kind_in_window(heap, b->blocks[i]) != b->kind) return false;
    return true;
}

/* All classes together keep at most seven eighths of the blocks outside bitmaps, and FREE_BYTES. Blocks of
 * slabs that moved to another heap cannot be handed out from here, and a heap without magazines takes none.
 */
bool hk_transfer_put(hak_ctx *heap, hk_batch *b)
{
    if (b->kind >= HK_TRANSFER_CLASSES || heap->heap->stolen_from || !heap->magazines.cap ||
        hk_slab_returns(heap, b->kind))
        return false;
    if (HK_UNLIKELY(heap->heap->lost_slabs) && !all_here(heap, b)) return false;
    hk_transfer *t = transfer_of(heap);
    if (!t) return false;
    hk_transfer_class *kept = &t->classes[b->kind];
    if (kept->held == kept->most) {
        kept->over = true;
        return false;
    }
    size_t more = hk_get(&b->bytes);
    size_t live = hk_get(&heap->live_bytes);
    if (hk_get(&t->bytes) + more > live - live / 8 + FREE_BYTES) return false;
    HK_ASSERT(hk_lock_held(&heap->heap->lock) && hk_batch_sound(b));
    hk_add(&t->bytes, more);
    kept->held++;
    b->link.next = kept->batches;
    kept->batches = &b->link;
    return true;
}

/* A class that is short of blocks after it had too many keeps more next time. So a thread that does not
 * allocate keeps nothing. */
static void grow(hk_transfer_class *kept)
{
    if (kept->over && kept->most < UINT16_MAX / 2) kept->most = (uint16_t)(kept->most ? kept->most * 2 : 1);
    kept->over = false;
}

void hk_transfer_refill(hak_ctx *heap, unsigned sc)
{
    hk_transfer *t = transfer_seen(heap);
    hk_bin *bin = hk_bin_of(heap, sc);
    /* Without slots, or with those of packed blocks: batches of slabs that were taken over, of a class that this heap
     * packs. */
    if (!t || sc >= HK_TRANSFER_CLASSES || !bin->slots || bin->top != hk_bin_low(bin)) return;
    if (HK_UNLIKELY(hk_packed_keeps(heap, sc))) return;
    hk_transfer_class *kept = &t->classes[sc];
    if (!kept->batches) {
        grow(kept);
        return;
    }
    /* The magazine was not full since it was empty, so the thread frees less than it allocates. */
    bool all = bin->swings & HK_EMPTIED;
    bin->swings |= HK_EMPTIED;
    if (all) hk_magazine_grow(heap, bin);
    bin->swings |= HK_EMPTIED;
    hk_batch *b = hk_batch_of(kept->batches);
    unsigned count = hk_batch_count(b), n = all ? bin->cap : hk_refill_of(bin);
    if (n > count) n = count;
    count -= n;
    HK_ASSERT(hk_batch_sound(b) && b->kind == sc && n > 0 && n <= hk_row_of(bin)->room);
    HK_ASSERT(kept->held > 0 && hk_get(&t->bytes) >= n * hk_classes[sc].size);
    hk_blocks_copy(bin->slots, b->blocks + count, n);
    hk_bin_lowest(bin);
    bin->top = bin->slots + n;
    size_t bytes = n * hk_classes[sc].size;
    hk_sub(&t->bytes, bytes);
    hk_add(&heap->heap->in_bytes, bytes);
    hk_add(&heap->heap->in_blocks, n);
    hk_sub(&b->bytes, bytes);
    atomic_store_explicit(&b->count, count, memory_order_relaxed);
    /* What the next refill takes; other threads wrote it. */
    for (unsigned i = 0; i < n && i < count; i += 8)
        __builtin_prefetch(&b->blocks[count - 1 - i]);
    if (count) return;
    kept->batches = b->link.next;
    kept->held--;
    hk_mpsc_push(&b->from->heap->empties, &b->link);
}

void hk_transfer_flush(hak_ctx *heap)
{
    hk_transfer *t = transfer_seen(heap);
    if (!t || hk_get(&t->bytes) == 0) return;
    hk_set(&t->bytes, 0);
    for (unsigned sc = 0; sc < HK_TRANSFER_CLASSES; sc++) {
        hk_transfer_class *kept = &t->classes[sc];
        hk_link *at = kept->batches;
        kept->batches = NULL;
        kept->held = 0;
        kept->most /= 2;
        for (hk_link *next; at; at = next) {
            next = at->next;
            hk_remote_unpack(heap, hk_batch_of(at), false);
        }
    }
}

bool hk_transfer_has(const hak_ctx *heap, unsigned sc)
{
    const hk_transfer *t = transfer_seen(heap);
    return t && sc < HK_TRANSFER_CLASSES && t->classes[sc].batches;
}

void hk_transfer_tick(hak_ctx *heap, uint64_t now_ns)
{
    hk_transfer *t = transfer_seen(heap);
    if (!t || (now_ns >= t->since_ns && now_ns - t->since_ns < hk_get(&heap->space->purge_ns))) return;
    if (t->since_ns) hk_transfer_flush(heap);
    t->since_ns = now_ns;
}

void hk_transfer_recall(hak_ctx *heap)
{
    enum { LOOKS = 8, LEAST = 256 << 10 };
    for (unsigned i = 0; i < LOOKS; i++) {
        hak_ctx *other = hk_heap_after(heap);
        hk_transfer *t = transfer_seen(other);
        if (!t || hk_get(&t->bytes) < LEAST || (other != heap && !hk_heap_try(other))) continue;
        hk_transfer_flush(other);
        if (other != heap) hk_heap_unlock(other);
        return;
    }
}

void hk_transfer_each(const hak_ctx *heap, void (*fn)(void *user, void *p), void *user)
{
    const hk_transfer *t = transfer_seen(heap);
    if (!t || hk_get(&t->bytes) == 0) return;
    for (unsigned sc = 0; sc < HK_TRANSFER_CLASSES; sc++)
        for (hk_link *at = t->classes[sc].batches; at; at = at->next) {
            const hk_batch *b = hk_batch_of(at);
            for (unsigned k = 0, n = hk_batch_count(b); k < n; k++)
                fn(user, b->blocks[k]);
        }
}
