/* Profiles: begin, end, read. The counting is in profile/; the events of watch.c call it. */
#include "api/profile.h"

#include "base/real.h"
#include "heap/batch.h"
#include "heap/holes.h"
#include "heap/packed.h"
#include "heap/row.h"
#include "shared/thread_heap.h"

/* ---- Options -------------------------------------------------------------------------------------- */

static const char *read_profile_options(hak_profile_options *o, const hak_profile_options *given)
{
    const hak_profile_options defaults = HAK_PROFILE_OPTIONS_INIT;
    const size_t most = (size_t)1 << 40;
    if (!hak_sized_copy(o, sizeof *o, given ? given : &defaults))
        return "hak_profile_options.size is not set, or more is set than is known";
    if ((unsigned)o->mode > HAK_PROFILE_COUNTED) return "mode: HAK_PROFILE_* only";
    if (!o->mean) o->mean = (size_t)512 << 10;
    if (!o->depth) o->depth = 32;
    if (!o->table_bytes) o->table_bytes = (size_t)1 << 20;
    const uint64_t shortest = 1000000, longest = UINT64_C(1) << 56;
    if (o->window_ns && (o->window_ns < shortest || o->window_ns > longest))
        return "window_ns: 1 ms to 2 years";
    if (o->mean < 1024 || o->mean > most) return "mean: 1 KiB to 1 TiB";
    if (o->depth > HAK_PROFILE_DEPTH_MOST) return "depth: at most HAK_PROFILE_DEPTH_MOST";
    if (o->table_bytes < (size_t)64 << 10 || o->table_bytes > most) return "table_bytes: 64 KiB to 1 TiB";
    return NULL;
}

const char *hak_profile_options_error(const hak_profile_options *given)
{
    hak_profile_options o;
    return read_profile_options(&o, given);
}

/* ---- Which paths calls take ------------------------------------------------------------------------ */

/* Bins without slots have no blocks: every allocation takes the slow path anyway. */
static void shut_all(hak_ctx *heap)
{
    for (unsigned kind = 0; kind < HK_BINS; kind++)
        if (hk_bin_of(heap, kind)->slots) hk_bin_shut(hk_bin_of(heap, kind), HK_SHUT);
}

static void open_magazines(hak_ctx *heap)
{
    for (unsigned kind = 0; kind < HK_BINS; kind++) {
        hk_bin *bin = hk_bin_of(heap, kind);
        if (bin->slots && bin->lo == HK_SHUT) bin->lo = bin->slots;
    }
}

void hk_profile_enter(hak_ctx *heap)
{
    hk_profile *k = hk_profile_of(heap);
    bool run = k && atomic_load(&k->running) && !k->counted, runs = heap->checked & HK_PROFILED;
    if (run == runs && (!run || heap->sampling.run == atomic_load(&k->runs))) return;
    /* Under the lock, as a child that is forked must not find magazines half shut. */
    hk_enter(heap);
    heap->checked = (uint8_t)(run ? heap->checked | HK_PROFILED | HK_OBSERVED : heap->checked & ~HK_PROFILED);
    if (run) {
        /* In the heap of a thread it is set already, and other threads may be reading it. */
        if (!(heap->debug & HK_DEBUG_PROFILE)) heap->debug |= HK_DEBUG_PROFILE;
        hk_profile_lock(k);
        heap->sampling.run = atomic_load(&k->runs);
        heap->sampling.left = hk_profile_draw(k);
        bool batches = !(heap->checked & (HK_CHECKED | HK_GUARDED)) && !k->exact && !k->one_by_one;
        hk_profile_unlock(k);
        /* Frees into a row would pass by the profile. */
        hk_rows_end(heap);
        shut_all(heap);
        /* Without memory for batches each allocation is counted. */
        if (batches) (void)hk_batches_begin(heap);
        else hk_batches_end(heap);
    } else {
        hk_batches_end(heap);
        open_magazines(heap);
    }
    hk_packed_quicken(heap);
    hk_leave(heap);
}

/* ---- Begin and end --------------------------------------------------------------------------------- */

static void clear(hk_profile *k, const hak_profile_options *o)
{
    if (k->memory) hk_lock_take(k->memory);
    hk_profile_lock(k);
    hk_profile_clear(k, o);
    hk_profile_unlock(k);
    if (k->memory) hk_lock_drop(k->memory);
}

