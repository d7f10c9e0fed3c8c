/* Learners: reads what they see of their contexts, and applies what they decide. learn/ decides. */
#include "api/learner.h"

#include "base/os.h"
#include "base/os_lock.h"
#include "base/policy.h"
#include "base/settings.h"
#include "heap/big.h"
#include "heap/hints.h"
#include "heap/packed.h"
#include "learn/learn.h"
#include "shared/thread_heap.h"

enum { ENDED = 8 /* contexts that tell what the next will be like */ };
/* What a class whose blocks come and go saves in slabs of its own, and what it takes: of a context that lives
 * longer than the one pays for the other, nothing is taken over. */
static const double slab_saves_ns = 2500, slab_mib = 16.0 / 1024;

enum { LOOKS = 8 /* at each context in a window; in the first, each time its age has grown by an eighth */ };

typedef struct spent {
    uint64_t fresh, fresh_huge, os_calls;
    uint32_t exchanges; /* of the context itself */
} spent;

/* A context of the learner, and what was last seen of it, in its own tick. */
typedef struct member {
    hak_ctx *ctx;             /* NULL = free */
    hak_policy *base, *pages; /* what the context and its space went by when it was added */
    hak_policy *told_pages;   /* what the space was told last */
    size_t live, committed, retained, huge_from, retained_limit;
    spent so_far, before; /* of its space; before: when the window began */
    float sizes[HK_SIZES];
    uint64_t first_ns, seen_ns;
    uint32_t told; /* which of the learner's numbers it has */
    bool new;
} member;

struct hak_learner {
    hk_learner_lock held; /* first: shared/fork.c takes it */
    hak_os os;
    _Atomic uint64_t progress;
    uint64_t window_progress, window_ns, window_cpu;
    bool begun;      /* a window has begun; so has what is learned, with the first context */
    uint32_t number; /* of the numbers to tell */
    size_t expected_first;
    hk_choice now;
    size_t peak;
    uint32_t ended, ended_hot[HK_SLAB_SIZES]; /* contexts; those in which blocks of a size came and went */
    hk_learn learn;
    member members[HAK_LEARNER_CONTEXTS];
};

_Static_assert(offsetof(hak_learner, held) == 0, "the lock is where fork.c looks for it");

static const char *read_options(hak_learner_options *o, const hak_learner_options *given)
{
    static const hak_learner_options defaults = HAK_LEARNER_OPTIONS_INIT;
    if (!hak_sized_copy(o, sizeof *o, given ? given : &defaults))
        return "hak_learner_options.size is not set, or more is set than is known";
    if (!o->window_ns) o->window_ns = UINT64_C(1000000000);
    if (!o->cool_ns) o->cool_ns = UINT64_C(180000000000);
    if (!o->retained_most) o->retained_most = (size_t)256 << 20;
    if (!o->fault_ns) o->fault_ns = 250;
    if (!o->huge_ns) o->huge_ns = (unsigned)(0.26 * o->fault_ns + 0.5);
    if (!o->call_ns) o->call_ns = 1000;
    const unsigned most_ns = 1000000;
    if (o->retained_most < (size_t)1 << 20) return "retained_most: 1 MiB on";
    if (o->price != 0 && !(o->price > 0 && o->price <= 1)) return "price: above 0, at most 1";
    if (o->fault_ns > most_ns || o->huge_ns > most_ns || o->call_ns > most_ns)
        return "fault_ns, huge_ns, call_ns: at most 1 ms";
    return NULL;
}

const char *hak_learner_options_error(const hak_learner_options *given)
{
    hak_learner_options o;
    return read_options(&o, given);
}

hak_learner *hak_learner_new(const hak_os *given, const hak_learner_options *options)
{
    hak_learner_options o;
    hak_os os;
    if (read_options(&o, options)) return NULL;
    if (hk_os_read(&os, given)) return NULL;
    hak_learner *l = hk_os_take(&os, sizeof *l);
    if (!l) return NULL;
    l->os = os;
    l->learn.o = o;
    return l;
}

static void leave_learner(member *m)
{
    m->ctx->settings.learner = NULL;
    hak_policy_unref(m->base);
    hak_policy_unref(m->pages);
    hak_policy_unref(m->told_pages);
    *m = (member){0};
}

