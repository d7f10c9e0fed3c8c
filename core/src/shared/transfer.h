/* The transfer cache of a heap keeps batches of one class that came home, whole and under the heap's lock,
 * until an empty magazine of the class takes their pointers. So the heap reuses a block that another thread
 * freed without a look at its bitmap. The accounts count these blocks as under way until they are in a
 * magazine or a bitmap.
 */
#ifndef HK_TRANSFER_H
#define HK_TRANSFER_H

#include "shared/thread_heap.h"

/* Classes of up to 2 KiB. */
enum { HK_TRANSFER_CLASSES = 90 };

typedef struct hk_transfer_class {
    hk_link *batches;
    uint16_t held, most; /* batches */
    bool over;           /* there was no room since it grew */
} hk_transfer_class;

typedef struct hk_transfer {
    hk_counter bytes;
    uint64_t since_ns; /* when a tick emptied it, or first saw it */
    hk_transfer_class classes[HK_TRANSFER_CLASSES];
} hk_transfer;

/* Takes a batch that comes home; the heap's lock is held. Returns false if the batch is not of one class, or
 * the cache has enough. */
bool hk_transfer_put(hak_ctx *heap, hk_batch *b);
/* Whether the heap has a transfer cache. */
HK_INLINE bool hk_transfer_any(const hak_ctx *heap)
{
    return atomic_load_explicit(&heap->heap->transfer, memory_order_relaxed) != NULL;
}
/* Fills the magazine of a class, if it is empty and there are blocks. The heap's thread calls this. */
void hk_transfer_refill(hak_ctx *heap, unsigned sc);
/* All of it to the slabs. */
void hk_transfer_flush(hak_ctx *heap);
/* Whether any are kept of the class. */
bool hk_transfer_has(const hak_ctx *heap, unsigned sc);
/* The same at the end of a period. */
void hk_transfer_tick(hak_ctx *heap, uint64_t now_ns);
/* Makes one of the heaps give up its transfer cache, when a heap, whose lock is held, is about to grow by
 * fresh pages. */
void hk_transfer_recall(hak_ctx *heap);
/* Calls fn for each block. */
void hk_transfer_each(const hak_ctx *heap, void (*fn)(void *user, void *p), void *user);

#endif
