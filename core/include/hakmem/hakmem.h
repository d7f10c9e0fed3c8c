/* hakmem: a memory allocator to embed in language runtimes.
 *
 * INTRODUCTION
 *   A *context* (hak_ctx) is one heap: a Lua state, a Python interpreter, a WebAssembly tenant has one. It
 *   owns every block that it hands out, and destroying it frees them all at once. A *space* (hak_space)
 *   supplies address space and pages to many contexts and keeps recycled pages resident. A *label* says which
 *   part of the runtime a block belongs to; the live bytes of all labels sum to those of the context,
 *   exactly, at any time. The library has no global and no thread-local mutable state, reads no environment
 *   variable, starts no thread, prints nothing and, unless HAK_DEBUG_ABORT is set, never aborts.
 *
 *       hak_ctx *ctx = hak_ctx_new(NULL, NULL);
 *       hak_label str = hak_label_define(ctx, "string");
 *       char *s = hak_alloc_cs(ctx, 40, str, HAK_CALLSITE());
 *       hak_free(ctx, s);
 *       hak_ctx_destroy(ctx);
 *
 * WORDS
 *   size class  blocks of one size, to which a request of up to 32 KiB rounds up
 *   magazine    free blocks of one size class that are at hand for the next allocations
 *   unit        16 KiB, of which a context takes one or more from its space; a chunk is 2 MiB of units
 *   slab        units cut into blocks of one size class
 *   packed      small blocks of all sizes side by side in one unit: how a young heap begins
 *   run         a block of whole units, above 32 KiB and up to 1 MiB
 *   big block   a block with a mapping of its own, above 1 MiB or grown into one
 *   extent      a range of addresses in which a space has its units
 *   committed   taken by a context, and counted by limits; it need not be resident, that is, have pages
 *   OS table    the functions by which a space gets pages: hak_os
 *
 * CONVENTIONS, for every function below unless it says otherwise
 *   Units      sizes are bytes.
 *   Alignment  8; 16 if the size is a multiple of 16, or with hak_options.max_align; 4096 at least above
 *              32 KiB.
 *   Ownership  blocks belong to the context that made them; pass them back to that context only.
 *   Threads    one thread at a time per context (a context is "local"), unless hak_options.shared makes it
 *              usable by every thread. A space is thread-safe. While the thread of a local context is inside
 *              a call, other threads may call the functions marked [any thread]. A thread that finds a lock
 *              taken spins, then yields, then sleeps up to half a millisecond at a time, so that threads of
 *              different priorities can share a processor.
 *   Errors     NULL means out of memory or over the limit, and leaves everything as it was. Misuse is
 *              reported to hak_options.on_error where it is detected; see hak_error.
 *   Structs    structs of options, and hak_os, begin with their size and grow at their end. A smaller struct
 *              gets defaults for the fields that it lacks: 0, except for hak_policy_options.mode. A larger
 *              struct is accepted only if every byte beyond the fields that this library knows, up to 4 KiB,
 *              is 0. hak_stats may have any size up to 4 KiB: see there. hak_block may get further members at
 *              its end; hak_label_info stays as it is.
 *   Cost       "fast" takes no lock and makes no system call in the usual case: 14 to 40 instructions in a
 *              local context, 30 to 60 in a shared one, 70 to 90 for an allocation where guard pages are
 *              drawn. Where a young heap packs its small blocks an allocation takes up to 40, a free up to
 *              80, a realloc in place up to 360; in the young heap of a thread an allocation and a free take
 *              up to 60 on average; until 64 blocks were freed, and under a limit below 384 KiB, an
 *              allocation takes 90 to 400 on average, a free up to 140. "constant" is at most 1600, whatever
 *              the heap holds, and no system call. "a step" is a few instructions. In a shared context most
 *              slow paths take a lock. Tests count instructions to check each sentence on cost.
 *   Since      0.1 for everything in this file.
 *
 * STABILITY  Stable. Each public header has such a line:
 *              - Stable: a program that compiles goes on compiling, and means the same, with the next minor
 *                version. CHANGELOG.md names a change that breaks programs one minor version before.
 *              - Experimental: functions, structs and numbers may change or go with each minor version.
 *            Versions that differ in the patch alone have one binary interface.
 *
 * MISUSE
 *   Always detected, at once: a pointer outside the context (every free and realloc reports HAK_E_FOREIGN and
 *   touches nothing), count * n overflow, absurd sizes and alignments, a broken options struct; for blocks
 *   above 1 MiB also a second free and a pointer into the middle.
 *
 *   Detected at once with HAK_DEBUG_CHECK: in every free and realloc, a block that is free and a pointer into
 *   the middle of one; and, in sized calls, a size that is not what was last asked for.
 *
 *   Without HAK_DEBUG_CHECK, for blocks of up to 1 MiB:
 *    - A pointer that is freed usually waits in the magazine of its size class, in a shared context also on
 *      its way to the heap that it came from. The context validates the pointer when it leaves the magazine,
 *      at hak_ctx_flush at the latest; a wrong pointer is then reported and dropped. Until then the magazine
 *      may hand it out: a block freed twice goes to two callers, a pointer into a block to one.
 *    - A realloc of such a pointer may return the same pointer if the new size needs no other block, else the
 *      pointer is reported and the result is NULL.
 *    - The size given to a sized free or realloc is ignored: a wrong one does no harm.
 *
 *   An overflow of a block by up to 64 bytes, in either direction, or a write to a free block, can change the
 *   contents of other blocks. It changes no metadata, except labels where the space is in a caller's buffer.
 *
 *   Never detected: a second free of a block that was handed out again meanwhile. It frees the new block.
 *
 *   The error of a second free is HAK_E_DOUBLE_FREE while the memory serves blocks of that size,
 *   HAK_E_POINTER if the context uses it for something else, HAK_E_FOREIGN once the context has given it
 *   back; with HAK_DEBUG_CHECK, for blocks of up to 1 MiB, only if another context has the memory by then.
 */
