/* hakmem: a memory allocator to embed in language runtimes.
 *
 * INTRODUCTION
 *   A *context* (hak_ctx) is one heap: a Lua state, a Python interpreter, a WebAssembly tenant has one.
 *   It owns every block that it hands out, and destroying it frees them all at once. A *space*
 *   (hak_space) supplies address space and pages to many contexts and keeps recycled pages resident. A
 *   *label* says which part of the runtime a block belongs to; the live bytes of all labels sum to the
 *   live bytes of the context, exactly, at any time.
 *
 *   The library has no global and no thread-local mutable state, reads no environment variable, starts
 *   no thread, prints nothing and, unless HAK_DEBUG_ABORT is set, never aborts.
 *
 *       hak_ctx *ctx = hak_ctx_new(NULL, NULL);
 *       hak_label str = hak_label_define(ctx, "string");
 *       char *s = hak_alloc_cs(ctx, 40, str, HAK_CALLSITE());
 *       hak_free(ctx, s);
 *       hak_ctx_destroy(ctx);
 *
 * CONVENTIONS, for every function below unless it says otherwise
 *   Units      sizes are bytes.
 *   Alignment  8; 16 if the size is a multiple of 16, or with hak_options.max_align; 4096 at least above
 *              32 KiB.
 *   Ownership  blocks belong to the context that made them; pass them back to that context only.
 *   Threads    one thread at a time per context (a context is "local"), unless hak_options.shared makes it
 *              everybody's. A space is thread-safe. The functions marked [any thread] may run beside the
 *              thread of a local context. A thread that finds a lock taken spins, then yields, then
 *              sleeps up to half a millisecond at a time, so that threads of different priorities may share a
 *              processor.
 *   Errors     NULL means out of memory or over the limit, and leaves everything as it was. Misuse is
 *              reported to hak_options.on_error where it is detected; see hak_error.
 *   Structs    options begin with their size and grow at their end: what a smaller one lacks is the default,
 *              0 but for hak_policy_options.mode; a larger one is accepted only if every byte beyond what
 *              this library knows, up to 4 KiB, is 0. The same holds for hak_os. hak_stats may have any size
 *              up to that: see there. hak_block may get further members at its end; hak_label_info stays as
 *              it is.
 *   Cost       "fast" is without lock or system call in the usual case: 14 to 40 instructions in a local
 *              context, 30 to 60 in a shared one, 70 to 90 for an allocation where guard pages are drawn.
 *              Where a young heap packs its small blocks an allocation takes up to 40, a free up to 90, a
 *              realloc in place up to 360; until 64 blocks were freed, and under a limit below 256 KiB, an
 *              allocation takes 90 to 400 on average, a free up to 140. "constant" is at most 1600, whatever
 *              the heap holds, and no system call. "a step" is a few instructions. In a shared context most slow
 *              paths take a lock. What is said of cost is tested by instruction counts.
 *   Order      what a first program needs, options, then one topic after the other; advanced uses last.
 *   Since      0.1 for everything in this file.
 *
 * STABILITY  Stable. Each public header has such a line:
 *              - Stable: a program that compiles goes on compiling, and means the same, with the next minor
 *                version. A change that breaks programs is named in CHANGELOG.md one minor version before.
 *              - Experimental: functions, structs and numbers may change or go with each minor version.
 *            Versions that differ in the patch alone have one binary interface, of both classes:
 *            libhakmem.so may be replaced under a program. Before 1.0 each minor version has a soname.
 *
 * MISUSE
 *   Always detected, at once: a pointer outside the context (every free and realloc: HAK_E_FOREIGN, nothing
 *   is touched), count * n overflow, absurd sizes and alignments, a broken options struct; and of blocks
 *   above 1 MiB a second free and a pointer into the middle.
 *
 *   Detected at once with HAK_DEBUG_CHECK: in every free and realloc, a block that is free and a pointer into
 *   the middle of one; and, in sized calls, a size that is not what was last asked for.
 *
 *   Without HAK_DEBUG_CHECK, for blocks of up to 1 MiB:
 *    - A free of a free block, or of a pointer into the middle of one: a freed pointer mostly waits in the
 *      magazine of its size class, and is validated when the magazine gives it back (by hak_ctx_flush at the
 *      latest). A wrong pointer is reported then, and dropped. Until then the magazine may hand it out: a
 *      block freed twice to two callers, a pointer into a block to one, and no error is reported.
 *    - A realloc of such a pointer may return the pointer if the new size needs no other block. It takes a
 *      free block that waits in a magazine for a live one. Otherwise the pointer is reported and the result
 *      is NULL.
 *    - The size given to a sized free or realloc is ignored: a wrong one does no harm.
 *   In a shared context, what is freed may also wait on its way to the heap that it came from.
 *
 *   An overflow of a block by up to 64 bytes, in either direction, and a write to a free block, change no
 *   metadata but labels in a caller's buffer: at worst other blocks' contents. See docs/guide/misuse.md.
 *
 *   Never detected: a second free of a block that was handed out again meanwhile. It frees the new block.
 *
 *   What a second free is called depends on what became of the memory: HAK_E_DOUBLE_FREE while it serves
 *   blocks of that size, HAK_E_POINTER if the context uses it for something else, HAK_E_FOREIGN once the
 *   context gave it back, as it soon does with blocks above 32 KiB. With HAK_DEBUG_CHECK, blocks of up to 1
 *   MiB are HAK_E_FOREIGN only if another context has the memory by then.
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
/* Numbers what the structs and constants of the headers mean: another number, and a program and a library
 * that do not fit together. What only grows at its end keeps the number. See hak_header_error. */
