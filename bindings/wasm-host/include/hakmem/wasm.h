/* hakmem for WebAssembly hosts: tenants with limits, pooled linear memories, reset to an image.
 *
 * INTRODUCTION
 *   A *host* (hak_wasm_host) is one process' supply of linear memories and of contexts. A *tenant*
 *   (hak_wasm_tenant) is whoever is to be counted and limited: a customer, a plugin, a request. It has a
 *   context for what the runtime allocates on its behalf, and owns the linear memories made for it. An
 *   *image* (hak_wasm_image) is the content of a linear memory at one moment, to go back to.
 *
 *   Runtimes do not say on whose behalf they allocate, so the binding keeps a *current tenant* and label
 *   for each thread: set them with hak_wasm_enter around every call into the runtime. What is allocated
 *   outside of any scope goes to the tenant of the host itself.
 *
 *       hak_wasm_host *host = hak_wasm_host_new(NULL);
 *       hak_wasm_tenant_options options = HAK_WASM_TENANT_OPTIONS_INIT;
 *       options.limits.linear_bytes = 64 << 20;
 *       hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
 *       hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
 *       char *memory = hak_wasm_memory_new(host, 3 << 16);   // a runtime's adapter does this
 *       hak_wasm_leave(before);
 *       hak_wasm_memory_free(host, memory);
 *       hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
 *       hak_wasm_host_delete(host);
 *
 *   What the memory of a tenant is for: hakmem/wasm_profile.h.
 *   Adapters for runtimes: hakmem/wasm_wamr.h, hakmem/wasm_wasmtime.h, hakmem/wasm_wasm2c.h.
 *
 * STABILITY  Stable.
 *
 * CONVENTIONS, for every function below unless it says otherwise
 *   Units      sizes are bytes.
 *   Threads    any thread, at the same time too. One memory belongs to one thread at a time, as in the
 *              runtimes themselves; a tenant may be entered by many threads at once.
 *   Errors     NULL or -1 means out of memory or over a limit, and leaves everything as it was. A pointer
 *              that is not a memory of the host is refused by memory functions (-1, 0), nothing is touched.
 *              So is NULL where a memory, an image or a struct to fill is asked for. Texts of reasons may be
 *              NULL: then nobody learns them.
 *   Structs    with a size may be of another version of this header, as those of hakmem.h.
 *   Fork       the child may go on using a host that no other thread of the parent was inside of.
 *   Since      0.1 for everything in this file.
 */
#ifndef HAKMEM_WASM_H
#define HAKMEM_WASM_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hak_wasm_host hak_wasm_host;
typedef struct hak_wasm_tenant hak_wasm_tenant;
typedef struct hak_wasm_image hak_wasm_image;

/* ---- Labels -------------------------------------------------------------------------------------- */

/* What a block is for. LINEAR is no label of blocks but that of linear memories in statistics. */
typedef enum hak_wasm_label {
    HAK_WASM_OTHER,    /* outside of any scope */
    HAK_WASM_LOAD,     /* modules: parsed, compiled */
    HAK_WASM_INSTANCE, /* instances: tables, globals, function tables */
    HAK_WASM_STACK,    /* execution environments, guest call stacks */
    HAK_WASM_WASI,     /* what system interface calls leave: descriptors, paths */
    HAK_WASM_LINEAR,   /* linear memories */
    HAK_WASM_NATIVE,   /* the embedder's own */
    HAK_WASM_LABELS
} hak_wasm_label;
/* "other", "load", "instance", "stack", "wasi", "linear", "native"; NULL = no such label. */
HAK_API const char *hak_wasm_label_name(hak_wasm_label label);

/* ---- Host ---------------------------------------------------------------------------------------- */