void hak_learner_delete(hak_learner *l)
{
    if (!l) return;
    for (unsigned i = 0; i < HAK_LEARNER_CONTEXTS; i++)
        if (l->members[i].ctx) leave_learner(&l->members[i]);
    hak_os os = l->os; /* which is in the pages */
    hk_os_give(&os, l, sizeof *l);
}

static member *find(hak_learner *l, const hak_ctx *ctx)
{
    for (unsigned i = 0; i < HAK_LEARNER_CONTEXTS; i++)
        if (l->members[i].ctx == ctx) return &l->members[i];
    return NULL;
}

static hak_mode mode_of(const hak_ctx *ctx, const hak_policy *policy)
{
    int mode = policy ? policy->mode : HAK_POLICY_MODE_NONE;
    return (hak_mode)(mode == HAK_POLICY_MODE_NONE ? ctx->settings.mode : mode);
}

/* Another context of the same space, among those before `end`. */
static const member *beside(const hak_learner *l, const member *m, const member *end)
{
    for (const member *other = l->members; other < end; other++)
        if (other != m && other->ctx && other->ctx->space == m->ctx->space) return other;
    return NULL;
}

int hak_learner_add(hak_learner *l, hak_ctx *ctx)
{
    ctx = hk_whole(ctx);
    if (ctx->settings.learner) return -1;
    /* The context gets hints even without a policy: by them the end of its space finds it. */
    hk_whole_lock(ctx);
    bool made = hk_hints_make(ctx);
    hk_whole_unlock(ctx);
    if (!made) return -1;
    hak_tuning t = HAK_TUNING_INIT;
    hak_ctx_tuning(ctx, &t);
    hk_lock_take(&l->held.lock);
    member *m = find(l, NULL);
    if (m) {
        *m = (member){.ctx = ctx, .base = hak_ctx_policy(ctx), .new = true, .told = l->number};
        const member *same = beside(l, m, l->members + HAK_LEARNER_CONTEXTS);
        m->pages = same ? hak_policy_ref(same->pages) : hak_space_policy(ctx->space);
        ctx->settings.learner = l;
        if (!l->begun) {
            hak_learner_options o = l->learn.o;
            const hak_policy *p = m->base;
            if (o.price == 0) o.price = (p && p->price ? p->price : HAK_PRICE_NORMAL) * 1e-6;
            if (p && p->budget) o.retained_most = hk_min(o.retained_most, p->budget);
            hk_learn_init(&l->learn, &o, mode_of(ctx, p), t.retained_bytes, t.expected_bytes,
                          p ? p->undone : NULL, p ? p->undone_count : 0);
            l->now = hk_learn_now(&l->learn);
            l->expected_first = t.expected_bytes;
        } else if (l->number) {
            m->told = l->number - 1;
        }
        l->begun = true;
    }
    hk_lock_drop(&l->held.lock);
    return m ? 0 : -1;
}

/* Which sizes were hot in a context that ends. */
static void see_end(hak_learner *l, const member *m)
{
    double life_ns = m->new ? 0 : (double)(m->seen_ns - m->first_ns);
    if (m->ctx->heaps) return;
    l->ended++;
    if (life_ns * l->learn.o.price * slab_mib > slab_saves_ns) return;
    size_t hot = hk_packed_sizes(m->ctx, true);
    for (unsigned i = 0; i < HK_SLAB_SIZES; i++)
        l->ended_hot[i] += hot >> i & 1;
}

/* The sizes that were hot in three of four contexts; 0 = nothing is known. */
static size_t hot_sizes(const hak_learner *l)
{
    size_t sizes = 0;
    for (unsigned i = 0; i < HK_SLAB_SIZES && l->ended >= ENDED; i++)
        sizes |= (size_t)((uint64_t)l->ended_hot[i] * 4 >= (uint64_t)l->ended * 3) << i;
    return sizes;
}

/* The space goes by what the host gave it again, unless that gave it another policy meanwhile: a context that
 * comes later begins there. */
static void forget_pages(const member *m)
{
    hak_policy *now = hak_space_policy(m->ctx->space);
    if (now && now == m->told_pages) hak_space_policy_set(m->ctx->space, m->pages);
    hak_policy_unref(now);
}

void hk_learner_forget(hak_ctx *ctx)
{
    hak_learner *l = ctx->settings.learner;
    hk_lock_take(&l->held.lock);
    member *m = find(l, ctx);
    see_end(l, m);
    if (!beside(l, m, l->members + HAK_LEARNER_CONTEXTS)) forget_pages(m);
    leave_learner(m);
    hk_lock_drop(&l->held.lock);
}

