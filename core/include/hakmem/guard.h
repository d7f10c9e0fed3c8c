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
 * The idea is that of GWP-ASan (LLVM, Chromium, Android). A few blocks are drawn at random. Each ends
 * directly before an inaccessible page, and becomes inaccessible as a whole when it is freed. So an access
 * past the end or after the free faults at the instruction that makes it. A program that runs often enough
 * meets its bugs this way, at a cost low enough to leave the option on.
 *
 * DRAWN      One in hak_tuning.guard_every blocks of up to 32 KiB, on average, as long as one of the
 *            hak_tuning.guard_slots places of the space is free. The place of a freed block is used again as
 *            late as possible.
 * PLACE      A drawn block ends at the end of a page, up to the padding that its alignment needs. The padding
 *            and the 64 bytes before the block hold a pattern, which is checked when the block is freed or
 *            moved by a reallocation (HAK_E_BOUNDS). hak_usable_size is the requested size (1 for 0), which
 *            is less than hak_good_size.
 * ACCOUNTS   Drawn blocks count like all others in statistics, labels, limits, visits and profiles. Their
 *            pages are charged to the context.
 * COST       Off: none. On: about 50 instructions for each allocation, none for a free; for a drawn block
 *            three system calls and a page fault. Figures are in docs/guide/misuse.md.
 *
 * STABILITY  Stable.
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
    uint64_t thread; /* from hak_os.thread_id; 0 = not known, or it did not happen */
    hak_site site;   /* given to hak_alloc_cs, hak_free_cs and the like; 0 = unknown */
    unsigned depth;  /* number of frames; 0 = the host gave none */
    uintptr_t frames[HAK_GUARD_DEPTH];
} hak_guard_event;

/* What is known of the drawn block that contains an address or lies next to it. */
typedef struct hak_guard_report {
    size_t size;      /* sizeof(hak_guard_report), by HAK_GUARD_REPORT_INIT */
    hak_error error;  /* HAK_E_USE_AFTER_FREE or HAK_E_BOUNDS; HAK_OK = `at` is in a live block */
    const void *at;   /* the address */
    const void *p;    /* the block */
    size_t bytes;     /* its requested size */
    ptrdiff_t offset; /* of `at` from p */
    bool freed;       /* the block is freed, or its context was destroyed */
    hak_label label;
    char label_name[HAK_GUARD_LABEL]; /* "" = unlabelled */
    hak_guard_event allocated, released;
} hak_guard_report;
#define HAK_GUARD_REPORT_INIT                                                                                \
    {                                                                                                        \
        sizeof(hak_guard_report), HAK_OK, NULL, NULL, 0, 0, false, 0, {0}, {0, 0, 0, {0}},                   \
        {                                                                                                    \
            0, 0, 0,                                                                                         \
            {                                                                                                \
                0                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

/* Fills in the report for any address. Knows the drawn blocks of all contexts of ctx's space, destroyed
 * contexts included. Returns false if no drawn block is at the address or next to it, and none was the last
 * to be there. Takes no lock, allocates nothing and never dereferences `at`: a signal handler may call it.
 * Cost: constant, three looks at a table. Since 0.1. [any thread] */
HAK_API bool hak_guard_explain(const hak_ctx *ctx, const void *at, hak_guard_report *report);
/* Does the same for a host that has only the space. Cost: that of hak_guard_explain. [any thread] */
HAK_API bool hak_space_guard_explain(const hak_space *space, const void *at, hak_guard_report *report);
/* Writes the report as lines of text with addresses in hexadecimal, at most `room` bytes with the terminating
 * 0. Returns the number of bytes without that 0; 0 = report->size is not valid. Touches only `out`: a signal
 * handler may call it. Cost: some steps for each byte. Since 0.1. [any thread] */
HAK_API size_t hak_guard_text(const hak_guard_report *report, char *out, size_t room);
/* Sets the function that gives the frames for allocations and frees of drawn blocks; NULL = none. fn runs on
 * the thread of the call, with no lock held; its `room` is HAK_GUARD_DEPTH, its `ctx` this one, its `site`
 * that of the call. No other thread may be inside a call of the context. No effect without HAK_DEBUG_GUARD.
 * Cost: constant. Since 0.1. */
HAK_API void hak_guard_frames(hak_ctx *ctx, hak_frames_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
