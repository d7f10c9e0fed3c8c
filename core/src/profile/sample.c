/* Keeps the sums of stacks while their samples come, grow and go. */
#include "profile/profile.h"

#include "heap/block.h"
#include "heap/label.h"

/* Returns the time of a sample. Exact profiles have too many events for a look at the clock each. A window
 * begins a nanosecond after its mark (hk_profile_mark), so that the clock of the space may be behind. */
static uint64_t time_of_sample(hk_profile *k)
{
    enum { EXACT_EVENTS = 64 };
    if (!k->exact || k->ticks == 0) {
        uint64_t now = hk_profile_clock(k);
        if (now > k->now_ns) k->now_ns = now;
    }
    k->ticks = (uint8_t)((k->ticks + 1) % EXACT_EVENTS);
    return k->now_ns;
}

/* ---- Sums ----------------------------------------------------------------------------------------- */

/* A new peak does not copy what is live for all stacks: in a stack that did not change since, it is still
 * live, and a stack that is about to change keeps it first. */
static void keep_peak(const hk_profile *k, hk_sampled *s)
{
    if (s->sums.peak_seen == k->peak_seq) return;
    s->sums.peak_seen = k->peak_seq;
    s->sums.peak_blocks = s->sums.live_blocks;
    s->sums.peak_bytes = s->sums.live_bytes;
    s->sums.peak_var = s->sums.live_var;
}

/* How many blocks and bytes a sample stands for. A block of n bytes is drawn with the chance 1 / w, so that
 * n w is an estimate without bias, and n^2 w (w - 1) one of its variance. */
typedef struct share {
    double blocks, bytes, var;
} share;

static share share_of(const hk_profile *k, size_t eligible, size_t size)
{
    double n = (double)size;
    if (k->exact) return (share){1, n, 0};
    double w = hk_profile_weight(k, eligible);
    return (share){w, w * n, n * n * w * (w - 1)};
}

static void count_live(hk_profile *k, hk_sampled *s, share a, double sign)
{
    keep_peak(k, s);
    s->sums.live_blocks += sign * a.blocks;
    s->sums.live_bytes += sign * a.bytes;
    s->sums.live_var += sign * a.var;
    k->live_bytes += sign * a.bytes;
}

static void count_made(hk_sampled *s, share a, double sign)
{
    s->sums.alloc_blocks += sign * a.blocks;
    s->sums.alloc_bytes += sign * a.bytes;
    s->sums.alloc_var += sign * a.var;
}

/* In a sampled profile, the context knows better than the estimates when it is at its highest. */
static void note_peak(hk_profile *k)
{
    /* A sum that threads add to may be below 0 for a moment. */
    double live = k->exact ? k->live_bytes : (double)(ptrdiff_t)hk_get(k->live);
    if (live <= k->peak) return;
    k->peak = live;
    k->peak_seq++;
}

/* A sample of the stack is gone. */
static void settle_live(hk_sampled *s)
{
    if (--s->sums.live_samples == 0)
        s->sums.live_blocks = s->sums.live_bytes = s->sums.live_var = 0; /* no rest of rounding */
}

/* The block of a sample no longer belongs to its stack. */
static void leave_stack(hk_profile *k, const hk_sample *block)
{
    hk_sampled *s = block->stack;
    share a = share_of(k, block->eligible, block->size);
    count_live(k, s, a, -1);
    s->sums.freed_var += a.var;
    settle_live(s);
    uint64_t now = time_of_sample(k), life = now > block->birth_ns ? now - block->birth_ns : 0;
    unsigned log = life ? hk_log2(life) : 0;
    if (log >= HAK_PROFILE_LIFETIMES) log = HAK_PROFILE_LIFETIMES - 1;
    if (k->exact) s->died.count[log]++;
    else s->died.weight[log] += (float)a.blocks;
}

/* The block of a sample belongs to the stack from now on. */
static void join_stack(hk_profile *k, hk_sample *block, hk_sampled *s)
{
    share a = share_of(k, block->eligible, block->size);
    block->stack = s;
    block->birth_ns = time_of_sample(k);
    count_live(k, s, a, 1);
    count_made(s, a, 1);
    s->sums.samples++;
    s->sums.live_samples++;
    s->sums.largest = hk_max(s->sums.largest, block->size);
    k->drawn++;
    note_peak(k);
}

