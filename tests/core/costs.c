/* costs: calls functions of the interface on heaps of two sizes, for the sentences on cost in the header. Run
 * under callgrind by test_costs.py: each part of what that writes is named WHAT/SIZE/CALLS and has the instructions
 * of CALLS calls on a heap of SIZE. Without callgrind it does the same and says nothing. */
#include <hakmem/hakmem.h>
#include <hakmem/tuning.h>

#include <valgrind/callgrind.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = (1 << 20) + 4096, MANY = 1 << 15 };

static hak_space *space;
static hak_ctx *ctx;
static void *blocks[MANY];
static volatile size_t sink;

static void must(bool ok)
{
    if (ok) return;
    fprintf(stderr, "costs: no memory\n");
    exit(1);
}

static void measure(const char *what, size_t size, size_t calls, void (*call)(size_t i))
{
    char name[80];
    snprintf(name, sizeof name, "%s/%zu/%zu", what, size, calls);
    CALLGRIND_ZERO_STATS;
    for (size_t i = 0; i < calls; i++)
        call(i);
    CALLGRIND_DUMP_STATS_AT(name);
}

static void begin(const hak_options *options)
{
    space = hak_space_new(NULL);
    ctx = space ? hak_ctx_new(space, options) : NULL;
    must(ctx);
}

static void end(void)
{
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
}

/* ---- Whose memory it is -------------------------------------------------------------------------- */

static size_t count;

static void owns(size_t i)
{
    sink += hak_owns(ctx, (char *)blocks[i * 7 % count] + 4096);
}

static void ctx_of(size_t i)
{
    sink += hak_ctx_of(space, (char *)blocks[i * 7 % count] + 4096) == ctx;
}

static void usable_size(size_t i)
{
    sink += hak_usable_size(ctx, blocks[i * 7 % count]);
}

static void owners(size_t n)
{
    hak_options options = HAK_OPTIONS_INIT;
    for (int shared = 0; shared < 2; shared++) {
        options.shared = shared;
        begin(&options);
        for (count = 0; count < n; count++)
            must((blocks[count] = hak_alloc(ctx, BIG)) != NULL);
        measure(shared ? "owns big shared" : "owns big", n, 1000, owns);
        measure(shared ? "ctx_of big shared" : "ctx_of big", n, 1000, ctx_of);
        measure(shared ? "usable_size big shared" : "usable_size big", n, 1000, usable_size);
        end();
    }
}

/* ---- What a heap tells, whatever is in it --------------------------------------------------------- */

static void live_bytes(size_t i)
{
    (void)i;
    sink += hak_ctx_live_bytes(ctx);
}

static void stats(size_t i)
{
    (void)i;
    hak_stats s = {.size = sizeof s};
    sink += (size_t)hak_ctx_stats(ctx, &s);
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

static void limit(size_t i)
{
    sink += (size_t)hak_limit(ctx, 0, ((size_t)1 << 30) + i, NULL, NULL);
}

static void tick(size_t i)
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
static void heap(size_t n, bool retired)
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
        measure("tick", n, 100, tick);
        measure("labels_stats", n, 4, labels_stats);
        measure("visit", n, 4, visit);
        measure("flush", n, 1, flush);
    }
    measure("destroy", n, 1, destroy);
    ctx = NULL;
    end();
}

/* ---- Contexts ------------------------------------------------------------------------------------ */

static hak_ctx *made[1024];

static void create(size_t i)
{
    made[i % 16] = hak_ctx_new(space, NULL);
}

static void destroy_made(size_t i)
{
    hak_ctx_destroy(made[i % 16]);
}

/* Beside n others, in a space that has units at hand. */
static void contexts(size_t n)
{
    begin(NULL);
    for (size_t i = 0; i < n; i++)
        must((made[i] = hak_ctx_new(space, NULL)) != NULL);
    for (size_t i = n; i < 16 + n; i++)
        must((made[i] = hak_ctx_new(space, NULL)) != NULL);
    for (size_t i = n; i < 16 + n; i++)
        hak_ctx_destroy(made[i]);
    measure("ctx_new", n, 16, create);
    measure("ctx_destroy", n, 16, destroy_made);
    for (size_t i = 16; i < n; i++)
        hak_ctx_destroy(made[i]);
    end();
}

/* ---- Labels and groups ---------------------------------------------------------------------------- */

static size_t names;

static void define(size_t i)
{
    (void)i;
    char name[16];
    snprintf(name, sizeof name, "label %zu", names);
    sink += hak_label_define(ctx, name);
}

static void defined(size_t n)
{
    begin(NULL);
    for (names = 1; names < n; names++)
        define(0);
    measure("label_define", n, 10, define);
    end();
}

static hak_quota *group;

static void quota_used(size_t i)
{
    (void)i;
    sink += hak_quota_used(group) + hak_quota_peak(group);
}

static void group_pair(size_t i)
{
    (void)i;
    must((blocks[0] = hak_alloc(ctx, BIG)) != NULL);
    hak_free(ctx, blocks[0]);
}

/* n groups, one in the other. */
static void groups(size_t n)
{
    hak_quota *all[64] = {NULL};
    for (size_t i = 0; i < n; i++)
        must((all[i] = hak_quota_new(i ? all[i - 1] : NULL, 0)) != NULL);
    group = all[n - 1];
    hak_options options = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.big_cache = HAK_NONE;
    options.quota = group;
    options.tuning = &tuning;
    begin(&options);
    measure("quota_used", n, 100, quota_used);
    measure("charge in groups", n, 100, group_pair);
    end();
    while (n > 0)
        hak_quota_delete(all[--n]);
}

/* ---- At the limit --------------------------------------------------------------------------------- */

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

/* A context of `limit` bytes that is full of blocks, packed ones or in slabs, of which some are freed again. */
static void full(size_t limit, bool packed, bool shared)
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

int main(void)
{
    for (int way = 0; way < 3; way++) {
        full((size_t)1 << 20, way == 0, way == 2);
        full((size_t)4 << 20, way == 0, way == 2);
    }
    owners(32);
    owners(2048);
    heap(MANY / 16, false);
    heap(MANY, false);
    heap(MANY / 16, true);
    heap(MANY, true);
    contexts(16);
    contexts(512);
    defined(10);
    defined(200);
    groups(2);
    groups(32);
    return 0;
}
