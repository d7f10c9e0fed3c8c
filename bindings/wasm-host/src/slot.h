/* Slots: the address space of linear memories, and the free ones among them. */
#ifndef HAKMEM_WASM_SLOT_H
#define HAKMEM_WASM_SLOT_H

#include "pages.h"

enum { HK_WASM_SHARDS = 16, HK_WASM_EXTENTS = 4096 };

typedef enum hk_wasm_state { HK_WASM_COLD, HK_WASM_WARM, HK_WASM_LIVE } hk_wasm_state;

typedef struct hk_wasm_slot {
    _Alignas(128) char *base;        /* no cache line shared by two threads' memories */
    _Atomic size_t size;             /* what the guest sees; statistics read it from other threads */
    size_t open;                     /* readable and writable from base on; guard only */
    size_t high;                     /* pages were touched below this since the slot was cold */
    size_t mapped;                   /* from base on a private mapping of the image's file */
    size_t resident;                 /* while warm */
    hak_wasm_tenant *_Atomic tenant; /* while live */
    hak_wasm_image *image;           /* attached to; a reference */
    struct hk_wasm_slot *prev, *next;
    uint64_t epoch; /* of the host when it became warm */
    uint8_t shard;  /* while warm */
    _Atomic uint8_t state;
} hk_wasm_slot;

typedef struct hk_wasm_extent {
    char *reserved;
    size_t reserved_size;
    uintptr_t base; /* of the first slot */
    size_t slots;
    hk_wasm_slot *slot;
    size_t slot_size; /* bytes of the array */
} hk_wasm_extent;

/* Free slots that were used last on some thread, newest first. */
typedef struct hk_wasm_shard {
    _Alignas(128) pthread_mutex_t lock;
    hk_wasm_slot *first, *last;
} hk_wasm_shard;

typedef struct hk_wasm_slots {
    bool guarded;
    size_t slot_bytes, guard_bytes, stride, extent_bytes, warm_limit;
    hk_wasm_pages pages;
    _Alignas(128) _Atomic size_t warm_bytes;
    _Alignas(128) hk_wasm_shard shard[HK_WASM_SHARDS];
    pthread_mutex_t lock; /* of what follows */
    hk_wasm_slot *cold;
    size_t fresh; /* slots of the newest extent that were ever handed out */
    _Atomic size_t extents;
    hk_wasm_extent extent[HK_WASM_EXTENTS];
    _Atomic uint64_t epoch;
} hk_wasm_slots;

/* Threads take turns at the shards, once each. */
size_t hk_wasm_shard_number(void);

int hk_wasm_slots_init(hk_wasm_slots *slots, const hak_wasm_host_options *options);
void hk_wasm_slots_destroy(hk_wasm_slots *slots);

/* The slot that begins at p; NULL = none. */
hk_wasm_slot *hk_wasm_slot_at(const hk_wasm_slots *slots, const void *p);
/* A free slot with `bytes` readable and writable; it reads as the image if it is attached to this one, else
 * as zero. State LIVE, size 0, no tenant. NULL = no address space. */
hk_wasm_slot *hk_wasm_slot_take(hk_wasm_slots *slots, size_t bytes, const hak_wasm_image *image);
/* Cleans the slot and keeps it, warm if the budget allows. */
void hk_wasm_slot_give(hk_wasm_slots *slots, hk_wasm_slot *slot);
/* Makes the first `bytes` readable and writable, and what was beyond them inaccessible. */
int hk_wasm_slot_open(hk_wasm_slots *slots, hk_wasm_slot *slot, size_t bytes);
/* Lets go of the image; what it mapped reads zero. 0 = ok. */
int hk_wasm_slot_detach(hk_wasm_slot *slot);
/* Warm slots that became so before this epoch go cold; with an image, only those attached to it. Returns the
 * bytes given back. */
size_t hk_wasm_slots_cool(hk_wasm_slots *slots, uint64_t before, const hak_wasm_image *image);

/* Every slot that was ever handed out. */
typedef void hk_wasm_slot_fn(void *user, hk_wasm_slot *slot);
void hk_wasm_slots_each(hk_wasm_slots *slots, hk_wasm_slot_fn *fn, void *user);

#endif