static void died(hk_profile *k, hk_sample **link)
{
    leave_stack(k, *link);
    hk_profile_sample_drop(k, link);
}

/* ---- Who is told ---------------------------------------------------------------------------------- */

/* What to tell when the lock is dropped. */
typedef struct news {
    hak_sample_made_fn *made;
    hak_sample_gone_fn *gone;
    void *user;
    const void *was, *is; /* NULL = there is no such block */
    size_t n;
    double bytes;
} news;

static void note_gone(const hk_profile *k, news *told, const void *p)
{
    if (HK_LIKELY(!k->sample_gone)) return;
    told->gone = k->sample_gone;
    told->user = k->user;
    told->was = p;
}

static void note_made(const hk_profile *k, news *told, const hk_sample *block)
{
    if (HK_LIKELY(!k->sample_made)) return;
    told->made = k->sample_made;
    told->user = k->user;
    told->is = (const void *)block->p;
    told->n = block->size;
    told->bytes = share_of(k, block->eligible, block->size).bytes;
}

static void tell_news(const news *told)
{
    if (HK_UNLIKELY(told->was != NULL)) told->gone(told->user, told->was);
    if (HK_UNLIKELY(told->is != NULL)) told->made(told->user, told->is, told->n, told->bytes);
}

/* ---- Blocks --------------------------------------------------------------------------------------- */

static void count_dropped(hk_profile *k, const hk_sampled *s, double bytes)
{
    k->dropped_bytes += bytes;
    if (s) k->dropped_samples++;
    else k->dropped_stacks++;
}

void hk_profile_add(hak_ctx *heap, void *p, size_t size, size_t eligible, hak_label label, hak_site site)
{
    hk_profile *k = hk_profile_of(heap);
    uintptr_t frames[HAK_PROFILE_DEPTH_MOST];
    hk_profile_lock(k);
    hak_frames_fn *fn = k->frames;
    void *user = k->user;
    size_t room = k->depth;
    bool frames_alone = k->frames_alone;
    bool due = k->window_ns && (k->exact ? k->now_ns : time_of_sample(k)) >= k->window_due_ns;
    hk_profile_unlock(k);
    if (HK_UNLIKELY(due)) hk_profile_turn(k);
    news told = {.was = NULL, .is = NULL};
    size_t depth = fn ? hk_min(fn(user, k->ctx, site, frames, room), room) : 0;
    if (frames_alone && depth > 0) site = 0;
    if (!size) size = hk_block_size(heap, p);
    label = hk_label_known(heap, label);
    hk_profile_prepare(k, (unsigned)depth);
    hk_sample **link = hk_profile_find(k, (uintptr_t)p);
    if (HK_UNLIKELY(*link != NULL)) {
        note_gone(k, &told, p);
        died(k, link);
        link = hk_profile_find(k, (uintptr_t)p);
    }
    heap->sampling.left = hk_profile_draw(k);
    hk_sampled *s =
        (hk_sampled *)hk_profile_stack_of(k, frames, (unsigned)hk_min(depth, k->depth), site, label);
    hk_sample *block = s ? hk_profile_sample_new(k, (uintptr_t)p, link) : NULL;
    if (block) {
        block->size = size;
        block->eligible = eligible;
        join_stack(k, block, s);
        note_made(k, &told, block);
        if (hk_kind_in_window(heap, p) != HK_KIND_WATCHED) hk_unit_watch(heap, p, true);
    } else {
        count_dropped(k, s, share_of(k, eligible, size).bytes);
    }
    hk_profile_unlock(k);
    tell_news(&told);
}

void hk_profile_free(hk_profile *k, const void *p)
{
    news told = {.was = NULL, .is = NULL};
    hk_profile_lock(k);
    hk_sample **link = hk_profile_find(k, (uintptr_t)p);
    if (*link) {
        note_gone(k, &told, p);
        died(k, link);
    }
    hk_profile_unlock(k);
    tell_news(&told);
}

