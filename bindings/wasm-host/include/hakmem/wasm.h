/* hakmem for WebAssembly hosts: tenants with limits, pooled linear memories, reset to an image.
 *
 * INTRODUCTION
 *   A *host* (hak_wasm_host) is one process' supply of linear memories and of contexts. A *tenant*
 *   (hak_wasm_tenant) is whoever the host counts and limits: a customer, a plugin, a request. A tenant has a
 *   context for what the runtime allocates on its behalf, and owns the linear memories made for it. An
 *   *image* (hak_wasm_image) is the content of a linear memory at one moment, to go back to.
 *
 *   Runtimes do not say on whose behalf they allocate, so the binding keeps a *current tenant* and label
 *   for each thread: set them with hak_wasm_enter around every call into the runtime. Allocations outside of
 *   any scope go to the tenant of the host itself.
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
 *   Threads    any thread may call any function, also at the same time. One memory belongs to one thread at a
 *              time, as in the runtimes themselves; a tenant may be entered by many threads at once.
 *   Errors     NULL or -1 means out of memory or over a limit, and leaves everything as it was. Memory
 *              functions refuse a pointer that is not a memory of the host (-1, 0) and touch nothing; they
 *              treat NULL the same way where they want a memory, an image or a struct to fill. A buffer for
 *              the text of a reason may be NULL.
 *   Structs    that begin with their size may come from another version of this header, as in hakmem.h.
 *   Fork       the child may go on using a host if no other thread of the parent was inside a call of that
 *              host.
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

/* What a block is for. LINEAR labels no blocks, but linear memories in statistics. */
typedef enum hak_wasm_label {
    HAK_WASM_OTHER,    /* outside of any scope */
    HAK_WASM_LOAD,     /* modules: parsed, compiled */
    HAK_WASM_INSTANCE, /* instances: tables, globals, function tables */
    HAK_WASM_STACK,    /* execution environments, guest call stacks */
    HAK_WASM_WASI,     /* what calls of the system interface leave behind: descriptors, paths */
    HAK_WASM_LINEAR,   /* linear memories */
    HAK_WASM_NATIVE,   /* the embedder's own */
    HAK_WASM_LABELS
} hak_wasm_label;
/* Returns "other", "load", "instance", "stack", "wasi", "linear" or "native"; NULL = no such label. */
HAK_API const char *hak_wasm_label_name(hak_wasm_label label);

/* ---- Host ---------------------------------------------------------------------------------------- */

/* The most that may be committed, mapped or live; 0 = no limit. */
typedef struct hak_wasm_limits {
    size_t heap_bytes;   /* committed bytes of the context, metadata included */
    bool heap_soft;      /* for runtimes that abort when an allocation fails: heap_bytes makes
                            hak_wasm_admit fail, but no allocation */
    size_t linear_bytes; /* sizes of live linear memories, as the guests see them, but at least 64 KiB each,
                            because each takes a slot; sizes of images; and what hak_wasm_charge adds: tables
                            and compiled code under wasmtime, machine code under WAMR */
    size_t instances;    /* admitted and not dismissed (hak_wasm_admit) */
} hak_wasm_limits;

typedef enum hak_wasm_bounds {
    HAK_WASM_FLAT, /* a slot is readable and writable throughout: no system call to create or to grow, no
                      mapping of its own. Only for runtimes that check bounds in software */
    HAK_WASM_GUARD /* addresses behind the end of the memory are inaccessible, up to slot_bytes + guard_bytes:
                      an access past the end faults. One mprotect to grow; two mappings for each memory, three
                      with an image */
} hak_wasm_bounds;

/* How written pages are found when a memory is freed or reset. */
typedef enum hak_wasm_dirty {
    HAK_WASM_DIRTY_AUTO,    /* the first of the following that works here */
    HAK_WASM_DIRTY_SCAN,    /* ioctl PAGEMAP_SCAN, Linux 6.7 */
    HAK_WASM_DIRTY_PAGEMAP, /* pread of /proc/self/pagemap */
    HAK_WASM_DIRTY_COMPARE  /* asks the kernel nothing: reset compares and copies, free returns all pages */
} hak_wasm_dirty;