#ifndef HAKMEM_H
#define HAKMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX < UINT64_MAX
#error "hakmem needs a 64-bit target: it reserves more addresses than 32 bits have"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HAK_VERSION_MAJOR 0
#define HAK_VERSION_MINOR 1
#define HAK_VERSION_PATCH 0
/* The version of the structs and constants in these headers. A program and a library with different numbers
 * do not fit together. A struct that only grows at its end keeps the number. See hak_header_error. */
#define HAK_LAYOUT 1

#if defined(__GNUC__) && !defined(_WIN32)
#define HAK_API __attribute__((visibility("default")))
#else
#define HAK_API
#endif

/* Attributes of functions that return a block. A compiler warns about an access beyond the size asked for and
 * about an unused result, and _FORTIFY_SOURCE stops the program at such an access, even where hak_usable_size
 * allows it. A program that wants to use those bytes either asks hak_realloc for them first, or defines
 * HAK_NO_ATTRIBUTES before it includes this header. */
#if defined(__GNUC__) && !defined(HAK_NO_ATTRIBUTES)
#define HAK_FRESH __attribute__((malloc))
#define HAK_SIZED(...) __attribute__((warn_unused_result, alloc_size(__VA_ARGS__)))
#define HAK_ALIGNED(i) __attribute__((alloc_align(i)))
#else
#define HAK_FRESH
#define HAK_SIZED(...)
#define HAK_ALIGNED(i)
#endif

typedef struct hak_space hak_space;
typedef struct hak_ctx hak_ctx;
typedef struct hak_quota hak_quota;
typedef struct hak_options hak_options;
typedef struct hak_space_options hak_space_options;
typedef struct hak_tuning hak_tuning; /* hakmem/tuning.h */
typedef struct hak_policy hak_policy; /* hakmem/policy.h */
typedef struct hak_stats hak_stats;
typedef struct hak_os hak_os;

/* 0 = unlabelled. Others come from hak_label_define; a context has HAK_LABELS_MAX of them at most. */
typedef uint16_t hak_label;
#define HAK_LABELS_MAX 253

/* Where in the program a block was asked for: a native return address or an interpreter's location.
 * 0 = unknown. hak_ctx_visit shows the sites of big blocks, profiles (hakmem/profile.h) those of all. */
typedef uintptr_t hak_site;
#define HAK_CALLSITE() ((hak_site)__builtin_return_address(0))

/* ---- First steps --------------------------------------------------------------------------------- */

/* Makes a context. space NULL = a space of its own; many small contexts are cheap only if they share one.
 * options NULL = defaults. Returns NULL if the options are broken, memory is out or the quota is full. Cost:
 * constant, about 0.1 us, in a space with retained pages; with labels also that of hak_options_error. */
HAK_API hak_ctx *hak_ctx_new(hak_space *space, const hak_options *options);
/* Frees every block at once, live or not, and returns the pages to the space. NULL is fine. Cost: a step for
 * each slab, run and big block, none for a small block; one call of the OS table for each big block. */
HAK_API void hak_ctx_destroy(hak_ctx *ctx);

/* Returns a block of n bytes; n = 0 gives a distinct block. Fast. */
HAK_API void *hak_alloc(hak_ctx *ctx, size_t n) HAK_FRESH HAK_SIZED(2);
/* Returns a block of count * n bytes, filled with zeros; NULL if count * n overflows. Cost: that of
 * hak_alloc, and of clearing the block; fresh pages are not cleared again. */
HAK_API void *hak_calloc(hak_ctx *ctx, size_t count, size_t n) HAK_FRESH HAK_SIZED(2, 3);
/* Changes the size of a block to n bytes and returns the block, which may have moved. p NULL = hak_alloc; n =
 * 0 gives a block of the smallest size. Failure leaves p as it was. A block between 1 and 32 KiB that grows
 * by less than a sixteenth gets room to spare: up to half of n more, and at most the next power of two. The
 * alignment of hak_aligned_alloc is kept only while the block stays in place. If n fits the block and there
 * is no memory to move it, the block stays where it is, perhaps aligned to 8 alone. Cost: fast in place; else
 * that of an allocation, a copy and a free, but blocks above 1 MiB are moved without a copy where the OS
 * table has remap. */
HAK_API void *hak_realloc(hak_ctx *ctx, void *p, size_t n) HAK_SIZED(3);
/* Gives the block back to its context. NULL is fine. Fast. */
HAK_API void hak_free(hak_ctx *ctx, void *p);
/* Returns a block as hak_alloc does, with a label and a call site. label: 0, or from hak_label_define or
 * hak_options.labels. A block with any other value counts for some other label or for 0. Fast. */
HAK_API void *hak_alloc_cs(hak_ctx *ctx, size_t n, hak_label label, hak_site site) HAK_FRESH HAK_SIZED(2);

/* Returns the label of this name; the first call with a name makes the label. 0 = failed (HAK_E_LABEL, or no
 * memory). The name is copied. A policy can name a label only if the name has no blank at its ends and no
 * control character. Cost: a comparison with each name that there is. The first label also clears a byte for
 * each block that there is room for. */
HAK_API hak_label hak_label_define(hak_ctx *ctx, const char *name);

/* Is told that the context grew over its soft limit: `committed` bytes, where the limit is `limit`. Runs at
 * the start of an allocation, on the allocating thread, outside any lock. May free and allocate in ctx, for
 * instance to run the runtime's collector, but not destroy or retire ctx, nor call hak_ctx_thread_done. */
typedef void hak_pressure_fn(hak_ctx *ctx, void *user, size_t committed, size_t limit);
/* Limits the committed bytes of ctx, metadata included; 0 = no limit. The context never passes the hard
 * limit: it gives up its caches first, then allocations return NULL. Each crossing of the soft limit calls
 * `fn` once; fn may be NULL. A limit below what is committed only stops growth. Returns 0, or -1 if soft >
 * hard > 0; then nothing changed. Cost: constant. A refused allocation takes a few steps for each size class,
 * whatever the heap's size; if small blocks were freed since the last refusal, it also looks at each of the
 * context's packed blocks (hak_tuning.packed_bytes). */