hak_learner *hak_ctx_learner(const hak_ctx *ctx)
{
    return hk_whole(ctx)->settings.learner;
}

void hak_learner_progress(hak_learner *l, uint64_t n)
{
    atomic_fetch_add_explicit(&l->progress, n, memory_order_relaxed);
}

/* ---- What is seen --------------------------------------------------------------------------------- */

static void count(float *sizes, size_t size, size_t bytes)
{
    unsigned at = hk_log2(size);
    sizes[at < HK_SIZES ? at : HK_SIZES - 1] += (float)bytes;
}

static void count_slab(hak_ctx *heap, hk_slab *s, void *user)
{
    (void)heap;
    if (s->kind >= HK_BINS) return;
    size_t size = hk_kind_size(s->kind);
    count(user, size, s->kind < HK_SMALL_CLASSES ? s->used * size : size);
}

static void count_heap(hak_ctx *heap, float *sizes)
{
    for (unsigned sc = 0; sc < HK_SMALL_CLASSES; sc++)
        if (heap->packed.live[sc]) count(sizes, hk_classes[sc].size, heap->packed.live[sc] * (size_t)16);
    for (const hk_big *b = heap->big.live; b; b = b->next)
        count(sizes, b->size, b->size);
}

/* Shares of its live bytes, by size of block. */
static void see_sizes(hak_ctx *ctx, float *sizes)
{
    memset(sizes, 0, HK_SIZES * sizeof *sizes);
    hk_walk(ctx, count_slab, sizes);
    if (!ctx->heaps) count_heap(ctx, sizes);
    for (hak_ctx *heap = ctx->heaps ? hk_heaps_first(ctx) : NULL; heap; heap = heap->heap->next) {
        hk_heap_lock(heap);
        count_heap(heap, sizes);
        hk_heap_unlock(heap);
    }
}

/* Of heaps at work, too: a little less or more does not matter. */
HK_RACY static uint32_t exchanges_of(hak_ctx *ctx)
{
    uint32_t n = ctx->account.exchanges;
    if (!ctx->heaps) return n;
    hk_lock_take(&ctx->heaps->walk);
    for (const hak_ctx *heap = hk_heaps_first(ctx); heap; heap = heap->heap->next)
        n += heap->account.exchanges;
    hk_lock_drop(&ctx->heaps->walk);
    return n;
}

static void see(hak_learner *l, member *m)
{
    hak_stats s = {.size = sizeof s};
    hak_tuning t = HAK_TUNING_INIT;
    hak_ctx_stats(m->ctx, &s);
    hak_ctx_tuning(m->ctx, &t);
    m->live = s.live_bytes;
    m->committed = s.committed_bytes;
    m->retained = s.retained_bytes;
    m->huge_from = t.huge_from;
    m->retained_limit = t.retained_bytes;
    m->so_far = (spent){s.fresh_bytes, hk_get(&m->ctx->space->clean_huge) << HK_UNIT_SHIFT, s.os_calls,
                        exchanges_of(m->ctx)};
    l->peak = hk_max(l->peak, hk_max(s.committed_bytes, s.peak_bytes));
    if (m->new) {
        m->before = m->so_far;
        m->new = false;
    }
}

/* The window of all contexts that ends now; the next one begins. */
static hk_window end_window(hak_learner *l, uint64_t now_ns)
{
    uint64_t progress = atomic_load_explicit(&l->progress, memory_order_relaxed);
    hk_window w = {.at_ns = now_ns,
                   .ns = now_ns - l->window_ns,
                   .progress = progress - l->window_progress,
                   .resident = l->learn.o.resident ? l->learn.o.resident() : 0,
                   .huge_from = HAK_NONE,
                   .retained_limit = HAK_NONE};
    double all = 0;
    for (member *m = l->members; m < l->members + HAK_LEARNER_CONTEXTS; m++) {
        if (!m->ctx) continue;
        w.live = hk_max(w.live, m->live);
        w.committed = hk_max(w.committed, m->committed);
        w.held += m->committed - hk_min(m->live, m->committed); /* a shared context is at work meanwhile */
        w.huge_from = hk_min(w.huge_from, m->huge_from);
        w.retained_limit = hk_min(w.retained_limit, m->retained_limit);
        for (unsigned i = 0; i < HK_SIZES; i++)
            w.sizes[i] += m->sizes[i];
        w.exchanges += (uint32_t)(m->so_far.exchanges - m->before.exchanges); /* it may have wrapped */
        /* What contexts of one space share counts once. */
        if (!beside(l, m, m)) {
            w.retained += m->retained;
            w.fresh += m->so_far.fresh - m->before.fresh;
            w.fresh_huge += m->so_far.fresh_huge - m->before.fresh_huge;
            w.os_calls += m->so_far.os_calls - m->before.os_calls;
        }
        m->before = m->so_far;
    }
    w.held += w.retained;
    for (unsigned i = 0; i < HK_SIZES; i++)
        all += (double)w.sizes[i];
    for (unsigned i = 0; all > 0 && i < HK_SIZES; i++)
        w.sizes[i] = (float)((double)w.sizes[i] / all);
    l->window_progress = progress;
    l->window_ns = now_ns;
    if (l->learn.o.cpu_ns) {
        uint64_t cpu = l->learn.o.cpu_ns();
        w.ns = cpu - l->window_cpu;
        l->window_cpu = cpu;
    }
    return w;
}