#define HAK_LAYOUT 1

#if defined(__GNUC__)
#define HAK_API __attribute__((visibility("default")))
#else
#define HAK_API
#endif

/* What functions that return a block say to compilers: which arguments are its size and its alignment, that
 * nothing else points to it, and that a result which nobody uses is a leak. So a compiler warns of an access
 * behind the bytes asked for, and _FORTIFY_SOURCE stops the program there, although hak_usable_size may allow
 * it. A program that uses such bytes asks hak_realloc for them first, or defines HAK_NO_ATTRIBUTES before it
 * includes this header. */
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
 * 0 = unknown. Keys the cache of big blocks, is shown for big blocks by hak_ctx_visit, and for all by
 * profiles (hakmem/profile.h). */
typedef uintptr_t hak_site;
#define HAK_CALLSITE() ((hak_site)__builtin_return_address(0))

/* ---- First steps --------------------------------------------------------------------------------- */

/* space NULL = one of its own (share one among many contexts: it is what makes small ones cheap).
 * options NULL = defaults. NULL = broken options, out of memory, or the quota is full.
 * Cost: constant, about 0.1 us, in a space with retained pages; with labels that of hak_options_error. */
HAK_API hak_ctx *hak_ctx_new(hak_space *space, const hak_options *options);
/* Frees everything at once, whatever is live, and returns the pages to the space. NULL is fine. Cost: a step
 * for each slab, run and big block, none for a small block; one call of the OS table for each big block. */
HAK_API void hak_ctx_destroy(hak_ctx *ctx);

/* A block of n bytes; n = 0 gives a distinct block. Fast. */
HAK_API void *hak_alloc(hak_ctx *ctx, size_t n) HAK_FRESH HAK_SIZED(2);
/* Zero-filled. Overflow of count * n gives NULL. Cost: that of hak_alloc, and of clearing the block; fresh
 * pages are not cleared again. */
HAK_API void *hak_calloc(hak_ctx *ctx, size_t count, size_t n) HAK_FRESH HAK_SIZED(2, 3);
/* p NULL = hak_alloc; n = 0 gives a block of the smallest size. Failure leaves p as it was. A block between
 * 1 and 32 KiB that grows by less than a sixteenth is over-allocated, by up to half of what is asked for and
 * to the next power of two at most. The alignment of hak_aligned_alloc is kept only while the block stays in
 * place, and a block that fits and finds no memory stays where it is, 8-aligned perhaps. Cost: fast in
 * place; else that of an allocation, a copy and a free, but blocks above 1 MiB are moved without a copy
 * where the OS table has remap. */
HAK_API void *hak_realloc(hak_ctx *ctx, void *p, size_t n) HAK_SIZED(3);
/* The block goes back to its context. NULL is fine. Fast. */
HAK_API void hak_free(hak_ctx *ctx, void *p);
/* hak_alloc with a label and a call site. label: 0, or from hak_label_define or hak_options.labels; another
 * value is not validated on the fast path, and the block counts for some other label or for 0. Fast. */
HAK_API void *hak_alloc_cs(hak_ctx *ctx, size_t n, hak_label label, hak_site site) HAK_FRESH HAK_SIZED(2);

/* The label of this name, made on first use. Same name, same label. 0 = failed (HAK_E_LABEL, or no
 * memory). The name is copied; hints of a policy reach one without blanks at its ends and without control
 * characters. Cost: a comparison with each name that there is. The first label also clears a byte for each
 * block that there is room for. */
HAK_API hak_label hak_label_define(hak_ctx *ctx, const char *name);

/* The soft limit was crossed upwards: `committed` of `limit` bytes. Runs at the start of an allocation,
 * outside any lock, on its thread; may free and allocate in ctx, to run the runtime's collector for instance.
 */
typedef void hak_pressure_fn(hak_ctx *ctx, void *user, size_t committed, size_t limit);
/* Limits on committed bytes, metadata included; 0 = none. The hard limit is never passed: ctx gives up its
 * caches first, then allocations are NULL. One call of `fn` per crossing of the soft limit; fn may be NULL. A
 * limit below what is committed only stops growth. 0 = ok, -1 = soft > hard > 0, nothing changed. Cost:
 * constant. An allocation that is refused takes a few steps for each size class, whatever the heap's size;
 * where small blocks were freed since the last one also a look at each of the context's packed blocks
 * (hak_tuning.packed_bytes). */
HAK_API int hak_limit(hak_ctx *ctx, size_t soft, size_t hard, hak_pressure_fn *fn, void *user);
/* The `fn` of the last hak_limit; NULL = none. *user is its `user`; user may be NULL. The limits themselves
 * are in hak_stats. For who changes a limit for a while. Cost: constant. */
