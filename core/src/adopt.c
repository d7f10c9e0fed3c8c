/* Slabs of dead threads. A thread that ends without hak_ctx_thread_done leaves a heap to the thread register
 * that it had, and nobody can tell whether a new thread runs with the same register. So the heap itself stays
 * with the register; only its slabs and runs, which are under the lock, go to the next new heap. Blocks of
 * theirs in the old heap's magazines are live blocks as any other: handed out, or sent home when flushed. */
#include "heap.h"
#include "remote.h"
#include "slab.h"
#include "stock.h"

enum { LOOKS = 16 }; /* questions to the OS for each new heap */

/* false = no memory for the class of the slab. */
static bool move(hak_ctx *from, hak_ctx *to, hk_slab *s)
{
    bool small = s->kind < HK_SMALL_CLASSES;
    if (small && !hk_bin_of(to, s->kind)->slots && !hk_class_open(to, s->kind)) return false;
    size_t blocks = s->used, bytes = small ? blocks * hk_classes[s->kind].size : hk_kind_size(s->kind);
    if (small) hk_slab_leave(from, s);
    hk_units_move(from, to, s);
    hk_count_out(from, bytes, blocks);
    hk_count_in(to, bytes, blocks);
    if (small) hk_slab_adopt(to, s);
    return true;
}

/* Both locks are held. */
static void rob(hak_ctx *from, hak_ctx *to)
{
    if (!hk_bins_make(to)) return;
    from->heap->robbed = true;
    from->heap->thread_id = 0;
    hk_remote_drain(from, false);
    hk_stock_flush(from);
    for (hk_unit_id id = from->all, next; id; id = next) {
        hk_slab *s = hk_slab_at(from->space, id);
        next = s->all_next;
        if (s->kind < HK_BINS && !move(from, to, s)) return;
    }
}

/* Where *looks are left: asks the OS. The heap's lock is held. */
static bool died(const hak_ctx *heap, unsigned *looks)
{
    const hak_os *os = &heap->space->os;
    uint64_t id = heap->heap->thread_id;
    if (!heap->heap->thread || !id || !os->thread_alive || *looks == 0) return false;
    --*looks;
    return !os->thread_alive(os->user, id);
}

void hk_heap_rob(hak_ctx *heap)
{
    hak_ctx *root = heap->heap->root;
    hk_team *t = root->team;
    unsigned looks = LOOKS;
    hk_lock_take(&t->lock);
    hak_ctx *first = t->sought ? t->sought : hk_heaps(root), *other = first;
    hk_lock_drop(&t->lock);
    do {
        if (other != heap && hk_heap_try(other)) {
            if (died(other, &looks)) {
                hk_heap_lock(heap);
                rob(other, heap);
                hk_heap_unlock(heap);
            }
            hk_heap_unlock(other);
        }
        other = other->heap->next ? other->heap->next : hk_heaps(root);
    } while (looks && other != first);
    hk_lock_take(&t->lock);
    t->sought = other;
    hk_lock_drop(&t->lock);
}

void hk_heap_return(hak_ctx *heap, void *p)
{
    for (;;) {
        hak_ctx *owner = hk_owner(heap, p);
        if (owner == heap) {
            hk_remote_home(heap, p);
            return;
        }
        hk_heap_lock(owner);
        bool home = hk_remote_home(owner, p);
        hk_heap_unlock(owner);
        if (home) return;
    }
}
