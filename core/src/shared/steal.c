/* Takes slabs of dead threads. A thread that ends without hak_ctx_thread_done leaves its heap to the thread
 * register that it had, and a new thread may run with the same register at any time. So the heap stays with
 * the register; only its slabs and runs, which are under the lock, go to the next new heap. Their blocks in
 * the old heap's magazines are treated like live blocks: a new owner of the register hands them out, or a
 * flush sends them home. */
#include "heap/bins.h"
#include "heap/metadata.h"
#include "heap/refill.h"
#include "shared/remote.h"
#include "shared/transfer.h"

enum {
    STEAL_LOOKS = 16, /* questions to the OS for each new heap */
    AWAY_NS = 250000  /* shifted by `patience`: a thread that waits for a processor comes back */
};

/* The magazines of `from` may hold blocks of the slabs that it loses; its thread forwards them when it comes
 * back. */
static void note_stolen(hak_ctx *from)
{
    hk_heap *h = from->heap;
    h->stolen_from = h->lost_slabs = true;
    if (!h->away) h->away = 1;
}

/* Moves a slab or a run, with both locks held; the slab must be in no bin. */
static void hand_over(hak_ctx *from, hak_ctx *to, hk_slab *s)
{
    bool small = s->kind < HK_SMALL_CLASSES;
    HK_ASSERT(hk_lock_held(&from->heap->lock) && hk_lock_held(&to->heap->lock) && s->kind < HK_BINS);
    size_t blocks = s->used, bytes = small ? blocks * hk_classes[s->kind].size : hk_kind_size(s->kind);
    if (small) hk_slab_leave(from, s);
    hk_units_move(from, to, s);
    hk_count_out(from, bytes, blocks);
    hk_count_in(to, bytes, blocks);
}

/* false = no memory for the class of the slab. */
static bool move_slab(hak_ctx *from, hak_ctx *to, hk_slab *s)
{
    bool small = s->kind < HK_SMALL_CLASSES;
    bool open = !small || (hk_bin_of(to, s->kind)->slots && !hk_packed_keeps(to, s->kind));
    if (!open && !hk_class_open(to, s->kind)) return false;
    hand_over(from, to, s);
    if (small) hk_slab_take_over(to, s);
    return true;
}

/* Both locks are held. */
static void reclaim(hak_ctx *from, hak_ctx *to)
{
    if (!hk_bins_make(to)) return;
    from->heap->thread_id = 0;
    hk_remote_drain(from, false);
    hk_transfer_flush(from);
    note_stolen(from);
    for (hk_unit_id id = from->owned.all, next; id; id = next) {
        hk_slab *s = hk_slab_at(from->space, id);
        next = s->all_next;
        if (s->kind < HK_BINS && !move_slab(from, to, s)) return;
    }
}

/* Asks the OS, as long as *looks are left. The heap's lock is held. */
static bool owner_died(const hak_ctx *heap, unsigned *looks)
{
    const hak_os *os = &heap->space->os;
    uint64_t id = heap->heap->thread_id;
    if (hk_heap_unowned(heap) || !id || !os->thread_alive || *looks == 0) return false;
    --*looks;
    return !os->thread_alive(os->user, id);
}

void hk_heap_reclaim(hak_ctx *heap)
{
    hak_ctx *shared = heap->whole;
    hk_heaps *heaps = shared->heaps;
    unsigned looks = STEAL_LOOKS;
    hk_lock_take(&heaps->lock);
    hak_ctx *first = heaps->sought ? heaps->sought : hk_heaps_first(shared), *other = first;
    hk_lock_drop(&heaps->lock);
    hk_heap_lock(heap);
    do {
        if (other != heap && hk_heap_try(other)) {
            if (owner_died(other, &looks)) reclaim(other, heap);
            hk_heap_unlock(other);
        }
        other = other->heap->next ? other->heap->next : hk_heaps_first(shared);
    } while (looks && other != first);
    hk_heap_unlock(heap);
    hk_lock_take(&heaps->lock);
    heaps->sought = other;
    hk_lock_drop(&heaps->lock);
}

