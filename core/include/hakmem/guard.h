/* hakmem, guard pages: what HAK_DEBUG_GUARD found, for a host's handler of SIGSEGV.
 *
 *       options.debug = HAK_DEBUG_GUARD;                 // about one block in 5000 lies before a guard page
 *       hak_ctx *ctx = hak_ctx_new(NULL, &options);
 *       ...
 *       static void on_segv(int signal, siginfo_t *info, void *context)
 *       {
 *           hak_guard_report report = HAK_GUARD_REPORT_INIT;
 *           char text[1024];
 *           if (hak_guard_explain(ctx, info->si_addr, &report))
 *               write(2, text, hak_guard_text(&report, text, sizeof text));
 *           ... the default action
 *       }
 *
 * The idea is that of GWP-ASan (LLVM, Chromium, Android): a few blocks, drawn at random, each end where a page
 * that nobody may touch begins, and become untouchable as a whole when they are freed. An access past the end
 * or after the free is a fault at once, at the instruction that does it. A program that runs often enough
 * meets its bugs this way, at a cost low enough to leave it on.
 *
 * DRAWN      Of blocks of up to 32 KiB, one in hak_tuning.guard_every on average, as long as one of
 *            hak_tuning.guard_slots places of the space is free; one that was freed is taken again as late as
 *            possible.
 * PLACE      A drawn block ends at the end of a page, but for what its alignment leaves behind it; that, and 64
 *            bytes before it, hold a pattern which is checked when it is freed or reallocated
 *            (HAK_E_BOUNDS). hak_usable_size is what was asked for, and 1 for 0: less than hak_good_size.
 * ACCOUNTS   Drawn blocks are live blocks like all others: in statistics, labels, limits, visits and profiles.
 *            Their pages are charged to the context.
 * COST       Off: none. On: about 60 instructions for each allocation, none for a free; for a drawn block three
 *            system calls and a page fault. Figures are in docs/guide/misuse.md.
 *
 * CONVENTIONS are those of hakmem.h. Since 0.1. */
#ifndef HAKMEM_GUARD_H
#define HAKMEM_GUARD_H

#include <hakmem/hakmem.h>
#include <hakmem/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HAK_GUARD_DEPTH = 16, HAK_GUARD_LABEL = 64 };

/* An allocation or a free of a drawn block. */
typedef struct hak_guard_event {
    uint64_t thread; /* as hak_os.thread_id tells it; 0 = not known, or it did not happen */
    hak_site site;   /* as given to hak_alloc_cs, hak_free_cs and their like; 0 = unknown */
    unsigned depth;  /* frames; 0 = the host gives none */
    uintptr_t frames[HAK_GUARD_DEPTH];
} hak_guard_event;

/* What is known of the drawn block that an address is in, or next to. */
typedef struct hak_guard_report {
    size_t size;      /* sizeof(hak_guard_report), by HAK_GUARD_REPORT_INIT */
    hak_error error;  /* HAK_E_USE_AFTER_FREE or HAK_E_BOUNDS; HAK_OK = it is in a live block */
    const void *at;   /* the address asked about */
    const void *p;    /* the block, and its bytes */
    size_t bytes;
    ptrdiff_t offset; /* of `at` from p */
    bool freed;       /* the block is freed, or its context was destroyed */
    hak_label label;
    char label_name[HAK_GUARD_LABEL]; /* "" = unlabelled */
    hak_guard_event allocated, released;
} hak_guard_report;
#define HAK_GUARD_REPORT_INIT                                                                                \
    {                                                                                                        \
        sizeof(hak_guard_report), HAK_OK, NULL, NULL, 0, 0, false, 0, {0}, {0, 0, 0, {0}}, {0, 0, 0, {0}}    \
    }

/* Fills in the report for any address whatever, of any context of ctx's space, also of one that is gone.
 * false = no drawn block is, or was last, at the address or next to it. Takes no lock, allocates nothing and
 * never dereferences `at`: a signal handler may call it. [any thread] Cost: constant, three looks at a table.
 * Since 0.1. */
HAK_API bool hak_guard_explain(const hak_ctx *ctx, const void *at, hak_guard_report *report);
/* The same where the context is gone. Cost: that of hak_guard_explain. */
HAK_API bool hak_space_guard_explain(const hak_space *space, const void *at, hak_guard_report *report);
/* The report as lines of text, with addresses in hexadecimal: at most room - 1 bytes and a zero. Returns the
 * bytes without the zero. Writes to `out` alone: a signal handler may call it. [any thread] Cost: some
 * steps for each byte. Since 0.1. */
HAK_API size_t hak_guard_text(const hak_guard_report *report, char *out, size_t room);
/* Who tells the frames of the allocations and frees of drawn blocks from now on; NULL = nobody. `fn` runs on
 * the thread of the call, with no lock held; room is HAK_GUARD_DEPTH, `ctx` as given here, `site` that of the
 * call. No other thread may be inside a call of the context. Without HAK_DEBUG_GUARD: no effect. Cost:
 * constant. Since 0.1. */
HAK_API void hak_guard_frames(hak_ctx *ctx, hak_frames_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
