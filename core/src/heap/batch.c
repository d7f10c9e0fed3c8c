#include "heap/batch.h"

#include "heap/label.h"
#include "heap/magazine.h"
#include "heap/packed.h"
#include "heap/row.h"

/* In a unit of its own: the bins move there, and stay. */
static bool make(hak_ctx *ctx)
{
    _Static_assert(sizeof(hk_batches) + 2 * HK_BESIDE <= HK_UNIT, "batches fit into a unit");
    if (!hk_bins_make(ctx)) return false;
    bool zero;
    hk_slab *s = hk_meta_units(ctx, sizeof(hk_batches), &zero);
    if (!s) return false;
    hk_batches *b = hk_meta_start(ctx, s);
    memcpy(b, hk_batches_of(ctx), offsetof(hk_batches, next));
    memset(b->next, 0, sizeof b->next);
    ctx->bins = b->bins;
    ctx->sampling.batches = HK_BATCHES_MADE;
    return true;
}

bool hk_batches_begin(hak_ctx *ctx)
{
    if (ctx->sampling.batches == HK_BATCHES_NONE && !make(ctx)) return false;
    hk_batches *b = hk_batches_of(ctx);
    memset(b->left, 0xff, sizeof b->left);
    if (ctx->sampling.batches == HK_BATCHES_USED) return true;
    for (size_t i = 0; i <= 1024 / 8; i++)
        b->table[i] = (uint8_t)(b->table[i] + HK_BINS);
    ctx->sampling.batches = HK_BATCHES_USED;
    return true;
}

void hk_batches_end(hak_ctx *ctx)
{
    if (ctx->sampling.batches != HK_BATCHES_USED) return;
    hk_batches_return(ctx);
    hk_batches *b = hk_batches_of(ctx);
    for (size_t i = 0; i <= 1024 / 8; i++)
        b->table[i] = (uint8_t)(b->table[i] - HK_BINS);
    ctx->sampling.batches = HK_BATCHES_MADE;
}

/* What is left of a batch has had its trials. */
void hk_batches_return(const hak_ctx *ctx)
{
    if (HK_LIKELY(ctx->sampling.batches != HK_BATCHES_USED)) return;
    /* What is live is as it was. */
    hak_ctx *mine = (hak_ctx *)(uintptr_t)ctx;
    hk_batches *b = hk_batches_of(mine);
    for (unsigned sc = 0; sc < HK_KIB_CLASSES; sc++) {
        hk_bin *next = &b->next[sc];
        size_t n = (size_t)(next->top - next->slots);
        if (!n) continue;
        b->left[sc] += (uint32_t)n;
        hk_row_end(mine, &b->bins[sc]);
        hk_magazine_flush(mine, next, n);
    }
}

void hk_batches_sum(const hak_ctx *ctx, size_t *bytes, size_t *blocks)
{
    const hk_batches *b = hk_batches_of(ctx);
    for (unsigned sc = 0; sc < HK_KIB_CLASSES; sc++) {
        size_t n = (size_t)(b->next[sc].top - b->next[sc].slots);
        *bytes += n * hk_classes[sc].size;
        *blocks += n;
    }
}

void hk_batches_label(hak_ctx *ctx)
{
    if (ctx->sampling.batches != HK_BATCHES_USED) return;
    hk_batches *b = hk_batches_of(ctx);
    for (unsigned sc = 0; sc < HK_KIB_CLASSES; sc++)
        b->next[sc].labels = b->bins[sc].labels;
}

static bool open(hak_ctx *ctx, hk_bin *next, unsigned sc)
{
    void **slots = hk_row_slots(ctx, sc, HK_BATCH_MOST);
    if (!slots) return false;
    const hk_class *c = &hk_classes[sc];
    hk_magazine_set(ctx, next, slots, HK_BATCH_MOST, sc, c->shift, hk_labels_of(ctx, c->area));
    next->lo = slots;
    return true;
}

/* Blocks outside of the window come one by one, and their label bytes are those of another extent. */
static HK_NOINLINE void *outside(hak_ctx *ctx, hk_batches *b, hk_bin *bin, hak_label label)
{
    void *p = *--bin->top;
    b->left[bin->kind]--;
    if (ctx->labels.on) hk_label_set(hk_extent_of(ctx->space, p), bin->kind, p, label);
    return p;
}

void *hk_batch_alloc(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_batches *b = hk_batches_of(ctx);
    hk_bin *next = &b->next[sc], *bin = &b->bins[sc];
    if (b->left[sc] == 0 || !bin->slots || hk_packed_keeps(ctx, sc)) return NULL;
    if (HK_UNLIKELY(!next->slots) && !open(ctx, next, sc)) return NULL;
    if (bin->top == bin->slots) {
        bin->lo = bin->slots;
        bool filled = hk_slab_refill(ctx, bin, hk_refill_of(bin));
        hk_bin_shut(bin, HK_SHUT);
        if (!filled) return NULL;
        if (HK_UNLIKELY(!hk_in_window(ctx, bin->slots[0]))) return outside(ctx, b, bin, label);
    }
    size_t n = hk_min(hk_min((size_t)(bin->top - bin->slots), HK_BATCH_MOST), b->left[sc]);
    bin->top -= n;
    memcpy(next->slots, bin->top, n * sizeof(void *));
    next->top = next->slots + n;
    b->left[sc] -= (uint32_t)n;
    return hk_magazine_pop(next, label);
}
