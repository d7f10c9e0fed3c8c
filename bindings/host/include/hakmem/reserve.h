/* hakmem, memory for the error itself: a limit that keeps its last part back. A machine that gets NULL makes
 * an error object, runs handlers and prints a message, all of which needs memory as well.
 *
 *       static hak_reserve reserve;
 *       hak_reserve_limit(&reserve, ctx, 0, 8 << 20, 64 << 10, collect_soon, vm);     // instead of hak_limit
 *       ...
 *       void *p = hak_alloc(ctx, n);
 *       if (!p) hak_reserve_refused(&reserve, n);        // the 64 KiB are there for what follows
 *       ...
 *       collect(vm);                                     // where the error was dealt with
 *       hak_reserve_close(&reserve);                     // they are kept back again
 *
 * The context never has more than `hard` bytes, the reserve included; nothing is allocated for the reserve.
 * The reserve also closes by itself, when the context has fallen below the soft limit and grows over it
 * again.
 *
 * STABILITY  Experimental, as hakmem/report.h says.
 *
 * Threads: a reserve is for a local context, and is used by the thread that uses the context. Only these
 * functions may set the limit, not hak_limit. Since 0.1. */
#ifndef HAKMEM_RESERVE_H
#define HAKMEM_RESERVE_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The host's memory, zero before the first use; it outlives the limit. */
typedef struct hak_reserve {
    size_t tries;  /* set by the host: how often the machine asks for one block, with a collection in between,
                  before it gives up. 0 and 1 = once. Above 1, the host passes each block that it gets to
                  hak_reserve_served */
    size_t opened; /* how often the reserve was opened */
    bool open;
    /* Of the library: */
    hak_ctx *ctx;
    size_t soft, hard, bytes;
    hak_pressure_fn *fn;
    void *user;
    size_t wanted, refused;
} hak_reserve;

/* Sets the limits of ctx and keeps the last `bytes` of the hard one back. hard 0 = no limit and no reserve.
 * bytes 0 = an eighth of hard, 64 KiB at most. soft 0 = three quarters of hard; fn is called as by hak_limit
 * and may be NULL. Returns 0, or -1 if soft is above hard - bytes, or hard is not above bytes; then nothing
 * changed. */
HAK_API int hak_reserve_limit(hak_reserve *reserve, hak_ctx *ctx, size_t soft, size_t hard, size_t bytes,
                              hak_pressure_fn *fn, void *user);
/* Notes that an allocation of n bytes was refused. Opens the reserve if the machine gives up now: at once, or
 * at the last of its `tries` for the same n. A refusal during a collection in between does not open the
 * reserve. Returns whether the machine gives up. Cost: constant. */
HAK_API bool hak_reserve_refused(hak_reserve *reserve, size_t n);
/* Opens the reserve: allocations may take all of the hard limit. Cost: constant. */
HAK_API void hak_reserve_open(hak_reserve *reserve);
/* Keeps the reserve back again if there is room for it. If need be, the context first gives up what it has
 * committed beside its blocks (hak_ctx_trim). Returns false if the live blocks need the reserve: it stays
 * open, and further errors may find less memory; collect, or end the machine. Cost: constant, or that of the
 * trim. */
HAK_API bool hak_reserve_close(hak_reserve *reserve);

/* Notes what a machine that tries more than once gets: p, a block of n bytes or NULL. Returns p. */
static inline void *hak_reserve_served(hak_reserve *reserve, void *p, size_t n)
{
    if (p && reserve->wanted == n) reserve->wanted = 0;
    return p;
}

#ifdef __cplusplus
}
#endif
#endif