/* Committed, mapped or live at most; 0 = no limit. */
typedef struct hak_wasm_limits {
    size_t heap_bytes;   /* committed bytes of the context, metadata included */
    bool heap_soft;      /* for runtimes that abort when an allocation fails: allocations never fail by
                            heap_bytes, only hak_wasm_admit does */
    size_t linear_bytes; /* sizes of live linear memories, as the guests see them, but at least 64 KiB each,
                            as each takes a slot; images; and what hak_wasm_charge adds: tables and compiled
                            code under wasmtime */
    size_t instances;    /* admitted and not dismissed (hak_wasm_admit) */
} hak_wasm_limits;

typedef enum hak_wasm_bounds {
    HAK_WASM_FLAT, /* a slot is readable and writable throughout: no system call to create or to grow, no
                      mapping of its own. Only for runtimes that check bounds in software */
    HAK_WASM_GUARD /* inaccessible behind the end of the memory, up to slot_bytes + guard_bytes: an access
                      past the end faults. One mprotect to grow, two mappings a memory, three with an image */
} hak_wasm_bounds;

/* How written pages are found when a memory is freed or reset. */
typedef enum hak_wasm_dirty {
    HAK_WASM_DIRTY_AUTO,    /* the first of the following that works here */
    HAK_WASM_DIRTY_SCAN,    /* ioctl PAGEMAP_SCAN, Linux 6.7 */
    HAK_WASM_DIRTY_PAGEMAP, /* pread of /proc/self/pagemap */
    HAK_WASM_DIRTY_COMPARE  /* nothing of the kernel: reset compares and copies, free returns all pages */
} hak_wasm_dirty;

typedef struct hak_wasm_host_options {
    size_t size;            /* sizeof(hak_wasm_host_options), by HAK_WASM_HOST_OPTIONS_INIT */
    hak_wasm_bounds bounds; /* default flat */
    size_t slot_bytes;      /* address space of a memory, and so what it can grow to. 0 = 256 MiB flat, 4 GiB
                               guard; 64 KiB to 16 GiB, rounded up to 64 KiB */
    size_t guard_bytes;     /* address space behind each slot, never accessible. 0 = none flat, 32 MiB guard;
                               up to 8 GiB, rounded up to 64 KiB. The first slot has as much before it */
    size_t extent_bytes; /* slots are reserved in extents of about this much. 0 = 256 GiB; at least one slot.
                            Halved when refused */
    size_t warm_bytes;   /* resident, zeroed pages kept in free slots, at most. 0 = 64 MiB; HAK_NONE = none */
    uint64_t decay_ns;   /* slots free for one to two of these go cold at a tick. 0 = 1 s */
    hak_wasm_dirty dirty;     /* anything but the default is refused when it does not work here */
    hak_wasm_limits limits;   /* of all tenants together */
    const hak_policy *policy; /* of the space and the contexts, which take references: see hakmem/policy.h.
                                 Its purge_ns goes before decay_ns. NULL = none */
    size_t mappings;          /* of the process that slots and images take at most: the system grants so many
                                 (vm.max_map_count), and a process that has them all starts no thread. Memories,
                                 images and resets beyond that fail. Slots and images that nobody uses give theirs
                                 back first. 0 = half of what the system grants, for all hosts with a 0 together */
} hak_wasm_host_options;
#define HAK_WASM_HOST_OPTIONS_INIT                                                                           \
    {                                                                                                        \
        sizeof(hak_wasm_host_options), HAK_WASM_FLAT, 0, 0, 0, 0, 0, HAK_WASM_DIRTY_AUTO, {0, false, 0, 0},  \
            NULL, 0                                                                                          \
    }

/* NULL = broken options (see hak_wasm_host_options_error), no memory, or options.dirty is not to be had.
 * options NULL = defaults. Reserves no slots yet. */
HAK_API hak_wasm_host *hak_wasm_host_new(const hak_wasm_host_options *options);
/* Every tenant must be closed and every image dropped. Memories and retired tenants that live go with it. */
HAK_API void hak_wasm_host_delete(hak_wasm_host *host);
/* What is wrong with the options, in one line; NULL = nothing. */
HAK_API const char *hak_wasm_host_options_error(const hak_wasm_host_options *options);
/* The tenant of the host itself, parent of those that name none: carries hak_wasm_host_options.limits. Not to
 * be closed. */