/* A borrowed block is freed to its own class, so each borrowing costs a slow path. After MOST borrowed
 * blocks, a class therefore gets a slab, or a block, of its own. A tick of the thread lets larger classes
 * borrow again. */
unsigned hk_borrow_class(hak_ctx *heap, unsigned sc)
{
    enum { MOST = 32 };
    uint8_t *borrowed = &heap->heap->borrowed[sc];
    unsigned size = hk_classes[sc].size, aligned = size % 16 == 0;
    bool borrows =
        !hk_class_has_free(heap, hk_bin_of(heap, sc)) && *borrowed < MOST && !(heap->checked & HK_CHECKED);
    for (unsigned c = sc + 1; borrows && c < HK_SMALL_CLASSES; c++) {
        if (hk_classes[c].size > size + HK_ROOM(size)) break;
        if ((aligned && hk_classes[c].size % 16) || hk_packed_keeps(heap, c)) continue;
        if (!hk_class_has_free(heap, hk_bin_of(heap, c))) continue;
        ++*borrowed;
        return c;
    }
    *borrowed = 0;
    return sc;
}

void hk_borrow_anew(hak_ctx *heap)
{
    memset(heap->heap->borrowed + HK_KIB_CLASSES, 0, HK_SMALL_CLASSES - HK_KIB_CLASSES);
}

/* Returns whether the heap's thread, if it has one, is away: others have brought its blocks home for a
 * while. */
static bool away(const hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    if (hk_heap_unowned(heap)) return true;
    if (h->away <= hk_get(&heap->live_bytes) / 32 + (32 << 10)) return false;
    uint64_t now = heap->space->os.clock(heap->space->os.user);
    if (!h->away_ns || now < h->away_ns) h->away_ns = now;
    return now - h->away_ns >= (uint64_t)AWAY_NS << h->patience;
}

/* Returns whether the heap has more free memory than a busy heap needs, after its thread or others freed
 * much. */
static bool surplus(const hak_ctx *heap)
{
    size_t live = hk_get(&heap->live_bytes);
    return hk_get(&heap->account.committed) > live + live / 8 + (256 << 10);
}

/* Chooses the class's oldest slab with free blocks; if the thread is away, the current one too. */
static hk_slab *take_slab(hak_ctx *heap, unsigned sc, bool gone)
{
    const hk_bin *bin = hk_bin_of(heap, sc);
    hk_slab *s = bin->first ? hk_slab_at(heap->space, bin->first) : gone ? bin->slab : NULL;
    return s && s->used < hk_slab_capacity(heap, s) ? s : NULL;
}

static hk_slab *take_from(hak_ctx *from, hak_ctx *heap, unsigned sc)
{
    if (from == heap || heap->checked & HK_CHECKED || !hk_heap_try(from)) return NULL;
    hk_remote_drain(from, false);
    hk_slab *s = NULL;
    bool gone = away(from);
    /* This comes first, because it may empty slabs, which are then gone. */
    if (gone) hk_transfer_flush(from);
    /* Blocks in the transfer cache are handed out from there: they must not be of slabs that move. */
    if (gone || (surplus(from) && !hk_transfer_has(from, sc))) s = take_slab(from, sc, gone);
    if (s) {
        note_stolen(from);
        hand_over(from, heap, s);
    }
    hk_heap_unlock(from);
    return s;
}

hk_slab *hk_heap_steal(hak_ctx *heap, unsigned sc)
{
    enum { ASKS = 4 };
    hk_heap *h = heap->heap;
    hk_slab *s = h->sent_to ? take_from(h->sent_to, heap, sc) : NULL;
    for (unsigned i = 0; !s && i < ASKS; i++)
        s = take_from(hk_heap_after(heap), heap, sc);
    return s;
}