typedef struct hak_wasm_host_options {
    size_t size;            /* sizeof(hak_wasm_host_options), by HAK_WASM_HOST_OPTIONS_INIT */
    hak_wasm_bounds bounds; /* default flat */
    size_t slot_bytes;      /* address space of a memory, and so the most to which it can grow. 0 = 256 MiB
                               flat, 4 GiB guard; 64 KiB to 16 GiB, rounded up to 64 KiB */
    size_t guard_bytes;     /* address space behind each slot, never accessible. 0 = none flat, 32 MiB guard;
                               up to 8 GiB, rounded up to 64 KiB. The first slot has as much before it */
    size_t extent_bytes; /* slots are reserved in extents of about this much. 0 = 256 GiB; at least one slot.
                            Halved when refused */
    size_t warm_bytes;   /* resident, zeroed pages kept in free slots, at most. 0 = 64 MiB; HAK_NONE = none */
    uint64_t decay_ns;   /* slots that are free for one to two of these periods go cold at a tick. 0 = 1 s */
    hak_wasm_dirty dirty;     /* the host refuses anything but the default if it does not work here */
    hak_wasm_limits limits;   /* of all tenants together */
    const hak_policy *policy; /* of the space and the contexts, which take references: see hakmem/policy.h.
                                 Its purge_ns takes precedence over decay_ns. NULL = none */
    size_t mappings;          /* most mappings of the process that slots and images take. The system grants a
                                 process a number of mappings (vm.max_map_count), and a process that has used
                                 them up can start no thread. Memories, images and resets beyond this number
                                 fail; first, slots and images that nobody uses give their mappings back. 0 =
                                 half of what the system grants, for all hosts with a 0 together */
} hak_wasm_host_options;
#define HAK_WASM_HOST_OPTIONS_INIT                                                                           \
    {                                                                                                        \
        sizeof(hak_wasm_host_options), HAK_WASM_FLAT, 0, 0, 0, 0, 0, HAK_WASM_DIRTY_AUTO, {0, false, 0, 0},  \
            NULL, 0                                                                                          \
    }

/* Makes a host; options NULL = defaults. Reserves no slots yet. Returns NULL if the options are broken (see
 * hak_wasm_host_options_error), there is no memory, or options.dirty does not work here. */
HAK_API hak_wasm_host *hak_wasm_host_new(const hak_wasm_host_options *options);
/* Deletes a host of which every tenant is closed and every image dropped. Memories and retired tenants that
 * still live go with the host. */
HAK_API void hak_wasm_host_delete(hak_wasm_host *host);
/* Returns what is wrong with the options, in one line; NULL = nothing. */
HAK_API const char *hak_wasm_host_options_error(const hak_wasm_host_options *options);
/* Returns the tenant of the host itself, the parent of tenants that name none. It has the limits of
 * hak_wasm_host_options.limits. Never close it. */
HAK_API hak_wasm_tenant *hak_wasm_host_tenant(hak_wasm_host *host);
/* Returns pages of slots that were free for decay_ns, of memories that rest since then
 * (hak_wasm_memory_rest), and retained pages of contexts. The embedder calls this when it has time to
 * lend. now_ns: a clock that never runs backwards; 0 = the monotonic clock. */
HAK_API void hak_wasm_host_tick(hak_wasm_host *host, uint64_t now_ns);
/* Returns all pages of free slots, of memories that rest, and of contexts that wait for the next tenant,
 * to the operating system now. The result is the number of bytes. */
HAK_API size_t hak_wasm_host_trim(hak_wasm_host *host);

typedef struct hak_wasm_host_info {
    size_t size;           /* sizeof(hak_wasm_host_info), set by the caller */
    size_t slots;          /* reserved so far */
    size_t live, warm;     /* memories; free slots that have resident pages, or an image mapped */
    size_t warm_bytes;     /* resident bytes of those, and of live memories beyond their size;
                            at most hak_wasm_host_options.warm_bytes */
    size_t linear_bytes;   /* sizes of live memories */
    size_t reserved_bytes; /* address space of all extents */
    size_t extents;
    size_t image_bytes;   /* sizes of images that exist */
    hak_wasm_dirty dirty; /* what AUTO came to */
    size_t mappings;      /* an upper bound of those that hak_wasm_host_options.mappings limits */
    size_t resting;       /* of live, those that rest (hak_wasm_memory_rest) */
} hak_wasm_host_info;
/* Fills in *info. Returns 0, or -1 if info->size is not set. */
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