HAK_API hak_wasm_tenant *hak_wasm_host_tenant(hak_wasm_host *host);
/* The host lends time: slots that were free for decay_ns return their pages, retained pages of contexts go
 * back. now_ns: a clock that never runs backwards; 0 = the monotonic clock. */
HAK_API void hak_wasm_host_tick(hak_wasm_host *host, uint64_t now_ns);
/* All pages of free slots and of contexts that wait for the next tenant back to the operating system, now.
 * Returns the bytes. */
HAK_API size_t hak_wasm_host_trim(hak_wasm_host *host);

typedef struct hak_wasm_host_info {
    size_t size;           /* sizeof(hak_wasm_host_info), set by the caller */
    size_t slots;          /* reserved so far */
    size_t live, warm;     /* memories; free slots with pages of theirs resident, or with an image mapped */
    size_t warm_bytes;     /* resident bytes of those; at most hak_wasm_host_options.warm_bytes */
    size_t linear_bytes;   /* sizes of live memories */
    size_t reserved_bytes; /* address space of all extents */
    size_t extents;
    size_t image_bytes;   /* sizes of images that exist */
    hak_wasm_dirty dirty; /* what AUTO came to */
    size_t mappings;      /* that hak_wasm_host_options.mappings limits, at most */
} hak_wasm_host_info;
/* 0 = ok; -1 = size is not set. */
HAK_API int hak_wasm_host_stats(hak_wasm_host *host, hak_wasm_host_info *info);

/* ---- Tenants ------------------------------------------------------------------------------------- */

typedef struct hak_wasm_tenant_options {
    size_t size;             /* sizeof(hak_wasm_tenant_options), by HAK_WASM_TENANT_OPTIONS_INIT */
    const char *name;        /* for reports, copied up to 47 bytes. NULL = "" */
    hak_wasm_tenant *parent; /* a tenant with `children`, whose limits count too. NULL = the host's tenant */
    bool children;           /* others may name this tenant as their parent; its limits then cover them. Costs
                                a page. Default false */
    hak_wasm_limits limits;
} hak_wasm_tenant_options;
#define HAK_WASM_TENANT_OPTIONS_INIT                                                                         \
    {                                                                                                        \
        sizeof(hak_wasm_tenant_options), NULL, NULL, false,                                                  \
        {                                                                                                    \
            0, false, 0, 0                                                                                   \
        }                                                                                                    \
    }

/* NULL = broken options, no memory, or over a limit of a parent. options NULL = defaults. Cost: about 1 us,
 * or well under it for a tenant that gets the context of a closed one (hak_wasm_tenant_close); one unit (16
 * KiB) of the heap limits, always the same one: who had what before does not matter under a limit. */
HAK_API hak_wasm_tenant *hak_wasm_tenant_new(hak_wasm_host *host, const hak_wasm_tenant_options *options);

typedef enum hak_wasm_close {
    HAK_WASM_RETIRE, /* what is live stays until it is freed, one by one; the last block or memory takes the
                        tenant along. For runtimes that free late, as wasmtime does */
    HAK_WASM_BULK /* all blocks and memories are gone at once. The runtime must not touch any of them again:
                     on the caller's word */
} hak_wasm_close;
/* The tenant is not to be used again, and no thread may have it entered. A parent lives on until its
 * children are gone, counting them. Contexts that are empty wait for the next tenant of the host's own that
 * has no heap limit, for up to two periods of decay: they count in heap_committed of the host's tenant. None
 * waits while the host has a heap limit. */
