/* hakmem, labels by call site: for a machine that takes all of its memory through one function and does not
 * say what the memory is for. The innermost function on the stack of machine code that a rule names gives the
 * label; without rules, the function that asked.
 *
 *       static const hak_site_rule RULES[] = {{"pcache1", "page"}, {"sqlite3Expr", "statement"}};
 *       hak_sites_options options = HAK_SITES_OPTIONS_INIT;
 *       options.rules = RULES;
 *       options.rule_count = 2;
 *       hak_sites *sites = hak_sites_new(&options);     // once for all machines of a kind
 *       heap.labels = hak_sites_labels(sites, &heap.label_count);   // hak_options, for hak_ctx_new
 *       ...
 *       static void *take(void *ctx, size_t n)          // the function that the machine calls
 *       {
 *           return hak_alloc_cs(ctx, n, hak_sites_label(sites, HAK_SITES_SP()), 0);
 *       }
 *
 * STABILITY  Experimental, as hakmem/report.h says. A program and the library must be of the same minor
 *            version, because the beginning of hak_sites, below, is compiled into the program.
 *
 * WHERE      Linux on x86-64 and aarch64, GCC and clang. The machine must have its symbols (not stripped; a
 *            library with dynamic symbols alone names only its public functions) and its unwind tables. It
 *            must be compiled with optimisation on x86-64: the search stops at a function that finds its
 *            frame by a frame pointer (-O0, alloca). On aarch64 it must keep frame records, which is the
 *            default (no -fomit-frame-pointer). On other platforms hak_sites_new returns NULL, and
 *            hak_sites_label(NULL, sp) is 0: all blocks are unlabelled.
 *
 * COST       Once: a pass over the table of symbols, some million instructions, 20 KiB, and 24 bytes for each
 *            function that gives a label (with hak_sites_options.ctx all functions, and their names). Each
 *            allocation: 11 instructions, two of them loads, for each frame up to the function that gives the
 *            label; about 1 us for a return address that is met for the first time.
 *
 * CONVENTIONS are those of hakmem.h. Since 0.1. */
#ifndef HAKMEM_SITES_H
#define HAKMEM_SITES_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions whose name begins with `prefix`. The first rule that fits counts. */
typedef struct hak_site_rule {
    const char *prefix;
    const char *label; /* its name; NULL = such a function takes memory for its callers, one of which gives
                          the label */
} hak_site_rule;

typedef struct hak_sites_options {
    size_t size;                /* sizeof(hak_sites_options), by HAK_SITES_OPTIONS_INIT */
    const hak_site_rule *rules; /* read by hak_sites_new alone. NULL = none */
    size_t rule_count;
    hak_ctx *ctx; /* NULL = functions without a rule take memory for their callers. Else each such function
                     gets a label of its own, defined in this context when the function first asks; the host
                     defines no labels. The labels are good for this context alone, and the context must
                     outlive its last use here. After the 253rd label, functions further up the stack label
                     the blocks */
    const void *image; /* an address in the program or library whose functions count, for instance of a
                          function of the machine. NULL = the program or library that calls hak_sites_new */
} hak_sites_options;
#define HAK_SITES_OPTIONS_INIT                                                                               \
    {                                                                                                        \
        sizeof(hak_sites_options), NULL, 0, NULL, NULL                                                       \
    }

enum { HAK_SITES_SLOTS = 2048, HAK_SITES_PROBES = 8 };

/* What is known of return addresses. An entry has the address above its lowest 16 bits, and in these 16 bits
 * a label or, with HAK_SITES_CLIMB, the distance to the next return address in words. The rest of the struct
 * is the library's own. */
typedef struct hak_sites {
    uint64_t cache[HAK_SITES_SLOTS + HAK_SITES_PROBES];
} hak_sites;

/* Reads the names of the functions. options NULL = defaults, which fit no function: give rules, ctx, or both.
 * Returns NULL if there is no memory or are no names, the options are broken, or the platform is another. */
HAK_API hak_sites *hak_sites_new(const hak_sites_options *options);
/* Deletes the sites. NULL is fine. No thread may be in hak_sites_label. */
HAK_API void hak_sites_delete(hak_sites *sites);
/* Returns the names of the labels of the rules, label 1 first, for hak_options.labels of each context that
 * labels by these sites. The names stay until the sites are deleted. With hak_sites_options.ctx, where the
 * labels are defined already, and with sites NULL, the count is 0 and the result NULL. [any thread] */
HAK_API const char *const *hak_sites_labels(const hak_sites *sites, size_t *count);
/* Finds the label where the cache does not know the way; hak_sites_label calls this. */
HAK_API hak_label hak_sites_learn(hak_sites *sites, uintptr_t sp);

/* Gives the place on the stack of the calling function. Use it in the function that the machine calls for
 * memory; that function must not be inlined. */
#if defined(__x86_64__) && defined(__linux__)
#define HAK_SITES_SP() ((uintptr_t)__builtin_dwarf_cfa())
#elif defined(__aarch64__) && defined(__linux__)
#define HAK_SITES_SP() ((uintptr_t)__builtin_frame_address(0))
#else
#define HAK_SITES_SP() ((uintptr_t)0)
#endif
#define HAK_SITES_CLIMB 0x8000u

/* Returns the label of the caller. sites NULL = 0. Takes no lock, and allocates nothing in the context except
 * a label that it defines. [any thread, as long as sp is of its own stack; with hak_sites_options.ctx only
 * threads that may use that context] */
static inline hak_label hak_sites_label(hak_sites *sites, uintptr_t sp)
{
    if (!sites) return 0;
#if defined(__x86_64__) && defined(__linux__)
    for (uintptr_t at = sp;;) {
        const uint64_t pc = ((const uint64_t *)at)[-1];
        const uint64_t info =
            __atomic_load_n(&sites->cache[pc & (HAK_SITES_SLOTS - 1)], __ATOMIC_RELAXED) ^ pc << 16;
        if (info < HAK_SITES_CLIMB) return (hak_label)info;
        if (info > 0xffff) break;
        at += (uintptr_t)(info - HAK_SITES_CLIMB) * sizeof(uintptr_t);
    }
#elif defined(__aarch64__) && defined(__linux__)
    for (uintptr_t at = sp;; at = ((const uintptr_t *)at)[0]) { /* from record to record */
        const uint64_t pc = ((const uint64_t *)at)[1] & (((uint64_t)1 << 48) - 1);
        const uint64_t info =
            __atomic_load_n(&sites->cache[pc & (HAK_SITES_SLOTS - 1)], __ATOMIC_RELAXED) ^ pc << 16;
        if (info < HAK_SITES_CLIMB) return (hak_label)info;
        if (info > 0xffff) break;
    }
#endif
    return hak_sites_learn(sites, sp);
}

#ifdef __cplusplus
}
#endif
#endif