/* A shared context keeps its profile until it ends: other threads may be looking at it. */
static int start_shared(hak_ctx *shared, const hak_profile_options *o)
{
    hk_heaps *heaps = shared->heaps;
    int rc = 0;
    hk_lock_take(&heaps->lock);
    hk_profile *k = hk_profile_of(shared);
    if (k && atomic_load(&k->running)) {
        rc = -1;
    } else if (k) {
        hk_profile_lock(k);
        hk_profile_clear(k, o);
        hk_profile_unlock(k);
    } else {
        k = hk_profile_new(shared, o, &heaps->lock, &heaps->live, &heaps->account);
        if (!k) rc = -2;
    }
    if (rc == 0) {
        k->runs++;
        atomic_store(&k->running, true);
        atomic_store(&shared->sampling.profile, k);
        hk_shared_observe(shared);
    }
    hk_lock_drop(&heaps->lock);
    return rc;
}

int hak_profile_start(hak_ctx *ctx, const hak_profile_options *given)
{
    hak_profile_options o;
    if (read_profile_options(&o, given)) return -1;
    ctx = hk_whole(ctx);
    if (ctx->heaps) return o.mode == HAK_PROFILE_COUNTED ? -1 : start_shared(ctx, &o);
    hk_profile *k = hk_profile_of(ctx);
    if (k && atomic_load(&k->running)) return -1;
    if (k && k->apart == o.apart) {
        hk_profile_clear(k, &o);
    } else { /* its first pages are elsewhere */
        hk_profile *other = hk_profile_new(ctx, &o, NULL, &ctx->live_bytes, NULL);
        if (!other) return -2;
        if (k) hk_profile_end(k);
        k = other;
    }
    k->runs++;
    atomic_store(&k->running, true);
    atomic_store(&ctx->sampling.profile, k);
    hk_profile_enter(ctx);
    return 0;
}

int hak_profile_stop(hak_ctx *ctx)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k || !atomic_exchange(&k->running, false)) return -1;
    /* Threads of a shared context open their magazines when they come by. */
    if (!hk_whole(ctx)->heaps) hk_profile_enter(ctx);
    return 0;
}

int hak_profile_reset(hak_ctx *ctx)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k) return -1;
    if (k->memory || atomic_load(&k->running)) {
        clear(k, NULL);
        return 0;
    }
    atomic_store(&ctx->sampling.profile, NULL);
    ctx->checked &= HK_CHECKED | HK_GUARDED | HK_TRACED | HK_PLACED;
    ctx->debug &= (uint8_t)~HK_DEBUG_PROFILE;
    hk_profile_end(k);
    return 0;
}

int hak_profile_reuse(hak_ctx *ctx, const void *p, hak_label label, hak_site site)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k || k->counted || !atomic_load_explicit(&k->running, memory_order_relaxed)) return -1;
    return hk_profile_reused(ctx, p, label, site);
}

/* ---- Counted by the host --------------------------------------------------------------------------- */

hak_profile_counts *hak_profile_counts_of(hak_ctx *ctx, const uintptr_t *frames, unsigned depth,
                                          hak_label label)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k || !k->counted || !atomic_load_explicit(&k->running, memory_order_relaxed)) return NULL;
    return hk_profile_counts_of(k, frames, depth, label);
}

hak_profile_tally *hak_profile_tally_of(hak_ctx *ctx)
{
    hk_profile *k = hk_profile_of(ctx);
    return k && k->counted ? &k->tally : NULL;
}

/* ---- Reading --------------------------------------------------------------------------------------- */

enum { SECOND = 30 /* log2 of about as many nanoseconds */ };

/* Adds up the ages of live samples in their stacks, and what these pin. */
static void count_ages(hk_profile *k, uint64_t now)
{
    if (k->counted) return;
    HK_EACH_STACK(k, stack)
    {
        hk_sampled *s = (hk_sampled *)stack;
        s->age_sum = s->old_blocks = s->pinned = 0;
    }
    for (size_t i = 0; i < k->samples.count; i++)
        for (const hk_sample *b = k->samples.at[i]; b; b = b->next) {
            double age = now > b->birth_ns ? (double)(now - b->birth_ns) : 0;
            double w = hk_profile_weight(k, b->eligible);
            b->stack->age_sum += w * age;
            b->stack->pinned += w * hk_block_pins(k->ctx, (const void *)b->p);
            if (age >= (double)(UINT64_C(1) << SECOND)) b->stack->old_blocks += w;
        }
}

const hk_stack *hk_profile_oldest(hk_profile *k)
{
    hk_profile_lock(k);
    hk_profile_fold(k);
    const hk_stack *s = k->oldest;
    hk_profile_unlock(k);
    return s;
}