HAK_API int hak_limit(hak_ctx *ctx, size_t soft, size_t hard, hak_pressure_fn *fn, void *user);
/* Returns the `fn` of the last hak_limit; NULL = none. *user becomes its `user`; user may be NULL. Cost:
 * constant. */
HAK_API hak_pressure_fn *hak_limit_callback(const hak_ctx *ctx, void **user);

/* committed_bytes == live_bytes + cached_bytes + metadata_bytes, always. */
struct hak_stats {
    size_t size;       /* sizeof(hak_stats), by HAK_STATS_INIT; a smaller one gets fewer fields, a larger one
                          zeros at its end */
    size_t live_bytes; /* bytes of live blocks, as hak_usable_size tells them */
    size_t live_blocks;
    size_t peak_bytes;      /* highest live_bytes so far, with the error of hak_ctx_live_bytes */
    size_t committed_bytes; /* taken from the space and counted by limits; not all of it need be resident */
    size_t metadata_bytes;  /* context, size classes, magazines, maps, bitmaps, label bytes */
    size_t cached_bytes; /* committed and free: in slabs, in magazines, freed big blocks, behind live ones */
    size_t released_bytes; /* part of cached_bytes that trim gave back and nothing touched since */
    size_t reserved_bytes; /* address space of the context's space, the caller's buffer included */
    size_t retained_bytes; /* recycled pages of the space, resident, owned by no context */
    size_t big_bytes;      /* part of live_bytes in mappings of their own */
    size_t big_blocks;
    size_t soft_limit, hard_limit; /* 0 = none */
    uint64_t failures;             /* allocations that were NULL, wrong sizes and alignments included */
    uint64_t os_calls;             /* calls of the OS table by the context's space, without its clock */
    uint64_t fresh_bytes;          /* taken by contexts of the space and not resident: page faults to come */
    uint64_t purged_bytes;         /* given back to the OS by the space so far */
};
#define HAK_STATS_INIT                                                                                       \
    {                                                                                                        \
        sizeof(hak_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                 \
    }
/* Fills in *stats. Returns 0, or -1 if stats->size is not set. Cost: some steps for each size class, about 1
 * us; in a shared context for each size class of each thread's heap. */
HAK_API int hak_ctx_stats(const hak_ctx *ctx, hak_stats *stats);
/* Returns the library's version, "0.1.0". Fast. [any thread] */
HAK_API const char *hak_version(void);

/* ---- Errors -------------------------------------------------------------------------------------- */

typedef enum hak_error {
    HAK_OK = 0,
    HAK_E_FOREIGN,     /* the context does not own the pointer, or no longer does; nothing was touched */
    HAK_E_DOUBLE_FREE, /* the block is free already; the second free was dropped */
    HAK_E_POINTER,     /* inside the context, but not the start of a block; dropped */
    HAK_E_SIZE,        /* sized free or realloc: not what was last asked for; the real size was used */
    HAK_E_ALIGNMENT,   /* alignment not a power of two, or above 1 GiB; NULL was returned */
    HAK_E_OVERFLOW,    /* count * n does not fit size_t, or n is within 1 GiB of PTRDIFF_MAX or above; NULL */
    HAK_E_LABEL,       /* too many labels, or a name that is NULL, empty or over 63 bytes; label 0 */
    HAK_E_USE_AFTER_FREE, /* a free block was written to: found with HAK_DEBUG_POISON and _QUARANTINE, and
                             without them where the write hit the list of free packed blocks */
    HAK_E_CORRUPT,        /* hak_ctx_check: the heap contradicts itself */
    HAK_E_BOUNDS          /* HAK_DEBUG_GUARD, HAK_DEBUG_CANARY: a block was written to behind its end, or
                             (GUARD) before its beginning */
} hak_error;

/* Called on the thread of the failing call, inside it; must not call into the same context. p: the pointer,
 * or NULL. what: one line, valid until the call returns. */
typedef void hak_error_fn(void *user, hak_error error, const void *p, const char *what);
/* The same for a fault that hak_ctx_check finds. */
typedef hak_error_fn hak_report_fn;
/* Returns a name such as "HAK_E_FOREIGN", never NULL. Fast. [any thread] */
HAK_API const char *hak_error_name(hak_error error);

/* ---- Options of a context ------------------------------------------------------------------------ */

/* In options and tunings 0 means the default; HAK_NONE means none at all. */
#define HAK_NONE SIZE_MAX

/* How much memory may be spent for speed. The mode of a context decides which freed blocks the context keeps,
 * the mode of a space which pages the space keeps: docs/guide/modes.md has the numbers. */
typedef enum hak_mode {
    HAK_MODE_BALANCED, /* the default */
    HAK_MODE_MINIMAL,  /* nothing is kept. The baseline to compare with; many system calls */
    HAK_MODE_FAST,     /* more of everything, huge pages from 1 MiB, pages populated early */
    HAK_MODE_LEAN,     /* the lowest peak: a fresh page releases a retained one, and few blocks are kept */
    HAK_MODE_LEARNING, /* as balanced; for hosts that run a learner */
    HAK_MODE_RESEARCH  /* as balanced; for hosts that run a learner and log each of its windows */
} hak_mode;

/* What runs in a context: the order of its frees depends on it. */
typedef enum hak_workload {
    HAK_WORKLOAD_TRACED,  /* a collector sweeps, and gets blocks in the order of addresses again */
    HAK_WORKLOAD_COUNTED, /* references are counted: the block freed last is handed out first;
                             balanced and lean keep 128 of a size at hand, and none above 4 KiB */
    HAK_WORKLOAD_MALLOC   /* anything else: the block freed last is handed out first */
} hak_workload;

enum {
    HAK_DEBUG_CHECK = 1,   /* every free and realloc is checked at once. Magazines are closed, so small blocks
                            are 5 to 12 times slower. The sizes asked for are kept: 3 KiB, and 4 KiB for each
                            16 KiB of blocks */
    HAK_DEBUG_POISON = 2,  /* CHECK too; new blocks hold 0xCD, freed ones 0xDD. The pattern of a freed block
                              of up to 32 KiB is verified on reuse, while its slab stays in the context */
    HAK_DEBUG_ABORT = 4,   /* abort() after on_error */
    HAK_DEBUG_CANARY = 16, /* CHECK too; at least 8 bytes behind the requested ones hold a pattern, which
                              free, realloc and hak_ctx_check compare (HAK_E_BOUNDS). hak_usable_size and
                              hak_good_size return the size asked for, 1 for 0; statistics and hak_block_size
                              count the pattern */
    HAK_DEBUG_QUARANTINE = 32, /* CHECK too; the last 256 freed blocks of up to 32 KiB hold 0xDD and are not
                                  handed out. A second free of such a block is found at once; a write to it
                                  (HAK_E_USE_AFTER_FREE) when it leaves, or by hak_ctx_check. Until then it
                                  counts as live. hak_ctx_flush makes all leave, and while three quarters of
                                  the limit are in use none is held */
    HAK_DEBUG_TRACE = 64,      /* CHECK too; the last calls are kept: see hakmem/trace.h. hak_ctx_new returns
                               NULL if there is no memory for them */
    HAK_DEBUG_RANDOM = 256, /* CHECK too; a block of up to 32 KiB gets a random free place of its slab (16 KiB
                               or more), which nobody can tell who cannot read the context's memory */
    HAK_DEBUG_GUARD = 8 /* a few blocks, drawn at random, lie before a guard page and cannot be touched once
                           they are freed: see hakmem/guard.h. hak_ctx_new gives NULL if the space can have
                           no such pages: it has a buffer only, or an OS table without protect */
};

/* NOT COPIED: name, labels, and the names that labels points to. The caller keeps them as they are until the
 * context is destroyed or, once retired, gone: a name in a buffer that ends before is read after its end.
 * tuning is copied, a policy is referenced, and a quota must outlive the context. */
struct hak_options {
    size_t size;            /* sizeof(hak_options), by HAK_OPTIONS_INIT */
    const char *name;       /* shown in reports; NOT COPIED. NULL = "" */
    hak_quota *quota;       /* the group whose limit counts too. NULL = none */
    hak_error_fn *on_error; /* NULL = misuse is ignored silently */
    void *error_user;
    unsigned debug;            /* HAK_DEBUG_*; default 0 */
    const char *const *labels; /* names of labels 1 to label_count, NOT COPIED. For many contexts that have
                                  the same labels. Default none */
    size_t label_count;        /* at most HAK_LABELS_MAX. Names are as for hak_label_define, all different */
    bool shared;               /* any thread may allocate and free: see "Shared contexts". Default false */
    void *user;                /* for the host: hak_ctx_user. Default NULL */
    bool max_align;           /* every block is aligned to 16, as malloc promises. Sizes round up to multiples
                              of 16, from 512 to 1024 bytes of 64. Default false */
    hak_workload workload;    /* what runs in the context. Default HAK_WORKLOAD_TRACED */
    hak_mode mode;            /* how much memory may be spent for speed, by a space of its own, too */
    const hak_tuning *tuning; /* single numbers, see hakmem/tuning.h. NULL = as mode and workload say */
    const hak_policy *policy; /* see hakmem/policy.h. NULL = none */
    size_t trace_calls; /* with HAK_DEBUG_TRACE: how many calls are kept, 16 to 32768, rounded up to a power
                           of two. Default 0: 1024 */
    uint64_t seed;      /* with HAK_DEBUG_RANDOM: the same seed and the same calls give the same places,
                           relative to each other. Against an attacker, use a random number of the system.
                           Default 0: from the clock and addresses */
};
#define HAK_OPTIONS_INIT                                                                                     \
    {                                                                                                        \
        sizeof(hak_options), NULL, NULL, NULL, NULL, 0, NULL, 0, false, NULL, false, HAK_WORKLOAD_TRACED,    \
            HAK_MODE_BALANCED, NULL, NULL, 0, 0                                                              \
    }
/* Does the same as the macro, for languages without macros. size: sizeof *options, as the caller knows it.
 * Cost: constant. [any thread] */
HAK_API void hak_options_init(hak_options *options, size_t size);

/* Returns what is wrong with the options, in one line; NULL = nothing. Cost: constant; with labels a step for
 * each byte of their names. [any thread] */
HAK_API const char *hak_options_error(const hak_options *options);
/* Returns hak_options.name, or "" for NULL. Fast. [any thread] */
HAK_API const char *hak_ctx_name(const hak_ctx *ctx);
/* Returns hak_options.user; for the heap of a thread in a shared context, that of the context. Fast. [any
 * thread] */
HAK_API void *hak_ctx_user(const hak_ctx *ctx);
/* Refuses new blocks from now on (allocations return NULL), and destroys the context when its last block is
 * freed, at once if there is none. For runtimes that free late. NULL is fine. Cost: that of hak_ctx_flush. */
HAK_API void hak_ctx_retire(hak_ctx *ctx);

/* ---- Spaces -------------------------------------------------------------------------------------- */

struct hak_space_options {
    size_t size;              /* sizeof(hak_space_options), by HAK_SPACE_OPTIONS_INIT */
    const hak_os *os;         /* NULL = the operating system. Copied. */
    uintptr_t max_address;    /* no block at or above it. 0 = 2^47 (what LuaJIT needs); at least 2^24 */
    size_t reserve;           /* address space to reserve at once, without access; 4 MiB to 1 TiB. 0 = none:
                                 with the table of hak_os_init the space maps only what it uses. (With a
                                 max_address under 2^47, or another table, it reserves 64 GiB all the same,
                                 with hak_os_counted 4.) If the system refuses, the space tries half as much,
                                 down to 4 MiB. A reserve counts for RLIMIT_AS, used or not; 1/4096 of it is
                                 committed at once. Further extents are four times as large, up to 64 GiB;
                                 32 extents at most. Their blocks take the slow path */
    void *buffer;             /* memory of the caller in which the space begins. It stays the caller's, who
                                 fills it with zeros before each use. NULL = none. While there are contexts
                                 with labels, a fifth is set aside for label bytes. If blocks have all of
                                 that already, contexts that are made with labels take pages of the OS, and a
                                 context whose blocks are in the buffer is refused its first label */
    size_t buffer_size;       /* 128 KiB to 1 TiB; it must end at or below max_address */
    bool buffer_only;         /* never ask the OS: the buffer is all there is. Default false */
    hak_mode mode;            /* how much memory may be spent for speed: retained pages, huge pages */
    const hak_tuning *tuning; /* single numbers, see hakmem/tuning.h. Copied. NULL = all as mode says */
    const hak_policy *policy; /* see hakmem/policy.h. The space takes a reference. NULL = none */
};
#define HAK_SPACE_OPTIONS_INIT                                                                               \
    {                                                                                                        \
        sizeof(hak_space_options), NULL, 0, 0, NULL, 0, false, HAK_MODE_BALANCED, NULL, NULL                 \
    }
/* Does the same as the macro, as hak_options_init. Cost: constant. [any thread] */
HAK_API void hak_space_options_init(hak_space_options *options, size_t size);

/* Makes a space. options NULL = defaults. Returns NULL if the options are broken (see
 * hak_space_options_error) or there is no address space. Cost: constant, and three calls of the system, about
 * 10 us; with another table than that of hak_os_init one call to reserve, and with os->commit a second one.
 * [any thread] */
HAK_API hak_space *hak_space_new(const hak_space_options *options);
/* Gives back everything that the space has, contexts that still live in it included. NULL is fine. No other
 * thread may be inside a call of the space or of its contexts. Cost: one call of the OS table for each extent
 * and each big block; where nothing is reserved, up to 12 calls for the first extent and for each row of
 * chunks; a step for each context that has a quota, none for other contexts and none for small blocks. */
HAK_API void hak_space_delete(hak_space *space);
/* Returns what is wrong with the options, in one line; NULL = nothing. Cost: constant. [any thread] */
HAK_API const char *hak_space_options_error(const hak_space_options *options);

/* ---- More of allocation -------------------------------------------------------------------------- */

/* Returns a block that begins at a multiple of align, a power of two up to 1 GiB. hak_free frees it. Cost:
 * that of hak_alloc for what n rounds up to; above an alignment of 4096, or 8 KiB, that of a run of 16 KiB
 * units, above 16 KiB that of a mapping. */
HAK_API void *hak_aligned_alloc(hak_ctx *ctx, size_t align, size_t n) HAK_FRESH HAK_SIZED(3) HAK_ALIGNED(2);
/* Returns such a block of count * n bytes, filled with zeros; NULL if count * n overflows. Cost: that of
 * hak_aligned_alloc, and of clearing the block, as hak_calloc. */
HAK_API void *hak_aligned_calloc(hak_ctx *ctx, size_t align, size_t count, size_t n) HAK_FRESH HAK_SIZED(3, 4)
    HAK_ALIGNED(2);
/* Does what hak_realloc does, and aligns the result: p may be any block, of any alignment. A shrink of a
 * block that has the alignment never fails. Cost: up to 4096 that of hak_realloc; above, a block that grows
 * is copied. */
HAK_API void *hak_aligned_realloc(hak_ctx *ctx, void *p, size_t align, size_t n) HAK_SIZED(4) HAK_ALIGNED(3);
/* Does what hak_realloc does, for callers that know the old size: `old` is what was last asked for (HAK_NONE:
 * not known), and is only compared, with HAK_DEBUG_CHECK. A shrink never fails. Cost: that of hak_realloc. */
HAK_API void *hak_realloc_sized(hak_ctx *ctx, void *p, size_t old, size_t n) HAK_SIZED(4);
/* Does what hak_free does, for callers that know the size: n is what was last asked for, by whatever function
 * (HAK_NONE: not known), and is only compared, with HAK_DEBUG_CHECK. Fast. */
HAK_API void hak_free_sized(hak_ctx *ctx, void *p, size_t n);
/* Frees p as hak_free_sized does and returns true if p is a block of ctx; else does nothing and returns
 * false. p may be a block of any context, or NULL, which is of none. Cost: that of hak_free_sized for what
 * this thread took; else that of hak_owns more. */
HAK_API bool hak_free_if_owned(hak_ctx *ctx, void *p, size_t n);

/* Do the same with a label and a call site, as hak_alloc_cs. Cost: as without. */
HAK_API void *hak_calloc_cs(hak_ctx *ctx, size_t count, size_t n, hak_label label, hak_site site) HAK_FRESH
    HAK_SIZED(2, 3);
HAK_API void *hak_aligned_alloc_cs(hak_ctx *ctx, size_t align, size_t n, hak_label label,
                                   hak_site site) HAK_FRESH HAK_SIZED(3) HAK_ALIGNED(2);
HAK_API void *hak_aligned_calloc_cs(hak_ctx *ctx, size_t align, size_t count, size_t n, hak_label label,
                                    hak_site site) HAK_FRESH HAK_SIZED(3, 4) HAK_ALIGNED(2);
HAK_API void *hak_aligned_realloc_cs(hak_ctx *ctx, void *p, size_t align, size_t n, hak_label label,
                                     hak_site site) HAK_SIZED(4) HAK_ALIGNED(3);
/* Give the block this label, even when it stays in place; the functions without _cs keep its label. A block
 * of 16 or 24 bytes may have to move for a label above 15: if there is no memory for the move, and n fits,
 * the block keeps its old label. Cost: as without. */
HAK_API void *hak_realloc_cs(hak_ctx *ctx, void *p, size_t n, hak_label label, hak_site site) HAK_SIZED(3);
HAK_API void *hak_realloc_sized_cs(hak_ctx *ctx, void *p, size_t old, size_t n, hak_label label,
                                   hak_site site) HAK_SIZED(4);
/* Does what hak_free does. site: the place that frees, recorded for blocks that HAK_DEBUG_GUARD drew
 * (hakmem/guard.h) and by HAK_DEBUG_TRACE, else ignored. Fast. */
HAK_API void hak_free_cs(hak_ctx *ctx, void *p, hak_site site);

/* Returns how many bytes of the block may be used; 0 for NULL and for what is not a block of ctx. Cost:
 * constant, a look at the map and the bitmap; for a block with a mapping of its own that of hak_owns. */
HAK_API size_t hak_usable_size(const hak_ctx *ctx, const void *p);
/* Returns hak_usable_size, faster: p must be NULL, a block of ctx, or foreign. For any other pointer, such as
 * one inside a block, the result is meaningless. Fast; for a block with a mapping of its own the cost of
 * hak_owns. */
HAK_API size_t hak_block_size(const hak_ctx *ctx, const void *p);
/* Returns how many bytes hak_alloc(n) would make usable at least; 0 = n is absurd. Up to 1 KiB that is the
 * size of n's class; above, in a local context that packs blocks (hak_tuning.packed_bytes), n rounded up to
 * 16. Only blocks that HAK_DEBUG_GUARD drew have less: exactly n. Fast. [any thread] */
HAK_API size_t hak_good_size(const hak_ctx *ctx, size_t n);

/* ---- More of labels ------------------------------------------------------------------------------ */

/* Returns the name of a label, valid as long as the context is. NULL = no such label. Label 0 is "". Fast.
 * [any thread] */
HAK_API const char *hak_label_name(const hak_ctx *ctx, hak_label label);
/* Returns the label of a live block; 0 also for what is not a block of ctx. Cost: about twice
 * hak_usable_size. */
HAK_API hak_label hak_label_of(const hak_ctx *ctx, const void *p);

typedef struct hak_label_info {
    const char *name;
    hak_label label;
    size_t live_bytes, live_blocks; /* block bytes, as in hak_stats */
} hak_label_info;
/* Fills in *info for one label. Returns 0, or -1 if there is no such label. Cost: that of
 * hak_labels_stats. */
HAK_API int hak_label_stats(const hak_ctx *ctx, hak_label label, hak_label_info *info);
/* Counts all labels, 0 included. Fills in up to `count`, returns how many there are. Cost: a step for each
 * block, about 1 ms for 100 MB. */
HAK_API int hak_labels_stats(const hak_ctx *ctx, hak_label_info *out, size_t count);

/* ---- Groups of contexts -------------------------------------------------------------------------- */

/* Makes a group of contexts, and of further groups, with a limit; 0 = only count. parent NULL = none; a
 * parent must outlive the group. Returns NULL if there is no memory. Cost: constant, and one call for its
 * page; with commit in the table two. [any thread] */
HAK_API hak_quota *hak_quota_new(hak_quota *parent, size_t hard);
/* Does the same, but takes the page of this group, and of groups below it, by a host's table (copied; NULL =
 * hak_quota_new). Returns NULL also for a broken table. Cost: that of hak_quota_new. [any thread] */
HAK_API hak_quota *hak_quota_new_os(const hak_os *os, hak_quota *parent, size_t hard);
/* Deletes a group whose contexts and child groups are gone. NULL is fine. Cost: constant, and one call for
 * the page. [any thread] */
HAK_API void hak_quota_delete(hak_quota *quota);
/* Return the committed bytes of the group: now, and the most so far. Neither counts what a limit refused, and
 * a refused tenant takes nothing from the others even for a moment. Fast. [any thread] */
HAK_API size_t hak_quota_used(const hak_quota *quota);
HAK_API size_t hak_quota_peak(const hak_quota *quota);
/* Sets a new limit; a limit below what is used only stops growth. Fast. [any thread] A group costs some steps
 * each time that a context in it takes memory from its space or gives it back. */
HAK_API void hak_quota_set(hak_quota *quota, size_t hard);

/* ---- Giving back --------------------------------------------------------------------------------- */

/* Empties magazines and caches into their slabs, and gives empty slabs to the space. Returns the bytes
 * uncommitted. Cost: a step for each block at hand, each slab and each packed block. */
HAK_API size_t hak_ctx_flush(hak_ctx *ctx);
/* Flushes, then gives everything unused back to the OS: cached big blocks, retained pages of the space, and
 * holes of 4 KiB and more between live blocks. Returns the bytes given back. Cost: that of hak_ctx_flush, a
 * step for each block that fits the slabs and packed units there are, and one call of the OS table for each
 * hole and each row of retained pages. */
HAK_API size_t hak_ctx_trim(hak_ctx *ctx);
/* Gives pages of the space and big blocks that were unused for a second (hak_tuning.purge_ns) back to the OS,
 * at most 16 MiB of pages in one call; in a shared context also the blocks at hand for threads that ended.
 * The host calls this when it has time to lend. If pages that went back are wanted again, the wait doubles,
 * up to 65 periods. now_ns: a clock that never runs backwards (while it does, or stands still, unused memory
 * stays longer); 0 = the OS table's clock. Cost: a step for each big block, and for each heap of a shared
 * context; once a period also for each size class and each packed block, and the OS calls. */
HAK_API void hak_ctx_tick(hak_ctx *ctx, uint64_t now_ns);

/* ---- More of measuring --------------------------------------------------------------------------- */

/* Restarts peak_bytes: from now on it is the highest since this call. Cost: constant; in a shared context,
 * where any thread may call it, that of hak_ctx_flush for the calling thread's heap and the heaps of threads
 * that ended, and a lock for each other heap. */
HAK_API void hak_ctx_peak_reset(hak_ctx *ctx);
/* Returns live_bytes, off by at most what magazines hold and, while a collector sweeps, 64 blocks of each
 * class up to 1 KiB. Cost: one load; in a shared context some steps for the heap of each thread. [any
 * thread] */
HAK_API size_t hak_ctx_live_bytes(const hak_ctx *ctx);

typedef struct hak_block {
    const void *p;
    size_t size; /* usable */
    hak_label label;
    hak_site site; /* of blocks with mappings of their own (all above 1 MiB); else 0 */
} hak_block;
/* Return false to stop. Must not allocate or free in ctx. */
typedef bool hak_visit_fn(void *user, const hak_block *block);
/* Calls fn for every live block. Returns 0 if fn saw all, 1 if fn stopped. Cost: some steps for each block
 * that was ever handed out of the slabs that there are. */
HAK_API int hak_ctx_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user);

