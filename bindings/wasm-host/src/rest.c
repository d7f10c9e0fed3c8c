/* Memories that rest: a reset made them equal to their image, and nobody writes to them until they are
 * woken. Their pages can go meanwhile, and what is read then is the same. The owner's thread lets them
 * rest and wakes them, a tick on another thread takes their pages: whoever changes `rest` first has the
 * slot. */
#define _GNU_SOURCE
#include "slot.h"

#include <sched.h>

void hkw_slot_rest(hkw_slots *s, hkw_slot *slot)
{
    slot->epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->resting, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->rest, HKW_RESTS, memory_order_release);
}

void hkw_slot_wake(hkw_slots *s, hkw_slot *slot)
{
    uint8_t rest = atomic_load_explicit(&slot->rest, memory_order_relaxed);
    while (rest != HKW_AWAKE) {
        if (rest == HKW_EMPTYING) {
            sched_yield();
            rest = atomic_load_explicit(&slot->rest, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&slot->rest, &rest, HKW_AWAKE, memory_order_acquire,
                                                         memory_order_relaxed)) {
            if (rest == HKW_RESTS) atomic_fetch_sub_explicit(&s->resting, 1, memory_order_relaxed);
            return;
        }
    }
}

struct sweep {
    hkw_slots *slots;
    uint64_t before;
    size_t bytes;
};

static void let_go(struct sweep *sweep, hkw_slot *slot)
{
    hkw_slots *s = sweep->slots;
    const size_t end = slot->high > slot->mapped ? slot->high : slot->mapped;
    const size_t resident = end ? hkw_pages_resident(&s->pages, slot->base, end) : 0;
    if (resident == 0 || !hkw_pages_return(slot->base, end)) return;
    sweep->bytes += resident;
    slot->high = 0;
    hkw_slot_grows(s, slot, SIZE_MAX);
}

static void empty_slot(void *user, hkw_slot *slot)
{
    struct sweep *sweep = user;
    uint8_t rest = atomic_load_explicit(&slot->rest, memory_order_relaxed);
    if (rest != HKW_RESTS ||
        !atomic_compare_exchange_strong_explicit(&slot->rest, &rest, HKW_EMPTYING, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    const bool long_enough = slot->epoch < sweep->before;
    if (long_enough) {
        let_go(sweep, slot);
        atomic_fetch_sub_explicit(&sweep->slots->resting, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&slot->rest, long_enough ? HKW_EMPTIED : HKW_RESTS, memory_order_release);
}

size_t hkw_slots_empty(hkw_slots *s, uint64_t before)
{
    struct sweep sweep = {s, before, 0};
    if (atomic_load_explicit(&s->resting, memory_order_relaxed)) hkw_slots_each(s, empty_slot, &sweep);
    return sweep.bytes;
}
