#include "heap/heap.h"

#include "heap/domains.h"

#include <pthread.h>

static hak_inline_bin no_bins[HAK_INLINE_EIGHTS / 8];
hak_inline_ctx hkp_no_heap = {.bins = no_bins};
_Thread_local hak_ctx *hkp_mine = hkp_none;
_Thread_local void *hkp_foreign;

static hak_ctx *_Atomic context;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Of a limit, a part is for small blocks alone: where a MemoryError is raised and handled, and where a thread
 * begins, CPython does not expect to be refused an exception, a frame or a dict. */
static size_t set_aside(size_t hard)
{
    const size_t most = 2 << 20;
    return hard / 16 < most ? hard / 16 : most;
}

static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    _Atomic size_t hard;
    size_t soft;
    size_t mapped; /* past malloc */
    hak_pressure_fn *fn;
    void *user;
} limit;

static void lock_limit(void)
{
    pthread_mutex_lock(&limit_lock);
}

static void unlock_limit(void)
{
    pthread_mutex_unlock(&limit_lock);
}

/* Only a free comes here with a pointer of others: the other hooks ask first. A lock may be held, so that the
 * block is left for the hook to pass on. */
static void on_error(void *user, hak_error error, const void *p, const char *what)
{
    (void)user, (void)what;
    if (error == HAK_E_FOREIGN) hkp_foreign = (void *)(uintptr_t)p;
}

/* Other libraries say farewell later: what they free goes through the shared context. */
static void thread_end(void)
{
    hkp_mine = hkp_none;
    hkp_counts_leave();
}

static bool small_blocks;
static int wanted_mode = -1;
static const hak_policy *wanted_policy;
static size_t wanted_reserve;
static hak_space *heap_space;

void hkp_ctx_wish(int mode, const hak_policy *policy, size_t reserve)
{
    wanted_reserve = reserve;
    wanted_mode = mode;
    wanted_policy = policy;
}

static void create(void)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.name = "python";
    options.shared = true;
    options.workload = HAK_WORKLOAD_COUNTED;
    options.mode = wanted_mode < 0 ? HAK_MODE_LEAN : (hak_mode)wanted_mode;
    options.policy = wanted_policy;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.packed_bytes = HAK_NONE;
    /* The head of an object that the collector tracks is 16 bytes: the object begins a cache line. */
    tuning.first_offset = 48;
    options.on_error = on_error;
    hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
    /* Others in the process have memory of their own: what is not in use here would add to theirs. Of arenas
     * that pymalloc gives back, one and a little is wanted at once. */
    if (wanted_mode < 0) tuning.retained_bytes = small_blocks || hkp_malloc_in ? 4 << 20 : 3 << 19;
    if (wanted_mode < 0) tuning.huge_from = 64 << 20;
    pages.mode = options.mode;
    pages.reserve = wanted_reserve;
    pages.policy = wanted_policy;
    /* A table of 2 MiB and what labels add to it. */
    if (wanted_mode < 0) tuning.big_cache = (2 << 20) + 4096;
    pages.tuning = options.tuning = &tuning;
    hak_space *space = hak_space_new(&pages);
    hak_ctx *ctx = space ? hak_ctx_new(space, &options) : NULL;
    if (!ctx) return;
    heap_space = space;
    context = ctx; /* first: what is below may allocate */
    hkc_process_begin(ctx, thread_end, hkp_counts_in_child);
    pthread_atfork(lock_limit, unlock_limit, unlock_limit);
}

size_t hkp_bytes_within(uintptr_t start, uintptr_t end)
{
    return context ? hak_space_bytes_within(heap_space, (const void *)start, end - start) : 0;
}

hak_ctx *hkp_ctx(void)
{
    hak_ctx *ctx = context;
    if (ctx) return ctx;
    pthread_once(&once, create);
    return context;
}

hak_ctx *hkp_ctx_for(bool all)
{
    small_blocks = all;
    return hkp_ctx();
}

_Atomic uint32_t hkp_calls;

bool hkp_malloc_in;

hak_ctx *hkp_heap_find(void)
{
    hak_ctx *ctx = hkp_ctx();
    if (!ctx || !hkp_counts_take()) return ctx;
    hak_ctx *heap = hak_ctx_thread(ctx);
    if (!heap) return ctx;
    hkp_mine = heap;
    hkc_process_thread();
    return heap;
}