/* The blocks of one size class that lie in slabs, and the free memory between them. */
typedef struct hak_class_info {
    size_t block_bytes;  /* of a block */
    size_t blocks;       /* live ones, and those in magazines */
    size_t free_bytes;   /* of free blocks, in slabs that have other blocks; without what trim gave back */
    size_t pinned_bytes; /* part of free_bytes on pages that also hold a block: trim cannot give it back */
} hak_class_info;
/* Describes the size classes that have slabs, by size. Fills in up to `count`, returns how many there are,
 * 126 at most. Packed and large blocks are in no slab. Cost: a step for each slab, and one for each block of
 * a slab that is neither full nor empty. */
HAK_API int hak_classes_stats(const hak_ctx *ctx, hak_class_info *out, size_t count);
/* Returns the share of a live block in the pinned bytes of its slab, rounded down; 0 where the slab is full,
 * and for what is not a block of ctx. The shares of all blocks sum to pinned_bytes. Cost: a step for each
 * block of the slab at most. */
HAK_API size_t hak_block_pins(const hak_ctx *ctx, const void *p);

/* Checks whether the heap is consistent: true = sound. Each fault goes to `report` (may be NULL). Cost: some
 * steps for each block that fits the slabs and packed units there are. */
HAK_API bool hak_ctx_check(const hak_ctx *ctx, hak_report_fn *report, void *user);