/* ---- What is told --------------------------------------------------------------------------------- */

/* Whether the retained bytes that come with a mode are more than the learner may decide on. */
static bool above_budget(const hak_learner *l, const member *m, const hak_policy *base, const hk_choice *c)
{
    bool said = m->ctx->settings.given >> HK_SETTING_retained_bytes & 1;
    if (c->mode == HAK_POLICY_MODE_NONE || said || (base && base->tuning.retained_bytes)) return false;
    return hk_settings_default((hak_mode)c->mode, HAK_WORKLOAD_TRACED)->retained_bytes >
           l->learn.o.retained_most;
}

/* A policy with all that the base (NULL = none) says, and these numbers in place of its own; 0 = its own. m:
 * whose it is to be; NULL = nobody's. saved: for the next run, with what was learned beside the numbers. */
static hak_policy *compose(const hak_learner *l, const member *m, const hak_policy *base, const hk_choice *c,
                           size_t expected, bool saved)
{
    hak_hint hints[HAK_HINTS_MOST];
    hak_undone undone[HAK_UNDONE_MOST];
    hak_policy_options o = HAK_POLICY_OPTIONS_INIT;
    hak_tuning t = HAK_TUNING_INIT;
    if (base) {
        hak_policy_tuning(base, &t);
        o.name = hak_policy_name(base);
        o.mode = hak_policy_mode(base);
        o.hints = hints;
        o.hint_count = hak_policy_hints(base, hints, HAK_HINTS_MOST);
    }
    if (c->mode != HAK_POLICY_MODE_NONE) o.mode = c->mode;
    if (c->retained) t.retained_bytes = c->retained;
    else if (m && above_budget(l, m, base, c)) t.retained_bytes = l->learn.o.retained_most;
    if (expected) t.expected_bytes = expected;
    size_t sizes = saved ? hot_sizes(l) : 0;
    if (sizes) t.slab_sizes = sizes;
    o.tuning = &t;
    o.price = base ? base->price : 0;
    o.budget = base ? base->budget : 0;
    o.undone = undone;
    if (saved && l->begun) o.undone_count = hk_learn_undone(&l->learn, undone);
    return hak_policy_new(&l->os, &o);
}

static void tell_member(hak_learner *l, member *m)
{
    if (m->told == l->number || l->learn.o.dry) return;
    size_t expected = l->now.expected == l->expected_first ? 0 : l->now.expected;
    hak_policy *policy = compose(l, m, m->base, &l->now, expected, false);
    hak_policy *pages =
        m->pages == m->base ? hak_policy_ref(policy) : compose(l, m, m->pages, &l->now, expected, false);
    /* Without memory at the next tick, perhaps. */
    if (policy && pages && hak_ctx_policy_set(m->ctx, policy) == 0) {
        hak_space_policy_set(m->ctx->space, pages);
        m->told = l->number;
        hak_policy *before = m->told_pages;
        m->told_pages = pages;
        pages = before;
    }
    hak_policy_unref(pages);
    hak_policy_unref(policy);
}

/* A window lasts its time, and until the program has done some work in it: of a program that waits there is
 * nothing to be seen. */
static bool window_over(const hak_learner *l, uint64_t now_ns)
{
    enum { WORK = 100 /* a share of the window, CPU time */ };
    const hak_learner_options *o = &l->learn.o;
    if (now_ns - l->window_ns < o->window_ns) return false;
    return !o->cpu_ns || o->cpu_ns() - l->window_cpu >= o->window_ns / WORK;
}

