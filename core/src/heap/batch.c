#include "heap/batch.h"

#include "heap/label.h"
#include "heap/refill.h"
#include "heap/row.h"

enum { BATCH_BYTES = HK_UNIT };

/* After the bins have moved: see hk_bins_all(). */
static void set(hak_ctx *ctx, uint8_t batches)
{
    __atomic_store_n(&ctx->sampling.batches, batches, __ATOMIC_RELEASE);
}

/* In a unit of its own: the bins move there, and stay. */
static bool make(hak_ctx *ctx)
{
    _Static_assert(sizeof(hk_batches) + 2 * HK_BESIDE <= HK_UNIT, "batches fit into a unit");
    if (!hk_bins_make(ctx)) return false;
    bool zero;
    hk_slab *s = hk_meta_units(ctx, sizeof(hk_batches), &zero);
    if (!s) return false;
    hk_batches *b = hk_meta_start(ctx, s);
    hk_bin *old = ctx->bins;
    memcpy(b, hk_batches_of(ctx), offsetof(hk_batches, next));
    memset(b->next, 0, sizeof b->next);
    ctx->bins = b->bins;
    set(ctx, HK_BATCHES_MADE);
    /* A host may have kept a pointer to one of them (hakmem/inline.h), and all of them are shut. */
    for (unsigned kind = 0; kind < HK_BINS; kind++)
        old[kind].top = old[kind].slots;
    return true;
}

bool hk_batches_begin(hak_ctx *ctx)
{
    if (ctx->sampling.batches == HK_BATCHES_NONE && !make(ctx)) return false;
    /* Had its trials for another profile. */
    hk_batches_return(ctx);
    hk_batches *b = hk_batches_of(ctx);
    memset(b->left, 0xff, sizeof b->left);
    if (ctx->sampling.batches == HK_BATCHES_USED) return true;
    for (size_t i = 0; i <= 1024 / 8; i++)
        b->table[i] = (uint8_t)(b->table[i] + HK_BINS);
    set(ctx, HK_BATCHES_USED);
    return true;
}

void hk_batches_end(hak_ctx *ctx)
{
    if (ctx->sampling.batches != HK_BATCHES_USED) return;
    hk_batches_return(ctx);
    hk_batches *b = hk_batches_of(ctx);
    for (size_t i = 0; i <= 1024 / 8; i++)
        b->table[i] = (uint8_t)(b->table[i] - HK_BINS);
    set(ctx, HK_BATCHES_MADE);
}

/* Blocks that are left in a batch were counted when it was filled: they are given back to the count. */
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
        HK_ASSERT(n <= HK_BATCH_MOST && next->kind == sc);
        b->left[sc] += (uint32_t)n;
        hk_row_end(mine, &b->bins[sc]);
        hk_magazine_flush(mine, next, n);
    }
}

void hk_magazines_flush(hak_ctx *ctx)
{
    hk_rows_end(ctx);
    hk_batches_return(ctx);
    hk_magazines_flush_from(ctx, 0);
}

void hk_batches_label(hak_ctx *ctx)
{
    if (ctx->sampling.batches == HK_BATCHES_NONE) return;
    hk_batches *b = hk_batches_of(ctx);
    for (unsigned sc = 0; sc < HK_KIB_CLASSES; sc++)
        __atomic_store_n(&b->next[sc].labels, b->bins[sc].labels, __ATOMIC_RELEASE);
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

void *hk_batch_here(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_batches *b = hk_batches_of(ctx);
    hk_bin *next = &b->next[sc], *bin = &b->bins[sc];
    void **slots = bin->slots;
    if (bin->top != slots || !bin->slab || !next->slots) return NULL;
    if (ctx->magazines.swept && hk_row_of(bin)->blocks) return NULL;
    /* More at once than a magazine takes, which is what batches cost less by; not of larger blocks. */
    size_t want = hk_max(hk_refill_of(bin), BATCH_BYTES / hk_classes[sc].size);
    want = hk_min(hk_min(want, HK_BATCH_MOST), b->left[sc]);
    bin->slots = next->slots;
    bool filled = hk_slab_refill_here(ctx, bin, (unsigned)want);
    size_t n = filled ? (size_t)(bin->top - bin->lo) : 0;
    next->top = next->slots + n;
    if (HK_UNLIKELY(n != want) && n) memmove(next->slots, bin->lo, n * sizeof(void *));
    bin->top = bin->slots = slots;
    bin->lo = HK_SHUT;
    b->left[sc] -= (uint32_t)n;
    return n ? hk_magazine_pop(next, label) : NULL;
}

static bool refill(hak_ctx *ctx, hk_bin *bin)
{
    bin->lo = bin->slots;
    bool filled = hk_slab_refill(ctx, bin, hk_refill_of(bin));
    hk_bin_shut(bin, HK_SHUT);
    return filled;
}

static void fill_batch(hk_bin *next, hk_bin *bin, size_t most)
{
    size_t has = (size_t)(next->top - next->slots), n = hk_min((size_t)(bin->top - bin->slots), most - has);
    hk_batch_move(next, bin, n);
}

/* Blocks that come and go one after the other are few at hand, and each batch would be as small: such a class
 * gets some more, but no slab for them. */
static void add_more(hak_ctx *ctx, hk_bin *next, hk_bin *bin, size_t most)
{
    if (!hk_class_has_free(ctx, bin) || !refill(ctx, bin)) return;
    void *p = bin->slots[0];
    if (HK_LIKELY(hk_in_window(ctx, p))) {
        fill_batch(next, bin, most);
        return;
    }
    bin->top = bin->slots;
    hk_slab_free(ctx, hk_extent_of(ctx->space, p), bin->kind, p);
}

void *hk_batch_alloc(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_batches *b = hk_batches_of(ctx);
    hk_bin *next = &b->next[sc], *bin = &b->bins[sc];
    if (b->left[sc] == 0 || !bin->slots || hk_packed_keeps(ctx, sc)) return NULL;
    if (HK_UNLIKELY(!next->slots) && !open(ctx, next, sc)) return NULL;
    if (bin->top == bin->slots) {
        if (!refill(ctx, bin)) return NULL;
        if (HK_UNLIKELY(!hk_in_window(ctx, bin->slots[0]))) return outside(ctx, b, bin, label);
    }
    size_t most = hk_min(HK_BATCH_MOST, b->left[sc]);
    bool few = (size_t)(bin->top - bin->slots) < bin->cap / 2u;
    next->top = next->slots;
    fill_batch(next, bin, most);
    if (few && bin->top == bin->slots) add_more(ctx, next, bin, most);
    b->left[sc] -= (uint32_t)(next->top - next->slots);
    return hk_magazine_pop(next, label);
}