HAK_API hak_pressure_fn *hak_limit_callback(const hak_ctx *ctx, void **user);

/* committed_bytes == live_bytes + cached_bytes + metadata_bytes, always. */
struct hak_stats {
    size_t size;       /* sizeof(hak_stats), set by the caller; a smaller one gets fewer fields, a larger one
                          zeros at its end */
    size_t live_bytes; /* bytes of live blocks, as hak_usable_size tells them */
    size_t live_blocks;
    size_t peak_bytes;      /* highest live_bytes so far, with the error of hak_ctx_live_bytes */
    size_t committed_bytes; /* taken from the space and counted by limits; not all of it need be resident */
    size_t metadata_bytes;  /* context, size classes, magazines, maps, bitmaps, label bytes */
    size_t cached_bytes;   /* committed and free: in slabs, in magazines, freed big blocks, behind big ones */
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
/* Fills in *stats. 0 = ok; -1 = size is not set. Cost: some steps for each size class, about 1 us; in a
 * shared context for the heap of each thread, too. */
HAK_API int hak_ctx_stats(const hak_ctx *ctx, hak_stats *stats);
/* The library's version, "0.1.0". Fast. [any thread] */
HAK_API const char *hak_version(void);

/* ---- Errors -------------------------------------------------------------------------------------- */

typedef enum hak_error {
    HAK_OK = 0,
    HAK_E_FOREIGN,     /* the pointer does not belong to this context, or no more; nothing was touched */
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
/* The same for hak_ctx_check. */
typedef hak_error_fn hak_report_fn;
/* A name such as "HAK_E_FOREIGN". Never NULL. Fast. [any thread] */
HAK_API const char *hak_error_name(hak_error error);

/* ---- Options of a context ------------------------------------------------------------------------ */

/* In options and tunings where 0 means the default: none at all. */
#define HAK_NONE SIZE_MAX

/* How much memory may be spent for speed. A context and its space have a mode each: that of the context rules
 * what it keeps of freed blocks, that of the space what it keeps of pages. docs/guide/modes.md tells which
 * one to choose. */
typedef enum hak_mode {
    HAK_MODE_BALANCED, /* the default: a few blocks a size class, 16 MiB of freed big blocks, retained pages
                          up to 32 MiB or half of what is in use */
    HAK_MODE_MINIMAL,  /* nothing is kept: each free returns to its slab, each empty slab to the space, each
                          unused page to the OS at once. The baseline to compare with; many system calls */
    HAK_MODE_FAST,     /* more of everything, huge pages from 1 MiB, pages populated early */
    HAK_MODE_LEAN, /* the lowest peak: at a new peak each fresh page releases a retained one; blocks above 4
                     KiB, and few big ones, are not kept; no huge pages */
    HAK_MODE_LEARNING, /* as balanced; for hosts that run a learner */
    HAK_MODE_RESEARCH  /* as balanced; for hosts that run a learner and log each of its windows */
} hak_mode;

/* What runs in a context, as far as the order of its frees depends on it. */
typedef enum hak_workload {
    HAK_WORKLOAD_TRACED,  /* a collector sweeps: frees in the order of addresses are taken for its sweep, and
                             the blocks are handed out in that order again */
    HAK_WORKLOAD_COUNTED, /* references are counted: what was freed last is handed out first. Small blocks
                             come and go in bursts, larger ones seldom: balanced and lean keep 128 of a size
                             at hand, and none above 4 KiB. Minimal and fast keep what they always do */
    HAK_WORKLOAD_MALLOC   /* anything: what was freed last is handed out first */
} hak_workload;

enum {
    HAK_DEBUG_CHECK = 1, /* every free and realloc is checked at once; magazines are closed (small blocks 5 to
                            12 times slower); what was asked for is kept: 3 KiB, and 4 KiB for each 16 KiB of
                            blocks */
    HAK_DEBUG_POISON = 2,  /* CHECK too; new blocks hold 0xCD, freed ones 0xDD, which is verified on reuse: of
                              blocks up to 32 KiB, while their slab stays in the context */
    HAK_DEBUG_ABORT = 4,   /* abort() after on_error */
    HAK_DEBUG_CANARY = 16, /* CHECK too; at least 8 bytes behind the requested ones hold a pattern, which
                              free, realloc and hak_ctx_check look at (HAK_E_BOUNDS). hak_usable_size and
                              hak_good_size are what was asked for, 1 for 0; statistics and hak_block_size
                              count the pattern */
    HAK_DEBUG_QUARANTINE = 32, /* CHECK too; the last 256 freed blocks of up to 32 KiB hold 0xDD and are not
                                  handed out. A second free of one is found, and a write to one, when it
                                  leaves and by hak_ctx_check (HAK_E_USE_AFTER_FREE). Until then they count as
                                  live. All leave by hak_ctx_flush, and where three quarters of the limit are
                                  in use none is held */
    HAK_DEBUG_TRACE = 64,   /* CHECK too; the last calls are kept with pointer, size, label, site and thread,
                               and on_error may print those of its pointer: see hakmem/trace.h. hak_ctx_new
                               returns NULL if there is no memory for them */
    HAK_DEBUG_RANDOM = 256, /* CHECK too; a block of up to 32 KiB gets a random one of the free places of its
                               slab (16 KiB or more), so that the next address cannot be told from the ones
                               before. Larger blocks are placed as usual. A program that can read the
                               context's memory can predict the places */
    HAK_DEBUG_GUARD = 8 /* a few blocks, drawn at random, lie before a guard page and cannot be touched once
                           they are freed: see hakmem/guard.h. hak_ctx_new gives NULL if the space can have
                           no such pages: it has a buffer only, or an OS table without protect */
};

struct hak_options {
    size_t size;            /* sizeof(hak_options), by HAK_OPTIONS_INIT */
    const char *name;       /* shown in reports; referenced, not copied. NULL = "" */
    hak_quota *quota;       /* the group whose limit counts too. NULL = none */
    hak_error_fn *on_error; /* NULL = misuse is ignored silently */
    void *error_user;
    unsigned debug;            /* HAK_DEBUG_*; default 0 */
    const char *const *labels; /* names of labels 1 to label_count, referenced, not copied: saves defining */
    size_t label_count; /* them in each of many contexts. Default none; at most HAK_LABELS_MAX. Names are
                           as for hak_label_define, all different */
    bool shared;        /* any thread may allocate and free: see "Shared contexts". Default false */
    void *user;         /* for the host: hak_ctx_user. Default NULL */
    bool max_align; /* every block is aligned to 16, as any type wants it (max_align_t) and malloc promises.
                       Sizes round up to a multiple of 16, from 512 to 1024 of 64. Default false */
    hak_workload workload; /* what runs in the context. Default HAK_WORKLOAD_TRACED */
    hak_mode mode;         /* how much memory may be spent for speed. Default HAK_MODE_BALANCED; a space that
                              hak_ctx_new makes for this context has the same mode */
    const hak_tuning
        *tuning; /* single numbers, see hakmem/tuning.h. Copied. NULL = as mode and workload say */
    const hak_policy *policy; /* see hakmem/policy.h. The context, and a space of its own, take references.
                                 NULL = none */
    size_t trace_calls; /* with HAK_DEBUG_TRACE: how many are kept, 16 to 32768, rounded up to a power of two.
                           Default 0: 1024 */
    uint64_t seed;      /* with HAK_DEBUG_RANDOM: the same seed and the same calls give the same places,
                           relative to each other; in a shared context only if its threads come in the same
                           order. Against an attacker take it from the system's random numbers. Default 0:
                           from the clock and addresses */
};
#define HAK_OPTIONS_INIT                                                                                     \
    {                                                                                                        \
        sizeof(hak_options), NULL, NULL, NULL, NULL, 0, NULL, 0, false, NULL, false, HAK_WORKLOAD_TRACED,    \
            HAK_MODE_BALANCED, NULL, NULL, 0, 0                                                              \
    }
/* The same for languages without the macro. size: sizeof *options, as the caller knows it. Cost: constant.
 * [any thread] */
HAK_API void hak_options_init(hak_options *options, size_t size);

/* What is wrong with the options, in one line; NULL = nothing. Cost: constant; with labels a step for each
 * byte of their names. [any thread] */
HAK_API const char *hak_options_error(const hak_options *options);
/* hak_options.name, never NULL. Fast. [any thread] */
HAK_API const char *hak_ctx_name(const hak_ctx *ctx);
/* hak_options.user. Of a shared context's heap for a thread, that of the context. Fast. [any thread] */
HAK_API void *hak_ctx_user(const hak_ctx *ctx);
/* No new blocks from now on (they are NULL); the context is destroyed with its last block, at once if
 * it has none. For runtimes that free late. NULL is fine. Cost: that of hak_ctx_flush. */
HAK_API void hak_ctx_retire(hak_ctx *ctx);

/* ---- Spaces -------------------------------------------------------------------------------------- */

struct hak_space_options {
    size_t size;              /* sizeof(hak_space_options), by HAK_SPACE_OPTIONS_INIT */
    const hak_os *os;         /* NULL = the operating system. Copied. */
    uintptr_t max_address;    /* no block at or above it. 0 = 2^47 (what LuaJIT needs); at least 2^24 */
    size_t reserve;           /* address space to reserve at once, without access; 4 MiB to 1 TiB. 0 = none: with
                                 the table of hak_os_init only what is used is mapped, chunk by chunk, at
                                 addresses where nobody else maps anything (below a max_address under 2^47,
                                 and with another table, 64 GiB are reserved, or 4 with hak_os_counted). A
                                 reserve is halved down to 4 MiB when it is refused, and what a limit such as
                                 RLIMIT_AS did not grant whole leaves a half to others. It counts for
                                 RLIMIT_AS, used or not. A map of it, of 1/4096, is committed at once.
                                 Further extents are four times as large up to 64 GiB; 32 extents at most.
                                 Blocks of further extents take the slow path */
    void *buffer;             /* memory of the caller in which the space begins; stays the caller's, who has
                                 filled it with zeros, each time anew. NULL = none. While there are
                                 contexts with labels, a fifth of it is set aside for label bytes, except
                                 units that have blocks already. Where that leaves no room for label bytes,
                                 contexts that are made with labels take pages of the OS, and a context whose
                                 blocks are in the buffer is refused its first label */
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
/* The same for languages without the macro. size: sizeof *options, as the caller knows it. Cost: constant.
 * [any thread] */
HAK_API void hak_space_options_init(hak_space_options *options, size_t size);

/* options NULL = defaults. NULL = the options are broken (see hak_space_options_error), or there is no
 * address space. Cost: constant, and three calls of the system, about 10 us; with another table than that of
 * hak_os_init one call to reserve, and with os->commit a second one. [any thread] */
HAK_API hak_space *hak_space_new(const hak_space_options *options);
/* Everything of the space goes back, contexts that still live in it included. NULL is fine. No other thread
 * may be inside a call of the space or of its contexts. Cost: one call of the OS table for each extent and
 * each big block, and where nothing is reserved up to 12 for the first extent and for each row of chunks; a step for each context that has a quota, none for others and none for small blocks. */
HAK_API void hak_space_delete(hak_space *space);
/* What is wrong with the options, in one line; NULL = nothing. Cost: constant. [any thread] */
HAK_API const char *hak_space_options_error(const hak_space_options *options);

/* ---- More of allocation -------------------------------------------------------------------------- */

/* A block that begins at a multiple of align, a power of two up to 1 GiB. Free with hak_free. Cost: that of
 * hak_alloc for what n rounds up to; above an alignment of 4096, or 8 KiB, that of a run of 16 KiB units,
 * above 16 KiB that of a mapping. */
HAK_API void *hak_aligned_alloc(hak_ctx *ctx, size_t align, size_t n) HAK_FRESH HAK_SIZED(3) HAK_ALIGNED(2);
/* The same, zero-filled. Overflow of count * n gives NULL. Cost: that of hak_aligned_alloc, and of
 * clearing the block, as hak_calloc. */
HAK_API void *hak_aligned_calloc(hak_ctx *ctx, size_t align, size_t count, size_t n) HAK_FRESH HAK_SIZED(3, 4)
    HAK_ALIGNED(2);
/* hak_realloc with an alignment for what it returns: p may be any block, of any alignment. A shrink of a
 * block that has the alignment never fails. Cost: up to 4096 that of hak_realloc; above, a block that grows
 * is copied. */
HAK_API void *hak_aligned_realloc(hak_ctx *ctx, void *p, size_t align, size_t n) HAK_SIZED(4) HAK_ALIGNED(3);
/* hak_realloc where the old size is known: `old` is what was last asked for (HAK_NONE: not known). It is only
 * compared, with HAK_DEBUG_CHECK. A shrink never fails. Cost: that of hak_realloc. */
HAK_API void *hak_realloc_sized(hak_ctx *ctx, void *p, size_t old, size_t n) HAK_SIZED(4);
/* n is what was last asked for, whatever the function (HAK_NONE: not known). Only compared, with
 * HAK_DEBUG_CHECK. Fast. */
HAK_API void hak_free_sized(hak_ctx *ctx, void *p, size_t n);

/* With a label and a call site, as hak_alloc_cs. Cost: as without. */
HAK_API void *hak_calloc_cs(hak_ctx *ctx, size_t count, size_t n, hak_label label, hak_site site) HAK_FRESH
    HAK_SIZED(2, 3);
HAK_API void *hak_aligned_alloc_cs(hak_ctx *ctx, size_t align, size_t n, hak_label label,
                                   hak_site site) HAK_FRESH HAK_SIZED(3) HAK_ALIGNED(2);
HAK_API void *hak_aligned_calloc_cs(hak_ctx *ctx, size_t align, size_t count, size_t n, hak_label label,
                                    hak_site site) HAK_FRESH HAK_SIZED(3, 4) HAK_ALIGNED(2);
HAK_API void *hak_aligned_realloc_cs(hak_ctx *ctx, void *p, size_t align, size_t n, hak_label label,
                                     hak_site site) HAK_SIZED(4) HAK_ALIGNED(3);
/* The block takes this label, also when it stays in place; without _cs it keeps its own. One of 16 or 24
 * bytes may have to move for a label above 15: where there is no memory for that, and n fits, it keeps its
 * own. Cost: as without. */
HAK_API void *hak_realloc_cs(hak_ctx *ctx, void *p, size_t n, hak_label label, hak_site site) HAK_SIZED(3);
HAK_API void *hak_realloc_sized_cs(hak_ctx *ctx, void *p, size_t old, size_t n, hak_label label,
                                   hak_site site) HAK_SIZED(4);
/* site: the place that frees. Recorded for blocks that HAK_DEBUG_GUARD drew (hakmem/guard.h) and by
 * HAK_DEBUG_TRACE, else not. Fast. */
HAK_API void hak_free_cs(hak_ctx *ctx, void *p, hak_site site);

/* Bytes of the block that may be used; 0 for NULL and for what is not a block of ctx. Cost: constant, a look
 * at the map and the bitmap; for a block with a mapping of its own that of hak_owns. */
HAK_API size_t hak_usable_size(const hak_ctx *ctx, const void *p);
/* hak_usable_size, faster: p must be NULL, a block of ctx, or foreign. For others, such as a pointer inside a
 * block, any number. Fast; for a block with a mapping of its own the cost of hak_owns. */
HAK_API size_t hak_block_size(const hak_ctx *ctx, const void *p);
/* The bytes that a new block of n may use at least, without the block; hak_usable_size tells those of a
 * block. 0 = n is absurd. Up to 1 KiB that is the size of n's class; above, in a local context that packs
 * blocks (hak_tuning.packed_bytes), n rounded up to 16. Packed blocks, those of a shared
 * context that borrow from a wider class, and large ones that were kept may have more. Blocks that
 * HAK_DEBUG_GUARD drew have less: exactly n. Fast. [any thread] */
HAK_API size_t hak_good_size(const hak_ctx *ctx, size_t n);

/* ---- More of labels ------------------------------------------------------------------------------ */

/* The name of a label, valid as long as the context is. NULL = no such label. Label 0 is "". Fast. [any
 * thread] */
HAK_API const char *hak_label_name(const hak_ctx *ctx, hak_label label);
/* The label of a live block; 0 also for what is not a block of ctx. Cost: about twice hak_usable_size. */
HAK_API hak_label hak_label_of(const hak_ctx *ctx, const void *p);

typedef struct hak_label_info {
    const char *name;
    hak_label label;
    size_t live_bytes, live_blocks; /* block bytes, as in hak_stats */
} hak_label_info;
/* Fills in *info for one label. 0 = ok, -1 = no such label. Cost: that of hak_labels_stats. */
HAK_API int hak_label_stats(const hak_ctx *ctx, hak_label label, hak_label_info *info);
/* All labels, 0 included, in one pass over the heap. Fills in up to `count`, returns how many there are.
 * Cost: a step for each block, about 1 ms for 100 MB. */
HAK_API int hak_labels_stats(const hak_ctx *ctx, hak_label_info *out, size_t count);

/* ---- Groups of contexts -------------------------------------------------------------------------- */

/* A limit for a group of contexts (and groups); 0 = only count. parent NULL = none; a parent must outlive it.
 * NULL = no memory. Takes one page, from where its parent took its own, and from the OS if it has none. Cost:
 * constant, and one call for the page; with commit in the table two. [any thread] */
HAK_API hak_quota *hak_quota_new(hak_quota *parent, size_t hard);
/* The same, with that page by a host's table, as groups below this one will have it. os is copied; NULL =
 * hak_quota_new. Its functions are called by the calling thread, under no lock. NULL also for a broken
 * table. Cost: that of hak_quota_new. [any thread] */
HAK_API hak_quota *hak_quota_new_os(const hak_os *os, hak_quota *parent, size_t hard);
/* Contexts and child quotas must be gone. NULL is fine. Cost: constant, and one call for the page. [any
 * thread] */
HAK_API void hak_quota_delete(hak_quota *quota);
/* Committed bytes of the group, now and at most so far. What a limit refuses is never in them, and takes
 * nothing from others meanwhile: a tenant over its limit is refused alone. Fast. [any thread] */
HAK_API size_t hak_quota_used(const hak_quota *quota);
HAK_API size_t hak_quota_peak(const hak_quota *quota);
/* A new limit; one below what is used only stops growth. Fast. [any thread] A group itself costs some steps
 * each time that a context in it takes memory from its space or gives it back; an allocation costs nothing
 * more. */
HAK_API void hak_quota_set(hak_quota *quota, size_t hard);

/* ---- Giving back --------------------------------------------------------------------------------- */

/* Magazines and caches back to their slabs, empty slabs to the space. Returns the bytes uncommitted. Cost: a
 * step for each block at hand, each slab and each packed block. */
HAK_API size_t hak_ctx_flush(hak_ctx *ctx);
/* Flush, then everything unused back to the OS: cached big blocks, retained pages of the space, and holes of
 * 4 KiB and more between live blocks. Returns the bytes given back. Cost: that of hak_ctx_flush, a step for
 * each block that fits the slabs and packed units there are, and one call of the OS table for each hole and
 * each row of retained pages. */
HAK_API size_t hak_ctx_trim(hak_ctx *ctx);
/* The host lends time: pages of the space and big blocks that were unused for a second (hak_tuning.purge_ns)
 * go back, 16 MiB of pages at most in one call. If such pages are then wanted again, the wait doubles, up to
 * 65 periods; it falls with those that are not. Pages of a heap at work that come to less than a 64th of what
 * it uses stay. And in a shared context what is at hand for threads that
 * ended. now_ns: a clock that never runs backwards (where it does, or stands still, what is unused stays for
 * longer); 0 = the OS table's clock. Cost: a step for each big block, and for each heap of a shared context;
 * once a period also for each size class and each packed block (hak_tuning.packed_bytes), and the OS
 * calls. */
HAK_API void hak_ctx_tick(hak_ctx *ctx, uint64_t now_ns);

/* ---- More of measuring --------------------------------------------------------------------------- */

/* From now on peak_bytes is the highest since this call. Cost: constant; in a shared context, where any
 * thread may call it, that of hak_ctx_flush for the calling thread's heap and those of threads that ended,
 * and a lock for each other one. */
HAK_API void hak_ctx_peak_reset(hak_ctx *ctx);
/* live_bytes, off by at most what magazines hold and, while a collector sweeps, 64 blocks of each class up to
 * 1 KiB. Cost: one load; in a shared context some steps for the heap of each thread. [any
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
/* Calls fn for every live block. 0 = all seen, 1 = stopped by fn. Cost: some steps for each block that was
 * ever handed out of the slabs that there are. */
HAK_API int hak_ctx_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user);

/* The blocks of one size class that lie in slabs, and the free memory between them. */
typedef struct hak_class_info {
    size_t block_bytes;  /* of a block */
    size_t blocks;       /* live ones, and those in magazines */
    size_t free_bytes;   /* of free blocks, in slabs that have other blocks; without what trim gave back */
    size_t pinned_bytes; /* those of free_bytes on pages on which a block lies: trim cannot give these back */
} hak_class_info;
/* The size classes that have slabs, by size. Fills in up to `count`, returns how many there are, 126 at most.
 * Packed and large blocks are in no slab. Cost: a step for each slab, and one for each block of a slab that
 * is neither full nor empty. */
HAK_API int hak_classes_stats(const hak_ctx *ctx, hak_class_info *out, size_t count);
/* The share of a live block in the pinned bytes of its slab, rounded down: 0 where the slab is full, and for
 * what is not a block of ctx. Over all blocks the shares sum to pinned_bytes. Cost: a step for each block of
 * the slab at most. */
HAK_API size_t hak_block_pins(const hak_ctx *ctx, const void *p);

/* Whether the heap is consistent: true = sound. Each fault goes to `report` (may be NULL). Cost: some steps
 * for each block that fits the slabs and packed units there are. */
HAK_API bool hak_ctx_check(const hak_ctx *ctx, hak_report_fn *report, void *user);

/* ---- Shared contexts ----------------------------------------------------------------------------- */

/* A context with hak_options.shared is used by all threads at once, through the same functions. Each thread
 * gets a heap of its own in it on first use (16 KiB and what it allocates), found by the thread register. A
 * block may be freed by any thread. Blocks of other heaps are collected in batches of up to 124: one batch
 * for each of 8 heaps, and one for each of 24 size classes of which many blocks are freed. A thread that goes
 * idle holds back what its batches have, until it frees again, calls hak_ctx_thread_done or exits. Limits and
 * labels are exact over all threads.
 *
 * What differs from a local context:
 *  - labels: the first one may be defined at any time, too; that stops other threads' slow paths for as long
 *    as it takes to clear the label bytes of what is there, about 1 ms for 100 MB
 *  - on_error: runs with a heap's lock held, on any thread; it must not call into the context
 *  - the callback of hak_limit: runs on the thread that crossed the soft limit
 *  - stats, label and class stats, live_bytes, owns, block_pins, usable_size, flush, trim, tick: any thread, beside all others.
 *    Sums are exact when no other thread is inside a call. Magazines of other threads are left alone
 *  - visit, check: no other thread may be inside a call of the context
 *  - destroy: no other thread may be inside a call; what is under way between threads is freed, too
 *  - retire: no other thread may be inside a call meanwhile; afterwards any thread may free, one at a time
 *  - peak_bytes: within 64 KiB a thread and what magazines hold. hak_ctx_peak_reset empties the magazines of
 *    the calling thread and of threads that ended */

/* The calling thread's heap in a shared context: a context for this thread alone, with the speed of a local
 * one, whose blocks are those of the shared context. For hosts that have a thread-local variable to keep it
 * in; not valid after hak_ctx_thread_done or hak_ctx_retire. NULL = no memory. A local context gives itself.
 * Cost: constant, a few instructions once the thread has its heap; the first time that of hak_ctx_new, a
 * step for the heap of each other thread, and a question to the OS table for up to 16 whose threads may have
 * died. [any thread] */
HAK_API hak_ctx *hak_ctx_thread(hak_ctx *ctx);
/* The calling thread will not use the shared context for a while: its heap, magazines and all, goes to the
 * next thread that needs one. A thread may come back and gets a heap again. A thread that ends without this
 * leaves its heap to the next thread that runs on the same stack, and its slabs to any new one. Local
 * contexts: no effect. Cost: two locks, and a step for each batch of other heaps' blocks that the thread has
 * collected; whatever its own heap holds. [any thread] */
HAK_API void hak_ctx_thread_done(hak_ctx *ctx);
/* To be called around fork() by the forking thread, for instance by pthread_atfork: prepare before it, parent
 * and child behind it, on the thread that forked. In the child the heaps of the other threads go to whoever
 * comes next; the sums of hak_ctx_stats stay off by the block or the batch that such a thread had in hand.
 * For each shared context; for local ones where several threads share the space. Contexts of one space: in
 * any order, one after the other. Of several spaces, those that have a learner come first: its ticks may be
 * waiting for any of them. Between prepare and its counterpart no function of the context or of its space may
 * be called by the forking thread; other threads wait. Cost: two locks, and one for the heap of each thread;
 * prepare waits for whoever holds one. [any thread] */
HAK_API void hak_ctx_fork_prepare(hak_ctx *ctx);
HAK_API void hak_ctx_fork_parent(hak_ctx *ctx);
HAK_API void hak_ctx_fork_child(hak_ctx *ctx);

/* ---- Advanced: whose memory it is ---------------------------------------------------------------- */

/* Whether p points into memory that ctx owns. Any pointer whatever; never dereferenced. Freed big blocks
 * that are kept, and room behind live ones, belong to nobody. Cost: one look at the map; for an address
 * between the space's big blocks about 2 log2(n) steps for n of them, under the lock of the space. [any
 * thread] */
HAK_API bool hak_owns(const hak_ctx *ctx, const void *p);
/* The context that owns the memory at p; NULL = none of this space. Never dereferences p. [any thread,
 * while that context is not being destroyed] Cost: that of hak_owns. */
HAK_API hak_ctx *hak_ctx_of(const hak_space *space, const void *p);
/* The space in which ctx is: its own, or the one that hak_ctx_new was given. Fast. [any thread] */
HAK_API hak_space *hak_ctx_space(const hak_ctx *ctx);
/* How many of the n bytes from p on belong to the space: its extents with all that describes them, the
 * caller's buffer, big blocks, and room behind them. For reports that take a process's mappings apart. Never
 * dereferences p. Cost: a step for each extent, and for each big block that begins there, under the lock of
 * the space. [any thread] */
HAK_API size_t hak_space_bytes_within(hak_space *space, const void *p, size_t n);
/* hak_free for hosts that lost the context; what is not of this space is ignored. To be called by the thread
 * that may free in the owner. Cost: that of hak_ctx_of and of hak_free. */
HAK_API void hak_space_free(hak_space *space, void *p);

/* ---- Advanced: pages from the host --------------------------------------------------------------- */

/* Where pages come from. NULL in hak_space_options means the operating system. Every function gets
 * `user`, and must not call into hakmem. Those that concern pages, reserve to huge and protect, are called
 * one at a time, with a lock of the space held; the others by any thread. Memory from reserve reads as zero
 * once committed, and again after decommit + commit. */
struct hak_os {
    size_t size; /* sizeof(hak_os), by hak_os_init */
    void *user;
    /* Address space of n bytes, aligned, ending at or below `below` (0 = anywhere). NULL = failed. */
    void *(*reserve)(void *user, size_t n, size_t align, uintptr_t below);
    /* Make pages usable; 0 = ok. May be called again for pages in use. NULL = reserve gives usable pages. A
     * table with the commit of hak_os_init says by it that pages stay usable after decommit: they are
     * committed by chunks of 2 MiB then, once. */
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
    /* The calling thread's number, never 0, and whether a thread of that number lives: how shared contexts
     * learn that a thread died without hak_ctx_thread_done. Both may be NULL. */
    uint64_t (*thread_id)(void *user);
    bool (*thread_alive)(void *user, uint64_t id);
    /* Hint, by any thread: all of these fresh pages are about to be written to; one call can take less than
     * a fault for each (Linux: MADV_POPULATE_WRITE). May be NULL. */
    void (*populate)(void *user, void *p, size_t n);
    /* Sets whether pages of a reservation may be touched, for HAK_DEBUG_GUARD; 0 = ok. Pages that become
     * touchable again are committed. If it is NULL, no context of the space can have guard pages. */
    int (*protect)(void *user, void *p, size_t n, bool access);
};
/* Fills in the table of the operating system, to wrap or to change single entries. size: sizeof *os, as the
 * caller was compiled. Cost: constant. [any thread] */
HAK_API void hak_os_init(hak_os *os, size_t size);
static inline void hak_os_default(hak_os *os)
{
    hak_os_init(os, sizeof *os);
}

/* Turns a table that hak_os_init filled in, before anything in it was changed, into one for hosts where each
 * page counts that may be written to (vm.overcommit_memory=2, RLIMIT_DATA): units of 16 KiB are committed when
 * they are used, and what goes back is mapped anew, since only then it counts no longer; 8192 holes at most,
 * so that the process keeps mappings for others. With the table as hak_os_init has it, 2 MiB count at a time,
 * and no longer once they are free as a whole and went back. The price is a call of the system whenever fresh
 * units are taken, and there are no huge pages. false = not such a table, nothing changed. Cost: constant.
 * Since 0.1. [any thread] */
HAK_API bool hak_os_counted(hak_os *os);

/* ---- Advanced: structs of any version ------------------------------------------------------------ */

/* Copies a struct that begins with a size_t, its size, of which this code knows `known` bytes: for libraries
 * on top of this one that have options of their own. What `from` lacks is 0; to->size becomes `known`. false
 * = the size is none, or there is something behind what is known; *to is then not to be used. Cost: a step
 * for each byte. [any thread] */
HAK_API bool hak_sized_copy(void *to, size_t known, const void *from);
/* Whether a program with that HAK_LAYOUT may use this library: NULL = yes, else what is wrong, in one line.
 * In C and C++ the functions that make contexts and spaces ask by themselves: they return NULL, and
 * hak_options_error and hak_space_options_error the line. Other languages ask once. Fast. [any thread] */
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