/* Makes a tenant; options NULL = defaults. Returns NULL if the options are broken, there is no memory, or a
 * limit of a parent is reached. Cost: about 1 us, and well below 1 us for a tenant that gets the context of a
 * closed tenant (hak_wasm_tenant_close). A new tenant always takes one unit (16 KiB) of the heap limits, no
 * matter what the context had before. */
HAK_API hak_wasm_tenant *hak_wasm_tenant_new(hak_wasm_host *host, const hak_wasm_tenant_options *options);

typedef enum hak_wasm_close {
    HAK_WASM_RETIRE, /* live blocks and memories stay until they are freed one by one; the last of them takes
                        the tenant along. For runtimes that free late, like wasmtime */
    HAK_WASM_BULK    /* all blocks and memories are gone at once. The caller promises that the runtime touches
                     none of them again */
} hak_wasm_close;
/* Closes a tenant, which must not be used again and which no thread may have entered. A parent lives on, and
 * counts its children, until they are gone. An empty context waits, for up to two periods of decay, for the
 * next tenant that has no parent but the host's tenant and no heap limit; meanwhile it counts in
 * heap_committed of the host's tenant. No context waits while the host has a heap limit. */
HAK_API void hak_wasm_tenant_close(hak_wasm_tenant *tenant, hak_wasm_close how);
HAK_API const char *hak_wasm_tenant_name(const hak_wasm_tenant *tenant);
HAK_API hak_wasm_host *hak_wasm_tenant_host(const hak_wasm_tenant *tenant);
/* Sets new limits; limits below what is used only stop growth. limits NULL = they stay as they are. Cost:
 * constant, or a new context if the tenant's context is that of a closed tenant and still empty. */
HAK_API void hak_wasm_tenant_limit(hak_wasm_tenant *tenant, const hak_wasm_limits *limits);

/* Ask for one more instance, before it is made, and give one back. hak_wasm_admit returns 0, or -1 when the
 * tenant or a parent has as many instances as it may, or has reached its heap limit (a soft limit included).
 * Each admission needs one dismissal; a dismissal too many is ignored. */
HAK_API int hak_wasm_admit(hak_wasm_tenant *tenant);
HAK_API void hak_wasm_dismiss(hak_wasm_tenant *tenant);

/* Count bytes that a guest makes grow outside of the host's memories, such as tables that a runtime keeps.
 * The bytes count, and are limited, like the sizes of linear memories. Returns 0, or -1 over a limit of the
 * tenant or a parent, which counts as refused. Each charge needs an uncharge, unless the tenant is closed
 * with HAK_WASM_BULK; an uncharge of bytes that were never charged gives nothing back. */
HAK_API int hak_wasm_charge(hak_wasm_tenant *tenant, size_t bytes);
HAK_API void hak_wasm_uncharge(hak_wasm_tenant *tenant, size_t bytes);
/* Returns the smallest limit on linear bytes of the tenant and its parents; 0 = none has a limit. */
HAK_API size_t hak_wasm_linear_limit(const hak_wasm_tenant *tenant);

typedef struct hak_wasm_tenant_info {
    size_t size; /* sizeof(hak_wasm_tenant_info), set by the caller */
    struct {
        size_t live_bytes;            /* usable bytes of blocks; for LINEAR what linear_bytes counts */
        size_t live_blocks;           /* blocks, or memories */
    } label[HAK_WASM_LABELS];         /* of this tenant alone, without children */
    size_t heap_live;                 /* sum of the labels but LINEAR */
    size_t heap_committed;            /* what heap_bytes limits; with children if the tenant may have any */
    size_t linear_bytes, linear_peak; /* with children */
    size_t instances, instances_peak; /* with children */
    uint64_t heap_failures;           /* blocks refused */
    uint64_t linear_refused;          /* memories and growths refused by this tenant's limit */
    uint64_t instances_refused;       /* admissions refused by this tenant's limits */
    size_t image_bytes;               /* of linear_bytes, what images take; without children */
    size_t linear_resident;           /* as hak_wasm_tenant_resident returns; without children */
    size_t linear_proportional;       /* as hak_wasm_tenant_proportional returns; without children */
} hak_wasm_tenant_info;
/* Fills in *info. Returns 0, or -1 if info->size is not set. Cost: a pass over the tenant's heap, and that of
 * hak_wasm_tenant_resident if info->size has room for linear_resident. */