HAK_API void hak_wasm_tenant_close(hak_wasm_tenant *tenant, hak_wasm_close how);
HAK_API const char *hak_wasm_tenant_name(const hak_wasm_tenant *tenant);
HAK_API hak_wasm_host *hak_wasm_tenant_host(const hak_wasm_tenant *tenant);
/* New limits; below what is used they only stop growth. limits NULL = they stay as they are. Cost: a new
 * context where the tenant has one of a closed tenant and nothing is in it. */
HAK_API void hak_wasm_tenant_limit(hak_wasm_tenant *tenant, const hak_wasm_limits *limits);

/* One more instance, to be asked before it is made: -1 when the tenant or a parent has as many instances as
 * it may, or has reached its heap limit (soft ones included). Each admission needs one dismissal; one too
 * many is ignored. */
HAK_API int hak_wasm_admit(hak_wasm_tenant *tenant);
HAK_API void hak_wasm_dismiss(hak_wasm_tenant *tenant);

/* For what a guest makes grow outside of the host's memories, such as tables that a runtime keeps: counts and
 * is limited like the sizes of linear memories. 0 = ok; -1 = over a limit of the tenant or a parent, which
 * counts as refused. Each charge needs an uncharge, unless the tenant is closed with HAK_WASM_BULK; what
 * was never charged is not given back. */
HAK_API int hak_wasm_charge(hak_wasm_tenant *tenant, size_t bytes);
HAK_API void hak_wasm_uncharge(hak_wasm_tenant *tenant, size_t bytes);
/* The smallest limit on linear bytes of the tenant and its parents; 0 = none has one. */
HAK_API size_t hak_wasm_linear_limit(const hak_wasm_tenant *tenant);

typedef struct hak_wasm_tenant_info {
    size_t size; /* sizeof(hak_wasm_tenant_info), set by the caller */
    struct {
        size_t live_bytes;            /* usable bytes of blocks; for LINEAR what linear_bytes counts */
        size_t live_blocks;           /* blocks, or memories */
    } label[HAK_WASM_LABELS];         /* of this tenant alone, without children */
    size_t heap_live;                 /* sum of the labels but LINEAR */
    size_t heap_committed;            /* what heap_bytes limits; with children when it may have any */
    size_t linear_bytes, linear_peak; /* with children */
    size_t instances, instances_peak; /* with children */
    uint64_t heap_failures;           /* blocks refused */
    uint64_t linear_refused;          /* memories and growths refused by this tenant's limit */
    uint64_t instances_refused;       /* admissions refused by this tenant's limits */
    size_t image_bytes;               /* of linear_bytes, what images take; without children */
} hak_wasm_tenant_info;
/* 0 = ok; -1 = size is not set. Cost: a pass over the tenant's heap. */
HAK_API int hak_wasm_tenant_stats(hak_wasm_tenant *tenant, hak_wasm_tenant_info *info);
/* Resident bytes of the tenant's linear memories that are its own, not an image's. Cost: a pass over
 * the page tables of its memories, while none of them is made or freed; in compare mode the sizes are
 * returned instead. */
HAK_API size_t hak_wasm_tenant_resident(hak_wasm_tenant *tenant);

/* ---- Modules ------------------------------------------------------------------------------------- */

/* What a module may have at most; 0 = no limit, HAK_NONE = none at all. A module is parsed, and under
 * wasmtime compiled, before any other limit meets what it says. Compilers need memory and time for each of
 * these, and for functions more than in proportion to their size: under wasmtime 7 KB with 1,000 loops within
 * one another are compiled for minutes. Numbers to begin with, and what they come to: docs/guide/wasm.md. */
