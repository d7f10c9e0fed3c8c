/* Tenants, their accounts, and hosts. */
#ifndef HAKMEM_WASM_TENANT_H
#define HAKMEM_WASM_TENANT_H

#include "slot.h"

/* Numbers of a module, in the order of hak_wasm_module_limits. */
typedef enum hkw_module_number {
    HKW_MODULE_BYTES,
    HKW_MODULE_TYPES,
    HKW_MODULE_ARITY,
    HKW_MODULE_IMPORTS,
    HKW_MODULE_FUNCTIONS,
    HKW_MODULE_GLOBALS,
    HKW_MODULE_EXPORTS,
    HKW_MODULE_SEGMENTS,
    HKW_MODULE_LOCALS,
    HKW_MODULE_BODY,
    HKW_MODULE_BLOCKS,
    HKW_MODULE_DEPTH,
    HKW_MODULE_RANGES,
    HKW_MODULE_NUMBERS
} hkw_module_number;

typedef struct hkw_profile hkw_profile;
void hkw_profile_delete(hkw_profile *profile);

/* A counter with a limit; those of the parents count too. What is taken is used, or reserved by somebody who
 * does not know yet whether all parents have room. */
typedef struct hkw_account {
    _Atomic size_t taken, used, peak, limit;
    _Atomic uint64_t refused;
} hkw_account;

typedef enum hkw_counted { HKW_BYTES, HKW_INSTANCES, HKW_ACCOUNTS } hkw_counted;

struct hak_wasm_tenant {
    char name[48];
    hak_wasm_host *host;
    hak_wasm_tenant *parent;
    hak_quota *quota;          /* of those with children */
    _Atomic size_t heap_limit; /* hard or soft; 0 = none */
    hkw_account account[HKW_ACCOUNTS];
    _Atomic size_t module_limit[HKW_MODULE_NUMBERS]; /* 0 = none */
    _Atomic uint64_t steps;                          /* of a call; 0 = no limit */
    _Atomic size_t own_bytes, own_charged, own_images, own_memories, own_instances;
    _Atomic size_t refs;   /* one for the context, each memory, image, instance, child */
    hak_wasm_tenant *next; /* retired, or spare */
    size_t committed;      /* while spare, by the last look */
    unsigned closes;       /* of tenants in this context */
    uint64_t epoch;        /* of the host when it became spare */
    bool listed;           /* among the retired of the host */
    bool closed;           /* under lock, like the rest */
    size_t blocks;         /* live, or fewer: frees that the context drops are counted too */
    uint64_t failures;
    size_t heap_peak;             /* as a report has told it */
    size_t at_hand;               /* bytes that the context kept of tenants before, and counts in its peak */
    hak_ctx *ctx;                 /* NULL = gone */
    hkw_profile *_Atomic profile; /* NULL = there was never one */
    pthread_mutex_t lock;         /* contexts are for one thread at a time */
    pthread_mutex_t memories_lock;
    hkw_slot *memories; /* live ones, under that lock */
};

typedef struct hkw_spares {
    _Alignas(128) pthread_mutex_t lock;
    hak_wasm_tenant *first;
    unsigned count;
} hkw_spares;

struct hak_wasm_host {
    hkw_slots slots;
    hak_space *space;
    hak_wasm_tenant *root;
    hak_policy *policy; /* NULL = none */
    uint64_t decay_ns;
    _Atomic uint64_t decay_at;
    _Atomic size_t image_bytes;
    pthread_mutex_t lock;
    hak_wasm_tenant *retired; /* tenants with survivors, under lock */
    hkw_spares spare[HKW_SHARDS];
};

extern const char *const hkw_label_names[HAK_WASM_LABELS];

/* The tenant that allocations of this thread are for. */
hak_wasm_tenant *hkw_tenant_current(hak_wasm_host *host);
void hkw_tenant_unref(hak_wasm_tenant *tenant);
/* Unlocks after blocks were freed: a closed tenant goes with its last one. */
void hkw_tenant_unlock(hak_wasm_tenant *tenant);
/* For one that nobody refers to. False: a block of its lives after all, the last one takes it along. */
bool hkw_tenant_end(hak_wasm_tenant *tenant);
/* The tenant's struct alone, for the end of the host. */
void hkw_tenant_release(hak_wasm_tenant *tenant);

void hkw_spares_init(hak_wasm_host *host);
void hkw_spares_destroy(hak_wasm_host *host);
/* Keeps a closed tenant that nobody refers to and whose context seems to be empty; false = it is not kept. */
bool hkw_spare_give(hak_wasm_tenant *tenant);
/* A child of the host's tenant, as new but for name, limits and what its context has committed. NULL = there
 * is none, or a heap limit holds. */
hak_wasm_tenant *hkw_spare_take(hak_wasm_host *host, const hak_wasm_limits *limits);
/* Ends spares that became so before this epoch. Returns their bytes. */
size_t hkw_spares_drop(hak_wasm_host *host, uint64_t before);

/* Room for n more with the tenant and all of its parents, for a moment: others wait for hkw_keep or
 * hkw_cancel. False = over a limit, which counts as refused. */
bool hkw_reserve(hak_wasm_tenant *tenant, hkw_counted what, size_t n);
/* What was reserved is used, until hkw_uncharge. */
void hkw_keep(hak_wasm_tenant *tenant, hkw_counted what, size_t n);
void hkw_cancel(hak_wasm_tenant *tenant, hkw_counted what, size_t n);
void hkw_uncharge(hak_wasm_tenant *tenant, hkw_counted what, size_t n);

/* Takes n from the number, or all that is there; returns how much that was. */
size_t hkw_lower(_Atomic size_t *number, size_t n);

/* Committed bytes of its context alone. Under the lock, or with nobody else about. */
size_t hkw_tenant_committed(const hak_wasm_tenant *tenant);

/* Calls fn for each live memory of the tenant alone, which waits with new ones meanwhile. fn must not make or
 * end any. */
void hkw_memories_each(hak_wasm_tenant *tenant, hkw_slot_fn *fn, void *user);
/* Resident bytes of a tenant's memories, without its children's: pages of their own, and with a part of the
 * images that they share. */
typedef struct hkw_residence {
    size_t own, proportional;
} hkw_residence;
hkw_residence hkw_tenant_residence(hak_wasm_tenant *tenant);

/* Takes a live memory from its tenant and gives the slot back. */
void hkw_memory_end(hak_wasm_host *host, hkw_slot *slot);

#endif