/* ---- Shared contexts ----------------------------------------------------------------------------- */

/* All threads may use a context with hak_options.shared at once, through the same functions. Each thread gets
 * a heap of its own in the context on first use (16 KiB and what it allocates). Any thread may free any
 * block. A thread collects the blocks of other heaps that it frees in batches, which an idle thread holds
 * back until it frees again, calls hak_ctx_thread_done or exits. Limits and labels are exact over all
 * threads.
 *
 * What differs from a local context:
 *  - labels: the first label may be defined at any time, too; it stops other threads' slow paths while the
 *    label bytes of the heap are cleared, about 1 ms for 100 MB
 *  - on_error: runs with a heap's lock held, on any thread; it must not call into the context
 *  - the callback of hak_limit: runs on the thread that crossed the soft limit
 *  - stats, label and class stats, live_bytes, owns, block_pins, usable_size, flush, trim, tick: any thread
 *    may call them, beside all others. Sums are exact when no other thread is inside a call. Magazines of
 *    other threads are left alone
 *  - visit, check: no other thread may be inside a call of the context
 *  - destroy: no other thread may be inside a call; blocks under way between threads are freed, too
 *  - retire: no other thread may be inside a call meanwhile; afterwards any thread may free, one at a time
 *  - peak_bytes: within 64 KiB a thread and what magazines hold. hak_ctx_peak_reset empties the magazines of
 *    the calling thread and of threads that ended */

