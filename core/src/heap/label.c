#include "heap/label.h"

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
        /* Length and three characters tell most names apart; strcmp tells the others. */
        const unsigned char *name = (const unsigned char *)names[i];
        uint32_t few = (uint32_t)n << 24 | (uint32_t)name[0] << 16 | (uint32_t)name[n / 2] << 8 | name[n - 1];
        uint32_t at = few * 0x9E3779B1u >> 23;
        for (; seen[at]; at = (at + 1) % SLOTS)
            if (strcmp(names[seen[at] - 1], names[i]) == 0) return "labels: two names are the same";
        seen[at] = (uint8_t)(i + 1);
    }
    return NULL;
}
