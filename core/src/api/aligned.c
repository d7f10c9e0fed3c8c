/* Blocks of a given alignment, and the sizes that requests round to. */
#include "api/alloc.h"

#include "api/errors.h"
#include "api/ladder.h"
#include "api/watch.h"
#include "heap/block.h"
#include "heap/canary.h"

/* The first class that is large enough and whose size is a multiple of align: its blocks are all aligned,
 * because slabs begin at multiples of 16 KiB. The search ends at 8192 at the latest. */
static unsigned aligned_class(const hak_ctx *ctx, size_t align, size_t n)
{
    unsigned sc = hk_class_of(hk_align_up(n ? n : 1, align));
    while (hk_classes[sc].size % align)
        sc++;
    return sc < HK_KIB_CLASSES ? hk_class_in(ctx, hk_classes[sc].size) : sc;
}

static bool in_slab(const hak_ctx *ctx, size_t align, size_t n)
{
    return n <= HK_SMALL_MAX && align <= HK_PAGE && hk_align_up(n, align) <= 2 * HK_PAGE &&
           !ctx->first_offset;
}

static bool align_wrong(hak_ctx *ctx, size_t align)
{
    if (hk_is_power_of_two(align) && align <= HK_ALIGN_MAX) return false;
    hk_error(ctx, HAK_E_ALIGNMENT, NULL, "align: a power of two up to 1 GiB");
    return true;
}

/* *zero tells whether the block reads as zero. The size asked for is noted once: large blocks have it
 * already. */
static void *alloc_aligned(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero)
{
    *zero = false;
    if (align_wrong(ctx, align)) return hk_fail(ctx);
    if (align <= 16 && n <= HK_SMALL_MAX) {
        size_t rounded = align <= 8 ? n : hk_align_up(n ? n : 1, 16);
        void *p = hak_alloc_cs(ctx, rounded, label, site);
        return rounded == n ? p : hk_watch_again(ctx, p, n);
    }
    if (HK_UNLIKELY(ctx->checked & HK_GUARDED)) {
        void *p = hk_guard_aligned(ctx, align, n, label, site);
        if (p) return p;
    }
    size_t with = hk_with_canary(ctx, n);
    if (!in_slab(ctx, align, with)) return hk_alloc_large(ctx, align, n, label, site, zero);
    return hk_alloc_in_slab(ctx, aligned_class(ctx, align, with), n, label, site);
}

void *hak_aligned_alloc_cs(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site)
{
    bool ignored;
    return alloc_aligned(ctx, align, n, label, site, &ignored);
}

void *hak_aligned_alloc(hak_ctx *ctx, size_t align, size_t n)
{
    return hak_aligned_alloc_cs(ctx, align, n, 0, 0);
}

void *hak_aligned_calloc_cs(hak_ctx *ctx, size_t align, size_t count, size_t n, hak_label label,
                            hak_site site)
{
    size_t total;
    if (!hk_total(ctx, count, n, &total)) return NULL;
    bool zero;
    void *p = alloc_aligned(ctx, align, total, label, site, &zero);
    return p && !zero ? memset(p, 0, total) : p;
}

void *hak_aligned_calloc(hak_ctx *ctx, size_t align, size_t count, size_t n)
{
    return hak_aligned_calloc_cs(ctx, align, count, n, 0, 0);
}

size_t hak_good_size(const hak_ctx *ctx, size_t n)
{
    if (HK_UNLIKELY(ctx->debug & HAK_DEBUG_CANARY)) return n <= HK_SIZE_MOST ? hk_max(n, 1) : 0;
    if (n <= 1024) return hk_classes[hk_class_in(ctx, n)].size;
    if (n <= HK_SMALL_MAX && ctx->role == HK_LOCAL && (ctx->packed.most || ctx->packed.units))
        return hk_align_up(n, 16);
    if (n <= HK_RUN_MAX) return hk_kind_size(hk_kind_above(n));
    return n <= HK_SIZE_MOST ? hk_align_up(n, HK_PAGE) : 0;
}

/* The size of a new block of n bytes with this alignment. */
static size_t new_size(const hak_ctx *ctx, size_t align, size_t n)
{
    if (align <= 16 && n <= HK_SMALL_MAX) return hak_good_size(ctx, hk_align_up(n ? n : 1, 16));
    if (in_slab(ctx, align, n)) return hk_classes[aligned_class(ctx, align, n)].size;
    if (align <= HK_UNIT && n <= HK_RUN_MAX)
        return hk_kind_size(HK_SMALL_CLASSES + hk_run_class((hk_max(n, 1) + HK_UNIT - 1) >> HK_UNIT_SHIFT));
    return hk_align_up(n, HK_PAGE);
}

/* Whether a block in which n bytes fit is kept: a new one would save little. */
static bool stays_aligned(const hak_ctx *ctx, size_t align, size_t size, size_t n)
{
    size_t least = new_size(ctx, align, n);
    return size <= least || (!(ctx->checked & HK_CHECKED) && size - least <= HK_ROOM(size));
}

static void *reallocate_aligned(hak_ctx *ctx, void *p, size_t align, size_t n, int label, hak_site site)
{
    if (!p) return hak_aligned_alloc_cs(ctx, align, n, label == HK_KEEP_LABEL ? 0 : (hak_label)label, site);
    if (align_wrong(ctx, align)) return hk_fail(ctx);
    /* All blocks above 32 KiB begin at page boundaries. */
    if (align <= 8 || (align <= HK_PAGE && n > HK_SMALL_MAX))
        return label == HK_KEEP_LABEL ? hak_realloc(ctx, p, n)
                                      : hak_realloc_cs(ctx, p, n, (hak_label)label, site);
    size_t size = hk_watch_resize(ctx, p, HAK_NONE, n, label, site),
           failures = hk_get(&ctx->account.failures);
    if (HK_UNLIKELY(size == 0)) return NULL;
    bool fits = n <= size && (uintptr_t)p % align == 0;
    if (fits && stays_aligned(ctx, align, size, n) && hk_takes_label(ctx, p, size, label))
        return hk_stay(ctx, hk_watch_again(ctx, p, n), label);
    hak_label given = hk_label_after(ctx, p, label);
    void *q = hak_aligned_alloc_cs(ctx, align, n, given, site);
    if (q) {
        memcpy(q, p, hk_min(size, n));
        if (HK_UNLIKELY(hk_profile_of(ctx) != NULL))
            hk_profile_grown(hk_profile_of(ctx), p, hk_block_size(ctx, q));
        hak_free(ctx, p);
        return q;
    }
    if (!fits) return NULL;
    hk_set(&ctx->account.failures, failures); /* no call failed */
    return hk_stay(ctx, hk_watch_again(ctx, p, n), label);
}

void *hak_aligned_realloc_cs(hak_ctx *ctx, void *p, size_t align, size_t n, hak_label label, hak_site site)
{
    return reallocate_aligned(ctx, p, align, n, label, site);
}

void *hak_aligned_realloc(hak_ctx *ctx, void *p, size_t align, size_t n)
{
    return reallocate_aligned(ctx, p, align, n, HK_KEEP_LABEL, 0);
}
