/* Contexts at their limits. */
#include "costs.h"

#include <string.h>

static size_t refused_size;

static void refused(size_t i)
{
    (void)i;
    must(hak_alloc(ctx, refused_size) == NULL);
}

/* Served by what is left: a block of another size was freed. */
static void from_the_rest(size_t i)
{
    hak_free(ctx, blocks[i]);
    must((blocks[i] = hak_alloc(ctx, 40)) != NULL);
}

/* A context of `limit` bytes that is full of blocks, packed ones or in slabs, of which some are freed
 * again. */
void measure_full(size_t limit, bool packed, bool shared)
{
    hak_options options = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.packed_bytes = packed ? (size_t)16 << 20 : HAK_NONE;
    options.tuning = &tuning;
    options.shared = shared;
    begin(&options);
    must(hak_limit(ctx, 0, limit, NULL, NULL) == 0);
    /* Of many sizes: one that has much leaves the packed units. */
    static void *all[1 << 18];
    size_t n = 0;
    for (unsigned failed = 0, size = 0; failed < 64; size = (size + 1) % 64) {
        void *p = hak_alloc(ctx, 16 + size * 16);
        if (p) all[n++] = p;
        failed = p ? 0 : failed + 1;
    }
    must(n < sizeof all / sizeof *all);
    char what[64];
    const char *how = shared ? "shared" : packed ? "packed" : "slabs";
    for (refused_size = 16; refused_size <= 100000; refused_size *= 50) {
        snprintf(what, sizeof what, "refused %zu %s", refused_size, how);
        refused(0);
        measure(what, limit, 10, refused);
        strcat(what, " often");
        measure(what, limit, 200, refused);
    }
    for (size_t i = 0, at = 0; at < 200; i++)
        if (hak_usable_size(ctx, all[i % n]) == 64) blocks[at++] = all[i % n];
    from_the_rest(199);
    snprintf(what, sizeof what, "from the rest %s", how);
    measure(what, limit, 199, from_the_rest);
    end();
}