void hk_learner_tick(hak_ctx *ctx, uint64_t now_ns)
{
    hak_learner *l = ctx->settings.learner;
    hk_lock_take(&l->held.lock);
    l->peak = hk_max(l->peak, hk_peak_bytes(ctx)); /* costs no look */
    member *m = find(l, ctx);
    bool ends = window_over(l, now_ns), over = now_ns < m->seen_ns || ends;
    if (m->new) m->first_ns = now_ns;
    uint64_t every = hk_min(l->learn.o.window_ns, now_ns - m->first_ns) / LOOKS;
    if (m->new || over || now_ns - m->seen_ns >= every) {
        see(l, m);
        m->seen_ns = now_ns;
    }
    if (l->window_ns == 0 || now_ns < l->window_ns) {
        end_window(l, now_ns); /* the first one begins, or the clock went back */
    } else if (ends) {
        see_sizes(ctx, m->sizes);
        hk_window w = end_window(l, now_ns);
        hk_learn_window(&l->learn, &w);
        hk_choice c = hk_learn_now(&l->learn);
        if (c.mode != l->now.mode || c.retained != l->now.retained || c.expected != l->now.expected)
            l->number++;
        l->now = c;
    }
    tell_member(l, m);
    hk_lock_drop(&l->held.lock);
}

void hak_learner_look(hak_ctx *ctx, uint64_t now_ns)
{
    hak_ctx *whole = hk_whole(ctx);
    if (!whole->settings.learner) return;
    if (now_ns == 0) now_ns = whole->space->os.clock(whole->space->os.user);
    hk_learner_tick(whole, now_ns);
}

/* ---- What is known -------------------------------------------------------------------------------- */

hak_policy *hak_learner_policy(hak_learner *l)
{
    const size_t MiB = (size_t)1 << 20;
    const member *first = NULL;
    hk_lock_take(&l->held.lock);
    for (member *m = l->members + HAK_LEARNER_CONTEXTS; m-- > l->members;)
        if (m->ctx) first = m;
    /* If the heap stayed smaller than was expected, the policy says so, for the next start. */
    size_t expected = first && first->base && first->base->tuning.expected_bytes ? HAK_NONE : 0;
    if (first && !first->new && l->peak >= first->huge_from) expected = hk_align_up(l->peak, MiB);
    hk_choice none = {.mode = HAK_POLICY_MODE_NONE}, kept = l->begun ? hk_learn_kept(&l->learn) : none;
    hak_policy *policy = compose(l, first, first ? first->base : NULL, &kept, expected, true);
    hk_lock_drop(&l->held.lock);
    return policy;
}

int hak_learner_stats(hak_learner *l, hak_learner_info *out)
{
    if (!hk_sized_fits(out->size, sizeof *out)) return -1;
    hk_lock_take(&l->held.lock);
    const hk_learn *k = &l->learn;
    hak_learner_info info = {
        .phase = k->phase,
        .windows = k->windows,
        .expected_bytes = l->now.expected,
        .peak_bytes = l->peak,
    };
    if (l->begun) {
        info.cost = hk_learn_cost(k);
        info.mode = hk_learn_mode(k);
        info.retained_bytes = hk_learn_retained(k);
    }
    for (unsigned i = 0; i < HAK_LEARNER_CONTEXTS; i++)
        info.contexts += l->members[i].ctx != NULL;
    hk_lock_drop(&l->held.lock);
    hk_sized_write(out, &info, sizeof info);
    return 0;
}

static int give(hak_learner *l, const void *found, size_t known, void *out)
{
    if (found) hk_sized_write(out, found, known);
    hk_lock_drop(&l->held.lock);
    return found ? 0 : -1;
}

int hak_learner_decision(hak_learner *l, size_t i, hak_decision *out)
{
    if (!hk_sized_fits(out->size, sizeof *out)) return -1;
    hk_lock_take(&l->held.lock);
    return give(l, hk_learn_decision(&l->learn, i), sizeof *out, out);
}

int hak_learner_window(hak_learner *l, size_t i, hak_window *out)
{
    if (!hk_sized_fits(out->size, sizeof *out)) return -1;
    hk_lock_take(&l->held.lock);
    return give(l, hk_learn_window_at(&l->learn, i), sizeof *out, out);
}