typedef struct hak_wasm_module_limits {
    size_t size;       /* sizeof(hak_wasm_module_limits), by HAK_WASM_MODULE_LIMITS_INIT */
    size_t bytes;      /* of the whole binary */
    size_t types;      /* types */
    size_t arity;      /* parameters and results of one type together, or fields of a struct */
    size_t imports;    /* of all kinds */
    size_t functions;  /* that it defines */
    size_t globals;    /* that it defines */
    size_t exports;    /* of all kinds */
    size_t segments;   /* of data and of elements */
    size_t locals;     /* of one function, without parameters */
    size_t body_bytes; /* of one function */
    /* For these all code is read: */
    size_t blocks; /* of one function, that have a type of the module's: parameters, or several results */
    size_t depth;  /* loops within one another */
    size_t ranges; /* instructions that take longer the larger a range is: memory.fill, memory.copy and
                      memory.init, and those of tables; see hak_wasm_tenant_steps */
} hak_wasm_module_limits;
#define HAK_WASM_MODULE_LIMITS_INIT                                                                          \
    {                                                                                                        \
        sizeof(hak_wasm_module_limits), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                \
    }

/* For modules that are loaded for the tenant or for children of it from now on, by hak_wasmtime_module_new
 * and hak_wasm_wamr_load. limits NULL = none. 0 = ok; -1 = size is not set, or more is set than is known. */
HAK_API int hak_wasm_tenant_modules(hak_wasm_tenant *tenant, const hak_wasm_module_limits *limits);
/* Whether a module keeps to what the tenant and its parents allow: for hosts that load modules by themselves.
 * 0 = ok; -1 with a text in `error`, which names the number and the limit: over a limit, or a binary that
 * cannot be read where there is any limit. What is no module of version 1, machine code say, has bytes alone;
 * whether the runtime takes such a thing is the runtime's to say. Cost: a pass over the binary, which skips
 * code; none without limits. */
HAK_API int hak_wasm_module_check(const hak_wasm_tenant *tenant, const void *bytes, size_t size, char *error,
                                  size_t error_size);

/* ---- Processor time ------------------------------------------------------------------------------ */

/* Steps that each call of a guest of the tenant, or of a child of it, may take; 0 = no limit. Then the guest
 * traps; the instance can be reset like after any trap. What is a step is the runtime's to say, and so is
 * what does not count: wasmtime  a unit of fuel, nearly an instruction (wasmtime_config_consume_fuel_set)
 *   WAMR      an instruction of the interpreter; WAMR has to be built for that (hakmem/wasm_wamr.h)
 *   wasm2c    a call of a function or a turn of a loop; the guest's C has to be made for that
 *             (hakmem/wasm_wasm2c.h)
 * Functions that run while an instance is made have as many, each. Where the limit cannot hold, instances and
 * calls are refused; but nobody can ask a guest of wasm2c whether it counts. Time in functions of the host
 * does not count, nor does waiting there. */
HAK_API void hak_wasm_tenant_steps(hak_wasm_tenant *tenant, uint64_t most);
/* The smallest of the tenant's limit and those of its parents; 0 = none has one. */
HAK_API uint64_t hak_wasm_step_limit(const hak_wasm_tenant *tenant);

/* ---- Scopes -------------------------------------------------------------------------------------- */

typedef struct hak_wasm_scope {
    hak_wasm_tenant *tenant; /* NULL = none */
    hak_wasm_label label;
} hak_wasm_scope;
/* Makes tenant and label current on this thread and returns what was, for hak_wasm_leave. tenant NULL = none.
 * Nests. A few instructions. */
HAK_API hak_wasm_scope hak_wasm_enter(hak_wasm_tenant *tenant, hak_wasm_label label);
HAK_API void hak_wasm_leave(hak_wasm_scope before);
/* What is current on this thread. */
HAK_API hak_wasm_scope hak_wasm_current(void);

/* ---- The heap, for adapters and natives ---------------------------------------------------------- */