HAK_API int hak_wasm_tenant_stats(hak_wasm_tenant *tenant, hak_wasm_tenant_info *info);
/* Returns the resident bytes of the tenant's linear memories, without pages that are an image's. In compare
 * mode returns the sizes instead. Cost: a pass over the page tables of the tenant's memories, during which no
 * memory can be made or freed. */
HAK_API size_t hak_wasm_tenant_resident(hak_wasm_tenant *tenant);
/* Returns the proportional resident size of the tenant's linear memories: what hak_wasm_tenant_resident
 * returns, and of each image that a memory is attached to the image's pages divided by the memories and free
 * slots that are attached to it. Images are in memory once, however many tenants use them, so the sum over
 * all tenants is what they really take. Parts are rounded down to a byte. Cost: as
 * hak_wasm_tenant_resident. */
HAK_API size_t hak_wasm_tenant_proportional(hak_wasm_tenant *tenant);

/* ---- Modules ------------------------------------------------------------------------------------- */

/* The most that a module may have; 0 = no limit, HAK_NONE = none at all. A runtime parses a module, and
 * wasmtime compiles it, before any other limit applies. Compilers need memory and time for each of these
 * numbers, and for a function more than in proportion to its size: wasmtime compiles 7 KB with 1,000 nested
 * loops for minutes. docs/guide/wasm-limits.md has numbers to begin with. */
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
    /* To check these, hakmem reads all code: */
    size_t blocks; /* of one function: blocks with a type of the module, that is with parameters or several
                      results */
    size_t depth;  /* loops within one another */
    size_t ranges; /* instructions that take longer the larger a range is: memory.fill, memory.copy,
                      memory.init, and the same for tables; see hak_wasm_tenant_steps */
} hak_wasm_module_limits;
#define HAK_WASM_MODULE_LIMITS_INIT                                                                          \
    {                                                                                                        \
        sizeof(hak_wasm_module_limits), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                \
    }

/* Limits the modules that hak_wasmtime_module_new and hak_wasm_wamr_load load from now on for the tenant and
 * its children. limits NULL = none. Returns 0, or -1 if limits->size is not set, or a field is set that this
 * library does not know. */
HAK_API int hak_wasm_tenant_modules(hak_wasm_tenant *tenant, const hak_wasm_module_limits *limits);
/* Checks a module against the limits of the tenant and its parents, for hosts that load modules by
 * themselves. Returns 0, or -1 with a text in `error` that names the number and the limit: the module is over
 * a limit, or there is a limit and the binary cannot be read. For a binary that is no module of version 1,
 * for instance machine code, only `bytes` is checked; the runtime decides whether it takes such a binary.
 * Cost: a pass over the binary, which skips code; none without limits. */
HAK_API int hak_wasm_module_check(const hak_wasm_tenant *tenant, const void *bytes, size_t size, char *error,
                                  size_t error_size);

/* ---- Compiled modules ---------------------------------------------------------------------------- */

/* A folder keeps what runtimes made of modules, in a file for each module and runtime whose name is the
 * SHA-256 of both, so that a process that starts again compiles nothing. Machine code is run as it is. So a
 * folder is refused, and a file counts as missing, if others than this user or root may write to it; a file
 * also counts as missing if its name or content no longer has the hash that was written with it. */
typedef struct hak_wasm_code {
    void *bytes;
    size_t size;
} hak_wasm_code;
/* Finds the code that `runtime` made of the module. runtime: its name, version and settings, in any form that
 * differs where code of one does not run in the other. Returns 1, and *code is to be freed; 0 = there is
 * none; -1 with a text in `error` = the folder cannot be used. Cost: reads the file, and hashes the file and
 * the module. */
HAK_API int hak_wasm_code_get(const char *folder, const char *runtime, const void *module, size_t size,
                              hak_wasm_code *code, char *error, size_t error_size);
/* Keeps code, in place of what was there. Others that get meanwhile find the old or the new code. Returns
 * 0, or -1 with a text. */
HAK_API int hak_wasm_code_put(const char *folder, const char *runtime, const void *module, size_t size,
                              const void *code, size_t code_size, char *error, size_t error_size);