/* Returns the calling thread's heap in a shared context: a context for this thread alone, with the speed of a
 * local one, whose blocks are those of the shared context. Hosts keep it in a thread-local variable; it is
 * not valid after hak_ctx_thread_done or hak_ctx_retire. NULL = no memory. For a local context, returns ctx
 * itself. Cost: constant, a few instructions once the thread has its heap; the first time that of
 * hak_ctx_new, a step for the heap of each other thread, and a question to the OS table for up to 16 heaps
 * whose threads may have died. [any thread] */
HAK_API hak_ctx *hak_ctx_thread(hak_ctx *ctx);
/* Tells that the calling thread will not use the shared context for a while: its heap goes to the next thread
 * that needs one. If the thread comes back, it gets a heap again. A thread that ends without this call leaves
 * its heap to the next thread on the same stack, and its slabs to any. Has no effect on local contexts. Cost:
 * two locks, and a step for each batch of other heaps' blocks that the thread has collected, whatever its own
 * heap holds. [any thread] */
HAK_API void hak_ctx_thread_done(hak_ctx *ctx);
/* Keep a context sound across fork(). The forking thread calls prepare before fork(), then parent in the
 * parent and child in the child (pthread_atfork). Every shared context needs these calls, and every local
 * context whose space is used by several threads. Contexts of one space come one after the other, in any
 * order; those of a space that has a learner come before others. Between prepare and its counterpart the
 * forking thread must not call a function of the context or of its space; other threads wait. In the child
 * the heaps of the other threads go to the threads that come next; the sums of hak_ctx_stats stay off by what
 * such a thread had in hand. What such a thread was charging to a quota group is given back; therefore the
 * child must start no thread before it has called child for each context. Cost: two locks, and one for the
 * heap of each thread; prepare waits for whoever holds one. [any thread] */
