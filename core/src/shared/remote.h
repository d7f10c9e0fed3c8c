/* Blocks freed by another thread than their heap's. They travel in batches of pointers, not by links through
 * the blocks. A thread pushes a full batch to the queue of the blocks' heap, and that heap's thread takes all
 * batches at its next slow path. A batch belongs to the heap that filled it and goes back there when it is
 * empty, so the number of batches follows what is under way. Threads push to these lists with
 * compare-and-swap and take them whole, so there is no ABA. (Message passing after snmalloc, Lietar et al.,
 * ISMM 2019; the batches after BatchIt, Filardo and Parkinson, ISMM 2024.) */
#ifndef HK_REMOTE_H
#define HK_REMOTE_H

#include "shared/thread_heap.h"

enum { HK_BATCH = 124, HK_MIXED = 255 };

struct hk_batch {
    hk_link link;
    hak_ctx *from; /* the heap that it comes back to */
    hk_counter bytes;
    _Atomic uint16_t deep; /* batches below it in the queue, about */
    uint16_t kind;         /* class of all its blocks, in slabs of the owner's window; or HK_MIXED */
    _Atomic uint32_t count;
    void *blocks[HK_BATCH];
};
_Static_assert(sizeof(hk_batch) == 1024, "a batch is sixteen cache lines");

HK_INLINE hk_batch *hk_batch_of(hk_link *link)
{
    return (hk_batch *)(void *)link;
}

HK_INLINE unsigned hk_batch_count(const hk_batch *b)
{
    return atomic_load_explicit(&b->count, memory_order_relaxed);
}

/* Whether a batch of one class has the bytes of its blocks, for assertions. */
HK_INLINE bool hk_batch_sound(const hk_batch *b)
{
    unsigned n = hk_batch_count(b);
    return n <= HK_BATCH && (b->kind == HK_MIXED || (b->kind < HK_SMALL_CLASSES &&
                                                     hk_get(&b->bytes) == n * hk_classes[b->kind].size));
}

/* Frees a block, or NULL, that the fast path of the calling thread's heap could not free. n: the size that a
 * sized free told, or HAK_NONE. kind: hk_kind_in_window(heap, p). */
void hk_free_from_heap(hak_ctx *heap, void *p, size_t n, uint32_t kind);
/* Does the same for a block in a packed unit of the heap's own window, if the heap checks nothing. */
void hk_free_packed_here(hak_ctx *heap, void *p);
/* Frees p, for which the magazine of the calling thread's heap had no room. */
HK_NOINLINE void hk_heap_overflow(hak_ctx *heap, hk_bin *bin, void *p);
/* Frees p under the lock of the heap that owns it, and waits for that lock. mine: the calling thread's heap,
 * or NULL. n: the size told. */
void hk_free_direct(hak_ctx *shared, const hak_ctx *mine, void *p, size_t n);
/* Takes home what is in the queue of a heap whose lock is held. own: the heap is the calling thread's. */
void hk_remote_drain(hak_ctx *heap, bool own);
/* Takes home the blocks of a batch; the heap's lock is held. own: as above. */
void hk_remote_unpack(hak_ctx *heap, hk_batch *b, bool own);
/* Sends off what the heap's remote caches hold. Only the heap's thread calls this, or anybody for a heap
 * without thread. */
void hk_remote_send(hak_ctx *heap);
/* Returns what is in the heap's remote caches. */
HK_RACY void hk_remote_held(const hak_ctx *heap, size_t *bytes, size_t *blocks);
/* Calls fn for each block in the heap's remote caches: freed, not delivered. */
HK_RACY void hk_remote_each(const hak_ctx *heap, void (*fn)(void *user, void *p), void *user);

#endif