const char *hkp_version(void)
{
    return hak_version();
}

int hkp_stats(hak_stats *stats)
{
    int status = hkp_ctx() ? hak_ctx_stats(context, stats) : -1;
    if (status == 0) {
        stats->hard_limit = limit.hard;
        stats->soft_limit = limit.soft;
    }
    return status;
}

int hkp_visit(hak_visit_fn *fn, void *user)
{
    return hkp_ctx() ? hak_ctx_visit(context, fn, user) : 0;
}

bool hkp_owns(const void *p)
{
    hak_ctx *ctx = context;
    return ctx && hak_owns(ctx, p);
}

bool hkp_is_block(const void *p)
{
    const hak_ctx *ctx = hkp_mine != hkp_none ? hkp_mine : context;
    return p && ctx && hak_usable_size(ctx, p) > 0;
}

size_t hkp_trim(void)
{
    return hkp_ctx() ? hak_ctx_trim(context) : 0;
}

void hkp_peak_reset(void)
{
    if (hkp_ctx()) hak_ctx_peak_reset(context);
}

/* What mappings past malloc leave of the limit; with the lock held. 0 would be none. */
static size_t unmapped(size_t hard)
{
    return hard > limit.mapped ? hard - limit.mapped : hard > 0;
}

/* With the lock held. */
static int limit_most(void)
{
    size_t hard = unmapped(limit.hard - set_aside(limit.hard)), soft = limit.soft;
    return hak_limit(context, hard && soft > hard ? hard : soft, hard, limit.fn, limit.user);
}

int hkp_limit(size_t soft, size_t hard, hak_pressure_fn *fn, void *user)
{
    if (!hkp_ctx() || (hard && soft > hard)) return -1;
    pthread_mutex_lock(&limit_lock);
    limit.hard = hard;
    limit.soft = soft;
    limit.fn = fn;
    limit.user = user;
    int status = limit_most();
    pthread_mutex_unlock(&limit_lock);
    return status;
}

int hkp_limit_hard(size_t hard)
{
    if (!hkp_ctx()) return -1;
    pthread_mutex_lock(&limit_lock);
    limit.hard = hard;
    int status = limit_most();
    pthread_mutex_unlock(&limit_lock);
    return status;
}

/* Returns whether the heap is within what is left to it. */
static bool is_within(void)
{
    hak_stats stats = {.size = sizeof stats};
    return hak_ctx_stats(context, &stats) == 0 && stats.committed_bytes <= unmapped(limit.hard);
}

bool hkp_limit_charge(size_t now, bool insists)
{
    if (!hkp_ctx()) return true;
    pthread_mutex_lock(&limit_lock);
    const size_t before = limit.mapped;
    limit.mapped = now;
    /* First: no other thread takes the room meanwhile. */
    const bool limited = limit.hard != 0 && limit_most() == 0;
    bool ok = !limited || insists || now <= before || (now < limit.hard && is_within());
    if (!ok && now < limit.hard) {
        hak_ctx_trim(context);
        ok = is_within();
    }
    if (!ok) {
        limit.mapped = before;
        limit_most();
    }
    pthread_mutex_unlock(&limit_lock);
    return ok;
}

bool (*hkp_limit_settles)(void);

bool hkp_limit_leaves_more(void)
{
    return limit.hard && hkp_limit_settles && hkp_limit_settles();
}

void *hkp_allocate_aside(hak_ctx *heap, void *old, size_t n, hak_label label, hak_site site)
{
    enum { SMALL = 1280 }; /* the state of a thread takes 1096 bytes in 3.15, 936 in 3.14 */
    hkp_counts *mine = hkp_counted;
    if (hkp_limit_leaves_more()) {
        void *p = old ? hak_realloc(heap, old, n) : hak_alloc_cs(heap, n, label, site);
        if (p) return p;
    }
    if (!limit.hard || n > SMALL || !mine) return NULL;
    if (mine->aside == 0) {
        mine->aside = HKP_ASIDE;
        return NULL;
    }
    mine->aside--;
    pthread_mutex_lock(&limit_lock);
    hak_limit(context, 0, unmapped(limit.hard), NULL, NULL); /* nobody is called back with the lock held */
    void *p = old ? hak_realloc(heap, old, n) : hak_alloc_cs(heap, n, label, site);
    limit_most();
    pthread_mutex_unlock(&limit_lock);
    return p;
}