HAK_API void hak_ctx_fork_prepare(hak_ctx *ctx);
HAK_API void hak_ctx_fork_parent(hak_ctx *ctx);
HAK_API void hak_ctx_fork_child(hak_ctx *ctx);

/* ---- Advanced: whose memory it is ---------------------------------------------------------------- */

/* Returns whether p points into memory that ctx owns. p may be any pointer, and is never dereferenced. Freed
 * big blocks that are kept, and room behind live big blocks, belong to nobody. Cost: one look at the map; for
 * an address between the space's n big blocks about 2 log2(n) steps, under the lock of the space. [any
 * thread] */
HAK_API bool hak_owns(const hak_ctx *ctx, const void *p);
/* Returns the context that owns the memory at p; NULL = none of this space. Never dereferences p. [any
 * thread, while that context is not being destroyed] Cost: that of hak_owns. */
HAK_API hak_ctx *hak_ctx_of(const hak_space *space, const void *p);
/* Returns the space in which ctx is: its own, or the one that hak_ctx_new was given. Fast. [any thread] */
HAK_API hak_space *hak_ctx_space(const hak_ctx *ctx);
/* Returns how many of the n bytes from p on belong to the space: to its extents and their metadata, the
 * caller's buffer, big blocks, room behind big blocks, or tables of profiles that lie apart from their
 * contexts. Never dereferences p. Cost: a step for each extent, for each big block that begins in these
 * bytes, and for each group of pages of such tables, under the lock of the space. [any thread] */
