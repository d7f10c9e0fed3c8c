#include "heap/label.h"

#include "heap/batch.h"
#include "heap/packed.h"
#include "heap/reclaim.h"

/* What the label bytes of existing slabs and runs will be charged. */
static size_t missing(hak_ctx *ctx)
{
    size_t bytes =
        ctx->packed.units ? hk_label_bytes(HK_KIND_PACKED, 1) : 0; /* its first unit is in no list */
    HK_EACH_OWNED(ctx, s)
    {
        bytes += hk_label_bytes(s->kind, s->units);
    }
    return bytes;
}

/* Label bytes of existing slabs and runs are stale: a former owner of the units wrote them. */
static bool clear_units(hak_ctx *ctx, hk_unit_id id, unsigned kind, size_t units)
{
    if (hk_space_labels(ctx->space, id, kind, units) != 0) return false;
    hk_extent *e = hk_extent_of_id(ctx->space, id);
    memset(hk_label_byte(e, kind, hk_extent_address(e, id)), 0, hk_label_bytes(kind, units));
    return true;
}

static bool clear(hak_ctx *ctx)
{
    if (ctx->packed.units && !clear_units(ctx, ctx->owned.id, HK_KIND_PACKED, 1)) return false;
    HK_EACH_OWNED(ctx, s)
    {
        if (hk_has_labels(s->kind) && !clear_units(ctx, hk_slab_id(ctx->space, s), s->kind, s->units))
            return false;
    }
    return true;
}

void hk_labels_uncharge(hak_ctx *ctx)
{
    size_t bytes = missing(ctx);
    hk_sub(&ctx->account.metadata, bytes);
    hk_uncharge(ctx, bytes);
}

bool hk_labels_charge(hak_ctx *ctx)
{
    hk_space_take_back(ctx->space, &ctx->owned.aside); /* label bytes may go there */
    size_t bytes = missing(ctx);
    if (!hk_reclaim_charge(ctx, bytes)) return false;
    hk_add(&ctx->account.metadata, bytes);
    if (clear(ctx)) return true;
    hk_labels_uncharge(ctx);
    return false;
}

void hk_labels_use(hak_ctx *ctx)
{
    ctx->labels.on = true;
    /* Most contexts define their labels before the first bin. */
    unsigned bins = hk_bins_none(ctx) ? 0 : HK_BINS;
    for (unsigned kind = 0; kind < bins; kind++) {
        hk_bin *bin = hk_bin_of(ctx, kind);
        if (!bin->slots) continue;
        bool packed = kind < HK_SMALL_CLASSES && hk_packed_keeps(ctx, kind);
        uint8_t *labels = packed ? hk_packed_labels_of(ctx, kind) : hk_labels_of(ctx, hk_area_of(kind));
        if (!labels) {
            hk_bin_shut(bin, HK_SHUT_EVER);
            bin->lo = HK_SHUT_EVER; /* also if a profile has shut it */
        }
        /* Its thread may be on the fast path. */
        __atomic_store_n(&bin->labels, labels, __ATOMIC_RELEASE);
    }
    hk_batches_label(ctx);
}

const char *hk_label_name(const hak_ctx *ctx, hak_label label)
{
    ctx = hk_whole(ctx);
    if (label == 0) return "";
    if (label > ctx->labels.count) return NULL;
    return label <= ctx->labels.given_count ? ctx->labels.given[label - 1]
                                            : ctx->labels.defined[label - 1 - ctx->labels.given_count];
}

enum { NAME_MOST = 63 };

size_t hk_label_name_length(const char *name)
{
    const char *end = name ? memchr(name, 0, NAME_MOST + 1) : NULL;
    return end ? (size_t)(end - name) : 0;
}

/* Contexts come and go by the million: a name is compared with those of the same hash only. */
const char *hk_label_names_error(const char *const *names, size_t count)
{
    enum { SLOTS = 512 };
    _Static_assert(HAK_LABELS_MAX < SLOTS / 2 && HAK_LABELS_MAX <= UINT8_MAX, "half of the slots stay empty");
    if (count == 0) return NULL;
    uint8_t seen[SLOTS] = {0}; /* numbers of names, from 1, by hash */
    for (size_t i = 0; i < count; i++) {
        size_t n = hk_label_name_length(names[i]);
        if (n == 0) return "labels: a name is NULL, empty or over 63 bytes";
        uint32_t hash = 0;
        for (size_t k = 0; k < n; k++)
            hash = (hash ^ (unsigned char)names[i][k]) * 0x9E3779B1u;
        uint32_t at = hash >> 23;
        for (; seen[at]; at = (at + 1) % SLOTS)
            if (strcmp(names[seen[at] - 1], names[i]) == 0) return "labels: two names are the same";
        seen[at] = (uint8_t)(i + 1);
    }
    return NULL;
}