/* Frees what hak_wasm_code_get found; code that has none is fine. */
HAK_API void hak_wasm_code_free(hak_wasm_code *code);

/* Makes a copy of a module that exports all state that its instances can change, for runtimes that show no
 * more of an instance than its exports: the memory as "hak:memory", mutable globals as "hak:global:N", and,
 * if code changes tables, tables as "hak:table:N" and the functions that elements may be as "hak:function:N",
 * each N from 0. (hak_wasmtime_module_new makes such copies.) Returns 0, and *copy is to be freed;
 * -1 with a static text in *why, if why is not NULL: there is other state, for instance dropped segments,
 * imported memories or references, or the binary cannot be read. A host that links other modules to an
 * instance of the copy defines its exports one by one, without these: else the others read a memory that the
 * module itself does not export. Cost: a pass over the binary, and a copy. */
HAK_API int hak_wasm_module_expose(const void *bytes, size_t size, hak_wasm_code *copy, const char **why);

/* ---- Processor time ------------------------------------------------------------------------------ */

/* Limits the steps that each call of a guest of the tenant, or of its children, may take; 0 = no limit. At
 * the limit the guest traps; the instance can be reset as after any trap. The runtime decides what is a step:
 *   wasmtime  a unit of fuel, nearly an instruction (wasmtime_config_consume_fuel_set)
 *   WAMR      an instruction of the interpreter; WAMR has to be built for that (hakmem/wasm_wamr.h)
 *   wasm2c    a call of a function or a turn of a loop; the guest's C has to be made for that
 *             (hakmem/wasm_wasm2c.h)
 * Each function that runs while an instance is made may take as many steps. If a runtime cannot enforce the
 * limit, the adapter refuses instances and calls; only of a wasm2c guest nobody can tell whether it counts.
 * Neither time in functions of the host nor waiting there counts. */
HAK_API void hak_wasm_tenant_steps(hak_wasm_tenant *tenant, uint64_t most);
/* Returns the smallest limit on steps of the tenant and its parents; 0 = none has a limit. */
HAK_API uint64_t hak_wasm_step_limit(const hak_wasm_tenant *tenant);

/* ---- Scopes -------------------------------------------------------------------------------------- */

typedef struct hak_wasm_scope {
    hak_wasm_tenant *tenant; /* NULL = none */
    hak_wasm_label label;
} hak_wasm_scope;
/* Makes tenant and label current on this thread, and returns what was current before, for hak_wasm_leave.
 * tenant NULL = none. Nests. Cost: a few instructions. */
HAK_API hak_wasm_scope hak_wasm_enter(hak_wasm_tenant *tenant, hak_wasm_label label);
HAK_API void hak_wasm_leave(hak_wasm_scope before);
/* Returns what is current on this thread. */
HAK_API hak_wasm_scope hak_wasm_current(void);

/* ---- The heap, for adapters and natives ---------------------------------------------------------- */

/* Return a block from the context of the current tenant if that tenant is of this host, else from that of the
 * host's tenant, under the current label. */
HAK_API void *hak_wasm_alloc(hak_wasm_host *host, size_t n);
HAK_API void *hak_wasm_calloc(hak_wasm_host *host, size_t count, size_t n);
HAK_API void *hak_wasm_aligned_alloc(hak_wasm_host *host, size_t align, size_t n);
/* Resizes p in the context and under the label of p; p NULL = hak_wasm_alloc. */
HAK_API void *hak_wasm_realloc(hak_wasm_host *host, void *p, size_t n);
/* Frees a block, on any thread and whatever tenant is current. NULL is fine; what is not of this host is
 * ignored. */
HAK_API void hak_wasm_free(hak_wasm_host *host, void *p);
/* Returns how many bytes of the block may be used; 0 = not a block of this host. */
HAK_API size_t hak_wasm_usable_size(hak_wasm_host *host, const void *p);
/* Returns whether p is in the heap of a tenant of this host. p may be any pointer. */
HAK_API bool hak_wasm_owns(const hak_wasm_host *host, const void *p);

/* ---- Linear memories ----------------------------------------------------------------------------- */

/* Returns a memory of this many bytes, all zero, for the current tenant (as hak_wasm_alloc). The tenant is
 * charged with the bytes, at least 64 KiB. bytes 0 gives a distinct address. NULL also above slot_bytes. Cost
 * with a warm slot: flat, no system call; with guards, none if a slot of this size is free. */
