/* What a thread remembers of its allocations with tokens: the label and the bin that a token and a size had.
 * The next allocation with both takes a block of that bin, and looks up neither the label of the token nor the
 * class of the size. A bin that is no longer the one for its size has no block at hand (hakmem/inline.h), so
 * nobody need forget a slot. The table has pages of its own, from the thread's first misses until its heap
 * ends. */
#ifndef HKS_PRELOAD_TOKEN_SLOTS_H
#define HKS_PRELOAD_TOKEN_SLOTS_H

#include <hakmem/inline.h>

#include <stdint.h>

typedef struct hks_token_slot {
    size_t token; /* 0 = the slot is empty */
    size_t n;
    hak_inline_bin *bin;
    size_t label;
} hks_token_slot;

enum { HKS_TOKEN_SLOTS = 256 };

/* Two slots beside each other serve the same allocations: see hks_token_second(). A thread that remembers
 * nothing has a table that nothing is found in. */
extern _Thread_local const hks_token_slot *hks_token_slots
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the slot of an allocation. The factor takes tokens apart that are numbers in sequence, and not
 * hashes; it is one that a compiler multiplies by. Sizes that are 4 bytes apart have other slots. */
static inline const hks_token_slot *hks_token_slot_of(size_t n, size_t token)
{
    const size_t mask = (HKS_TOKEN_SLOTS - 1) * sizeof(hks_token_slot), apart = 0x1A35;
    return (const hks_token_slot *)(const void *)((const char *)hks_token_slots +
                                                  ((apart * token + 8 * n) & mask));
}

/* Forgets all, where this thread's heap ends or is not to be used for now. */
void hks_token_forget(void) __attribute__((visibility("hidden")));

/* Returns the other slot of two that serve the same allocations. Tables begin at a multiple of both. */
static inline const hks_token_slot *hks_token_second(const hks_token_slot *s)
{
    return (const hks_token_slot *)((uintptr_t)s ^ sizeof *s);
}

/* Remembers an allocation that was not found. */
void hks_token_remember(const hks_token_slot *now) __attribute__((visibility("hidden")));

#endif