bool hk_profile_reused(hak_ctx *heap, const void *p, hak_label label, hak_site site)
{
    hk_profile *k = hk_profile_of(heap);
    uintptr_t frames[HAK_PROFILE_DEPTH_MOST];
    hk_profile_lock(k);
    bool known = *hk_profile_find(k, (uintptr_t)p) != NULL;
    hak_frames_fn *fn = k->frames;
    void *user = k->user;
    size_t room = k->depth;
    bool frames_alone = k->frames_alone;
    hk_profile_unlock(k);
    if (!known) return false;
    size_t depth = fn ? hk_min(fn(user, k->ctx, site, frames, room), room) : 0;
    if (frames_alone && depth > 0) site = 0;
    label = hk_label_known(heap, label);
    hk_profile_prepare(k, (unsigned)depth);
    /* Nobody but the caller may free the block, but the profile may have begun anew. */
    hk_sample *block = *hk_profile_find(k, (uintptr_t)p);
    hk_sampled *s = NULL;
    if (block)
        s = (hk_sampled *)hk_profile_stack_of(k, frames, (unsigned)hk_min(depth, k->depth), site, label);
    news told = {.was = NULL, .is = NULL};
    if (s) {
        note_gone(k, &told, p);
        leave_stack(k, block);
        join_stack(k, block, s);
        note_made(k, &told, block);
    }
    hk_profile_unlock(k);
    tell_news(&told);
    return s != NULL;
}

void hk_profile_grown(hk_profile *k, const void *p, size_t n)
{
    hk_profile_lock(k);
    const hk_sample *block = *hk_profile_find(k, (uintptr_t)p);
    if (block && n > block->size) {
        double w = hk_profile_weight(k, block->eligible);
        block->stack->sums.grown_blocks += w;
        block->stack->sums.grown_bytes += w * (double)(n - block->size);
    }
    hk_profile_unlock(k);
}

/* A block that shrinks loses a part of its chance, and with that probability it is no sample any more.
 * Otherwise a block that grows again and again would have many chances and stand for one block. */
static bool thinned(hk_profile *k, const hk_sample *block, size_t n)
{
    if (k->exact || n >= block->size) return false;
    double stays = hk_profile_weight(k, block->eligible) / hk_profile_weight(k, hk_max(n, 1));
    return hk_profile_uniform(k) > stays;
}

/* The chance of a block is that of all its bytes, those that it grew by included. A block that moved is known at q
 * already: hk_profile_sample_arrive(). */
static bool resize_sample(hk_profile *k, const void *p, void *q, size_t n, news *told)
{
    hk_sample **link = hk_profile_find(k, (uintptr_t)q), *block = *link;
    if (!block) return false;
    hk_sampled *s = block->stack;
    share old = share_of(k, block->eligible, block->size);
    size_t before = block->size;
    if (thinned(k, block, n)) {
        count_live(k, s, old, -1);
        s->sums.freed_var += old.var;
        settle_live(s);
        note_gone(k, told, p);
        hk_profile_sample_drop(k, link);
        return true;
    }
    block->size = n;
    block->eligible = k->exact ? hk_max(block->eligible, n) : n;
    share now = share_of(k, block->eligible, n);
    count_live(k, s, old, -1);
    count_live(k, s, now, 1);
    if (n > before) {
        count_made(s, old, -1);
        count_made(s, now, 1);
        s->sums.grown_blocks += now.blocks;
        s->sums.grown_bytes += now.blocks * (double)(n - before);
        s->sums.largest = hk_max(s->sums.largest, n);
        note_peak(k);
    }
    if (p != q) {
        note_gone(k, told, p);
        note_made(k, told, block);
    }
    return true;
}

void hk_profile_resized(hak_ctx *heap, const void *p, void *q, size_t old, size_t n, hak_label label,
                        hak_site site)
{
    hk_profile *k = hk_profile_of(heap);
    news told = {.was = NULL, .is = NULL};
    hk_profile_lock(k);
    /* A block from before an exact profile began stays out of the profile until it moves. */
    bool known = resize_sample(k, p, q, n, &told) || (k->exact && p == q);
    if (k->exact) old = 0;
    hk_profile_unlock(k);
    tell_news(&told);
    if (known || n <= old || !(heap->checked & HK_PROFILED) || !atomic_load(&k->running)) return;
    heap->sampling.left -= (int64_t)(n - old);
    if (heap->sampling.left < 0) hk_profile_add(heap, q, n, n, label, site);
}