HAK_API void *hak_wasm_memory_new(hak_wasm_host *host, size_t bytes);
/* Grows a memory, always in place; the new bytes are zero. Returns 0, or -1 over slot_bytes, over a limit,
 * and for a shrink. Flat: no system call. */
HAK_API int hak_wasm_memory_grow(hak_wasm_host *host, void *memory, size_t bytes);
/* Frees a memory. Written pages are zeroed at once and kept for the next memory within the warm budget, or
 * returned to the system; the next memory in this slot reads zero. Returns 0, or -1 if it is not a memory. */
HAK_API int hak_wasm_memory_free(hak_wasm_host *host, void *memory);
/* Returns the size now; 0 also for what is not a memory. */
HAK_API size_t hak_wasm_memory_size(const hak_wasm_host *host, const void *memory);
/* Return to how many bytes a memory can grow, how many are inaccessible behind that, and the kind of
 * bounds. */
HAK_API size_t hak_wasm_slot_bytes(const hak_wasm_host *host);
HAK_API size_t hak_wasm_guard_bytes(const hak_wasm_host *host);
HAK_API hak_wasm_bounds hak_wasm_host_bounds(const hak_wasm_host *host);
/* Returns whether p is a live memory of this host. */
HAK_API bool hak_wasm_is_memory(const hak_wasm_host *host, const void *p);

/* ---- Images -------------------------------------------------------------------------------------- */

/* Makes an image of what the memory holds now, and attaches the memory to the image: its pages are the
 * image's own until they are written to, so that a reset finds the written pages. The image belongs to the
 * host and outlives the memory. The current tenant (as hak_wasm_alloc) is charged once, as linear bytes, with
 * the pages that are not zero and one more, whoever uses the image. The charge stays until the image is
 * dropped and no memory is attached to it, even if that tenant is closed before. Returns NULL if there is no
 * memory, a limit is reached, or `memory` is not a memory. Cost: a copy of those pages. */
HAK_API hak_wasm_image *hak_wasm_image_take(hak_wasm_host *host, void *memory);
/* Drops an image that nobody uses for new memories or resets any more. Memories attached to it live on. NULL
 * is fine. */
HAK_API void hak_wasm_image_drop(hak_wasm_image *image);
HAK_API size_t hak_wasm_image_size(const hak_wasm_image *image);
/* Makes a memory equal to the image again, byte for byte, its size too: growth is cut off. A memory that is
 * attached to another image, or to none, is attached to this image, which replaces all of it. Returns 0; -1
 * if it is not a memory, a limit is reached (a smaller memory grows), or there is no memory, and then it is
 * as it was. One exception: if memory runs out on the way from a larger image to a smaller one, the bytes
 * that were the larger image's are 0. If the program has closed the image's file, no memory can be attached
 * any more. Cost: written pages are copied back. */
HAK_API int hak_wasm_memory_reset(hak_wasm_host *host, void *memory, hak_wasm_image *image);
/* Does what hak_wasm_memory_reset does, and lets the memory rest: nobody writes to it until
 * hak_wasm_memory_wake, or what is written may be lost. A memory that has rested for one to two periods of
 * decay (hak_wasm_host_options.decay_ns) gives all pages of its own back at a tick, and reads as the image
 * all the same; hak_wasm_host_trim does not wait for that. So guests that are kept for their next request
 * cost no pages while there is none. Cost: that of the reset; after the pages went, a fault for each page
 * that the guest writes to. */
HAK_API int hak_wasm_memory_rest(hak_wasm_host *host, void *memory, hak_wasm_image *image);
/* Ends the rest, before the guest runs; resets, growth and images of a memory end it, too. Returns 0, also
 * if the memory does not rest, or -1 if it is not a memory. Cost: a few instructions, and at worst the
 * time that the kernel takes to free the memory's pages. */
HAK_API int hak_wasm_memory_wake(hak_wasm_host *host, void *memory);
/* Does what hak_wasm_memory_new does, with the image's size and content. Free slots that had the image come
 * first: they cost no system call. */
HAK_API void *hak_wasm_memory_adopt(hak_wasm_host *host, hak_wasm_image *image);

#ifdef __cplusplus
}
#endif
#endif
