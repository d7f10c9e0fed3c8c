#include "api/quarantine.h"

#include "api/errors.h"
#include "api/trace.h"
#include "heap/asked.h"
#include "heap/block.h"
#include "heap/block_free.h"
#include "heap/guard.h"
#include "heap/metadata.h"
#include "shared/thread_heap.h"

/* With the lock held. NULL = none, or no memory. */
static struct hk_quarantine *quarantine_of(hak_ctx *whole)
{
    if (whole->watch->quarantine) return whole->watch->quarantine;
    struct hk_quarantine *q = hk_meta_alloc(whole, sizeof *q);
    if (q) *q = (struct hk_quarantine){0};
    return whole->watch->quarantine = q;
}

static void *let_go(struct hk_quarantine *q)
{
    void *p = q->blocks[q->first];
    q->first = (q->first + 1) % HK_HELD_MOST;
    q->count--;
    return p;
}

bool hk_still_poisoned(const void *block, size_t n)
{
    const unsigned char *p = block;
    return p[0] == HK_POISON_FREE && memcmp(p, p + 1, n - 1) == 0;
}

static bool is_whole(const hak_ctx *ctx, const void *p)
{
    return hk_still_poisoned(p, hk_block_size(ctx, p));
}

static void look(const hak_ctx *ctx, const void *p)
{
    if (p && !is_whole(ctx, p))
        hk_error(ctx, HAK_E_USE_AFTER_FREE, p, "quarantine: a freed block was written to");
}

/* Live, small, and of the context itself. */
static bool can_hold(const hak_ctx *ctx, const void *p)
{
    size_t size = hk_block_size(ctx, p);
    return size && size <= HK_SMALL_MAX && !hk_guard_in(ctx->space, p) && hk_asked(ctx, p) != HAK_NONE;
}

static bool retired(const hak_ctx *whole)
{
    return whole->retired || (whole->heaps && atomic_load(&whole->heaps->retired));
}

/* Three quarters of the limit are in use: nothing is held back. */
static bool scarce(const hak_ctx *whole)
{
    size_t hard = hk_quota_least(whole->account.quota, hk_get(&whole->account.hard));
    size_t used = whole->heaps ? atomic_load(&whole->heaps->account.used) : hk_get(&whole->account.committed);
    return hard && used > hard - hard / 4;
}

void *hk_quarantine(hak_ctx *ctx, void *p, size_t *n)
{
    hak_ctx *whole = hk_whole(ctx);
    if (!p || retired(whole) || !can_hold(ctx, p)) return p;
    hk_whole_lock(whole);
    struct hk_quarantine *q = quarantine_of(whole);
    bool held = hk_asked(ctx, p) == HK_HELD, off = !q || q->leaving, full = scarce(whole);
    void *out = NULL;
    if (!off && !held && !full) {
        hk_check_size(ctx, p, *n);
        hk_asked_set(ctx, p, HK_HELD, false);
        memset(p, HK_POISON_FREE, hk_block_size(ctx, p));
        if (q->count == HK_HELD_MOST) out = let_go(q);
        q->blocks[(q->first + q->count++) % HK_HELD_MOST] = p;
    }
    hk_whole_unlock(whole);
    if (off) return p; /* all leave, and this is one of them perhaps */
    if (held) {
        hk_misuse(ctx, p);
        return NULL;
    }
    if (full) {
        hk_quarantine_end(ctx);
        return p;
    }
    *n = HAK_NONE;
    look(ctx, out);
    return out;
}

bool hk_quarantine_end(hak_ctx *ctx)
{
    hak_ctx *whole = hk_whole(ctx);
    bool some = false;
    if (!(ctx->debug & HAK_DEBUG_QUARANTINE)) return false;
    for (void *p = NULL;;) {
        hk_whole_lock(whole);
        struct hk_quarantine *q = whole->watch->quarantine;
        if (p) q->leaving--;
        p = q && q->count ? let_go(q) : NULL;
        if (p) q->leaving++;
        hk_whole_unlock(whole);
        if (!p) return some;
        some = true;
        look(ctx, p);
        hak_free_sized(ctx, p, HK_NOTED);
    }
}

size_t hk_quarantine_check(const hak_ctx *whole, hak_report_fn *report, void *user)
{
    const struct hk_quarantine *q = whole->watch ? whole->watch->quarantine : NULL;
    size_t wrong = 0;
    for (unsigned i = 0; q && i < q->count; i++) {
        const void *p = q->blocks[(q->first + i) % HK_HELD_MOST];
        if (is_whole(whole, p)) continue;
        wrong++;
        if (report) report(user, HAK_E_USE_AFTER_FREE, p, "quarantine: a freed block was written to");
    }
    return wrong;
}
