/* Questions about blocks and heaps, and what goes through a heap. */
#include "costs.h"

/* ---- Whose memory it is -------------------------------------------------------------------------- */

static void owns(size_t i)
{
    sink += hak_owns(ctx, (char *)blocks[i * 7 % count] + 4096);
}

static void ctx_of(size_t i)
{
    sink += hak_ctx_of(space, (char *)blocks[i * 7 % count] + 4096) == ctx;
}

static void bytes_within(size_t i)
{
    (void)i;
    sink += hak_space_bytes_within(space, NULL, SIZE_MAX);
}

static void usable_size(size_t i)
{
    sink += hak_usable_size(ctx, blocks[i * 7 % count]);
}

void measure_owners(size_t n)
{
    hak_options options = HAK_OPTIONS_INIT;
    for (int shared = 0; shared < 2; shared++) {
        options.shared = shared;
        begin(&options);
        for (count = 0; count < n; count++)
            must((blocks[count] = hak_alloc(ctx, BIG)) != NULL);
        measure(shared ? "owns big shared" : "owns big", n, 1000, owns);
        measure(shared ? "ctx_of big shared" : "ctx_of big", n, 1000, ctx_of);
        if (!shared) measure("bytes_within big", n, 10, bytes_within);
        measure(shared ? "usable_size big shared" : "usable_size big", n, 1000, usable_size);
        end();
    }
}

/* ---- What a heap tells, whatever is in it --------------------------------------------------------- */

void live_bytes(size_t i)
{
    (void)i;
    sink += hak_ctx_live_bytes(ctx);
}

void stats(size_t i)
{
    (void)i;
    hak_stats s = {.size = sizeof s};
    sink += (size_t)hak_ctx_stats(ctx, &s);
}

static void classes_stats(size_t i)
{
    (void)i;
    hak_class_info info[4];
    sink += (size_t)hak_classes_stats(ctx, info, 4);
}

static void pins(size_t i)
{
    sink += hak_block_pins(ctx, blocks[i * 7 % count]);
}

static void labels_stats(size_t i)
{
    (void)i;
    hak_label_info info[4];
    sink += (size_t)hak_labels_stats(ctx, info, 4);
}

static bool seen(void *user, const hak_block *block)
{
    (void)user;
    sink += block->size;
    return true;
}

static void visit(size_t i)
{
    (void)i;
    sink += (size_t)hak_ctx_visit(ctx, seen, NULL);
}

static void good_size(size_t i)
{
    sink += hak_good_size(ctx, i * 7 % 5000);
}

static void label_of(size_t i)
{
    sink += hak_label_of(ctx, blocks[i * 7 % count]);
}

static void label_stats(size_t i)
{
    hak_label_info info;
    sink += (size_t)hak_label_stats(ctx, (hak_label)(i % 3), &info);
}

static void label_name(size_t i)
{
    sink += (size_t)hak_label_name(ctx, (hak_label)(i % 3));
}

static void block_size(size_t i)
{
    sink += hak_block_size(ctx, blocks[i * 7 % count]);
}

static void realloc_move(size_t i)
{
    (void)i;
    void *p = hak_realloc(ctx, hak_alloc(ctx, 40), 400);
    must((p = hak_realloc_sized_cs(ctx, p, 400, 40, 1, 0)) != NULL);
    hak_free_cs(ctx, p, 0);
}

static void aligned(size_t i)
{
    void *p = hak_aligned_alloc(ctx, 64, 100 + i % 100);
    must((p = hak_aligned_realloc(ctx, p, 64, 300)) != NULL);
    hak_free_sized(ctx, p, 300);
    must((p = hak_aligned_calloc(ctx, 64, 2, 100)) != NULL);
    hak_free(ctx, p);
}

static void zeroed(size_t i)
{
    (void)i;
    hak_free(ctx, hak_calloc(ctx, 2, 100));
}

/* One that is its own, and one that is nobody's. */
static void free_if_owned(size_t i)
{
    must(hak_free_if_owned(ctx, hak_alloc(ctx, 300), 300) && !hak_free_if_owned(ctx, &i, sizeof i));
}

void peak_reset(size_t i)
{
    (void)i;
    hak_ctx_peak_reset(ctx);
}

static void names_of(size_t i)
{
    sink += (size_t)hak_ctx_name(ctx)[0] + (size_t)hak_ctx_user(ctx) + (size_t)hak_version()[0];
    sink += (size_t)hak_error_name((hak_error)(i % 10))[0];
}

static void space_free(size_t i)
{
    (void)i;
    hak_space_free(space, hak_alloc(ctx, 64));
}

static void check(size_t i)
{
    (void)i;
    must(hak_ctx_check(ctx, NULL, NULL));
}

static void trim(size_t i)
{
    (void)i;
    sink += hak_ctx_trim(ctx);
}

void limit(size_t i)
{
    sink += (size_t)hak_limit(ctx, 0, ((size_t)1 << 30) + i, NULL, NULL);
}

static void limit_callback(size_t i)
{
    void *user;
    sink += i + !hak_limit_callback(ctx, &user);
}

void tick(size_t i)
{
    hak_ctx_tick(ctx, 1 + i);
}

static void owns_small(size_t i)
{
    sink += hak_owns(ctx, blocks[i * 7 % count]);
}

static void flush(size_t i)
{
    (void)i;
    sink += hak_ctx_flush(ctx);
}

static void retire(size_t i)
{
    (void)i;
    hak_ctx_retire(ctx);
}

static void destroy(size_t i)
{
    (void)i;
    hak_ctx_destroy(ctx);
}

/* n small blocks, each eighth of them free. */
void measure_heap(size_t n, bool retired)
{
    const char *const names[] = {"some", "other"};
    hak_options options = HAK_OPTIONS_INIT;
    options.labels = names;
    options.label_count = 2;
    begin(&options);
    for (count = 0; count < n; count++)
        must((blocks[count] = hak_alloc_cs(ctx, 64, (hak_label)(count % 3), 0)) != NULL);
    for (size_t i = 0; i < n; i += 8) {
        hak_free(ctx, blocks[i]);
        blocks[i] = blocks[i + 1];
    }
    if (retired) {
        measure("retire", n, 1, retire);
    } else {
        measure("live_bytes", n, 100, live_bytes);
        measure("stats", n, 100, stats);
        measure("good_size", n, 1000, good_size);
        measure("usable_size small", n, 1000, usable_size);
        measure("label_of small", n, 1000, label_of);
        measure("owns small", n, 1000, owns_small);
        measure("limit", n, 100, limit);
        measure("limit_callback", n, 100, limit_callback);
        measure("tick", n, 100, tick);
        measure("label_name", n, 100, label_name);
        measure("block_size", n, 1000, block_size);
        measure("names_of", n, 100, names_of);
        measure("peak_reset", n, 100, peak_reset);
        measure("realloc that moves", n, 100, realloc_move);
        measure("aligned", n, 100, aligned);
        measure("calloc", n, 100, zeroed);
        measure("free_if_owned", n, 100, free_if_owned);
        measure("space_free", n, 100, space_free);
        measure("labels_stats", n, 4, labels_stats);
        measure("label_stats", n, 4, label_stats);
        measure("classes_stats", n, 4, classes_stats);
        measure("block_pins", n, 1000, pins);
        measure("visit", n, 4, visit);
        measure("check", n, 1, check);
        measure("flush", n, 1, flush);
        measure("trim", n, 1, trim);
    }
    measure("destroy", n, 1, destroy);
    ctx = NULL;
    end();
}