/* In the context of the current tenant if it is of this host, else of the host's, under the current label. */
HAK_API void *hak_wasm_alloc(hak_wasm_host *host, size_t n);
HAK_API void *hak_wasm_calloc(hak_wasm_host *host, size_t count, size_t n);
HAK_API void *hak_wasm_aligned_alloc(hak_wasm_host *host, size_t align, size_t n);
/* In the context and under the label of p; p NULL = hak_wasm_alloc. */
HAK_API void *hak_wasm_realloc(hak_wasm_host *host, void *p, size_t n);
/* From any thread, whatever is current. NULL is fine; what is not of this host is ignored. */
HAK_API void hak_wasm_free(hak_wasm_host *host, void *p);
/* 0 = not a block of this host. */
HAK_API size_t hak_wasm_usable_size(hak_wasm_host *host, const void *p);
/* Whether p is in the heap of a tenant of this host. Any pointer whatever. */
HAK_API bool hak_wasm_owns(const hak_wasm_host *host, const void *p);

/* ---- Linear memories ----------------------------------------------------------------------------- */

/* A memory of this many bytes, all zero, for the current tenant (as hak_wasm_alloc), which it is charged to,
 * as 64 KiB if it is smaller. bytes 0 gives a distinct address. NULL also above slot_bytes. Cost, warm: no
 * system call flat; none with guards when a slot of this size is free. */
HAK_API void *hak_wasm_memory_new(hak_wasm_host *host, size_t bytes);
/* In place, always; what is added is zero. 0 = ok; -1 = over slot_bytes or over a limit, or a shrink. Flat:
 * no system call. */
HAK_API int hak_wasm_memory_grow(hak_wasm_host *host, void *memory, size_t bytes);
/* Pages that were written to are zeroed at once and kept for the next memory within the warm budget, or
 * returned. Whatever is next in this slot reads zero. 0 = ok; -1 = not a memory. */
HAK_API int hak_wasm_memory_free(hak_wasm_host *host, void *memory);
/* Bytes now; 0 also for what is not a memory. */
HAK_API size_t hak_wasm_memory_size(const hak_wasm_host *host, const void *memory);
/* What it can grow to, and what is inaccessible behind that. */
HAK_API size_t hak_wasm_slot_bytes(const hak_wasm_host *host);
HAK_API size_t hak_wasm_guard_bytes(const hak_wasm_host *host);
HAK_API hak_wasm_bounds hak_wasm_host_bounds(const hak_wasm_host *host);
/* Whether p is a live memory of this host. */
HAK_API bool hak_wasm_is_memory(const hak_wasm_host *host, const void *p);

/* ---- Images -------------------------------------------------------------------------------------- */

/* What the memory holds now. The memory is attached to the image: its pages are the image's own until they
 * are written to, so that a reset finds these. The image belongs to the host and outlives the memory. The
 * current tenant (as hak_wasm_alloc) is charged once with the pages that are not zero and one more, as linear
 * bytes, until the image is dropped and no memory is attached to it: whoever may use it, and also where that
 * tenant is closed before. NULL = no memory, over a limit, or not a memory. Cost: a copy of those pages. */
HAK_API hak_wasm_image *hak_wasm_image_take(hak_wasm_host *host, void *memory);
/* When nobody uses it for new memories or resets any more. Memories attached to it live on. NULL is fine. */
HAK_API void hak_wasm_image_drop(hak_wasm_image *image);
HAK_API size_t hak_wasm_image_size(const hak_wasm_image *image);
/* The memory is as the image again, byte for byte, its size too: what grew is cut off. Cost: written pages
 * are copied back; a memory that is not attached to this image is attached, which replaces all of it.
 * -1 = not a memory, over a limit (a smaller memory grows), or no memory; it is as it was. But if there is no
 * memory on the way to an image that is smaller than the one it is attached to, the bytes that were this
 * one's are 0. Nothing is attached any more once the program has closed the image's file. */
HAK_API int hak_wasm_memory_reset(hak_wasm_host *host, void *memory, hak_wasm_image *image);
/* hak_wasm_memory_new with the image's size and content. Free slots that had the image come first: they cost
 * no system call. */
HAK_API void *hak_wasm_memory_adopt(hak_wasm_host *host, hak_wasm_image *image);

#ifdef __cplusplus
}
#endif
#endif
