/* hakmem, labels by call site: for a machine that takes all of its memory through one function and does not
 * say what for. The label is the innermost function on the stack of machine code that a rule names, or,
 * without rules, the function that asked.
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
 * STABILITY  Experimental, as hakmem/report.h says. A program and the library are of the same minor version:
 *            the beginning of hak_sites, below, is compiled into the program.
 *
 * WHERE      x86-64 Linux, GCC and clang. The machine keeps its symbols (not stripped; a library that has
 * only dynamic symbols names its public functions alone) and its unwind tables, and is compiled with
 *            optimisation: a function that finds its frame by a frame pointer (-O0, alloca) is the last one
 * that is looked at. Elsewhere hak_sites_new returns NULL, and hak_sites_label(NULL, sp) is 0: all is
 *            unlabelled.
 *
 * COST       Once: a pass over the table of symbols, some million instructions, 20 KiB, and 24 bytes for each
 *            function that says a label (with hak_sites_options.ctx all functions, and their names). An
 *            allocation: 11 instructions, two loads among them, for each frame up to the function that says
 * the label; about 1 us where a return address is met first.
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
    const char *label; /* its name; NULL = such a function takes memory for its callers, one of which says the
                          label */
} hak_site_rule;

typedef struct hak_sites_options {
    size_t size;                /* sizeof(hak_sites_options), by HAK_SITES_OPTIONS_INIT */
    const hak_site_rule *rules; /* read by hak_sites_new alone. NULL = none */
    size_t rule_count;
    hak_ctx *ctx; /* NULL = functions without a rule take memory for their callers. Else such a function is a
                     label of its own, defined in this context when it first asks: the host defines none. The
                     labels are good for this context alone, and the context outlives its last use here. What
                     comes after the 253rd is labelled by the functions further up */
    const void *image; /* an address in the program or library whose functions count, one of the machine's
                          functions for instance. NULL = that of the caller of hak_sites_new */
} hak_sites_options;
#define HAK_SITES_OPTIONS_INIT                                                                               \
    {                                                                                                        \
        sizeof(hak_sites_options), NULL, 0, NULL, NULL                                                       \
    }

enum { HAK_SITES_SLOTS = 2048, HAK_SITES_PROBES = 8 };

/* What is known of return addresses: the address above 16 bits, which are a label, or with HAK_SITES_CLIMB
 * the distance to the next return address in words. The rest of the struct is the library's own. */
typedef struct hak_sites {
    uint64_t cache[HAK_SITES_SLOTS + HAK_SITES_PROBES];
} hak_sites;

/* Reads the names of the functions. options NULL = defaults, which fit no function: give rules, ctx, or both.
 * NULL = no memory, no names, broken options, or another platform. */
HAK_API hak_sites *hak_sites_new(const hak_sites_options *options);
/* NULL is fine. No thread may be in hak_sites_label. */
HAK_API void hak_sites_delete(hak_sites *sites);
/* Returns the names of the labels of the rules, label 1 first, for hak_options.labels of each context that
 * labels by these sites; they stay until the sites are deleted. Not with hak_sites_options.ctx, in which they
 * are defined already: there, and with sites NULL, the count is 0 and the result NULL. [any thread] */
HAK_API const char *const *hak_sites_labels(const hak_sites *sites, size_t *count);
/* The label where the cache does not know the way; called by hak_sites_label. */
HAK_API hak_label hak_sites_learn(hak_sites *sites, uintptr_t sp);

#if defined(__x86_64__) && defined(__linux__)
/* Written in the function that the machine calls for memory, which must not be inlined: where the function
 * that called stands on the stack. */
#define HAK_SITES_SP() ((uintptr_t)__builtin_dwarf_cfa())
#else
#define HAK_SITES_SP() ((uintptr_t)0)
#endif
#define HAK_SITES_CLIMB 0x8000u

/* Returns the label of the caller. sites NULL = 0. Takes no lock, and allocates nothing in the context but a
 * label that is defined. [any thread, as long as sp is of its own stack; with hak_sites_options.ctx those
 * that may use that context] */
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
#endif
    return hak_sites_learn(sites, sp);
}

#ifdef __cplusplus
}
#endif
#endif