hak_profile_stack hk_profile_told(const hk_profile *k, const hk_stack *s)
{
    const hk_sums sums = hk_stack_sums(k, s);
    return (hak_profile_stack){
        .size = sizeof(hak_profile_stack),
        .id = hk_stack_id(k, s),
        .label = s->label,
        .site = k->counted ? 0 : ((const hk_sampled *)s)->site,
        .frames = hk_stack_frames(k, s),
        .depth = s->depth,
        .samples = sums.samples,
        .live_samples = sums.live_samples,
        .largest_bytes = sums.largest,
    };
}

static hak_profile_class class_of(const hak_profile_stack *s, double all_blocks)
{
    if (s->samples < 2) return HAK_PROFILE_UNKNOWN;
    if (s->mean_bytes > (double)HK_SMALL_MAX) return HAK_PROFILE_LARGE_INFREQUENT;
    bool frequent = s->alloc_blocks * 1000 >= all_blocks;
    return s->mean_bytes <= 1024 && frequent ? HAK_PROFILE_SMALL_FREQUENT : HAK_PROFILE_MEDIUM;
}

/* Of those that the context itself counts: how old their blocks are, and how old they became. */
static void describe_lives(const hk_profile *k, const hk_sampled *s, hak_profile_stack *out)
{
    if (s->sums.live_samples) out->age_ns = s->age_sum / s->sums.live_blocks;
    out->pinned_bytes = s->pinned;
    double dead = 0, long_dead = 0;
    for (unsigned i = 0; i < HAK_PROFILE_LIFETIMES; i++) {
        out->lifetime[i] = k->exact ? s->died.count[i] : (double)s->died.weight[i];
        dead += out->lifetime[i];
        if (i >= SECOND) long_dead += out->lifetime[i];
    }
    double lived = long_dead + s->old_blocks;
    out->long_lived = lived > 0 && lived * 2 >= dead + s->old_blocks;
}

static void describe(const hk_profile *k, const hk_stack *stack, double all_blocks, hak_profile_stack *out)
{
    const hk_sums s = hk_stack_sums(k, stack);
    bool at_peak = s.peak_seen != k->peak_seq;
    *out = hk_profile_told(k, stack);
    out->alloc_blocks = s.alloc_blocks;
    out->alloc_bytes = s.alloc_bytes;
    out->live_blocks = s.live_blocks;
    out->live_bytes = s.live_bytes;
    out->peak_blocks = at_peak ? s.live_blocks : s.peak_blocks;
    out->peak_bytes = at_peak ? s.live_bytes : s.peak_bytes;
    out->alloc_bytes_error = hk_root(s.alloc_var);
    out->live_bytes_error = hk_root(s.live_var);
    out->peak_bytes_error = hk_root(at_peak ? s.live_var : s.peak_var);
    out->grown_blocks = s.grown_blocks;
    out->grown_bytes = s.grown_bytes;
    if (s.alloc_blocks > 0) out->mean_bytes = s.alloc_bytes / s.alloc_blocks;
    if (!k->counted) describe_lives(k, (const hk_sampled *)stack, out);
    out->kind = class_of(out, all_blocks);
}

int hak_profile_visit(const hak_ctx *ctx, hak_profile_fn *fn, void *user)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k) return -1;
    double blocks = 0;
    hk_profile_lock(k);
    hk_profile_fold(k);
    count_ages(k, hk_profile_clock(k));
    HK_EACH_STACK(k, s)
    {
        blocks += hk_stack_sums(k, s).alloc_blocks;
    }
    const hk_stack *s = k->oldest;
    hk_profile_unlock(k);
    while (s) {
        hak_profile_stack stack;
        hk_profile_lock(k);
        describe(k, s, blocks, &stack);
        s = hk_stack_younger(k, s);
        hk_profile_unlock(k);
        if (!fn(user, &stack)) return 1;
    }
    return 0;
}

int hak_profile_stats(const hak_ctx *ctx, hak_profile_info *out)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k || !hk_sized_fits(out->size, sizeof *out)) return -1;
    hk_profile_lock(k);
    hk_profile_fold(k);
    hak_profile_info info = {
        .mode = k->counted ? HAK_PROFILE_COUNTED
                : k->exact ? HAK_PROFILE_EXACT
                           : HAK_PROFILE_SAMPLED,
        .running = atomic_load(&k->running),
        .mean = k->mean,
        .samples = k->drawn,
        .stacks = k->stack_count,
        .dropped_stacks = k->dropped_stacks,
        .dropped_samples = k->dropped_samples,
        .table_bytes = k->bytes,
        .started_ns = k->started_ns,
        .marks = k->marks ? k->marks->number : 0,
        .window_ns = k->window_ns,
        .dropped_bytes = k->dropped_bytes,
        .apart_bytes = k->apart_bytes,
    };
    hk_profile_unlock(k);
    hk_sized_write(out, &info, sizeof info);
    return 0;
}
