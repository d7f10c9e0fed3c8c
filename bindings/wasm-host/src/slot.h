/* Slots: the address space of linear memories, and the free ones among them. */
#ifndef HAKMEM_WASM_SLOT_H
#define HAKMEM_WASM_SLOT_H

#include "mappings.h"
#include "pages.h"

enum { HKW_SHARDS = 16, HKW_EXTENTS = 4096 };

typedef struct hkw_growth hkw_growth;

/* The content of a linear memory as a file in memory. image.c makes them. */
struct hak_wasm_image {
    hak_wasm_host *host;
    hak_wasm_tenant *tenant; /* who pays; a reference */
    size_t charged;
    hkw_file file;
    size_t size;                        /* of the memory */
    const char *view;                   /* read-only; NULL when size is 0 */
    _Atomic size_t refs;                /* the caller's and one for each slot that is attached */
    size_t attached;                    /* slots; under the lock of attached images */
    _Atomic bool dropped;               /* by the caller: nothing new is attached */
    void (*end)(hak_wasm_image *image); /* with the last reference */
};
static inline void hkw_image_unref(hak_wasm_image *image)
{
    if (atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) == 1) image->end(image);
}

typedef enum hkw_state { HKW_COLD, HKW_WARM, HKW_LIVE } hkw_state;
/* Of a live memory: whether it rests, as a reset left it; its pages are there, are going, are gone. */
typedef enum hkw_rest { HKW_AWAKE, HKW_RESTS, HKW_EMPTYING, HKW_EMPTIED } hkw_rest;

typedef struct hkw_slot {
    _Alignas(128) char *base;        /* no cache line shared by two threads' memories */
    _Atomic size_t size;             /* what the guest sees; statistics read it from other threads */
    size_t open;                     /* readable and writable from base on; guard only */
    size_t high;                     /* pages were touched below this since the slot was cold */
    size_t mapped;                   /* from base on a private mapping of the image's file */
    size_t resident;                 /* while warm */
    size_t tail;                     /* while live: resident beyond the size, and zero; counted as warm */
    hak_wasm_tenant *_Atomic tenant; /* while live */
    hak_wasm_image *image;           /* attached to; a reference. Its thread changes it under attached_lock,
                                        so that others may look there */
    hkw_growth *growth;              /* of those that a profile has seen */
    struct hkw_slot *prev, *next;    /* free: of the shard, or cold; live: of the tenant */
    uint64_t epoch;                  /* of the host when it became warm, or began to rest */
    uint8_t shard;                   /* while warm */
    uint8_t mappings;                /* counted for it */
    bool split; /* flat: an image was here, and what is left of that may not be joined again */
    _Atomic uint8_t state;
    _Atomic uint8_t rest; /* hkw_rest */
} hkw_slot;

typedef struct hkw_extent {
    char *reserved;
    size_t reserved_size;
    uintptr_t base; /* of the first slot */
    size_t slots;
    hkw_slot *slot;
    size_t slot_size; /* bytes of the array */
} hkw_extent;

/* Free slots that were used last on some thread, newest first. */
typedef struct hkw_shard {
    _Alignas(128) pthread_mutex_t lock;
    hkw_slot *first, *last;
    _Atomic size_t count;
} hkw_shard;

typedef struct hkw_slots {
    bool guarded;
    size_t slot_bytes, guard_bytes, stride, extent_bytes, warm_limit;
    hkw_pages pages;
    hkw_mappings mappings;
    pthread_mutex_t attached_lock; /* of `image` of all slots */
    _Atomic size_t idle;           /* mappings of free slots that can be given back */
    _Atomic size_t resting;        /* memories in the state HKW_RESTS */
    _Alignas(128) _Atomic size_t warm_bytes;
    _Alignas(128) hkw_shard shard[HKW_SHARDS];
    pthread_mutex_t lock; /* of what follows */
    hkw_slot *cold;
    size_t fresh; /* slots of the newest extent that were ever handed out */
    _Atomic size_t extents;
    hkw_extent extent[HKW_EXTENTS];
    _Atomic uint64_t epoch;
} hkw_slots;

/* Threads take turns at the shards, once each. */
size_t hkw_shard_number(void);

int hkw_slots_init(hkw_slots *slots, const hak_wasm_host_options *options);
void hkw_slots_destroy(hkw_slots *slots);

/* The slot that begins at p; NULL = none. */
hkw_slot *hkw_slot_at(const hkw_slots *slots, const void *p);
/* A free slot with `bytes` readable and writable; it reads as the image if it is attached to this one, else
 * as zero. State LIVE, size 0, no tenant. NULL = no address space. */
hkw_slot *hkw_slot_take(hkw_slots *slots, size_t bytes, const hak_wasm_image *image);
/* Cleans the slot and keeps it, warm if the budget allows. */
void hkw_slot_give(hkw_slots *slots, hkw_slot *slot);
/* Makes the first `bytes` readable and writable, and what was beyond them inaccessible. */
int hkw_slot_open(hkw_slots *slots, hkw_slot *slot, size_t bytes);
/* Room for an image of this size in the count of mappings, before it is mapped; the slot's `mapped` says what
 * there is. 0 = ok; -1 = there are too many. */
int hkw_slot_expect(hkw_slots *slots, hkw_slot *slot, size_t mapped);
/* The slot is attached to this image, of which it takes a reference, in place of the one before; NULL = none. */
void hkw_slot_attach(hkw_slots *slots, hkw_slot *slot, hak_wasm_image *image);
/* What the slot has of its image's pages: an equal part for each slot that is attached. [any thread] */
size_t hkw_slot_share(hkw_slots *slots, const hkw_slot *slot);
/* Lets go of the image; what it mapped reads zero. 0 = ok. */
int hkw_slot_detach(hkw_slots *slots, hkw_slot *slot);
/* A memory shrank to this size, a multiple of pages; from there to `end` so many bytes are resident, and
 * zero. They stay if the warm budget has room for them. */
void hkw_slot_shrunk(hkw_slots *slots, hkw_slot *slot, size_t size, size_t end, size_t resident);
/* Before a memory grows by so many bytes, which may be some of those. */
void hkw_slot_grows(hkw_slots *slots, hkw_slot *slot, size_t bytes);
/* n more mappings of this host, for which free slots give theirs back. false = there are too many. */
bool hkw_slots_map(hkw_slots *slots, size_t n);
/* Warm slots that became so before this epoch go cold; with an image, only those attached to it. Returns the
 * bytes given back. */
size_t hkw_slots_cool(hkw_slots *slots, uint64_t before, const hak_wasm_image *image);

/* ---- rest.c ---- */

/* The slot, which is live, rests from now on. */
void hkw_slot_rest(hkw_slots *slots, hkw_slot *slot);
/* Ends the rest, before anything is done with the memory. Waits while its pages go. */
void hkw_slot_wake(hkw_slots *slots, hkw_slot *slot);
/* Memories that rest since an epoch before this one give their pages back. Returns the bytes. */
size_t hkw_slots_empty(hkw_slots *slots, uint64_t before);

/* How many bytes from start to end are address space of slots. [any thread] */
size_t hkw_slots_within(const hkw_slots *slots, uintptr_t start, uintptr_t end);

/* Every slot that was ever handed out. */
typedef void hkw_slot_fn(void *user, hkw_slot *slot);
void hkw_slots_each(hkw_slots *slots, hkw_slot_fn *fn, void *user);

#endif