HAK_API size_t hak_space_bytes_within(hak_space *space, const void *p, size_t n);
/* Frees a block, by a thread that may free in its context, for hosts that lost that; ignores what is not of
 * this space. Cost: that of hak_ctx_of and of hak_free. */
HAK_API void hak_space_free(hak_space *space, void *p);

/* ---- Advanced: pages from the host --------------------------------------------------------------- */

/* Where pages come from. NULL in hak_space_options means the operating system. Every function gets `user`,
 * and must not call into hakmem. The functions that concern pages, from reserve to huge and protect, are
 * called one at a time, with a lock of the space held; any thread calls the others at any time. Memory from
 * reserve must read as zero once committed, and again after decommit and commit. */
struct hak_os {
    size_t size; /* sizeof(hak_os), by hak_os_init */
    void *user;
    /* Address space of n bytes, aligned, ending at or below `below` (0 = anywhere). NULL = failed. */
    void *(*reserve)(void *user, size_t n, size_t align, uintptr_t below);
    /* Make pages usable; 0 = ok. May be called again for pages in use. NULL = reserve gives usable pages. If
     * this is the commit of hak_os_init, pages stay usable after decommit, so the space commits each chunk of
     * 2 MiB once. */
    int (*commit)(void *user, void *p, size_t n);
    /* Give the pages back, keep the addresses. */
    void (*decommit)(void *user, void *p, size_t n);
    /* Give pages and addresses back; p and n as reserved (or as remapped). */
    void (*release)(void *user, void *p, size_t n);
    /* Resize a whole reservation, moving it if needed (mremap); NULL = failed, nothing changed. The
     * pointer itself may be NULL: blocks are copied then. What is added is committed; 0 there, too. */
    void *(*remap)(void *user, void *p, size_t old_n, size_t n, uintptr_t below);
    /* Hint: use huge pages here. May be NULL. */
    void (*huge)(void *user, void *p, size_t n);
    /* Monotonic nanoseconds. */
    uint64_t (*clock)(void *user);
    /* The calling thread's number, never 0, and whether a thread of that number lives. By these two, shared
     * contexts learn that a thread died without hak_ctx_thread_done. Both may be NULL. */
    uint64_t (*thread_id)(void *user);
    bool (*thread_alive)(void *user, uint64_t id);
    /* Hint, by any thread: all of these fresh pages are about to be written to. One call can cost less than a
     * page fault for each (Linux: MADV_POPULATE_WRITE). May be NULL. */
    void (*populate)(void *user, void *p, size_t n);
    /* Sets whether pages of a reservation may be touched, for HAK_DEBUG_GUARD; 0 = ok. Pages that become
     * touchable again are committed. If it is NULL, no context of the space can have guard pages. */
    int (*protect)(void *user, void *p, size_t n, bool access);
};
/* Fills in the table of the operating system. size: sizeof *os, as the caller was compiled. Cost: constant.
 * [any thread] */
HAK_API void hak_os_init(hak_os *os, size_t size);
static inline void hak_os_default(hak_os *os)
{
    hak_os_init(os, sizeof *os);
}

/* Changes a table of hak_os_init, in which nothing else was changed yet, for hosts where every writable page
 * counts (vm.overcommit_memory=2, RLIMIT_DATA). Units of 16 KiB are then committed when they are used, and
 * memory that goes back is mapped anew, at most 8192 such holes. Without this call 2 MiB count at a time,
 * until they are free as a whole and went back. The price is a call of the system whenever fresh units are
 * taken, and no huge pages. Returns false for any other table, which it leaves as it is, and always on macOS,
 * where no limit counts pages that were not touched. On Windows the table of hak_os_init is such a one: true.
 * Cost: constant. Since 0.1. [any thread] */
HAK_API bool hak_os_counted(hak_os *os);

/* ---- Advanced: structs of any version ------------------------------------------------------------ */

/* Copies a struct that begins with its size, a size_t, and of which the caller knows `known` bytes. Fields
 * that `from` lacks become 0, to->size becomes `known`. Returns false if the size is impossible, or if a byte
 * behind `known` is not 0; *to must then not be used. Cost: a step for each byte. [any thread] */
HAK_API bool hak_sized_copy(void *to, size_t known, const void *from);
/* Returns NULL if a program with that HAK_LAYOUT may use this library, else what is wrong, in one line. In C
 * and C++ the functions that make contexts and spaces ask by themselves: they return NULL, and
 * hak_options_error and hak_space_options_error return the line. Other languages ask once. Fast. [any
 * thread] */
HAK_API const char *hak_header_error(int layout);
#define hak_options_error(...)                                                                               \
    (hak_header_error(HAK_LAYOUT) ? hak_header_error(HAK_LAYOUT) : hak_options_error(__VA_ARGS__))
#define hak_space_options_error(...)                                                                         \
    (hak_header_error(HAK_LAYOUT) ? hak_header_error(HAK_LAYOUT) : hak_space_options_error(__VA_ARGS__))
#define hak_ctx_new(...) (hak_header_error(HAK_LAYOUT) ? NULL : hak_ctx_new(__VA_ARGS__))
#define hak_space_new(...) (hak_header_error(HAK_LAYOUT) ? NULL : hak_space_new(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
